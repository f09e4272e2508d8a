//! A twin of agy, the command line of Google Antigravity, as public material describes it: the program `scripted-agy`.
//!
//! It takes agy's arguments as pactify uses them, speaks its stream, reads settings and hooks from `--gemini_dir` (the
//! person's `~/.gemini` without that), and does
//! what a fenced block in the task says, a step a line:
//!
//! ````text
//! ```agy
//! {"write": ["hello.txt", "hello\n"]}
//! {"run": "ls"}
//! {"say": "Done."}
//! ```
//! ````
//!
//! Of a task without such a block it does what `agy.steps` beside the program says.
//!
//! Plan mode refuses edits; commands that the settings do not allow are refused, as nobody can be asked; a hook is run
//! by `sh` before each tool and may refuse it. [`Step`] has the ways in which the real one was seen to go wrong.

use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

/// The version it claims to be.
pub const VERSION: &str = "1.5.7";

/// One thing that it does.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Step {
    /// Says something.
    Say(String),
    /// Writes a file: path, text.
    Write(String, String),
    /// Reads a file.
    View(String),
    /// Runs a command.
    Run(String),
    /// Runs a command without asking settings or hooks.
    RunUnasked(String),
    /// From here on hooks are not run.
    ForgetHooks,
    /// Replaces its login by this one, as a refresh does.
    RefreshLogin(String),
    /// Prints this line.
    Emit(String),
    /// Prints this line to the standard error.
    Stderr(String),
    /// Ends the turn with these members of a result in place of its own.
    Result(Value),
    /// Ends at once with this code and no result.
    Exit(u8),
    /// Says nothing any more.
    Hang,
    /// Its exit code once its input is closed.
    ExitLater(u8),
}

/// One process of it.
struct Agy {
    /// What it does where nobody says what.
    unasked: String,
    gemini: PathBuf,
    plan: bool,
    allow: Vec<String>,
    hooks: Vec<String>,
    before_models: Vec<String>,
    conversation: String,
    step: u64,
    denied: Vec<String>,
    said: String,
    code: u8,
}

/// A brief with these steps.
#[must_use]
pub fn brief(steps: &[Value]) -> String {
    let lines: String = steps.iter().map(|step| format!("{step}\n")).collect();
    format!("Do as you are told.\n\n```agy\n{lines}```\n")
}

/// Puts an executable `agy` into `folder` that says it is of this version; returns its path.
pub fn install(program: &Path, folder: &Path, version: &str) -> io::Result<PathBuf> {
    let agy = folder.join("agy");
    std::fs::create_dir_all(folder)?;
    // A link would be resolved by whoever looks for the real executable, and the version stands beside that.
    std::fs::hard_link(program, &agy).or_else(|_| std::fs::copy(program, &agy).map(drop))?;
    std::fs::write(folder.join("agy.version"), version)?;
    Ok(agy)
}

/// The program.
#[must_use]
pub fn run() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let outcome =
        if arguments.iter().any(|argument| argument == "--version") { version(&arguments) } else { talk(&arguments) };
    outcome.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "{error:#}");
        ExitCode::from(2)
    })
}

fn version(arguments: &[String]) -> Result<ExitCode> {
    let beside = Path::new(arguments.first().context("no name")?).with_file_name("agy.version");
    let version = std::fs::read_to_string(beside).unwrap_or_else(|_| VERSION.to_owned());
    writeln!(io::stdout(), "agy version {version}")?;
    Ok(ExitCode::SUCCESS)
}

fn talk(arguments: &[String]) -> Result<ExitCode> {
    let mut agy = Agy::new(arguments)?;
    for line in io::stdin().lock().lines() {
        let sent: Value = serde_json::from_str(&line?)?;
        let task = sent.pointer("/message/content/0/text").and_then(Value::as_str).context("no task")?;
        if let Some(code) = agy.turn(task)? {
            return Ok(ExitCode::from(code));
        }
    }
    Ok(ExitCode::from(agy.code))
}

