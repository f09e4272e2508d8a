//! The command line of codex, as far as pactify uses it, and the refusals that come before a turn.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::acp;
use super::escape::Linger;
use super::lines::Lines;
use super::play::{Turn, command};
use super::step::Step;
use super::thread::Thread;
use super::{Login, Profile, profile_of};

/// A coding agent that follows a script, in the place of codex
#[derive(Parser)]
#[command(name = "codex", disable_version_flag = true)]
struct Codex {
    /// Print version
    #[arg(short = 'V', long)]
    version: bool,
    #[command(subcommand)]
    then: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Run one turn without a user interface
    Exec(Box<Exec>),
    /// Run a command in the sandbox
    Sandbox(Sandbox),
    /// Show the login
    Login {
        #[command(subcommand)]
        verb: LoginVerb,
    },
    /// Speak the Agent Client Protocol on standard input and output
    Acp,
    /// An escapee of an earlier run
    #[command(name = "__linger", hide = true)]
    Linger(Linger),
    /// A command in a session of its own
    #[command(name = "__session", hide = true)]
    Session { command: String },
}

#[derive(Subcommand)]
enum LoginVerb {
    Status,
}

#[derive(Args)]
struct Exec {
    #[arg(long)]
    json: bool,
    #[arg(long)]
    strict_config: bool,
    #[arg(short, long, default_value = "read-only")]
    sandbox: Mode,
    #[arg(short = 'C', long, default_value = ".")]
    cd: PathBuf,
    #[arg(short, long)]
    model: Option<String>,
    #[arg(short, long)]
    config: Vec<String>,
    #[arg(short, long)]
    output_last_message: Option<PathBuf>,
    #[arg(long)]
    output_schema: Option<PathBuf>,
    #[arg(long)]
    ephemeral: bool,
    #[arg(long)]
    skip_git_repo_check: bool,
    prompt: Option<String>,
    #[command(subcommand)]
    then: Option<Again>,
}

#[derive(Subcommand)]
enum Again {
    Resume { id: String, prompt: Option<String> },
}

