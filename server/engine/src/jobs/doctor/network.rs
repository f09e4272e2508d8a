//! Which jobs reach the network: tried with a command in the harness's own sandbox, without a model. Only when a person asks.

use std::time::Duration;

use pactify_core::AbsPath;
use pactify_core::doctor::{self, Address, Reach, failed};
use pactify_core::harness::{Harness, HarnessSettings};
use pactify_core::protocol::Finding;

use super::super::Jobs;
use crate::harness::{self, Found};
use crate::process::run::Overflow;
use crate::process::{EnvPolicy, Invocation, Limits};

/// Opens a connection to its second argument at its third one, and nothing else.
const CONNECT: &str = "exec 3<>\"/dev/tcp/$1/$2\"";

/// How long a connection may take.
const CONNECTING: Duration = Duration::from_secs(20);

impl Jobs {
    pub(super) fn probe_network(
        &self,
        harness: &dyn Harness,
        settings: &HarnessSettings,
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
            let reach = if is_reached {
                let arguments: Vec<&str> = confined.args.iter().map(String::as_str).chain(command).collect();
                let Found { program, env, .. } = match harness::find(self.env(), harness, settings, None) {
                    Ok(found) => found,
                    Err(failure) => return failed(&format!("probe.{name}.network"), &failure),
                };
                match harness::run_confined(&env, harness, settings, &program, &arguments) {
                    Ok(true) => Reach::Reached,
                    Ok(false) => Reach::Denied,
                    Err(failure) => return failed(&format!("probe.{name}.network"), &failure),
                }
            } else {
                Reach::Unknown
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
