//! The person's logins: what jobs do with them, what is in the quarantine, and those that pactify keeps itself.

use pactify_core::harness::{Harness, HarnessSettings, registry};
use pactify_core::job::RepositoryRecord;
use pactify_core::protocol::{LoginInUse, LoginList, LoginRestored, QuarantinedLogin};
use pactify_core::{Failure, FailureCode};

use super::delegate::unknown_harness;
use super::{Jobs, local_path};
use crate::causes::with_causes;
use crate::harness::Found;
use crate::logins::Logins;
use crate::logins::quarantine::Quarantine;
use crate::process::{EnvPolicy, Invocation};
use crate::{config, harness};

impl Jobs {
    /// Logins in the quarantine, and those in use.
    pub fn logins(&self) -> Result<LoginList, Failure> {
        let quarantined = Quarantine::open(self.store())?.list()?.into_iter().map(|(id, kept)| QuarantinedLogin {
            id,
            harness: kept.harness.to_string(),
            job_id: kept.job.to_string(),
            login: kept.login.to_string(),
            at: kept.at,
            why: kept.why,
        });
        let in_use = Logins::open(self.store())?.uses_of(None)?.into_iter().map(|using| LoginInUse {
            harness: using.harness.to_string(),
            job_id: using.job.to_string(),
            login: using.login.to_string(),
        });
        Ok(LoginList { quarantined: quarantined.collect(), in_use: in_use.collect() })
    }

    /// Puts a login of the quarantine where it belongs; what stands there takes its place.
    pub fn restore_login(&self, id: &str) -> Result<LoginRestored, Failure> {
        self.refuse_inside_a_job()?;
        let (login, replaced) = Logins::open(self.store())?.restore(id, self.env().now())?;
        Ok(LoginRestored { id: id.to_owned(), login: login.to_string(), replaced })
    }

    /// Takes a login out of the quarantine for good.
    pub fn discard_login(&self, id: &str) -> Result<(), Failure> {
        self.refuse_inside_a_job()?;
        Ok(Quarantine::open(self.store())?.remove(id)?)
    }

    /// Runs a harness's own login in the private home that pactify keeps for it, with the person at the terminal;
    /// returns whether it ended well. A program that lies in the repository around `folder` is not run.
    pub fn log_in(&self, name: &str, folder: Option<&str>) -> Result<bool, Failure> {
        self.refuse_inside_a_job()?;
        let all = config::load(self.env())?;
        let parsed = name.parse().map_err(|_| unknown_harness(name, &all))?;
        let settings = all.harness_settings(&parsed);
        let harness = registry::find(&parsed, &settings).ok_or_else(|| unknown_harness(name, &all))?;
        let invocation = self.login_command(&*harness, &settings, self.around(folder).as_ref())?;
        let status = invocation.attend().map_err(|error| {
            let next = format!("see that {name} runs in a terminal");
            Failure::new(FailureCode::LaunchFailed, with_causes(&error), next)
        })?;
        Ok(status.success())
    }

    /// The repository around a folder, which the programs of harnesses must not lie in.
    pub(super) fn around(&self, folder: Option<&str>) -> Option<RepositoryRecord> {
        let folder = local_path("repository", folder?).ok()?;
        self.git().ok()?.around(&folder)
    }

    fn login_command(
        &self,
        harness: &dyn Harness,
        settings: &HarnessSettings,
        around: Option<&RepositoryRecord>,
    ) -> Result<Invocation, Failure> {
        let Found { program, env, .. } = harness::find(self.env(), harness, settings, around)?;
        let version = harness::version(&env, harness, settings, &program)?;
        let Some(login) = harness.kept_login(version.as_deref()) else {
            let message =
                format!("pactify keeps no login of its own for {}: jobs use yours, where it is", harness.name());
            let next = format!("log in with {} itself", harness.name());
            return Err(Failure::new(FailureCode::InvalidParams, message, next));
        };
        let home = self.store().kept_home(&harness.name(), &login)?;
        let mut environment = EnvPolicy::harness(&settings.environment).filter(env.variables());
        for (variable, folder) in login.variables {
            environment.set(*variable, home.path().join(folder).as_path().as_os_str());
        }
        Ok(program.invocation(home.path().clone(), environment).args(login.args))
    }
}
