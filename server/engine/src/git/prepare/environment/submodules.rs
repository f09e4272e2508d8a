//! The repositories inside a repository, filled from objects that this machine has.
//!
//! `git submodule` is never run, and of `.gitmodules` only names and paths are read ([`Modules`]): a name leads to the
//! git directory in which git keeps a submodule (`modules/<name>`), a path is one that the base has anyway. Each gets a
//! private git directory of its own that borrows objects from there, and is populated through it like the tree itself.
//! What cannot be filled stays an empty directory, with a notice.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use pactify_core::change::EntryMode;
use pactify_core::job::{Base, BaseKind, RepositoryRecord};
use pactify_core::path::rules::WritablePath;
use pactify_core::{AbsPath, ObjectId, RepoPath};
use rustix::fs::{Dir, Mode};

use super::super::notices::Notice;
use super::super::populate::Target;
use super::lfs::Tree;
use super::{Filled, Furnished, Site, local_store};
use crate::git::Git;
use crate::git::capture::{DIRECTORY, open_below};
use crate::git::command::{Call, Place, Verb};
use crate::git::config::{create_directory, create_file, object_directories};
use crate::git::conversion::below;
use crate::git::error::GitError;
use crate::git::listing::Listing;
use crate::git::places::bytes;

/// How many submodules are filled at most, nested ones included.
const MOST: usize = 500;

/// How many that stay empty are named.
const NAMED: usize = 5;

/// A tree with gitlinks, and where the git directories of its submodules may be.
struct Level<'a> {
    /// From the job's tree to this one.
    prefix: Option<RepoPath>,
    place: Place<'a>,
    listing: &'a Listing,
    /// Git directories that may have `modules/`.
    git_dirs: Vec<AbsPath>,
    /// The checkout's directory that this tree stands for.
    checkout: AbsPath,
    /// The tree's directory.
    tree: AbsPath,
}

/// One submodule of a level.
struct Gitlink {
    path: RepoPath,
    /// From the top of the job's tree.
    full: RepoPath,
    commit: ObjectId,
}

/// One filling, over all levels.
struct Filling<'a> {
    site: &'a Site<'a>,
    furnished: &'a mut Furnished,
    filled: Filled,
    number: usize,
    empty: Vec<(RepoPath, String)>,
}

/// The submodules that a `.gitmodules` names: by path, each with its name. One that is named twice is not among them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Modules(BTreeMap<Vec<u8>, String>);

impl Git {
    /// Fills the submodules of the tree of `site`.
    pub(super) fn fill_submodules(&self, site: &Site<'_>, furnished: &mut Furnished) -> Result<Filled, GitError> {
        let repository = site.repository;
        let mut filling = Filling { site, furnished, filled: Filled::default(), number: 0, empty: Vec::new() };
        let level = Level {
            prefix: None,
            place: site.place,
            listing: site.listing,
            git_dirs: vec![repository.git_dir.clone(), repository.common_dir.clone()],
            checkout: repository.worktree.clone(),
            tree: site.places.tree(),
        };
        self.fill_level(&mut filling, &level)?;
        let Filling { empty, filled, .. } = filling;
        furnished.notices.extend(notice(&empty));
        Ok(filled)
    }

    fn fill_level(&self, filling: &mut Filling<'_>, level: &Level<'_>) -> Result<(), GitError> {
        let gitlinks = level.listing.entries.iter().filter(|(_, entry)| entry.mode == EntryMode::Gitlink);
        let gitlinks = gitlinks.map(|(path, entry)| {
            let full = below_prefix(level.prefix.as_ref(), path)?;
            Ok(Gitlink { path: path.clone(), full, commit: entry.object.clone() })
        });
        let gitlinks = gitlinks.collect::<Result<Vec<_>, GitError>>()?;
        if gitlinks.is_empty() {
            return Ok(());
        }
        let modules = self.modules(level)?;
        for gitlink in gitlinks {
            // Outside of a sparse checkout there is no directory.
            let Ok(directory) = open_below(filling.site.directory, Some(&gitlink.full)) else { continue };
            if let Err(why) = self.fill_one(filling, level, &modules, &gitlink, &directory)? {
                filling.empty.push((gitlink.full, why));
            }
        }
        Ok(())
    }

    fn fill_one(
        &self,
        filling: &mut Filling<'_>,
        level: &Level<'_>,
        modules: &Modules,
        gitlink: &Gitlink,
        directory: &OwnedFd,
    ) -> Result<Result<(), String>, GitError> {
        if filling.number >= MOST {
            return Ok(Err(format!("{MOST} others come before it")));
        }
        let sources = match sources(level, modules, &gitlink.path) {
            Ok(sources) => sources,
            Err(why) => return Ok(Err(why)),
        };
        if !is_empty(directory) {
            return Ok(Err("something is in its place".to_owned()));
        }
        for source in &sources {
            let git_dir = filling.git_dir()?;
            let Some(base) = self.borrow(&git_dir, source, &gitlink.commit)? else {
                super::super::remove(&git_dir);
                continue;
            };
            self.populate_submodule(filling, level, gitlink, source, &git_dir, &base)?;
            return Ok(Ok(()));
        }
        Ok(Err(match sources.is_empty() {
            true => "it was never checked out on this machine".to_owned(),
            false => format!("its commit {} is not on this machine", gitlink.commit),
        }))
    }

