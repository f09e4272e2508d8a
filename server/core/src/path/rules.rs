//! Which names may be written into a checkout (threats T-16, T-17).
//!
//! One validator for preview and apply, the same on every platform: a repository is shared between machines, so
//! a name that is dangerous on one of them is refused on all. Collisions between names are found on folded
//! names. Whether the *place* is free is the applier's question.

use unicode_normalization::UnicodeNormalization;

use super::RepoPath;

/// A path that passed every rule: proof that it may be written below a checkout's top.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WritablePath(RepoPath);

impl WritablePath {
    /// Checks each component against the rules.
    pub fn check(path: RepoPath) -> Result<Self, PathRefusal> {
        let broken = path.components().find_map(broken_rule);
        match broken {
            Some(rule) => Err(PathRefusal { path, rule }),
            None => Ok(Self(path)),
        }
    }

    /// The path itself.
    pub fn path(&self) -> &RepoPath {
        &self.0
    }
}

/// A name that no apply will ever write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {rule}")]
pub struct PathRefusal {
    /// The whole path.
    pub path: RepoPath,
    /// The rule that one of its components breaks.
    pub rule: Rule,
}

/// Why a component may not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// `.git` in any spelling that some file system folds to it (case, HFS+ ignorable characters, NTFS 8.3).
    #[error("leads into git's own directory")]
    GitDirectory,
    /// A backslash or a colon: a separator, a drive or a stream name on Windows.
    #[error("contains a backslash or a colon")]
    ForeignSeparator,
    /// Windows drops trailing dots and spaces, so two names become one.
    #[error("ends in a dot or a space")]
    TrailingDotOrSpace,
    /// A Windows device such as `CON` or `nul.txt`.
    #[error("is a device name on Windows")]
    DeviceName,
    /// A control character: no real source file has one, and terminals act on them.
    #[error("contains a control character")]
    ControlCharacter,
    /// Longer than the 255 bytes that common file systems take.
    #[error("has a component over 255 bytes")]
    TooLong,
}

/// The form under which two names collide on a file system that folds case or normalises Unicode.
pub fn folded(path: &RepoPath) -> Vec<u8> {
    match std::str::from_utf8(path.as_bytes()) {
        Ok(text) => folded_text(text).into_bytes(),
        Err(_) => path.as_bytes().to_ascii_lowercase(),
    }
}

/// Whether a symbolic link at `path` with this target stays inside the checkout and outside git's own directory.
///
/// Only leading `..` components are taken: after a name, `..` would depend on what that name is. Names that are links
/// themselves were written under the same rule, or are the person's own.
pub fn link_stays_inside(path: &RepoPath, target: &[u8]) -> bool {
    if target.is_empty() || target[0] == b'/' || target.contains(&0) {
        return false;
    }
    let mut parts = target.split(|b| *b == b'/').filter(|part| !matches!(*part, b"" | b".")).peekable();
    let mut up = 0;
    while parts.next_if(|part| *part == b"..").is_some() {
        up += 1;
    }
    up < path.components().count() && parts.all(|part| part != b".." && broken_rule(part).is_none())
}

fn folded_text(text: &str) -> String {
    let visible = text.chars().filter(|c| !is_hfs_ignorable(*c));
    visible.nfkd().flat_map(char::to_lowercase).nfc().collect()
}

fn broken_rule(component: &[u8]) -> Option<Rule> {
    if component.len() > 255 {
        return Some(Rule::TooLong);
    }
    if names_git_directory(component) {
        return Some(Rule::GitDirectory);
    }
    if component.iter().any(u8::is_ascii_control) {
        return Some(Rule::ControlCharacter);
    }
    if component.iter().any(|b| matches!(b, b'\\' | b':')) {
        return Some(Rule::ForeignSeparator);
    }
    if matches!(component.last(), Some(b'.' | b' ')) {
        return Some(Rule::TrailingDotOrSpace);
    }
    is_device_name(component).then_some(Rule::DeviceName)
}

