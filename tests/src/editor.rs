//! An editor as tests see it: a language server on real pipes, with pactify's verbs by name.
//!
//! [`Editor::open`] is an editor with our thin client (progress, job notifications); other kinds of editor are made
//! with [`crate::lsp`] directly. Every wait has a deadline.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agent::{self, Profile, Step};
use crate::lsp::{Client, Launch, RpcError};
use crate::outside;
use crate::rendezvous;
use crate::sandbox::Sandbox;

/// How long a job of the scripted agent may take on a busy machine.
pub const JOB: Duration = Duration::from_secs(60);

/// How long a command may take: one that repairs a job waits for all that the repair does.
const COMMAND: Duration = Duration::from_secs(180);

/// How often a state is looked at when no notification tells of it.
const LOOK: Duration = Duration::from_millis(200);

/// How soon a process that was killed is gone.
const KILLED: Duration = Duration::from_secs(60);

/// A running editor session.
pub struct Editor {
    client: Client,
    /// The attempts that jobs were at when they were resumed.
    resumed: HashMap<String, Value>,
}

impl Editor {
    /// Opens `folder` in an editor with our thin client.
    pub fn open(sandbox: &Sandbox, folder: &Path) -> Result<Self> {
        Self::start(Launch::new(sandbox.command(outside::program("pactify-lsp")?)).arg("--stdio"), folder)
    }

    /// The same with a server that is started in another way.
    pub fn start(server: Launch, folder: &Path) -> Result<Self> {
        let mut client = server.spawn()?;
        client.initialize_with(json!({
            "processId": null,
            "rootUri": uri(folder),
            "workspaceFolders": [{"uri": uri(folder), "name": "folder"}],
            "capabilities": {"window": {"workDoneProgress": true}, "workspace": {"workspaceFolders": true}},
            "initializationOptions": {"pactify": {"events": true}},
        }))?;
        Ok(Self { client, resumed: HashMap::new() })
    }

    /// An editor whose server follows no job: one whose host is gone stays lost until somebody asks.
    pub fn aside(sandbox: &Sandbox, folder: Option<&Path>) -> Result<Self> {
        let server = Launch::new(sandbox.command(outside::program("pactify-lsp")?)).arg("--stdio");
        let mut client = server.spawn()?;
        let folders = folder.map(|folder| json!([{"uri": uri(folder), "name": "folder"}]));
        client.initialize_with(json!({
            "processId": null,
            "rootUri": null,
            "workspaceFolders": folders,
            // No progress, no messages, no news: there is nothing to follow a job for.
            "capabilities": {"workspace": {"workspaceFolders": true}},
            "initializationOptions": {"pactify": {"messages": false}},
        }))?;
        Ok(Self { client, resumed: HashMap::new() })
    }

    /// The session itself.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Runs the verb `pactify.<verb>` and gives its result.
    pub fn run(&mut self, verb: &str, argument: &Value) -> Result<Value> {
        let job = argument["jobId"].as_str().unwrap_or_default();
        let before = if verb == "resume" { self.status(job)?["attempt"].take() } else { Value::Null };
        let params = json!({"command": format!("pactify.{verb}"), "arguments": [argument]});
        let result = self.client.request_within("workspace/executeCommand", params, COMMAND)?;
        match verb {
            "resume" => drop(self.resumed.insert(job.to_owned(), before)),
            // It may have taken back a resume that was not begun.
            "cancel" => drop(self.resumed.remove(job)),
            _ => {}
        }
        Ok(result)
    }

    /// Runs a verb that is refused, and gives the error.
    pub fn refused(&mut self, verb: &str, argument: &Value) -> Result<RpcError> {
        let params = json!({"command": format!("pactify.{verb}"), "arguments": [argument]});
        let id = self.client.send_request("workspace/executeCommand", params)?;
        match self.client.answer(id, COMMAND)? {
            Err(error) => Ok(error),
            Ok(result) => bail!("pactify.{verb} was not refused: {result}"),
        }
    }

    /// Delegates a brief and gives the job's id.
    pub fn delegate(&mut self, brief: &str, more: &Value) -> Result<String> {
        let mut argument = json!({"brief": brief});
        if let (Some(argument), Some(more)) = (argument.as_object_mut(), more.as_object()) {
            argument.extend(more.clone());
        }
        let delegated = self.run("delegate", &argument)?;
        Ok(delegated["jobId"].as_str().context("no jobId")?.to_owned())
    }

    /// The job as `pactify.status` tells it.
    pub fn status(&mut self, job: &str) -> Result<Value> {
        Ok(self.run("status", &json!({"jobId": job}))?["job"].take())
    }

    /// Waits until the job is in `state`, and gives it. Of a job that was resumed, the attempt before doesn't count.
    pub fn until(&mut self, job: &str, state: &str) -> Result<Value> {
        self.until_within(job, state, JOB)
    }

    /// The same with another patience.
    pub fn until_within(&mut self, job: &str, state: &str, patience: Duration) -> Result<Value> {
        let deadline = Instant::now() + patience;
        loop {
            let status = self.status(job)?;
            // A resume is answered even if its attempt has not begun in time.
            let is_before = status["state"] == "finished" && self.resumed.get(job) == Some(&status["attempt"]);
            if status["state"] == state && !is_before {
                return Ok(status);
            }
            if Instant::now() >= deadline || (status["state"] == "finished" && !is_before) {
                let events = self.run("events", &json!({"jobId": job}))?;
                bail!("job {job} is not {state} in time: {status:#}\n{events:#}");
            }
            // News, or another look.
            let _ = self.client.notification("pactify/job/changed", LOOK);
        }
    }

