//! Puts chosen parts of what changed outside back, each whole or not at all.
//!
//! A part is put back only while it is exactly as it was found after the job; what somebody changed since is theirs.
//! Files are written as git writes its own: new content in `<name>.lock`, made only if nothing has that name, then
//! renamed over the old; a lock that is there already is git's, and is respected. A configuration is edited key by key,
//! so that what a person set meanwhile stays. Refs go through git, which checks the old value, and the value that is
//! replaced stays in the ref's log: no commit is lost.

mod files;

use std::collections::BTreeMap;

use pactify_core::fingerprint::{Difference, Item, RefValue, SharedState, StashEntry, Value, differences, keys, refs};
use pactify_core::{AttemptNo, ObjectId, RepoPath};

use self::files::Files;
use super::record::{self, Phase};
use super::{FingerprintError, Watch};

/// What the log of a ref says.
const MESSAGE: &str = "pactify: put back";

/// What became of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its place among the attempt's differences.
    pub index: usize,
    /// What was done.
    pub verdict: Verdict,
}

/// What was done about one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is as it was before; with what the person has to know about it.
    PutBack(Option<String>),
    /// It was as before already.
    Already,
    /// It was left alone, for this reason.
    Refused(String),
}

impl Verdict {
    fn refused(why: impl Into<String>) -> Self {
        Self::Refused(why.into())
    }

    fn changed_again() -> Self {
        Self::refused("it was changed again since the job ended")
    }
}

