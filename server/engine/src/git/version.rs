//! The version of the git program, as it says itself.

use std::fmt;

/// A released version of git.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: u16,
    minor: u16,
    patch: u16,
}

impl Version {
    /// The oldest git we work with: the first in which every plumbing command takes `-z`, and whose fixes include the
    /// ownership checks of CVE-2022-24765 and CVE-2022-29187.
    pub const OLDEST: Self = Self { major: 2, minor: 38, patch: 0 };

    /// The version in the answer to `git version`: `git version 2.47.3`, with any vendor's words after it.
    pub fn parse(answer: &str) -> Option<Self> {
        let number = answer.strip_prefix("git version ")?.split_ascii_whitespace().next()?;
        let mut parts = number.split(['.', '-']);
        let mut next = || parts.next().and_then(|part| part.parse().ok());
        let (major, minor) = (next()?, next()?);
        Some(Self { major, minor, patch: next().unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_every_vendor_are_understood() {
        for (answer, expected) in [
            ("git version 2.47.3\n", Some("2.47.3")),
            ("git version 2.39.5 (Apple Git-154)\n", Some("2.39.5")),
            ("git version 2.45.1.windows.1\n", Some("2.45.1")),
            ("git version 2.55.0-rc1\n", Some("2.55.0")),
            ("git version 2.50\n", Some("2.50.0")),
            ("hub version 2.14\n", None),
            ("git version next\n", None),
            ("", None),
        ] {
            assert_eq!(Version::parse(answer).map(|version| version.to_string()).as_deref(), expected, "{answer:?}");
        }
    }

    #[test]
    fn versions_are_ordered_by_number() {
        let version = |text: &str| Version::parse(&format!("git version {text}")).unwrap();
        assert!(version("2.9.5") < Version::OLDEST);
        assert!(version("2.38.0") >= Version::OLDEST);
        assert!(version("2.100.0") > version("2.54.1"));
    }
}
