//! The real kimi and the real opencode, delegated to through an editor, each against the scripted provider.
//!
//! Here: a person's machine with one of them, on which they go through the suite of every harness
//! ([`crate::conformance`]). [`privacy`]: keys, and whom a job talks to. [`logins`]: where they
//! are and stay. [`asking`]: jobs that ask the person. [`toolchains`]: what commands find of the person's. [`locks`]:
//! what keeps kimi from writing, one lock at a time.

mod asking;
mod locks;
pub(crate) mod logins;
pub(crate) mod privacy;
mod toolchains;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use pactify_tests::editor::{self, Editor};
use pactify_tests::outside;
use pactify_tests::provider::{Provider, Scripts};
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::tools::Tool;
use serde_json::{Value, json};

/// The value that must never be written down. It looks like nothing, so that only knowing it helps.
pub(crate) const KEY: &str = "zuckerwatte-7f3a9e51";

/// How often [`pactify_tests::editor::JOB`] may pass: these agents need seconds of processor time to begin, on machines
/// that tests share.
pub(crate) const PATIENCE: u32 = 4;

/// A harness that speaks the Agent Client Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    Kimi,
    Opencode,
}

/// A person's machine: a gateway, its key where the agent looks for keys, a repository.
pub(crate) struct Stage {
    pub(crate) agent: Agent,
    pub(crate) sandbox: Sandbox,
    pub(crate) provider: Provider,
}

impl Agent {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kimi => "kimi",
            Self::Opencode => "opencode",
        }
    }

    /// A request of the model to write a file, and one to run a command, whether that was offered or not.
    pub(crate) fn write(self, path: &str, content: &str) -> Value {
        match self {
            Self::Kimi => call("Write", &json!({"path": path, "content": content})),
            Self::Opencode => call("write", &json!({"filePath": path, "content": content})),
        }
    }

    pub(crate) fn run(self, command: &str) -> Value {
        match self {
            Self::Kimi => call("Bash", &json!({"command": command})),
            Self::Opencode => call("bash", &json!({"command": command, "description": "run it"})),
        }
    }
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"call": {"name": name, "arguments": arguments}})
}

impl Stage {
    /// With these scripts for the provider, each a model of its name.
    pub(crate) fn new(agent: Agent, scripts: &Value) -> Result<Self> {
        let provider = Provider::start(Scripts::from_value(json!({"scripts": scripts}))?)?;
        let mut sandbox = Sandbox::new()?;
        sandbox.set("GATEWAY_KEY", KEY);
        let ripgrep = Tool::Ripgrep.find()?;
        let path = outside::variable("PATH").context("no PATH")?;
        let folders = ripgrep.parent().map(PathBuf::from).into_iter().chain(std::env::split_paths(&path));
        sandbox.set("PATH", std::env::join_paths(folders)?);
        let stage = Self { agent, sandbox, provider };
        let urls = scripts.as_object().context("scripts are named")?.keys();
        let urls: Vec<_> = urls.map(|name| (name.clone(), stage.provider.base_url(name))).collect();
        stage.configure(&urls, None)?;
        Ok(stage)
    }

    /// With one script, which every job is played.
    pub(crate) fn playing(agent: Agent, steps: &Value) -> Result<Self> {
        Self::new(agent, &json!({"x": {"steps": steps}}))
    }

    /// Configures the agent as a person does: providers by these names and addresses, each with a model `m`. What runs
    /// the agent is `around`, where it is given.
    pub(crate) fn configure(&self, urls: &[(String, String)], around: Option<&str>) -> Result<()> {
        match self.agent {
            Agent::Kimi => self.configure_kimi(urls, around),
            Agent::Opencode => self.configure_opencode(urls, around),
        }
    }

    /// A program that does this first, and is then what runs the agent.
    pub(crate) fn altered(&self, first: &str) -> Result<String> {
        let runs = if self.agent == Agent::Kimi { Tool::Node24 } else { Tool::Opencode };
        let altered = self.sandbox.root().join("altered");
        std::fs::write(&altered, format!("#!/bin/sh\n{first}\nexec '{}' \"$@\"\n", runs.find()?.display()))?;
        std::fs::set_permissions(&altered, std::fs::Permissions::from_mode(0o755))?;
        Ok(altered.display().to_string())
    }

    /// kimi takes keys from a configuration of its own.
    fn configure_kimi(&self, urls: &[(String, String)], around: Option<&str>) -> Result<()> {
        let mut own = "default_model = \"x\"\n[[hooks]]\nevent = \"PreToolUse\"\ncommand = \"false\"\n".to_owned();
        for (name, url) in urls {
            own += &format!(
                "[providers.{name:?}]\ntype = \"openai\"\nbase_url = {url:?}\napi_key = {KEY:?}\n[models.{name:?}]\n\
                 provider = {name:?}\nmodel = \"scripted\"\nmax_context_size = 131072\ncapabilities = [\"tool_use\"]\n"
            );
        }
        let folder = self.sandbox.home().join(".kimi-code");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("config.toml"), own)?;
        let script = Tool::Kimi.find()?.display().to_string();
        let node = around
            .map_or_else(|| Tool::Node24.find().map(|path| path.display().to_string()), |it| Ok(it.to_owned()))?;
        editor::configure(
            &self.sandbox,
            &format!("[harnesses.kimi]\nexecutable = {script:?}\ninterpreter = {node:?}\n"),
        )
    }

    /// opencode's providers are in pactify's configuration, and their keys in variables.
    fn configure_opencode(&self, urls: &[(String, String)], around: Option<&str>) -> Result<()> {
        let own = Tool::Opencode.find()?.display().to_string();
        let executable = around.unwrap_or(&own);
        let mut text = format!("[harnesses.opencode]\nexecutable = {executable:?}\nmodel = \"x/m\"\n");
        for (name, url) in urls {
            text += &format!(
                "[harnesses.opencode.config.provider.{name:?}]\nnpm = \"@ai-sdk/openai-compatible\"\nname = {name:?}\n\
                 [harnesses.opencode.config.provider.{name:?}.options]\nbaseURL = {url:?}\n\
                 apiKey = \"{{env:GATEWAY_KEY}}\"\n\
                 [harnesses.opencode.config.provider.{name:?}.models.m]\nname = \"M\"\n\
                 limit = {{ context = 131072, output = 8192 }}\n"
            );
        }
        editor::configure(&self.sandbox, &text)
    }

    /// The name of the model that is played the script of this name.
    pub(crate) fn model(&self, script: &str) -> String {
        match self.agent {
            Agent::Kimi => script.to_owned(),
            Agent::Opencode => format!("{script}/m"),
        }
    }

    pub(crate) fn repository(&self) -> Result<Repository<'_>> {
        self.sandbox.filled("one")
    }

    pub(crate) fn delegate(&self, editor: &mut Editor, brief: &str, mut more: Value) -> Result<String> {
        more["harness"] = self.agent.name().into();
        editor.delegate(brief, &more)
    }
}

pub(crate) fn finished(editor: &mut Editor, job: &str) -> Result<Value> {
    crate::conformance::finished(editor, job, PATIENCE)
}
