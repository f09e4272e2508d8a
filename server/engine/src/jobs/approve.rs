//! What a repository proposes to run, and what the person said to it.

use pactify_core::config::Settings;
use pactify_core::job::setup::{self, ApprovalKind, Decision, FILE, Setup};
use pactify_core::job::{Base, RepositoryRecord};
use pactify_core::protocol::{ApproveParams, Approved, view};
use pactify_core::{AbsPath, Failure, FailureCode};

use super::{Jobs, invalid, local_path};
use crate::approvals::{Approvals, Subject};

/// What is known of a repository's setup command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The repository's checkout.
    pub repository: AbsPath,
    /// The exact text that the repository proposes.
    pub text: String,
    /// What was decided about it.
    pub decision: Option<Decision>,
}

impl Jobs {
    /// Keeps what the person decided about a text that a repository proposes.
    pub fn approve(&self, params: &ApproveParams) -> Result<Approved, Failure> {
        self.refuse_inside_a_job()?;
        let uri = params.repository.as_deref();
        let folder = local_path("repository", uri.ok_or_else(|| invalid("repository: name a folder of it"))?)?;
        let text = setup::check(&params.text).map_err(|why| invalid(format!("text: {why}")))?;
        let text =
            text.filter(|text| *text == params.text).ok_or_else(|| invalid("text: repeat it as it was shown"))?;
        let repository = self.git()?.examine(&folder)?.repository;
        let subject = Subject { kind: params.kind, repository: repository.common_dir, text };
        Approvals::open(self.store())?.decide(subject, params.decision, self.env().now())?;
        let repository = view::file_uri(repository.worktree.as_path());
        Ok(Approved { repository, kind: params.kind, decision: params.decision })
    }

    /// What the repository of `folder` proposes to run in each new tree, if it does.
    pub fn proposal(&self, folder: &str) -> Result<Option<Proposal>, Failure> {
        let examined = self.git()?.examine(&local_path("repository", folder)?)?;
        let Some(text) = self.proposed(&examined.repository, &examined.head)? else { return Ok(None) };
        let decision = self.decision(&examined.repository, &text)?;
        Ok(Some(Proposal { repository: examined.repository.worktree, text, decision }))
    }

    /// The setup of a new job.
    ///
    /// # Errors
    /// [`FailureCode::ApprovalRequired`].
    pub(super) fn setup(
        &self,
        settings: &Settings,
        repository: &RepositoryRecord,
        base: &Base,
    ) -> Result<Option<Setup>, Failure> {
        let configured = settings.repository(repository).setup;
        let proposed = if configured.is_none() { self.proposed(repository, base)? } else { None };
        let decision = proposed.as_deref().map(|text| self.decision(repository, text)).transpose()?.flatten();
        setup::resolve(&repository.worktree, configured.as_deref(), proposed, decision)
    }

    fn proposed(&self, repository: &RepositoryRecord, base: &Base) -> Result<Option<String>, Failure> {
        let Some(text) = self.git()?.tracked(repository, base, FILE)? else { return Ok(None) };
        let text = String::from_utf8(text).map_err(|_| {
            let next = "save it as UTF-8 and commit it";
            Failure::new(FailureCode::InvalidConfig, format!("the repository's {FILE} is no text"), next)
        })?;
        setup::proposed(&text)
    }

    fn decision(&self, repository: &RepositoryRecord, text: &str) -> Result<Option<Decision>, Failure> {
        let (kind, text) = (ApprovalKind::Setup, text.to_owned());
        let subject = Subject { kind, repository: repository.common_dir.clone(), text };
        Ok(Approvals::open(self.store())?.decision(&subject)?)
    }
}

/// What to say of a setup command at once.
pub(super) fn notices(setup: Option<&Setup>) -> Vec<String> {
    let denied = setup.filter(|setup| setup.decision == Decision::Deny);
    denied.map(|setup| setup.denied()).into_iter().collect()
}
