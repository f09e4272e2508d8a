//! What a repository or a brief proposes to run, and what the person said to it.

use pactify_core::brief::{Brief, FrontMatter};
use pactify_core::config::Settings;
use pactify_core::display::headline;
use pactify_core::job::setup::{self, ApprovalKind, Decision, FILE, Setup};
use pactify_core::job::verify::{self, Check};
use pactify_core::job::{Base, RepositoryRecord};
use pactify_core::protocol::{ApproveParams, Approved, view};
use pactify_core::{AbsPath, Failure, FailureCode};

use super::{Jobs, invalid, local_path};
use crate::approvals::{Approvals, Subject};
use crate::config;

/// What is known of commands that are proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The repository's checkout.
    pub repository: AbsPath,
    /// The exact text that is proposed.
    pub text: String,
    /// What was decided about it.
    pub decision: Option<Decision>,
}

impl Jobs {
    /// Keeps what the person decided about a text that is proposed.
    pub fn approve(&self, params: &ApproveParams) -> Result<Approved, Failure> {
        self.refuse_inside_a_job()?;
        let uri = params.repository.as_deref();
        let folder = local_path("repository", uri.ok_or_else(|| invalid("repository: name a folder of it"))?)?;
        let text = checked(params.kind, &params.text).map_err(|why| invalid(format!("text: {why}")))?;
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
        let decision = self.decision(ApprovalKind::Setup, &examined.repository, &text)?;
        Ok(Some(Proposal { repository: examined.repository.worktree, text, decision }))
    }

    /// What the front matter of `brief` proposes to run beyond what the configuration names for the repository of
    /// `folder`, if it does.
    pub fn proposal_of(&self, brief: &str, folder: &str) -> Result<Option<Proposal>, Failure> {
        let brief = Brief::new(brief).map_err(|error| invalid(format!("brief: {error}")))?;
        let repository = self.git()?.examine(&local_path("repository", folder)?)?.repository;
        let (proposed, settings) = (front_matter(&brief)?, config::load(self.env())?.repository(&repository));
        let named = verify::Named { asked: None, configured: &settings.verify, proposed: &proposed.verify };
        let Some(text) = named.question() else { return Ok(None) };
        let decision = self.decision(ApprovalKind::Verify, &repository, &text)?;
        Ok(Some(Proposal { repository: repository.worktree, text, decision }))
    }

    /// The verification of a new job; `asked` is what the person names for it.
    ///
    /// # Errors
    /// [`FailureCode::ApprovalRequired`], and what cannot be run.
    pub(super) fn verification(
        &self,
        settings: &Settings,
        repository: &RepositoryRecord,
        brief: &Brief,
        asked: Option<&[String]>,
    ) -> Result<Vec<Check>, Failure> {
        let asked = asked.map(verify::check).transpose().map_err(|why| invalid(format!("verify: {why}")))?;
        let (configured, proposed) = (settings.repository(repository).verify, front_matter(brief)?.verify);
        let named = verify::Named { asked: asked.as_deref(), configured: &configured, proposed: &proposed };
        let decide = |text: String| self.decision(ApprovalKind::Verify, repository, &text);
        let decision = named.question().map(decide).transpose()?.flatten();
        named.resolve(&repository.worktree, decision)
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
        let decision =
            proposed.as_deref().map(|text| self.decision(ApprovalKind::Setup, repository, text)).transpose()?.flatten();
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

    fn decision(
        &self,
        kind: ApprovalKind,
        repository: &RepositoryRecord,
        text: &str,
    ) -> Result<Option<Decision>, Failure> {
        let text = text.to_owned();
        let subject = Subject { kind, repository: repository.common_dir.clone(), text };
        Ok(Approvals::open(self.store())?.decision(&subject)?)
    }
}

/// What to say at once of commands that are not run.
pub(super) fn notices(setup: Option<&Setup>, verify: &[Check]) -> Vec<String> {
    let denied = setup.filter(|setup| setup.decision == Decision::Deny);
    denied.map(|setup| setup.denied()).into_iter().chain(verify::denied(verify)).collect()
}

/// A text as it may be approved.
fn checked(kind: ApprovalKind, text: &str) -> Result<Option<String>, String> {
    match kind {
        ApprovalKind::Setup => setup::check(text),
        ApprovalKind::Verify => {
            let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
            let kept = verify::check(&lines)?;
            Ok((!kept.is_empty()).then(|| kept.join("\n")))
        }
    }
}

fn front_matter(brief: &Brief) -> Result<FrontMatter, Failure> {
    brief
        .front_matter()
        .map_err(|why| invalid(format!("brief: its front matter cannot be used: {}", headline(&why, 300))))
}
