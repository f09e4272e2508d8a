//! Looking at everything that jobs depend on, and saying what to do about it.
//!
//! Nothing here talks to a provider or changes anything. Each check is a function; adding one is one line.

use std::fmt::Write as _;

use pactify_core::harness::{Harness, HarnessSettings};
use pactify_core::protocol::{DebugReport, DoctorParams, Finding, Findings, HarnessList, HarnessView, Severity};
use pactify_core::redact::Redactor;
use pactify_core::{Failure, display};

use super::Jobs;
use super::delegate::unknown_harness;
use crate::harness::Found;
use crate::{config, harness, host};

impl Jobs {
    /// The harnesses of this build and what is installed.
    pub fn harnesses(&self) -> Result<HarnessList, Failure> {
        let settings = config::load(self.env())?;
        let harnesses = settings
            .known_harnesses()
            .iter()
            .map(|(harness, own)| HarnessView {
                default: harness.name() == settings.harness,
                ..self.look_at(&**harness, own)
            })
            .collect();
        Ok(HarnessList { harnesses })
    }

    /// Looks at everything that jobs depend on.
    pub fn doctor(&self, params: &DoctorParams) -> Result<Findings, Failure> {
        self.refuse_inside_a_job()?;
        let settings = config::load(self.env()).unwrap_or_default();
        let known = settings.known_harnesses();
        if let Some(wanted) = &params.harness
            && known.iter().all(|(harness, _)| harness.name().as_str() != wanted)
        {
            return Err(unknown_harness(wanted, &settings));
        }
        let mut findings = vec![self.check_store(), self.check_configuration(), self.check_git()];
        findings.push(check_namespaces());
        findings.push(self.check_room());
        for (harness, own) in known {
            let name = harness.name();
            if params.harness.as_deref().is_none_or(|wanted| wanted == name.as_str()) {
                findings.push(finding_of(&*harness, &self.look_at(&*harness, &own)));
            }
        }
        findings.sort_by_key(|finding| finding.severity);
        Ok(Findings { findings })
    }

    /// One redacted text for a bug report.
    pub fn debug_report(&self) -> Result<DebugReport, Failure> {
        let mut text = format!("pactify {} on {}\n", host::VERSION, std::env::consts::ARCH);
        if let Ok(kernel) = rustix::system::uname().release().to_str() {
            let _ = writeln!(text, "kernel {kernel}");
        }
        let mut findings = vec![self.check_store(), self.check_configuration(), self.check_git(), check_namespaces()];
        let settings = config::load(self.env()).unwrap_or_default();
        let known = settings.known_harnesses();
        findings.extend(known.iter().map(|(harness, own)| finding_of(&**harness, &self.look_at(&**harness, own))));
        for finding in findings {
            let _ = writeln!(text, "[{:?}] {}: {} {}", finding.severity, finding.id, finding.title, finding.detail);
        }
        let recent = self.store().list(None, 10)?.jobs;
        let _ = writeln!(text, "newest jobs:");
        for job in recent {
            // Neither briefs nor paths: a report is read by strangers.
            let _ = writeln!(text, "  {}", super::read::reported(&job));
        }
        let home = self.env().directories().home().to_string();
        let clean = Redactor::new(Vec::new()).redact(&text).replace(&home, "~");
        Ok(DebugReport { text: display::neutral_block(&clean).into_owned() })
    }

    fn look_at(&self, harness: &dyn Harness, settings: &HarnessSettings) -> HarnessView {
        let mut view = HarnessView {
            name: harness.name().to_string(),
            default: false,
            executable: None,
            version: None,
            access: harness.modes().to_vec(),
            sandbox: harness.has_sandbox(),
            logged_in: None,
            failure: None,
        };
        let looked = harness::find(self.env(), harness, settings, None).and_then(|Found { program, env, .. }| {
            view.executable = Some(program.executable.to_string());
            view.version = harness::version(&env, harness, settings, &program)?;
            view.logged_in = harness::logged_in(&env, harness, settings, &program)?;
            Ok(())
        });
        view.failure = looked.err();
        view
    }

    fn check_store(&self) -> Finding {
        let home = self.env().directories().pactify_home();
        match self.store().list(None, 1) {
            Ok(_) => ok("store", format!("jobs are kept in {home}")),
            Err(error) => failed("store", &Failure::from(error)),
        }
    }

    fn check_room(&self) -> Finding {
        const MUCH: u64 = 1 << 30;
        let bytes = self.disk_use();
        let home = self.env().directories().pactify_home();
        let mut finding = ok("room", format!("{home} takes {} MiB on the disk", bytes >> 20));
        if bytes > MUCH {
            finding.next = "`pactify sub prune --dry-run` says what can go".to_owned();
        }
        finding
    }

    fn check_configuration(&self) -> Finding {
        let path = self.env().directories().config_file();
        match config::load(self.env()) {
            Ok(_) if path.as_path().exists() => ok("configuration", format!("{path} is in order")),
            Ok(_) => ok("configuration", format!("there is no {path}: defaults are used")),
            Err(failure) => failed("configuration", &failure),
        }
    }

    fn check_git(&self) -> Finding {
        match self.git() {
            Ok(git) => ok("git", format!("git {} at {}", git.version(), git.program())),
            Err(error) => failed("git", &error),
        }
    }
}

/// Sandboxes of harnesses need user namespaces. The files say whether the kernel has been told to refuse them.
fn check_namespaces() -> Finding {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let most = read("/proc/sys/user/max_user_namespaces");
    let restricted = read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    if most.as_deref() == Some("0") || restricted.as_deref() == Some("1") {
        let mut finding = ok("sandbox", "user namespaces are restricted on this machine".to_owned());
        finding.severity = Severity::Warning;
        finding.next = "a harness with a sandbox of its own may refuse to run; its preflight will say so".to_owned();
        return finding;
    }
    ok("sandbox", "user namespaces are available to sandboxes".to_owned())
}

fn finding_of(harness: &dyn Harness, view: &HarnessView) -> Finding {
    let id = format!("harness.{}", view.name);
    if let Some(failure) = &view.failure {
        let mut finding = failed(&id, failure);
        if !view.default {
            finding.severity = Severity::Warning;
        }
        return finding;
    }
    let named = match &view.version {
        Some(version) => format!("{} {version}", view.name),
        None if harness.version_args().is_empty() => view.name.clone(),
        None => format!("{} of unknown version", view.name),
    };
    let mut finding = ok(&id, named.clone());
    finding.detail = view.executable.clone().unwrap_or_default();
    if view.logged_in == Some(false) {
        finding.severity = Severity::Warning;
        finding.title = format!("{named}, not logged in");
        finding.next = format!("log in with {} itself, or configure a provider in [harnesses.{0}]", view.name);
    }
    finding
}

fn ok(id: &str, title: String) -> Finding {
    Finding { id: id.to_owned(), severity: Severity::Ok, title, detail: String::new(), next: String::new() }
}

fn failed(id: &str, failure: &Failure) -> Finding {
    Finding {
        id: id.to_owned(),
        severity: Severity::Error,
        title: failure.message.clone(),
        detail: failure.code.as_str(),
        next: failure.next.clone(),
    }
}
