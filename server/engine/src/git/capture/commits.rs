//! Commits that a job made in the git directory of its own tree: they go with it, whatever becomes of its files.
//!
//! That directory is the job's, so git is not run in it, and of its objects none is read. Its refs are read from their
//! files, by our own reader: bounded, following nothing, entering no mount. What they name counts as the job's where it
//! is neither in the person's repository nor in what the job started from. What the job fetched (tags, remote-tracking
//! refs) is not looked at, nor what only a log of a ref still names, nor names that are not UTF-8.

use std::collections::BTreeMap;

use pactify_core::change::Note;
use pactify_core::fingerprint::RefValue;
use pactify_core::fingerprint::refs::{loose, packed};
use pactify_core::job::{Base, Isolation};
use pactify_core::{ObjectId, RepoPath};

use crate::causes::with_causes;
use crate::disk::{Dir, DiskError, Kind};
use crate::git::command::Place;
use crate::git::{Git, GitError, Places};

/// No file of a ref is larger, in bytes.
const REF: u64 = 4096;

/// No file of packed refs is larger: those of a repository with a million.
const PACKED: u64 = 128 << 20;

/// More loose refs and directories of them than are looked at, and how deep they lie.
const MOST: usize = 20_000;
const DEPTH: usize = 12;

/// How many are named.
const NAMED: usize = 5;

/// What is not the job's own work, or comes and goes with what git is in the middle of.
const OTHERS: [&str; 5] = ["refs/remotes", "refs/tags", "refs/bisect", "refs/worktree", "refs/rewritten"];

/// Refs by their names.
type Refs = BTreeMap<String, ObjectId>;

/// Why they cannot be told.
#[derive(Debug, thiserror::Error)]
enum Untold {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("its refs are kept in tables")]
    Tables,
    #[error("its packed refs are none")]
    Packed,
    #[error("it has too many refs")]
    TooMany,
}

impl Git {
    /// A note on the commits that are only in the git directory of the tree of `places`, if there are any. A linked
    /// tree has none of its own.
    pub(super) fn own_commits(
        &self,
        places: &Places,
        base: &Base,
        isolation: Isolation,
    ) -> Result<Option<Note>, GitError> {
        if isolation == Isolation::Linked {
            return Ok(None);
        }
        let mut refs = match read(places) {
            Ok(refs) => refs,
            // With it went what it held.
            Err(Untold::Disk(DiskError::Missing { .. })) => return Ok(None),
            Err(error) => {
                let shown = "the git directory of the job's tree".to_owned();
                return Ok(Some(Note::Unreadable { shown, why: with_causes(&error) }));
            }
        };
        refs.retain(|_, commit| *commit != base.commit && commit.is_sha256() == base.commit.is_sha256());
        if refs.is_empty() {
            return Ok(None);
        }
        let capture = places.capture();
        let place = Place::Private { git_dir: &capture, work_tree: None, index: None };
        let absent = self.absent(place, &refs.values().collect::<Vec<_>>())?;
        let names: Vec<String> = refs
            .into_iter()
            .filter(|(_, commit)| absent.iter().any(|id| id == commit.as_str()))
            .map(|(name, _)| name)
            .collect();
        let count = names.len() as u64;
        Ok((count > 0).then(|| Note::Commits { refs: names.into_iter().take(NAMED).collect(), count }))
    }
}

fn read(places: &Places) -> Result<Refs, Untold> {
    let git_dir = Dir::foreign(&places.git())?;
    if git_dir.lookup("reftable")?.is_some() {
        return Err(Untold::Tables);
    }
    let mut refs = Refs::new();
    if let Some(text) = there(git_dir.read("packed-refs", PACKED))? {
        let found = packed(&text).ok_or(Untold::Packed)?;
        refs.extend(found.into_iter().filter_map(|(name, value)| Some((own(&name)?, object(value)?))));
    }
    // Loose ones win.
    if let Some(dir) = there(git_dir.dir("refs"))? {
        collect(&dir, "refs", 0, &mut 0, &mut refs)?;
    }
    if let Some(text) = there(git_dir.read("HEAD", REF))? {
        refs.extend(object(loose(&text)).map(|commit| ("HEAD".to_owned(), commit)));
    }
    Ok(refs)
}

fn collect(dir: &Dir, path: &str, depth: usize, looked: &mut usize, refs: &mut Refs) -> Result<(), Untold> {
    for name in dir.names()? {
        let path = format!("{path}/{name}");
        if OTHERS.contains(&path.as_str()) || name.ends_with(".lock") {
            continue;
        }
        *looked += 1;
        if *looked > MOST || depth >= DEPTH {
            return Err(Untold::TooMany);
        }
        match dir.dir(&name) {
            Ok(below) => collect(&below, &path, depth + 1, looked, refs)?,
            Err(DiskError::WrongKind { found: Kind::File, .. }) => {
                let text = there(dir.read(&name, REF))?;
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
    (!OTHERS.into_iter().any(is_below)).then(|| name.to_owned())
}

fn object(value: RefValue) -> Option<ObjectId> {
    match value {
        RefValue::Object(id) => Some(id),
        RefValue::Symbolic(_) | RefValue::Broken(_) => None,
    }
}
