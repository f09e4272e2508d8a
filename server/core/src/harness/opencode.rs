//! The opencode CLI, driven over ACP (facts: opencode 1.18.33 on Linux).
//!
//! This file plans. [`config`] makes the configuration, [`person`] takes what the person has of their own, [`dialect`]
//! breaks loops that the protocol does not tell of, [`launcher`] finds the program behind npm's. Version 2 keeps logins
//! and permissions otherwise: [`second`].

mod config;
mod dialect;
mod launcher;
mod person;
mod second;

use super::acp::{AcpDriver, Dialect};
use super::handed::utf8;
use super::{
    About, Driver, Harness, HarnessName, HarnessSettings, Instructions, KeptLogin, Launch, LinkKind, LoginPlace,
    PersonFiles, PlannedFile, PlannedLink, Request, SeenLogins, Site, Stdin, UserConfig, VendorKeys, ripgrep,
};
use crate::job::access::Access;
use crate::{AbsPath, Failure};

const AGENT: &str = "opencode";

/// The version that every statement of this module was observed with.
const TESTED_VERSION: &str = "1.18";

/// Below the job's home: what the variables of `XDG_*` lead to, and what its commands see as the home directory.
const CONFIG: &str = "config";
const DATA: &str = "data";
const USER: &str = "user";
const CACHE: &str = "cache";
/// A link to the person's own sessions, where a job's is to be among them.
const SESSIONS: &str = "sessions";

/// The opencode CLI.
#[derive(Clone, Copy, Debug)]
pub struct Opencode;

const ABOUT: About = About {
    executables: &["opencode"],
    install_hint: "npm install -g opencode-ai",
    tested_versions: &[TESTED_VERSION],
    probe_variables: &["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"],
    can_ask: true,
    home_variable: Some("XDG_DATA_HOME"),
    home_folder: Some(".local/share"),
    read_only_user_config: UserConfig::Refused(
        "nothing shows which tools its model is offered, and your configuration may bring some that write",
    ),
    private_files: &["config/opencode/opencode.json"],
    login_command: Some("opencode auth login"),
    login_places: &[LoginPlace { path: "opencode/auth.json", kind: LinkKind::WrittenFile }],
    session_places: &["opencode/opencode.db", "opencode/opencode.db-wal", "opencode/storage"],
    // The name that it gave the project.
    git_files: &["opencode"],
    needs_ripgrep: true,
    vendor_keys: VendorKeys::Every,
    ..About::USUAL
};

impl Harness for Opencode {
    fn name(&self) -> HarnessName {
        HarnessName(AGENT.to_owned())
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn native_candidates(&self, executable: &AbsPath) -> Vec<AbsPath> {
        launcher::native_candidates(executable, launcher::Machine::of_this_build())
    }

    fn check_settings(&self, settings: &HarnessSettings, access: Access) -> Result<(), Failure> {
        config::check(&settings.config, access)
    }

    fn launch(&self, request: &Request<'_>, site: Site<'_>) -> Result<Launch, Failure> {
        launch(request, site)
    }

    fn driver(&self, request: &Request<'_>, access: Access) -> Box<dyn Driver> {
        let dialect: Box<dyn Dialect> = match second::is_meant(request.version) {
            true => Box::new(second::Second),
            false => Box::new(dialect::Opencode::new(access)),
        };
        Box::new(AcpDriver::new(dialect, request, access))
    }

    fn person_files(&self, with_user_config: bool) -> Option<PersonFiles> {
        with_user_config.then_some(PersonFiles { variable: "XDG_CONFIG_HOME", folder: ".config", names: person::NAMES })
    }

    fn left_out(&self, request: &Request<'_>, _access: Access) -> Result<Vec<String>, Failure> {
        Ok(person::take(request)?.left_out)
    }

    fn secrets(&self, request: &Request<'_>) -> Vec<String> {
        person::secrets(request)
    }

    /// Of version 1 alone: whether there is one in what pactify keeps for version 2 only that knows.
    fn is_logged_in(&self, seen: &SeenLogins<'_>) -> Option<bool> {
        let is_first = second::major(seen.version) == Some(1);
        is_first.then(|| config::is_logged_in(seen, ABOUT.vendor_keys)).flatten()
    }

    fn repository_instructions(&self, version: Option<&str>) -> Instructions {
        // The switches by which version 1 is kept from them may mean nothing to version 2.
        if second::is_meant(version) { second::INSTRUCTIONS } else { ABOUT.instructions }
    }

    fn modes_of(&self, version: Option<&str>) -> &'static [Access] {
        if second::is_meant(version) { &[Access::Write] } else { self.modes() }
    }

