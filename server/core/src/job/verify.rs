//! The commands that say whether a result is good, and who may name them.
//!
//! A person's configuration names them for a repository, or the person does for one job: both are approved by that. A
//! brief may propose some in its front matter ([`crate::brief`]), since it may have been written by anybody: they run
//! only after the person approved exactly that text for that repository. What a repository looks like it could be
//! verified with is suggested ([`suggestion`]), and never run. Running them is the engine's work.

use serde::{Deserialize, Serialize};

use super::setup::{self, Approval, ApprovalKind, Decision};
use crate::display;
use crate::protocol::view::file_uri;
use crate::{AbsPath, Failure, FailureCode};

/// A job has no more of them.
pub const MOST: usize = 16;

/// One command of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// The text, for a shell: one line.
    pub command: String,
    /// Where it comes from.
    pub from: Source,
    /// Whether it runs.
    pub decision: Decision,
}

/// Who named a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// The person's configuration.
    Configuration,
    /// The person, for this job.
    Person,
    /// The brief.
    Brief,
}

/// What was named for one job, by whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named<'a> {
    /// By the person for this job: then nothing else counts, even when it is empty.
    pub asked: Option<&'a [String]>,
    /// By the person's configuration.
    pub configured: &'a [String],
    /// By the brief.
    pub proposed: &'a [String],
}

/// Commands as they may be kept, without empty ones.
///
/// # Errors
/// A reason, for too many of them, or one that is not a line that looks like what it is.
pub fn check(commands: &[String]) -> Result<Vec<String>, String> {
    let mut kept = Vec::new();
    for command in commands {
        // One line each: a list of them is approved as one text, in which none can hide.
        if command.trim().contains(['\n', '\t']) {
            return Err("a command is one line; put more into a script of the repository".to_owned());
        }
        kept.extend(setup::check(command)?);
    }
    match kept.len() {
        0..=MOST => Ok(kept),
        count => Err(format!("there are {count} commands, more than {MOST}")),
    }
}

impl Named<'_> {
    /// The exact text that only the person can decide about, if there is one.
    pub fn question(&self) -> Option<String> {
        let open: Vec<&str> = self.open().collect();
        (!open.is_empty()).then(|| open.join("\n"))
    }

    /// The commands of a new job, given what was decided about [`Self::question`].
    ///
    /// # Errors
    /// [`FailureCode::ApprovalRequired`], with the question.
    pub fn resolve(&self, repository: &AbsPath, decision: Option<Decision>) -> Result<Vec<Check>, Failure> {
        let own = |command: &String, from| Check { command: command.clone(), from, decision: Decision::Allow };
        if let Some(asked) = self.asked {
            return Ok(asked.iter().map(|command| own(command, Source::Person)).collect());
        }
        let mut checks: Vec<Check> =
            self.configured.iter().map(|command| own(command, Source::Configuration)).collect();
        let Some(text) = self.question() else { return Ok(checks) };
        let Some(decision) = decision else { return Err(required(repository, text)) };
        let proposed = self.open();
        checks.extend(proposed.map(|command| Check { command: command.to_owned(), from: Source::Brief, decision }));
        Ok(checks)
    }

    /// What the brief adds to what the person named.
    fn open(&self) -> impl Iterator<Item = &str> {
        let proposed =
            self.proposed.iter().filter(|command| self.asked.is_none() && !self.configured.contains(command));
        proposed.map(String::as_str)
    }
}

/// What a person is told of a job whose brief proposed `checks` that they do not want.
pub fn denied(checks: &[Check]) -> Option<String> {
    let denied = checks.iter().filter(|check| check.decision == Decision::Deny);
    let denied: Vec<String> = denied.map(|check| display::headline(&check.command, 100)).collect();
    (!denied.is_empty()).then(|| format!("the brief's verification is not run, as you decided: {}", denied.join("; ")))
}

/// What a repository could be verified with, by the files at its top: `read` gives their contents.
pub fn suggestion<E>(mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>, E>) -> Result<Option<&'static str>, E> {
    if read("Cargo.toml")?.is_some() {
        return Ok(Some("cargo test"));
    }
    if let Some(text) = read("package.json")?
        && has_test_script(&text)
    {
        for (lock, command) in [("pnpm-lock.yaml", "pnpm test"), ("yarn.lock", "yarn test")] {
            if read(lock)?.is_some() {
                return Ok(Some(command));
            }
        }
        return Ok(Some("npm test"));
    }
    if read("go.mod")?.is_some() {
        return Ok(Some("go test ./..."));
    }
    for (file, word) in [("pytest.ini", ""), ("pyproject.toml", "pytest"), ("tox.ini", "pytest")] {
        if read(file)?.is_some_and(|text| String::from_utf8_lossy(&text).contains(word)) {
            return Ok(Some("pytest"));
        }
    }
    let has_target = |text: &[u8]| String::from_utf8_lossy(text).lines().any(|line| line.starts_with("test:"));
    Ok(read("Makefile")?.is_some_and(|text| has_target(&text)).then_some("make test"))
}

