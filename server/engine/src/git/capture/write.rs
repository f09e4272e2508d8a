//! A tree that is another one with some entries replaced: a result made from its base, what is accepted from what was.
//!
//! libgit2 writes the changed directories, deepest first, where it knows the format; an index of our own and
//! `write-tree` do it for SHA-256. Objects of the base need not be there (partial clone): what isn't changed isn't
//! read.

use std::collections::BTreeMap;

use git2::{Oid, Repository, Tree};
use pactify_core::change::EntryMode;
use pactify_core::{AbsPath, ObjectId};

use super::Outcome;
use crate::git::Git;
use crate::git::command::{Call, Place, Verb, unexpected};
use crate::git::error::GitError;
use crate::git::objects::{object_id, oid};

const DIRECTORY_MODE: i32 = 0o040_000;

/// What becomes of one name in a directory.
#[derive(Clone, Copy)]
enum Edit {
    Put(Oid, i32),
    Remove,
}

/// By directory (the empty name is the top), by name.
type Edits = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Edit>>;

impl Git {
    /// Writes the tree that is `base` with `outcomes` into a git directory of ours, and returns its id.
    pub(in crate::git) fn write_tree(
        &self,
        git_dir: &AbsPath,
        base: &ObjectId,
        outcomes: &[Outcome],
    ) -> Result<ObjectId, GitError> {
        if outcomes.is_empty() {
            Ok(base.clone())
        } else if base.is_sha256() {
            self.write_tree_by_index(git_dir, base, outcomes)
        } else {
            let refused = GitError::objects("write a tree", git_dir.as_path());
            write_with_library(git_dir, base, outcomes).map_err(refused)
        }
    }

    fn write_tree_by_index(
        &self,
        git_dir: &AbsPath,
        base: &ObjectId,
        outcomes: &[Outcome],
    ) -> Result<ObjectId, GitError> {
        let index = git_dir.join("result.index");
        let place = Place::Private { git_dir, work_tree: None, index: Some(&index) };
        self.run(&Call::new(Verb::ReadTree, place).args([base.as_str()]))?;
        let mut removals = Vec::new();
        let mut additions = Vec::new();
        let nothing = "0".repeat(base.as_str().len());
        for (path, new) in outcomes {
            let (list, facts) = match new {
                Some(entry) => (&mut additions, format!("{} {}\t", entry.mode.octal(), entry.object)),
                None => (&mut removals, format!("0 {nothing}\t")),
            };
            list.extend([facts.as_bytes(), path.as_bytes(), b"\0"].concat());
        }
        let input = [removals, additions].concat();
        self.run(&Call::new(Verb::UpdateIndex, place).args(["-z", "--index-info"]).input(input))?;
        let call = Call::new(Verb::WriteTree, place).args(["--missing-ok"]);
        let line = self.line(&call)?;
        let tree = line.parse().map_err(|_| unexpected(&call, line.as_bytes()))?;
        std::fs::remove_file(&index).map_err(GitError::io("remove", index.as_path()))?;
        Ok(tree)
    }
}

fn write_with_library(git_dir: &AbsPath, base: &ObjectId, outcomes: &[Outcome]) -> Result<ObjectId, git2::Error> {
    let repository = Repository::open_bare(git_dir)?;
    let root = repository.find_tree(oid(base)?)?;
    let mut edits = edits(outcomes)?;
    loop {
        // The deepest directory; on a tie any.
        let depth = |directory: &Vec<u8>| match directory.len() {
            0 => 0,
            _ => 1 + directory.iter().filter(|byte| **byte == b'/').count(),
        };
        let Some(directory) = edits.keys().max_by_key(|directory| depth(directory)).cloned() else {
            return object_id(root.id());
        };
        let names = edits.remove(&directory).unwrap_or_default();
        let written = write_directory(&repository, &root, &directory, names)?;
        if directory.is_empty() {
            return object_id(written.map_or_else(|| empty_tree(&repository), Ok)?);
        }
        let (parent, name) = split(&directory);
        let siblings = edits.entry(parent.to_vec()).or_default();
        match (written, siblings.get(name)) {
            // A file took the directory's place.
            (None, Some(Edit::Put(..))) => {}
            (None, _) => drop(siblings.insert(name.to_vec(), Edit::Remove)),
            (Some(tree), _) => drop(siblings.insert(name.to_vec(), Edit::Put(tree, DIRECTORY_MODE))),
        }
    }
}

fn edits(outcomes: &[Outcome]) -> Result<Edits, git2::Error> {
    let mut edits = Edits::new();
    for (path, new) in outcomes {
        let edit = match new {
            Some(entry) => Edit::Put(oid(&entry.object)?, git2_mode(entry.mode)),
            None => Edit::Remove,
        };
        let (directory, name) = split(path.as_bytes());
        edits.entry(directory.to_vec()).or_default().insert(name.to_vec(), edit);
    }
    Ok(edits)
}

/// Writes one directory; `None` when nothing is left in it.
fn write_directory(
    repository: &Repository,
    root: &Tree<'_>,
    directory: &[u8],
    names: BTreeMap<Vec<u8>, Edit>,
) -> Result<Option<Oid>, git2::Error> {
    let base = subtree(repository, root, directory)?;
    let mut builder = repository.treebuilder(base.as_ref())?;
    for (name, edit) in names {
        match edit {
            Edit::Put(object, mode) => drop(builder.insert(name, object, mode)?),
            Edit::Remove if builder.get(&name)?.is_some() => builder.remove(&name)?,
            Edit::Remove => {}
        }
    }
    if builder.is_empty() { Ok(None) } else { builder.write().map(Some) }
}

/// The base's directory of that name, if it has one.
fn subtree<'r>(repository: &'r Repository, root: &Tree<'_>, directory: &[u8]) -> Result<Option<Tree<'r>>, git2::Error> {
    let mut tree = repository.find_tree(root.id())?;
    for name in directory.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        let next = tree.iter().find(|entry| entry.name_bytes() == name).map(|entry| (entry.id(), entry.filemode()));
        match next {
            Some((id, DIRECTORY_MODE)) => tree = repository.find_tree(id)?,
            _ => return Ok(None),
        }
    }
    Ok(Some(tree))
}

fn empty_tree(repository: &Repository) -> Result<Oid, git2::Error> {
    repository.treebuilder(None)?.write()
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

fn git2_mode(mode: EntryMode) -> i32 {
    match mode {
        EntryMode::File => 0o100_644,
        EntryMode::Executable => 0o100_755,
        EntryMode::Symlink => 0o120_000,
        EntryMode::Gitlink => 0o160_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_splits_at_its_last_slash() {
        assert_eq!(split(b"a/b/c"), (&b"a/b"[..], &b"c"[..]));
        assert_eq!(split(b"c"), (&b""[..], &b"c"[..]));
    }
}