    /// Makes a git directory that borrows from `source`, if that has the commit.
    fn borrow(
        &self,
        git_dir: &AbsPath,
        source: &RepositoryRecord,
        commit: &ObjectId,
    ) -> Result<Option<Base>, GitError> {
        let Ok(settings) = self.settings(Place::Person(source)) else { return Ok(None) };
        let rules = self.rules(source, &settings)?;
        // The tree is not known yet; the commit tells the format as well.
        let mut base = Base { kind: BaseKind::Head, commit: commit.clone(), tree: commit.clone(), parent: None };
        self.create_git_dir(git_dir, &object_directories(&source.common_dir)?, source, &base, &settings, &rules)?;
        let place = Place::Private { git_dir, work_tree: None, index: None };
        let Some(tree) = self.resolve(place, &format!("{commit}^{{tree}}"))? else { return Ok(None) };
        base.tree = tree;
        // Every object, not only the first.
        let listing = self.list(place, &base.tree)?;
        let files = listing.entries.values().filter(|entry| entry.mode != EntryMode::Gitlink);
        let complete = self.absent(place, &files.map(|entry| &entry.object).collect::<Vec<_>>())?.is_empty();
        Ok(complete.then_some(base))
    }

    fn populate_submodule(
        &self,
        filling: &mut Filling<'_>,
        level: &Level<'_>,
        gitlink: &Gitlink,
        source: &RepositoryRecord,
        git_dir: &AbsPath,
        base: &Base,
    ) -> Result<(), GitError> {
        let Gitlink { path, full, .. } = gitlink;
        let tree = below(&level.tree, path);
        create_file(&tree.join(".git"), &[b"gitdir: ", bytes(git_dir), b"\n"].concat())?;
        self.copy_refs(git_dir, source)?;
        let index = git_dir.join("index");
        let directory =
            open_below(filling.site.directory, Some(full)).map_err(GitError::errno("open", full.display()))?;
        let settings = self.settings(Place::Person(source))?;
        let rules = self.rules(source, &settings)?;
        let checkout = &source.worktree;
        let target = Target { git_dir, tree: &tree, directory: &directory, index: &index, checkout };
        let place = target.place();
        let listing = self.populate(&target, &base.tree, source, &settings, &rules)?.listing;

        let lfs = Tree { place, listing: &listing, rules: &rules, directory: &directory };
        let temporary = filling.site.places.directory().join("lfs.new");
        let store = local_store(source, &settings);
        // All files of a submodule are looked at afterwards anyway.
        let filled = self.fill_lfs(&lfs, &store, filling.site.lfs, &temporary, &mut Vec::new())?;
        filling.filled += filled;

        for (file, entry) in &listing.entries {
            if entry.mode != EntryMode::Gitlink {
                filling.furnished.below_submodules.push(below_prefix(Some(full), file)?);
            }
        }
        let next = Level {
            prefix: Some(full.clone()),
            place,
            listing: &listing,
            git_dirs: vec![source.git_dir.clone()],
            checkout: below(&level.checkout, path),
            tree: tree.clone(),
        };
        self.fill_level(filling, &next)
    }

    /// Reads the `.gitmodules` of a tree, as git reads configuration; what includes others is not followed.
    fn modules(&self, level: &Level<'_>) -> Result<Modules, GitError> {
        let file = RepoPath::new(".gitmodules").ok().and_then(|path| level.listing.get(&path));
        let Some(entry) = file.filter(|entry| entry.mode.is_file()) else { return Ok(Modules::default()) };
        let arguments = ["--no-includes", "--blob", entry.object.as_str(), "--list", "-z"];
        let answer = self.try_run(&Call::new(Verb::Config, level.place).args(arguments))?;
        Ok(answer.map(|text| Modules::parse(&text)).unwrap_or_default())
    }
}

impl Filling<'_> {
    /// A place for the next submodule's git directory. A number: names are chosen by repositories.
    fn git_dir(&mut self) -> Result<AbsPath, GitError> {
        let directory = self.site.places.git().join("modules");
        if self.number == 0 {
            create_directory(&directory)?;
        }
        self.number += 1;
        Ok(directory.join(&self.number.to_string()))
    }
}

