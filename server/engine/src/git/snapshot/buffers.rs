//! Unsaved texts that stand in for files: as a save would write them, laid in a directory of ours.
//!
//! A save keeps what an editor does not show as text: the byte order mark, and line ends that it tells in its own way.
//! What cannot be told (a file in another encoding), does not belong to the repository or is ignored stays what it is
//! on disk, and the person is told.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::RepoPath;
use pactify_core::change::EntryMode;
use pactify_core::path::rules::WritablePath;
use rustix::fs::{FileType, Mode, OFlags, Stat};

use super::Shot;
use super::look::{Facts, Seen, What, is_executable};
use super::told::Told;
use crate::git::capture::MAX_FILE_BYTES;
use crate::git::capture::entry::{Candidate, DIRECTORY, open_below};
use crate::git::command::{Call, Verb, unexpected};
use crate::git::config::{create_directory, create_file};
use crate::git::conversion::below;
use crate::git::error::GitError;
use crate::git::ignores::Ignores;
use crate::git::listing::Listed;
use crate::git::prepare::remove;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The longest ignore file that is looked at.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// The text that an editor holds for a file, and that is not on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The file, as the checkout names it.
    pub path: RepoPath,
    /// The text.
    pub text: String,
}

/// Texts, laid as files in a directory of ours.
pub(super) struct Laid {
    root: OwnedFd,
    files: BTreeMap<RepoPath, Text>,
}

struct Text {
    seen: Seen,
    facts: Facts,
}

/// What a save of a buffer would come to.
enum Save {
    /// A file with these bytes.
    File { bytes: Vec<u8>, executable: bool },
    /// Nothing that is not on disk already.
    Nothing,
    /// It is not part of the snapshot.
    No(&'static str),
}

impl Laid {
    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    pub(super) fn has(&self, path: &RepoPath) -> bool {
        self.files.contains_key(path)
    }

    pub(super) fn count(&self) -> usize {
        self.files.len()
    }

    pub(super) fn seen(&self, path: &RepoPath) -> Option<&Seen> {
        self.files.get(path).map(|text| &text.seen)
    }

    pub(super) fn candidates(&self) -> Vec<Candidate> {
        self.files.iter().map(|(path, text)| text.facts.candidate(path)).collect()
    }

    /// What the index has for them.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&RepoPath, &Option<Listed>)> {
        self.files.iter().map(|(path, text)| (path, &text.seen.index))
    }
}

impl Shot<'_> {
    /// Lays every text that belongs to the snapshot. `seen` is what git says of the files on disk.
    pub(super) fn lay(
        &self,
        buffers: &[Buffer],
        seen: &BTreeMap<RepoPath, Seen>,
        told: &mut Told,
    ) -> Result<Laid, GitError> {
        let directory = self.git_dir.join("texts");
        remove(&directory);
        create_directory(&directory)?;
        let path = directory.as_path();
        let root = rustix::fs::open(path, DIRECTORY, Mode::empty()).map_err(GitError::errno("open", path))?;
        let mut laid = Laid { root, files: BTreeMap::new() };
        let mut index = self.index_entries(buffers)?;
        for Buffer { path, text } in buffers {
            let save = self.save(path, text, seen.get(path), index.get(path), told.untracked_hidden)?;
            let (bytes, executable) = match save {
                Save::File { bytes, executable } => (bytes, executable),
                Save::Nothing => continue,
                Save::No(why) => {
                    told.skipped.push((path.clone(), why));
                    continue;
                }
            };
            let to = below(&directory, path);
            if let Some(parent) = to.as_path().parent() {
                fs::create_dir_all(parent).map_err(GitError::io("create the directory", parent))?;
            }
            create_file(&to, &bytes)?;
            let stat = rustix::fs::lstat(to.as_path()).map_err(GitError::errno("look at", to.as_path()))?;
            let facts = Facts::of(&stat).with_executable(executable);
            let seen = match seen.get(path) {
                Some(Seen { head, unmerged, index, .. }) => {
                    Seen { head: head.clone(), unmerged: *unmerged, index: index.clone(), what: What::Gone }
                }
                // Clean on disk: HEAD has what the index has.
                None => {
                    let entry = index.remove(path);
                    Seen { head: entry.clone(), index: entry, ..Seen::new(What::Gone) }
                }
            };
            laid.files.insert(path.clone(), Text { seen, facts });
        }
        Ok(laid)
    }

    /// What a save of `text` at `path` would come to. `seen` is what git says of a file there that differs from HEAD,
    /// `index` what the index has.
    fn save(
        &self,
        path: &RepoPath,
        text: &str,
        seen: Option<&Seen>,
        index: Option<&Listed>,
        untracked_hidden: bool,
    ) -> Result<Save, GitError> {
        if WritablePath::check(path.clone()).is_err() {
            return Ok(Save::No("its name is one that is never written"));
        }
        if self.is_in_another_repository(path)? {
            return Ok(Save::No("it belongs to another repository"));
        }
        let stat = self.stat(path)?;
        let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if stat.as_ref().is_some_and(|stat| !is_file(stat)) {
            return Ok(Save::No("no regular file is at its place"));
        }
        let is_known = index.is_some() || seen.is_some_and(|seen| matches!(seen.what, What::File(_)));
        if !is_known && ((stat.is_some() && !untracked_hidden) || self.is_ignored(path)) {
            return Ok(Save::No("git ignores it"));
        }
        let Some(stat) = stat else {
            return Ok(Save::File { bytes: text.as_bytes().to_vec(), executable: is_executable(index) });
        };
        let unreadable =
            |error: io::Error| GitError::CheckoutUnreadable { message: format!("{}: {error}", path.display()) };
        let Some(held) = self.read(path, MAX_FILE_BYTES).map_err(unreadable)? else {
            return Ok(Save::No("its file is too large"));
        };
        Ok(match as_saved(&held, text) {
            None => Save::No("its file is not UTF-8 text"),
            Some(bytes) if bytes == held => Save::Nothing,
            Some(bytes) => Save::File { bytes, executable: stat.st_mode & 0o100 != 0 },
        })
    }

    /// What the index has for the files of `buffers`: in a merge, our side.
    fn index_entries(&self, buffers: &[Buffer]) -> Result<BTreeMap<RepoPath, Listed>, GitError> {
        let mut entries = BTreeMap::new();
        if buffers.is_empty() {
            return Ok(entries);
        }
        let paths = buffers.iter().map(|buffer| OsStr::from_bytes(buffer.path.as_bytes()));
        let call = Call::new(Verb::LsFiles, self.place()).args(["--stage", "-z", "--"]).args(paths);
        let answer = self.git.run(&call)?;
        for line in answer.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let (path, entry, stage) = parse(line).ok_or_else(|| unexpected(&call, line))?;
            if stage == "0" || stage == "2" {
                entries.insert(path, entry);
            }
        }
        Ok(entries)
    }

    /// Whether a directory on the way to `path` is the top of a repository.
    fn is_in_another_repository(&self, path: &RepoPath) -> Result<bool, GitError> {
        for directory in path.ancestors() {
            let Ok(git) = RepoPath::new([directory.as_bytes(), b"/.git"].concat()) else { continue };
            if self.stat(&git)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the rules of the checkout and of the person cover `path`, where no file is.
    fn is_ignored(&self, path: &RepoPath) -> bool {
        let rules = &self.rules;
        let fold_case = rules.is_on("core.ignorecase", false);
        let mut ignores = Ignores::new(&rules.info_exclude, &rules.global_ignores, fold_case);
        let directories = || path.ancestors().map(|directory| [directory.as_bytes(), b"/"].concat());
        for directory in directories().chain([Vec::new()]) {
            let Ok(file) = RepoPath::new([directory.as_slice(), b".gitignore"].concat()) else { continue };
            if let Ok(Some(text)) = self.read(&file, MAX_IGNORE_BYTES) {
                ignores.add(&file, &String::from_utf8_lossy(&text));
            }
        }
        ignores.covers(path, false) || path.ancestors().any(|directory| ignores.covers(&directory, true))
    }

    /// The bytes of the regular file at `path`, following no link; `None` when they are more than `limit`.
    fn read(&self, path: &RepoPath, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let directory = open_below(&self.root, path.parent().as_ref())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&directory, path.file_name(), flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= limit).then_some(bytes))
    }
}

