//! Which harness does a job that names none: the person's default; without one, the first that is found.
//!
//! One that the configuration says anything about is never passed over for another one, which may be another vendor's:
//! that it is missing is an error then.

use std::sync::Arc;

use pactify_core::config::Settings;
use pactify_core::harness::{Harness, HarnessName, HarnessSettings};
use pactify_core::protocol::HarnessChoice;
use pactify_core::{Failure, FailureCode};

use super::delegate::unknown_harness;

/// A harness that was found.
pub(super) struct Picked<T> {
    pub(super) harness: Arc<dyn Harness>,
    pub(super) settings: HarnessSettings,
    /// What finding it came to.
    pub(super) found: T,
    /// Why it is this one.
    pub(super) choice: HarnessChoice,
    /// What a person should know of the choice.
    pub(super) notice: Option<String>,
}

/// The harness of jobs that name none, looked for by `find` in the order in which people are shown them.
pub(super) fn pick<T>(
    settings: &Settings,
    mut find: impl FnMut(&dyn Harness, &HarnessSettings) -> Result<T, Failure>,
) -> Result<Picked<T>, Failure> {
    let known = settings.known_harnesses();
    if let Some(chosen) = &settings.harness {
        let (harness, own) = known
            .into_iter()
            .find(|(harness, _)| harness.name() == *chosen)
            .ok_or_else(|| unknown_harness(chosen.as_str(), settings))?;
        let found = find(&*harness, &own)?;
        return Ok(Picked { harness, settings: own, found, choice: HarnessChoice::Configured, notice: None });
    }
    let mut missing = Vec::new();
    let mut unusable = None;
    for (harness, own) in &known {
        let name = harness.name();
        match find(&**harness, own) {
            Ok(found) => {
                let notice = (!missing.is_empty()).then(|| passed_over(&missing, &name));
                let (harness, settings, choice) = (harness.clone(), own.clone(), HarnessChoice::FirstFound);
                return Ok(Picked { harness, settings, found, choice, notice });
            }
            Err(failure) if settings.configures(&name) => return Err(failure),
            Err(failure) if failure.code != FailureCode::HarnessNotFound => {
                unusable.get_or_insert(failure);
            }
            Err(_) => {}
        }
        missing.push(name.to_string());
    }
    Err(unusable.unwrap_or_else(|| none_installed(known.iter().map(|(harness, _)| &**harness))))
}

fn passed_over(missing: &[String], name: &HarnessName) -> String {
    format!(
        "{name} does this job, the first harness that was found: {} cannot be started here. [defaults] harness in the \
         configuration file names another one, or this one for good",
        missing.join(", ")
    )
}

fn none_installed<'a>(known: impl Iterator<Item = &'a dyn Harness>) -> Failure {
    let hints: Vec<_> = known.map(|harness| format!("{}: {}", harness.name(), harness.about().install_hint)).collect();
    Failure::new(
        FailureCode::HarnessNotFound,
        "no agent CLI is installed",
        format!("install one of them ({})", hints.join("; ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(configuration: &str, there: &[&str]) -> Result<(String, Option<String>), Failure> {
        let settings = Settings::parse(configuration).unwrap();
        let picked = pick(&settings, |harness, _| match there.contains(&harness.name().as_str()) {
            true => Ok(()),
            false => Err(Failure::new(FailureCode::HarnessNotFound, format!("no {}", harness.name()), "install it")),
        })?;
        Ok((picked.harness.name().to_string(), picked.notice))
    }

    #[test]
    fn the_first_that_is_there_does_it_and_nothing_that_is_configured_is_passed_over() {
        const MINE: &str = "[harnesses.mine]\ncommand = \"mine\"\n";
        const KIMI: &str = "[harnesses.kimi]\nmodel = \"k\"\n";
        const OPENCODE: &str = "[defaults]\nharness = \"opencode\"\n";
        for (configuration, there, expected, passed) in [
            ("", &["codex", "kimi"][..], Ok("codex"), ""),
            ("", &["agy", "opencode", "kimi"], Ok("kimi"), "codex"),
            ("", &["agy"], Ok("agy"), "codex, kimi, opencode"),
            (MINE, &["mine"], Ok("mine"), "codex, kimi, opencode, agy"),
            (MINE, &["agy"], Ok("agy"), "codex, kimi, opencode"),
            (KIMI, &["codex", "opencode"], Ok("codex"), ""),
            (KIMI, &["opencode"], Err("no kimi"), ""),
            (OPENCODE, &["codex", "opencode"], Ok("opencode"), ""),
            (OPENCODE, &["codex"], Err("no opencode"), ""),
            (MINE, &[], Err("no mine"), ""),
            ("", &[], Err("no agent CLI is installed"), ""),
        ] {
            let got = picked(configuration, there);
            let name = got.as_ref().map(|(name, _)| name.as_str()).map_err(|failure| failure.message.as_str());
            assert_eq!(name, expected, "{configuration:?} {there:?}");
            let notice = got.ok().and_then(|(_, notice)| notice);
            assert_eq!(notice.is_some(), !passed.is_empty(), "{notice:?}");
            assert!(notice.unwrap_or_default().contains(passed), "{configuration:?} {there:?}");
        }
    }

    #[test]
    fn one_that_is_there_and_does_not_start_is_told_of_where_there_is_no_other() {
        let old = |harness: &dyn Harness| match harness.name().as_str() {
            "kimi" => Failure::new(FailureCode::HarnessIncompatible, "an old Node.js", "update it"),
            name => Failure::new(FailureCode::HarnessNotFound, format!("no {name}"), "install it"),
        };
        let failure = pick(&Settings::default(), |harness, _| Err::<(), _>(old(harness))).map(drop).unwrap_err();
        assert_eq!(failure.message, "an old Node.js");
        let picked = pick(&Settings::default(), |harness, _| match harness.name().as_str() {
            "opencode" => Ok(()),
            _ => Err(old(harness)),
        });
        assert_eq!(picked.unwrap().harness.name().as_str(), "opencode");
    }
}
