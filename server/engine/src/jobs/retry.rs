//! A new job from an older one: what the person says of it counts, else what the older job was.
//!
//! What belongs to something that is another now is not taken over: a model to its harness, the person's configuration
//! to harness and access, a verification and who is asked to a job that writes. How the job is made, and what can stand
//! in its way, is [`super::delegate`]'s business.

use pactify_core::config::Settings;
use pactify_core::job::access::Access;
use pactify_core::job::verify::Source;
use pactify_core::job::{JobSpec, Place, RepositoryRecord};
use pactify_core::protocol::{BriefSource, Delegated, HarnessChoice, RetryParams};
use pactify_core::{Failure, JobId};

use super::base::UnsavedText;
use super::delegate::{self, Site, Wish, known_harness};
use super::unnamed::Picked;
use super::{Jobs, job_id};
use crate::config;

impl Jobs {
    /// A new job from what an older one was, but for what `params` say, and from what the repository, the checkout and
    /// the editor hold now. `unsaved` as in [`Self::delegate`].
    pub fn retry(&self, params: &RetryParams, unsaved: Option<&[UnsavedText]>) -> Result<Delegated, Failure> {
        self.refuse_inside_a_job()?;
        let id = job_id(&params.job_id)?;
        let old = self.store().job(&id)?.spec()?;
        let settings = config::load(self.env())?;
        let wish = wish(id, &old, params, &settings)?;
        let mut examined = self.git()?.examine(&old.repository.worktree)?;
        examined.repository = RepositoryRecord { prefix: old.repository.prefix, ..examined.repository };
        self.make(wish, &settings, examined, unsaved)
    }
}

fn wish(id: JobId, old: &JobSpec, params: &RetryParams, settings: &Settings) -> Result<Wish, Failure> {
    let brief = params.brief.clone().map(|text| delegate::brief(&BriefSource::Text(text))).transpose()?;
    let name = params.harness.as_deref().unwrap_or(old.harness.as_str());
    let (harness, of_harness) = known_harness(name, settings)?;
    let access = params.access.unwrap_or(old.access);
    let is_same_harness = harness.name() == old.harness;
    let is_same = is_same_harness && access == old.access;
    // Whoever names a base means a tree.
    let looked_in_place = old.place == Place::Checkout && access == Access::ReadOnly && params.base.is_none();
    let site = match (params.in_place.unwrap_or(looked_in_place), old.place) {
        (true, _) => delegate::checkout(access, params.base, None)?,
        (false, Place::Tree) => Site::Tree { base: params.base.unwrap_or(old.base.kind), isolation: old.isolation },
        (false, Place::Checkout) => {
            Site::Tree { base: params.base.unwrap_or(settings.base), isolation: settings.isolation }
        }
    };
    let writes = access == Access::Write;
    let named = delegate::named_model(params.model.as_deref());
    Ok(Wish {
        brief: brief.unwrap_or_else(|| old.brief.clone()),
        picked: Picked { harness, settings: of_harness, found: None, choice: HarnessChoice::Named, notice: None },
        model: named.or_else(|| old.model.clone().filter(|_| is_same_harness)),
        with_user_config: params.with_user_config.unwrap_or(is_same && old.with_user_config),
        access,
        site,
        verify: params.verify.clone().or_else(|| asked(old).filter(|_| writes)),
        permissions: params.permissions.or((writes && old.access == Access::Write).then_some(old.permissions)),
        limits: old.limits,
        retry_of: Some(id),
    })
}

/// What the person wanted the older job to pass, in the place of what is configured.
fn asked(old: &JobSpec) -> Option<Vec<String>> {
    let asked = old.verify.iter().filter(|check| check.from == Source::Person).map(|check| check.command.clone());
    let asked: Vec<String> = asked.collect();
    (old.no_verify || !asked.is_empty()).then_some(asked)
}
