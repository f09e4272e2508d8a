//! What opencode does not tell over the protocol, read from its log on standard error.
//!
//! With a provider that refuses it tries again, for ever and in silence; with one that answers nothing it asks for the
//! next step twice a second. Its log names every request (`message=stream … small=false`) and every error. So many
//! requests without anything told of the work end the turn. Facts: opencode 1.18.33.

use serde_json::Value;

use super::super::acp::{Dialect, Finding, Refusal, RpcError, Stage};
use super::super::failure::{self, Speaker};
use super::super::notices::one_line;
use super::{AGENT, TESTED_VERSION};
use crate::job::access::Access;
use crate::{Failure, FailureCode};

const SPEAKER: Speaker<'_> = Speaker {
    agent: AGENT,
    log_in: "run `opencode auth login` in a terminal, or set the provider's key; then retry the job",
};

/// Measured: a `deny` of its permissions, such as that of directories outside the tree, and a tool that is not offered.
const REFUSALS: &[Refusal] = &[
    Refusal("The user has specified a rule which prevents you from using this specific tool call", ""),
    Refusal("Model tried to call unavailable tool", ""),
];

/// Requests that failed in a row, before the job gives up: 2, 4 and 8 seconds lie between them.
const REFUSED_MAX: u32 = 4;
/// Requests in a row that brought nothing, before the job gives up.
const EMPTY_MAX: u32 = 6;

/// What a read-only job's model may be offered.
const READING: [&str; 3] = ["glob", "grep", "read"];

/// opencode, in one launch.
#[derive(Debug)]
pub(super) struct Opencode {
    access: Access,
    /// Requests for the job's own model since something was told.
    requests: u32,
    /// Of them, those that failed; and the last reason.
    refused: u32,
    reason: Option<String>,
}

impl Opencode {
    pub(super) fn new(access: Access) -> Self {
        Self { access, requests: 0, refused: 0, reason: None }
    }

    /// What the last reason in its log means. Only of what may pass it tries again, and its log quotes the provider's
    /// words without the status: words that say nothing are those of a provider in trouble.
    fn refusal(&self) -> Failure {
        let reason = self.reason.as_deref().unwrap_or_default();
        let known = failure::of_sentence(SPEAKER, &one_line(reason));
        if known.code != FailureCode::HarnessFailed {
            return known;
        }
        Failure::new(
            FailureCode::ProviderUnreachable,
            format!("opencode's provider refused {} times in a row: {reason}", self.refused),
            "see whether the provider works, wait a little, then `pactify sub resume` or `retry` the job",
        )
    }

    fn gives_up(&self) -> Option<Failure> {
        if self.refused >= REFUSED_MAX {
            return Some(self.refusal());
        }
        (self.requests > EMPTY_MAX && self.refused == 0).then(|| {
            Failure::new(
                FailureCode::ProviderRefused,
                format!("opencode asked its provider {} times in a row and got nothing", self.requests),
                "see that the provider's address is right and speaks what opencode expects, then retry the job",
            )
        })
    }
}

