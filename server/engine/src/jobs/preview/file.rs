//! One changed path, as a preview tells it.

use std::ops::Range;
use std::time::Instant;

use pactify_core::change::group::{GroupId, Undivided};
use pactify_core::change::hunk::{self, Group};
use pactify_core::change::plan::Outlook;
use pactify_core::change::sensitive::tier;
use pactify_core::change::word::{self, Word};
use pactify_core::change::{Change, Entry, EntryMode, group};
use pactify_core::path::rules::WritablePath;
use pactify_core::protocol::{
    FileChange, GroupView, HunkView, OutlookKind, OutlookView, PreviewFormat, SideView, WordRange,
};
use pactify_core::{Failure, display};

use super::super::offer::{Offer, Sides};

/// Tells of one change what `format` asks for.
pub(super) fn change(change: &Change, offer: &Offer<'_>, format: PreviewFormat) -> Result<FileChange, Failure> {
    let view = |entry: &Entry| SideView { mode: entry.mode, size: entry.size };
    let known = [&change.old, &change.new]
        .map(|entry| entry.as_ref().map_or(Some(true), |entry| offer.result().is_text(entry)));
    let (binary, sides) = match (format, known) {
        (PreviewFormat::Summary | PreviewFormat::Patch, [Some(old), Some(new)]) => (!(old && new), None),
        _ => {
            let sides = offer.sides(change)?;
            (sides.texts(change).is_none(), Some(sides))
        }
    };
    let is_large = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.size > hunk::MAX_TEXT_BYTES);
    let mut file = FileChange {
        path: change.path.clone().into(),
        kind: change.kind(),
        old: change.old.as_ref().map(view),
        new: change.new.as_ref().map(view),
        binary,
        tier: tier(&change.path),
        refused: refused(change),
        accepted: offer.had(change) == change.new,
        renamed_from: None,
        renamed_to: None,
        similarity: None,
        groups: None,
        hunks: None,
        truncated: is_large(&change.old) || is_large(&change.new),
        outlook: None,
    };
    if let (PreviewFormat::Hunks, Some(sides)) = (format, &sides) {
        add_hunks(change, offer, sides, &mut file)?;
    }
    Ok(file)
}

/// How many lines the hunks of a file have.
pub(super) fn lines(file: &FileChange) -> usize {
    file.hunks.iter().flatten().map(|hunk| hunk.old_lines.len() + hunk.new_lines.len()).sum()
}

/// An outlook, for the wire.
pub(super) fn outlook(outlook: Outlook) -> OutlookView {
    let view = |kind| OutlookView { kind, object: None, conflict: None, detail: None };
    match outlook {
        Outlook::Clean => view(OutlookKind::Clean),
        Outlook::Already => view(OutlookKind::Already),
        Outlook::Merge(object) => OutlookView { object: Some(object.to_string()), ..view(OutlookKind::Merge) },
        Outlook::Conflict(conflict) => {
            OutlookView { conflict: Some(conflict.kind), detail: Some(conflict.detail), ..view(OutlookKind::Conflict) }
        }
    }
}

fn add_hunks(change: &Change, offer: &Offer<'_>, sides: &Sides, file: &mut FileChange) -> Result<(), Failure> {
    match sides.divide(change) {
        Ok(parts) => {
            let (marks, mode) = offer.accepted(change, &parts)?;
            let accepted: Vec<bool> = marks.into_iter().chain([mode]).collect();
            let ids = parts.ids();
            let group = |(id, accepted): (&GroupId, &bool)| GroupView { id: *id, accepted: *accepted };
            file.groups = Some(ids.iter().zip(&accepted).map(group).collect());
            let hunks = parts.lines().iter().zip(&accepted).map(|(group, accepted)| {
                let mut hunk = hunk(group, parts.old_lines(group), parts.new_lines(group));
                hunk.id = Some(GroupId::of(group));
                hunk.accepted = *accepted;
                hunk
            });
            file.hunks = Some(hunks.collect());
        }
        Err(why) => {
            file.groups = Some(vec![GroupView { id: GroupId::Whole, accepted: file.accepted }]);
            file.truncated |= why == Undivided::TooManyLines;
            if let Some((old, new)) = sides.texts(change) {
                let (hunks, cut) = undivided(old, new);
                file.truncated |= cut;
                file.hunks = Some(hunks);
            }
        }
    }
    Ok(())
}

/// The hunks of texts that can only be taken as a whole, and whether some are left out.
fn undivided(old: &str, new: &str) -> (Vec<HunkView>, bool) {
    let (old, new) = (hunk::lines(old), hunk::lines(new));
    let groups = hunk::groups(&old, &new, Some(Instant::now() + hunk::DEADLINE));
    let mut left = group::MAX_LINES;
    let mut views = Vec::new();
    for found in groups {
        let size = found.old.len() + found.new.len();
        if size > left {
            return (views, true);
        }
        left -= size;
        views.push(hunk(&found, &old[found.old.clone()], &new[found.new.clone()]));
    }
    (views, false)
}

fn hunk(group: &Group, old: &[&str], new: &[&str]) -> HunkView {
    let shown = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| display::neutral_block(line.trim_end_matches('\n')).into_owned()).collect()
    };
    let (old_lines, new_lines) = (shown(old), shown(new));
    let (old_words, new_words) = word::changed(&old_lines, &new_lines, Some(Instant::now() + hunk::DEADLINE));
    let range = |Word { line, range }: Word| WordRange { line, start: range.start, end: range.end };
    let start = |range: &Range<usize>| (range.start + usize::from(!range.is_empty())) as u64;
    HunkView {
        id: None,
        accepted: false,
        old_start: start(&group.old),
        old_lines,
        new_start: start(&group.new),
        new_lines,
        old_words: old_words.into_iter().map(range).collect(),
        new_words: new_words.into_iter().map(range).collect(),
    }
}

/// Why a change can never be applied.
fn refused(change: &Change) -> Option<String> {
    let gitlink = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.mode == EntryMode::Gitlink);
    if gitlink(&change.old) || gitlink(&change.new) {
        return Some("it is a nested repository, which is never written".to_owned());
    }
    WritablePath::check(change.path.clone()).err().map(|refusal| format!("its name {}", refusal.rule))
}
