//! What a tree holds, by path: the base's side of a capture.
//!
//! Trees are read from libgit2's object database where it knows the format and has them all; `ls-tree` does what it
//! cannot, and says what is wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use git2::{Odb, Oid};
use pactify_core::change::EntryMode;
use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::Git;
use super::command::{Call, Place, Verb, unexpected};
use super::error::GitError;
use super::objects::{object_id, oid, open};

/// The bytes of a SHA-1 id in a tree.
const ID: usize = 20;

/// How deep a tree may be nested before git is asked instead: its paths have an end, too.
const DEEPEST: usize = 256;

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) mode: EntryMode,
    pub(super) object: ObjectId,
}

/// Every entry of a tree, at any depth, and the directories that lead to them with their own trees, where those are
/// known.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) entries: BTreeMap<RepoPath, Listed>,
    pub(super) directories: HashMap<RepoPath, Option<ObjectId>>,
}

impl Listing {
    pub(super) fn get(&self, path: &RepoPath) -> Option<&Listed> {
        self.entries.get(path)
    }

    /// Without the entry at `path`, if there is one.
    pub(super) fn forget(&mut self, path: &RepoPath) {
        self.entries.remove(path);
    }

    /// Whether something lies below `path`.
    pub(super) fn is_directory(&self, path: &RepoPath) -> bool {
        self.directories.contains_key(path)
    }

    /// The regular files called `name`, in any directory.
    pub(super) fn files_called(&self, name: &'static [u8]) -> impl Iterator<Item = (&RepoPath, &Listed)> {
        self.entries.iter().filter(move |(path, entry)| path.file_name() == name && entry.mode.is_file())
    }

    /// Adds an entry; the directories that lead to it have no trees.
    pub(super) fn insert(&mut self, path: RepoPath, entry: Listed) {
        let mut parent = path.parent();
        while let Some(directory) = parent {
            parent = directory.parent();
            if self.directories.contains_key(&directory) {
                break;
            }
            self.directories.insert(directory, None);
        }
        self.entries.insert(path, entry);
    }
}

impl Git {
    /// Lists the tree `tree`.
    pub(super) fn list(&self, place: Place<'_>, tree: &ObjectId) -> Result<Listing, GitError> {
        if let Place::Private { git_dir, .. } = place
            && let Some(listing) = list_with_library(git_dir, tree)
        {
            return Ok(listing);
        }
        self.listing(&Call::new(Verb::LsTree, place).args(["-r", "-t", "-z", "--full-tree", tree.as_str()]))
    }

    /// Lists those of `paths` that the tree `tree` has. For few paths.
    pub(super) fn list_only(
        &self,
        place: Place<'_>,
        tree: &ObjectId,
        paths: &BTreeSet<RepoPath>,
    ) -> Result<Listing, GitError> {
        let call = Call::new(Verb::LsTree, place).args(["-z", "--full-tree", tree.as_str(), "--"]);
        self.listing(&call.args(paths.iter().map(|path| OsStr::from_bytes(path.as_bytes()))))
    }

    fn listing(&self, call: &Call<'_>) -> Result<Listing, GitError> {
        let answer = self.run(call)?;
        let mut listing = Listing::default();
        for line in answer.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let (path, mode, object) = parse(line).ok_or_else(|| unexpected(call, line))?;
            match mode {
                Some(mode) => drop(listing.entries.insert(path, Listed { mode, object })),
                None => drop(listing.directories.insert(path, Some(object))),
            }
        }
        Ok(listing)
    }
}

/// `<mode> <type> <object>\t<path>`; a directory has no mode of its own.
fn parse(line: &[u8]) -> Option<(RepoPath, Option<EntryMode>, ObjectId)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let mut words = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
    let mode = match (words.next()?, words.next()?) {
        (_, "tree") => None,
        (mode, _) => Some(EntryMode::from_octal(mode)?),
    };
    let object = words.next()?.parse().ok()?;
    Some((RepoPath::new(&line[tab + 1..]).ok()?, mode, object))
}

/// `None` where libgit2 does not know the format, a tree is not there, or one is not as git writes them.
fn list_with_library(git_dir: &AbsPath, tree: &ObjectId) -> Option<Listing> {
    if tree.is_sha256() {
        return None;
    }
    let odb = open(git_dir).ok()?;
    let mut walk = Walk { odb: &odb, entries: Vec::new(), directories: HashMap::new() };
    walk.walk(oid(tree).ok()?, None, 0)?;
    Some(Listing { entries: walk.entries.into_iter().collect(), directories: walk.directories })
}

struct Walk<'a> {
    odb: &'a Odb<'static>,
    /// In git's own order, which is that of the paths.
    entries: Vec<(RepoPath, Listed)>,
    directories: HashMap<RepoPath, Option<ObjectId>>,
}

impl Walk<'_> {
    fn walk(&mut self, tree: Oid, directory: Option<&RepoPath>, depth: usize) -> Option<()> {
        let odb = self.odb;
        let tree = odb.read(tree).ok().filter(|tree| tree.kind() == git2::ObjectType::Tree && depth < DEEPEST)?;
        let mut rest = tree.data();
        while !rest.is_empty() {
            let (mode, name, object, after) = next_entry(rest)?;
            rest = after;
            let path = match directory {
                Some(directory) => [directory.as_bytes(), b"/", name].concat(),
                None => name.to_vec(),
            };
            let path = RepoPath::new(path).ok()?;
            if mode == "40000" {
                self.walk(object, Some(&path), depth + 1)?;
                self.directories.insert(path, Some(object_id(object).ok()?));
            } else {
                let entry = Listed { mode: EntryMode::from_octal(mode)?, object: object_id(object).ok()? };
                self.entries.push((path, entry));
            }
        }
        Some(())
    }
}

/// Splits the first entry off: `<mode> <name>\0<id>`.
fn next_entry(tree: &[u8]) -> Option<(&str, &[u8], Oid, &[u8])> {
    let space = tree.iter().position(|byte| *byte == b' ')?;
    let mode = std::str::from_utf8(&tree[..space]).ok()?;
    let end = space + tree[space..].iter().position(|byte| *byte == 0)?;
    let (id, after) = tree[end + 1..].split_at_checked(ID)?;
    let name = &tree[space + 1..end];
    // A name with a slash would be another directory's.
    (!name.contains(&b'/')).then_some((mode, name, Oid::from_bytes(id).ok()?, after))
}
