//! What a job starts from where that is more than a commit: the checkout as it is, and the unsaved text of an editor.
//!
//! Made while the person waits, so that later edits have no part in it: a commit of our own on top of HEAD, in a git
//! directory inside the job's ([`Places::base`]). The person's index, refs, stash and objects are only read, nothing
//! that their configuration names is run, and no file that is neither a regular file nor a link is opened.
//!
//! - [`look`]: which paths have to be read, by git's stat cache; [`buffers`]: which texts stand in for files.
//! - Contents are read and stored as a capture does it ([`super::capture::store`]), in the form that git gives them
//!   under the attributes that the checkout has now.
//! - [`keep`]: the commit, and every object of it that HEAD does not have, whatever else the person's repository has
//!   today.
//! - [`told`]: what the person is told about it.

mod buffers;
mod keep;
mod look;
mod told;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use pactify_core::change::Note;
use pactify_core::job::{Base, BaseKind, RepositoryRecord};
use pactify_core::{AbsPath, RepoPath};
use rustix::fs::Mode;

pub use self::buffers::Buffer;
use self::buffers::Laid;
pub(super) use self::keep::notices;
use self::look::{Seen, What};
use self::told::Told;
use super::capture::Outcome;
use super::capture::entry::{Candidate, DIRECTORY};
use super::capture::store::Store;
use super::capture::walk::Findings;
use super::command::Place;
use super::config::{Layout, Rules, Settings, object_directories};
use super::error::GitError;
use super::listing::Listing;
use super::manifest::Fingerprint;
use super::prepare::{copy_shallow, copy_sparse_patterns, remove};
use super::uncommitted::{Submodules, copy_index};
use super::{Git, Places};

/// How often a checkout is looked at that changes meanwhile.
const TRIES: u32 = 4;

/// How long git may compare.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is to be taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What the person chose: anything but a commit.
    pub kind: BaseKind,
    /// Texts that stand in for their files.
    pub buffers: Vec<Buffer>,
    /// What the person is to be told besides.
    pub notices: Vec<String>,
}

/// What a job starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// For the job's record.
    pub base: Base,
    /// What is part of it and what is not, in sentences.
    pub notices: Vec<String>,
}

/// A checkout that is being looked at.
struct Shot<'a> {
    git: &'a Git,
    places: &'a Places,
    git_dir: AbsPath,
    index: AbsPath,
    repository: &'a RepositoryRecord,
    head: &'a Base,
    settings: Settings,
    rules: Rules,
    /// The top of the checkout.
    root: OwnedFd,
}

/// What one look came to.
enum Taken {
    Steady {
        outcomes: Vec<Outcome>,
        told: Told,
    },
    /// Something changed, or could not be read, which may be the same.
    Unsteady(GitError),
}

impl Git {
    /// Takes in the checkout of `repository`, whose HEAD is `head`, as what the job of `places` starts from.
    ///
    /// # Errors
    /// [`GitError::CheckoutUnreadable`], [`GitError::CheckoutRestless`], or what the file system refuses.
    pub fn snapshot(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        head: &Base,
        source: &Source,
    ) -> Result<Snapshot, GitError> {
        let shot = Shot::open(self, places, repository, head)?;
        let mut tries = 0;
        let (outcomes, told) = loop {
            tries += 1;
            match shot.take(&source.buffers)? {
                Taken::Steady { outcomes, told } => break (outcomes, told),
                Taken::Unsteady(error) if tries == TRIES => return Err(error),
                Taken::Unsteady(_) => {}
            }
        };
        shot.conclude(source, &outcomes, &told)
    }
}

impl<'a> Shot<'a> {
    fn open(
        git: &'a Git,
        places: &'a Places,
        repository: &'a RepositoryRecord,
        head: &'a Base,
    ) -> Result<Self, GitError> {
        let settings = git.settings(Place::Person(repository))?;
        let rules = git.rules(repository, &settings)?;
        let git_dir = places.base();
        let layout = Layout {
            path: &git_dir,
            settings: settings.for_snapshot(),
            rules: &rules,
            sha256: head.tree.is_sha256(),
            checkout: true,
            head: &head.commit,
            alternates: &object_directories(&repository.common_dir)?,
        };
        layout.create()?;
        copy_shallow(&git_dir, repository)?;
        copy_sparse_patterns(&git_dir, repository, &settings)?;
        let top = repository.worktree.as_path();
        let root = rustix::fs::open(top, DIRECTORY, Mode::empty()).map_err(GitError::errno("open", top))?;
        let index = git_dir.join("checkout.index");
        Ok(Self { git, places, git_dir, index, repository, head, settings, rules, root })
    }