    fn asks(&self, version: Option<&str>) -> bool {
        !second::is_meant(version)
    }

    fn kept_login(&self, version: Option<&str>) -> Option<KeptLogin> {
        second::is_meant(version).then_some(second::KEPT)
    }
}

fn launch(request: &Request<'_>, site: Site<'_>) -> Result<Launch, Failure> {
    if second::is_meant(request.version) {
        return second::launch(request, site);
    }
    let Site { tree, access, .. } = site;
    let places = request.places;
    let home = &places.home;
    let own = home.join(CONFIG).join("opencode");
    let config = config::generate(request, access)?;
    let mut keep_env = request.settings.environment.clone();
    keep_env.extend(config.variables);
    let file = |path: AbsPath, contents: String| PlannedFile { path, contents };
    let instructions =
        request.person_file(person::INSTRUCTIONS).map(|text| file(own.join("AGENTS.md"), text.to_owned()));
    let mut files = vec![
        file(own.join("opencode.json"), config.text),
        // A config directory that has these is taken for installed: otherwise npm would run beside every job.
        file(own.join("package.json"), config::package(request.version)),
        file(own.join("package-lock.json"), config::package_lock(request.version)),
        file(own.join("node_modules").join(".package-lock.json"), "{}\n".to_owned()),
        file(home.join(USER).join(".profile"), String::new()),
        ripgrep::stand_in(&programs(home)),
    ];
    files.extend(instructions);
    Ok(Launch {
        executable: request.executable.clone(),
        // Its log is the only thing that tells of a provider that refuses, or of a loop.
        args: ["acp", "--print-logs", "--log-level", "INFO"].map(str::to_owned).to_vec(),
        cwd: tree.clone(),
        env: environment(request, tree)?,
        keep_env,
        files,
        links: [places.login_links(&ABOUT, &home.join(DATA)), Vec::from_iter(sessions_link(request))].concat(),
        stdin: Stdin::Driver,
        preflight: Vec::new(),
        leftovers: Vec::new(),
    })
}

/// Where it keeps programs that it downloaded.
fn programs(home: &AbsPath) -> AbsPath {
    home.join(CACHE).join("opencode").join("bin")
}

fn environment(request: &Request<'_>, tree: &AbsPath) -> Result<Vec<(String, String)>, Failure> {
    let home = &request.places.home;
    let place = |name: &str, path: &AbsPath| Ok((name.to_owned(), utf8(AGENT, path)?.to_owned()));
    let mut env: Vec<(String, String)> = [
        // It believes the variable more than the kernel.
        place("PWD", tree),
        place("HOME", &home.join(USER)),
        place("TMPDIR", &request.places.tmp),
        place("XDG_CONFIG_HOME", &home.join(CONFIG)),
        place("XDG_DATA_HOME", &home.join(DATA)),
        place("XDG_CACHE_HOME", &home.join(CACHE)),
        place("XDG_STATE_HOME", &home.join("state")),
    ]
    .into_iter()
    .collect::<Result<_, Failure>>()?;
    let switches = [
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_PURE",
        // Agents, plugins, programs and permissions that a repository brings.
        "OPENCODE_DISABLE_PROJECT_CONFIG",
        "OPENCODE_DISABLE_EXTERNAL_SKILLS",
        "OPENCODE_DISABLE_CLAUDE_CODE",
    ];
    env.extend(switches.map(|name| (name.to_owned(), "1".to_owned())));
    if request.with_user_config {
        // Through the link to where the person's own sessions are.
        env.push(("OPENCODE_DB".to_owned(), utf8(AGENT, &home.join(SESSIONS).join("opencode.db"))?.to_owned()));
    }
    // Without one, every program on the machine may drive the job through the port that it opens.
    env.push(("OPENCODE_SERVER_PASSWORD".to_owned(), request.nonce.to_owned()));
    Ok(env)
}

/// The directory of the person's sessions, for a job that is to be among them: sqlite keeps more files beside the one.
fn sessions_link(request: &Request<'_>) -> Option<PlannedLink> {
    let data = request.places.person_state.as_ref().filter(|_| request.with_user_config)?;
    let at = request.places.home.join(SESSIONS);
    Some(PlannedLink { at, target: data.join("opencode"), kind: LinkKind::Shared })
}
