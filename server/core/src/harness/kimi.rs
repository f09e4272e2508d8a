//! The kimi CLI (kimi-code), driven over ACP (facts: kimi-code 2.1.0 on Linux).
//!
//! This file plans. [`config`] renders the job's configuration, [`records`] reads what kimi writes down about a turn,
//! and [`dialect`] knows what its words over the protocol are worth: a failed turn ends as `end_turn`, like any other.

mod config;
mod dialect;
mod records;

use std::time::Duration;

use super::acp::AcpDriver;
use super::handed::utf8;
use super::{
    About, Driver, Harness, HarnessName, HarnessSettings, Instructions, Interpreter, Launch, LinkKind, LoginPlace,
    PersonFiles, PlannedFile, Preflight, Request, SeenLogins, Site, Stdin, UserConfig, VendorKeys, ripgrep,
};
use crate::job::access::Access;
use crate::job::event::ExitRecord;
use crate::{AbsPath, Failure, FailureCode};

const AGENT: &str = "kimi";

/// The version that every statement of this module was observed with.
const TESTED_VERSION: &str = "2.1";

/// Where a person keeps kimi's state.
const HOME_VARIABLE: &str = "KIMI_CODE_HOME";
const HOME_FOLDER: &str = ".kimi-code";

/// kimi's home, below the job's; its evidence is found there.
const STATE: &str = "kimi";
/// What kimi's commands see as the home directory.
const USER: &str = "user";

/// The kimi CLI.
#[derive(Clone, Copy, Debug)]
pub struct Kimi;

const ABOUT: About = About {
    executables: &["kimi"],
    install_hint: "npm install -g @moonshot-ai/kimi-code",
    tested_versions: &[TESTED_VERSION],
    can_ask: true,
    never_asks: Some(
        "kimi asks about commands, and about files outside of the job's tree and in its `.git`: it writes and edits the \
         files of the tree without asking, whatever `permissions` says",
    ),
    home_variable: Some(HOME_VARIABLE),
    home_folder: Some(HOME_FOLDER),
    read_only_user_config: UserConfig::Refused(
        "its read-only jobs are kept from writing by a configuration that has nothing else in it",
    ),
    private_files: &["kimi/config.toml", "kimi/mcp.json"],
    instructions: Instructions::Read(&[
        "AGENTS.md",
        ".kimi-code/AGENTS.md",
        ".kimi-code/agents",
        ".kimi-code/skills",
        ".agents/skills",
    ]),
    login_command: Some("kimi login"),
    // The directory of logins, never a file of it: kimi would replace the link by a file of its own. And that of the
    // locks, or two jobs would refresh at once and spend one refresh token twice.
    login_places: &[
        LoginPlace { path: "credentials", kind: LinkKind::Directory },
        LoginPlace { path: "oauth", kind: LinkKind::Shared },
    ],
    session_places: &["sessions", "session_index.jsonl"],
    needs_ripgrep: true,
    // Other keys are never read from the environment.
    vendor_keys: VendorKeys::Own(&[
        "KIMI_MODEL_NAME",
        "KIMI_MODEL_API_KEY",
        "KIMI_MODEL_BASE_URL",
        "KIMI_MODEL_PROVIDER_TYPE",
    ]),
    ..About::USUAL
};

