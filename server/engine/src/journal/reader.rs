//! Reading a journal: incrementally, without a lock, while its writer writes.

use std::fs::File;
use std::os::unix::fs::FileExt;

use pactify_core::Seq;
use pactify_core::job::event::Record;

use super::error::{Damage, JournalError, Torn};
use super::line::{self, Flaw, Sum};
use super::{MAX_LINE_BYTES, failed_at};
use crate::disk::{DiskError, FileId, Open};
use crate::job_dir::{JobDir, names};

/// A journal open for reading, at some position. Reading holds no lock and disturbs nobody.
#[derive(Debug)]
pub struct Reader {
    job: JobDir,
    file: File,
    cursor: Cursor,
}

/// A position between two lines of one journal; holds no descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    file: FileId,
    offset: u64,
    seq: Seq,
    sum: Sum,
}

/// Which journal, and how much of it: as long as this is the same, nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The file.
    pub file: FileId,
    /// Its length in bytes.
    pub length: u64,
}

/// Some records, and why there are no more.
#[derive(Debug)]
pub struct Batch {
    /// In order, each intact.
    pub records: Vec<Record>,
    /// What follows them.
    pub end: End,
}

/// What follows the records of a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The end of the file.
    Clean,
    /// More records.
    More,
    /// A line without its end: its writer is at it, or died at it.
    Torn(Torn),
    /// A line that is not what was written. It, and everything behind it, is not read.
    Damaged(Damage),
}

impl Reader {
    /// Opens a job's journal at its first record.
    pub fn open(job: &JobDir) -> Result<Self, JournalError> {
        let file = open(job)?;
        let id = FileId::of_fd(&file).map_err(|source| failed_at(job, "stat", source))?;
        let start = Cursor { file: id, offset: 0, seq: Seq(0), sum: Sum::default() };
        let mut lines = Lines::at(&file, 0);
        let damaged = |reason| JournalError::Damaged(Damage { path: job.journal(), line: 1, offset: 0, reason });
        let header = match lines.next().map_err(|source| failed_at(job, "read", source))? {
            Line::Whole(line) => line,
            Line::Tail(0) => return Err(damaged("it is empty")),
            Line::Tail(_) => return Err(damaged("its header has no end")),
            Line::TooLong => return Err(damaged("it is no journal header")),
        };
        let sum = line::open_header(header, job.id()).map_err(|flaw| match flaw {
            Flaw::Newer(format) => JournalError::Newer { path: job.journal(), format },
            Flaw::Damaged(reason) => damaged(reason),
        })?;
        let offset = header.len() as u64 + 1;
        Ok(Self { job: job.clone(), cursor: Cursor { offset, sum, ..start }, file })
    }

    /// Opens a job's journal where an earlier reader stood.
    pub fn resume(job: &JobDir, cursor: Cursor) -> Result<Self, JournalError> {
        let reader = Self { job: job.clone(), file: open(job)?, cursor };
        reader.check_same()?;
        Ok(reader)
    }

    /// The position behind the last record read.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Whose journal it is.
    pub fn job(&self) -> &JobDir {
        &self.job
    }

    /// Reads up to `limit` more records.
    pub fn read(&mut self, limit: usize) -> Result<Batch, JournalError> {
        let mut records = Vec::new();
        let end = self.walk(limit, |line| {
            records.push(line::record(line)?);
            Ok(())
        })?;
        Ok(Batch { records, end })
    }

