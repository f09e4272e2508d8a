//! Finding harnesses on this machine: which program, which version, whether anybody is logged in. What runs a program
//! that is a script is found by [`interpreter`].
//!
//! Where is searched is [`search`]'s to decide; what a version manager puts in a program's place is [`shims`]'s to see
//! through. The program is resolved once, when a job is created, to an absolute path that later steps repeat; a
//! repository never chooses it. Probes run with the harness's own filtered environment and are bounded.

mod interpreter;
mod search;
mod shims;

use std::ffi::OsString;
use std::time::Duration;

use pactify_core::harness::{Harness, HarnessSettings};
use pactify_core::{AbsPath, Failure, FailureCode, display};

use crate::causes::with_causes;
use crate::disk::Dir;
use crate::env::Env;
use crate::process::run::Overflow;
use crate::process::{ChildEnv, EnvPolicy, Invocation, Limits};
use crate::tree::Trash;

use search::{Absent, Apart};
pub use search::{Found, find};

/// How long a harness may take to name its version or its login.
const PROBE: Duration = Duration::from_secs(20);

/// Where homes for single questions are made, below `PACTIFY_HOME`.
const PROBE_HOMES: &str = "probe";

/// A home that no program can make.
const NO_HOME: &str = "/dev/null";

/// A harness's program as this machine has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program, or the script.
    pub executable: AbsPath,
    /// What runs the script.
    pub interpreter: Option<AbsPath>,
}

impl Program {
    /// How it is started.
    pub fn invocation(&self, directory: AbsPath, environment: ChildEnv) -> Invocation {
        match &self.interpreter {
            None => Invocation::new(self.executable.clone(), directory, environment),
            Some(runs) => Invocation::new(runs.clone(), directory, environment).args([self.executable.as_path()]),
        }
    }
}

/// The program of `harness` in these surroundings: the person's choice, or the first one on the search path; the native
/// program where what was found is a launcher.
fn resolve(env: &Env, harness: &dyn Harness, settings: &HarnessSettings, apart: &Apart) -> Result<Program, Failure> {
    let resolved = match settings.chosen() {
        Some((key, chosen)) => apart.find_program(env, chosen).map_err(|absent| refused(harness, key, absent))?,
        None => first_of(env, harness, apart)?,
    };
    let is_native = |path: &AbsPath| path.as_path().is_file() && (apart.is_free(path) || !apart.is_free(&resolved));
    let native = harness.native_candidates(&resolved).into_iter().find(is_native);
    let executable = native.unwrap_or(resolved);
    let interpreter = match harness.interpreter(&executable) {
        Some(wanted) => Some(interpreter::find(env, harness, settings, &wanted, &executable, apart)?),
        None => None,
    };
    Ok(Program { executable, interpreter })
}

/// The first of its programs that is there.
fn first_of(env: &Env, harness: &dyn Harness, apart: &Apart) -> Result<AbsPath, Failure> {
    let mut shim = None;
    for name in harness.about().executables {
        match apart.find_program(env, name.as_ref()) {
            Ok(program) => return Ok(program),
            Err(absent @ Absent::Shim(_)) => shim = shim.or(Some(absent)),
            Err(Absent::Nowhere(_)) => {}
        }
    }
    Err(shim.map_or_else(|| not_found(env, harness), |absent| refused(harness, "executable", absent)))
}

/// Why the program that stands, or would stand, under this key is none.
fn refused(harness: &dyn Harness, key: &str, absent: Absent) -> Failure {
    let harness = harness.name();
    match absent {
        Absent::Nowhere(error) => Failure::new(
            FailureCode::HarnessNotFound,
            format!("[harnesses.{harness}] {key}: {error}"),
            format!("install the program, or correct `{key}` in the configuration file"),
        ),
        Absent::Shim(shim) => {
            let next = format!(
                "see what `{}` says in your home folder, or name the program: `{key} = \"/path/of/it\"` below \
                 [harnesses.{harness}] in the configuration file",
                shim.question()
            );
            Failure::new(FailureCode::HarnessIncompatible, format!("{harness} does not start: {shim}"), next)
        }
    }
}

/// The version that `program` reports; `None` when it says something else.
pub fn version(
    env: &Env,
    harness: &dyn Harness,
    settings: &HarnessSettings,
    program: &Program,
) -> Result<Option<String>, Failure> {
    if harness.about().version_args.is_empty() {
        return Ok(None);
    }
    let ask = |home| {
        let asked = Asked { directory: root()?, keys: &[], arguments: harness.about().version_args, home };
        probe(env, harness, settings, program, asked)
    };
    // Even for this some harnesses make themselves a home; where there can be none, they do without.
    let output = match harness.about().probe_variables {
        [] => ask(harness.about().home_variable.map(|name| (name, OsString::from(NO_HOME))).into_iter().collect())?,
        names => {
            // A new one each time: a job could leave something in one that stays.
            let passing = PassingHome::make(env)?;
            let home = passing.path.as_path().as_os_str();
            ask(names.iter().map(|name| (*name, home.to_owned())).collect())?
        }
    };
    Ok(harness.parse_version(&String::from_utf8_lossy(&output.stdout.bytes)))
}

/// A home for one question, below `PACTIFY_HOME`; it goes when the question is answered.
pub(crate) struct PassingHome {
    pub(crate) path: AbsPath,
    trash: Trash,
}

impl PassingHome {
    pub(crate) fn make(env: &Env) -> Result<Self, Failure> {
        let home = env.directories().pactify_home();
        let random = env.random::<8>().map_err(|error| Failure::internal(error.to_string()))?;
        let name = format!("{:016x}", u64::from_le_bytes(random));
        let made = Dir::open(home)?.ensure_dir(PROBE_HOMES)?.create_dir(&name)?;
        Ok(Self { path: made.path().clone(), trash: Trash::open(home)? })
    }

