//! `cargo xtask tools`: installs the pinned tools into one cache per user.
//!
//! What the tools are and where they lie is [`pactify_tests::tools`]; this command puts them there. Recipes are in
//! [`recipe`], atomicity is in [`install`]. Nothing is installed that isn't pinned, except the system's own packages
//! (chromium, emacs), and those only as root.

mod install;
mod recipe;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use pactify_tests::tools::{Source, Tool};

use crate::run::{StepError, say};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The tools to install; without any, all that tests of editors and harnesses need
    #[arg(value_parser = parse)]
    tools: Vec<Tool>,
    /// Install it if needed, and print where it is
    #[arg(long, value_name = "TOOL", value_parser = parse, conflicts_with_all = ["tools", "list"])]
    print: Option<Tool>,
    /// Show what is installed, and where
    #[arg(long, conflicts_with = "tools")]
    list: bool,
}

/// Why a tool can't be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// The program that installs it is missing.
    #[error("{tool} can't be installed without {installer}: install {installer}, then run `cargo xtask tools {tool}`")]
    NoInstaller { tool: Tool, installer: &'static str },
    /// A step failed, often for want of a network.
    #[error(
        "{tool} could not be installed; nothing was left behind. With a network, run `cargo xtask tools {tool}` again"
    )]
    Step {
        tool: Tool,
        #[source]
        source: StepError,
    },
    /// The recipe ran, but what it was for isn't there: there is no build of the tool for this machine.
    #[error("{tool} was installed, but {path} is missing: it is only built for Linux on x86-64")]
    NoProgram { tool: Tool, path: PathBuf },
    /// A system package, and no right to install it.
    #[error("{tool} comes with the system: run `apt-get install {package}` as root")]
    NeedsRoot { tool: Tool, package: &'static str },
    /// The cache can't be written.
    #[error("{tool} can't be put into the cache at {path}")]
    Cache {
        tool: Tool,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Its pin can't be read.
    #[error("{tool} has no pin")]
    NoPin {
        tool: Tool,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut out = io::stdout();
    if let Some(tool) = arguments.print {
        let path = ensure(tool)?;
        writeln!(out, "{}", path.display())?;
        return Ok(());
    }
    if arguments.list {
        for tool in Tool::ALL {
            let place = match tool.installed() {
                Ok(Some(path)) => path.display().to_string(),
                Ok(None) => "-".to_owned(),
                Err(error) => format!("- ({error:#})"),
            };
            writeln!(out, "{:16} {place}", tool.name())?;
        }
        return Ok(());
    }
    let chosen = if arguments.tools.is_empty() { by_default().collect() } else { arguments.tools.clone() };
    // All are tried: one that can't be had shouldn't hide the state of the others.
    let failed: Vec<anyhow::Error> = chosen.into_iter().filter_map(|tool| ensure(tool).err()).map(Into::into).collect();
    for error in &failed {
        say(&format!("error: {error:#}"));
    }
    anyhow::ensure!(failed.is_empty(), "{} of the tools could not be installed", failed.len());
    Ok(())
}

/// Installs the tool unless it is there; returns where it is.
pub(crate) fn ensure(tool: Tool) -> Result<PathBuf, ToolError> {
    let no_pin = |error: anyhow::Error| ToolError::NoPin { tool, source: error.into() };
    let path = match (tool.installed().map_err(no_pin)?, tool.source()) {
        (Some(path), _) => path,
        (None, Source::System(package)) => {
            recipe::system(tool, package)?;
            tool.installed().map_err(no_pin)?.ok_or(ToolError::NeedsRoot { tool, package })?
        }
        (None, _) => {
            for needed in recipe::needs(tool) {
                ensure(*needed)?;
            }
            let folder = tool.folder().map_err(no_pin)?;
            install::atomically(tool, &folder, |partial| recipe::fill(tool, partial))?;
            folder.join(tool.program())
        }
    };
    if let (Tool::Extension, Source::Npm(checkout)) = (tool, tool.source()) {
        let link = checkout.join("node_modules");
        install::link(&path, &link).map_err(|source| ToolError::Cache { tool, path: link, source })?;
    }
    say(&format!("{tool}: {}", path.display()));
    Ok(path)
}

/// All but those that only manual checks use.
pub(crate) fn by_default() -> impl Iterator<Item = Tool> {
    Tool::ALL.into_iter().filter(|tool| *tool != Tool::Emacs)
}

fn parse(name: &str) -> Result<Tool, String> {
    let known = || Tool::ALL.map(Tool::name).join(", ");
    Tool::named(name).ok_or_else(|| format!("the tools are {}", known()))
}
