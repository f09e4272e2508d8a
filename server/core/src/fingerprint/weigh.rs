//! What a change outside a job's tree means for the person, and in which words it is told.

use serde::{Deserialize, Serialize};

use super::{Difference, Item, RefValue, Value, config};
use crate::display::{counted, headline, neutral};
use crate::{AttemptNo, RepoPath};

/// How much a change outside matters, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Weight {
    /// git will start a program because of it, go elsewhere, or work no more.
    Dangerous,
    /// Worth a look.
    Notable,
    /// What a person's own work looks like.
    Ordinary,
}

/// Something in the person's git directory that changed while a job ran. Nobody knows who did it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutsideChange {
    /// Its name within the job: attempt and number.
    pub id: String,
    /// How much it matters.
    pub weight: Weight,
    /// Where: a file below the git directory, a key of one, a ref. Safe to show.
    pub place: String,
    /// What happened there, as a fragment that follows the place. Safe to show.
    pub what: String,
    /// Whether it can be put back.
    pub restorable: bool,
    /// Whether it was put back. In a job's journal that is an event of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
}

/// What the objects say about a ref that has another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// By this many commits on top of what it named.
    Forward {
        /// How many.
        commits: u64,
        /// Whether its log, where there is one, has the new value, as it has after every git command.
        logged: bool,
    },
    /// To another branch or commit, as the log says.
    Logged,
    /// To something else.
    Elsewhere,
}

/// The id of the difference at `index` of the attempt's differences.
pub fn id(attempt: AttemptNo, index: usize) -> String {
    format!("{attempt}-{}", index + 1)
}

/// The attempt and the index that an id names.
pub fn parse_id(id: &str) -> Option<(u32, usize)> {
    let (attempt, number) = id.split_once('-')?;
    Some((attempt.parse().ok()?, number.parse::<usize>().ok()?.checked_sub(1)?))
}

/// What `difference` means. `moved` is asked about refs.
pub fn weigh(id: String, difference: &Difference, moved: impl FnOnce() -> Move) -> OutsideChange {
    let (weight, place, what, restorable) = match difference {
        Difference::Key { file, key, old, new } => {
            let place = format!("{}: {}", file.display(), headline(key, 120));
            (config::weight(key), place, values(key, old, new), true)
        }
        Difference::Item { name, old, new } => item(name, old.as_ref(), new.as_ref()),
        Difference::Registration { name, gone: true, .. } => {
            let what = "is gone: that worktree is no longer registered".to_owned();
            (Weight::Notable, name.display(), what, true)
        }
        Difference::Registration { name, gone: false, .. } => {
            (Weight::Ordinary, name.display(), "is a new worktree".to_owned(), false)
        }
        Difference::Ref { name, old, new } => {
            let (weight, what, restorable) = of_ref(name, old.as_ref(), new.as_ref(), moved);
            (weight, name.display(), what, restorable)
        }
        Difference::Stash { missing, added } => {
            let what = match (missing.len(), added) {
                (0, added) => format!("has {added} new entries"),
                (gone, 0) => format!("lost {gone} entries"),
                (gone, added) => format!("lost {gone} entries and has {added} new ones"),
            };
            (Weight::Notable, "stash".to_owned(), what, !missing.is_empty())
        }
        Difference::Gap { name, why, fresh } => {
            let what = format!("could not be compared: {}", headline(why, 200));
            (if *fresh { of_gap(name) } else { Weight::Notable }, name.display(), what, false)
        }
    };
    OutsideChange { id, weight, place, what, restorable, restored: false }
}

fn values(key: &str, old: &[Value], new: &[Value]) -> String {
    let shown = |values: &[Value]| {
        let texts: Vec<&str> = values.iter().map(|value| value.0.as_deref().unwrap_or("true")).collect();
        let shown = texts.iter().all(|text| config::is_shown(key, text));
        shown.then(|| headline(&neutral(&texts.join(", ")), 120)).filter(|text| !text.is_empty())
    };
    match (old.is_empty(), new.is_empty(), shown(new)) {
        (_, true, _) => "was unset".to_owned(),
        (true, _, Some(text)) => format!("was set to {text}"),
        (true, _, None) => "was set".to_owned(),
        (false, _, Some(text)) => format!("is {text} now"),
        (false, _, None) => "has another value".to_owned(),
    }
}