#[derive(Args)]
struct Sandbox {
    #[arg(short, long)]
    config: Vec<String>,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

/// The program.
#[must_use]
pub fn run() -> ExitCode {
    let codex = Codex::parse();
    match dispatch(codex) {
        Ok(code) => code,
        Err(Refusal(message)) => {
            say(&mut io::stderr(), &message);
            ExitCode::FAILURE
        }
    }
}

/// codex ends with code 1 and this on the standard error, before any event.
struct Refusal(String);

fn dispatch(codex: Codex) -> Result<ExitCode, Refusal> {
    let profile = profile()?;
    if codex.version {
        say(&mut io::stdout(), &format!("codex-cli {}", profile.version));
        return Ok(ExitCode::SUCCESS);
    }
    match codex.then {
        Some(Verb::Exec(exec)) => exec.run(&profile),
        Some(Verb::Sandbox(sandbox)) => sandbox.run(&profile),
        Some(Verb::Login { verb: LoginVerb::Status }) => Ok(login_status(profile.login)),
        Some(Verb::Acp) => acp::serve(&profile).map(|()| ExitCode::SUCCESS).map_err(error("over ACP")),
        Some(Verb::Linger(linger)) => linger.live().map(|()| ExitCode::SUCCESS).map_err(error("can't linger")),
        Some(Verb::Session { command }) => session(&command),
        None => Err(Refusal("scripted-agent has no user interface: use `exec --json`".to_owned())),
    }
}

fn profile() -> Result<Profile, Refusal> {
    let Some(program) = std::env::args_os().next() else { return Ok(Profile::default()) };
    match std::fs::read(profile_of(Path::new(&program))) {
        Ok(text) => serde_json::from_slice(&text).map_err(error("in the agent's profile")),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(Profile::default()),
        Err(other) => Err(Refusal(format!("Error: the agent's profile: {other}"))),
    }
}

fn login_status(login: Login) -> ExitCode {
    let (text, code) = match login {
        Login::ChatGpt => ("Logged in using ChatGPT", ExitCode::SUCCESS),
        Login::ApiKey => ("API key configured - sk-*****ed", ExitCode::SUCCESS),
        Login::None => ("Not logged in", ExitCode::FAILURE),
    };
    say(&mut io::stderr(), text);
    code
}

fn session(text: &str) -> Result<ExitCode, Refusal> {
    rustix::process::setsid().map_err(error("setsid"))?;
    Err(error("bash")(command("bash").args(["-c", text]).exec()))
}

impl Sandbox {
    fn run(self, profile: &Profile) -> Result<ExitCode, Refusal> {
        if !profile.has_sandbox {
            return Err(Refusal("bwrap: Creating new namespace failed: No space left on device".to_owned()));
        }
        let mut words = self.command.into_iter();
        let program = words.next().unwrap_or_default();
        Err(error("can't run the command")(command(program).args(words).exec()))
    }
}

impl Exec {
    fn run(self, profile: &Profile) -> Result<ExitCode, Refusal> {
        let home = self.home()?;
        let folder = self.cd.canonicalize().map_err(error("the folder of -C"))?;
        if !self.skip_git_repo_check && !folder.ancestors().any(|above| above.join(".git").exists()) {
            let text = "Not inside a trusted directory and --skip-git-repo-check was not specified.";
            return Err(Refusal(text.to_owned()));
        }
        if !self.json {
            return Err(Refusal("scripted-agent prints only JSON lines: use --json".to_owned()));
        }
        let (thread, prompt) = match self.then {
            None => (Thread::new(&home, self.ephemeral), self.prompt),
            Some(Again::Resume { id, prompt }) => {
                let missing =
                    format!("Error: thread/resume: thread/resume failed: no rollout found for thread id {id}");
                (Thread::find(&home, &id).map_err(|_| Refusal(format!("{missing} (code -32600)")))?, prompt)
            }
        };
        let prompt = read_prompt(prompt)?;
        let steps = Step::in_prompt(&prompt).map(|steps| steps.unwrap_or_else(|| profile.steps.clone()));
        thread.keep().map_err(error("can't keep the thread"))?;
        let turn = Turn {
            folder,
            prompt,
            thread,
            lines: Lines::new(),
            refuses_edits: self.sandbox == Mode::ReadOnly,
            last_message: None,
            last_message_file: self.output_last_message,
        };
        Ok(turn.play(steps))
    }

    fn home(&self) -> Result<PathBuf, Refusal> {
        #[expect(clippy::disallowed_methods, reason = "this stands in for another program, with its own environment")]
        let home = std::env::var_os("CODEX_HOME").map(PathBuf::from);
        let home = home.ok_or_else(|| Refusal("Error: scripted-agent needs CODEX_HOME".to_owned()))?;
        if !home.is_dir() {
            return Err(Refusal(format!(
                "Error: CODEX_HOME points to {}, but that path does not exist",
                home.display()
            )));
        }
        match std::fs::read_to_string(home.join("config.toml")) {
            Ok(text) => text.parse::<toml::Table>().map_err(error("loading config.toml"))?,
            Err(_) => toml::Table::new(),
        };
        Ok(home)
    }
}

/// The prompt on the command line, or all of the standard input if that is `-` or missing.
fn read_prompt(argument: Option<String>) -> Result<String, Refusal> {
    if let Some(text) = argument.filter(|text| text != "-") {
        return Ok(text);
    }
    say(&mut io::stderr(), "Reading prompt from stdin...");
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt).map_err(error("reading the prompt"))?;
    if prompt.trim().is_empty() {
        return Err(Refusal("No prompt provided via stdin.".to_owned()));
    }
    Ok(prompt)
}

fn error<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> Refusal {
    move |error| Refusal(format!("Error {what}: {error}"))
}

/// A line for whoever listens; it doesn't matter if nobody does.
fn say(to: &mut impl Write, line: &str) {
    let _ = writeln!(to, "{line}");
}
