//! The parts of a change that a person can take or leave, and what taking some of them comes to.
//!
//! A part is named by what it does ([`GroupId`]), not by its place in a list: whoever finds the groups again, perhaps
//! coarser because the time was up, still understands the names of a preview before. [`divide`] tells which parts a
//! change has; [`Parts::mix`] builds the text that some of them make of the base; [`Parts::accepted`] tells which of
//! them made a text. All of them together always make the result, in whatever order they are taken.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::hunk::{self, Group};
use super::{Change, ChangeKind};

/// More changed lines than this are not taken apart: the file is offered as a whole.
pub const MAX_LINES: usize = 5_000;

/// The name of one part of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum GroupId {
    /// `whole`: all that there is at the path.
    Whole,
    /// `mode`: the executable bit.
    Mode,
    /// `-12,3+14,4`: a run of changed lines, from base to result, counted as in a unified diff.
    Lines {
        /// In the base.
        old: Span,
        /// In the result.
        new: Span,
    },
}

/// Lines of one side. The first line is 1; when there are none, `start` is the line before, 0 at the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    start: u32,
    count: u32,
}

/// A text that names no part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no part of a change: expected \"whole\", \"mode\" or lines as \"-12,3+14,4\"")]
pub struct ParseGroupIdError(String);

/// Why a change has no parts but the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undivided {
    /// It is new, gone, or of another kind.
    #[error("the path is new, gone, or of another kind")]
    Kind,
    /// One side is no text, or over the size that is shown.
    #[error("it is no text, or over {} MiB", hunk::MAX_TEXT_BYTES >> 20)]
    NotText,
    /// More lines changed than are told apart.
    #[error("more than {MAX_LINES} of its lines changed, which no preview shows in full")]
    TooManyLines,
}

/// Why parts cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The change has no such part.
    #[error("it has no part {0}")]
    Unknown(GroupId),
    /// Two of the parts are about the same lines, or in no order.
    #[error("the part {0} overlaps another one that is chosen or was accepted")]
    Overlap(GroupId),
    /// The change cannot be taken apart.
    #[error("it can only be taken as a whole: {0}")]
    Undivided(Undivided),
}

/// A change of a text, taken apart.
#[derive(Clone, Debug)]
pub struct Parts<'t> {
    old: Vec<&'t str>,
    new: Vec<&'t str>,
    lines: Vec<Group>,
    mode: bool,
    /// Whether the time sufficed: then the groups are the ones that every look finds.
    exact: bool,
}

/// Chosen parts of one change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Runs of lines, in order.
    pub lines: Vec<Group>,
    /// The executable bit.
    pub mode: bool,
}

/// What was accepted of a text before.
#[derive(Clone, Copy, Debug)]
pub enum Had<'a> {
    /// Nothing: it is the base's.
    Base,
    /// All of it: it is the result's.
    Result,
    /// This text.
    Text(&'a str),
}

/// What a choice makes of what was accepted before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// What was accepted before, unchanged.
    Same,
    /// This text.
    Text(String),
    /// What was accepted before is no mix of base and result (it comes from an earlier result). It has to be merged
    /// with this text, the base being what both come from.
    Merge(String),
}

/// The parts of `change`, whose sides hold `old` and `new`; `None` stands for a side that is too large to be read.
///
/// `deadline` bounds the search for lines of a large change; `now` says, afterwards, whether it was over.
///
/// # Errors
/// When the change can only be taken as a whole.
pub fn divide<'t>(
    change: &Change,
    old: Option<&'t [u8]>,
    new: Option<&'t [u8]>,
    deadline: Option<Instant>,
    now: impl FnOnce() -> Instant,
) -> Result<Parts<'t>, Undivided> {
    let nothing = |mode| Parts { old: vec![], new: vec![], lines: vec![], mode, exact: true };
    match (change.kind(), &change.old, &change.new) {
        (ChangeKind::ModeChanged, ..) => Ok(nothing(true)),
        (ChangeKind::Modified, Some(before), Some(after)) if before.mode.is_file() => {
            let text = |bytes: Option<&'t [u8]>| {
                let bytes = bytes.filter(|bytes| bytes.len() as u64 <= hunk::MAX_TEXT_BYTES && hunk::is_text(bytes))?;
                std::str::from_utf8(bytes).ok()
            };
            let (Some(old), Some(new)) = (text(old), text(new)) else { return Err(Undivided::NotText) };
            let (old, new) = (hunk::lines(old), hunk::lines(new));
            let deadline = hunk::unless_small(&old, &new, deadline);
            let lines = hunk::groups(&old, &new, deadline);
            let (added, deleted) = hunk::counts(&lines);
            if added + deleted > MAX_LINES as u64 {
                return Err(Undivided::TooManyLines);
            }
            let exact = deadline.is_none_or(|deadline| now() < deadline);
            Ok(Parts { old, new, lines, mode: before.mode != after.mode, exact })
        }
        _ => Err(Undivided::Kind),
    }
}

