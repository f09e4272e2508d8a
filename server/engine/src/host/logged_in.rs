//! Whether somebody is logged in with a harness, as far as that shows without asking anybody; and what that explains.

use std::path::{Path, PathBuf};

use pactify_core::Failure;
use pactify_core::harness::login::{self, for_want_of_login};
use pactify_core::harness::{Harness, HarnessSettings, LinkKind, LoginWorth, SeenLogins, registry};

use super::{Host, private};
use crate::env::Env;
use crate::harness::person_state;

/// The longest login that is read, in bytes. (Those measured have some kilobytes.)
const LOGIN_MAX: u64 = 1 << 20;

/// How many files of one directory of logins are looked at.
const LOGINS: usize = 32;

/// Whether somebody is logged in; `None` where it does not show.
pub(crate) fn is_logged_in(env: &Env, harness: &dyn Harness, settings: &HarnessSettings) -> Option<bool> {
    look(env, harness, settings, |seen| harness.is_logged_in(seen))
}

/// The failure of a turn that came to nothing, with the want of a login if there is none.
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
    let is_kept = harness.kept_login(version).is_some();
    if is_kept || !look(host.env(), &*harness, &spec.settings, |seen| harness.lacks_login(seen)) {
        return failure;
    }
    for_want_of_login(failure, spec.harness.as_str(), harness.about().login_command)
}

fn look<T>(
    env: &Env,
    harness: &dyn Harness,
    settings: &HarnessSettings,
    judge: impl FnOnce(&SeenLogins<'_>) -> T,
) -> T {
    let person_files = private::person_files(env, harness, false).unwrap_or_default();
    let files = login_files(env, harness);
    let worth: Vec<LoginWorth> = files.iter().filter_map(|file| Some(login::judge(&read(file)?))).collect();
    let is_set = |name: &str| env.variable(name).is_some();
    judge(&SeenLogins { worth: &worth, person_files: &person_files, settings, is_set: &is_set })
}

/// The login files that are there.
fn login_files(env: &Env, harness: &dyn Harness) -> Vec<PathBuf> {
    let Some(state) = person_state(env, harness) else { return Vec::new() };
    let mut files = Vec::new();
    for place in harness.about().login_places {
        let path = state.as_path().join(place.path);
        match place.kind {
            LinkKind::WrittenFile | LinkKind::ReplacedFile => files.push(path),
            LinkKind::Directory => {
                let below = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
                files.extend(below.take(LOGINS));
            }
            LinkKind::Shared => {}
        }
    }
    files
}

/// A login; `None` where nothing is that could be one.
fn read(path: &Path) -> Option<Vec<u8>> {
    let described = std::fs::metadata(path).ok()?;
    let is_one = described.is_file() && described.len() <= LOGIN_MAX;
    is_one.then(|| std::fs::read(path).ok()).flatten()
}
