//! A job's journal: an append-only file of one JSON record per line, and the only truth about the job.
//!
//! The first line names the format and the job. Every line ends in a sum over itself and the line before it
//! ([`line`]), so that a silent edit is seen (threat T-38). Only a lock holder can append: a [`Journal`] owns the
//! [`JobLock`]. *Milestones* are on disk before [`Journal::append`] returns; *chatter* is written at once and synced
//! in groups ([`sync`]). Anybody can read, at any time, with a [`Reader`]: readers see whole lines only. A torn last
//! line is what a crash leaves: readers report it, the next writer sets it aside. Damage anywhere else is an error that
//! nobody repairs; what stands before it stays readable.
//!
//! What events mean is decided in `pactify_core::job`; listing and caching is [`crate::store`]'s.

mod error;
mod follow;
pub mod line;
mod reader;
mod room;
pub mod summary;
pub mod sync;

use std::fs::File;
use std::io::Write;

use jiff::Timestamp;
use pactify_core::job::JobSpec;
use pactify_core::job::event::{Event, Record};
use pactify_core::job::state::JobState;
use pactify_core::{AttemptNo, JobId, Seq};

use crate::disk::{self, Dir, DiskError, FileId, Open};
use crate::job_dir::{JobDir, JobLock, names};
use line::Sum;
use room::Room;
use summary::Summary;
use sync::GroupSync;

pub use error::{Damage, JournalError, Torn};
pub use follow::{Follower, Waited};
pub use reader::{Batch, Cursor, End, Reader, Stamp};

/// The version of the journal's format that this build writes.
pub const JOURNAL_FORMAT: u64 = 1;

/// The longest line, its newline included. Longer events are shortened ([`line::shortened`]).
pub const MAX_LINE_BYTES: usize = 1024 * 1024;

/// Where the fragment of a torn line goes.
const TORN: &str = "events.torn";

/// A journal open for appending. It owns the job's lock, so there is one at most.
#[derive(Debug)]
pub struct Journal {
    lock: JobLock,
    spec: JobSpec,
    file: File,
    id: FileId,
    cursor: Cursor,
    state: JobState,
    torn: Option<Torn>,
    /// A failed append may have left bytes behind the last whole line.
    ragged: bool,
    room: Room,
    group: GroupSync,
}

/// Writes the first line of a new job's journal, durably.
pub(crate) fn create(dir: &Dir, id: &JobId) -> Result<(), DiskError> {
    let (header, _) = line::header(id);
    dir.write_new(names::JOURNAL, &header).map(drop)
}

impl Journal {
    /// Opens the journal of the locked job: reads all of it, and sets a torn last line aside (see [`Self::torn`]).
    /// A damaged journal is not opened.
    pub fn open(lock: JobLock) -> Result<Self, JournalError> {
        let job = lock.job();
        let spec = job.spec()?;
        let mut reader = Reader::open(job)?;
        let batch = reader.read(usize::MAX)?;
        let torn = match batch.end {
            End::Damaged(damage) => return Err(JournalError::Damaged(damage)),
            End::Torn(torn) => Some(torn),
            End::Clean | End::More => None,
        };
        let file = job.dir().file(names::JOURNAL, Open::Append)?;
        let id = FileId::of_fd(&file).map_err(|source| failed_at(lock.job(), "stat", source))?;
        let cursor = reader.cursor();
        if cursor.file() != id {
            return Err(JournalError::Replaced { path: job.journal() });
        }
        if torn.is_some() {
            set_aside(&lock, &file, cursor.offset())?;
        }
        let group = GroupSync::new(&file).map_err(|source| failed_at(lock.job(), "share", source))?;
        let room = Room::new(&file, cursor.offset());
        let state = JobState::fold(&batch.records);
        Ok(Self { lock, spec, file, id, cursor, state, torn, ragged: false, room, group })
    }

    /// Appends one event. A milestone is on disk when this returns; everything else is within
    /// [`sync::INTERVAL`], unless a later error says otherwise.
    pub fn append(&mut self, at: Timestamp, attempt: AttemptNo, event: impl Into<Event>) -> Result<Seq, JournalError> {
        self.append_all(at, attempt, [event.into()])
    }