    /// Moves behind the record `seq`, checking every line on the way, and returns what follows.
    pub fn skip_to(&mut self, seq: Seq) -> Result<End, JournalError> {
        let count = seq.0.saturating_sub(self.cursor.seq.0);
        self.walk(usize::try_from(count).unwrap_or(usize::MAX), |_| Ok(()))
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    fn walk(&mut self, limit: usize, mut take: impl FnMut(&[u8]) -> Result<(), Flaw>) -> Result<End, JournalError> {
        self.check_same()?;
        let mut lines = Lines::at(&self.file, self.cursor.offset);
        for _ in 0..limit {
            let line = lines.next().map_err(|source| failed_at(&self.job, "read", source))?;
            let number = self.cursor.seq.0 + 2;
            let offset = self.cursor.offset;
            let damaged = |reason| End::Damaged(Damage { path: self.job.journal(), line: number, offset, reason });
            let line = match line {
                Line::Whole(line) => line,
                Line::Tail(0) => return Ok(End::Clean),
                Line::Tail(bytes) => return Ok(End::Torn(Torn { line: number, offset, bytes })),
                Line::TooLong => return Ok(damaged("it is longer than any record")),
            };
            let seq = self.cursor.seq.next();
            let checked = line::check(line, self.cursor.sum).and_then(|sum| take(line).map(|()| sum));
            match checked {
                Ok(sum) => self.cursor.advance(offset + line.len() as u64 + 1, seq, sum),
                Err(Flaw::Damaged(reason)) => return Ok(damaged(reason)),
                Err(Flaw::Newer(_)) => return Ok(damaged("it is no record")),
            }
        }
        Ok(End::More)
    }

    /// Whether the name still leads to the file that is open, and nothing that was read has gone.
    fn check_same(&self) -> Result<(), JournalError> {
        let path = || self.job.journal();
        match self.job.dir().lookup(names::JOURNAL)? {
            None => Err(JournalError::Missing { path: path() }),
            Some(stat) if FileId::of(&stat) != self.cursor.file => Err(JournalError::Replaced { path: path() }),
            Some(stat) if (stat.st_size as u64) < self.cursor.offset => {
                Err(JournalError::Truncated { path: path(), expected: self.cursor.offset, found: stat.st_size as u64 })
            }
            Some(_) => Ok(()),
        }
    }
}

impl Cursor {
    /// The position of the last record.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The bytes before it.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What a journal that ends here is known by.
    pub fn stamp(&self) -> Stamp {
        Stamp { file: self.file, length: self.offset }
    }

    pub(super) fn file(&self) -> FileId {
        self.file
    }

    pub(super) fn sum(&self) -> Sum {
        self.sum
    }

    pub(super) fn advance(&mut self, offset: u64, seq: Seq, sum: Sum) {
        *self = Self { file: self.file, offset, seq, sum };
    }
}

fn open(job: &JobDir) -> Result<File, JournalError> {
    job.dir().file(names::JOURNAL, Open::Read).map_err(|error| match error {
        DiskError::Missing { path } => JournalError::Missing { path },
        error => error.into(),
    })
}

/// The lines of a file from an offset on.
struct Lines<'a> {
    file: &'a File,
    /// Where `bytes` starts in the file.
    base: u64,
    bytes: Vec<u8>,
    /// Where the next line starts in `bytes`.
    start: usize,
}

enum Line<'a> {
    /// A line that has its newline; without it.
    Whole(&'a [u8]),
    /// The last bytes of the file, without a newline; how many.
    Tail(u64),
    /// More bytes than any line has.
    TooLong,
}

impl<'a> Lines<'a> {
    fn at(file: &'a File, offset: u64) -> Self {
        Self { file, base: offset, bytes: Vec::new(), start: 0 }
    }

    fn next(&mut self) -> std::io::Result<Line<'_>> {
        let mut searched = self.start;
        loop {
            if let Some(at) = self.bytes[searched..].iter().position(|byte| *byte == b'\n') {
                let (start, end) = (self.start, searched + at);
                self.start = end + 1;
                return Ok(if end - start < MAX_LINE_BYTES {
                    Line::Whole(&self.bytes[start..end])
                } else {
                    Line::TooLong
                });
            }
            let rest = self.bytes.len() - self.start;
            if rest >= MAX_LINE_BYTES {
                return Ok(Line::TooLong);
            }
            if !self.fill()? {
                return Ok(Line::Tail(rest as u64));
            }
            searched = self.start + rest;
        }
    }

    /// Reads on; `false` at the end of the file.
    fn fill(&mut self) -> std::io::Result<bool> {
        const CHUNK: usize = 64 * 1024;
        self.bytes.drain(..self.start);
        self.base += self.start as u64;
        self.start = 0;
        let have = self.bytes.len();
        self.bytes.resize(have + CHUNK, 0);
        let count = loop {
            match self.file.read_at(&mut self.bytes[have..], self.base + have as u64) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.bytes.truncate(have + *count.as_ref().unwrap_or(&0));
        count.map(|count| count > 0)
    }
}