fn item(name: &RepoPath, old: Option<&Item>, new: Option<&Item>) -> (Weight, String, String, bool) {
    let is_hook = name.components().rev().skip(1).any(|part| part == b"hooks");
    let runs = |item: &Item| !matches!(item, Item::File { executable: false, .. } | Item::Special { .. });
    let sample = name.file_name().ends_with(b".sample");
    let weight = match (is_hook, new) {
        (true, Some(new)) if runs(new) && !sample => Weight::Dangerous,
        (true, _) => Weight::Notable,
        (false, _) => of_file(name),
    };
    let what = match (old, new) {
        (None, Some(_)) if is_hook && weight == Weight::Dangerous => "is a new hook, which git will run".to_owned(),
        (None, _) => "is new".to_owned(),
        (Some(_), None) => "is gone".to_owned(),
        (Some(_), Some(Item::Link { .. })) => "is a symbolic link now".to_owned(),
        (Some(_), Some(Item::Special { what })) => format!("is a {} now", headline(what, 40)),
        (Some(old), Some(_)) if is_hook && !runs(old) => "can be run now".to_owned(),
        (Some(_), Some(_)) => "has another content".to_owned(),
    };
    let kept = |item: &Item| !matches!(item, Item::File { content: None, .. } | Item::Special { .. });
    let restorable = old.is_none_or(kept) && !matches!(new, Some(Item::Special { .. }));
    (weight, name.display(), what, restorable)
}

fn of_file(name: &RepoPath) -> Weight {
    match name.file_name() {
        b"exclude" | b"sparse-checkout" | b"grafts" | b"alternates" | b"http-alternates" | b"shallow" => {
            Weight::Notable
        }
        b"locked" => Weight::Ordinary,
        // Attributes name filters; a whole configuration, or a file that one includes, can name anything; `commondir`
        // and `gitdir` lead git elsewhere; old-fashioned remotes are addresses.
        _ => Weight::Dangerous,
    }
}

/// The worst that can hide where nobody can look any more.
fn of_gap(name: &RepoPath) -> Weight {
    match name.components().next() {
        Some(b"refs" | b"packed-refs" | b"reftable" | b"logs" | b"objects") => Weight::Notable,
        _ if name.components().any(|part| part == b"hooks") => Weight::Dangerous,
        _ => of_file(name).min(Weight::Notable),
    }
}

fn of_ref(
    name: &RepoPath,
    old: Option<&RefValue>,
    new: Option<&RefValue>,
    moved: impl FnOnce() -> Move,
) -> (Weight, String, bool) {
    let is_head = name.file_name() == b"HEAD" && !name.as_bytes().starts_with(b"refs/");
    let remote = name.as_bytes().starts_with(b"refs/remotes/");
    match (old, new) {
        (_, Some(RefValue::Broken(_))) => {
            (Weight::Dangerous, "names nothing that git understands".to_owned(), old.is_some_and(is_whole))
        }
        (Some(old), None) if is_head => {
            (Weight::Dangerous, "is gone: git sees no repository".to_owned(), is_whole(old))
        }
        (Some(_), None) if remote => (Weight::Ordinary, "is gone".to_owned(), false),
        (Some(old), None) => (Weight::Notable, format!("is gone; it was {}", short(old)), is_whole(old)),
        (None, _) => (Weight::Ordinary, "is new".to_owned(), false),
        (Some(_), Some(_)) if remote => (Weight::Ordinary, "was updated".to_owned(), false),
        (Some(old), Some(new)) => match moved() {
            Move::Forward { commits, logged: true } => {
                (Weight::Ordinary, format!("moved forward by {}", counted(commits, "commit")), false)
            }
            Move::Forward { commits, logged: false } => {
                let what = format!("moved forward by {} that its log does not know", counted(commits, "commit"));
                (Weight::Notable, what, is_whole(old))
            }
            Move::Logged if is_head => (Weight::Ordinary, format!("is at {} now", short(new)), false),
            Move::Logged | Move::Elsewhere => {
                (Weight::Notable, format!("was {} and is {} now", short(old), short(new)), is_whole(old))
            }
        },
    }
}

fn is_whole(value: &RefValue) -> bool {
    !matches!(value, RefValue::Broken(_))
}

fn short(value: &RefValue) -> String {
    match value {
        RefValue::Object(id) => id.as_str()[..12].to_owned(),
        RefValue::Symbolic(name) => headline(name, 80),
        RefValue::Broken(text) => headline(text, 40),
    }
}
