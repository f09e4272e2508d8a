//! A change set from ids alone: the same for whoever asks, whenever.
//!
//! The differences come from two trees, what else a capture saw from the notes stored beside it. Nothing here looks at
//! the job's tree.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pactify_core::change::hunk;
use pactify_core::change::sensitive::{Tier, tier};
use pactify_core::change::{Change, ChangeSet, Entry, EntryMode, Note, Totals};
use pactify_core::{AbsPath, ChangeSetId, ObjectId, RepoPath};
use serde::{Deserialize, Serialize};

use super::Git;
use super::command::{Call, Place, Verb, unexpected};
use super::config::create_file;
use super::error::GitError;
use super::objects::Objects;
use super::read::read;
use super::renames::Rename;

/// The time spent on counting lines. What is left then counts as files only.
const COUNTING: Duration = Duration::from_secs(5);

/// How many files have their lines counted whatever time that takes.
const ALWAYS_COUNTED: u64 = 20;

/// The list of changes beside a result.
const LIST: &str = "changes.json";

/// The version of `notes.json` that this build writes.
const NOTES_FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct NotesRecord {
    format: u32,
    notes: Vec<Note>,
}

/// Which contents are text, as far as they were looked at.
#[derive(Debug, Default)]
pub struct Texts(HashMap<ObjectId, bool>);

impl Texts {
    /// Whether `object` is text; `None` where nobody knows.
    pub fn is_text(&self, object: &ObjectId) -> Option<bool> {
        self.0.get(object).copied()
    }
}

/// What is known of a result's changes.
#[derive(Debug)]
pub struct ChangeList {
    /// The changes.
    pub set: ChangeSet,
    /// Which of their contents are text.
    pub texts: Texts,
    /// Which of them are renames ([`Git::renames`]); `None` where nobody has looked.
    pub renames: Option<Vec<Rename>>,
}

/// The version of `changes.json` that this build writes.
const LIST_FORMAT: u32 = 2;

/// What a capture remembers of its result, so that a list of many changes reads no object. A pure function of two
/// trees: deleting it changes nothing.
#[derive(Serialize, Deserialize)]
struct List {
    format: u32,
    /// Without notes, which have a file of their own.
    set: ChangeSet,
    text: Vec<ObjectId>,
    binary: Vec<ObjectId>,
    renames: Option<Vec<Rename>>,
}

impl List {
    /// What is remembered, if it is of use.
    fn read(capture: &AbsPath) -> Option<Self> {
        let text = read(capture.join(LIST).as_path()).ok()?;
        serde_json::from_slice::<Self>(&text).ok().filter(|list| list.format == LIST_FORMAT)
    }

    fn known(self) -> ChangeList {
        let text = self.text.into_iter().map(|object| (object, true));
        let texts = text.chain(self.binary.into_iter().map(|object| (object, false))).collect();
        ChangeList { set: self.set, texts: Texts(texts), renames: self.renames }
    }
}

/// Remembers a result's changes beside it. Where that fails, the next to ask finds them anew.
pub(super) fn remember(capture: &AbsPath, set: &ChangeSet, texts: &Texts, renames: Option<Vec<Rename>>) {
    let of =
        |wanted: bool| texts.0.iter().filter(|(_, text)| **text == wanted).map(|(object, _)| object.clone()).collect();
    let set = ChangeSet { notes: Vec::new(), ..set.clone() };
    let list = List { format: LIST_FORMAT, set, text: of(true), binary: of(false), renames };
    let written = serde_json::to_vec(&list).map_err(|error| damaged(&capture.join(LIST), error.to_string()));
    if let Err(error) = written.and_then(|text| create_file(&capture.join(LIST), &text)) {
        tracing::info!(%error, "the list of changes is not remembered");
    }
}

/// What a capture saw beside its result.
///
/// # Errors
/// When `capture` holds none, or what it says of itself is damaged.
pub fn notes(capture: &AbsPath) -> Result<Vec<Note>, GitError> {
    read_notes(capture)
}

impl Git {
    /// The differences between a job's base and its captured result.
    ///
    /// # Errors
    /// When `capture` holds no such result.
    pub fn change_set(
        &self,
        capture: &AbsPath,
        base_tree: &ObjectId,
        result_tree: &ObjectId,
    ) -> Result<ChangeSet, GitError> {
        self.change_list(capture, base_tree, result_tree).map(|list| list.set)
    }

    /// The same, with what is known of its contents. Read from what the capture remembered ([`remember`]), if that is
    /// about these trees.
    ///
    /// # Errors
    /// When `capture` holds no such result.
    pub fn change_list(
        &self,
        capture: &AbsPath,
        base_tree: &ObjectId,
        result_tree: &ObjectId,
    ) -> Result<ChangeList, GitError> {
        let is_ours = |list: &List| list.set.base_tree == *base_tree && list.set.id.tree() == result_tree;
        if let Some(mut list) = List::read(capture).filter(is_ours) {
            list.set.notes = read_notes(capture)?;
            return Ok(list.known());
        }
        let mut changes = self.differences(capture, base_tree, result_tree)?;
        self.add_sizes(&self.objects(capture, base_tree)?, &mut changes)?;
        let set = ChangeSet {
            id: ChangeSetId::of_result_tree(result_tree.clone()),
            base_tree: base_tree.clone(),
            changes,
            notes: read_notes(capture)?,
        };
        Ok(ChangeList { set, texts: Texts::default(), renames: None })
    }

