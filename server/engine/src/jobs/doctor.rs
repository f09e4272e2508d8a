//! Looking at everything that jobs depend on, and saying what to do about it.
//!
//! Nothing here talks to a provider or changes anything, [`probe`] apart, which is done when a person asks. Each check
//! is a function; adding one is one line. What is seen means is decided by [`pactify_core::doctor`]. [`home`] looks at
//! `PACTIFY_HOME` and at what jobs left there, [`person`] at what a person has of a harness's own: logins, settings,
//! sessions; [`sandbox`] at whether its commands can run.

mod home;
mod person;
mod probe;
mod sandbox;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use pactify_core::config::Settings;
use pactify_core::doctor::{self, Usage, failed, ok, warning};
use pactify_core::harness::{Harness, HarnessName, HarnessSettings, UserConfig, registry, ripgrep};
use pactify_core::job::RepositoryRecord;
use pactify_core::job::access::Access;
use pactify_core::protocol::{DebugReport, DoctorParams, Finding, Findings, HarnessList, HarnessView, HarnessesParams};
use pactify_core::redact::Redactor;
use pactify_core::{Failure, display};

use super::delegate::unknown_harness;
use super::{Jobs, unnamed};
use crate::harness::Found;
use crate::store::Listed;
use crate::{config, harness, host};

/// Which harnesses are looked at, and how.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted<'a> {
    /// Only this one.
    harness: Option<&'a str>,
    /// Whether those in use are asked to write.
    live: bool,
    /// What their programs must not lie in.
    around: Option<&'a RepositoryRecord>,
}

/// A harness, the person's settings for it, and what was seen of it.
type Looked = (Arc<dyn Harness>, HarnessSettings, HarnessView);

/// The harness of jobs that name none, and why there is none that could do them.
fn default_of(settings: &Settings, looked: &[Looked]) -> (HarnessName, Result<(), Failure>) {
    let picked = unnamed::pick(settings, |harness, _| {
        let seen = looked.iter().find(|(other, ..)| other.name() == harness.name());
        let view = seen.map(|(.., view)| view);
        match view.and_then(|view| view.failure.clone()) {
            Some(failure) if view.is_some_and(|view| view.executable.is_none()) => Err(failure),
            _ => Ok(()),
        }
    });
    match picked {
        Ok(picked) => (picked.harness.name(), Ok(())),
        Err(failure) => (settings.harness.clone().unwrap_or_else(registry::default_name), Err(failure)),
    }
}

