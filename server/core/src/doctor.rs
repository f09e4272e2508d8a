//! What a look at the machine means: findings, each with a stable name, how bad it is, and what to do.
//!
//! Looking is the engine's work. Only what keeps a person's jobs from running is an error: a harness that nobody uses
//! and that is not there is none.

mod address;

use crate::harness::{Confined, Harness, HarnessName, login, ripgrep, version};
use crate::job::access::Access;
use crate::job::outcome::Outcome;
use crate::protocol::{Finding, HarnessView, Severity};
use crate::{AbsPath, Failure};

pub use address::{Address, AddressError};

/// Who uses a harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The person configured it, had jobs with it lately, or has no other one to fall back on.
    Used,
    /// It is only there to be chosen.
    Unused,
}

/// A finding that all is well.
pub fn ok(id: &str, title: impl Into<String>) -> Finding {
    Finding {
        id: id.to_owned(),
        severity: Severity::Ok,
        title: title.into(),
        detail: String::new(),
        next: String::new(),
    }
}

/// A finding that something works less well.
pub fn warning(id: &str, title: impl Into<String>, next: impl Into<String>) -> Finding {
    Finding { severity: Severity::Warning, next: next.into(), ..ok(id, title) }
}

/// A finding that jobs cannot run.
pub fn failed(id: &str, failure: &Failure) -> Finding {
    Finding {
        severity: Severity::Error,
        detail: failure.code.as_str(),
        next: failure.next.clone(),
        ..ok(id, failure.message.clone())
    }
}

/// What was seen of one harness.
pub fn harness(harness: &dyn Harness, view: &HarnessView, usage: Usage) -> Finding {
    let (id, name) = (format!("harness.{}", view.name), &view.name);
    if let Some(failure) = &view.failure {
        let finding = failed(&id, failure);
        return match (usage, &view.executable) {
            (Usage::Used, _) => finding,
            (Usage::Unused, None) => {
                let next = format!("to use it: {}", harness.about().install_hint);
                Finding { next, ..ok(&id, format!("{name} is not installed, and nothing uses it")) }
            }
            (Usage::Unused, Some(_)) => Finding { severity: Severity::Warning, ..finding },
        };
    }
    let named = match &view.version {
        Some(version) => format!("{name} {version}"),
        None if harness.about().version_args.is_empty() => name.clone(),
        None => format!("{name} of unknown version"),
    };
    let untested = version::untested(harness, view.version.as_deref());
    let mut finding = ok(&id, named.clone());
    finding.detail = view.executable.clone().unwrap_or_default();
    let severity = if usage == Usage::Used { Severity::Warning } else { Severity::Ok };
    if view.logged_in == Some(false) {
        finding.severity = severity;
        finding.title = format!("{named}, not logged in");
        finding.next = login::step(name, harness.about().login_command);
    } else if let Some(told) = untested {
        finding.severity = severity;
        finding.title = format!("{named}, which this pactify was not made for");
        finding.next = told;
    }
    finding
}

/// Whether a harness that searches with ripgrep finds one.
pub fn ripgrep(name: &str, found: Option<&AbsPath>, usage: Usage) -> Finding {
    let id = format!("harness.{name}.ripgrep");
    match found {
        Some(path) => ok(&id, format!("{name} searches with {path}")),
        None => {
            let severity = if usage == Usage::Used { Severity::Warning } else { Severity::Ok };
            Finding { severity, ..warning(&id, ripgrep::missing(name), ripgrep::INSTALL) }
        }
    }
}

/// What a probe's job came to, that was told to write a file.
#[derive(Clone, Copy, Debug)]
pub struct Probed<'a> {
    /// What it was allowed.
    pub access: Access,
    /// How it ended; `None` when it did not in time.
    pub outcome: Option<Outcome>,
    /// How many files it changed.
    pub files: u64,
    /// What went wrong.
    pub failure: Option<&'a Failure>,
}

/// Whether a harness does what its access modes promise.
pub fn probe(name: &str, probed: Probed<'_>) -> Finding {
    let Probed { access, outcome, files, failure } = probed;
    let id = format!("probe.{name}.{}", word(access));
    let bad = |title: String, next: &str| Finding { severity: Severity::Error, ..warning(&id, title, next) };
    match (access, outcome) {
        (Access::ReadOnly, _) if files > 0 => {
            let next = "give it no read-only job whose tree matters, and report it";
            bad(format!("{name} wrote in a read-only job"), next)
        }
        (Access::ReadOnly, Some(Outcome::Succeeded)) => {
            ok(&id, format!("{name} wrote nothing in a read-only job that was told to"))
        }
        (Access::Write, Some(Outcome::Succeeded)) if files > 0 => ok(&id, format!("{name} wrote in a write job")),
        (Access::Write, Some(Outcome::NoChanges)) => bad(
            format!("{name} wrote nothing in a write job that was told to"),
            "see what it says in a job of your own",
        ),
        (_, None) => bad(format!("{name} did not end in time"), "check the provider's state, then try again"),
        (_, Some(_)) => match failure {
            Some(failure) => failed(&id, failure),
            None => bad(format!("{name} did not end well"), "see what it says in a job of your own"),
        },
    }
}

