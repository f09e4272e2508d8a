//! agy, the command line of Google Antigravity: experimental, built from public facts alone (versions 1.1.15 to 1.5.7).
//!
//! This file plans: arguments, files, links. [`settings`] makes its settings, [`guard`] the hooks that keep a read-only
//! job from writing and the proof that they ran, [`driver`] understands the stream, [`verdict`] decides what a turn
//! came to. agy is closed, updates itself, and its public descriptions contradict each other in places: where they do,
//! both are served, and whatever cannot be shown to have worked fails the job.

mod driver;
mod guard;
mod settings;
mod verdict;

use super::handed::{plain, utf8};
use super::{
    About, Driver, Harness, HarnessName, HarnessSettings, Instructions, Launch, LinkKind, LoginPlace, PlannedFile,
    PlannedLink, Request, SeenLogins, Site, Stdin, UserConfig, VendorKeys,
};
use crate::job::access::Access;
use crate::{AbsPath, Failure, FailureCode};

const AGENT: &str = "agy";

/// The oldest version whose stream is described (`--input-format stream-json`).
const AT_LEAST: [u64; 3] = [1, 1, 15];

/// The versions that public descriptions are of. (None was ever run here.)
const DESCRIBED: &[&str] = &["1.1", "1.2", "1.3", "1.4", "1.5"];

/// agy's own state, below a person's home directory.
const HOME_FOLDER: &str = ".gemini";

/// Its login, below that, on Linux without a keyring. (A keyring is reached as ever: `HOME` stays the person's.)
const LOGIN: &str = "antigravity-cli/antigravity-oauth-token";

/// Longer than any job: its own time-out (five minutes where nobody says otherwise) ends a turn as a success.
const NEVER: &str = "240h";

/// agy.
#[derive(Clone, Copy, Debug)]
pub struct Agy;

const ABOUT: About = About {
    executables: &["agy"],
    install_hint: "see antigravity.google",
    tested_versions: DESCRIBED,
    probe_environment: &[NO_UPDATE],
    home_folder: Some(HOME_FOLDER),
    read_only_user_config: UserConfig::Refused(
        "its read-only jobs rest on a hook of ours, and your own home may bring others, and plugins",
    ),
    instructions: Instructions::Read(&["GEMINI.md", ".agents"]),
    login_command: Some("agy"),
    login_places: &[LoginPlace { path: LOGIN, kind: LinkKind::ReplacedFile }],
    session_places: &["antigravity-cli/conversations"],
    vendor_keys: VendorKeys::Own(&["GEMINI_API_KEY"]),
    ..About::USUAL
};

