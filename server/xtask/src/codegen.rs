//! `cargo xtask codegen`: writes the clients' types from the wire's, so that nobody mirrors them by hand.
//!
//! The source is [`pactify_core::protocol`]: its JSON schemas become [`model::Item`]s, and each client's language has
//! one renderer. The results are committed, as clients are built without Rust; `--check` fails when they are not what
//! would be written now. The settings of the VS Code extension are generated as well ([`settings`]). Not generated: the
//! ids in the VS Code palette (`pactify.ui.…`), which must differ from the wire's commands, because the language client
//! registers those itself.

mod lua;
mod model;
mod settings;
mod source;
mod typescript;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;

use crate::run::say;
use source::Wire;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Write nothing; fail if a generated file is not up to date
    #[arg(long)]
    pub(crate) check: bool,
}

/// The VS Code extension's manifest, and what people read of it: only their settings are generated.
const MANIFEST: &str = "editors/vscode/package.json";
const README: &str = "editors/vscode/README.md";

/// A generated file.
#[derive(Clone)]
struct Output {
    /// Relative to the repository.
    path: &'static str,
    text: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("xtask lies in a repository")?;
    let read = |path: &str| fs::read_to_string(repository.join(path)).with_context(|| format!("can't read {path}"));
    let mut outputs = render(&source::wire()?).to_vec();
    outputs.extend([
        Output { path: MANIFEST, text: settings::manifest(&read(MANIFEST)?)? },
        Output { path: README, text: settings::readme(&read(README)?)? },
    ]);
    let stale: Vec<&Output> = outputs.iter().filter(|output| is_stale(repository, output)).collect();
    if arguments.check {
        let names: Vec<&str> = stale.iter().map(|output| output.path).collect();
        ensure!(names.is_empty(), "not up to date: {}; run `cargo xtask codegen`", names.join(", "));
        return Ok(());
    }
    for output in stale {
        let path: PathBuf = repository.join(output.path);
        fs::create_dir_all(path.parent().context("a generated file lies in a folder")?)?;
        fs::write(&path, &output.text).with_context(|| format!("can't write {}", path.display()))?;
        say(&format!("wrote {}", output.path));
    }
    Ok(())
}

fn render(wire: &Wire) -> [Output; 3] {
    [
        Output { path: "editors/vscode/src/protocol.ts", text: typescript::render(wire) },
        Output { path: "editors/nvim/lua/pactify/protocol.lua", text: lua::render(wire) },
        Output { path: "editors/vscode/src/settings.ts", text: settings::typescript() },
    ]
}

fn is_stale(repository: &Path, output: &Output) -> bool {
    fs::read_to_string(repository.join(output.path)).map_or(true, |text| text != output.text)
}

/// Breaks a text into lines of at most `width` characters, each with this prefix.
fn comment(text: &str, prefix: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let is_full = prefix.len() + line.chars().count() + 1 + word.chars().count() > width;
        if is_full && !line.is_empty() {
            lines.push_str(&format!("{prefix}{line}\n"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push_str(&format!("{prefix}{line}\n"));
    lines
}

#[cfg(test)]
mod tests {
    use pactify_core::protocol::commands::ALL;
    use serde_json::Value;

    use super::model::{Kind, Type};
    use super::*;

    fn repository() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
    }

    #[test]
    fn the_committed_files_are_what_the_wire_gives() {
        run(&Arguments { check: true }).unwrap();
    }

    #[test]
    fn a_changed_field_is_noticed_in_every_client() {
        let committed = render(&source::wire().unwrap());
        let change = |change: &dyn Fn(&mut model::Field)| {
            let mut wire = source::wire().unwrap();
            let job = wire.items.iter_mut().find(|item| item.name == "JobSummary").unwrap();
            let Kind::Object(fields) = &mut job.kind else { panic!("a job is an object") };
            change(fields.iter_mut().find(|field| field.name == "title").unwrap());
            render(&wire)
        };
        for changed in [
            change(&|field| field.name = "headline".to_owned()),
            change(&|field| field.optional = true),
            change(&|field| field.kind = Type::Integer),
            change(&|field| field.doc = "Something else.".to_owned()),
        ] {
            for (before, after) in committed.iter().zip(changed).take(2) {
                assert_ne!(before.text, after.text, "{}", after.path);
            }
        }
    }

    #[test]
    fn the_palette_has_no_id_of_the_wire() {
        let manifest = fs::read_to_string(repository().join("editors/vscode/package.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        let commands = manifest["contributes"]["commands"].as_array().unwrap();
        assert!(!commands.is_empty());
        for command in commands {
            let id = command["command"].as_str().unwrap();
            assert!(id.starts_with("pactify.ui."), "{id}");
            assert!(ALL.iter().all(|wire| wire.name != id), "{id} is registered by the language client");
        }
    }

    #[test]
    fn comments_are_wrapped_between_words() {
        assert_eq!(comment("one two\nthree", "-- ", 10), "-- one two\n-- three\n");
        assert_eq!(comment("unbreakably-long", "-- ", 5), "-- unbreakably-long\n");
    }
}