/// Whether commands run in the sandbox of a harness at all: one without is not started.
pub fn sandbox(name: &str, confined: &Confined, works: bool) -> Finding {
    let id = format!("sandbox.{name}");
    if works { ok(&id, format!("{name}'s sandbox works here")) } else { failed(&id, &confined.failure) }
}

/// What its commands of each mode came to, that were told to reach an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// They reached it.
    Reached,
    /// They did not.
    Denied,
    /// Nobody reaches it from here.
    Unknown,
}

/// Whether commands of a harness reach the network where they are to, and only there.
pub fn network(name: &str, access: Access, confined: &Confined, reach: Reach, target: &Address) -> Finding {
    let (id, jobs) = (format!("probe.{name}.{}.network", word(access)), jobs(access));
    let bad = |title: String, next: &str| Finding { severity: Severity::Error, ..warning(&id, title, next) };
    match (confined.network, reach) {
        (_, Reach::Unknown) => {
            let title = format!(
                "whether {jobs} of {name} reach the network is not known: {target} cannot be reached from here"
            );
            warning(&id, title, "name an address that can be: [doctor] network in the configuration")
        }
        (true, Reach::Reached) => ok(&id, format!("commands of {jobs} of {name} reach {target}")),
        (false, Reach::Denied) => ok(&id, format!("commands of {jobs} of {name} don't reach {target}")),
        (true, Reach::Denied) => {
            let next = "their tests and downloads will fail; see whether a proxy or another sandbox is in the way";
            bad(format!("commands of {jobs} of {name} don't reach {target}, and should"), next)
        }
        (false, Reach::Reached) => {
            let next = "give it no read-only job that must not tell anybody anything, and report it";
            bad(format!("commands of {jobs} of {name} reach {target}, and should not"), next)
        }
    }
}

/// Nothing confines the commands of a harness: there is nothing to be tried.
pub fn unconfined(name: &str) -> Finding {
    let title =
        format!("{name} has no sandbox: what its commands may run reaches the network as you do, and was not tried");
    ok(&format!("probe.{name}.network"), title)
}

/// It could not be tried, for this reason.
pub fn untried(name: &str, why: &str) -> Finding {
    let title = format!("whether jobs of {name} reach the network was not tried: {why}");
    ok(&format!("probe.{name}.network"), title)
}

/// Whether the sessions of its jobs stay out of the person's own list; `None` where they have no list of their own.
pub fn sessions(name: &str, stayed: Option<bool>) -> Finding {
    let id = format!("probe.{name}.sessions");
    match stayed {
        None => ok(&id, format!("{name} has no home of its own in jobs: their sessions are in your list")),
        Some(true) => ok(&id, format!("nothing was added to your own sessions of {name}")),
        Some(false) => {
            let title = format!("your own sessions of {name} are others than before the probe");
            warning(
                &id,
                title,
                format!("if you did not use {name} meanwhile, look into its list for a session of a probe"),
            )
        }
    }
}

/// Whether a login can be refreshed by jobs that are led to it.
pub fn login(name: &str, path: &str, can_be_refreshed: bool) -> Finding {
    let id = format!("login.{name}");
    if can_be_refreshed {
        return ok(&id, format!("jobs of {name} are led to {path}, and can refresh what is there"));
    }
    let title = format!("jobs of {name} are refused: they could not refresh the login {path}");
    warning(&id, title, format!("make {path}, and the directory that it is in, writable for you"))
}

/// Somebody is logged in, but not with a login that jobs could be led to.
pub fn login_elsewhere(harness: &dyn Harness, usage: Usage) -> Finding {
    let name = harness.name();
    let title = format!("{name} is logged in, and its jobs are not: they need the login in a file, not in a keyring");
    let finding = warning(&format!("login.{name}"), title, login::step(name.as_str(), harness.about().login_command));
    match usage {
        Usage::Used => finding,
        Usage::Unused => Finding { severity: Severity::Ok, ..finding },
    }
}

/// Whether a job could be planned with the person's settings, and what the harness does not understand of them.
pub fn settings(name: &str, planned: Result<Option<Failure>, Failure>, usage: Usage) -> Finding {
    let id = format!("settings.{name}");
    match planned {
        Ok(None) => ok(&id, format!("the settings of {name} are in order")),
        Ok(Some(ignored)) => Finding { severity: Severity::Warning, ..failed(&id, &ignored) },
        Err(failure) if usage == Usage::Used => failed(&id, &failure),
        Err(failure) => Finding { severity: Severity::Warning, ..failed(&id, &failure) },
    }
}