    /// How long it is, in bytes.
    pub fn len(&self) -> u64 {
        self.cursor.offset()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends events with one write and, if a milestone is among them, one sync. Returns the position of the last one.
    ///
    /// After [`JournalError::NoSpace`] the first `written` of them are in the journal and nothing of the others is;
    /// after [`JournalError::NotDurable`] all of them are, but may not survive a power loss.
    pub fn append_all(
        &mut self,
        at: Timestamp,
        attempt: AttemptNo,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<Seq, JournalError> {
        self.make_even()?;
        let mut bytes = Vec::new();
        let mut pending = Vec::new();
        let (mut seq, mut sum) = (self.cursor.seq(), self.cursor.sum());
        for event in events {
            seq = seq.next();
            let (record, next) = line::append(&mut bytes, Record { seq, at, attempt, event }, sum);
            sum = next;
            pending.push(Pending { record, end: bytes.len(), sum });
        }
        let milestone = pending.iter().any(|line| line.record.event.is_milestone());
        self.room.make(&self.file, self.cursor.offset(), bytes.len() as u64);
        if !milestone && !self.room.has(self.cursor.offset(), bytes.len() as u64) {
            return Err(JournalError::NoSpace { path: self.lock.job().journal(), written: 0 });
        }
        self.write(&bytes, pending)?;
        if milestone {
            self.group.sync_now(&self.file).map_err(|source| self.not_durable(source))?;
            self.publish();
            if self.state.ended().is_some() {
                self.room.give_back(&self.file, self.cursor.offset());
            }
        } else {
            self.group.soon().map_err(|source| self.not_durable(source))?;
        }
        Ok(self.cursor.seq())
    }

    /// Waits until everything appended so far is on disk.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.group.sync_now(&self.file).map_err(|source| self.not_durable(source))
    }

    /// The fold of everything appended so far.
    pub fn state(&self) -> &JobState {
        &self.state
    }

    /// What was asked.
    pub fn spec(&self) -> &JobSpec {
        &self.spec
    }

    /// The torn line that was found, and set aside, when the journal was opened. At most one record is lost by it.
    pub fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    /// The lock that this journal lives by.
    pub fn lock(&self) -> &JobLock {
        &self.lock
    }

    /// Closes the journal and keeps the lock.
    pub fn into_lock(self) -> JobLock {
        self.lock
    }

    /// Writes whole lines, and counts those that made it: a line that did not is cut off again, so that no later one
    /// can fuse with it.
    fn write(&mut self, bytes: &[u8], pending: Vec<Pending>) -> Result<(), JournalError> {
        let (written, failure) = write_as_far_as_possible(&self.file, bytes);
        let start = self.cursor.offset();
        let mut whole = 0;
        for line in pending {
            if line.end > written {
                break;
            }
            self.state.apply(&line.record);
            self.cursor.advance(start + line.end as u64, line.record.seq, line.sum);
            whole += 1;
        }
        let Some(source) = failure else { return Ok(()) };
        self.ragged = true;
        let evened = self.make_even();
        if disk::is_no_space(&source) {
            return Err(JournalError::NoSpace { path: self.lock.job().journal(), written: whole });
        }
        evened.and(Err(failed_at(self.lock.job(), "append to", source)))
    }

    /// Makes sure that the file ends where the last whole line does.
    fn make_even(&mut self) -> Result<(), JournalError> {
        if self.ragged {
            self.file.set_len(self.cursor.offset()).map_err(|source| failed_at(self.lock.job(), "truncate", source))?;
            self.room.lost();
            self.ragged = false;
        }
        let named = self.lock.job().dir().lookup(names::JOURNAL)?;
        let path = || self.lock.job().journal();
        match named {
            None => Err(JournalError::Missing { path: path() }),
            Some(stat) if FileId::of(&stat) != self.id => Err(JournalError::Replaced { path: path() }),
            Some(stat) if stat.st_size as u64 != self.cursor.offset() => Err(JournalError::Interfered {
                path: path(),
                expected: self.cursor.offset(),
                found: stat.st_size as u64,
            }),
            Some(_) => Ok(()),
        }
    }

    /// Writes the summary that spares listings this journal, and wakes whoever watches the store. A failure costs
    /// them time and nothing else.
    fn publish(&self) {
        let job = self.lock.job();
        let summary = Summary::of(&self.spec, &self.state, self.cursor.stamp());
        // A full disk leaves no room for a summary; who watches is told all the same.
        for outcome in [summary.write(job), job.dir().touch()] {
            if let Err(error) = outcome {
                tracing::debug!(%error, job = %job.id(), "the job's summary was not written, or nobody was woken");
            }
        }
    }

    fn not_durable(&self, source: std::io::Error) -> JournalError {
        JournalError::NotDurable { path: self.lock.job().journal(), source }
    }
}

/// An encoded line on its way to the file.
struct Pending {
    record: Record,
    /// Where it ends in the batch's bytes.
    end: usize,
    sum: Sum,
}

fn write_as_far_as_possible(mut file: &File, bytes: &[u8]) -> (usize, Option<std::io::Error>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Some(std::io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Some(error)),
        }
    }
    (written, None)
}

/// Moves what follows the last whole line into a file of its own, for whoever wants to look, and ends the journal
/// there.
fn set_aside(lock: &JobLock, file: &File, whole: u64) -> Result<(), JournalError> {
    use std::os::unix::fs::FileExt;
    let mut fragment = vec![0; MAX_LINE_BYTES];
    let length = file.read_at(&mut fragment, whole).map_err(|source| failed_at(lock.job(), "read", source))?;
    if let Err(error) = lock.job().dir().replace(TORN, &fragment[..length], false) {
        tracing::warn!(%error, job = %lock.job().id(), "the fragment of a torn record was not kept");
    }
    file.set_len(whole).and_then(|()| file.sync_all()).map_err(|source| failed_at(lock.job(), "truncate", source))
}

fn failed_at(job: &JobDir, action: &'static str, source: std::io::Error) -> JournalError {
    DiskError::from_io(job.journal(), action, source).into()
}

/// The whole text of a journal, for tests that need many.
#[cfg(test)]
pub(crate) fn test_journal<const N: usize>(job: &JobId, events: [pactify_core::job::event::Known; N]) -> Vec<u8> {
    let (mut bytes, mut sum) = line::header(job);
    for (event, seq) in events.into_iter().zip(1..) {
        let at = crate::store::fixture::at();
        let record = Record { seq: Seq(seq), at, attempt: AttemptNo::FIRST, event: event.into() };
        sum = line::append(&mut bytes, record, sum).1;
    }
    bytes
}

#[cfg(test)]
mod tests;