impl<'t> Parts<'t> {
    /// The names of all parts, in order: lines, then the executable bit.
    pub fn ids(&self) -> Vec<GroupId> {
        self.lines.iter().map(GroupId::of).chain(self.mode.then_some(GroupId::Mode)).collect()
    }

    /// The runs of changed lines, in order.
    pub fn lines(&self) -> &[Group] {
        &self.lines
    }

    /// The base's lines of a group.
    pub fn old_lines(&self, group: &Group) -> &[&'t str] {
        &self.old[group.old.clone()]
    }

    /// The result's lines of a group.
    pub fn new_lines(&self, group: &Group) -> &[&'t str] {
        &self.new[group.new.clone()]
    }

    /// The parts that `ids` name.
    ///
    /// # Errors
    /// When one names no part of this change.
    pub fn choose(&self, ids: &[GroupId]) -> Result<Choice, PartError> {
        let mut choice = Choice::default();
        for id in ids {
            match id {
                GroupId::Whole => {
                    return Ok(Choice { lines: self.lines.clone(), mode: self.mode });
                }
                GroupId::Mode if self.mode => choice.mode = true,
                GroupId::Mode => return Err(PartError::Unknown(*id)),
                GroupId::Lines { old, new } => {
                    let group = Group { old: old.range(), new: new.range() };
                    let fits = group.old.end <= self.old.len() && group.new.end <= self.new.len();
                    if !fits || (self.exact && !self.lines.contains(&group)) {
                        return Err(PartError::Unknown(*id));
                    }
                    choice.lines.push(group);
                }
            }
        }
        sort(&mut choice.lines);
        Ok(choice)
    }

    /// The text that the `chosen` groups of lines make of the base. They are in order.
    ///
    /// # Errors
    /// When two of them overlap, or tear a line apart.
    pub fn mix(&self, chosen: &[Group]) -> Result<String, PartError> {
        let mut text = String::new();
        let mut at = Group { old: 0..0, new: 0..0 };
        for group in chosen {
            let overlap = group.old.start < at.old.end || group.new.start < at.new.end;
            let fits = group.old.end <= self.old.len() && group.new.end <= self.new.len();
            if overlap || !fits {
                return Err(PartError::Overlap(GroupId::of(group)));
            }
            text.extend(self.old[at.old.end..group.old.start].iter().copied());
            let is_torn = |text: &String| !text.is_empty() && !text.ends_with('\n');
            if is_torn(&text) {
                return Err(PartError::Overlap(GroupId::of(group)));
            }
            text.extend(self.new[group.new.clone()].iter().copied());
            if is_torn(&text) && group.old.end < self.old.len() {
                return Err(PartError::Overlap(GroupId::of(group)));
            }
            at = group.clone();
        }
        text.extend(self.old[at.old.end..].iter().copied());
        Ok(text)
    }

    /// What `chosen` makes of what was accepted before.
    ///
    /// # Errors
    /// When the chosen groups overlap each other or accepted ones.
    pub fn take(&self, chosen: &[Group], had: Had<'_>) -> Result<Taken, PartError> {
        if chosen.is_empty() || matches!(had, Had::Result) {
            return Ok(Taken::Same);
        }
        let Some(accepted) = self.accepted_lines(had, chosen) else { return self.mix(chosen).map(Taken::Merge) };
        let mut all = [&accepted, chosen].concat();
        sort(&mut all);
        self.mix(&all).map(Taken::Text)
    }

    /// What was accepted before, without what was accepted of `chosen`; `None` where that is all of it.
    pub fn without(&self, chosen: &[Group], had: Had<'_>) -> Option<String> {
        let accepted = self.accepted_lines(had, &[])?;
        let left: Vec<Group> = accepted.iter().filter(|group| !chosen.contains(group)).cloned().collect();
        (left.len() < accepted.len()).then(|| self.mix(&left).ok()).flatten()
    }

    /// The groups of lines that were accepted before; `None` when it is no mix of base and result.
    fn accepted_lines(&self, had: Had<'_>, open: &[Group]) -> Option<Vec<Group>> {
        let marks = match had {
            Had::Base => return Some(Vec::new()),
            Had::Result => return Some(self.lines.clone()),
            Had::Text(text) => self.accepted(text, open)?,
        };
        Some(self.lines.iter().zip(marks).filter(|(_, accepted)| *accepted).map(|(group, _)| group.clone()).collect())
    }

