//! The codex CLI, driven by `codex exec --json` (facts: codex-cli 0.171 on Linux).
//!
//! This file plans: arguments, files, links, checks. [`config`] makes the configuration, [`driver`] understands the
//! output, [`failure`] names what went wrong, [`launcher`] finds the program behind the npm launcher.

mod config;
mod driver;
mod failure;
mod launcher;
mod stderr;

use std::time::Duration;

use super::handed::{plain, utf8};
use super::{
    About, Confined, Driver, Harness, HarnessName, HarnessSettings, Instructions, Launch, LinkKind, LoginPlace,
    PersonFiles, PlannedFile, Preflight, Request, Resume, SeenLogins, Site, Stdin, UserConfig, VendorKeys,
};
use crate::job::access::Access;
use crate::job::event::ExitRecord;
use crate::{AbsPath, Failure};

const AGENT: &str = "codex";

/// The minor version that every statement of this module was observed with.
pub const TESTED_VERSION: &str = "0.171";

/// What a person tells every agent of codex.
const INSTRUCTIONS: &str = "AGENTS.md";

/// The person's own codex home: named by this, else below their home directory.
const HOME_VARIABLE: &str = "CODEX_HOME";
const HOME_FOLDER: &str = ".codex";

/// Into the file that jobs are led to, wherever the person's configuration has codex keep its login: a keyring's entry
/// is of one home, and a job's is another.
const LOGIN: &str = "codex login -c cli_auth_credentials_store=file";

/// The codex CLI.
#[derive(Clone, Copy, Debug)]
pub struct Codex;

const ABOUT: About = About {
    executables: &["codex"],
    install_hint: "npm install -g @openai/codex",
    tested_versions: &[TESTED_VERSION],
    has_sandbox: true,
    home_variable: Some(HOME_VARIABLE),
    home_folder: Some(HOME_FOLDER),
    // In read-only jobs as well: the sandbox is codex's, and what would act outside of it stays out.
    user_config: UserConfig::Taken,
    read_only_user_config: UserConfig::Taken,
    private_files: &[config::FILE],
    // In a project that is called untrusted, nothing else of it is read: neither settings nor `AGENTS.md`.
    instructions: Instructions::Read(&[".agents/skills", ".codex/skills"]),
    login_probe: Some(&["login", "status"]),
    login_command: Some(LOGIN),
    // codex refreshes through the link: one that lands in a copy would spend the person's only refresh token.
    login_places: &[LoginPlace { path: "auth.json", kind: LinkKind::ReplacedFile }],
    session_places: &["sessions", "archived_sessions"],
    // It does not read OPENAI_API_KEY; a provider's `env_key` is let through with the provider.
    vendor_keys: VendorKeys::Own(&["CODEX_API_KEY"]),
    ..About::USUAL
};