/// The bytes of a file that held `held` after a save of `text`; `None` where the file is in another encoding.
fn as_saved(held: &[u8], text: &str) -> Option<Vec<u8>> {
    let content = std::str::from_utf8(held).ok().filter(|content| !content.contains('\0'))?;
    let ends = content.matches('\n').count();
    let windows = content.matches("\r\n").count();
    let returns = content.matches('\r').count();
    let plain = text.contains('\n') && !text.contains('\r');
    let text = match () {
        () if plain && ends > 0 && windows == ends && returns == ends => text.replace('\n', "\r\n"),
        () if plain && ends == 0 && returns > 0 => text.replace('\n', "\r"),
        () => text.to_owned(),
    };
    let has_mark = held.starts_with(BOM) && !text.as_bytes().starts_with(BOM);
    let mark = if has_mark { BOM } else { b"" };
    Some([mark, text.as_bytes()].concat())
}

/// `<mode> <object> <stage>\t<path>`
fn parse(line: &[u8]) -> Option<(RepoPath, Listed, &str)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let mut words = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
    let mode = EntryMode::from_octal(words.next()?)?;
    let object = words.next()?.parse().ok()?;
    Some((RepoPath::new(&line[tab + 1..]).ok()?, Listed { mode, object }, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_save_keeps_what_an_editor_does_not_show() {
        for (held, text, expected) in [
            (&b"a\n"[..], "b\nc\n", Some(&b"b\nc\n"[..])),
            (b"a\r\nb\r\n", "a\nc\n", Some(b"a\r\nc\r\n")),
            (b"a\r\nb\r\n", "a\r\nc\r\n", Some(b"a\r\nc\r\n")),
            (b"a\r\nb\n", "a\nc\n", Some(b"a\nc\n")),
            (b"a\nb\n", "a\r\nb\r\n", Some(b"a\r\nb\r\n")),
            (b"a\rb\r", "a\nc\n", Some(b"a\rc\r")),
            (b"one line", "a\nc\n", Some(b"a\nc\n")),
            (b"\xef\xbb\xbfa\n", "b\n", Some(b"\xef\xbb\xbfb\n")),
            (b"\xef\xbb\xbfa\r\n", "\u{feff}b\n", Some(b"\xef\xbb\xbfb\r\n")),
            (b"", "", Some(b"")),
            (b"caf\xe9\n", "caf\u{e9}!\n", None),
            (b"\xff\xfea\0\n\0", "b\n", None),
            (b"a\0\n\0", "b\n", None),
        ] {
            assert_eq!(as_saved(held, text).as_deref(), expected, "{held:?} {text:?}");
        }
    }
}
