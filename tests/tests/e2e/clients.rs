//! The thin client of VS Code in the real editor: its extension host and its user interface. [`super::neovim`] has
//! Neovim's, [`together`] both on one repository.
//!
//! The editor runs the server of this build, with the scripted agent as codex, or with the real one and a scripted
//! provider. What is done in it is written in its own language, in `tests/editors/`; here is only the stage. Each step
//! there has a time limit of its own, and pictures (of a failure, too) are kept in `target/tmp/pictures`.

mod together;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::clients;
use pactify_tests::editor::{configure, scripted_sandbox, use_scripted_agent};
use pactify_tests::outside;
use pactify_tests::running::Running;
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::tools::Tool;
use pactify_tests::vsix;
use serde_json::json;

use crate::codex::{KEYED, QUICK, Stage};

/// For a whole run. Less than the runner's own limit, after which nothing is told; more than runs take that succeed.
const PATIENCE: Duration = Duration::from_secs(720);

/// Runs an editor to its end.
fn succeeds(command: Command) -> Result<()> {
    let ended = Running::start(command, b"")?.wait(PATIENCE)?;
    ended.success().map(drop)
}

#[test]
fn the_extension_works_in_the_extension_host_of_vs_code() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let codex = use_scripted_agent(&sandbox, &[])?.display().to_string();
    let agent = outside::program("scripted-agent")?.display().to_string();
    // The same agent once more, as one that asks.
    let asker = format!("[harnesses.asker]\ncommand = {agent:?}\nargs = [\"acp\"]\nprotocol = \"acp\"\n");
    configure(&sandbox, &format!("[harnesses.codex]\nexecutable = {codex:?}\n{asker}"))?;
    let repository = sandbox.filled("sample")?;
    in_the_extension_host(&sandbox, repository.path(), "suite.cjs")
}

#[test]
fn the_real_codex_writes_and_is_cancelled_in_the_extension_host_of_vs_code() -> Result<()> {
    with_the_real_codex(|sandbox, repository| in_the_extension_host(sandbox, repository.path(), "codex.cjs"))
}

#[test]
fn two_repositories_are_told_apart_and_ten_thousand_files_freeze_nothing_in_vs_code() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let (one, two) = (sandbox.filled("one")?, sandbox.filled("two")?);
    let workspace = sandbox.root().join("both.code-workspace");
    let folders = json!([{"path": one.path()}, {"path": two.path()}]);
    std::fs::write(&workspace, json!({"folders": folders}).to_string())?;
    in_the_extension_host(&sandbox, &workspace, "folders.cjs")
}

#[test]
fn a_newcomer_goes_all_the_way_in_vs_code() -> Result<()> {
    let stage = Stage::playing(&steps())?;
    let sandbox = &stage.sandbox;
    let repository = sandbox.filled("sample")?;
    // What the agent waits for: the test, and less than the half a minute that codex waits for a command.
    let go = sandbox.root().join("go").display().to_string();
    let wait = format!("#!/bin/sh\nfor i in $(seq 150); do [ -e '{go}' ] && exit; sleep 0.1; done\n");
    repository.write("check.sh", &wait)?;
    repository.write("src/main.c", MAIN)?;
    repository.commit("Check")?;
    let extensions = sandbox.root().join("extensions");
    install(sandbox, &extensions)?;
    succeeds(vs_code(sandbox, repository.path(), "vscode/flow.mjs")?)
}

#[test]
fn nothing_is_started_in_a_workspace_that_is_not_trusted() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let repository = sandbox.filled("sample")?;
    stage_extension(&sandbox, &clients::installed(&sandbox))?;
    let mut code = vs_code(&sandbox, repository.path(), "vscode/restricted.mjs")?;
    code.env("PACTIFY_LSP", outside::program("pactify-lsp")?).env("PACTIFY_HOME", sandbox.pactify_home());
    succeeds(code)
}

#[test]
fn the_view_is_worked_by_mouse_and_read_in_high_contrast() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("sample")?;
    clients::add_thirty_lines(&repository)?;
    stage_extension(&sandbox, &clients::installed(&sandbox))?;
    let mut code = vs_code(&sandbox, repository.path(), "vscode/view.mjs")?;
    code.env("PACTIFY_LSP", outside::program("pactify-lsp")?);
    succeeds(code)
}

