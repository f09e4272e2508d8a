//! Showing what a job changed: summary first, lines on demand, always of the captured objects.
//!
//! Everything here is bounded and pages; what is cut short says so. Sensitive paths come first. The job's tree is never
//! looked at: it may have been changed since, or be a trap.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use pactify_core::change::hunk::{self, Group};
use pactify_core::change::sensitive::{Tier, tier};
use pactify_core::change::{Change, ChangeSet, Entry, EntryMode, Note, Totals};
use pactify_core::fingerprint::OutsideChange;
use pactify_core::job::state::SeenState;
use pactify_core::job::{JobSpec, RepositoryRecord};
use pactify_core::path::PathName;
use pactify_core::path::rules::WritablePath;
use pactify_core::protocol::{
    Content, ContentParams, ExportForm, ExportParams, Exported, FileChange, HunkView, Preview, PreviewFormat,
    PreviewParams, Side, SideView,
};
use pactify_core::{AbsPath, Failure, FailureCode, JobId, ObjectId, RepoPath, display};

use super::{Jobs, invalid, job_id, page};
use crate::apply::{self, Current};
use crate::git::{GitError, Objects, Places, Texts};

/// The longest patch that is sent in one piece, in bytes.
const MAX_PATCH: usize = 16 << 20;

/// The most lines of one file's hunks that are sent.
const MAX_HUNK_LINES: usize = 5_000;

impl Jobs {
    /// What a job changed.
    pub fn preview(&self, params: &PreviewParams) -> Result<Preview, Failure> {
        let job = job_id(&params.job_id)?;
        let result = self.result(&job)?;
        let only = match (&params.path, &params.path_bytes) {
            (None, None) => None,
            (path, bytes) => Some(repo_path(path.clone().unwrap_or_default(), bytes.clone())?),
        };
        let mut changes: Vec<&Change> = match &only {
            None => result.set.changes.iter().collect(),
            Some(only) => result.set.changes.iter().filter(|change| change.path == *only).collect(),
        };
        if let (Some(only), true) = (&only, changes.is_empty()) {
            return Err(invalid(format!("path: {only} is not among the job's changes")));
        }
        changes.sort_by_key(|change| tier(&change.path) != Some(Tier::Sensitive));
        let page = page(params.cursor.as_deref(), params.limit, 500, 5_000, changes.len())?;
        let mut truncated = false;
        let mut files = Vec::new();
        for change in &changes[page.range.clone()] {
            files.push(file_change(change, &result, params.format, &mut truncated)?);
        }
        let patch = match params.format {
            PreviewFormat::Patch => {
                let patch = self.patch(&result, only.as_ref())?;
                truncated |= !matches!(patch, Patch::Whole(_));
                Some(patch.into_text())
            }
            PreviewFormat::Summary | PreviewFormat::Hunks => None,
        };
        Ok(Preview {
            job_id: job.to_string(),
            change_set: result.set.id.to_string(),
            totals: result.totals,
            files,
            notes: result.set.notes.iter().map(note).collect(),
            outside: result.outside.clone(),
            next: page.next,
            patch,
            truncated,
        })
    }

    /// One side of one path.
    pub fn content(&self, params: &ContentParams) -> Result<Content, Failure> {
        let job = job_id(&params.job_id)?;
        let path = repo_path(params.path.path.clone(), params.path.path_bytes.clone())?;
        let result = self.result(&job)?;
        let change = result.set.changes.iter().find(|change| change.path == path);
        let change = change.ok_or_else(|| invalid(format!("path: {path} is not among the job's changes")))?;
        let bytes = match params.side {
            Side::Base => side(change.old.as_ref(), &result.objects)?,
            Side::Result => side(change.new.as_ref(), &result.objects)?,
            Side::Current => current(&result.spec.repository, &path)?,
            Side::Merged => return Err(invalid("side: merged is not there yet")),
        };
        Ok(match bytes {
            SideBytes::None => Content { text: None, binary: false, size: 0, exists: false },
            SideBytes::TooLarge(size) => Content { text: None, binary: true, size, exists: true },
            SideBytes::Bytes(bytes) => content(bytes),
        })
    }