fn word(access: Access) -> &'static str {
    match access {
        Access::Write => "write",
        Access::ReadOnly => "readOnly",
    }
}

fn jobs(access: Access) -> &'static str {
    match access {
        Access::Write => "write jobs",
        Access::ReadOnly => "read-only jobs",
    }
}

/// Which harness jobs go to that name none; `picked` where it could not do them, `other` is one that is there.
pub fn default_harness(name: &HarnessName, picked: Result<(), Failure>, other: Option<&HarnessName>) -> Finding {
    match (picked, other) {
        (Ok(()), _) => ok("harness", format!("jobs go to {name} when nobody names a harness")),
        (Err(failure), None) => Finding { detail: String::new(), ..failed("harness", &failure) },
        (Err(failure), Some(other)) => {
            let title = format!("jobs that name no harness are refused: {}", failure.message);
            warning("harness", title, format!("{}, or set [defaults] harness = \"{other}\"", failure.next))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureCode;
    use crate::harness::codex::Codex;

    fn view() -> HarnessView {
        HarnessView {
            name: "codex".to_owned(),
            default: false,
            executable: Some("/opt/codex".to_owned()),
            version: Some("0.171.2".to_owned()),
            access: Vec::new(),
            user_config: Vec::new(),
            asks: false,
            sandbox: true,
            logged_in: Some(true),
            failure: None,
        }
    }

    #[test]
    fn only_what_a_person_uses_is_as_bad_as_it_is() {
        use Severity::{Error, Ok, Warning};
        let failure = Some(Failure::new(FailureCode::HarnessNotFound, "codex is not there", "install it"));
        let missing = HarnessView { executable: None, version: None, failure: failure.clone(), ..view() };
        let broken = HarnessView { failure, ..view() };
        let untested = HarnessView { version: Some("0.1710.0".to_owned()), ..view() };
        let unknown = HarnessView { version: None, ..view() };
        let logged_out = HarnessView { logged_in: Some(false), ..view() };
        for (view, used, unused, says) in [
            (view(), Ok, Ok, "codex 0.171.2"),
            (missing, Error, Ok, "codex is not "),
            (broken, Error, Warning, "codex is not there"),
            (untested, Warning, Ok, "not made for"),
            (unknown, Ok, Ok, "of unknown version"),
            (logged_out, Warning, Ok, "not logged in"),
        ] {
            for (usage, expected) in [(Usage::Used, used), (Usage::Unused, unused)] {
                let finding = harness(&Codex, &view, usage);
                assert_eq!(finding.severity, expected, "{usage:?} {finding:?}");
                assert!(finding.title.contains(says), "{finding:?}");
                assert!(finding.severity == Ok || !finding.next.is_empty(), "it says what to do: {finding:?}");
            }
        }
    }

    #[test]
    fn a_probe_believes_what_was_written_and_nothing_else() {
        use Severity::{Error, Ok};
        let failure = Failure::internal("x");
        for (access, outcome, files, expected) in [
            (Access::Write, Some(Outcome::Succeeded), 1, Ok),
            (Access::Write, Some(Outcome::NoChanges), 0, Error),
            (Access::Write, Some(Outcome::Failed), 1, Error),
            (Access::Write, None, 0, Error),
            (Access::ReadOnly, Some(Outcome::Succeeded), 0, Ok),
            (Access::ReadOnly, Some(Outcome::ReadOnlyViolated), 1, Error),
            (Access::ReadOnly, Some(Outcome::Cancelled), 1, Error),
            (Access::ReadOnly, Some(Outcome::NoResult), 0, Error),
        ] {
            let finding = probe("codex", Probed { access, outcome, files, failure: Some(&failure) });
            assert_eq!(finding.severity, expected, "{finding:?}");
        }
    }

    #[test]
    fn the_network_is_to_be_reached_where_it_is_promised_and_only_there() {
        use Severity::{Error, Ok, Warning};
        for (network, reach, expected) in [
            (true, Reach::Reached, Ok),
            (true, Reach::Denied, Error),
            (false, Reach::Denied, Ok),
            (false, Reach::Reached, Error),
            (true, Reach::Unknown, Warning),
            (false, Reach::Unknown, Warning),
        ] {
            let confined = Confined { args: Vec::new(), network, failure: Failure::internal("x") };
            let finding = super::network("codex", Access::ReadOnly, &confined, reach, &Address::default());
            assert_eq!(finding.severity, expected, "{finding:?}");
            assert_eq!(finding.id, "probe.codex.readOnly.network");
            assert!(finding.severity == Ok || !finding.next.is_empty(), "it says what to do: {finding:?}");
        }
    }
}
