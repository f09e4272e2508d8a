//! Which files the attached editors hold unsaved text for, so that no apply pulls a file out from under it.
//!
//! Every language server publishes the paths of its own editor in the store, in one file named after its process; an
//! apply reads them all, whichever server or terminal it runs in. A file whose process is gone says nothing. Paths are
//! compared by what they lead to: the checkout is found by its directory's identity, not by its spelling.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use pactify_core::job::RepositoryRecord;
use pactify_core::job::event::ProcessRecord;
use pactify_core::{AbsPath, RepoPath};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use serde::{Deserialize, Serialize};

use super::lock::identity_of;
use crate::causes::with_causes;
use crate::disk::{Dir, DiskError, FileId};
use crate::process::ProcessIdentity;
use crate::store::{Area, Store, StoreError};

const FORMAT: u32 = 1;
/// Room for some ten thousand long paths.
const MAX_BYTES: u64 = 16 << 20;
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// What this process's editor holds; withdrawn when the value is dropped.
#[derive(Debug)]
pub struct Publisher {
    directory: Dir,
    owner: ProcessRecord,
    name: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    format: u32,
    owner: ProcessRecord,
    /// Percent-encoded: a path need not be text.
    paths: Vec<String>,
}

impl Publisher {
    /// A publisher for this process. Publishes nothing yet.
    ///
    /// # Errors
    /// When the store is out of reach or the process cannot be identified.
    pub fn new(store: &Store) -> Result<Self, UnsavedError> {
        let identity = ProcessIdentity::of_self().map_err(UnsavedError::Identity)?;
        Ok(Self::of(store.area(Area::Editors)?, ProcessRecord::from(&identity)))
    }

    /// The name of its file, which nobody else's has. It is not there until something is published.
    fn name_of_self() -> Result<String, UnsavedError> {
        let identity = ProcessIdentity::of_self().map_err(UnsavedError::Identity)?;
        Ok(file_name(&ProcessRecord::from(&identity)))
    }

    fn of(directory: Dir, owner: ProcessRecord) -> Self {
        let name = file_name(&owner);
        Self { directory, owner, name }
    }

    /// Says that exactly these files have unsaved text now.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn publish(&self, paths: &[AbsPath]) -> Result<(), UnsavedError> {
        if paths.is_empty() {
            return Ok(self.directory.remove(&self.name).map_err(StoreError::from)?);
        }
        let encoded = paths.iter().map(|path| percent_encode(path.as_path().as_os_str().as_bytes(), ESCAPED));
        let published = Published {
            format: FORMAT,
            owner: self.owner.clone(),
            paths: encoded.map(|path| path.to_string()).collect(),
        };
        let text = serde_json::to_vec(&published).map_err(UnsavedError::Encode)?;
        // Nothing that has to survive a power failure: neither would the editor.
        Ok(self.directory.replace(&self.name, &text, false).map_err(StoreError::from)?)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        // A file that stays is ignored as soon as the process is gone.
        let _ = self.directory.remove(&self.name);
    }
}

fn file_name(owner: &ProcessRecord) -> String {
    format!("{}-{}.json", owner.pid, owner.start_time)
}

/// The paths in the checkout of `repository` for which some attached editor holds unsaved text.
///
/// # Errors
/// When the store or the checkout is out of reach, or a living editor's file cannot be understood: then an apply
/// could overwrite something unseen.
pub fn unsaved(store: &Store, repository: &RepositoryRecord) -> Result<Vec<RepoPath>, UnsavedError> {
    unsaved_but_for(None, store, repository)
}

/// Those for which another editor than this process's holds unsaved text.
///
/// # Errors
/// As [`unsaved`].
pub fn unsaved_elsewhere(store: &Store, repository: &RepositoryRecord) -> Result<Vec<RepoPath>, UnsavedError> {
    let own = Publisher::name_of_self()?;
    unsaved_but_for(Some(&own), store, repository)
}

/// The name inside the checkout of the file that `path` leads to, which need not be there yet.
///
/// # Errors
/// When the checkout is out of reach.
pub fn name_in_checkout(path: &AbsPath, repository: &RepositoryRecord) -> Result<Option<RepoPath>, UnsavedError> {
    let path = path.as_path();
    let leads_to = std::fs::canonicalize(path).ok().or_else(|| in_resolved_directory(path));
    Ok(name_below(leads_to.as_deref().unwrap_or(path), top_of(repository)?))
}

fn unsaved_but_for(
    own: Option<&str>,
    store: &Store,
    repository: &RepositoryRecord,
) -> Result<Vec<RepoPath>, UnsavedError> {
    let directory = store.area(Area::Editors)?;
    let mut found = BTreeSet::new();
    for name in directory.names().map_err(StoreError::from)? {
        if !name.ends_with(".json") || name.starts_with('.') || own == Some(name.as_str()) {
            continue;
        }
        let published = match read(&directory, &name) {
            Ok(Some(published)) => published,
            Ok(None) => continue,
            Err(error) => return Err(error),
        };
        for path in &published.paths {
            let path = PathBuf::from(std::ffi::OsString::from_vec(percent_decode_str(path).collect()));
            found.extend(inside(&path, repository)?);
        }
    }
    Ok(found.into_iter().collect())
}

