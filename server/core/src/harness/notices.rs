//! What people are told of a launch beside its events: each thing once, and never more than a few dozen in all.

use std::collections::BTreeSet;

use super::Step;
use crate::display;
use crate::job::event::Known;

/// The most notices of one launch.
const NOTICES_MAX: usize = 40;
/// The longest notice, in characters.
const SENTENCE_MAX: usize = 400;

/// Remembers what was told.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    told: BTreeSet<String>,
}

impl Notices {
    /// Tells `text` under `id`, unless the same was told before.
    pub(crate) fn once(&mut self, id: &str, text: &str) -> Vec<Step> {
        let text = one_line(text);
        let key = format!("{id}\0{text}");
        if self.told.len() >= NOTICES_MAX || !self.told.insert(key) {
            return Vec::new();
        }
        vec![Step::Record(Known::Notice { id: id.to_owned(), text })]
    }
}

/// A program's words as one neutral line of at most 400 characters.
pub(crate) fn one_line(text: &str) -> String {
    display::one_line(text, SENTENCE_MAX)
}

/// At most `max` bytes of `text`, marked where something is missing.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let kept = display::head(text, max);
    if kept.len() == text.len() {
        kept.to_owned()
    } else {
        format!("{kept}\n[… {} bytes cut]", text.len() - kept.len())
    }
}
