//! Whether somebody is logged in with a harness, as far as that shows without asking anybody; and what that explains.

use std::path::Path;

use pactify_core::Failure;
use pactify_core::harness::login::{self, for_want_of_login};
use pactify_core::harness::{Harness, HarnessSettings, LinkKind, LoginWorth, SeenLogins, registry};

use super::{Host, private};
use crate::env::Env;
use crate::harness::person_state;

/// How many files of one directory of logins are looked at.
const LOGINS: usize = 32;

/// Whether somebody is logged in with a program of this version; `None` where it does not show.
pub(crate) fn is_logged_in(
    env: &Env,
    harness: &dyn Harness,
    settings: &HarnessSettings,
    version: Option<&str>,
) -> Option<bool> {
    look(env, harness, settings, settings.model.as_deref(), version, |seen| harness.is_logged_in(seen))?
}

/// Whether a job would have no login to work with, as far as that shows.
pub(crate) fn lacks_login(env: &Env, harness: &dyn Harness, settings: &HarnessSettings, version: Option<&str>) -> bool {
    let lacks = look(env, harness, settings, settings.model.as_deref(), version, |seen| harness.lacks_login(seen));
    lacks == Some(true)
}

/// The failure of a turn that came to nothing, with the want of a login if there is none. Where that does not show,
/// nothing is said of it.
pub(super) fn explained(host: &Host, failure: Failure) -> Failure {
    let spec = host.spec();
    let attempt = host.state().attempt.as_ref();
    let has_worked = attempt.is_some_and(|attempt| attempt.usage.is_some());
    let version = attempt.and_then(|attempt| attempt.harness_version.as_deref());
    // The person's own configuration may name a provider that needs none.
    let (false, false, Some(harness)) =
        (has_worked, spec.with_user_config, registry::find(&spec.harness, &spec.settings))
    else {
        return failure;
    };
    let model = spec.model.as_deref().or(spec.settings.model.as_deref());
    match look(host.env(), &*harness, &spec.settings, model, version, |seen| harness.lacks_login(seen)) {
        Some(true) => for_want_of_login(failure, spec.harness.as_str(), harness.about().login_command),
        _ => failure,
    }
}

/// What is made of all that can be seen; nothing where the person's own configuration is there and cannot be read.
fn look<T>(
    env: &Env,
    harness: &dyn Harness,
    settings: &HarnessSettings,
    model: Option<&str>,
    version: Option<&str>,
    judge: impl FnOnce(&SeenLogins<'_>) -> T,
) -> Option<T> {
    let person_files = private::person_files(env, harness, false).ok()?;
    let worth = worth_of_logins(env, harness);
    let is_set = |name: &str| env.variable(name).is_some();
    Some(judge(&SeenLogins { worth: &worth, person_files: &person_files, settings, model, version, is_set: &is_set }))
}

/// What each login file that is there is worth.
fn worth_of_logins(env: &Env, harness: &dyn Harness) -> Vec<LoginWorth> {
    let Some(state) = person_state(env, harness) else { return Vec::new() };
    let mut found = Vec::new();
    for place in harness.about().login_places {
        let path = state.as_path().join(place.path);
        match place.kind {
            LinkKind::WrittenFile | LinkKind::ReplacedFile => found.extend(worth(&path)),
            LinkKind::Directory => found.extend(worth_of_each(&path)),
            LinkKind::Shared => {}
        }
    }
    found
}

/// The same, of those in a directory.
fn worth_of_each(directory: &Path) -> Vec<LoginWorth> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(_) => return vec![LoginWorth::Unknown],
    };
    let mut found = Vec::new();
    for (n, entry) in entries.enumerate() {
        match entry {
            Ok(entry) if n < LOGINS => found.extend(worth(&entry.path()).filter(|_| !entry.path().is_dir())),
            // It may be the one.
            _ => {
                found.push(LoginWorth::Unknown);
                break;
            }
        }
    }
    found
}

/// What a login file is worth; nothing where there is none. One that cannot be read is there.
fn worth(path: &Path) -> Option<LoginWorth> {
    match private::read(path) {
        Ok(text) => Some(login::judge(text?.as_bytes())),
        Err(_) => Some(LoginWorth::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use pactify_core::AbsPath;
    use pactify_core::harness::codex::Codex;
    use pactify_core::harness::kimi::Kimi;

    use super::*;
    use crate::env::Directories;

    #[test]
    fn a_login_that_cannot_be_read_is_there() {
        use LoginWorth::{Good, Tombstone, Unknown};
        let directory = tempfile::tempdir().unwrap();
        let home = AbsPath::new(directory.path().canonicalize().unwrap()).unwrap();
        let env = Env::from_values(BTreeMap::new(), Directories::under(&home));
        let place = |path: &str| home.as_path().join(path);
        let check = |harness: &dyn Harness, expected: &[LoginWorth]| {
            assert_eq!(worth_of_logins(&env, harness), expected, "{}", harness.name());
        };
        check(&Codex, &[]);
        check(&Kimi, &[]);

        fs::create_dir_all(place(".codex/auth.json")).unwrap();
        check(&Codex, &[Unknown]);
        fs::remove_dir(place(".codex/auth.json")).unwrap();
        fs::write(place(".codex/auth.json"), vec![b' '; 2 << 20]).unwrap();
        check(&Codex, &[Unknown]);
        fs::write(place(".codex/auth.json"), "{}").unwrap();
        check(&Codex, &[Tombstone]);

        fs::create_dir_all(place(".kimi-code/credentials/folder")).unwrap();
        check(&Kimi, &[]);
        fs::write(place(".kimi-code/credentials/kimi-code.json"), r#"{"access_token":"a"}"#).unwrap();
        check(&Kimi, &[Good]);
        fs::remove_dir_all(place(".kimi-code/credentials")).unwrap();
        fs::write(place(".kimi-code/credentials"), "").unwrap();
        check(&Kimi, &[Unknown]);
    }

    #[test]
    fn a_configuration_that_cannot_be_read_says_nothing_of_logins() {
        let directory = tempfile::tempdir().unwrap();
        let home = AbsPath::new(directory.path().canonicalize().unwrap()).unwrap();
        let env = Env::from_values(BTreeMap::new(), Directories::under(&home));
        let seen = || is_logged_in(&env, &Kimi, &HarnessSettings::default(), None);
        assert_eq!(seen(), Some(false));
        fs::create_dir_all(home.as_path().join(".kimi-code/config.toml")).unwrap();
        assert_eq!(seen(), None);
    }
}
