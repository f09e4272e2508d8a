//! The command that makes a fresh tree ready to be worked in, and who may say what it is.
//!
//! A person's configuration may name one for a repository: it is approved by being there. A repository may propose one
//! in its [`FILE`]; it runs only after the person approved that exact text for that repository. Keeping approvals and
//! running the command is the engine's work.

use serde::{Deserialize, Serialize};

use crate::display;
use crate::protocol::view::file_uri;
use crate::{AbsPath, Failure, FailureCode};

/// The repository's own file, at its top.
pub const FILE: &str = "pactify.toml";

/// No command is longer, in bytes.
pub const MAX_BYTES: usize = 4096;

/// The setup command of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Setup {
    /// The text, for a shell.
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
    /// The repository's [`FILE`].
    Repository,
}

/// What a person decided about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// It may run.
    Allow,
    /// It must not run; jobs go on without it.
    Deny,
}

/// What an approval is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ApprovalKind {
    /// The command that makes a tree ready.
    Setup,
    /// The commands that a result has to pass, one a line.
    Verify,
}

/// A question that only the person can answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// What it is about.
    pub kind: ApprovalKind,
    /// The repository, as a `file:` URI.
    pub repository: String,
    /// The exact text. Nothing in it deceives when it is shown.
    pub text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawFile {
    #[serde(default)]
    tree: RawTree,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawTree {
    setup: Option<String>,
}

/// The command that the text of a [`FILE`] proposes. Keys that this build does not know are left to others.
pub fn proposed(text: &str) -> Result<Option<String>, Failure> {
    let raw: RawFile = toml::from_str(text).map_err(|error| invalid(error.message()))?;
    raw.tree
        .setup
        .as_deref()
        .map_or(Ok(None), |command| check(command).map_err(|why| invalid(&format!("setup: {why}"))))
}

impl Setup {
    /// What a person is told of a job that runs without it.
    pub fn denied(&self) -> String {
        format!("the repository's setup command is not run, as you decided: {}", display::headline(&self.command, 200))
    }
}

/// A command as it may be kept: `None` for an empty one.
///
/// # Errors
/// A reason, for a text that is too long, or that does not look like what it is.
pub fn check(command: &str) -> Result<Option<String>, String> {
    let command = command.trim();
    if command.len() > MAX_BYTES {
        return Err(format!("it has {} bytes, more than {MAX_BYTES}", command.len()));
    }
    if display::neutral_block(command) != command {
        return Err("it has characters that cannot be seen, or that change what is seen".to_owned());
    }
    Ok((!command.is_empty()).then(|| command.to_owned()))
}

/// The setup of a new job: the person's own command before the repository's, which needs a decision.
///
/// # Errors
/// [`FailureCode::ApprovalRequired`], with the question.
pub fn resolve(
    repository: &AbsPath,
    configured: Option<&str>,
    proposed: Option<String>,
    decision: Option<Decision>,
) -> Result<Option<Setup>, Failure> {
    if let Some(command) = configured {
        let allowed = |command: &str| Setup {
            command: command.to_owned(),
            from: Source::Configuration,
            decision: Decision::Allow,
        };
        return Ok((!command.is_empty()).then(|| allowed(command)));
    }
    let Some(command) = proposed else { return Ok(None) };
    match decision {
        Some(decision) => Ok(Some(Setup { command, from: Source::Repository, decision })),
        None => Err(required(repository, command)),
    }
}

fn required(repository: &AbsPath, text: String) -> Failure {
    let message =
        format!("{FILE} of {repository} wants to run a command in each new tree, and you have not approved it: {text}");
    let next =
        "allow exactly this text with `pactify sub approve`, or run jobs without it: `pactify sub approve --deny`";
    let repository = file_uri(repository.as_path());
    Failure::new(FailureCode::ApprovalRequired, message, next).asking(Approval {
        kind: ApprovalKind::Setup,
        repository,
        text,
    })
}

fn invalid(why: &str) -> Failure {
    Failure::new(
        FailureCode::InvalidConfig,
        format!("the repository's {FILE} cannot be used: {}", display::headline(why, 300)),
        "correct it and commit it, or name the command yourself: [repositories.\"/path\"] setup in your configuration",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> AbsPath {
        AbsPath::new("/repo").unwrap()
    }

    #[test]
    fn a_file_proposes_one_command_that_looks_like_what_it_is() {
        let long = format!("[tree]\nsetup = \"{}\"", "x".repeat(5000));
        for (text, expected) in [
            ("", Ok(None)),
            ("[tree]\nother = 1\n[future]\nkey = 2", Ok(None)),
            ("[tree]\nsetup = \" \"", Ok(None)),
            ("[tree]\nsetup = \" npm ci \"", Ok(Some("npm ci"))),
            ("[tree]\nsetup = \"\"\"\nmake deps\n\tmake\n\"\"\"", Ok(Some("make deps\n\tmake"))),
            ("[tree]\nsetup = 1", Err("invalid type")),
            ("[tree", Err("cannot be used")),
            ("[tree]\nsetup = \"ls \\u202e\"", Err("cannot be seen")),
            ("[tree]\nsetup = \"ls\\u001b[2K\"", Err("cannot be seen")),
            (&long, Err("5000 bytes")),
        ] {
            match (proposed(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.as_deref(), expected, "{text}"),
                (Err(failure), Err(named)) => assert!(failure.message.contains(named), "{text}: {}", failure.message),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn the_person_s_word_comes_first_and_a_repository_s_needs_one() {
        let setup = |command: &str, from, decision| Some(Setup { command: command.into(), from, decision });
        let (allow, deny) = (Decision::Allow, Decision::Deny);
        for (configured, proposed, decision, expected) in [
            (None, None, None, None),
            (Some("mine"), Some("theirs"), None, setup("mine", Source::Configuration, allow)),
            (Some(""), Some("theirs"), None, None),
            (None, Some("theirs"), Some(allow), setup("theirs", Source::Repository, allow)),
            (None, Some("theirs"), Some(deny), setup("theirs", Source::Repository, deny)),
        ] {
            let found = resolve(&repository(), configured, proposed.map(str::to_owned), decision);
            assert_eq!(found.unwrap(), expected);
        }
        let refused = resolve(&repository(), None, Some("theirs\nmore".into()), None).unwrap_err();
        assert_eq!(refused.code, FailureCode::ApprovalRequired);
        let asked = refused.approval.unwrap();
        assert_eq!((asked.repository.as_str(), asked.text.as_str()), ("file:///repo", "theirs\nmore"));
    }
}