    /// Makes a folder in it.
    pub(crate) fn folder(&self, name: &str) -> Result<AbsPath, Failure> {
        Ok(Dir::open(&self.path)?.create_dir(name)?.path().clone())
    }
}

impl Drop for PassingHome {
    fn drop(&mut self) {
        let gone = self.trash.take(&self.path).and_then(|_| self.trash.empty());
        if let Err(error) = gone {
            tracing::warn!(%error, path = %self.path, "a home that was made for a question stays");
        }
    }
}

/// Whether the harness finds a login; `None` when it has no offline way to tell.
pub fn logged_in(
    env: &Env,
    harness: &dyn Harness,
    settings: &HarnessSettings,
    program: &Program,
) -> Result<Option<bool>, Failure> {
    let Some(arguments) = harness.about().login_probe else { return Ok(None) };
    let Some(state) = person_state(env, harness) else { return Ok(None) };
    if !state.as_path().is_dir() {
        // Where nothing is there is no login, and asking would make a directory of it.
        return Ok(Some(false));
    }
    let home =
        harness.about().home_variable.map(|name| (name, state.as_path().as_os_str().to_owned())).into_iter().collect();
    let asked = Asked { directory: root()?, keys: harness.about().vendor_keys.names(), arguments, home };
    probe(env, harness, settings, program, asked).map(|output| Some(output.success()))
}

/// Runs what [`Harness::confined`] describes, with a home and a temporary directory that go again; whether it ended
/// well.
pub fn run_confined(
    env: &Env,
    harness: &dyn Harness,
    settings: &HarnessSettings,
    program: &Program,
    arguments: &[&str],
) -> Result<bool, Failure> {
    let passing = PassingHome::make(env)?;
    let place = |name: &str| Ok::<_, Failure>(passing.folder(name)?.as_path().as_os_str().to_owned());
    let (own, tmp) = (place("home")?, place("tmp")?);
    let state = harness.about().home_variable.map(|name| (name, own));
    let home = state.into_iter().chain([("TMPDIR", tmp)]).collect();
    let asked = Asked { directory: passing.path.clone(), keys: &[], arguments, home };
    probe(env, harness, settings, program, asked).map(|output| output.success())
}

/// Where the person keeps this harness's own state: where its variable says, else in its folder.
pub fn person_state(env: &Env, harness: &dyn Harness) -> Option<AbsPath> {
    let chosen = harness.about().home_variable.and_then(|name| AbsPath::new(env.variable(name)?).ok());
    chosen.or_else(|| Some(env.directories().home().descend(harness.about().home_folder?)))
}

/// How a program is asked something.
struct Asked<'a> {
    directory: AbsPath,
    /// Keys of model vendors that are let through to it.
    keys: &'a [&'a str],
    arguments: &'a [&'a str],
    /// Variables that lead to its homes.
    home: Vec<(&'a str, OsString)>,
}

/// A directory in which there is nothing to be done.
fn root() -> Result<AbsPath, Failure> {
    AbsPath::new("/").map_err(|error| Failure::internal(error.to_string()))
}

fn probe(
    env: &Env,
    harness: &dyn Harness,
    settings: &HarnessSettings,
    program: &Program,
    asked: Asked<'_>,
) -> Result<crate::process::Output, Failure> {
    let Asked { directory, keys, arguments, home } = asked;
    let let_through = settings.environment.iter().map(String::as_str).chain(keys.iter().copied());
    let mut environment = EnvPolicy::harness(let_through).filter(env.variables());
    for (name, value) in home {
        environment.set(name, value);
    }
    for (name, value) in harness.about().probe_environment {
        environment.set(name, value);
    }
    let limits = Limits { deadline: PROBE, bytes: 64 * 1024, overflow: Overflow::Cut };
    let executable = &program.executable;
    let invocation = program.invocation(directory, environment).args(arguments);
    invocation.run(&[], &limits).map_err(|error| {
        Failure::new(
            FailureCode::HarnessIncompatible,
            format!(
                "{executable} did not answer {:?}: {}",
                arguments.join(" "),
                display::neutral(&with_causes(&error))
            ),
            "run it in a terminal to see what is wrong with it",
        )
    })
}

fn not_found(env: &Env, harness: &dyn Harness) -> Failure {
    let searched: Vec<_> = env.search_path().iter().map(ToString::to_string).collect();
    Failure::new(
        FailureCode::HarnessNotFound,
        format!(
            "{} is not installed: looked for {} in {}",
            harness.name(),
            harness.about().executables.join(", "),
            searched.join(":")
        ),
        format!(
            "install it ({}), or name its path: [harnesses.{}] executable in the configuration file",
            harness.about().install_hint,
            harness.name()
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pactify_core::harness::registry;

    use super::*;
    use crate::env::Directories;

    #[test]
    fn every_harness_has_its_state_where_its_makers_put_it() {
        let home = AbsPath::new("/home/me").unwrap();
        let env = Env::from_values(BTreeMap::new(), Directories::under(&home));
        let states = registry::all().into_iter().filter_map(|harness| {
            let state = person_state(&env, &*harness)?;
            Some(format!("{} {state}", harness.name()))
        });
        let mut states: Vec<String> = states.collect();
        states.sort_unstable();
        assert_eq!(
            states,
            [
                "agy /home/me/.gemini",
                "codex /home/me/.codex",
                "kimi /home/me/.kimi-code",
                "opencode /home/me/.local/share"
            ]
        );
    }
}
