//! Changed words within a run of changed lines, for display.
//!
//! Words are runs of letters, digits and underscores; every other character stands for itself. Ranges count UTF-16 code
//! units, as editors do. Where nearly everything changed, marking words would only be noise: then there are none.

use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use super::hunk;

/// A part of a line, in UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The line, from 0.
    pub line: u32,
    /// Where in it.
    pub range: Range<u32>,
}

/// More words than this on either side are not compared.
const MOST_WORDS: usize = 4_000;

/// The changed words of `old` and of `new`, both given as lines without line feeds. After `deadline` many words are
/// compared coarsely ([`hunk::groups`]).
pub fn changed(old: &[String], new: &[String], deadline: Option<Instant>) -> (Vec<Word>, Vec<Word>) {
    let (old, new) = (words(old), words(new));
    if old.is_empty() || new.is_empty() || old.len().max(new.len()) > MOST_WORDS {
        return (vec![], vec![]);
    }
    let texts = |words: &[(&str, Word)]| words.iter().map(|(text, _)| (*text).to_owned()).collect::<Vec<_>>();
    let (old_texts, new_texts) = (texts(&old), texts(&new));
    let deadline = hunk::unless_small(&old_texts, &new_texts, deadline);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old_texts, &new_texts, deadline);
    let meant = |words: &[(&str, Word)], range: Range<usize>| {
        words[range].iter().filter(|(text, _)| !text.trim().is_empty()).count()
    };
    let kept: usize = ops.iter().filter(|op| op.tag() == DiffTag::Equal).map(|op| meant(&old, op.old_range())).sum();
    if kept * 3 < meant(&old, 0..old.len()).max(meant(&new, 0..new.len())) {
        return (vec![], vec![]);
    }
    let side = |words: &[(&str, Word)], range: fn(&similar::DiffOp) -> Range<usize>| {
        let mut marked: Vec<Word> = Vec::new();
        for (_, word) in ops.iter().filter(|op| op.tag() != DiffTag::Equal).flat_map(|op| &words[range(op)]) {
            match marked.last_mut() {
                Some(last) if last.line == word.line && last.range.end == word.range.start => {
                    last.range.end = word.range.end;
                }
                _ => marked.push(word.clone()),
            }
        }
        marked
    };
    (side(&old, similar::DiffOp::old_range), side(&new, similar::DiffOp::new_range))
}

fn words(lines: &[String]) -> Vec<(&str, Word)> {
    let mut words = Vec::new();
    for (line, text) in lines.iter().enumerate() {
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        let mut at = 0;
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let end = match rest.find(|c: char| !is_part(c)) {
                Some(0) => first.len_utf8(),
                Some(end) => end,
                None => rest.len(),
            };
            let (word, after) = rest.split_at(end);
            let width = u32::try_from(word.encode_utf16().count()).unwrap_or(u32::MAX);
            words.push((word, Word { line, range: at..at.saturating_add(width) }));
            at = at.saturating_add(width);
            rest = after;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_words_are_marked_in_utf16() {
        for (old, new, old_marks, new_marks) in [
            (&["let a = 1;"][..], &["let a = 22;"][..], "0:8-9", "0:8-10"),
            (&["🙂 one two"], &["🙂 one three"], "0:7-10", "0:7-12"),
            (&["fn f(a: u8)", "{ a }"], &["fn f(a: u8, b: u8)", "{ a }"], "", "0:10-17"),
            (&["grün"], &["grün "], "", "0:4-5"),
            (&["all of this"], &["nothing stays here"], "", ""),
            (&[], &["new"], "", ""),
        ] {
            let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
            let shown = |words: &[Word]| {
                let one = |word: &Word| format!("{}:{}-{}", word.line, word.range.start, word.range.end);
                words.iter().map(one).collect::<Vec<_>>().join(" ")
            };
            let (was, is) = changed(&lines(old), &lines(new), None);
            assert_eq!((shown(&was).as_str(), shown(&is).as_str()), (old_marks, new_marks), "{old:?} {new:?}");
        }
    }
}
