//! git's configuration files: their keys and values, and what a key can do.
//!
//! The grammar is that of `git help config`, read strictly: what git would refuse is an error here, and a file that
//! cannot be understood is compared whole. Includes are not followed; the engine looks at the files they name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Weight;

/// One value of a key; `None` for a key without `=`, which counts as true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value(pub Option<String>);

/// The text is not what git reads as configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not understood")]
pub struct ConfigError {
    /// From 1.
    pub line: usize,
}

/// Every key with its values in order. Keys are written as git does: section and name in lower case, the subsection as
/// it is.
///
/// # Errors
/// When any line is not understood, or is no UTF-8.
pub fn parse(text: &[u8]) -> Result<BTreeMap<String, Vec<Value>>, ConfigError> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let line = text[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        ConfigError { line }
    })?;
    let mut scanner = Scanner { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
    let (mut section, mut found) = (None::<String>, BTreeMap::<String, Vec<Value>>::new());
    loop {
        scanner.skip(|c| c.is_ascii_whitespace());
        match scanner.peek() {
            None => return Ok(found),
            Some('#' | ';') => scanner.end_line(),
            Some('[') => section = Some(scanner.header()?),
            Some(_) => {
                let section = section.as_ref().ok_or(scanner.error())?;
                let name = scanner.name()?;
                let value = scanner.value()?;
                found.entry(format!("{section}.{name}")).or_default().push(Value(value));
            }
        }
    }
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        if next == '\r' && self.peek() == Some('\n') {
            self.rest = &self.rest[1..];
            next = '\n';
        }
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn skip(&mut self, what: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&what) {
            self.next();
        }
    }

    /// Goes behind the line's end; one of `\r\n` counts, or a comment would hide the line after it.
    fn end_line(&mut self) {
        while !matches!(self.next(), None | Some('\n')) {}
    }

    fn error(&self) -> ConfigError {
        ConfigError { line: self.line }
    }

    fn header(&mut self) -> Result<String, ConfigError> {
        self.next();
        let mut section = String::new();
        loop {
            match self.next().ok_or(self.error())? {
                ']' if !section.is_empty() => return Ok(section),
                c @ ('a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.') => section.push(c.to_ascii_lowercase()),
                ' ' | '\t' if !section.is_empty() => break,
                _ => return Err(self.error()),
            }
        }
        self.skip(|c| matches!(c, ' ' | '\t'));
        if self.next() != Some('"') {
            return Err(self.error());
        }
        section.push('.');
        loop {
            match self.next().ok_or(self.error())? {
                '"' => break,
                '\n' => return Err(self.error()),
                '\\' => match self.next().ok_or(self.error())? {
                    '\n' => return Err(self.error()),
                    c => section.push(c),
                },
                c => section.push(c),
            }
        }
        if self.next() == Some(']') { Ok(section) } else { Err(self.error()) }
    }

    fn name(&mut self) -> Result<String, ConfigError> {
        let mut name = String::new();
        while let Some(c @ ('a'..='z' | 'A'..='Z' | '0'..='9' | '-')) = self.peek() {
            name.push(c.to_ascii_lowercase());
            self.next();
        }
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) { Ok(name) } else { Err(self.error()) }
    }

    fn value(&mut self) -> Result<Option<String>, ConfigError> {
        self.skip(|c| matches!(c, ' ' | '\t'));
        match self.next() {
            None | Some('\n') => return Ok(None),
            Some('=') => {}
            Some('#' | ';') => {
                self.end_line();
                return Ok(None);
            }
            Some(_) => return Err(self.error()),
        }
        self.skip(|c| matches!(c, ' ' | '\t'));
        let (mut value, mut solid, mut quoted) = (String::new(), 0, false);
        loop {
            match self.next() {
                None | Some('\n') if quoted => return Err(self.error()),
                None | Some('\n') => break,
                Some('"') => quoted = !quoted,
                Some('#' | ';') if !quoted => {
                    self.end_line();
                    break;
                }
                Some('\\') => {
                    match self.next().ok_or(self.error())? {
                        '\n' => continue,
                        'n' => value.push('\n'),
                        't' => value.push('\t'),
                        'b' => value.push('\u{8}'),
                        c @ ('\\' | '"') => value.push(c),
                        _ => return Err(self.error()),
                    }
                    solid = value.len();
                }
                Some(c) => {
                    value.push(c);
                    if quoted || !c.is_ascii_whitespace() {
                        solid = value.len();
                    }
                }
            }
        }
        value.truncate(solid);
        Ok(Some(value))
    }
}

