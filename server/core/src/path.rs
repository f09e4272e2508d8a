//! Paths: absolute ones of this machine, and names inside a repository as raw bytes.
//!
//! A [`RepoPath`] is what a tree can hold; whether it may be *written* into a checkout is a second question,
//! answered by [`rules`] with a [`rules::WritablePath`]. Nothing here touches the disk.

pub mod rules;

use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use serde::{Deserialize, Serialize};

use crate::display;

/// An absolute path of this machine, without `.` and `..` components.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "PathBuf", into = "PathBuf")]
pub struct AbsPath(PathBuf);

/// Why a path is not an [`AbsPath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AbsPathError {
    /// It starts at no root.
    #[error("{} is not absolute", .0.display())]
    Relative(PathBuf),
    /// It has a component that would need the disk to resolve.
    #[error("{} has a '..' component", .0.display())]
    Parent(PathBuf),
}

impl AbsPath {
    /// Takes an absolute path; `.` components are dropped, `..` is refused.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, AbsPathError> {
        let path = path.into();
        if !path.is_absolute() {
            return Err(AbsPathError::Relative(path));
        }
        if path.components().any(|part| matches!(part, std::path::Component::ParentDir)) {
            return Err(AbsPathError::Parent(path));
        }
        Ok(Self(path.components().collect()))
    }

    /// As a standard path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The path of an entry directly below: `name` must be one plain component.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        debug_assert!(!name.contains('/') && !matches!(name, "" | "." | ".."), "{name:?} is one component");
        Self(self.0.join(name))
    }

    /// The path to which `way` leads from here: plain components with a slash between them.
    #[must_use]
    pub fn descend(&self, way: &str) -> Self {
        way.split('/').fold(self.clone(), |path, name| path.join(name))
    }
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<PathBuf> for AbsPath {
    type Error = AbsPathError;

    fn try_from(path: PathBuf) -> Result<Self, AbsPathError> {
        Self::new(path)
    }
}

impl From<AbsPath> for PathBuf {
    fn from(path: AbsPath) -> Self {
        path.0
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&display::neutral(&self.0.to_string_lossy()))
    }
}

/// A path inside a repository: slash-separated bytes, relative, no empty, `.` or `..` component, no NUL.
///
/// Any other byte is possible, as it is in a git tree: names need not be UTF-8 and may be hostile. On the wire
/// and in records it is a [`PathName`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "PathName", into = "PathName")]
pub struct RepoPath(Vec<u8>);

/// Why bytes are not a [`RepoPath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepoPathError {
    /// Nothing at all, or longer than any file system takes.
    #[error("a path inside the repository has 1 to 4095 bytes, not {0}")]
    Length(usize),
    /// A leading slash, a doubled one, a trailing one, `.` or `..`.
    #[error("{0:?} has an empty, '.' or '..' component")]
    Component(String),
    /// A NUL byte, which no file system can hold.
    #[error("{0:?} contains a NUL byte")]
    Nul(String),
    /// `pathBytes` that is not percent-encoded bytes.
    #[error("{0:?} is not a percent-encoded path")]
    Encoding(String),
}

impl RepoPath {
    /// Takes the bytes of a tree entry's full path.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, RepoPathError> {
        let bytes = bytes.into();
        let shown = || display::neutral(&String::from_utf8_lossy(&bytes)).into_owned();
        if bytes.is_empty() || bytes.len() > 4095 {
            return Err(RepoPathError::Length(bytes.len()));
        }
        if bytes.contains(&0) {
            return Err(RepoPathError::Nul(shown()));
        }
        if bytes.split(|b| *b == b'/').any(|part| matches!(part, b"" | b"." | b"..")) {
            return Err(RepoPathError::Component(shown()));
        }
        Ok(Self(bytes))
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its components, outermost first.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/')
    }

    /// The last component.
    pub fn file_name(&self) -> &[u8] {
        self.components().next_back().unwrap_or_default()
    }

    /// The directory it lies in, or `None` at the top.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|b| *b == b'/')?;
        Some(Self(self.0[..slash].to_vec()))
    }

    /// The directories it lies in, outermost first; none at the top.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        let slashes = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| Self(self.0[..at].to_vec()))
    }

    /// The name for people: control and direction-changing characters escaped, other bytes lossy.
    pub fn display(&self) -> String {
        display::neutral(&String::from_utf8_lossy(&self.0)).into_owned()
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepoPath({:?})", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display())
    }
}

/// A [`RepoPath`] in JSON: `path` is for people, `pathBytes` (percent-encoded) is there when `path` alone would
/// not lead back to the bytes. Input needs one of the two; `pathBytes` wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PathName {
    /// Repo-relative, slash-separated, safe to show.
    #[serde(default)]
    pub path: String,
    /// The exact bytes, percent-encoded, when the name is not plain UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
}

const ESCAPED: &AsciiSet = &CONTROLS.add(b'%').add(b' ').add(b'"').add(b'\\');

impl From<RepoPath> for PathName {
    fn from(path: RepoPath) -> Self {
        let shown = path.display();
        let exact = shown.as_bytes() != path.as_bytes();
        Self { path: shown, path_bytes: exact.then(|| percent_encode(path.as_bytes(), ESCAPED).to_string()) }
    }
}

impl TryFrom<PathName> for RepoPath {
    type Error = RepoPathError;

    fn try_from(name: PathName) -> Result<Self, RepoPathError> {
        match name.path_bytes {
            Some(encoded) if !encoded.is_ascii() => Err(RepoPathError::Encoding(encoded)),
            Some(encoded) => Self::new(percent_decode_str(&encoded).collect::<Vec<u8>>()),
            None => Self::new(name.path.into_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_paths_are_kept_byte_for_byte() {
        for bytes in
            [&b"a"[..], b"src/main.rs", b"\xff\xfe/x", "文档.txt".as_bytes(), b"a\tb\n\"c\" -> d", b"...", b".git"]
        {
            let path = RepoPath::new(bytes).unwrap();
            let name = PathName::from(path.clone());
            assert_eq!(RepoPath::try_from(name).unwrap(), path);
        }
    }

    #[test]
    fn malformed_paths_are_refused() {
        for bytes in [&b""[..], b"/a", b"a/", b"a//b", b".", b"a/./b", b"../a", b"a/..", b"a\0b", b"..\0x"] {
            assert!(RepoPath::new(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn only_names_that_need_it_carry_their_bytes() {
        let plain = PathName::from(RepoPath::new("src/ä.rs").unwrap());
        assert_eq!(plain, PathName { path: "src/ä.rs".into(), path_bytes: None });
        let odd = PathName::from(RepoPath::new(&b"a\xff"[..]).unwrap());
        assert_eq!(odd.path_bytes.as_deref(), Some("a%FF"));
    }

    #[test]
    fn absolute_paths_have_no_parent_components() {
        assert!(AbsPath::new("relative").is_err());
        assert!(AbsPath::new("/a/../b").is_err());
        assert_eq!(AbsPath::new("/a/./b/").unwrap().as_path(), Path::new("/a/b"));
    }
}