impl Harness for Kimi {
    fn name(&self) -> HarnessName {
        HarnessName(AGENT.to_owned())
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn interpreter(&self, executable: &AbsPath) -> Option<Interpreter> {
        // Older ones end at once: they have no zstd.
        let node = Interpreter { name: "Node.js", program: "node", at_least: [22, 19, 0] };
        let is_script = executable.as_path().extension().is_some_and(|end| end == "mjs" || end == "js");
        is_script.then_some(node)
    }

    fn check_settings(&self, settings: &HarnessSettings, access: Access) -> Result<(), Failure> {
        config::check(&settings.config, access)
    }

    fn launch(&self, request: &Request<'_>, site: Site<'_>) -> Result<Launch, Failure> {
        launch(request, site)
    }

    fn driver(&self, request: &Request<'_>, access: Access) -> Box<dyn Driver> {
        Box::new(AcpDriver::new(Box::new(dialect::Kimi::new(request, access)), request, access))
    }

    fn person_files(&self, with_user_config: bool) -> Option<PersonFiles> {
        let names: &[&str] =
            if with_user_config { &[config::FILE, config::SERVERS, config::INSTRUCTIONS] } else { &[config::FILE] };
        Some(PersonFiles { variable: HOME_VARIABLE, folder: HOME_FOLDER, names })
    }

    fn left_out(&self, request: &Request<'_>, _access: Access) -> Result<Vec<String>, Failure> {
        config::left_out(request)
    }

    fn secrets(&self, request: &Request<'_>) -> Vec<String> {
        config::secrets(request)
    }

    fn preflight_failure(
        &self,
        _request: &Request<'_>,
        preflight: &Preflight,
        _exit: Option<ExitRecord>,
        output: &str,
    ) -> Failure {
        // Other words of it may quote the file.
        config::ignored(output).unwrap_or_else(|| preflight.failure.clone())
    }

    fn is_logged_in(&self, seen: &SeenLogins<'_>) -> Option<bool> {
        config::is_logged_in(seen)
    }
}

fn launch(request: &Request<'_>, Site { tree, access, .. }: Site<'_>) -> Result<Launch, Failure> {
    let places = request.places;
    let state = places.home.join(STATE);
    let user = places.home.join(USER);
    let (executable, mut args) = match request.interpreter {
        Some(node) => (node.clone(), vec![utf8(AGENT, request.executable)?.to_owned()]),
        None => (request.executable.clone(), Vec::new()),
    };
    let mut check = args.clone();
    check.extend(["doctor", "config", utf8(AGENT, &state.join(config::FILE))?].map(str::to_owned));
    args.push("acp".to_owned());
    let mut files = vec![
        PlannedFile { path: state.join(config::FILE), contents: config::render(request, access)? },
        // Made so that there is a home: kimi asks a login shell for its environment.
        PlannedFile { path: user.join(".profile"), contents: String::new() },
        ripgrep::stand_in(&state.join("bin")),
    ];
    let beside = [config::SERVERS, config::INSTRUCTIONS].into_iter().filter(|_| request.with_user_config);
    files.extend(beside.filter_map(|name| {
        let contents = request.person_file(name)?.to_owned();
        Some(PlannedFile { path: state.join(name), contents })
    }));
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Ok(Launch {
        executable,
        args,
        cwd: tree.clone(),
        env: vec![
            set("PWD", utf8(AGENT, tree)?),
            set("HOME", utf8(AGENT, &user)?),
            set("TMPDIR", utf8(AGENT, &places.tmp)?),
            set(HOME_VARIABLE, utf8(AGENT, &state)?),
            // Without these it asks for news and reports on itself.
            set("KIMI_DISABLE_TELEMETRY", "1"),
            set("KIMI_CODE_NO_AUTO_UPDATE", "1"),
            set("KIMI_DISABLE_CRON", "1"),
        ],
        keep_env: request.settings.environment.clone(),
        files,
        links: places.login_links(&ABOUT, &state),
        stdin: Stdin::Driver,
        preflight: vec![settings_check(check)],
        leftovers: Vec::new(),
    })
}

/// kimi goes on without a section that it does not understand, and says so to nobody who speaks ACP with it. Asked, it
/// tells: without a session, and without talking to anybody.
fn settings_check(args: Vec<String>) -> Preflight {
    let message =
        "kimi did not say whether it understands the job's settings, and goes on without those that it does not";
    let next = "see what `kimi doctor config` says of kimi's own config.toml";
    Preflight {
        args,
        limit: Duration::from_secs(30),
        failure: Failure::new(FailureCode::InvalidConfig, message, next),
        must_pass: false,
    }
}
