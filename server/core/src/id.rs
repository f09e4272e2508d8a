//! Identifiers with strict grammars: jobs, attempts, journal positions, git objects.
//!
//! An id that parsed is safe to use as one path component and to print. Nothing here looks an id up.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A job's name: `YYYYMMDD-HHMMSS-xxxxxx` (UTC, then six characters of `a-z2-7`).
///
/// Sorting ids sorts jobs by creation time, to the millisecond.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(String);

impl JobId {
    /// The id of a job created at `at`; `random` (its lower 20 bits) needs to differ between jobs of one millisecond
    /// only.
    pub fn compose(at: Timestamp, random: u32) -> Self {
        // In the order of their codes, so that milliseconds sort as well.
        const ALPHABET: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";
        let stamp = at.strftime("%Y%m%d-%H%M%S");
        let millis = at.subsec_millisecond().unsigned_abs();
        let tail = (millis << 20) | (random & 0xf_ffff);
        let digit = |place: u32| char::from(ALPHABET[(tail >> (5 * place)) as usize & 31]);
        Self(format!("{stamp}-{}", (0..6).rev().map(digit).collect::<String>()))
    }

    /// The id as it is written in paths, records and on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind}: expected {grammar}")]
pub struct ParseIdError {
    kind: &'static str,
    grammar: &'static str,
    text: String,
}

impl FromStr for JobId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let well_formed = text.len() == 22
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 15 => byte == b'-',
                0..15 => byte.is_ascii_digit(),
                _ => matches!(byte, b'a'..=b'z' | b'2'..=b'7'),
            });
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseIdError { kind: "job id", grammar: "YYYYMMDD-HHMMSS-xxxxxx", text: truncated(text) })
        }
    }
}

/// A git object's name in lower-case hex: 40 digits (SHA-1) or 64 (SHA-256).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectId(String);

impl ObjectId {
    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the repository it comes from names its objects by SHA-256.
    pub fn is_sha256(&self) -> bool {
        self.0.len() == 64
    }
}

impl FromStr for ObjectId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        if matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseIdError { kind: "object id", grammar: "40 or 64 lower-case hex digits", text: truncated(text) })
        }
    }
}

/// Names one captured result: the object id of its tree. A preview carries it and an apply must repeat it, so
/// that what is written is what was shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeSetId(ObjectId);

impl ChangeSetId {
    /// The change set whose result is the tree `tree`.
    pub fn of_result_tree(tree: ObjectId) -> Self {
        Self(tree)
    }

    /// The result's tree.
    pub fn tree(&self) -> &ObjectId {
        &self.0
    }

    /// The hex digits.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for ChangeSetId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        text.parse().map(Self)
    }
}

/// The number of an attempt within its job, from 1; a resume or a recovery opens the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptNo(u32);

impl AttemptNo {
    /// The first attempt.
    pub const FIRST: Self = Self(1);

    /// The attempt after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number itself.
    pub fn get(self) -> u32 {
        self.0
    }
}

/// A record's position in its journal, from 1, without gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

macro_rules! text_id {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseIdError;

            fn try_from(text: String) -> Result<Self, ParseIdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.as_str().to_owned()
            }
        }
    )*};
}

text_id!(JobId, ObjectId, ChangeSetId);

impl fmt::Display for AttemptNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn truncated(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_composed_job_id_parses_and_sorts_by_time() {
        let early = JobId::compose("2026-11-29T15:45:12Z".parse().unwrap(), 0xffff_ffff);
        let late = JobId::compose("2026-11-29T15:45:13Z".parse().unwrap(), 0);
        assert_eq!(early.as_str(), "20261129-154512-22zzzz");
        let later = JobId::compose("2026-11-29T15:45:12.999Z".parse().unwrap(), 0);
        assert!(early < later && later < late, "{early} {later} {late}");
        assert_eq!(late.as_str().parse::<JobId>().unwrap(), late);
        assert!(early < late);
    }

    #[test]
    fn hostile_job_ids_are_refused() {
        for text in [
            "",
            ".",
            "..",
            "*",
            "a/../..",
            "20261129-154512-aaaaa",
            "20261129-154512-aaaaaaa",
            "20261129-154512-AAAAAA",
            "20261129-154512-aaaa/a",
            "20261129-154512-aaaa\0a",
            "2026112９-154512-aaaa",
        ] {
            assert!(text.parse::<JobId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn object_ids_are_full_lower_case_hex() {
        assert!("a".repeat(40).parse::<ObjectId>().is_ok());
        assert!("a".repeat(64).parse::<ObjectId>().unwrap().is_sha256());
        for text in ["", "HEAD", &"A".repeat(40), &"a".repeat(41), "refs/heads/main", &"g".repeat(40)] {
            assert!(text.parse::<ObjectId>().is_err(), "{text:?}");
        }
    }
}
