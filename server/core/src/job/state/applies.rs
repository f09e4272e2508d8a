//! A job's applies, as its journal tells of them: which there were, and which stand.

use jiff::Timestamp;

/// How many paths of one apply are kept.
const PATHS: usize = 5;

/// The applies of a job that wrote something, oldest first, and how many there were at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applies {
    last: u32,
    written: Vec<WrittenApply>,
}

/// An apply that wrote something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenApply {
    /// Its number within the job, from 1.
    pub number: u32,
    /// When it was recorded.
    pub at: Timestamp,
    /// The first paths that it wrote, as they are shown.
    pub paths: Vec<String>,
    /// How many more there were.
    pub paths_more: u64,
    /// Whether it was taken back.
    pub undone: bool,
}

impl Applies {
    /// The number of the last one; 0 before the first.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Those that wrote something.
    pub fn written(&self) -> &[WrittenApply] {
        &self.written
    }

    /// The numbers of those that can be taken back, oldest first.
    pub fn standing(&self) -> Vec<u32> {
        self.written.iter().filter(|apply| !apply.undone).map(|apply| apply.number).collect()
    }

    /// One that found everything in place wrote nothing that could be taken back.
    pub(super) fn add(&mut self, number: u32, at: Timestamp, paths: &[String]) {
        self.last = self.last.max(number);
        if !paths.is_empty() {
            let paths_more = paths.len().saturating_sub(PATHS) as u64;
            let paths = paths.iter().take(PATHS).cloned().collect();
            self.written.push(WrittenApply { number, at, paths, paths_more, undone: false });
        }
    }

    pub(super) fn take_back(&mut self, number: u32) {
        self.written.iter_mut().filter(|apply| apply.number == number).for_each(|apply| apply.undone = true);
    }
}