impl Watch<'_> {
    /// Puts the differences at `chosen` of an attempt back. `before` and `after` are the digests of its records.
    ///
    /// # Errors
    /// When the records are not there as they were made, or our own directory cannot be used. Whatever else stands in
    /// the way is the [`Verdict`] of a part.
    pub fn restore(
        &self,
        attempt: AttemptNo,
        before: &str,
        after: &str,
        chosen: &[usize],
    ) -> Result<Vec<Restored>, FingerprintError> {
        let before = record::read(&self.directory, attempt.get(), Phase::Before, before)?;
        let after = record::read(&self.directory, attempt.get(), Phase::After, after)?;
        let found = differences(&before, &after);
        let mut parts: Vec<(usize, Option<&Difference>)> =
            chosen.iter().map(|index| (*index, found.get(*index))).collect();
        // git reads the configuration and needs a HEAD, so these come first, and refs last.
        parts.sort_by_key(|(index, difference)| (difference.map_or(0, step), *index));
        parts.dedup();
        let mut restored = Vec::new();
        for (index, difference) in parts {
            let verdict = match difference {
                None => Verdict::refused("there is no such change"),
                Some(difference) => self.put_back(difference, &before, &after)?,
            };
            restored.push(Restored { index, verdict });
        }
        restored.sort_by_key(|restored| restored.index);
        Ok(restored)
    }

    fn put_back(
        &self,
        difference: &Difference,
        before: &SharedState,
        after: &SharedState,
    ) -> Result<Verdict, FingerprintError> {
        let files = match Files::open(&self.spec.repository) {
            Ok(files) => files,
            Err(error) => return Ok(Verdict::refused(format!("the git directory cannot be opened: {error}"))),
        };
        match difference {
            Difference::Key { file, key, old, new } => {
                self.key(&files, file, key, (old, new), before.items.contains_key(file))
            }
            Difference::Item { name, old, new } => Ok(files.put(name, old.as_ref(), new.as_ref())),
            Difference::Registration { gone: false, .. } => {
                Ok(Verdict::refused("remove a worktree with `git worktree remove`"))
            }
            Difference::Registration { name, items, head, gone: true } => {
                Ok(register(&files, name, items, head.as_ref()))
            }
            Difference::Ref { old: None, .. } => Ok(Verdict::refused("a new ref is yours to delete")),
            Difference::Ref { name, old: Some(old), new } => self.reference(&files, name, old, new.as_ref(), before),
            Difference::Stash { missing, .. } => self.stash(missing, after),
            Difference::Gap { .. } => Ok(Verdict::refused("nobody knows what it was")),
        }
    }

    fn key(
        &self,
        files: &Files,
        file: &RepoPath,
        key: &str,
        (old, new): (&[Value], &[Value]),
        was_there: bool,
    ) -> Result<Verdict, FingerprintError> {
        let lock = match files.lock(file) {
            Ok(lock) => lock,
            Err(verdict) => return Ok(verdict),
        };
        let current = match lock.current() {
            Ok(current) => current,
            Err(verdict) => return Ok(verdict),
        };
        let Some(before) = keys(current.as_ref()) else {
            return Ok(Verdict::refused("the configuration file is not understood"));
        };
        let values = before.get(key).map_or(&[][..], Vec::as_slice);
        if values == old {
            return Ok(Verdict::Already);
        }
        if values != new {
            return Ok(Verdict::changed_again());
        }
        let (text, executable) = match &current {
            Some(Item::File { content: Some(text), executable, .. }) => (text.as_slice(), *executable),
            _ => (&b""[..], false),
        };
        let wanted: Vec<String> =
            old.iter().map(|value| value.0.clone().unwrap_or_else(|| "true".to_owned())).collect();
        let edited =
            self.git.edited_config(&self.scratch(), &self.spec.repository, text, key, values.len(), &wanted)?;
        let Some(edited) = edited else { return Ok(Verdict::refused("git cannot edit the configuration file")) };
        // Only this key may have changed by it.
        let mut expected = before.clone();
        match wanted.is_empty() {
            true => drop(expected.remove(key)),
            false => drop(expected.insert(key.to_owned(), wanted.into_iter().map(|text| Value(Some(text))).collect())),
        }
        let result = Item::File { executable, size: 0, digest: String::new(), content: Some(edited.clone()) };
        if keys(Some(&result)).as_ref() != Some(&expected) {
            return Ok(Verdict::refused("git cannot edit this key alone"));
        }
        if expected.is_empty() && !was_there {
            return Ok(lock.remove());
        }
        Ok(lock.write(&edited, executable))
    }

    fn reference(
        &self,
        files: &Files,
        name: &RepoPath,
        old: &RefValue,
        new: Option<&RefValue>,
        before: &SharedState,
    ) -> Result<Verdict, FingerprintError> {
        let now = self.look(Some(before))?;
        let current = now.refs.get(name);
        if current == Some(old) {
            return Ok(Verdict::Already);
        }
        if current != new {
            return Ok(Verdict::changed_again());
        }
        let by_file = !name.as_bytes().starts_with(b"refs/") || matches!(new, Some(RefValue::Broken(_)));
        match (old, new) {
            (RefValue::Broken(_), _) => Ok(Verdict::refused("it was broken before")),
            (_, _) if by_file && uses_tables(before) => Ok(Verdict::refused(by_hand(name, old))),
            (_, _) if by_file => Ok(ref_file(files, name, old, new)),
            (RefValue::Object(id), None) => self.move_ref(name, id, None, MESSAGE),
            (RefValue::Object(id), Some(RefValue::Object(from))) => self.move_ref(name, id, Some(from), MESSAGE),
            (_, _) => Ok(Verdict::refused(by_hand(name, old))),
        }
    }

    fn move_ref(
        &self,
        name: &RepoPath,
        to: &ObjectId,
        from: Option<&ObjectId>,
        message: &str,
    ) -> Result<Verdict, FingerprintError> {
        let moved = self.git.move_ref(&self.spec.repository, name, to, from, message)?;
        Ok(match moved {
            Ok(()) => Verdict::PutBack(None),
            Err(said) => Verdict::refused(format!("git refuses: {}", pactify_core::display::headline(&said, 200))),
        })
    }

    /// Puts entries that are gone on top of those that are there, oldest first.
    fn stash(&self, missing: &[StashEntry], after: &SharedState) -> Result<Verdict, FingerprintError> {
        let now = self.look(Some(after))?;
        let is_there = |entry: &&StashEntry| now.stash.iter().any(|there| there.commit == entry.commit);
        if missing.iter().all(|entry| is_there(&entry)) {
            return Ok(Verdict::Already);
        }
        if now.gaps.keys().any(|name| name.as_bytes().ends_with(b"stash")) {
            return Ok(Verdict::refused("the stash cannot be read"));
        }
        let name = RepoPath::new("refs/stash").expect("a constant");
        let mut top = now.stash.first().map(|entry| entry.commit.clone());
        for entry in missing.iter().rev().filter(|entry| !is_there(entry)) {
            match self.move_ref(&name, &entry.commit, top.as_ref(), &entry.message)? {
                Verdict::PutBack(_) => top = Some(entry.commit.clone()),
                other => return Ok(other),
            }
        }
        Ok(Verdict::PutBack(None))
    }
}