impl Modules {
    /// From `git config --list -z`: `<key>\n<value>\0`.
    fn parse(text: &[u8]) -> Self {
        let mut by_path: BTreeMap<Vec<u8>, BTreeSet<String>> = BTreeMap::new();
        let mut paths_of: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for entry in text.split(|byte| *byte == 0) {
            let Some(end) = entry.iter().position(|byte| *byte == b'\n') else { continue };
            let (Ok(key), value) = (std::str::from_utf8(&entry[..end]), &entry[end + 1..]) else { continue };
            let Some(name) = key.strip_prefix("submodule.").and_then(|key| key.strip_suffix(".path")) else { continue };
            by_path.entry(value.to_vec()).or_default().insert(name.to_owned());
            paths_of.entry(name.to_owned()).or_default().insert(value.to_vec());
        }
        let single = |names: BTreeSet<String>| {
            let name = if names.len() == 1 { names.into_iter().next() } else { None };
            name.filter(|name| is_sound(name) && paths_of.get(name).is_some_and(|paths| paths.len() == 1))
        };
        Self(by_path.into_iter().filter_map(|(path, names)| Some((path, single(names)?))).collect())
    }
}

/// Whether a submodule's name leads to a place below `modules/` and nowhere else.
fn is_sound(name: &str) -> bool {
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.starts_with('-');
    name.split('/').all(plain) && !name.contains('\\') && !name.chars().any(char::is_control)
}

/// The git directories on this machine that may have a submodule's objects.
fn sources(level: &Level<'_>, modules: &Modules, path: &RepoPath) -> Result<Vec<RepositoryRecord>, String> {
    let is_odd = String::from_utf8_lossy(path.as_bytes()).chars().any(char::is_control);
    if is_odd || WritablePath::check(path.clone()).is_err() {
        return Err("its path is none that is safe".to_owned());
    }
    let Some(name) = modules.0.get(path.as_bytes()) else {
        return Err(".gitmodules has no one sound name for it".to_owned());
    };
    let mut candidates = Vec::new();
    for git_dir in &level.git_dirs {
        let components = name.split('/');
        candidates.push(components.fold(git_dir.join("modules"), |directory, part| directory.join(part)));
    }
    // One that was not absorbed into the repository around it.
    candidates.push(below(&level.checkout, path).join(".git"));
    candidates.dedup();
    Ok(candidates.into_iter().filter(is_git_dir).map(|git_dir| record(&git_dir)).collect())
}

/// Whether there is a git directory, reached through no link.
fn is_git_dir(path: &AbsPath) -> bool {
    let is_itself = std::fs::canonicalize(path).is_ok_and(|resolved| resolved == path.as_path());
    let opened = rustix::fs::open(path.as_path(), DIRECTORY, Mode::empty());
    is_itself && opened.is_ok() && path.join("objects").as_path().is_dir()
}

fn record(git_dir: &AbsPath) -> RepositoryRecord {
    RepositoryRecord {
        worktree: git_dir.clone(),
        git_dir: git_dir.clone(),
        common_dir: git_dir.clone(),
        prefix: String::new(),
    }
}

fn is_empty(directory: &OwnedFd) -> bool {
    let Ok(entries) = Dir::read_from(directory) else { return false };
    entries.filter_map(Result::ok).all(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
}

fn below_prefix(prefix: Option<&RepoPath>, path: &RepoPath) -> Result<RepoPath, GitError> {
    let Some(prefix) = prefix else { return Ok(path.clone()) };
    let full = [prefix.as_bytes(), b"/", path.as_bytes()].concat();
    RepoPath::new(full).map_err(|error| GitError::Answer { command: "git ls-tree".into(), answer: error.to_string() })
}

fn notice(empty: &[(RepoPath, String)]) -> Option<Notice> {
    let named: Vec<String> = empty.iter().take(NAMED).map(|(path, why)| format!("{path} ({why})")).collect();
    let more = empty.len().saturating_sub(NAMED);
    let text = match (empty.len(), more) {
        (0, _) => return None,
        (_, 0) => format!("submodules that are empty in the job's tree: {}", named.join(", ")),
        (_, more) => format!("submodules that are empty in the job's tree: {}, and {more} more", named.join(", ")),
    };
    Some(Notice { id: "submodulesEmpty", text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_gitmodules_only_sound_names_with_one_path_each_count() {
        let text = b"submodule.one.path\nlibs/one\0submodule.one.url\n/x\0submodule.group/two.path\ntwo\0\
            submodule.../../evil.path\nthree\0submodule.a.path\nshared\0submodule.b.path\nshared\0\
            submodule.twice.path\nhere\0submodule.twice.path\nthere\0submodule.cr.path\nfour\r\0\
            submodule.-u.path\nfive\0core.hookspath\n/evil\0submodule.novalue.path\0";
        let found: Vec<_> = Modules::parse(text).0.into_iter().collect();
        let expected = [(&b"four\r"[..], "cr"), (b"libs/one", "one"), (b"two", "group/two")];
        assert_eq!(found, expected.map(|(path, name)| (path.to_vec(), name.to_owned())));
    }
}