    /// One look at everything.
    fn take(&self, buffers: &[Buffer]) -> Result<Taken, GitError> {
        let before = self.index_now();
        remove(&self.index);
        copy_index(self.repository, &self.git_dir, &self.index)?;
        let found = self.git.uncommitted(self.place(), &self.settings, Submodules::LeftOut, PATIENCE)?;
        let mut told = Told::about(&found);
        let seen = self.look(found, &mut told)?;
        let laid = self.lay(buffers, &seen, &mut told)?;
        self.note_filtered(&seen, &mut told)?;

        let mut listing = self.attributes(&seen, &laid)?;
        for (path, entry) in seen.iter().map(|(path, seen)| (path, &seen.index)).chain(laid.entries()) {
            if let Some(entry) = entry.as_ref().filter(|_| !is_attributes(path)) {
                listing.insert(path.clone(), entry.clone());
            }
        }
        let files = seen.iter().filter(|(path, _)| !laid.has(path));
        let files = files.filter_map(|(path, seen)| seen.candidate(path)).collect();
        let (mut outcomes, mut notes) = self.store(&self.root, files, &listing, &self.rules)?;
        let (texts, more) = self.store(laid.root(), laid.candidates(), &listing, &self.rules)?;
        outcomes.extend(texts);
        notes.extend(more);
        if let Some(error) = unread(&notes) {
            return Ok(Taken::Unsteady(error));
        }
        if let Some(what) = self.changed_since(before, &seen) {
            let worktree = self.repository.worktree.clone();
            return Ok(Taken::Unsteady(GitError::CheckoutRestless { worktree, what }));
        }
        outcomes.extend(seen.iter().filter(|(path, _)| !laid.has(path)).filter_map(|(path, seen)| seen.settled(path)));
        outcomes.retain(|(path, new)| seen.get(path).or(laid.seen(path)).is_none_or(|seen| seen.differs(new.as_ref())));
        told.count(&outcomes, &seen, &laid);
        told.too_large(&notes);
        Ok(Taken::Steady { outcomes, told })
    }

    fn store(
        &self,
        root: &OwnedFd,
        candidates: Vec<Candidate>,
        listing: &Listing,
        rules: &Rules,
    ) -> Result<(Vec<Outcome>, Vec<Note>), GitError> {
        if candidates.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let mut findings = Findings::of(candidates);
        let store = Store::open(self.git, &self.git_dir, root, self.head, listing, rules)?;
        let outcomes = store.take(&mut findings)?;
        Ok((outcomes, findings.notes))
    }

    /// The attributes that the snapshot will have where it has something to convert: those of HEAD, with the checkout's
    /// own in their place. Like git, this takes a `.gitattributes` for its own text, whatever it says about itself.
    fn attributes(&self, seen: &BTreeMap<RepoPath, Seen>, laid: &Laid) -> Result<Listing, GitError> {
        let paths = seen.keys().chain(laid.entries().map(|(path, _)| path));
        let above = self.git.attributes_above(self.private(), &self.head.tree, paths)?;
        let mut listing = Listing::default();
        for (path, entry) in above.files_called(b".gitattributes") {
            listing.insert(path.clone(), entry.clone());
        }
        let own: Vec<_> = seen.iter().filter(|(path, _)| is_attributes(path)).collect();
        own.iter().for_each(|(path, _)| listing.forget(path));
        let files = own.iter().filter(|(path, _)| !laid.has(path)).filter_map(|(path, seen)| seen.candidate(path));
        let texts = laid.candidates().into_iter().filter(|candidate| is_attributes(&candidate.path));
        let nothing = Listing::default();
        let verbatim = Rules::default();
        for (root, files) in [(&self.root, files.collect::<Vec<_>>()), (laid.root(), texts.collect())] {
            let files = files.into_iter().filter(|candidate| !candidate.is_link).collect();
            for (path, entry) in self.store(root, files, &nothing, &verbatim)?.0 {
                if let Some(entry) = entry {
                    listing.insert(path, entry);
                }
            }
        }
        Ok(listing)
    }

    /// What was written, or changed in another way, since it was looked at.
    fn changed_since(&self, index: Option<Fingerprint>, seen: &BTreeMap<RepoPath, Seen>) -> Option<String> {
        if self.index_now() != index {
            return Some("git's index was written".to_owned());
        }
        let is_other = |(path, seen): &(&RepoPath, &Seen)| match &seen.what {
            What::File(facts) => self.stat(path).ok().flatten().map(|stat| Fingerprint::of(&stat)) != Some(facts.print),
            What::Gone | What::Kept(_) => false,
        };
        seen.iter().find(is_other).map(|(path, _)| format!("{} was written", path.display()))
    }

    fn index_now(&self) -> Option<Fingerprint> {
        rustix::fs::stat(self.repository.git_dir.join("index").as_path()).ok().map(|stat| Fingerprint::of(&stat))
    }

    /// Our git directory, looking at the checkout.
    fn place(&self) -> Place<'_> {
        Place::Private { git_dir: &self.git_dir, work_tree: Some(&self.repository.worktree), index: Some(&self.index) }
    }

    /// Our git directory alone.
    fn private(&self) -> Place<'_> {
        Place::Private { git_dir: &self.git_dir, work_tree: None, index: None }
    }
}

fn is_attributes(path: &RepoPath) -> bool {
    path.file_name() == b".gitattributes"
}

/// The complaint about files that could not be read. Large ones are left out instead.
fn unread(notes: &[Note]) -> Option<GitError> {
    notes.iter().find_map(|note| match note {
        Note::Unreadable { shown, why } => Some(GitError::CheckoutUnreadable { message: format!("{shown}: {why}") }),
        _ => None,
    })
}