/// What npm puts there by itself is no test.
fn has_test_script(text: &[u8]) -> bool {
    let package: Option<serde_json::Value> = serde_json::from_slice(text).ok();
    let script = package.as_ref().and_then(|package| package.pointer("/scripts/test")?.as_str());
    script.is_some_and(|script| !script.trim().is_empty() && !script.contains("no test specified"))
}

/// The notice with a [`suggestion`].
pub fn suggested(command: &str) -> String {
    format!(
        "nothing verified the result; `{command}` looks like this repository's way to: name it with `--verify`, or as \
         `verify` of the repository in your configuration"
    )
}

fn required(repository: &AbsPath, text: String) -> Failure {
    let message = format!("the brief wants its result verified by commands that you have not approved: {text}");
    let next = "allow exactly this text with `pactify sub approve --brief FILE`, run the job without it (`--deny`), or name \
                commands of your own with `--verify`";
    let repository = file_uri(repository.as_path());
    Failure::new(FailureCode::ApprovalRequired, message, next).asking(Approval {
        kind: ApprovalKind::Verify,
        repository,
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(commands: &[&str]) -> Vec<String> {
        commands.iter().map(|command| (*command).to_owned()).collect()
    }

    #[test]
    fn commands_are_lines_that_look_like_what_they_are() {
        assert_eq!(check(&texts(&[" cargo test ", " "])).unwrap(), ["cargo test"]);
        for (commands, named) in [
            (texts(&["a\nb"]), "one line"),
            (texts(&["a\tb"]), "one line"),
            (texts(&["a\u{202e}b"]), "cannot be seen"),
            (vec!["x".to_owned(); 17], "17 commands"),
        ] {
            assert!(check(&commands).unwrap_err().contains(named), "{commands:?}");
        }
    }

    #[test]
    fn the_person_s_word_comes_first_and_a_brief_s_needs_one() {
        let repository = AbsPath::new("/repo").unwrap();
        let (mine, theirs, none) = (texts(&["mine"]), texts(&["mine", "theirs", "more"]), texts(&[]));
        let told = |named: Named<'_>, decision| {
            let checks = named.resolve(&repository, decision)?;
            let one = |check: &Check| format!("{}:{:?}:{:?}", check.command, check.from, check.decision);
            Ok::<_, Failure>(checks.iter().map(one).collect::<Vec<_>>().join(" "))
        };
        let both = Named { asked: None, configured: &mine, proposed: &theirs };
        assert_eq!(both.question().as_deref(), Some("theirs\nmore"));
        for (named, decision, expected) in [
            (Named::default(), None, ""),
            (Named { configured: &mine, ..Named::default() }, None, "mine:Configuration:Allow"),
            (Named { asked: Some(&mine), ..both }, None, "mine:Person:Allow"),
            (Named { asked: Some(&none), ..both }, None, ""),
            (both, Some(Decision::Allow), "mine:Configuration:Allow theirs:Brief:Allow more:Brief:Allow"),
            (both, Some(Decision::Deny), "mine:Configuration:Allow theirs:Brief:Deny more:Brief:Deny"),
            (Named { proposed: &mine, ..both }, None, "mine:Configuration:Allow"),
        ] {
            assert_eq!(told(named, decision).unwrap(), expected);
        }
        let refused = told(both, None).unwrap_err();
        assert_eq!(refused.code, FailureCode::ApprovalRequired);
        let asked = refused.approval.unwrap();
        assert_eq!((asked.kind, asked.text.as_str()), (ApprovalKind::Verify, "theirs\nmore"));
    }

    #[test]
    fn what_a_repository_looks_like_is_suggested() {
        let package = |script: &str| format!("{{\"scripts\":{{\"test\":\"{script}\"}}}}");
        let default = "echo \\\"Error: no test specified\\\" && exit 1";
        type Case<'a> = (&'a [(&'a str, String)], Option<&'a str>);
        let cases: &[Case<'_>] = &[
            (&[], None),
            (&[("Cargo.toml", String::new())], Some("cargo test")),
            (&[("package.json", package("vitest"))], Some("npm test")),
            (&[("package.json", package("vitest")), ("pnpm-lock.yaml", String::new())], Some("pnpm test")),
            (&[("package.json", package(default))], None),
            (&[("package.json", "no json".to_owned()), ("go.mod", String::new())], Some("go test ./...")),
            (&[("pyproject.toml", "[tool.pytest.ini_options]".to_owned())], Some("pytest")),
            (&[("pyproject.toml", "[project]".to_owned())], None),
            (&[("Makefile", "all:\n\ntest: all\n\tprove".to_owned())], Some("make test")),
            (&[("Makefile", "latest:\n".to_owned())], None),
        ];
        for (files, expected) in cases {
            let read = |name: &str| {
                let found = files.iter().find(|(known, _)| *known == name);
                Ok::<_, ()>(found.map(|(_, text)| text.clone().into_bytes()))
            };
            assert_eq!(suggestion(read), Ok(*expected), "{files:?}");
        }
    }
}
