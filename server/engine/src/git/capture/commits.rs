//! Commits that a job made in the git directory of its own tree: they go with it, whatever becomes of its files.
//!
//! That directory is the job's, so git is not run in it, and of its objects none is read. Its refs are read from their
//! files, by our own reader: bounded, following nothing, entering no mount. What they name counts as the job's where it
//! is neither in the person's repository nor in what the job started from. What the job fetched (tags, remote-tracking
//! refs) is not looked at, nor what only a log of a ref still names, nor names that are not UTF-8. A linked tree has a
//! `HEAD` of its own in the person's repository, where git is asked about it, and runs nothing that is configured
//! there; its other refs are the repository's, and stay, but for what git keeps for one tree alone (`ORIG_HEAD`,
//! `refs/bisect`, `refs/worktree`): that is not looked at. Nothing of it stops a capture: what cannot be told is a
//! note.

use std::collections::{BTreeMap, HashSet};

use pactify_core::change::Note;
use pactify_core::fingerprint::RefValue;
use pactify_core::fingerprint::refs::{loose, packed};
use pactify_core::job::{Base, Isolation, RepositoryRecord};
use pactify_core::{ObjectId, RepoPath};

use crate::causes::with_causes;
use crate::disk::{Dir, DiskError, Kind};
use crate::git::command::{Call, Place, Verb};
use crate::git::manifest::Header;
use crate::git::prepare::registration;
use crate::git::{Git, GitError, Places};

/// No file of a ref is larger, in bytes.
const REF_MAX: u64 = 4096;

/// No file of packed refs is larger, in bytes: those that are fetched are among them, a million at most.
const PACKED_MAX: u64 = 128 << 20;

/// So many refs of its own are looked at, and so many loose ones and directories of them, and so deep.
const REFS_MAX: usize = 20_000;
const DEPTH_MAX: usize = 12;

/// How many are named.
const NAMED: usize = 5;

/// What is not the job's own work, or comes and goes with what git is in the middle of.
const NOT_ITS_OWN: [&str; 5] = ["refs/remotes", "refs/tags", "refs/bisect", "refs/worktree", "refs/rewritten"];

/// Refs by their names.
type Refs = BTreeMap<String, ObjectId>;

/// Why they cannot be told.
#[derive(Debug, thiserror::Error)]
enum Untold {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("its HEAD is no file")]
    Head,
    #[error("its refs are kept in tables")]
    Tables,
    #[error("its packed-refs holds something else")]
    Packed,
    #[error("it has more than {REFS_MAX} refs, or refs in more than {DEPTH_MAX} directories below each other")]
    TooMany,
    #[error(transparent)]
    Objects(#[from] GitError),
}

impl Git {
    /// A note on the commits that are only in the git directory of the tree of `places`, if there are any; `header` is
    /// of that tree.
    pub(super) fn own_commits(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        base: &Base,
        header: &Header,
    ) -> Option<Note> {
        let named = match header.isolation {
            Isolation::Private => self.named_only_there(places, base),
            Isolation::Linked => self.named_only_by_head(repository, base, header.registration.as_deref()),
        };
        match named {
            Ok(names) if names.is_empty() => None,
            Ok(names) => {
                let count = names.len() as u64;
                Some(Note::Commits { refs: names.into_iter().take(NAMED).collect(), count })
            }
            // With it went what it held.
            Err(Untold::Disk(DiskError::Missing { .. })) => None,
            Err(error) => {
                let shown = "the git directory of the job's tree".to_owned();
                Some(Note::Unreadable { shown, why: with_causes(&error) })
            }
        }
    }

    /// The refs of that git directory whose commits are nowhere else.
    fn named_only_there(&self, places: &Places, base: &Base) -> Result<Vec<String>, Untold> {
        let mut refs = read(places)?;
        refs.retain(|_, commit| *commit != base.commit && commit.is_sha256() == base.commit.is_sha256());
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let capture = places.capture();
        let place = Place::Private { git_dir: &capture, work_tree: None, index: None };
        let absent: HashSet<String> = self.absent(place, &refs.values().collect::<Vec<_>>())?.into_iter().collect();
        refs.retain(|_, commit| absent.contains(commit.as_str()));
        Ok(refs.into_keys().collect())
    }

