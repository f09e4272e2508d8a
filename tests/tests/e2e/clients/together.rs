//! VS Code and Neovim on one repository at once: the same job in both, and what one does with it shown by the other.
//!
//! Neither knows of the other, and neither is told to look again: all they share is the repository and `PACTIFY_HOME`.

use anyhow::{Result, ensure};
use pactify_tests::agent::{Step, prompt};
use pactify_tests::clients;
use pactify_tests::editor::scripted_sandbox;
use pactify_tests::outside;
use pactify_tests::running::Running;
use pactify_tests::terminal::Terminal;
use serde_json::json;

use super::{PATIENCE, stage_extension, vs_code};
use crate::neovim::neovim;

const SIZE: (u16, u16) = (120, 32);
const OLD: &str = "# Sample\n\nA small program.\n";
const NEW: &str = "# Sample\n\nSeen by both.\n";

#[test]
fn a_vs_code_and_a_neovim_on_one_repository_show_the_same() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("sample")?;
    stage_extension(&sandbox, &clients::installed(&sandbox))?;
    let seen = sandbox.root().join("seen");
    let mut code = vs_code(&sandbox, repository.path(), "vscode/together.mjs")?;
    code.env("PACTIFY_LSP", outside::program("pactify-lsp")?).env("PACTIFY_SEEN", &seen);
    let code = Running::start(code, b"")?;
    let in_code = |what: &str| code.wait_for_line(&format!("ok - VS Code {what}"), PATIENCE).map(drop);
    let mut command = neovim(&sandbox, &repository)?;
    command.args(["-n", "-c", "set noshowcmd", "README.md"]);
    let nvim = Terminal::start(&sandbox, "terminal", &command, SIZE)?;
    nvim.until(&["A small program."])?;
    nvim.enter(":Pactify jobs")?;
    nvim.until(&["No job here"])?;
    in_code("shows a file, and no job")?;

    let go = sandbox.root().join("go");
    let wait: Step = serde_json::from_value(json!({"waitFor": [go.display().to_string(), 600.0]}))?;
    let brief = sandbox.root().join("both.brief.md");
    std::fs::write(&brief, format!("Seen by both\n\n{}", prompt(&[wait, Step::write("README.md", NEW)])))?;
    nvim.enter(&format!(":wincmd p | edit {} | Pactify delegate", brief.display()))?;
    nvim.until(&["running", "Seen by both"])?;
    in_code("shows the job that Neovim started")?;
    nvim.enter(":buffer README.md")?;
    std::fs::write(&go, "")?;
    nvim.until(&["succeeded", "1 file, +1 −1"])?;
    in_code("shows its result")?;
    ensure!(repository.read("README.md")? == OLD, "written before an apply");

    nvim.enter(":Pactify preview")?;
    nvim.until(&["Pactify preview:"])?;
    nvim.enter("1")?;
    nvim.until(&["after · README.md"])?;
    nvim.enter(":Pactify apply")?;
    nvim.until(&["Apply all of it: 1 file(s)"])?;
    nvim.enter("1")?;
    nvim.until(&["= M README.md"])?;
    // Before VS Code sees it: what it does next is to undo it.
    ensure!(repository.read("README.md")? == NEW, "not what was shown");
    nvim.enter(":tabclose")?;
    in_code("shows that Neovim applied it, and the new text")?;
    in_code("undoes it")?;
    nvim.until(&["A small program.", "succeeded"])?;
    std::fs::write(&seen, "")?;
    in_code("applies it")?;
    nvim.until(&["Seen by both.", "No job here"])?;
    nvim.enter(":qall")?;
    code.wait(PATIENCE)?.success().map(drop)
}
