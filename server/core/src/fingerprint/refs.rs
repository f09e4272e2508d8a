//! Refs as files hold them: loose ones, packed ones, and the stash's log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ObjectId, RepoPath};

/// What a ref names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RefValue {
    /// An object.
    Object(ObjectId),
    /// Another ref, by its name.
    Symbolic(String),
    /// Nothing that git understands; what it holds, cut.
    Broken(String),
}

/// One entry of the stash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StashEntry {
    /// Its commit.
    pub commit: ObjectId,
    /// What it is called.
    pub message: String,
}

/// What a loose ref's file says.
pub fn loose(text: &[u8]) -> RefValue {
    let broken = || RefValue::Broken(String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned());
    let Ok(line) = std::str::from_utf8(text) else { return broken() };
    if let Some(target) = line.strip_prefix("ref:") {
        let target = target.trim();
        return if target.starts_with("refs/") { RefValue::Symbolic(target.to_owned()) } else { broken() };
    }
    line.split_ascii_whitespace().next().and_then(|id| id.parse().ok()).map_or_else(broken, RefValue::Object)
}

/// What a `packed-refs` file says; `None` where it is not understood.
pub fn packed(text: &[u8]) -> Option<BTreeMap<RepoPath, RefValue>> {
    let mut found = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // The header, and what a tag points to.
        if matches!(line[0], b'#' | b'^') {
            continue;
        }
        let space = line.iter().position(|byte| *byte == b' ')?;
        let id = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        found.insert(RepoPath::new(&line[space + 1..]).ok()?, RefValue::Object(id));
    }
    Some(found)
}

/// The stash from its log, newest first; `None` where the log is not understood.
pub fn stash(log: &[u8]) -> Option<Vec<StashEntry>> {
    let mut found = Vec::new();
    for line in log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        found.push(logged(line)?);
    }
    found.reverse();
    Some(found)
}

/// The last thing that a ref's log, or the end of one, says the ref was set to.
pub fn last_logged(log: &[u8]) -> Option<ObjectId> {
    let line = log.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty())?;
    Some(logged(line)?.commit)
}

/// `<old> <new> <who> <when> <zone>\t<message>`
fn logged(line: &[u8]) -> Option<StashEntry> {
    let mut halves = line.splitn(2, |byte| *byte == b'\t');
    let head = std::str::from_utf8(halves.next()?.split(|byte| *byte == b'<').next()?).ok()?;
    let commit = head.split(' ').nth(1)?.parse().ok()?;
    Some(StashEntry { commit, message: String::from_utf8_lossy(halves.next().unwrap_or_default()).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn object(id: &str) -> RefValue {
        RefValue::Object(id.parse().unwrap())
    }

    #[test]
    fn loose_refs_name_an_object_a_ref_or_nothing() {
        for (text, expected) in [
            (format!("{A}\n"), object(A)),
            (A.to_owned(), object(A)),
            ("ref: refs/heads/main\n".to_owned(), RefValue::Symbolic("refs/heads/main".to_owned())),
            ("ref: ../../etc/passwd\n".to_owned(), RefValue::Broken("ref: ../../etc/passwd\n".to_owned())),
            (String::new(), RefValue::Broken(String::new())),
            ("nonsense".to_owned(), RefValue::Broken("nonsense".to_owned())),
        ] {
            assert_eq!(loose(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn packed_refs_are_read_without_their_peeled_lines() {
        let text =
            format!("# pack-refs with: peeled fully-peeled sorted \n{A} refs/heads/main\n{B} refs/tags/v1\n^{A}\n");
        let expected = [("refs/heads/main", A), ("refs/tags/v1", B)];
        let expected = expected.map(|(name, id)| (RepoPath::new(name).unwrap(), object(id))).into();
        assert_eq!(packed(text.as_bytes()), Some(expected));
        for text in ["nonsense\n".to_owned(), format!("{A} ../up\n"), format!("{A}refs/heads/main\n")] {
            assert_eq!(packed(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_log_gives_the_stash_and_the_last_value() {
        let zero = "0".repeat(40);
        let log = format!("{zero} {A} Ada <a@x> 1 +0000\tWIP on main: 1\n{A} {B} Ada <a@x> 2 +0000\tOn main: two\n");
        let entry = |id: &str, message: &str| StashEntry { commit: id.parse().unwrap(), message: message.to_owned() };
        assert_eq!(stash(log.as_bytes()), Some(vec![entry(B, "On main: two"), entry(A, "WIP on main: 1")]));
        assert_eq!(last_logged(log.as_bytes()), Some(B.parse().unwrap()));
        assert_eq!((stash(b""), last_logged(b"")), (Some(Vec::new()), None));
        assert_eq!(stash(b"nonsense\n"), None);
    }
}
