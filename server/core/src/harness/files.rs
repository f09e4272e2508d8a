//! Files that a driver is concerned with and never touches itself: those of the job's tree that a harness wants through
//! us, and the harness's own records in the job's home.

use std::fmt;

use crate::RepoPath;

/// A file of the job's tree that a harness wants through us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRequest {
    /// The driver's number for it.
    pub id: u64,
    /// The file, below the tree.
    pub path: RepoPath,
    /// What is wanted.
    pub action: FileAction,
}

/// What is wanted of a file.
#[derive(Clone, PartialEq, Eq)]
pub enum FileAction {
    /// Its text.
    Read,
    /// That it holds this text, and nothing else. Directories on the way are made.
    Write(String),
}

/// What came of a [`FileRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAnswer {
    /// The text.
    Contents(String),
    /// It is written.
    Written,
    /// There is no such file.
    Missing,
    /// It is not done, for this reason.
    Refused(String),
}

/// A file that a harness keeps in the job's home, named by how it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The way from the job's home: each part is a name, or `*` for the only directory there whose name does not begin
    /// with a dot.
    pub path: Vec<String>,
    /// The longest file that is read, in bytes.
    pub limit: u64,
    /// How it is read.
    pub reading: Reading,
}

/// How an [`Evidence`] is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As one piece.
    Whole,
    /// Line by line ([`super::Driver::on_evidence_line`]): no more than one of them is held at a time.
    Lines {
        /// The longest line that is read, in bytes.
        longest: usize,
    },
}

impl fmt::Debug for FileAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => f.write_str("Read"),
            // A person's file: logs have no business with it.
            Self::Write(text) => write!(f, "Write({} bytes)", text.len()),
        }
    }
}
