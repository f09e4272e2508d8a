//! What a harness is called.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A harness's name: lower-case letters, digits and dashes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HarnessName(pub(super) String);

impl HarnessName {
    /// The name as it is written everywhere.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is not a harness's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a harness name: 1 to 32 of a-z, 0-9 and '-', starting with a letter")]
pub struct HarnessNameError(String);

impl FromStr for HarnessName {
    type Err = HarnessNameError;

    fn from_str(text: &str) -> Result<Self, HarnessNameError> {
        let plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if (1..=32).contains(&text.len()) && text.as_bytes()[0].is_ascii_lowercase() && text.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(HarnessNameError(text.chars().take(40).collect()))
        }
    }
}

impl TryFrom<String> for HarnessName {
    type Error = HarnessNameError;

    fn try_from(text: String) -> Result<Self, HarnessNameError> {
        text.parse()
    }
}

impl From<HarnessName> for String {
    fn from(name: HarnessName) -> Self {
        name.0
    }
}

impl fmt::Display for HarnessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