    /// The `HEAD` of a linked tree, where neither a ref of the repository nor the checkout leads to its commit.
    fn named_only_by_head(
        &self,
        repository: &RepositoryRecord,
        base: &Base,
        registered: Option<&str>,
    ) -> Result<Vec<String>, Untold> {
        let Some(name) = registered else { return Ok(Vec::new()) };
        let place = registration(repository, name);
        // With it went what it held.
        if place.as_path().symlink_metadata().is_err() {
            return Ok(Vec::new());
        }
        // git would wait for a pipe.
        if !place.join("HEAD").as_path().symlink_metadata().is_ok_and(|found| found.is_file()) {
            return Err(Untold::Head);
        }
        let head = format!("worktrees/{name}/HEAD");
        // Of all linked trees, this very one would hold the commit.
        let held_by = ["--not", "--single-worktree", "--all", base.commit.as_str(), "--"];
        let call = Call::new(Verb::RevList, Place::Person(repository)).args(["--max-count=1", &head]).args(held_by);
        let is_held = self.run(&call)?.is_empty();
        Ok(if is_held { Vec::new() } else { vec!["HEAD".to_owned()] })
    }
}

fn read(places: &Places) -> Result<Refs, Untold> {
    let git_dir = Dir::foreign(&places.git())?;
    if git_dir.lookup("reftable")?.is_some() {
        return Err(Untold::Tables);
    }
    let mut refs = Refs::new();
    if let Some(text) = there(git_dir.read("packed-refs", PACKED_MAX))? {
        let found = packed(&text).ok_or(Untold::Packed)?;
        refs.extend(found.into_iter().filter_map(|(name, value)| Some((own(&name)?, object(value)?))));
        if refs.len() > REFS_MAX {
            return Err(Untold::TooMany);
        }
    }
    // Loose ones win.
    if let Some(dir) = there(git_dir.dir("refs"))? {
        collect(&dir, "refs", 0, &mut 0, &mut refs)?;
    }
    if let Some(text) = there(git_dir.read("HEAD", REF_MAX))? {
        refs.extend(object(loose(&text)).map(|commit| ("HEAD".to_owned(), commit)));
    }
    Ok(refs)
}

fn collect(dir: &Dir, path: &str, depth: usize, looked: &mut usize, refs: &mut Refs) -> Result<(), Untold> {
    for name in dir.names()? {
        let path = format!("{path}/{name}");
        if NOT_ITS_OWN.contains(&path.as_str()) || name.ends_with(".lock") {
            continue;
        }
        *looked += 1;
        if *looked > REFS_MAX || depth >= DEPTH_MAX {
            return Err(Untold::TooMany);
        }
        match dir.dir(&name) {
            Ok(below) => collect(&below, &path, depth + 1, looked, refs)?,
            Err(DiskError::WrongKind { found: Kind::File, .. }) => {
                let text = there(dir.read(&name, REF_MAX))?;
                refs.extend(text.and_then(|text| Some((path, object(loose(&text))?))));
            }
            // Nothing else is a ref.
            Err(DiskError::WrongKind { .. } | DiskError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What is there; `None` where nothing is.
fn there<T>(read: Result<T, DiskError>) -> Result<Option<T>, DiskError> {
    match read {
        Err(DiskError::Missing { .. }) => Ok(None),
        read => read.map(Some),
    }
}

fn own(name: &RepoPath) -> Option<String> {
    let name = std::str::from_utf8(name.as_bytes()).ok()?;
    let is_below = |other: &str| name.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
    (!NOT_ITS_OWN.into_iter().any(is_below)).then(|| name.to_owned())
}

fn object(value: RefValue) -> Option<ObjectId> {
    match value {
        RefValue::Object(id) => Some(id),
        RefValue::Symbolic(_) | RefValue::Broken(_) => None,
    }
}
