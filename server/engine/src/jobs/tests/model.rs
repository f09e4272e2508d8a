//! What an apply of a part has to come to, said a second time and in other words: the three-way rule, path by path.

use pactify_core::change::hunk::{self, Group};
use pactify_core::failure::ConflictKind;

use super::world::{bytes, mode};
use crate::apply::tests::fixture::Node;
use crate::git::merge::{Labels, Merged, merge};
use pactify_core::change::EntryMode;

/// One path of a result, and how much of it was accepted.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) base: Option<Node>,
    pub(super) result: Option<Node>,
    /// The runs of changed lines, if it can be taken apart.
    pub(super) groups: Option<Vec<Group>>,
    accepted: Accepted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Accepted {
    /// These groups of lines, and perhaps the executable bit.
    Parts {
        lines: Vec<bool>,
        mode: bool,
    },
    All,
}

/// What is chosen of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    Whole,
    /// Groups of lines by number, and perhaps the executable bit.
    Parts {
        lines: Vec<usize>,
        mode: bool,
    },
}

/// What the checkout holds afterwards, or why it stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds(Option<Node>),
    /// The same, once somebody looked at it.
    Shown(Node),
    Conflict(ConflictKind),
}

const LABELS: Labels = Labels { base: "base", ours: "ours", theirs: "theirs" };

impl Path {
    pub(super) fn new(base: Option<Node>, result: Option<Node>) -> Self {
        let groups = match (&base, &result) {
            (Some(base), Some(result)) if !is_text(base) || !is_text(result) => None,
            (Some(base), Some(result)) if bytes(base) != bytes(result) => {
                let (old, new) = (text(base), text(result));
                Some(hunk::groups(&hunk::lines(old), &hunk::lines(new), None))
            }
            // Of a flip of the mode there is that part alone.
            (Some(base), Some(result)) if mode(base) != mode(result) => Some(vec![]),
            _ => None,
        };
        let lines = vec![false; groups.as_ref().map_or(0, Vec::len)];
        Self { base, result, groups, accepted: Accepted::Parts { lines, mode: false } }
    }

    pub(super) fn is_change(&self) -> bool {
        self.base != self.result
    }

    pub(super) fn flips(&self) -> bool {
        self.groups.is_some()
            && matches!((&self.base, &self.result), (Some(base), Some(result)) if mode(base) != mode(result))
    }

    /// Whether texts of different parts are never the same, so that a text tells which of them made it.
    pub(super) fn is_plain(&self) -> bool {
        let Some(groups) = &self.groups else { return true };
        if groups.len() > 6 {
            return false;
        }
        let mut texts: Vec<Option<String>> =
            (0..1_u32 << groups.len()).map(|mask| self.mix(|number| mask & (1 << number) != 0)).collect();
        texts.sort();
        texts.windows(2).all(|pair| pair[0] != pair[1]) && texts.iter().all(Option::is_some)
    }

    /// The parts that are not accepted yet.
    pub(super) fn left(&self) -> (Vec<usize>, bool) {
        match &self.accepted {
            Accepted::All => (vec![], false),
            Accepted::Parts { lines, mode } => {
                ((0..lines.len()).filter(|number| !lines[*number]).collect(), self.flips() && !mode)
            }
        }
    }