impl Harness for Codex {
    fn name(&self) -> HarnessName {
        HarnessName(AGENT.to_owned())
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn parse_version(&self, stdout: &str) -> Option<String> {
        let version = stdout.lines().find_map(|line| line.trim().strip_prefix("codex-cli "))?.trim();
        super::version::plain(version)
    }

    fn native_candidates(&self, executable: &AbsPath) -> Vec<AbsPath> {
        launcher::native_candidates(executable, launcher::Arch::of_this_build())
    }

    fn check_settings(&self, settings: &HarnessSettings, access: Access) -> Result<(), Failure> {
        config::check(&settings.config, access)
    }

    fn launch(&self, request: &Request<'_>, site: Site<'_>) -> Result<Launch, Failure> {
        launch(request, site)
    }

    fn driver(&self, request: &Request<'_>, access: Access) -> Box<dyn Driver> {
        Box::new(driver::ExecDriver::new(request, access))
    }

    fn preflight_failure(
        &self,
        request: &Request<'_>,
        preflight: &Preflight,
        exit: Option<ExitRecord>,
        output: &str,
    ) -> Failure {
        failure::of_preflight(preflight, exit, output, &failure::Context::of(request))
    }

    /// Only of a provider of the person's own, which its login is nothing to.
    fn is_logged_in(&self, seen: &SeenLogins<'_>) -> Option<bool> {
        let provider = config::provider(&seen.settings.config);
        let needs_key = !provider.uses_login && !provider.variables.is_empty();
        needs_key.then(|| provider.variables.iter().all(|name| (seen.is_set)(name)))
    }

    /// A job has what is in the file, and no keyring.
    fn lacks_login(&self, seen: &SeenLogins<'_>) -> bool {
        let uses_login = config::provider(&seen.settings.config).uses_login;
        uses_login && !seen.has_login() && !seen.has_any(ABOUT.vendor_keys.names().iter().copied())
    }

    fn confined(&self, settings: &HarnessSettings, access: Access) -> Option<Confined> {
        let allowed = settings.config.get("sandbox_workspace_write").and_then(|table| table.get("network_access"));
        let network = access == Access::Write && allowed.and_then(toml::Value::as_bool).unwrap_or(true);
        let args = [
            "sandbox",
            "-c",
            &format!("sandbox_mode=\"{}\"", sandbox_mode(access)),
            "-c",
            &format!("sandbox_workspace_write.network_access={network}"),
            "--",
        ];
        Some(Confined { args: args.map(str::to_owned).to_vec(), network, failure: failure::no_sandbox() })
    }

    fn person_files(&self, with_user_config: bool) -> Option<PersonFiles> {
        with_user_config.then_some(PersonFiles {
            variable: HOME_VARIABLE,
            folder: HOME_FOLDER,
            names: &[config::FILE, INSTRUCTIONS],
        })
    }

    fn left_out(&self, request: &Request<'_>, access: Access) -> Result<Vec<String>, Failure> {
        let tree = utf8(AGENT, &request.places.tree)?;
        Ok(config::generate(config::Job { request, tree, access, network: false })?.left_out)
    }

    fn secrets(&self, request: &Request<'_>) -> Vec<String> {
        config::secrets(request)
    }
}

fn launch(request: &Request<'_>, Site { tree, access, network }: Site<'_>) -> Result<Launch, Failure> {
    let places = request.places;
    let tree_text = utf8(AGENT, tree)?;
    let config = config::generate(config::Job { request, tree: tree_text, access, network })?;
    let mode = sandbox_mode(access);
    let mut keep_env = request.settings.environment.clone();
    for variable in &config.provider.variables {
        if !keep_env.contains(variable) {
            keep_env.push(variable.clone());
        }
    }
    let instructions = request.person_file(INSTRUCTIONS).map(|text| (INSTRUCTIONS, text.to_owned()));
    Ok(Launch {
        executable: request.executable.clone(),
        args: arguments(request, tree_text, mode)?,
        cwd: tree.clone(),
        env: vec![
            (HOME_VARIABLE.to_owned(), utf8(AGENT, &places.home)?.to_owned()),
            // Not an ancestor of CODEX_HOME: codex makes no sandbox helpers below a temporary directory.
            ("TMPDIR".to_owned(), utf8(AGENT, &places.tmp)?.to_owned()),
            ("PACTIFY_JOB".to_owned(), request.job.to_string()),
        ],
        keep_env,
        files: [Some((config::FILE, config.text)), instructions]
            .into_iter()
            .flatten()
            .map(|(name, contents)| PlannedFile { path: places.home.join(name), contents })
            .collect(),
        links: if config.provider.uses_login { places.login_links(&ABOUT, &places.home) } else { Vec::new() },
        stdin: Stdin::Text(request.brief.as_str().to_owned()),
        preflight: vec![sandbox_check(mode)],
        // Mount points of the sandbox; a killed codex leaves them behind, empty.
        leftovers: [".agents", ".aws", ".codex"].map(str::to_owned).to_vec(),
    })
}

fn sandbox_mode(access: Access) -> &'static str {
    match access {
        Access::Write => "workspace-write",
        Access::ReadOnly => "read-only",
    }
}

/// `-` as the prompt makes codex read standard input to its end. A resume takes the flags of `exec` only before the
/// word `resume`, and remembers neither mode nor directory.
fn arguments(request: &Request<'_>, tree: &str, mode: &str) -> Result<Vec<String>, Failure> {
    let model = request.model.or(request.settings.model.as_deref());
    let model = model.map(|model| plain(AGENT, "the model", model)).transpose()?;
    let mut args = vec!["exec", "--json", "--strict-config", "-s", mode, "-C", tree];
    if let Some(model) = model {
        args.extend(["-m", model]);
    }
    if let Some(Resume { session, .. }) = request.resume {
        args.extend(["resume", plain(AGENT, "the session", session)?]);
    }
    args.push("-");
    Ok(args.into_iter().map(str::to_owned).collect())
}

/// Without a working sandbox codex fails every command of the agent and still ends well: asked for beforehand.
fn sandbox_check(mode: &str) -> Preflight {
    Preflight {
        args: ["sandbox", "-c", &format!("sandbox_mode=\"{mode}\""), "--", "true"].map(str::to_owned).to_vec(),
        limit: Duration::from_secs(15),
        failure: failure::no_sandbox(),
        must_pass: true,
    }
}
