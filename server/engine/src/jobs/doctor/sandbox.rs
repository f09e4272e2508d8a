//! A harness's own sandbox, tried with a command and without a model: whether it works, and, when a person asks, which
//! jobs reach the network.

use std::time::Duration;

use pactify_core::doctor::{self, Address, Reach, failed};
use pactify_core::harness::{Confined, Harness, HarnessSettings};
use pactify_core::job::RepositoryRecord;
use pactify_core::protocol::Finding;
use pactify_core::{AbsPath, Failure};

use super::super::Jobs;
use crate::harness::{self, Found};
use crate::process::run::Overflow;
use crate::process::{EnvPolicy, Invocation, Limits};

/// Opens a connection to its second argument at its third one, and nothing else.
const CONNECT: &str = "exec 3<>\"/dev/tcp/$1/$2\"";

/// How long a connection may take.
const CONNECTING: Duration = Duration::from_secs(20);

impl Jobs {
    /// Whether a command runs in the sandbox, as is looked before each job.
    pub(super) fn check_sandbox(
        &self,
        harness: &dyn Harness,
        settings: &HarnessSettings,
        around: Option<&RepositoryRecord>,
    ) -> Option<Finding> {
        // One mode stands for all: what keeps the one from working keeps the others.
        let confined = harness.modes().iter().find_map(|&access| harness.confined(settings, access))?;
        let name = harness.name();
        Some(match self.runs_confined(harness, settings, around, &confined, &["true"]) {
            Ok(works) => doctor::sandbox(name.as_str(), &confined, works),
            Err(failure) => failed(&format!("sandbox.{name}"), &failure),
        })
    }

    fn runs_confined(
        &self,
        harness: &dyn Harness,
        settings: &HarnessSettings,
        around: Option<&RepositoryRecord>,
        confined: &Confined,
        command: &[&str],
    ) -> Result<bool, Failure> {
        let Found { program, env, .. } = harness::find(self.env(), harness, settings, around)?;
        let arguments: Vec<&str> = confined.args.iter().map(String::as_str).chain(command.iter().copied()).collect();
        harness::run_confined(&env, harness, settings, &program, &arguments)
    }

    pub(super) fn probe_network(
        &self,
        harness: &dyn Harness,
        settings: &HarnessSettings,
        around: Option<&RepositoryRecord>,
        target: &Address,
    ) -> Vec<Finding> {
        let name = harness.name();
        let modes = harness.modes().iter().filter_map(|&access| Some((access, harness.confined(settings, access)?)));
        let modes: Vec<_> = modes.collect();
        if modes.is_empty() {
            return vec![doctor::unconfined(name.as_str())];
        }
        // The agent's own shell, which codex needs as well.
        let Ok(shell) = self.env().find_executable("bash") else {
            return vec![doctor::untried(name.as_str(), "there is no bash to try it with")];
        };
        let port = target.port().to_string();
        let shown = shell.to_string();
        let command = [shown.as_str(), "-c", CONNECT, "connect", target.host(), &port];
        let is_reached = self.reaches(&shell, &command[1..]);
        let tried = modes.into_iter().map(|(access, confined)| {
            let tried =
                is_reached.then(|| self.runs_confined(harness, settings, around, &confined, &command)).transpose();
            let reach = match tried {
                Ok(None) => Reach::Unknown,
                Ok(Some(true)) => Reach::Reached,
                Ok(Some(false)) => Reach::Denied,
                Err(failure) => return failed(&format!("probe.{name}.network"), &failure),
            };
            doctor::network(name.as_str(), access, &confined, reach, target)
        });
        tried.collect()
    }

    /// Whether the address can be reached from here at all.
    fn reaches(&self, shell: &AbsPath, arguments: &[&str]) -> bool {
        let environment = EnvPolicy::harness([""; 0]).filter(self.env().variables());
        let limits = Limits { deadline: CONNECTING, bytes: 4096, overflow: Overflow::Cut };
        let home = self.env().directories().home().clone();
        let run = Invocation::new(shell.clone(), home, environment).args(arguments).run(&[], &limits);
        run.is_ok_and(|output| output.success())
    }
}