/// Keys by which git starts programs, reads other files as configuration, goes to other places, or stops working. `*`
/// stands for a whole subsection, a trailing `*` for any name.
const DANGEROUS: &[&str] = &[
    "alias.*",
    "browser.*.cmd",
    "browser.*.path",
    "commit.gpgprogram",
    "core.alternaterefscommand",
    "core.askpass",
    "core.attributesfile",
    "core.bare",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.repositoryformatversion",
    "core.sshcommand",
    "core.worktree",
    "credential.*",
    "credential.*.*",
    "diff.*.command",
    "diff.*.textconv",
    "diff.external",
    "difftool.*.cmd",
    "difftool.*.path",
    "extensions.*",
    "filter.*.*",
    "fsmonitor.*",
    "gc.recentobjectshook",
    "gpg.*",
    "gpg.*.*",
    "guitool.*.*",
    "hook.*.*",
    "http.*",
    "http.*.*",
    "imap.tunnel",
    "include.path",
    "includeif.*.*",
    "init.templatedir",
    "instaweb.*",
    "interactive.difffilter",
    "lfs.*.*",
    "lfs.standalonetransferagent",
    "lfs.url",
    "man.*.cmd",
    "man.*.path",
    "merge.*.driver",
    "mergetool.*.cmd",
    "mergetool.*.path",
    "pager.*",
    "protocol.*",
    "protocol.*.*",
    "receive.procreceiverefs",
    "remote.*.proxy",
    "remote.*.pushurl",
    "remote.*.receivepack",
    "remote.*.uploadpack",
    "remote.*.url",
    "remote.*.vcs",
    "sendemail.*",
    "sendemail.*.*",
    "sequence.editor",
    "submodule.*.update",
    "submodule.*.url",
    "tar.*.command",
    "trailer.*.cmd",
    "trailer.*.command",
    "uploadpack.packobjectshook",
    "url.*.*",
    "web.browser",
];

/// Keys among [`ORDINARY`] that say where a later push goes.
const NOTABLE: &[&str] = &["branch.*.pushremote"];

/// Keys that ordinary work changes and that can do nothing.
const ORDINARY: &[&str] = &["advice.*", "branch.*.*", "color.*", "color.*.*", "column.*", "gui.*"];

/// What a change of `key` means.
pub fn weight(key: &str) -> Weight {
    if DANGEROUS.iter().any(|pattern| matches(pattern, key)) {
        Weight::Dangerous
    } else if NOTABLE.iter().any(|pattern| matches(pattern, key)) {
        Weight::Notable
    } else if ORDINARY.iter().any(|pattern| matches(pattern, key)) {
        Weight::Ordinary
    } else {
        Weight::Notable
    }
}

/// Whether a value of the key may be shown: those that can hold a secret are not.
pub fn is_shown(key: &str, value: &str) -> bool {
    let secret = ["credential.", "http.", "sendemail.", "imap.", "url.", "remote.", "submodule.", "lfs."];
    !secret.iter().any(|section| key.starts_with(section)) && !value.contains("://")
}