    /// Which of the groups of lines make `text` of the base; `None` when no choice does.
    ///
    /// Where several do, as can be in texts that repeat themselves: as few of `open` as possible (a person takes what
    /// they have not yet), and as many others as possible, so that nothing has to be taken twice.
    pub fn accepted(&self, text: &str, open: &[Group]) -> Option<Vec<bool>> {
        /// More places than this are looked at only in texts that repeat one line thousands of times.
        const MOST_PLACES: usize = 1 << 18;
        let text = hunk::lines(text);
        let mut ways: Vec<Ways> = Vec::with_capacity(self.lines.len() + 1);
        let mut here = Ways::from([(0, Way { from: 0, taken: false, worth: (0, 0) })]);
        let (mut looked_at, mut done) = (0, 0);
        for group in &self.lines {
            let gap = &self.old[done..group.old.start];
            let is_open = open.contains(group);
            let mut next = Ways::new();
            for (at, way) in &here {
                let Some(rest) = text[*at..].strip_prefix(gap) else { continue };
                for (taken, lines) in [(true, self.new_lines(group)), (false, self.old_lines(group))] {
                    if rest.starts_with(lines) {
                        let (opened, count) = way.worth;
                        let worth = (opened - i64::from(taken && is_open), count + i64::from(taken));
                        let way = Way { from: *at, taken, worth };
                        let known = next.entry(at + gap.len() + lines.len()).or_insert(way);
                        *known = if known.worth < worth { way } else { *known };
                    }
                }
            }
            looked_at += next.len();
            if next.is_empty() || looked_at > MOST_PLACES {
                return None;
            }
            ways.push(std::mem::replace(&mut here, next));
            done = group.old.end;
        }
        let rest = &self.old[done..];
        let mut at = text.len().checked_sub(rest.len()).filter(|at| text[*at..] == *rest)?;
        ways.push(here);
        let mut marks = vec![false; self.lines.len()];
        for number in (0..marks.len()).rev() {
            let way = ways[number + 1].get(&at)?;
            (marks[number], at) = (way.taken, way.from);
        }
        (at == 0).then_some(marks)
    }
}

/// The places of a text that the groups so far lead to (lines that are accounted for), and the best way there.
type Ways = BTreeMap<usize, Way>;

/// How a place is reached.
#[derive(Clone, Copy)]
struct Way {
    /// The place before.
    from: usize,
    /// Whether the last group was taken.
    taken: bool,
    /// What speaks for it; more is better.
    worth: (i64, i64),
}

impl GroupId {
    /// The name of a group of lines.
    pub fn of(group: &Group) -> Self {
        Self::Lines { old: Span::of(&group.old), new: Span::of(&group.new) }
    }
}

impl Span {
    fn of(range: &Range<usize>) -> Self {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { start: number(range.start + usize::from(!range.is_empty())), count: number(range.len()) }
    }

    /// The first line from 1, or the line before where there are none.
    pub fn start(self) -> u64 {
        u64::from(self.start)
    }

    /// The lines, counted from 0. A span that starts at line 0 although it has lines is empty of sense and never
    /// parses.
    fn range(self) -> Range<usize> {
        let start = self.start as usize - usize::from(self.count > 0);
        start..start + self.count as usize
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("whole"),
            Self::Mode => f.write_str("mode"),
            Self::Lines { old, new } => write!(f, "-{},{}+{},{}", old.start, old.count, new.start, new.count),
        }
    }
}

impl FromStr for GroupId {
    type Err = ParseGroupIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        fn span(text: &str) -> Option<Span> {
            let (start, count) = text.split_once(',')?;
            let number = |text: &str| text.parse::<u32>().ok().filter(|number| number.to_string() == text);
            let span = Span { start: number(start)?, count: number(count)? };
            let sensible = span.start.checked_add(span.count).is_some() && (span.start > 0 || span.count == 0);
            sensible.then_some(span)
        }
        let lines = |text: &str| {
            let (old, new) = text.strip_prefix('-')?.split_once('+')?;
            let (old, new) = (span(old)?, span(new)?);
            (old.count + new.count > 0).then_some(Self::Lines { old, new })
        };
        let id = match text {
            "whole" => Some(Self::Whole),
            "mode" => Some(Self::Mode),
            text => lines(text),
        };
        id.ok_or_else(|| ParseGroupIdError(text.chars().take(80).collect()))
    }
}

impl TryFrom<String> for GroupId {
    type Error = ParseGroupIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<GroupId> for String {
    fn from(id: GroupId) -> Self {
        id.to_string()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for GroupId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GroupId".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

fn sort(groups: &mut Vec<Group>) {
    groups.sort_by_key(|group| (group.old.start, group.new.start, group.old.end, group.new.end));
    groups.dedup();
}

#[cfg(test)]
mod tests;