    /// The result as a patch, or as a branch of the person's repository.
    pub fn export(&self, params: &ExportParams) -> Result<Exported, Failure> {
        let job = job_id(&params.job_id)?;
        let result = self.result(&job)?;
        match params.form {
            ExportForm::Patch => {
                let why = match self.patch(&result, None)? {
                    Patch::Whole(patch) => return Ok(Exported { patch: Some(patch), branch: None }),
                    Patch::TooLarge => format!("the patch is over {} MiB", MAX_PATCH >> 20),
                    Patch::NotText => "the patch has lines that are not UTF-8".to_owned(),
                };
                Err(Failure::new(FailureCode::InvalidParams, why, "export it as a branch, or apply it"))
            }
            ExportForm::Branch => {
                let name = params.name.clone().unwrap_or_else(|| format!("pactify/{job}"));
                let (spec, tree) = (&result.spec, result.set.id.tree());
                let message = format!("{}\n\nDone by {} in pactify job {job}.\n", spec.brief.title(), spec.harness);
                self.git()?.publish_branch(&result.capture, &spec.repository, &spec.base, tree, &name, &message)?;
                Ok(Exported { patch: None, branch: Some(name) })
            }
        }
    }
}

impl Jobs {
    /// Opens what the job's newest capture found.
    pub(super) fn result(&self, job: &JobId) -> Result<Captured, Failure> {
        let (snapshot, seen) = self.store().seen(job)?;
        let Some(record) = &snapshot.state.result else { return Err(no_result(job, seen)) };
        let (directory, git, spec) = (self.store().job(job)?, self.git()?, Arc::clone(&snapshot.spec));
        let capture = directory.capture();
        let (set, texts) = git.change_list(&capture, &record.base_tree, record.change_set.tree())?;
        let mut result = Captured {
            set,
            texts,
            totals: record.totals,
            objects: git.objects(&capture, record.change_set.tree())?,
            accepted: snapshot.state.accepted.clone(),
            accepted_entries: BTreeMap::new(),
            capture,
            spec,
            outside: snapshot.state.outside_changes(),
        };
        if let Some(accepted) = result.accepted.as_ref().filter(|accepted| **accepted != record.base_tree) {
            let places = Places::from(&directory);
            let Some(store) = git.accepted(&places, &result.spec.base)? else {
                let (repository, missing) = (places.accepted(), vec![accepted.to_string()]);
                return Err(GitError::ObjectsMissing { repository, missing }.into());
            };
            let changes = store.changes(&record.base_tree, accepted)?;
            result.objects = result.objects.or(store.into_objects());
            result.add_accepted(changes);
        }
        Ok(result)
    }

    fn patch(&self, result: &Captured, only: Option<&RepoPath>) -> Result<Patch, Failure> {
        let patch = self.git()?.patch(&result.capture, &result.set.base_tree, result.set.id.tree(), only)?;
        if patch.len() > MAX_PATCH {
            return Ok(Patch::TooLarge);
        }
        Ok(String::from_utf8(patch).map_or(Patch::NotText, Patch::Whole))
    }
}

/// A result as a patch.
enum Patch {
    Whole(String),
    /// Over [`MAX_PATCH`].
    TooLarge,
    /// Of files that are not UTF-8: it cannot be said in JSON without changing it.
    NotText,
}

impl Patch {
    /// The text, empty where there is none to send.
    fn into_text(self) -> String {
        match self {
            Self::Whole(patch) => patch,
            Self::TooLarge | Self::NotText => String::new(),
        }
    }
}