/// Why it is not known what editors hold.
#[derive(Debug, thiserror::Error)]
pub enum UnsavedError {
    /// The store is out of reach.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This process cannot say which one it is.
    #[error("this process cannot be identified")]
    Identity(#[source] io::Error),
    /// The paths have no JSON form.
    #[error("the unsaved paths cannot be written down")]
    Encode(#[source] serde_json::Error),
    /// A living editor's file is not understood.
    #[error("{path} does not say which files are unsaved: {why}")]
    Unreadable {
        /// The file.
        path: AbsPath,
        /// What is wrong with it.
        why: String,
    },
    /// The checkout is out of reach.
    #[error("the checkout {path} cannot be opened")]
    Checkout {
        /// Its top.
        path: AbsPath,
        /// Why.
        source: io::Error,
    },
}

impl From<UnsavedError> for pactify_core::Failure {
    fn from(error: UnsavedError) -> Self {
        use pactify_core::FailureCode;
        let message = with_causes(&error);
        match error {
            UnsavedError::Store(error) => error.into(),
            UnsavedError::Identity(_) | UnsavedError::Encode(_) => Self::internal(message),
            UnsavedError::Unreadable { .. } => {
                let next = "close the editor that wrote it, or update pactify, and try again";
                Self::new(FailureCode::StoreNewer, message, next)
            }
            UnsavedError::Checkout { .. } => {
                Self::new(FailureCode::NoRepository, message, "put the checkout back where it was, and try again")
            }
        }
    }
}

/// A file of the area; `None` when its process is gone.
fn read(directory: &Dir, name: &str) -> Result<Option<Published>, UnsavedError> {
    let unreadable = |why: String| UnsavedError::Unreadable { path: directory.path().join(name), why };
    // By its name: after a power failure the content may be anything.
    if !is_alive(name)? {
        let _ = directory.remove(name);
        return Ok(None);
    }
    let bytes = match directory.read(name, MAX_BYTES) {
        Ok(bytes) => bytes,
        // Its editor saved everything, or went away, since the names were read.
        Err(DiskError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(StoreError::from(error).into()),
    };
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    match value["format"].as_u64() {
        Some(format) if format == u64::from(FORMAT) => {}
        _ => return Err(unreadable("its format is not known".into())),
    }
    serde_json::from_value(value).map(Some).map_err(|error| unreadable(error.to_string()))
}

/// Whether the process that names a file is running. A name that is none of ours belongs to no process.
fn is_alive(name: &str) -> Result<bool, UnsavedError> {
    let me = ProcessRecord::from(&ProcessIdentity::of_self().map_err(UnsavedError::Identity)?);
    let owner = name.strip_suffix(".json").and_then(|stem| stem.split_once('-')).and_then(|(pid, start_time)| {
        let owner = ProcessRecord { pid: pid.parse().ok()?, start_time: start_time.parse().ok()?, ..me };
        ProcessIdentity::try_from(&owner).ok()
    });
    // One that cannot be looked at may be there.
    Ok(owner.is_some_and(|identity| identity.is_alive().unwrap_or(true)))
}

/// The names that `path` has inside the checkout: as it is spelled, and as what it leads to.
fn inside(path: &Path, repository: &RepositoryRecord) -> Result<Vec<RepoPath>, UnsavedError> {
    let top = top_of(repository)?;
    let spellings = [Some(path.to_owned()), std::fs::canonicalize(path).ok(), in_resolved_directory(path)];
    Ok(spellings.into_iter().flatten().filter_map(|spelling| name_below(&spelling, top)).collect())
}

fn top_of(repository: &RepositoryRecord) -> Result<FileId, UnsavedError> {
    identity_of(repository.worktree.as_path())
        .map_err(|source| UnsavedError::Checkout { path: repository.worktree.clone(), source })
}

fn in_resolved_directory(path: &Path) -> Option<PathBuf> {
    Some(std::fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?))
}

/// The rest of a spelling below the directory `top`.
fn name_below(spelling: &Path, top: FileId) -> Option<RepoPath> {
    let is_top = |above: &&Path| identity_of(above).is_ok_and(|identity| identity == top);
    let ancestor = spelling.ancestors().skip(1).find(is_top)?;
    let rest: &OsStr = spelling.strip_prefix(ancestor).ok()?.as_os_str();
    RepoPath::new(rest.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::fixture::{Sandbox, file, files, path};
    use super::*;

    fn absolute(path: impl Into<PathBuf>) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    #[test]
    fn paths_are_found_however_the_checkout_is_spelled() {
        let sandbox = Sandbox::new(&files([("src/a", file("1")), ("b", file("1"))]));
        let elsewhere = sandbox.outside();
        let second_name = elsewhere.join("project");
        std::os::unix::fs::symlink(sandbox.repository.worktree.as_path(), &second_name).unwrap();
        std::os::unix::fs::symlink("src", sandbox.at("shortcut")).unwrap();
        let publisher = Publisher::new(&sandbox.store).unwrap();
        let unsaved = || unsaved(&sandbox.store, &sandbox.repository).unwrap();

        for (spelled, expected) in [
            (sandbox.at("src/a"), vec![path("src/a")]),
            (second_name.join("b"), vec![path("b")]),
            (second_name.join("not there yet"), vec![path("not there yet")]),
            (sandbox.at("shortcut/a"), vec![path("shortcut/a"), path("src/a")]),
            (sandbox.at(&b"\xff"[..]), vec![RepoPath::new(&b"\xff"[..]).unwrap()]),
            (elsewhere.join("other"), vec![]),
        ] {
            publisher.publish(&[absolute(&spelled)]).unwrap();
            assert_eq!(unsaved(), expected, "{}", spelled.display());
        }
        publisher.publish(&[]).unwrap();
        assert_eq!(unsaved(), []);
    }

    #[test]
    fn a_file_is_called_by_what_its_path_leads_to_and_an_editor_knows_its_own() {
        let sandbox = Sandbox::new(&files([("src/a", file("1"))]));
        let elsewhere = sandbox.outside();
        std::os::unix::fs::symlink("src", sandbox.at("shortcut")).unwrap();
        std::os::unix::fs::symlink(elsewhere.join("b"), sandbox.at("away")).unwrap();
        std::fs::write(elsewhere.join("b"), "1").unwrap();
        for (spelled, expected) in [
            (sandbox.at("src/a"), Some("src/a")),
            (sandbox.at("shortcut/a"), Some("src/a")),
            (sandbox.at("shortcut/new"), Some("src/new")),
            (sandbox.at("no/such/folder"), Some("no/such/folder")),
            (sandbox.at("away"), None),
            (elsewhere.join("b"), None),
        ] {
            let name = name_in_checkout(&absolute(&spelled), &sandbox.repository).unwrap();
            assert_eq!(name, expected.map(path), "{}", spelled.display());
        }
        let area = || sandbox.store.area(Area::Editors).unwrap();
        let mine = Publisher::new(&sandbox.store).unwrap();
        mine.publish(&[absolute(sandbox.at("src/a"))]).unwrap();
        assert_eq!(unsaved_elsewhere(&sandbox.store, &sandbox.repository).unwrap(), []);
        let parent = ProcessIdentity::of(rustix::process::getppid().unwrap()).unwrap();
        let other = Publisher::of(area(), ProcessRecord::from(&parent));
        other.publish(&[absolute(sandbox.at("src/b"))]).unwrap();
        assert_eq!(unsaved_elsewhere(&sandbox.store, &sandbox.repository).unwrap(), [path("src/b")]);
    }

    #[test]
    fn an_editor_that_is_gone_holds_nothing() {
        let sandbox = Sandbox::new(&files([("a", file("1"))]));
        let unsaved = || unsaved(&sandbox.store, &sandbox.repository).unwrap();
        sandbox.store.area(Area::Editors).unwrap().replace("1-1.json", b"torn", false).unwrap();
        let me = ProcessRecord::from(&ProcessIdentity::of_self().unwrap());
        let area = || sandbox.store.area(Area::Editors).unwrap();
        let gone = Publisher::of(area(), ProcessRecord { start_time: me.start_time + 1, ..me });
        gone.publish(&[absolute(sandbox.at("a"))]).unwrap();
        assert_eq!(unsaved(), []);
        assert_eq!(area().names().unwrap(), [""; 0], "what says nothing is cleared away");

        let alive = Publisher::new(&sandbox.store).unwrap();
        alive.publish(&[absolute(sandbox.at("a"))]).unwrap();
        assert_eq!(unsaved(), [path("a")]);
        drop(alive);
        assert_eq!(unsaved(), []);
    }

    #[test]
    fn what_a_living_editor_says_is_never_guessed() {
        let sandbox = Sandbox::new(&files([]));
        let publisher = Publisher::new(&sandbox.store).unwrap();
        publisher.publish(&[absolute(sandbox.at("a"))]).unwrap();
        let area = sandbox.store.area(Area::Editors).unwrap();
        let text = String::from_utf8(area.read(&publisher.name, MAX_BYTES).unwrap()).unwrap();
        for damaged in [text.replace("\"format\":1", "\"format\":2"), text[..text.len() / 2].to_owned()] {
            area.replace(&publisher.name, damaged.as_bytes(), false).unwrap();
            let refused = unsaved(&sandbox.store, &sandbox.repository).unwrap_err();
            assert!(matches!(refused, UnsavedError::Unreadable { .. }), "{refused:?}");
        }
    }
}
