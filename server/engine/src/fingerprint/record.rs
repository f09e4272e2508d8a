//! Keeps a [`SharedState`] in a file beside the job: a line of JSON, then the contents it refers to.
//!
//! The digest of the whole file is what the journal names; a file with another one is not read.

use std::collections::BTreeMap;

use pactify_core::RepoPath;
use pactify_core::fingerprint::{Item, Named, RefValue, SharedState, StashEntry};
use serde::{Deserialize, Serialize};

use super::FingerprintError;
use crate::disk::Dir;
use crate::hash;

/// The version of the record that this build writes.
const FORMAT: u32 = 1;

/// More than any state that is kept has.
const MOST_BYTES: u64 = 512 << 20;

/// Which moment of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Before anything ran.
    Before,
    /// After everything was dead.
    After,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    items: Vec<Named<Kept>>,
    refs: Vec<Named<RefValue>>,
    stash: Vec<StashEntry>,
    gaps: Vec<Named<String>>,
}

/// An item without its content, which lies behind the header.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Kept {
    File {
        executable: bool,
        size: u64,
        digest: String,
        /// Whether the content lies behind the header.
        kept: bool,
    },
    Link {
        size: u64,
    },
    Special {
        what: String,
    },
}

fn name(attempt: u32, phase: Phase) -> String {
    match phase {
        Phase::Before => format!("{attempt}.before"),
        Phase::After => format!("{attempt}.after"),
    }
}

/// Writes the record and returns its digest.
pub(super) fn write(
    directory: &Dir,
    attempt: u32,
    phase: Phase,
    state: &SharedState,
) -> Result<String, FingerprintError> {
    let name = name(attempt, phase);
    let mut contents = Vec::new();
    let items = state.items.iter().map(|(name, item)| Named { name: name.clone(), value: kept(item, &mut contents) });
    let header = Header {
        format: FORMAT,
        items: items.collect(),
        refs: named(&state.refs),
        stash: state.stash.clone(),
        gaps: named(&state.gaps),
    };
    let mut text = serde_json::to_vec(&header)
        .map_err(|error| FingerprintError::Record { path: directory.path().join(&name), why: error.to_string() })?;
    text.push(b'\n');
    text.extend(contents);
    directory.replace(&name, &text, false)?;
    Ok(hash::digest(&text))
}

/// Reads a record that has this digest.
pub(super) fn read(directory: &Dir, attempt: u32, phase: Phase, digest: &str) -> Result<SharedState, FingerprintError> {
    let name = name(attempt, phase);
    let wrong = |why: String| FingerprintError::Record { path: directory.path().join(&name), why };
    let text = directory.read(&name, MOST_BYTES)?;
    if hash::digest(&text) != digest {
        return Err(wrong("its digest is not the one in the job's journal".to_owned()));
    }
    let end = text.iter().position(|byte| *byte == b'\n').ok_or_else(|| wrong("it has no header".to_owned()))?;
    let header: Header = serde_json::from_slice(&text[..end]).map_err(|error| wrong(error.to_string()))?;
    if header.format != FORMAT {
        return Err(wrong(format!("it has format {}, not {FORMAT}", header.format)));
    }
    let mut contents = &text[end + 1..];
    let mut state = SharedState {
        refs: header.refs.into_iter().map(|named| (named.name, named.value)).collect(),
        gaps: header.gaps.into_iter().map(|named| (named.name, named.value)).collect(),
        stash: header.stash,
        items: BTreeMap::new(),
    };
    for Named { name, value } in header.items {
        let item = item(value, &mut contents).ok_or_else(|| wrong("a content is cut off".to_owned()))?;
        state.items.insert(name, item);
    }
    Ok(state)
}

/// Removes an attempt's records: nothing changed.
pub(super) fn forget(directory: &Dir, attempt: u32) -> Result<(), FingerprintError> {
    for phase in [Phase::Before, Phase::After] {
        directory.remove(&name(attempt, phase))?;
    }
    Ok(())
}

fn named<T: Clone>(values: &BTreeMap<RepoPath, T>) -> Vec<Named<T>> {
    values.iter().map(|(name, value)| Named { name: name.clone(), value: value.clone() }).collect()
}

fn kept(item: &Item, contents: &mut Vec<u8>) -> Kept {
    match item {
        Item::File { executable, size, digest, content } => {
            contents.extend(content.iter().flatten());
            Kept::File { executable: *executable, size: *size, digest: digest.clone(), kept: content.is_some() }
        }
        Item::Link { target } => {
            contents.extend(target);
            Kept::Link { size: target.len() as u64 }
        }
        Item::Special { what } => Kept::Special { what: what.clone() },
    }
}

fn item(kept: Kept, contents: &mut &[u8]) -> Option<Item> {
    let mut take = |size: u64| {
        let (content, rest) = contents.split_at_checked(usize::try_from(size).ok()?)?;
        *contents = rest;
        Some(content.to_vec())
    };
    Some(match kept {
        Kept::File { executable, size, digest, kept: true } => {
            Item::File { executable, size, digest, content: Some(take(size)?) }
        }
        Kept::File { executable, size, digest, kept: false } => Item::File { executable, size, digest, content: None },
        Kept::Link { size } => Item::Link { target: take(size)? },
        Kept::Special { what } => Item::Special { what },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &[u8]) -> RepoPath {
        RepoPath::new(name).unwrap()
    }

    #[test]
    fn a_record_is_read_as_it_was_written_or_not_at_all() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let directory = Dir::open(&pactify_core::AbsPath::new(folder.path()).unwrap()).unwrap();
        let id = "a".repeat(40);
        let file = |content: Option<&[u8]>| Item::File {
            executable: true,
            size: content.map_or(9, |content| content.len() as u64),
            digest: "d".to_owned(),
            content: content.map(<[u8]>::to_vec),
        };
        let state = SharedState {
            items: [
                (path(b"config"), file(Some(b"[core]\n\xff"))),
                (path(b"hooks/\xffodd"), file(Some(b""))),
                (path(b"large"), file(None)),
                (path(b"link"), Item::Link { target: b"../\xfe".to_vec() }),
                (path(b"pipe"), Item::Special { what: "pipe".to_owned() }),
            ]
            .into(),
            refs: [
                (path(b"HEAD"), RefValue::Symbolic("refs/heads/main".to_owned())),
                (path(b"refs/heads/main"), RefValue::Object(id.parse().unwrap())),
            ]
            .into(),
            stash: vec![StashEntry { commit: id.parse().unwrap(), message: "WIP\n".to_owned() }],
            gaps: [(path(b"info"), "closed".to_owned())].into(),
        };
        let digest = write(&directory, 1, Phase::Before, &state).unwrap();
        assert_eq!(read(&directory, 1, Phase::Before, &digest).unwrap(), state);
        let at = folder.path().join("1.before");
        assert_eq!(std::fs::metadata(&at).unwrap().permissions().mode() & 0o777, 0o600);

        let mut text = std::fs::read(&at).unwrap();
        *text.last_mut().unwrap() ^= 1;
        std::fs::write(&at, text).unwrap();
        assert!(matches!(read(&directory, 1, Phase::Before, &digest), Err(FingerprintError::Record { .. })));
        forget(&directory, 1).unwrap();
        assert!(matches!(read(&directory, 1, Phase::Before, &digest), Err(FingerprintError::Disk(_))));
    }
}