fn no_result(job: &JobId, seen: SeenState) -> Failure {
    let (why, next) = match seen {
        SeenState::Finished => ("nothing was captured", "`pactify sub show` says why it failed"),
        SeenState::Lost => {
            ("its host died", "start the server, or cancel the job: what is in its tree is captured then")
        }
        _ => ("it is not finished", "wait until it ends, or cancel it"),
    };
    Failure::new(FailureCode::WrongState, format!("job {job} has no result: {why}"), next)
}

/// What is on one side of a path.
pub(super) enum SideBytes {
    None,
    TooLarge(u64),
    Bytes(Vec<u8>),
}

fn side(entry: Option<&Entry>, objects: &Objects) -> Result<SideBytes, Failure> {
    Ok(match entry {
        None => SideBytes::None,
        Some(entry) if entry.mode == EntryMode::Gitlink => SideBytes::None,
        Some(entry) if entry.size > hunk::MAX_TEXT_BYTES => SideBytes::TooLarge(entry.size),
        Some(entry) => SideBytes::Bytes(objects.read(&entry.object, hunk::MAX_TEXT_BYTES)?),
    })
}

/// What the checkout holds at a path now, in the form in which it holds it.
fn current(repository: &RepositoryRecord, path: &RepoPath) -> Result<SideBytes, Failure> {
    Ok(match apply::current(repository, path, hunk::MAX_TEXT_BYTES)? {
        Current::Absent => SideBytes::None,
        Current::TooLarge(size) => SideBytes::TooLarge(size),
        Current::Bytes(bytes) => SideBytes::Bytes(bytes),
    })
}

fn content(bytes: Vec<u8>) -> Content {
    let size = bytes.len() as u64;
    match String::from_utf8(bytes) {
        Ok(text) if hunk::is_text(text.as_bytes()) => Content { text: Some(text), binary: false, size, exists: true },
        _ => Content { text: None, binary: true, size, exists: true },
    }
}

fn file_change(
    change: &Change,
    result: &Captured,
    format: PreviewFormat,
    truncated: &mut bool,
) -> Result<FileChange, Failure> {
    let view = |entry: &Entry| SideView { mode: entry.mode, size: entry.size };
    let known =
        [&change.old, &change.new].map(|entry| entry.as_ref().map_or(Some(true), |entry| result.is_text(entry)));
    let (binary, hunks) = match (format, known) {
        (PreviewFormat::Summary | PreviewFormat::Patch, [Some(old), Some(new)]) => (!(old && new), None),
        _ => {
            let (old, new) = (side(change.old.as_ref(), &result.objects)?, side(change.new.as_ref(), &result.objects)?);
            match (format, text(&old), text(&new)) {
                (PreviewFormat::Hunks, Some(old), Some(new)) => (false, Some(hunks(old, new, truncated))),
                (_, old, new) => (old.is_none() || new.is_none(), None),
            }
        }
    };
    Ok(FileChange {
        path: change.path.clone().into(),
        kind: change.kind(),
        old: change.old.as_ref().map(view),
        new: change.new.as_ref().map(view),
        binary,
        tier: tier(&change.path),
        refused: refused(change),
        hunks,
    })
}

/// The side as text: empty where there is nothing, `None` where it is no text or too large.
fn text(bytes: &SideBytes) -> Option<&str> {
    match bytes {
        SideBytes::None => Some(""),
        SideBytes::TooLarge(_) => None,
        SideBytes::Bytes(bytes) if hunk::is_text(bytes) => std::str::from_utf8(bytes).ok(),
        SideBytes::Bytes(_) => None,
    }
}

fn hunks(old: &str, new: &str, truncated: &mut bool) -> Vec<HunkView> {
    let (old, new) = (hunk::lines(old), hunk::lines(new));
    let groups = hunk::groups(&old, &new, Some(Instant::now() + hunk::DEADLINE));
    let mut left = MAX_HUNK_LINES;
    let mut views = Vec::new();
    for Group { old: old_range, new: new_range } in groups {
        let size = old_range.len() + new_range.len();
        if size > left {
            *truncated = true;
            break;
        }
        left -= size;
        let lines = |side: &[&str]| side.iter().map(|line| line.trim_end_matches('\n').to_owned()).collect();
        let start = |range: &std::ops::Range<usize>| (range.start + usize::from(!range.is_empty())) as u64;
        views.push(HunkView {
            old_start: start(&old_range),
            old_lines: lines(&old[old_range]),
            new_start: start(&new_range),
            new_lines: lines(&new[new_range]),
        });
    }
    views
}