    /// The differences between two trees of a git directory of ours, sorted by path, without sizes.
    pub(super) fn differences(
        &self,
        git_dir: &AbsPath,
        old: &ObjectId,
        new: &ObjectId,
    ) -> Result<Vec<Change>, GitError> {
        let place = Place::Private { git_dir, work_tree: None, index: None };
        let call = Call::new(Verb::DiffTree, place)
            .args(["-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", "--no-textconv"])
            .args([old.as_str(), new.as_str()]);
        let answer = self.run(&call)?;
        let mut fields = answer.split(|byte| *byte == 0);
        let mut changes = Vec::new();
        while let (Some(facts), Some(path)) = (fields.next().filter(|facts| !facts.is_empty()), fields.next()) {
            changes.push(parse(facts, path).ok_or_else(|| unexpected(&call, facts))?);
        }
        changes.sort_by(|one: &Change, other| one.path.cmp(&other.path));
        Ok(changes)
    }

    /// Completes differences by the sizes of their contents.
    pub(super) fn add_sizes(&self, objects: &Objects, changes: &mut [Change]) -> Result<(), GitError> {
        let mut entries: Vec<&mut Entry> = changes
            .iter_mut()
            .flat_map(|change| [&mut change.old, &mut change.new])
            .flatten()
            .filter(|entry| entry.mode != EntryMode::Gitlink)
            .collect();
        let ids: Vec<ObjectId> = entries.iter().map(|entry| entry.object.clone()).collect();
        let sizes = objects.sizes(&ids.iter().collect::<Vec<_>>())?;
        for (entry, size) in entries.iter_mut().zip(sizes) {
            entry.size = size;
        }
        Ok(())
    }
}

/// Counts what changed. Contents that are not text or too large add no lines, nor do those that are left when the time
/// is up, but for the first ones.
pub(super) fn totals(objects: &Objects, changes: &[Change], texts: &mut Texts) -> Result<Totals, GitError> {
    let end = Instant::now() + COUNTING;
    let mut totals = Totals::default();
    for change in changes {
        totals.files += 1;
        totals.sensitive += u64::from(tier(&change.path) == Some(Tier::Sensitive));
        if totals.files <= ALWAYS_COUNTED || Instant::now() < end {
            let (added, deleted) = line_counts(objects, change, texts)?;
            totals.added += added;
            totals.deleted += deleted;
        }
    }
    Ok(totals)
}

fn line_counts(objects: &Objects, change: &Change, texts: &mut Texts) -> Result<(u64, u64), GitError> {
    let is_countable = |entry: &Entry| entry.mode.is_file() && entry.size <= hunk::MAX_TEXT_BYTES;
    if ![&change.old, &change.new].into_iter().flatten().all(is_countable) {
        return Ok((0, 0));
    }
    let mut read = |entry: &Option<Entry>| -> Result<Option<String>, GitError> {
        let Some(entry) = entry else { return Ok(Some(String::new())) };
        let bytes = objects.read(&entry.object, hunk::MAX_TEXT_BYTES)?;
        let text = if hunk::is_text(&bytes) { String::from_utf8(bytes).ok() } else { None };
        texts.0.insert(entry.object.clone(), text.is_some());
        Ok(text)
    };
    let (Some(old), Some(new)) = (read(&change.old)?, read(&change.new)?) else { return Ok((0, 0)) };
    let (old, new) = (old.as_str(), new.as_str());
    let deadline = Instant::now() + hunk::DEADLINE;
    Ok(hunk::counts(&hunk::groups(&hunk::lines(old), &hunk::lines(new), Some(deadline))))
}

pub(super) fn write_notes(capture: &AbsPath, notes: &[Note]) -> Result<(), GitError> {
    let path = capture.join("notes.json");
    let record = NotesRecord { format: NOTES_FORMAT, notes: notes.to_vec() };
    let text = serde_json::to_vec(&record).map_err(|error| damaged(&path, error.to_string()))?;
    create_file(&path, &text)
}

fn read_notes(capture: &AbsPath) -> Result<Vec<Note>, GitError> {
    let path = capture.join("notes.json");
    let text = read(path.as_path()).map_err(GitError::io("read", path.as_path()))?;
    let record: NotesRecord = serde_json::from_slice(&text).map_err(|error| damaged(&path, error.to_string()))?;
    match record.format {
        NOTES_FORMAT => Ok(record.notes),
        other => Err(damaged(&path, format!("it has format {other}, not {NOTES_FORMAT}"))),
    }
}

/// `:<old mode> <new mode> <old object> <new object> <status>`
fn parse(facts: &[u8], path: &[u8]) -> Option<Change> {
    let mut words = std::str::from_utf8(facts).ok()?.strip_prefix(':')?.split(' ');
    let (old_mode, new_mode) = (words.next()?, words.next()?);
    let (old, new) = (words.next()?, words.next()?);
    let entry = |mode: &str, object: &str| match mode {
        "000000" => Some(None),
        mode => {
            let object = object.parse().ok()?;
            Some(Some(Entry { mode: EntryMode::from_octal(mode)?, object, size: 0 }))
        }
    };
    Some(Change { path: RepoPath::new(path).ok()?, old: entry(old_mode, old)?, new: entry(new_mode, new)? })
}

fn damaged(path: &AbsPath, why: String) -> GitError {
    GitError::RecordDamaged { path: path.clone(), why }
}
