//! The brief: what a person asks of an agent.
//!
//! A bounded, non-empty text with a title for lists. A brief is never interpreted as a command. It may begin with front
//! matter, TOML between two lines `+++`, that proposes how its result is verified ([`crate::job::verify`]); the harness
//! is told all of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::display;
use crate::job::verify;

/// The longest brief, in bytes. A longer one belongs in a file of the repository that the brief names.
pub const MAX_BYTES: usize = 256 * 1024;

/// A task in the person's words.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Brief(String);

/// What a brief says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FrontMatter {
    /// The commands that the result has to pass.
    pub verify: Vec<String>,
}

/// Why a text is not a brief.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BriefError {
    /// Nothing but white space.
    #[error("the brief is empty")]
    Empty,
    /// Over [`MAX_BYTES`].
    #[error("the brief has {0} bytes, more than {MAX_BYTES}")]
    TooLong(usize),
    /// A NUL byte, which no harness takes.
    #[error("the brief contains a NUL byte")]
    Nul,
}

impl Brief {
    /// Takes the text as it is, trailing white space included.
    pub fn new(text: impl Into<String>) -> Result<Self, BriefError> {
        let text = text.into();
        if split(&text).1.trim().is_empty() {
            return Err(BriefError::Empty);
        }
        if text.len() > MAX_BYTES {
            return Err(BriefError::TooLong(text.len()));
        }
        if text.contains('\0') {
            return Err(BriefError::Nul);
        }
        Ok(Self(text))
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What it says about itself, checked.
    ///
    /// # Errors
    /// A reason, for front matter that cannot be read: a word that is not understood must not be lost.
    pub fn front_matter(&self) -> Result<FrontMatter, String> {
        let Some(text) = split(&self.0).0 else { return Ok(FrontMatter::default()) };
        let matter: FrontMatter = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        Ok(FrontMatter { verify: verify::check(&matter.verify).map_err(|why| format!("verify: {why}"))? })
    }

    /// Its first line without Markdown heading marks, for lists: at most 72 characters.
    pub fn title(&self) -> String {
        display::headline(split(&self.0).1.trim_start().trim_start_matches(['#', ' ']), 72)
    }
}

/// The front matter, if there is any, and what follows it.
fn split(text: &str) -> (Option<&str>, &str) {
    let matter = text.strip_prefix("+++\n").and_then(|rest| {
        let (matter, body) = rest.split_once("\n+++").or_else(|| Some(("", rest.strip_prefix("+++")?)))?;
        Some((Some(matter), body.strip_prefix('\n').or_else(|| body.is_empty().then_some(""))?))
    });
    matter.unwrap_or((None, text))
}

/// Its size: whatever prints a value that holds a brief must not print what the person wrote.
impl fmt::Debug for Brief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Brief({} bytes)", self.0.len())
    }
}

impl TryFrom<String> for Brief {
    type Error = BriefError;

    fn try_from(text: String) -> Result<Self, BriefError> {
        Self::new(text)
    }
}

impl From<Brief> for String {
    fn from(brief: Brief) -> Self {
        brief.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_is_the_first_line_for_people() {
        assert_eq!(Brief::new("\n# Fix the parser\n\nIt fails.").unwrap().title(), "Fix the parser");
        assert_eq!(Brief::new("x".repeat(100)).unwrap().title().chars().count(), 72);
    }

    #[test]
    fn printing_it_does_not_tell_it() {
        assert_eq!(format!("{:?}", Brief::new("Fix the secret thing").unwrap()), "Brief(20 bytes)");
    }

    #[test]
    fn front_matter_proposes_a_verification_and_nothing_else() {
        let matter = |text: &str| Brief::new(text).unwrap().front_matter();
        let verify =
            |commands: &[&str]| FrontMatter { verify: commands.iter().map(|text| (*text).to_owned()).collect() };
        assert_eq!(matter("+++\nverify = [\"make\", \" \"]\n+++\n# Fix\n").unwrap(), verify(&["make"]));
        for plain in ["Fix", "--- a\n+++ b\n", "+++\nverify = [\"make\"]\nFix", "++++\nFix", "+++\n+++\nFix"] {
            assert_eq!(matter(plain).unwrap(), FrontMatter::default(), "{plain}");
        }
        for (broken, named) in [
            ("+++\nverfy = [\"make\"]\n+++\nFix", "verfy"),
            ("+++\nverify = 1\n+++\nFix", "invalid type"),
            ("+++\nverify = [\"a\\nb\"]\n+++\nFix", "one line"),
        ] {
            assert!(matter(broken).unwrap_err().contains(named), "{broken}");
        }
        assert_eq!(Brief::new("+++\nverify = []\n+++\n\n# Fix it\n").unwrap().title(), "Fix it");
        assert_eq!(Brief::new("+++\nverify = []\n+++\n \n"), Err(BriefError::Empty));
    }

    #[test]
    fn what_is_no_task_is_refused() {
        assert_eq!(Brief::new(" \n"), Err(BriefError::Empty));
        assert_eq!(Brief::new("a\0b"), Err(BriefError::Nul));
        assert_eq!(Brief::new("x".repeat(MAX_BYTES + 1)), Err(BriefError::TooLong(MAX_BYTES + 1)));
    }
}
