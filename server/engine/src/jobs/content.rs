//! One side of one changed path, exactly: what the job started from, what it left, what the checkout holds, and what it
//! would hold.

use pactify_core::change::hunk;
use pactify_core::change::plan::{Merge, Outlook, Selection};
use pactify_core::change::{Change, Entry, EntryMode};
use pactify_core::job::RepositoryRecord;
use pactify_core::protocol::{Content, ContentParams, Side};
use pactify_core::{Failure, JobId, ObjectId, RepoPath};

use super::offer::{Chosen, Offer};
use super::preview::{Captured, repo_path};
use super::scene::Scene;
use super::{Jobs, job_id, unchanged};
use crate::apply::unsaved::unsaved;
use crate::apply::{self, ApplyError, Current};
use crate::git::merge::Merged;
use crate::git::{GitError, Objects, Places};

const ABSENT: Content = Content { text: None, binary: false, size: 0, exists: false, object: None, conflicts: None };

impl Jobs {
    /// One side of one path.
    pub fn content(&self, params: &ContentParams) -> Result<Content, Failure> {
        let job = job_id(&params.job_id)?;
        let path = repo_path(params.path.path.clone(), params.path.path_bytes.clone())?;
        let result = self.result(&job)?;
        let change = result.set.changes.iter().find(|change| change.path == path);
        let change = change.ok_or_else(|| unchanged(&path))?;
        match params.side {
            Side::Base => side(change.old.as_ref(), &result.objects),
            Side::Result => side(change.new.as_ref(), &result.objects),
            Side::Current => current(&result.spec.repository, &path),
            Side::Merged => {
                let groups = params.groups.iter().map(|groups| (path.clone(), groups.clone())).collect();
                self.merged(&job, &result, change, &groups)
            }
        }
    }

    /// What an apply of a path, or of parts of it, would write now.
    fn merged(&self, job: &JobId, result: &Captured, change: &Change, groups: &Chosen) -> Result<Content, Failure> {
        let path = &change.path;
        let _lock = self.quiet(job)?;
        let mut offer = Offer::of(result);
        let unsaved = unsaved(self.store(), &result.spec.repository)?;
        let form = self.form(&Places::from(&self.store().job(job)?), &offer)?;
        let mut scene = Scene::of(&form, &mut offer, groups, unsaved)?;
        let wanted = result.set.to_merge(&Selection::Paths(vec![path.clone()]), &scene.grounds, &scene.checkout);
        for wanted in wanted {
            let merge = match scene.merging().one(&wanted, &mut offer)? {
                Merged::Clean(bytes) => {
                    let size = bytes.len() as u64;
                    Merge::Clean { object: offer.make(bytes), size }
                }
                Merged::Conflicted { marked, places } => {
                    return Ok(Content { conflicts: Some(places), ..content(marked) });
                }
                Merged::Impossible(why) => Merge::Impossible(why.to_owned()),
            };
            scene.grounds.merges.insert(wanted.path, merge);
        }
        let target = match scene.grounds.goals.get(path) {
            Some(goal) => goal.target.as_ref(),
            None => change.new.as_ref(),
        };
        match result.set.outlook(&scene.grounds, &scene.checkout).remove(path) {
            Some(Outlook::Conflict(conflict)) => Err(ApplyError::Conflicts(vec![conflict]).into()),
            Some(Outlook::Merge(object)) => named(&offer, scene.merging().held(path)?, &object),
            Some(Outlook::Clean) => match target {
                Some(entry) => named(&offer, None, &entry.object),
                None => Ok(ABSENT),
            },
            Some(Outlook::Already) | None => match scene.merging().held(path)? {
                Some(bytes) => Ok(Content { object: Some(offer.id_of(&bytes).to_string()), ..content(bytes) }),
                None => Ok(ABSENT),
            },
        }
    }
}

/// A content that an apply would write, with its id: `held` by the checkout already, or on offer.
fn named(offer: &Offer<'_>, held: Option<Vec<u8>>, object: &ObjectId) -> Result<Content, Failure> {
    let bytes = match held {
        Some(bytes) if offer.id_of(&bytes) == *object => bytes,
        _ => match offer.read(object, hunk::MAX_TEXT_BYTES) {
            Err(GitError::ObjectTooLarge { size, .. }) => {
                return Ok(Content { object: Some(object.to_string()), ..too_large(size) });
            }
            read => read?,
        },
    };
    Ok(Content { object: Some(object.to_string()), conflicts: Some(0), ..content(bytes) })
}

fn side(entry: Option<&Entry>, objects: &Objects) -> Result<Content, Failure> {
    Ok(match entry {
        None => ABSENT,
        Some(entry) if entry.mode == EntryMode::Gitlink => ABSENT,
        Some(entry) if entry.size > hunk::MAX_TEXT_BYTES => too_large(entry.size),
        Some(entry) => content(objects.read(&entry.object, hunk::MAX_TEXT_BYTES)?),
    })
}

/// What the checkout holds at a path now, in the form in which it holds it.
fn current(repository: &RepositoryRecord, path: &RepoPath) -> Result<Content, Failure> {
    Ok(match apply::current(repository, path, hunk::MAX_TEXT_BYTES)? {
        Current::Absent => ABSENT,
        Current::TooLarge(size) => too_large(size),
        Current::Bytes(bytes) => content(bytes),
    })
}

fn too_large(size: u64) -> Content {
    Content { binary: true, size, exists: true, ..ABSENT }
}

fn content(bytes: Vec<u8>) -> Content {
    let size = bytes.len() as u64;
    match String::from_utf8(bytes) {
        Ok(text) if hunk::is_text(text.as_bytes()) => Content { text: Some(text), size, exists: true, ..ABSENT },
        _ => Content { binary: true, size, exists: true, ..ABSENT },
    }
}