impl Dialect for Opencode {
    fn speaker(&self) -> Speaker<'_> {
        SPEAKER
    }

    fn chooses_model(&self) -> bool {
        false
    }

    /// It names a model's variant, which is how hard it thinks, after the model.
    fn is_model(&self, wanted: &str, actual: &str) -> bool {
        actual.strip_prefix(wanted).is_some_and(|variant| variant.is_empty() || variant.starts_with('/'))
    }

    fn failure(&self, stage: Stage, error: &RpcError) -> Option<Failure> {
        // The last reason in its log says more than a number.
        let reason = self.reason.as_deref().filter(|_| stage == Stage::Prompt && error.message.len() < 40)?;
        Some(failure::of_sentence(SPEAKER, &one_line(reason)))
    }

    fn exit_failure(&self, stderr: &str) -> Option<Failure> {
        refused_config(stderr)
    }

    fn refusals(&self) -> &'static [Refusal] {
        REFUSALS
    }

    fn on_update(&mut self, update: &Value) -> Vec<Finding> {
        let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
        if matches!(kind, "agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "tool_call_update" | "plan") {
            (self.requests, self.refused) = (0, 0);
        }
        Vec::new()
    }

    fn on_tool(&mut self, name: &str) -> Vec<Finding> {
        if self.access == Access::Write || READING.contains(&name) {
            return Vec::new();
        }
        let message = format!(
            "opencode used {name} in a read-only job, where its model is offered nothing but {}",
            READING.join(", ")
        );
        let next = format!("use opencode {TESTED_VERSION} for read-only jobs, or another harness");
        vec![Finding::Contradiction(Failure::new(FailureCode::HarnessIncompatible, message, next))]
    }

    fn on_stderr(&mut self, line: &str) -> Vec<Finding> {
        if !line.contains("small=false") {
            return Vec::new();
        }
        if line.contains("message=\"stream error\"") {
            self.refused = self.refused.saturating_add(1);
            self.reason = line.split_once("error.error=").map(|(_, reason)| unquoted(reason));
        } else if line.contains("message=stream ") {
            self.requests = self.requests.saturating_add(1);
        }
        self.gives_up().map(Finding::GiveUp).into_iter().collect()
    }
}

/// What it says when it does not begin because of its configuration.
pub(super) fn refused_config(stderr: &str) -> Option<Failure> {
    let said = stderr.lines().find(|line| line.contains("onfig") && line.contains("invalid"))?;
    Some(Failure::new(
        FailureCode::InvalidConfig,
        format!("opencode does not accept its configuration: {}", one_line(said)),
        "correct [harnesses.opencode.config] in pactify's configuration; it is in opencode's own terms",
    ))
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = text.strip_prefix('"').and_then(|text| text.split('"').next()).unwrap_or(text);
    one_line(inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STREAM: &str =
        "timestamp=x level=INFO run=1 message=stream providerID=mock modelID=m session.id=s small=false agent=build";
    const ERROR: &str = "timestamp=x level=ERROR run=1 message=\"stream error\" providerID=mock modelID=m session.id=s \
                         small=false agent=build mode=primary error.error=\"AI_APICallError: mock says 500\"";

    fn dialect() -> Opencode {
        Opencode { access: Access::Write, requests: 0, refused: 0, reason: None }
    }

    fn given_up(findings: &[Finding]) -> Option<&Failure> {
        findings.iter().find_map(|finding| match finding {
            Finding::GiveUp(failure) => Some(failure),
            _ => None,
        })
    }

    #[test]
    fn a_provider_that_refuses_again_and_again_is_given_up() {
        let mut dialect = dialect();
        for _ in 1..REFUSED_MAX {
            assert!(dialect.on_stderr(STREAM).is_empty() && dialect.on_stderr(ERROR).is_empty());
        }
        // A title's failure is none of the turn's.
        assert!(dialect.on_stderr(&ERROR.replace("small=false", "small=true")).is_empty());
        let findings = dialect.on_stderr(ERROR);
        let failure = given_up(&findings).unwrap();
        assert_eq!(failure.code, FailureCode::ProviderUnreachable);
        assert!(failure.message.contains("mock says 500"), "{failure:?}");
    }

    #[test]
    fn answers_without_anything_are_a_loop_and_work_is_none() {
        let mut dialect = dialect();
        for _ in 0..EMPTY_MAX {
            assert!(dialect.on_stderr(STREAM).is_empty());
        }
        dialect.on_update(&json!({"sessionUpdate": "agent_message_chunk"}));
        for _ in 0..EMPTY_MAX {
            assert!(dialect.on_stderr(STREAM).is_empty());
        }
        dialect.on_update(&json!({"sessionUpdate": "usage_update"}));
        let findings = dialect.on_stderr(STREAM);
        assert!(given_up(&findings).unwrap().message.contains("got nothing"), "{findings:?}");
    }
}
