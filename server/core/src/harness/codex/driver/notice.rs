//! What people are told beside codex's events.

use super::super::super::notices;
use super::{Step, Work};
use crate::display::{self, head};

/// Decides which notices are worth telling.
#[derive(Debug, Default)]
pub(super) struct Notices {
    told: notices::Notices,
    retries: u32,
}

impl Notices {
    /// Tells `text` under `id`, unless the same was told before.
    pub(super) fn once(&mut self, id: &str, text: &str) -> Vec<Step> {
        self.told.once(id, text)
    }

    /// An event or item of a kind that this build does not know.
    pub(super) fn unknown(&mut self, what: &str, kind: &str) -> Vec<Step> {
        let kind = display::headline(head(kind, 400), 60);
        let id = format!("codex-unknown-{what}");
        self.once(&id, &format!("codex sent an {what} that this pactify does not know: {kind:?}"))
    }

    /// A warning in codex's own words.
    pub(super) fn warning(&mut self, words: &str) -> Vec<Step> {
        self.once("codex-warning", words)
    }

    /// One of codex's retries: the first, the second, the fourth … of a launch.
    pub(super) fn retry(&mut self, words: &str) -> Vec<Step> {
        self.retries = self.retries.saturating_add(1);
        if self.retries.is_power_of_two() { self.once("codex-retries", words) } else { Vec::new() }
    }

    /// A tool call that was refused before it started.
    pub(super) fn refused(&mut self, reason: &str) -> Vec<Step> {
        if reason.contains("read-only sandbox") {
            let note = "codex tried to change a file and was refused, as this job is read-only";
            return self.once("codex-write-refused", note);
        }
        self.once("codex-tool-refused", &format!("codex refused a call of the agent: {reason}"))
    }

    /// A login that could not be refreshed.
    pub(super) fn login(&mut self, reason: &str) -> Vec<Step> {
        self.once("codex-login-not-refreshed", &format!("codex could not refresh its login: {reason}"))
    }

    /// What the end of a turn hides: codex calls it complete whatever became of the work.
    pub(super) fn about(&mut self, work: Work) -> Vec<Step> {
        let Work { succeeded, failed, unsandboxed } = work;
        if unsandboxed > 0 {
            let note =
                format!("codex's sandbox could not start {unsandboxed} of {} steps", succeeded.saturating_add(failed));
            return self.once("codex-sandbox-failed", &note);
        }
        if succeeded == 0 && failed > 0 {
            return self.once("codex-all-failed", &format!("every command and edit of the agent failed ({failed})"));
        }
        Vec::new()
    }
}
