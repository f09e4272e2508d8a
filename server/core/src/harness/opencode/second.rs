//! opencode 2, experimental: built from what is publicly known of it (2.0.26), never run here.
//!
//! Known: `opencode acp` is still there, and so is the form of the configuration file, permissions apart, which are an
//! ordered list of which the last match wins and no match means a question. Its login is a row of its database, which
//! cannot be linked: pactify keeps a data directory for it, with a login that the person makes there ([`KEPT`]), and
//! jobs share that. Not known, and therefore refused, each with its reason: what shows which tools a session has
//! (read-only jobs), whether the questions of sub-agents arrive (`permissions: ask`), where the person's own sessions
//! and settings are (`withUserConfig`). Its log is not known either, so nothing but the limits of every job breaks a
//! loop.

use serde_json::{Value, json};

use super::super::acp::{Dialect, Speaker};
use super::super::handed::utf8;
use super::super::{Instructions, KeptLogin, Launch, PlannedFile, Request, Site, Stdin, ripgrep};
use super::{AGENT, CONFIG, TESTED_VERSION, USER, config};
use crate::job::access::Access;
use crate::permission::Policy;
use crate::{Failure, FailureCode};

/// The data directory that pactify keeps, below its place for opencode.
const DATA: &str = "data";

/// Its login: the program's own, in directories that are kept apart from the person's.
pub(super) const KEPT: KeptLogin = KeptLogin {
    args: &["auth", "login"],
    variables: &[
        ("XDG_DATA_HOME", DATA),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"),
    ],
};

const SPEAKER: Speaker<'_> = Speaker {
    agent: AGENT,
    log_in: "run `pactify sub login opencode` in a terminal, or set the provider's key; then retry the job",
};

/// Everything that it is known to ask for, and what a job answers. Each by its name, as nothing says that `*` names
/// all.
const PERMISSIONS: &[(&str, &str)] = &[
    ("*", "allow"),
    ("read", "allow"),
    ("edit", "allow"),
    ("glob", "allow"),
    ("grep", "allow"),
    ("list", "allow"),
    ("shell", "allow"),
    ("subagent", "allow"),
    ("skill", "allow"),
    ("lsp", "allow"),
    ("todowrite", "allow"),
    ("webfetch", "allow"),
    ("websearch", "allow"),
    // Of file tools only: a shell is not confined.
    ("external_directory", "deny"),
    ("doom_loop", "deny"),
    ("question", "deny"),
];

/// What version 1 reads of a repository unless it is kept from it.
pub(super) const INSTRUCTIONS: Instructions = Instructions::MayRead(&[
    "AGENTS.md",
    "CLAUDE.md",
    "opencode.json",
    "opencode.jsonc",
    ".opencode",
    ".agents/skills",
    ".claude/skills",
]);

/// Whether a program of this version is of this kind.
pub(super) fn is_meant(version: Option<&str>) -> bool {
    major(version).is_some_and(|major| major >= 2)
}

/// The first number of a version.
pub(super) fn major(version: Option<&str>) -> Option<u64> {
    version?.split('.').next()?.parse().ok()
}

pub(super) fn launch(request: &Request<'_>, Site { tree, access, .. }: Site<'_>) -> Result<Launch, Failure> {
    refuse(request, access)?;
    let home = &request.places.home;
    let own = home.join(CONFIG).join("opencode");
    let config = config::generate_second(request, permissions())?;
    let mut keep_env = request.settings.environment.clone();
    keep_env.extend(config.variables);
    let mut env = super::environment(request, tree)?;
    for (name, value) in &mut env {
        if name == "XDG_DATA_HOME" {
            *value = utf8(AGENT, &request.places.kept.join(DATA))?.to_owned();
        }
    }
    Ok(Launch {
        executable: request.executable.clone(),
        // Which other arguments it takes is not known.
        args: vec!["acp".to_owned()],
        cwd: tree.clone(),
        env,
        keep_env,
        files: vec![
            PlannedFile { path: own.join("opencode.json"), contents: config.text },
            PlannedFile { path: home.join(USER).join(".profile"), contents: String::new() },
            ripgrep::stand_in(&super::programs(home)),
        ],
        links: Vec::new(),
        stdin: Stdin::Driver,
        preflight: Vec::new(),
        leftovers: Vec::new(),
    })
}

/// What nothing that is known would make true.
fn refuse(request: &Request<'_>, access: Access) -> Result<(), Failure> {
    let version = request.version.unwrap_or("2");
    let refused = |what: &str, why: &str, next: &str| {
        let message = format!("opencode {version} has no {what} here: {why}");
        Err(Failure::new(FailureCode::HarnessIncompatible, message, next))
    };
    if access == Access::ReadOnly {
        let next = format!(
            "use another harness, or opencode {TESTED_VERSION} (`npm install -g opencode-ai@{TESTED_VERSION}`; name it in \
             [harnesses.opencode] executable)"
        );
        return refused("read-only mode", "nothing that is known of it shows which tools its model is offered", &next);
    }
    if request.permissions == Policy::Ask {
        let why = "whether what its sub-agents ask for would arrive is not known, and the job might wait for ever";
        return refused("`permissions: ask`", why, "say `permissions: allow`: it works in a tree of its own");
    }
    if request.with_user_config {
        let why = "where it keeps your own settings and sessions is not known well enough";
        return refused("`withUserConfig`", why, "leave it out, and set what it needs in [harnesses.opencode.config]");
    }
    Ok(())
}

fn permissions() -> Value {
    let rules = PERMISSIONS.iter().map(|(action, effect)| json!({"action": action, "resource": "*", "effect": effect}));
    rules.collect()
}

/// opencode 2, in one launch.
#[derive(Debug)]
pub(super) struct Second;

impl Dialect for Second {
    fn speaker(&self) -> Speaker<'_> {
        SPEAKER
    }

    fn chooses_model(&self) -> bool {
        false
    }

    fn exit_failure(&self, stderr: &str) -> Option<Failure> {
        super::dialect::refused_config(stderr)
    }
}