    /// Everything that `pactify.events` tells of the job so far: events with their times and texts.
    pub fn events(&mut self, job: &str) -> Result<Vec<Value>> {
        let mut list = self.run("events", &json!({"jobId": job, "limit": 1000}))?;
        serde_json::from_value(list["events"].take()).with_context(|| format!("no events: {list}"))
    }

    /// The job's events of this type.
    pub fn events_of(&mut self, job: &str, kind: &str) -> Result<Vec<Value>> {
        let events = self.events(job)?.into_iter().map(|mut told| told["event"].take());
        Ok(events.filter(|event| event["type"] == kind).collect())
    }

    /// Waits for the first event of this type and gives it.
    pub fn event(&mut self, job: &str, kind: &str) -> Result<Value> {
        self.event_within(job, kind, JOB)
    }

    /// The same with another patience.
    pub fn event_within(&mut self, job: &str, kind: &str, patience: Duration) -> Result<Value> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(event) = self.events_of(job, kind)?.into_iter().next() {
                return Ok(event);
            }
            if Instant::now() >= deadline {
                bail!("job {job} has no event {kind}: {:#}", Value::from(self.events(job)?));
            }
            let _ = self.client.notification("pactify/job/event", LOOK);
        }
    }

    /// The job's first host.
    pub fn host(&mut self, job: &str) -> Result<Pid> {
        pid(&self.event(job, "attemptStarted")?["host"]["pid"])
    }

    /// Kills the job's first host, as the kernel or a person may at any time.
    pub fn kill_host(&mut self, job: &str) -> Result<()> {
        let host = self.host(job)?;
        kill_process(host, Signal::KILL)?;
        ensure!(rendezvous::ends(host, KILLED)?, "host {host:?} of job {job} outlives its end");
        Ok(())
    }

    /// Waits until no host of the job runs: one goes on for a moment after the job's end, and tidies up.
    pub fn left_alone(&mut self, job: &str) -> Result<()> {
        for started in self.events_of(job, "attemptStarted")? {
            let host = pid(&started["host"]["pid"])?;
            ensure!(rendezvous::ends(host, JOB)?, "host {host:?} of job {job} still runs");
        }
        Ok(())
    }

    /// Previews the job and applies all of it.
    pub fn apply(&mut self, job: &str) -> Result<Value> {
        let preview = self.run("diffPreview", &json!({"jobId": job}))?;
        self.run("apply", &json!({"jobId": job, "changeSet": preview["changeSet"]}))
    }
}

/// A sandbox in which the scripted agent is codex.
pub fn scripted_sandbox() -> Result<Sandbox> {
    let sandbox = Sandbox::new()?;
    use_scripted_agent(&sandbox, &[])?;
    Ok(sandbox)
}

/// Makes the scripted agent the sandbox's codex, with these steps for a brief that has none of its own.
pub fn use_scripted_agent(sandbox: &Sandbox, steps: &[Step]) -> Result<PathBuf> {
    let profile = Profile { steps: steps.to_vec(), ..Profile::default() };
    let codex = agent::install(&outside::program("scripted-agent")?, &sandbox.root().join("agent"), &profile)?;
    configure(sandbox, &format!("[harnesses.codex]\nexecutable = {:?}\n", codex.display().to_string()))?;
    Ok(codex)
}

/// Makes the sandbox's person one who is logged in with codex.
pub fn log_in_at_codex(sandbox: &Sandbox) -> Result<()> {
    let folder = sandbox.home().join(".codex");
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join("auth.json"), r#"{"OPENAI_API_KEY": "not-a-real-key-of-anybody"}"#)?)
}

/// Writes the sandbox's pactify configuration.
pub fn configure(sandbox: &Sandbox, text: &str) -> Result<()> {
    fs::create_dir_all(sandbox.config_home().join("pactify"))?;
    // Tests run beside each other on machines with little room: they queue for cores by themselves.
    let limits = "\n[limits]\nrunning-jobs = 8\nfree-bytes = 1\n";
    Ok(fs::write(sandbox.config(), format!("{text}{limits}"))?)
}

/// Adds tables to the configuration.
pub fn configure_more(sandbox: &Sandbox, tables: &str) -> Result<()> {
    let text = fs::read_to_string(sandbox.config())?;
    Ok(fs::write(sandbox.config(), format!("{text}{tables}"))?)
}

/// Sets a limit in the configuration.
pub fn limit(sandbox: &Sandbox, name: &str, value: impl Into<toml::Value>) -> Result<()> {
    let mut config: toml::Table = fs::read_to_string(sandbox.config())?.parse()?;
    let limits = config.get_mut("limits").and_then(toml::Value::as_table_mut).context("no limits")?;
    limits.insert(name.to_owned(), value.into());
    Ok(fs::write(sandbox.config(), config.to_string())?)
}

/// The `file:` URI of a path without characters that need escaping.
pub fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// The process whose id an event tells.
pub fn pid(told: &Value) -> Result<Pid> {
    let raw = i32::try_from(told.as_i64().context("no pid")?)?;
    Pid::from_raw(raw).context("pid 0")
}