fn matches(pattern: &str, key: &str) -> bool {
    let (Some((section, rest)), Some((of_key, subsection, name))) = (pattern.split_once('.'), split(key)) else {
        return false;
    };
    if section != of_key {
        return false;
    }
    match (rest.rsplit_once('.'), subsection) {
        (None, None) => rest == "*" || rest == name,
        (Some((sub, wanted)), Some(subsection)) => {
            (sub == "*" || sub.eq_ignore_ascii_case(subsection)) && (wanted == "*" || wanted == name)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// A key as section, subsection and name.
fn split(key: &str) -> Option<(&str, Option<&str>, &str)> {
    let (section, rest) = key.split_once('.')?;
    Some(match rest.rsplit_once('.') {
        None => (section, None, rest),
        Some((subsection, name)) => (section, Some(subsection), name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Vec<Option<String>>)> {
        let parsed = parse(text.as_bytes()).unwrap();
        parsed.into_iter().map(|(key, values)| (key, values.into_iter().map(|value| value.0).collect())).collect()
    }

    fn some(value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    #[test]
    fn files_are_read_as_git_reads_them() {
        type Keys = &'static [(&'static str, &'static [Option<&'static str>])];
        let cases: &[(&str, Keys)] = &[
            ("", &[]),
            ("[core]\n\tbare = false\n", &[("core.bare", &[Some("false")])]),
            ("[Core]\nBARE", &[("core.bare", &[None])]),
            (
                "[a \"B.c\\\"]d\"] x=1 ; note\r\n y = \"# \" z # no\n",
                &[("a.B.c\"]d.x", &[Some("1")]), ("a.B.c\"]d.y", &[Some("#  z")])],
            ),
            ("[a.Sub]\nx = one \\\n two\nx = \"a\\tb\"\n", &[("a.sub.x", &[Some("one  two"), Some("a\tb")])]),
            ("[a] x = 1\n[b]\n# c\n[a]\nx=2", &[("a.x", &[Some("1"), Some("2")])]),
            ("\u{feff}[a]\nx =\n", &[("a.x", &[Some("")])]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> = expected
                .iter()
                .map(|(key, values)| ((*key).to_owned(), values.iter().map(|value| value.and_then(some)).collect()))
                .collect();
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_git_refuses_is_not_guessed() {
        for text in [
            "x = 1",
            "[a\nx = 1",
            "[a]\n1x = 2",
            "[a]\nx = \"open\n",
            "[a]\nx = \\q",
            "[a \"b]\nx=1",
            "[a]\nx y",
            "[]\nx=1",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert_eq!(parse(b"[a]\nx = \xff\n"), Err(ConfigError { line: 2 }));
    }

    #[test]
    fn keys_are_weighed_by_what_they_can_do() {
        use Weight as W;
        for (key, weight) in [
            ("core.fsmonitor", W::Dangerous),
            ("core.bare", W::Dangerous),
            ("hook.Any.Name.command", W::Dangerous),
            ("filter.x.clean", W::Dangerous),
            ("url.https://evil/.insteadof", W::Dangerous),
            ("includeif.gitdir:~/x/.path", W::Dangerous),
            ("alias.st", W::Dangerous),
            ("credential.helper", W::Dangerous),
            ("remote.origin.url", W::Dangerous),
            ("lfs.customtransfer.any.path", W::Dangerous),
            ("lfs.customtransfer.any.name.path", W::Dangerous),
            ("lfs.extension.x.clean", W::Dangerous),
            ("lfs.https://evil/x.y.access", W::Dangerous),
            ("lfs.standalonetransferagent", W::Dangerous),
            ("remote.origin.fetch", W::Notable),
            ("remote.pushdefault", W::Notable),
            ("branch.main.pushremote", W::Notable),
            ("core.excludesfile", W::Notable),
            ("something.new", W::Notable),
            ("branch.main.remote", W::Ordinary),
            ("branch.a.b.merge", W::Ordinary),
        ] {
            assert_eq!(super::weight(key), weight, "{key}");
        }
    }
}
