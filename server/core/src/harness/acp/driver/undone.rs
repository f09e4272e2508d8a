//! Writes that the agent asked of us, was refused, and did not make through us afterwards: whatever it says at the end,
//! its work may not be what it meant it to be. What it wrote with tools of its own is not seen here.

use std::collections::BTreeMap;

use super::super::super::notices::one_line;
use crate::display;

/// The most of them that are kept apart; what is refused beyond stays undone.
const MOST: usize = 100;
/// How much of a path is kept, in bytes: more than any has that could be written later. Another one that only begins
/// alike is not the same.
const PATH_MAX: usize = 12 * 1024;
/// How much of one is shown, in characters.
const SHOWN: usize = 200;

/// Paths, as the agent names them, and why they were refused.
#[derive(Debug, Default)]
pub(super) struct Undone {
    writes: BTreeMap<String, String>,
    more: u32,
}

impl Undone {
    pub(super) fn refused(&mut self, path: &str, why: &str) {
        let path = display::head(path, PATH_MAX);
        if self.writes.len() < MOST || self.writes.contains_key(path) {
            self.writes.insert(path.to_owned(), why.to_owned());
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    pub(super) fn done(&mut self, path: &str) {
        self.writes.remove(display::head(path, PATH_MAX));
    }

    /// What is undone, as a part of a sentence.
    pub(super) fn told(&self) -> Option<String> {
        let (path, why) = self.writes.first_key_value()?;
        let path = display::headline(display::head(path, 4 * SHOWN), SHOWN);
        let more = self.writes.len() as u64 - 1 + u64::from(self.more);
        let more = if more == 0 { String::new() } else { format!(", and {more} more") };
        Some(one_line(&format!("its write of {path} was refused ({why}){more}, and not made through pactify later")))
    }
}