impl Agy {
    fn new(arguments: &[String]) -> Result<Self> {
        let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1);
        for needed in ["--input-format", "--output-format"] {
            anyhow::ensure!(
                after(needed).is_some_and(|format| format == "stream-json"),
                "{needed} stream-json is needed"
            );
        }
        let dir = arguments.iter().find_map(|argument| argument.strip_prefix("--gemini_dir="));
        #[expect(clippy::disallowed_methods, reason = "this stands in for another program, with its own environment")]
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".gemini"));
        let gemini = dir.map(PathBuf::from).or_else(home).context("no home")?;
        let read = |below: &str| -> Option<Value> {
            serde_json::from_str(&std::fs::read_to_string(gemini.join(below)).ok()?).ok()
        };
        let settings = read("antigravity-cli/settings.json").unwrap_or_default();
        let texts = |value: &Value| {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let registered = read("config/hooks.json").unwrap_or_default();
        let commands = |event: &str| -> Vec<String> {
            let groups =
                registered.as_object().into_iter().flatten().filter_map(|(_, hook)| hook[event].as_array()).flatten();
            let hooks = groups.filter_map(|group| group["hooks"].as_array()).flatten();
            hooks.filter_map(|hook| hook["command"].as_str().map(str::to_owned)).collect()
        };
        let (hooks, before_models) = (commands("PreToolUse"), commands("PreInvocation"));
        let kept = gemini.join("antigravity-cli/conversations");
        std::fs::create_dir_all(&kept)?;
        let asked = after("--conversation").filter(|id| kept.join(format!("{id}.db")).exists());
        let conversation = asked.cloned().unwrap_or_else(|| format!("conversation-{}", std::process::id()));
        std::fs::write(kept.join(format!("{conversation}.db")), "")?;
        let beside = Path::new(arguments.first().context("no name")?).with_file_name("agy.steps");
        Ok(Self {
            unasked: std::fs::read_to_string(beside).unwrap_or_default(),
            plan: after("--mode").is_some_and(|mode| mode == "plan"),
            allow: texts(&settings["permissions"]["allow"]),
            gemini,
            hooks,
            before_models,
            conversation,
            step: 0,
            denied: Vec::new(),
            said: String::new(),
            code: 0,
        })
    }

    /// One turn; a code if the process ends in it.
    fn turn(&mut self, task: &str) -> Result<Option<u8>> {
        let mode = if self.plan { "plan" } else { "always-proceed" };
        let cwd = std::env::current_dir()?;
        self.say(&json!({"event": "init", "conversation_id": self.conversation,
            "init": {"cwd": cwd, "tools": ["run_command", "view_file", "write_to_file"], "permission_mode": mode}}))?;
        for hook in self.before_models.clone() {
            self.ask(&hook, &json!({"conversationId": self.conversation}))?;
        }
        let block = task.rsplit_once("```agy\n").and_then(|(_, rest)| rest.split_once("```")).map(|(block, _)| block);
        let mut result = json!({});
        let block = block.unwrap_or(&self.unasked).to_owned();
        for line in block.lines() {
            match serde_json::from_str(line).with_context(|| format!("not a step: {line}"))? {
                Step::Say(words) => self.words(&words)?,
                Step::Write(path, text) => {
                    self.tool("write_to_file", &json!({"TargetFile": path}), self.plan, || {
                        Ok(std::fs::write(&path, &text).is_ok())
                    })?
                }
                Step::View(path) => {
                    self.tool("view_file", &json!({"AbsolutePath": path}), false, || Ok(Path::new(&path).exists()))?;
                }
                Step::Run(line) => {
                    let refused = self.plan && !self.allow.contains(&format!("command({line})"));
                    self.tool("run_command", &json!({"CommandLine": line}), refused, || shell(&line))?;
                }
                Step::RunUnasked(line) => {
                    let is_done = shell(&line)?;
                    self.report("run_command", &json!({"CommandLine": line}), is_done)?;
                }
                Step::ForgetHooks => self.hooks.clear(),
                Step::RefreshLogin(login) => {
                    let token = self.gemini.join("antigravity-cli/antigravity-oauth-token");
                    std::fs::write(token.with_extension("new"), login)?;
                    std::fs::rename(token.with_extension("new"), token)?;
                }
                Step::Emit(line) => writeln!(io::stdout(), "{line}")?,
                Step::Stderr(line) => writeln!(io::stderr(), "{line}")?,
                Step::Result(members) => result = members,
                Step::Exit(code) => return Ok(Some(code)),
                Step::Hang => loop {
                    std::thread::park();
                },
                Step::ExitLater(code) => self.code = code,
            }
        }
        let mut told = json!({"conversation_id": self.conversation, "status": "SUCCESS", "response": self.said,
            "num_turns": 1, "duration_seconds": 1.5, "usage": {"input_tokens": 100, "output_tokens": 20}});
        if !self.denied.is_empty() {
            told["denied_actions"] = json!(std::mem::take(&mut self.denied));
        }
        if let (Some(told), Some(members)) = (told.as_object_mut(), result.as_object()) {
            told.extend(members.clone());
        }
        self.say(&json!({"event": "result", "result": told}))?;
        Ok(None)
    }

    fn words(&mut self, words: &str) -> Result<()> {
        self.step += 1;
        words.clone_into(&mut self.said);
        for (state, piece) in [("ACTIVE", words), ("DONE", "")] {
            let step = json!({"conversation_id": self.conversation, "step_index": self.step, "state": state,
                "step_type": "agent_response", "text_delta": piece});
            self.say(&json!({"event": "step_update", "step_update": step}))?;
        }
        Ok(())
    }

    /// A tool, unless a hook or the settings refuse it.
    fn tool(&mut self, name: &str, parameters: &Value, refused: bool, act: impl Fn() -> Result<bool>) -> Result<()> {
        let call = json!({"toolCall": {"name": name, "args": parameters}, "conversationId": self.conversation,
            "stepIdx": self.step + 1, "modelName": "scripted"});
        let mut is_allowed = !refused;
        for hook in self.hooks.clone() {
            is_allowed &= self.ask(&hook, &call)? == "allow";
        }
        if !is_allowed {
            self.denied.push(name.to_owned());
        }
        self.open(name, parameters)?;
        let is_done = is_allowed && act()?;
        self.close(name, parameters, is_done)
    }

    fn report(&mut self, name: &str, parameters: &Value, is_done: bool) -> Result<()> {
        self.open(name, parameters)?;
        self.close(name, parameters, is_done)
    }

    fn open(&mut self, name: &str, parameters: &Value) -> Result<()> {
        self.step += 1;
        self.update("ACTIVE", name, json!({"name": name, "parameters": parameters}))
    }

    fn close(&self, name: &str, parameters: &Value, is_done: bool) -> Result<()> {
        let mut info = json!({"name": name, "parameters": parameters});
        if !is_done {
            info["error"] = json!("it was refused, or failed");
        }
        self.update(if is_done { "DONE" } else { "ERROR" }, name, info)
    }

    fn update(&self, state: &str, name: &str, info: Value) -> Result<()> {
        let step = json!({"conversation_id": self.conversation, "step_index": self.step, "state": state,
            "step_type": "tool", "tool_name": name, "tool_info": info});
        self.say(&json!({"event": "step_update", "step_update": step}))
    }

    /// What a hook decides.
    fn ask(&self, hook: &str, call: &Value) -> Result<String> {
        let mut command = command("sh");
        command.args(["-c", hook]).current_dir(self.gemini.join("config"));
        let mut child: Child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        child.stdin.take().context("no pipe")?.write_all(call.to_string().as_bytes())?;
        let output = child.wait_with_output()?;
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok(said["decision"].as_str().unwrap_or_default().to_owned())
    }

    fn say(&self, event: &Value) -> Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{event}")?;
        Ok(out.flush()?)
    }
}

/// Runs a command in a session of its own, as agy does.
fn shell(line: &str) -> Result<bool> {
    let mut command = command("setsid");
    command.args(["-w", "sh", "-c", line]).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status()?;
    if let Some(signal) = status.signal() {
        bail!("a command was ended by signal {signal}");
    }
    Ok(status.success())
}

#[expect(clippy::disallowed_methods, reason = "this stands in for another program, whose children are its own affair")]
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.process_group(0);
    command
}