    /// What `pick` makes of `current`.
    pub(super) fn verdict(&self, pick: &Pick, current: Option<&Node>) -> Verdict {
        let (old, target) = (self.at(&self.accepted), self.at(&self.with(pick)));
        if current == target.as_ref() {
            return Verdict::Holds(current.cloned());
        }
        // The whole is offered from its base, too: what was accepted may have been taken back by hand.
        if current == old.as_ref() || (*pick == Pick::Whole && current == self.base.as_ref()) {
            return Verdict::Holds(target);
        }
        if old == target {
            return Verdict::Holds(current.cloned());
        }
        let (old, current, target) = match (old, current, target) {
            (None, Some(_), _) => return Verdict::Conflict(ConflictKind::AlreadyExists),
            (_, None, _) => return Verdict::Conflict(ConflictKind::Missing),
            (_, _, None) => return Verdict::Conflict(ConflictKind::ContentDiffers),
            (Some(old), Some(current), Some(target)) => (old, current, target),
        };
        if [&old, current, &target].into_iter().any(|node| matches!(node, Node::Link(_))) {
            return Verdict::Conflict(ConflictKind::ContentDiffers);
        }
        let executable = if mode(current) == mode(&old) { mode(&target) } else { mode(current) };
        let node = |bytes: &[u8]| match executable {
            EntryMode::Executable => Node::Executable(bytes.to_vec()),
            _ => Node::File(bytes.to_vec()),
        };
        let [base, ours, theirs] = [bytes(&old), bytes(current), bytes(&target)];
        if ours == base || ours == theirs {
            return Verdict::Holds(Some(node(theirs)));
        }
        if base == theirs {
            return Verdict::Holds(Some(node(ours)));
        }
        match merge(base, ours, theirs, LABELS).unwrap() {
            Merged::Clean(merged) if merged == ours || merged == theirs => Verdict::Holds(Some(node(&merged))),
            Merged::Clean(merged) => Verdict::Shown(node(&merged)),
            Merged::Conflicted { .. } | Merged::Impossible(_) => Verdict::Conflict(ConflictKind::ContentDiffers),
        }
    }

    pub(super) fn accept(&mut self, pick: &Pick) {
        self.accepted = self.with(pick);
    }

    fn with(&self, pick: &Pick) -> Accepted {
        match (pick, &self.accepted) {
            (Pick::Whole, _) | (_, Accepted::All) => Accepted::All,
            (Pick::Parts { lines, mode }, Accepted::Parts { lines: had, mode: had_mode }) => {
                let lines = (0..had.len()).map(|number| had[number] || lines.contains(&number)).collect();
                Accepted::Parts { lines, mode: *had_mode || *mode }
            }
        }
    }

    /// The path as it is when this much of it is accepted.
    fn at(&self, accepted: &Accepted) -> Option<Node> {
        match accepted {
            Accepted::All => self.result.clone(),
            Accepted::Parts { lines, mode: flipped } => {
                let base = self.base.as_ref()?;
                let (Some(_), Some(result)) = (&self.groups, &self.result) else { return self.base.clone() };
                let text = self.mix(|number| lines[number])?;
                match mode(if *flipped { result } else { base }) {
                    EntryMode::Executable => Some(Node::Executable(text.into_bytes())),
                    _ => Some(Node::File(text.into_bytes())),
                }
            }
        }
    }

    /// The base with some of the groups; `None` if a line would be torn.
    fn mix(&self, takes: impl Fn(usize) -> bool) -> Option<String> {
        let (old, new) = (text(self.base.as_ref()?), text(self.result.as_ref()?));
        let (old, new) = (hunk::lines(old), hunk::lines(new));
        let (mut lines, mut at): (Vec<&str>, usize) = (Vec::new(), 0);
        for (number, group) in self.groups.as_ref()?.iter().enumerate() {
            lines.extend(&old[at..group.old.start]);
            lines.extend(if takes(number) { &new[group.new.clone()] } else { &old[group.old.clone()] });
            at = group.old.end;
        }
        lines.extend(&old[at..]);
        let whole = lines.iter().rev().skip(1).all(|line| line.ends_with('\n'));
        whole.then(|| lines.concat())
    }
}

/// Whether it has lines.
fn is_text(node: &Node) -> bool {
    !matches!(node, Node::Link(_)) && hunk::is_text(bytes(node)) && std::str::from_utf8(bytes(node)).is_ok()
}

fn text(node: &Node) -> &str {
    std::str::from_utf8(bytes(node)).unwrap()
}
