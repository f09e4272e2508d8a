//! The refs and the stash of a git directory, as far as its files tell: loose, packed, or in tables that git reads from
//! copies. What they name is not looked at.

use std::io;
use std::os::fd::OwnedFd;

use pactify_core::RepoPath;
use pactify_core::fingerprint::{Item, RefValue, is_ours, keys, refs};
use rustix::io::Errno;

use super::super::FingerprintError;
use super::{MOST_BYTES, MOST_READ, MOST_REF, MOST_REFS, Reader, TRANSIENT, below, item, list, open_below, size};
use crate::git::{Git, Scratch};

impl Reader<'_> {
    pub(super) fn uses_tables(&self) -> bool {
        let of = self.before.unwrap_or(&self.state);
        let config = of.items.iter().find(|(name, _)| name.as_bytes() == b"config").map(|(_, item)| item);
        let keys = keys(config).unwrap_or_default();
        let storage = keys.get("extensions.refstorage").and_then(|values| values.last());
        storage.and_then(|value| value.0.as_deref()).is_some_and(|value| value.eq_ignore_ascii_case("reftable"))
    }

    /// The refs of a stack of tables: the repository's, or a worktree's own.
    pub(super) fn tables(
        &mut self,
        top: &OwnedFd,
        of: &[u8],
        git: &Git,
        scratch: &Scratch,
    ) -> Result<(), FingerprintError> {
        let path = below(of, b"reftable");
        let Ok(name) = RepoPath::new(&path[..]) else { return Ok(()) };
        let tables = match open_below(top, Some(&name)) {
            Ok(opened) => copies(&opened),
            Err(Errno::NOENT) if !of.is_empty() => return Ok(()),
            Err(errno) => Err(errno.into()),
        };
        let read = match tables {
            Ok(tables) => git.refs_of_tables(scratch, &tables, self.subject.repository, self.subject.sha256),
            Err(error) => {
                self.gap(&path, error.to_string());
                return Ok(());
            }
        };
        match read {
            Ok(found) => {
                for (name, value) in found.refs {
                    let is_head = name.as_bytes() == b"HEAD";
                    if of.is_empty() && (is_head || is_lasting(&name)) {
                        self.insert_ref(name, value);
                    } else if let (true, Ok(name)) = (is_head, RepoPath::new(below(of, b"HEAD"))) {
                        self.insert_ref(name, value);
                    }
                }
                if of.is_empty() {
                    self.state.stash = found.stash;
                }
            }
            Err(error) => self.gap(&path, crate::causes::with_causes(&error)),
        }
        Ok(())
    }

    pub(super) fn head(&mut self, top: &OwnedFd, path: &[u8]) {
        let Ok(name) = RepoPath::new(path) else { return };
        match open_below(top, name.parent().as_ref()) {
            Ok(opened) => self.loose_ref(&opened, name),
            Err(errno) => self.gap(path, io::Error::from(errno).to_string()),
        }
    }

    fn loose_ref(&mut self, directory: &OwnedFd, name: RepoPath) {
        if size(directory, name.file_name()).is_some_and(|size| size > MOST_REF) {
            return self.insert_ref(name, RefValue::Broken("a large file".to_owned()));
        }
        let value = match item(directory, name.file_name(), MOST_REF) {
            Ok(None) => return,
            Ok(Some(Item::File { content: Some(text), .. })) => refs::loose(&text),
            Ok(Some(Item::Link { target })) => refs::loose(&[b"ref: ", &target[..]].concat()),
            Ok(Some(Item::File { .. })) => RefValue::Broken("a large file".to_owned()),
            Ok(Some(Item::Special { what })) => RefValue::Broken(what),
            Err(error) => return self.gap(name.as_bytes(), error.to_string()),
        };
        self.insert_ref(name, value);
    }

    fn insert_ref(&mut self, name: RepoPath, value: RefValue) {
        if self.state.refs.len() >= MOST_REFS {
            return self.gap(b"refs", format!("there are more than {MOST_REFS}"));
        }
        self.state.refs.insert(name, value);
    }

    pub(super) fn packed(&mut self, top: &OwnedFd) {
        match item(top, b"packed-refs", MOST_BYTES) {
            Ok(None) => {}
            Ok(Some(Item::File { content: Some(text), .. })) => match refs::packed(&text) {
                Some(found) => found.into_iter().for_each(|(name, value)| self.insert_ref(name, value)),
                None => self.gap(b"packed-refs", "git does not understand it".to_owned()),
            },
            Ok(Some(_)) => self.gap(b"packed-refs", "it is no regular file".to_owned()),
            Err(error) => self.gap(b"packed-refs", error.to_string()),
        }
    }

    /// Loose refs win over packed ones.
    pub(super) fn loose(&mut self, top: &OwnedFd, path: &[u8], depth: usize) {
        if TRANSIENT.contains(&path) || path == b"refs/pactify" {
            return;
        }
        let entries = self.entries(top, path, depth);
        let Some(opened) = RepoPath::new(path).ok().and_then(|path| open_below(top, Some(&path)).ok()) else { return };
        for entry in entries.into_iter().filter(|entry| !entry.name.ends_with(b".lock")) {
            let path = below(path, &entry.name);
            if entry.is_directory {
                self.loose(top, &path, depth + 1);
            } else if let Ok(name) = RepoPath::new(path) {
                self.loose_ref(&opened, name);
            }
        }
    }

    pub(super) fn stash(&mut self, top: &OwnedFd) {
        let log = RepoPath::new("logs/refs").ok().and_then(|path| open_below(top, Some(&path)).ok());
        let Some(log) = log else { return };
        match item(&log, b"stash", MOST_BYTES) {
            Ok(Some(Item::File { content: Some(text), .. })) => match refs::stash(&text) {
                Some(entries) => self.state.stash = entries,
                None => self.gap(b"logs/refs/stash", "git does not understand it".to_owned()),
            },
            Ok(None) => {}
            Ok(Some(_)) => self.gap(b"logs/refs/stash", "it is no regular file".to_owned()),
            Err(error) => self.gap(b"logs/refs/stash", error.to_string()),
        }
    }
}

/// Whether a ref is the repository's, and not only what git is in the middle of, or what pactify keeps.
fn is_lasting(name: &RepoPath) -> bool {
    let below = |above: &&[u8]| name.as_bytes().starts_with(above) && name.as_bytes()[above.len()..].starts_with(b"/");
    name.as_bytes().starts_with(b"refs/") && !is_ours(name) && !TRANSIENT.iter().any(below)
}

/// Copies of a stack's tables, by name.
fn copies(directory: &OwnedFd) -> io::Result<Vec<(String, Vec<u8>)>> {
    let (mut copies, mut read) = (Vec::new(), 0_u64);
    for entry in list(directory)? {
        let Ok(name) = String::from_utf8(entry.name.clone()) else { continue };
        if name.ends_with(".lock") {
            continue;
        }
        read = read.saturating_add(size(directory, &entry.name).unwrap_or(0));
        if read > MOST_READ {
            return Err(io::Error::other(format!("it has more than {} MiB", MOST_READ >> 20)));
        }
        if let Some(Item::File { content: Some(content), .. }) = item(directory, &entry.name, MOST_BYTES)? {
            copies.push((name, content));
        }
    }
    Ok(copies)
}