/// Why a change can never be applied.
fn refused(change: &Change) -> Option<String> {
    let gitlink = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.mode == EntryMode::Gitlink);
    if gitlink(&change.old) || gitlink(&change.new) {
        return Some("it is a nested repository, which is never written".to_owned());
    }
    WritablePath::check(change.path.clone()).err().map(|refusal| format!("its name {}", refusal.rule))
}

/// A note, as one sentence.
pub(super) fn note(note: &Note) -> String {
    match note {
        Note::NestedRepository { path, files } => {
            format!("{path} is a repository of its own: its {files} files are not included")
        }
        Note::Submodule { path, files } => {
            format!("{path} is a submodule: what changed in it ({files} files) is not included")
        }
        Note::SpecialFile { path, what } => format!("{path} is a {what}: not included"),
        Note::HardLinked { path, links } => {
            format!("{path} has {links} names: its content may come from outside the job's tree")
        }
        Note::Ignored { files, examples } => {
            let shown: Vec<_> = examples.iter().map(ToString::to_string).collect();
            format!("{files} new files are ignored by the repository and not included: {}", shown.join(", "))
        }
        Note::TooLarge { path, size } => format!("{path} has {size} bytes: not included"),
        Note::Unreadable { shown, why } => format!("{} could not be read: {why}", display::neutral(shown)),
        Note::GitFileRewritten => "the job rewrote the link from its tree to its git directory".to_owned(),
    }
}

fn repo_path(path: String, path_bytes: Option<String>) -> Result<RepoPath, Failure> {
    RepoPath::try_from(PathName { path, path_bytes }).map_err(|error| invalid(format!("path: {error}")))
}

/// A job's captured result, opened.
pub(super) struct Captured {
    /// From base to result. Paths that were accepted and that this result has again as the base had them are added: their
    /// change is from what was accepted.
    pub(super) set: ChangeSet,
    /// Which of its contents are text.
    pub(super) texts: Texts,
    pub(super) totals: Totals,
    /// Contents of the base, of the result, and of what was accepted.
    pub(super) objects: Objects,
    /// The tree of what was accepted so far.
    pub(super) accepted: Option<ObjectId>,
    /// Where that differs from the base.
    pub(super) accepted_entries: BTreeMap<RepoPath, Option<Entry>>,
    pub(super) capture: AbsPath,
    pub(super) spec: Arc<JobSpec>,
    pub(super) outside: Vec<OutsideChange>,
}

impl Captured {
    /// Whether a side is text, if that can be told without reading it.
    fn is_text(&self, entry: &Entry) -> Option<bool> {
        match entry.mode {
            EntryMode::Gitlink => Some(true),
            _ if entry.size > hunk::MAX_TEXT_BYTES => Some(false),
            _ => self.texts.is_text(&entry.object),
        }
    }

    /// Adds what was accepted, as differences from the base.
    fn add_accepted(&mut self, changes: Vec<Change>) {
        let known: BTreeSet<RepoPath> = self.set.changes.iter().map(|change| change.path.clone()).collect();
        for Change { path, old, new } in changes {
            if !known.contains(&path) {
                self.totals.files += 1;
                self.totals.sensitive += u64::from(tier(&path) == Some(Tier::Sensitive));
                self.set.changes.push(Change { path: path.clone(), old: new.clone(), new: old });
            }
            self.accepted_entries.insert(path, new);
        }
        self.set.changes.sort_by(|one, other| one.path.cmp(&other.path));
    }
}
