//! The thin client of VS Code in the real editor: its extension host and its user interface. [`super::neovim`] has Neovim's.
//!
//! The editor runs the server of this build, with the scripted agent as codex. What is done in it is written in
//! its own language, in `tests/editors/`; here is only the stage. Each step there has a time limit of its own, and
//! pictures (of a failure, too) are kept in `target/tmp/pictures`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pactify_tests::agent::Step;
use pactify_tests::editor::use_scripted_agent;
use pactify_tests::outside;
use pactify_tests::running::Running;
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::tools::Tool;
use serde_json::json;

/// For a whole run. Less than the runner's own limit, after which nothing is told; more than runs take that succeed.
const PATIENCE: Duration = Duration::from_secs(220);

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("editors")
}

fn tests(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("editors").join(path)
}

/// Runs an editor to its end.
fn succeeds(command: Command) -> Result<()> {
    let ended = Running::start(command, b"")?.wait(PATIENCE)?;
    ended.success().map(drop)
}

#[test]
fn the_extension_works_in_the_extension_host_of_vs_code() -> Result<()> {
    let sandbox = Sandbox::new()?;
    use_scripted_agent(&sandbox, &[])?;
    let repository = sandbox.repository("sample")?;
    repository.fill()?;
    let extension = stage_extension(&sandbox, &sandbox.root().join("extension"))?;
    std::fs::copy(tests("vscode/suite.cjs"), extension.join("suite.cjs"))?;

    let mut host = vs_code(&sandbox, &repository, "vscode/host.mjs")?;
    host.env("PACTIFY_EXTENSION", &extension).env("PACTIFY_LSP", outside::program("pactify-lsp")?);
    host.env("PACTIFY_MOCHA", Tool::Extension.find()?.join("mocha"));
    succeeds(host)
}

#[test]
fn a_person_delegates_previews_and_applies_in_vs_code() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let steps = json!([
        {"say": "I'll look at what is there."},
        {"run": "cat README.md"},
        {"waitFor": [sandbox.root().join("go").display().to_string(), 90.0]},
        {"write": {"path": "README.md", "content": "# Sample\n\nA small program that greets people by name.\n"}},
        {"write": {"path": "src/greet.h", "content": "void greet(const char *name);\n"}},
        {"write": {"path": "src/main.c", "content": "#include <stdio.h>\n\n#include \"greet.h\"\n\n\
            void greet(const char *name) {\n    printf(\"hello, %s\\n\", name);\n}\n\n\
            int main(int argc, char **argv) {\n    greet(argc > 1 ? argv[1] : \"you\");\n    return 0;\n}\n"}},
        {"say": "The program greets the person that it is told to."},
    ]);
    use_scripted_agent(&sandbox, &serde_json::from_value::<Vec<Step>>(steps)?)?;
    let repository = sandbox.repository("sample")?;
    repository.fill()?;
    // Installed as a package would be, with its server.
    let extensions = sandbox.root().join("extensions");
    let extension = stage_extension(&sandbox, &extensions.join("pactify.pactify-0.1.0"))?;
    std::fs::create_dir(extension.join("server"))?;
    std::os::unix::fs::symlink(outside::program("pactify-lsp")?, extension.join("server/pactify-lsp"))?;

    succeeds(vs_code(&sandbox, &repository, "vscode/flow.mjs")?)
}

/// Builds the extension into `folder`.
fn stage_extension(sandbox: &Sandbox, folder: &Path) -> Result<PathBuf> {
    let source = clients().join("vscode");
    let packages = Tool::Extension.find()?;
    std::fs::create_dir_all(folder)?;
    std::fs::copy(source.join("package.json"), folder.join("package.json"))?;
    let mut build = sandbox.command("npm");
    build
        .args(["run", "--silent", "build", "--"])
        .arg(format!("--outfile={}", folder.join("dist/extension.js").display()));
    build.current_dir(&source);
    succeeds(build).with_context(|| format!("is editors/vscode/node_modules a link to {}?", packages.display()))?;
    Ok(folder.to_owned())
}

/// A run of one of our scripts that drive VS Code in a browser.
fn vs_code(sandbox: &Sandbox, repository: &Repository<'_>, script: &str) -> Result<Command> {
    let extensions = sandbox.root().join("extensions");
    std::fs::create_dir_all(&extensions)?;
    let kept = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    let pictures = outside::variable("PACTIFY_TEST_PICTURES").map_or_else(kept, PathBuf::from);
    let mut node = sandbox.command(Tool::Node24.find()?);
    node.arg(tests(script));
    node.env("PACTIFY_WORKSPACE", repository.path()).env("PACTIFY_EXTENSIONS", extensions);
    node.env("PACTIFY_UI_ROOT", sandbox.root().join("ui")).env("PACTIFY_PICTURES", pictures);
    node.env("PACTIFY_GO", sandbox.root().join("go"));
    for (name, tool) in [
        ("PACTIFY_CODE_SERVER", Tool::CodeServer),
        ("PACTIFY_PLAYWRIGHT", Tool::PlaywrightCore),
        ("PACTIFY_CHROMIUM", Tool::Chromium),
    ] {
        node.env(name, tool.find()?);
    }
    Ok(node)
}