/// The order in which parts are put back.
fn step(difference: &Difference) -> u8 {
    match difference {
        Difference::Key { .. } => 1,
        Difference::Item { .. } => 2,
        Difference::Registration { .. } => 3,
        Difference::Ref { name, .. } if !name.as_bytes().starts_with(b"refs/") => 4,
        Difference::Ref { .. } => 5,
        Difference::Stash { .. } => 6,
        Difference::Gap { .. } => 7,
    }
}

fn register(files: &Files, name: &RepoPath, items: &BTreeMap<RepoPath, Item>, head: Option<&RefValue>) -> Verdict {
    let Some(head) = head.filter(|head| !matches!(head, RefValue::Broken(_))) else {
        return Verdict::refused("what its HEAD named is not known: register it with `git worktree add --force`");
    };
    let mut contents = vec![(b"HEAD".to_vec(), text_of(head))];
    let mut lacks_index = true;
    for (path, item) in items {
        let Some(below) = path.as_bytes().strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"/")) else {
            continue;
        };
        match item {
            Item::File { content: Some(content), .. } => {
                lacks_index &= below != b"index";
                contents.push((below.to_vec(), content.clone()));
            }
            Item::File { content: None, .. } if below == b"index" => {}
            _ => return Verdict::refused("not all of it was kept: register it with `git worktree add --force`"),
        }
    }
    let note = lacks_index.then(|| "its index was not kept: run `git reset` in that worktree".to_owned());
    files.put_directory(name, &contents, note)
}

/// Writes a ref that git itself would not move: a `HEAD`, or one that names nothing.
fn ref_file(files: &Files, name: &RepoPath, old: &RefValue, new: Option<&RefValue>) -> Verdict {
    let lock = match files.lock(name) {
        Ok(lock) => lock,
        Err(verdict) => return verdict,
    };
    let current = match lock.current() {
        Ok(None) => None,
        Ok(Some(Item::File { content: Some(text), .. })) => Some(refs::loose(&text)),
        Ok(Some(_)) => return Verdict::changed_again(),
        Err(verdict) => return verdict,
    };
    if current.as_ref() == new { lock.write(&text_of(old), false) } else { Verdict::changed_again() }
}

fn uses_tables(state: &SharedState) -> bool {
    let config = state.items.iter().find(|(name, _)| name.as_bytes() == b"config").map(|(_, item)| item);
    keys(config).is_some_and(|keys| keys.contains_key("extensions.refstorage"))
}

fn text_of(value: &RefValue) -> Vec<u8> {
    match value {
        RefValue::Object(id) => format!("{id}\n").into_bytes(),
        RefValue::Symbolic(name) => format!("ref: {name}\n").into_bytes(),
        RefValue::Broken(text) => text.clone().into_bytes(),
    }
}

fn by_hand(name: &RepoPath, old: &RefValue) -> String {
    let name = name.display();
    match old {
        RefValue::Symbolic(target) => format!("put it back with `git symbolic-ref {name} {target}`"),
        RefValue::Object(id) => format!("put it back with `git update-ref --no-deref {name} {id}`"),
        RefValue::Broken(_) => "it was broken before".to_owned(),
    }
}