impl Jobs {
    /// The harnesses of this build and what is installed.
    pub fn harnesses(&self, params: &HarnessesParams) -> Result<HarnessList, Failure> {
        let settings = config::load(self.env())?;
        let looked = self.look_at_all(&settings, self.around(params.repository.as_deref()).as_ref());
        let (default, _) = default_of(&settings, &looked);
        let views =
            looked.into_iter().map(|(harness, _, view)| HarnessView { default: harness.name() == default, ..view });
        Ok(HarnessList { harnesses: views.collect() })
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
        findings.extend(self.check_home());
        let around = self.around(params.repository.as_deref());
        let wanted = Wanted { harness: params.harness.as_deref(), live: params.probe, around: around.as_ref() };
        findings.extend(self.check_harnesses(&settings, &wanted));
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
        findings.extend(self.check_harnesses(&settings, &Wanted::default()));
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

    /// Every harness, or one. Which of them the person uses decides how bad it is that one is not there.
    fn check_harnesses(&self, settings: &Settings, wanted: &Wanted<'_>) -> Vec<Finding> {
        let Wanted { harness: wanted, live, around } = *wanted;
        let looked = self.look_at_all(settings, around);
        let (default, picked) = default_of(settings, &looked);
        let recent = self.recent_harnesses();
        let is_there = |view: &HarnessView| view.executable.is_some();
        let any = looked.iter().any(|(.., view)| is_there(view));
        let mut findings = Vec::new();
        for (harness, own, view) in &looked {
            let name = harness.name();
            let asked_for = wanted == Some(name.as_str());
            if wanted.is_some() && !asked_for {
                continue;
            }
            let is_default = name == default && (is_there(view) || !any);
            let used = asked_for || is_default || settings.configures(&name) || recent.contains(&name);
            let usage = if used { Usage::Used } else { Usage::Unused };
            findings.push(doctor::harness(&**harness, view, usage));
            if view.failure.is_some() {
                continue;
            }
            findings.extend(self.check_settings(&**harness, own, around, view, usage));
            findings.extend(person::check_logins(self.env(), &**harness));
            if view.logged_in == Some(true) && host::lacks_login(self.env(), &**harness, own, view.version.as_deref()) {
                findings.push(doctor::login_elsewhere(&**harness, usage));
            }
            findings.extend(self.check_ripgrep(&**harness, own, around, usage));
            if used {
                findings.extend(self.check_sandbox(&**harness, own, around));
            }
            if live && used {
                findings.extend(self.probe(&**harness, own, around, &view.access, &settings.network));
            }
        }
        if wanted.is_none() {
            let other = looked.iter().find(|(.., view)| is_there(view)).map(|(harness, ..)| harness.name());
            findings.push(doctor::default_harness(&default, picked, other.as_ref()));
        }
        findings
    }

    /// Whether what a harness searches with is where its jobs would look.
    fn check_ripgrep(
        &self,
        harness: &dyn Harness,
        settings: &HarnessSettings,
        around: Option<&RepositoryRecord>,
        usage: Usage,
    ) -> Option<Finding> {
        if !harness.about().needs_ripgrep {
            return None;
        }
        let Found { env, .. } = harness::find(self.env(), harness, settings, around).ok()?;
        let found = env.find_executable(ripgrep::PROGRAM).ok();
        Some(doctor::ripgrep(harness.name().as_str(), found.as_ref(), usage))
    }

    /// The harnesses of the newest jobs.
    fn recent_harnesses(&self) -> BTreeSet<HarnessName> {
        const RECENT: usize = 100;
        let jobs = self.store().list(None, RECENT).map(|page| page.jobs).unwrap_or_default();
        let names = jobs.into_iter().filter_map(|job| match job {
            Listed::Job { summary, .. } => Some(summary.harness.clone()),
            Listed::Newer { .. } | Listed::Damaged { .. } => None,
        });
        names.collect()
    }

    fn look_at_all(&self, settings: &Settings, around: Option<&RepositoryRecord>) -> Vec<Looked> {
        let known = settings.known_harnesses().into_iter();
        let looked = known.map(|(harness, own)| {
            let view = self.look_at(&*harness, &own, around);
            (harness, own, view)
        });
        looked.collect()
    }

    fn look_at(
        &self,
        harness: &dyn Harness,
        settings: &HarnessSettings,
        around: Option<&RepositoryRecord>,
    ) -> HarnessView {
        let mut view = HarnessView {
            name: harness.name().to_string(),
            default: false,
            executable: None,
            version: None,
            access: harness.modes().to_vec(),
            user_config: Vec::new(),
            asks: harness.about().can_ask,
            sandbox: harness.about().has_sandbox,
            logged_in: None,
            failure: None,
        };
        let looked = harness::find(self.env(), harness, settings, around).and_then(|Found { program, env, .. }| {
            view.executable = Some(program.executable.to_string());
            view.version = harness::version(&env, harness, settings, &program)?;
            let version = view.version.as_deref();
            view.access = harness.modes_of(version).to_vec();
            view.asks = harness.asks(version);
            view.logged_in = match host::is_logged_in(&env, harness, settings, version) {
                None => harness::logged_in(&env, harness, settings, &program)?,
                seen => seen,
            };
            Ok(())
        });
        view.failure = looked.err();
        let is_taken = |access: &&Access| harness.user_config(**access) == UserConfig::Taken;
        view.user_config = view.access.iter().filter(is_taken).copied().collect();
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
        let next = "a harness with a sandbox of its own may refuse to run; its preflight will say so";
        return warning("sandbox", "user namespaces are restricted on this machine", next);
    }
    ok("sandbox", "user namespaces are available to sandboxes")
}