/// Runs a suite with the real codex. Its provider plays `write`, and `wait` once the suite has put that in its place in
/// the configuration. The checkout has to be as before in the end.
pub(crate) fn with_the_real_codex(suite: impl FnOnce(&Sandbox, &Repository<'_>) -> Result<()>) -> Result<()> {
    let stage = Stage::new(&json!({
        "write": {"steps": [
            {"shell": "sed -i -e 's/^line 3$/three/' -e 's/^line 28$/twenty-eight/' numbers.txt"},
            {"edit": {"path": "greeting.txt", "content": "hello\n"}},
            {"message": "Done."},
        ]},
        // The last step repeats: codex waits for a command for half a minute at most, and then asks what to do next.
        "wait": {"steps": [{"shell": "exec sleep 3001"}]},
    }))?;
    stage.configure(&stage.provider.base_url("write"), "", &format!("{KEYED}\n{QUICK}"))?;
    let repository = stage.sandbox.filled("sample")?;
    clients::add_thirty_lines(&repository)?;
    suite(&stage.sandbox, &repository)?;
    let asked = stage.provider.requests();
    for script in ["write", "wait"] {
        ensure!(asked.iter().any(|entry| entry.script == script), "codex was never played {script}");
    }
    let left = repository.status()?;
    ensure!(left.is_empty(), "not as before: {left}");
    Ok(())
}

/// Runs a suite beside the extension, in VS Code's extension host.
fn in_the_extension_host(sandbox: &Sandbox, workspace: &Path, suite: &str) -> Result<()> {
    let extension = stage_extension(sandbox, &sandbox.root().join("extension"))?;
    for name in ["kit.cjs", suite] {
        std::fs::copy(clients::script(&format!("vscode/{name}")), extension.join(name))?;
    }
    let mut host = vs_code(sandbox, workspace, "vscode/host.mjs")?;
    host.env("PACTIFY_EXTENSION", &extension).env("PACTIFY_LSP", outside::program("pactify-lsp")?);
    host.env("PACTIFY_MOCHA", Tool::Extension.find()?.join("mocha")).env("PACTIFY_SUITE", suite);
    succeeds(host)
}

/// The program that is changed, in two places.
const MAIN: &str = "#include <stdio.h>

/* Says hello. */
static void greet(void) {
    puts(\"hello\");
}

static int is_asked(int argc) {
    return argc > 0;
}

int main(int argc, char **argv) {
    (void)argv;
    if (is_asked(argc))
        greet();
    return 0;
}
";

/// The same, as the agent leaves it.
fn greeting() -> String {
    let named =
        MAIN.replace("(void) {\n    puts(\"hello\")", "(const char *name) {\n    printf(\"hello, %s\\n\", name)");
    named.replace("    (void)argv;\n", "").replace("greet();", "greet(argc > 1 ? argv[1] : \"you\");")
}

/// What the model has the agent do.
fn steps() -> serde_json::Value {
    let write = |path: &str, text: &str| json!({"shell": format!("mkdir -p docs; cat > {path} <<'END'\n{text}END\n")});
    let check = json!({"shell": "sh check.sh"});
    let mut steps = vec![
        json!({"shell": "cat README.md src/main.c", "preamble": "I'll look at what is there."}),
        json!({"shell": "sh check.sh", "preamble": "Before I change anything: does it work?"}),
    ];
    // More than seven minutes of them: what is looked at meanwhile may take three. After that, each ends at once.
    steps.extend(std::iter::repeat_n(check, 30));
    steps.extend([
        write("README.md", "# Sample\n\nA small program that greets people by name.\n"),
        write("docs/usage.md", "# Usage\n\n    greet NAME\n\nWithout a name, it greets you.\n"),
        write("src/main.c", &greeting()),
        json!({"message": "The program greets the person that it is told to."}),
    ]);
    json!(steps)
}

/// Packs the extension with the server of this build, and has VS Code install the package.
fn install(sandbox: &Sandbox, extensions: &Path) -> Result<()> {
    let (folder, package) = (sandbox.root().join("package"), sandbox.root().join("pactify.vsix"));
    vsix::stage(&folder, Some(&stripped(sandbox)?))?;
    succeeds(vsix::bundle(&folder, |program| sandbox.command(program))?)?;
    succeeds(vsix::pack(&folder, &package, |program| sandbox.command(program))?)?;
    let mut code = sandbox.command(Tool::Node24.find()?);
    code.arg(Tool::CodeServer.find()?).arg("--extensions-dir").arg(extensions);
    code.arg("--user-data-dir").arg(sandbox.root().join("ui/user")).arg("--install-extension").arg(&package);
    succeeds(code)
}

/// The server without what debuggers want: packing that would take longer than the test.
fn stripped(sandbox: &Sandbox) -> Result<PathBuf> {
    let server = sandbox.root().join("pactify-lsp");
    let mut strip = sandbox.command("strip");
    strip.arg("-o").arg(&server).arg(outside::program("pactify-lsp")?);
    succeeds(strip)?;
    Ok(server)
}

/// Builds the extension into `folder`.
fn stage_extension(sandbox: &Sandbox, folder: &Path) -> Result<PathBuf> {
    vsix::stage(folder, None)?;
    succeeds(vsix::bundle(folder, |program| sandbox.command(program))?)
        .context("is editors/vscode/node_modules the link that `cargo xtask tools extension` makes?")?;
    Ok(folder.to_owned())
}

/// A run of one of our scripts that drive VS Code in a browser.
fn vs_code(sandbox: &Sandbox, workspace: &Path, script: &str) -> Result<Command> {
    let wanted = outside::variable("PACTIFY_TEST_PICTURES").map(PathBuf::from);
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    let mut node = clients::vs_code(sandbox, workspace, script, wanted.as_deref().unwrap_or(&kept))?;
    if wanted.is_some() {
        node.env("PACTIFY_BOTH_THEMES", "yes");
    }
    Ok(node)
}
