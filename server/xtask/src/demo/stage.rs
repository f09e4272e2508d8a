//! What the demo plays on: the programs built, a world of its own, the harness, the provider, a repository, the brief.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use pactify_tests::agent::{self, Step};
use pactify_tests::editor::{configure, use_scripted_agent};
use pactify_tests::provider::{Provider, Scripts};
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::tools::Tool;
use serde_json::json;

use super::screen::Screen;
use crate::run::{aloud, command};
use crate::tools::ToolError;
use crate::{repository, tools};

/// From nothing, on two cores.
const BUILD: Duration = Duration::from_secs(1800);
/// Not a secret: the provider is ours, and takes any.
const KEY: (&str, &str) = ("DEMO_GATEWAY_KEY", "demo");
const USAGE: &str = "# Usage\n\n`./main` greets the world.\n";
const GREET: &str = "sed -i 's/hello/hello, world/' src/main.c && grep puts src/main.c";

/// What is asked for.
pub(super) const BRIEF: Brief = Brief { said: "Greet the world instead of nobody, and say so in docs/usage.md." };

/// What the checkout has to hold in the end.
pub(super) const EXPECTED: [(&str, &str); 2] = [
    ("docs/usage.md", USAGE),
    ("src/main.c", "#include <stdio.h>\n\nint main(void) {\n    puts(\"hello, world\");\n    return 0;\n}\n"),
];

pub(super) struct Brief {
    pub(super) said: &'static str,
}

/// Everything that the session needs; all of it is gone when dropped.
pub(super) struct Stage {
    pub(super) sandbox: Sandbox,
    pub(super) harness: Harness,
}

/// Who does the work.
pub(super) enum Harness {
    /// The real codex, aimed at this provider.
    Codex(Provider),
    /// The scripted agent in its place.
    Scripted,
}

/// Builds what the demo starts.
pub(crate) fn build() -> anyhow::Result<()> {
    let mut cargo = command("cargo");
    cargo.args(["build", "--package", "pactify-lsp", "--package", "pactify-tests", "--bins"]);
    cargo.current_dir(repository::root());
    aloud(cargo, BUILD).map_err(|failed| failed.error)?;
    Ok(())
}

impl Brief {
    /// The brief with the steps that only the scripted agent reads; a model would be told the same by its provider.
    pub(super) fn whole(&self) -> anyhow::Result<String> {
        let steps: Vec<Step> = serde_json::from_value(json!([
            {"say": "I'll look at the program first."},
            {"run": "cat src/main.c"},
            {"run": GREET},
            {"write": {"path": "docs/usage.md", "content": USAGE}},
            {"say": "The program greets the world, and docs/usage.md says so."},
        ]))?;
        Ok(format!("{}\n\n{}", self.said, agent::prompt(&steps)))
    }
}

impl Stage {
    pub(super) fn new(screen: &Screen) -> anyhow::Result<Self> {
        let mut sandbox = Sandbox::new()?;
        let harness = match found(tools::ensure(Tool::Codex))? {
            Found::Codex(codex) => {
                let provider = provider()?;
                let address = provider.base_url("default");
                sandbox.set(KEY.0, KEY.1);
                let configuration = format!(
                    "[harnesses.codex]\nexecutable = {:?}\nmodel = \"gpt-5.5\"\nenvironment = [{:?}]\n\n\
                     [harnesses.codex.config]\nmodel_provider = \"gateway\"\n\n\
                     [harnesses.codex.config.model_providers.gateway]\nname = \"gateway\"\n\
                     base_url = \"{address}\"\nwire_api = \"responses\"\nenv_key = {:?}\n",
                    codex.display().to_string(),
                    KEY.0,
                    KEY.0
                );
                configure(&sandbox, &configuration)?;
                screen.fact("harness", &format!("codex {}", codex.display()));
                screen.fact("provider", &address);
                screen.quote(&configuration);
                Harness::Codex(provider)
            }
            Found::NoNpm(why) => {
                screen.note(&why);
                screen.note("the scripted agent stands in for codex");
                use_scripted_agent(&sandbox, &[])?;
                Harness::Scripted
            }
        };
        Ok(Self { sandbox, harness })
    }

    /// A small program with a commit, and with unfinished work of a person beside it.
    pub(super) fn repository(&self) -> anyhow::Result<Repository<'_>> {
        let repository = self.sandbox.filled("sample")?;
        repository.write("notes.txt", "not committed yet\n")?;
        Ok(repository)
    }
}

/// What becomes of the wish for the real codex.
#[derive(Debug)]
enum Found {
    Codex(PathBuf),
    /// Only that it can't be installed here is a reason to do without; why.
    NoNpm(String),
}

fn found(codex: Result<PathBuf, ToolError>) -> anyhow::Result<Found> {
    match codex {
        Ok(codex) => Ok(Found::Codex(codex)),
        Err(error @ ToolError::NoInstaller { .. }) => Ok(Found::NoNpm(format!("{:#}", anyhow::Error::from(error)))),
        Err(error) => Err(error.into()),
    }
}

/// Starts the model provider with the turns of the demo.
fn provider() -> anyhow::Result<Provider> {
    let scripts = Scripts::from_value(json!({"steps": [
        {"items": [{"shell": "cat src/main.c"}], "preamble": "I'll look at the program first."},
        {"shell": GREET},
        {"edit": {"path": "docs/usage.md", "content": USAGE}},
        {"message": "The program greets the world, and docs/usage.md says so."},
    ]}))?;
    Provider::start(scripts).context("the scripted provider can't listen on 127.0.0.1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_without_npm_does_the_scripted_agent_stand_in() {
        let tool = Tool::Codex;
        let none = found(Err(ToolError::NoInstaller { tool, installer: "npm" })).unwrap();
        assert!(matches!(none, Found::NoNpm(why) if why.contains("install npm")));
        let path = PathBuf::from("/nowhere/codex");
        assert!(found(Err(ToolError::NoProgram { tool, path })).is_err());
    }
}