impl Harness for Agy {
    fn name(&self) -> HarnessName {
        HarnessName(AGENT.to_owned())
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn parse_version(&self, stdout: &str) -> Option<String> {
        let words = stdout.split_whitespace().map(|word| word.trim_start_matches('v'));
        words.into_iter().find(|word| numbers(word).is_some()).map(str::to_owned)
    }

    fn check_settings(&self, asked: &HarnessSettings, access: Access) -> Result<(), Failure> {
        settings::allowed(&asked.config, access).map(drop)
    }

    fn launch(&self, request: &Request<'_>, site: Site<'_>) -> Result<Launch, Failure> {
        launch(request, site)
    }

    fn driver(&self, request: &Request<'_>, access: Access) -> Box<dyn Driver> {
        Box::new(driver::StreamDriver::new(request, access))
    }

    /// Without a file the login may be in a keyring, which only agy can open.
    fn is_logged_in(&self, seen: &SeenLogins<'_>) -> Option<bool> {
        (seen.has_login() || seen.has_any(["GEMINI_API_KEY"])).then_some(true)
    }
}

/// It replaces itself while it runs, unless it is told not to.
const NO_UPDATE: (&str, &str) = ("AGY_CLI_DISABLE_AUTO_UPDATE", "T");

fn launch(request: &Request<'_>, Site { tree, access, .. }: Site<'_>) -> Result<Launch, Failure> {
    refuse_version(request.version)?;
    let home = if request.with_user_config { persons_home(request, access)? } else { private_home(request, access)? };
    let mut env = vec![
        ("TMPDIR".to_owned(), utf8(AGENT, &request.places.tmp)?.to_owned()),
        (NO_UPDATE.0.to_owned(), NO_UPDATE.1.to_owned()),
    ];
    if access == Access::ReadOnly {
        // `git status` would refresh the index.
        env.push(("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned()));
    }
    Ok(Launch {
        executable: request.executable.clone(),
        args: arguments(request, utf8(AGENT, tree)?, home.gemini.as_ref(), access)?,
        cwd: tree.clone(),
        env,
        keep_env: request.settings.environment.clone(),
        files: home.files,
        links: home.links,
        stdin: Stdin::Driver,
        preflight: Vec::new(),
        leftovers: Vec::new(),
    })
}

/// Where agy keeps its state in a job.
struct Home {
    /// Its place, where it is the job's own.
    gemini: Option<AbsPath>,
    files: Vec<PlannedFile>,
    links: Vec<PlannedLink>,
}

/// One of the job's own, with the person's login linked into it.
fn private_home(request: &Request<'_>, access: Access) -> Result<Home, Failure> {
    let gemini = request.places.home.join("gemini");
    let settings = settings::generate(&request.settings.config, access)?;
    let mut files = vec![
        PlannedFile { path: gemini.join("antigravity-cli").join("settings.json"), contents: settings.clone() },
        // Accounts differ on which of the two its permissions are read from.
        PlannedFile { path: gemini.join("config").join("config.json"), contents: settings },
    ];
    if access == Access::ReadOnly {
        files.extend(guard::files(&request.places.home, &gemini)?);
    }
    let links = request.places.login_links(&ABOUT, &gemini);
    Ok(Home { gemini: Some(gemini), files, links })
}

/// The person's, as it is: what a write job may do is said by arguments. Nothing of ours is written there.
fn persons_home(request: &Request<'_>, access: Access) -> Result<Home, Failure> {
    if access == Access::ReadOnly {
        return Err(Failure::internal("a read-only job of agy was to work in the person's home"));
    }
    if !request.settings.config.is_empty() {
        return Err(Failure::new(
            FailureCode::InvalidConfig,
            "with your own configuration agy runs in your own home, where [harnesses.agy.config] is not written",
            "leave `withUserConfig` out, or move what stands in [harnesses.agy.config] into agy's own settings",
        ));
    }
    Ok(Home { gemini: None, files: Vec::new(), links: Vec::new() })
}

/// The prompt is no argument: it comes as a line of the stream. `--disable-slash-commands` excludes plan mode; there
/// the driver sees to it that no task is taken for a command.
fn arguments(
    request: &Request<'_>,
    tree: &str,
    gemini: Option<&AbsPath>,
    access: Access,
) -> Result<Vec<String>, Failure> {
    let mut args = ["--input-format", "stream-json", "--output-format", "stream-json", "--print-timeout", NEVER]
        .map(str::to_owned)
        .to_vec();
    if let Some(gemini) = gemini {
        args.push(format!("--gemini_dir={}", utf8(AGENT, gemini)?));
    }
    args.extend(["--add-dir".to_owned(), tree.to_owned()]);
    let mode: &[&str] = match access {
        Access::Write => &["--dangerously-skip-permissions", "--disable-slash-commands"],
        Access::ReadOnly => &["--mode", "plan"],
    };
    args.extend(mode.iter().map(|&arg| arg.to_owned()));
    if let Some(model) = request.model.or(request.settings.model.as_deref()) {
        args.extend(["--model".to_owned(), plain(AGENT, "the model", model)?.to_owned()]);
    }
    if let Some(resume) = request.resume {
        args.extend(["--conversation".to_owned(), plain(AGENT, "the conversation", resume.session)?.to_owned()]);
    }
    Ok(args)
}

fn refuse_version(version: Option<&str>) -> Result<(), Failure> {
    let [major, minor, patch] = AT_LEAST;
    if version.and_then(numbers).is_some_and(|numbers| numbers >= AT_LEAST) {
        return Ok(());
    }
    let this =
        version.map_or("agy does not say which version it is".to_owned(), |version| format!("this is agy {version}"));
    Err(Failure::new(
        FailureCode::HarnessIncompatible,
        format!("agy {major}.{minor}.{patch} or newer is needed, and {this}"),
        "run `agy update`, then retry the job",
    ))
}

/// `1.4.3`, with or without more behind it.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let plain = version.split(['-', '+']).next()?;
    let mut parts = plain.split('.').map(|part| part.parse::<u64>().ok());
    match (parts.next()??, parts.next()??, parts.next()??, parts.next()) {
        (major, minor, patch, None) if version.len() <= 64 => Some([major, minor, patch]),
        _ => None,
    }
}
