//! What a job changed: base tree against captured result, as data.
//!
//! A [`ChangeSet`] lists every difference, and beside it what a capture saw but will never write ([`Note`]). [`hunk`]
//! finds changed lines, [`word`] changed words in them, [`group`] names the parts that can be taken, [`sensitive`]
//! sorts paths into tiers, [`plan`] decides what an apply would do. Reading trees and writing files is the engine's
//! work.

pub mod group;
pub mod hunk;
pub mod plan;
pub mod sensitive;
pub mod word;

use serde::{Deserialize, Serialize};

use crate::{ChangeSetId, ObjectId, RepoPath};

/// Every difference between a job's base and its captured result, by path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSet {
    /// The result's name.
    pub id: ChangeSetId,
    /// The tree it is measured against.
    pub base_tree: ObjectId,
    /// The differences, sorted by path.
    pub changes: Vec<Change>,
    /// What else the capture saw.
    pub notes: Vec<Note>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Where.
    pub path: RepoPath,
    /// In the base; `None` when the job added the path.
    pub old: Option<Entry>,
    /// In the result; `None` when the job deleted it.
    pub new: Option<Entry>,
}

/// One side of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// What kind of entry it is.
    pub mode: EntryMode,
    /// Its content (for a link: the bytes of its target).
    pub object: ObjectId,
    /// The content's size in bytes; 0 for a gitlink.
    pub size: u64,
}

/// The kinds of entry that a git tree has besides directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum EntryMode {
    /// A file, 100644.
    File,
    /// An executable file, 100755.
    Executable,
    /// A symbolic link, 120000.
    Symlink,
    /// A commit of another repository, 160000.
    Gitlink,
}

/// How a path changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content changed (its mode perhaps too).
    Modified,
    /// It is gone.
    Deleted,
    /// Only its executable bit changed.
    ModeChanged,
    /// It became another kind of entry: a file a link, a link a gitlink …
    TypeChanged,
}

/// Something in the job's tree that is not part of the change set, and that the person should know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Note {
    /// A repository inside the tree: its files are not included (threat T-14).
    NestedRepository {
        /// Its top.
        path: RepoPath,
        /// How many files it has.
        files: u64,
    },
    /// A submodule of the base in which the job changed files: they are not included.
    Submodule {
        /// Its top.
        path: RepoPath,
        /// How many of its files are not what it was filled with.
        files: u64,
    },
    /// A pipe, socket or device: never captured.
    SpecialFile {
        /// Where.
        path: RepoPath,
        /// What it is, in one word.
        what: String,
    },
    /// A captured file with more than one name: its content may come from elsewhere (threat T-18).
    HardLinked {
        /// Where.
        path: RepoPath,
        /// How many names it has.
        links: u64,
    },
    /// New files that the base's ignore rules cover: not included.
    Ignored {
        /// How many.
        files: u64,
        /// Some of them.
        examples: Vec<RepoPath>,
    },
    /// A file over the size that is captured.
    TooLarge {
        /// Where.
        path: RepoPath,
        /// Its size in bytes.
        size: u64,
    },
    /// An entry whose name no repository can hold, or that could not be read.
    Unreadable {
        /// Where, as it is shown.
        shown: String,
        /// Why.
        why: String,
    },
    /// The job rewrote the link from its tree to its git directory.
    GitFileRewritten,
    /// Commits that are in the git directory of the job's tree and nowhere else.
    Commits {
        /// The full names of refs that lead to them, or `HEAD`: some of them.
        refs: Vec<String>,
        /// How many refs there are.
        count: u64,
    },
}

/// How much changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Paths.
    pub files: u64,
    /// Lines added, where contents are text and were counted.
    pub added: u64,
    /// Lines deleted, likewise.
    pub deleted: u64,
    /// Paths that execute by themselves later.
    pub sensitive: u64,
}

impl Change {
    /// How the path changed.
    pub fn kind(&self) -> ChangeKind {
        match (&self.old, &self.new) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Deleted,
            (Some(old), Some(new)) if old.mode.file_type() != new.mode.file_type() => ChangeKind::TypeChanged,
            (Some(old), Some(new)) if old.object == new.object => ChangeKind::ModeChanged,
            _ => ChangeKind::Modified,
        }
    }
}

impl EntryMode {
    /// The mode in octal, as git prints it.
    pub fn octal(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Gitlink => "160000",
        }
    }

    /// The kind behind git's octal mode; the old group-writable 100664 counts as a file.
    pub fn from_octal(mode: &str) -> Option<Self> {
        match mode {
            "100644" | "100664" => Some(Self::File),
            "100755" => Some(Self::Executable),
            "120000" => Some(Self::Symlink),
            "160000" => Some(Self::Gitlink),
            _ => None,
        }
    }

    /// Whether it has lines and bytes of its own in a checkout.
    pub fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }

    fn file_type(self) -> u8 {
        match self {
            Self::File | Self::Executable => 0,
            Self::Symlink => 1,
            Self::Gitlink => 2,
        }
    }
}