/// Git's own rules (`verify_path`, `is_ntfs_dotgit`, `is_hfs_dotgit` in git's `path.c` and `utf8.c`) in one.
fn names_git_directory(component: &[u8]) -> bool {
    let name = folded_text(&String::from_utf8_lossy(component));
    // On NTFS everything from a colon on is a stream of the file, a backslash separates, and trailing dots and
    // spaces vanish.
    let stem = name.split([':', '\\']).next().unwrap_or_default().trim_end_matches(['.', ' ']);
    let short_name = stem.strip_prefix("git~");
    stem == ".git" || short_name.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

fn is_hfs_ignorable(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

fn is_device_name(component: &[u8]) -> bool {
    let name = String::from_utf8_lossy(component).to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    if matches!(stem, "con" | "prn" | "aux" | "nul" | "conin$" | "conout$") {
        return true;
    }
    let numbered = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    matches!(numbered, Some("1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &[u8]) -> Option<Rule> {
        WritablePath::check(RepoPath::new(path).unwrap()).err().map(|refusal| refusal.rule)
    }

    #[test]
    fn ordinary_names_pass() {
        for path in
            ["a", "src/lib.rs", ".gitignore", ".github/x.yml", "git", "文档.txt", "com10", "console.rs", "a~1", "....a"]
        {
            assert_eq!(rule(path.as_bytes()), None, "{path}");
        }
    }

    #[test]
    fn git_directories_are_found_in_every_disguise() {
        for path in [
            ".git/config",
            ".GIT/config",
            "sub/.git/hooks/x",
            "git~1/config",
            "GIT~1",
            ".g\u{200c}it/config",
            ".git ",
            ".git.",
            ".git::$INDEX_ALLOCATION/config",
            ".git\\config",
            "．git",
        ] {
            assert_eq!(rule(path.as_bytes()), Some(Rule::GitDirectory), "{path}");
        }
    }

    #[test]
    fn names_that_bite_elsewhere_are_refused_everywhere() {
        for (path, expected) in [
            (&b"a\\b"[..], Rule::ForeignSeparator),
            (b"C:x", Rule::ForeignSeparator),
            (b"a:stream", Rule::ForeignSeparator),
            (b"dir./x", Rule::TrailingDotOrSpace),
            (b"x ", Rule::TrailingDotOrSpace),
            (b"CON", Rule::DeviceName),
            (b"nul.txt", Rule::DeviceName),
            (b"src/lpt1", Rule::DeviceName),
            (b"a\x1b[31m", Rule::ControlCharacter),
            (b"a\nb", Rule::ControlCharacter),
            (&[b'a'; 256], Rule::TooLong),
        ] {
            assert_eq!(rule(path), Some(expected), "{path:?}");
        }
    }

    #[test]
    fn links_may_not_lead_out_of_the_checkout() {
        let stays = |path: &str, target: &[u8]| link_stays_inside(&RepoPath::new(path).unwrap(), target);
        for (path, target) in [("a", "b"), ("a", "./b/c"), ("d/a", "../b"), ("d/e/a", "../../x"), ("d/a", "..")] {
            assert!(stays(path, target.as_bytes()), "{path} -> {target}");
        }
        for (path, target) in [
            ("a", ""),
            ("a", "/etc/passwd"),
            ("a", "../x"),
            ("d/a", "../../x"),
            ("a", "b/../../x"),
            ("d/a", "x/../y"),
            ("a", ".git/hooks/post-commit"),
            ("d/a", "../.GIT/config"),
            ("a", "b\0c"),
        ] {
            assert!(!stays(path, target.as_bytes()), "{path} -> {target}");
        }
    }

    #[test]
    fn folding_unites_what_file_systems_unite() {
        let fold = |text: &str| folded(&RepoPath::new(text).unwrap());
        assert_eq!(fold("README"), fold("readme"));
        assert_eq!(fold("caf\u{e9}"), fold("cafe\u{301}"));
        assert_ne!(fold("a"), fold("b"));
    }
}
