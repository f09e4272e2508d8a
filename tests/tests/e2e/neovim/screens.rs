//! A newcomer's way in Neovim, on a screen: the doctor, a brief, watching, a preview, one change, the rest, undo.
//!
//! codex is the real one, its provider a scripted one. With `PACTIFY_TEST_PICTURES` the screens are drawn into that
//! folder.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use pactify_tests::outside;
use pactify_tests::sandbox::{Repository, Sandbox};
use pactify_tests::terminal::{Picture, Terminal};
use serde_json::json;

use super::neovim;
use crate::codex::Stage;

const SIZE: (u16, u16) = (150, 32);
const GREET: &str = "\"\"\"Greets people.\"\"\"\n\nimport sys\n\n\ndef greeting(name):\n    return \"hello \" + name\n\n\n\
    def main(arguments):\n    for name in arguments:\n        print(greeting(name))\n    return 0\n\n\n\
    if __name__ == \"__main__\":\n    sys.exit(main(sys.argv[1:]))\n";
/// What the job makes of it: two changes.
const POLITE: &str = "sed -i -e 's/return \"hello \" + name/return f\"Good day, {name}!\"/' \
    -e 's/^    for name in arguments:/    for name in arguments or [\"everybody\"]:/' greet.py";
const README: &str = "# Greet\n\n`python3 greet.py Ada` greets Ada; without a name it greets everybody.\n";

/// A person at a terminal, and the pictures of what they saw.
struct Person<'a> {
    terminal: Terminal<'a>,
    repository: Repository<'a>,
    pictures: Vec<(&'static str, Picture)>,
}

#[test]
fn a_newcomer_delegates_takes_one_change_then_the_rest_and_undoes_it() -> Result<()> {
    let steps = json!([
        {"items": [{"shell": "cat greet.py"}], "preamble": "I'll look at the program first."},
        {"shell": POLITE},
        {"edit": {"path": "README.md", "content": README}},
        {"items": [{"shell": "make test"}], "preamble": "Now the tests."},
        {"message": "The program greets politely, and greets everybody when nobody is named."},
    ]);
    let stage = Stage::playing(&steps)?;
    let go = stage.sandbox.root().join("go");
    let is_light = outside::variable("PACTIFY_TEST_LIGHT").is_some();
    let mut person = Person::begin(&stage.sandbox, &go, is_light)?;
    person.asks_the_doctor()?;
    person.writes_a_brief()?;
    person.watches(&go)?;
    person.takes_one_change()?;
    person.takes_the_rest()?;
    person.undoes_both()?;
    if let Some(folder) = outside::variable("PACTIFY_TEST_PICTURES").map(PathBuf::from) {
        let file = |name| folder.join(format!("{name}{}.png", if is_light { "-light" } else { "" }));
        let all: Vec<_> = person.pictures.into_iter().map(|(name, picture)| (picture, file(name), is_light)).collect();
        Picture::draw(&stage.sandbox, &all)?;
    }
    Ok(())
}

impl<'a> Person<'a> {
    /// Opens a small program. Its tests wait for `go`, so that there is time to watch them.
    fn begin(sandbox: &'a Sandbox, go: &Path, is_light: bool) -> Result<Self> {
        let repository = sandbox.repository("greet")?;
        repository.write("greet.py", GREET)?;
        repository.write("Makefile", "test:\n\t@sh ./tests.sh\n")?;
        let wait = format!("for turn in $(seq 900); do [ -e {} ] && exit 0; sleep 0.1; done; exit 1\n", go.display());
        repository.write("tests.sh", wait)?;
        repository.commit("Greet people")?;
        let mut nvim = neovim(sandbox, &repository)?;
        nvim.args([
            "-n",
            "-c",
            if is_light { "set bg=light" } else { "set bg=dark" },
            "-c",
            // On a busy machine the two keys of a mapping may come more than a second apart.
            "set tgc nu ls=3 noshowcmd notimeout",
        ]);
        nvim.args(["-c", "let &stl = \" %t %m%= %{%v:lua.require'pactify'.statusline()%} \"", "greet.py"]);
        let terminal = Terminal::start(sandbox, "terminal", &nvim, SIZE)?;
        terminal.until(&["def greeting(name):"])?;
        Ok(Self { terminal, repository, pictures: Vec::new() })
    }

    /// Takes a picture, without what the command line says.
    fn keep(&mut self, name: &'static str) -> Result<()> {
        self.terminal.press(&["C-l"])?;
        self.terminal.until_gone("\n:")?;
        self.keep_as_it_is(name)
    }

    fn keep_as_it_is(&mut self, name: &'static str) -> Result<()> {
        self.pictures.push((name, self.terminal.picture()?));
        Ok(())
    }

    fn asks_the_doctor(&mut self) -> Result<()> {
        self.terminal.enter(":Pactify doctor")?;
        self.terminal.until(&["vim.g.pactify is understood", "pactify-lsp "])?;
        self.terminal.enter(":bwipeout")?;
        self.terminal.until_gone("pactify-lsp ")
    }

    fn writes_a_brief(&mut self) -> Result<()> {
        self.terminal.enter(":6,7Pactify delegate")?;
        self.terminal.until(&["harness: codex", "greet.py, lines 6–7"])?;
        self.terminal.press(&["i"])?;
        self.terminal.write("Greet politely, and greet everybody when nobody is named.")?;
        self.terminal.press(&["Escape"])?;
        self.terminal.until(&["everybody when nobody is named."])?;
        self.terminal.until_gone("INSERT")?;
        self.keep("nvim-brief")?;
        self.terminal.press(&["C-c", "C-c"])?;
        self.terminal.until_gone("harness: codex")
    }

    /// Until the job is over; nothing is written meanwhile.
    fn watches(&mut self, go: &Path) -> Result<()> {
        self.terminal.enter(":Pactify jobs")?;
        self.terminal.until(&["Jobs of greet", "running", "make test", "codex: Greet politely"])?;
        self.terminal.press(&["Enter"])?;
        self.terminal.until(&["model    gpt-5.5"])?;
        self.terminal.until_gone("sed -i")?;
        self.keep("nvim-jobs")?;
        let written = self.repository.status()?;
        ensure!(written.is_empty(), "something was written: {written}");
        std::fs::write(go, "")?;
        self.terminal.until(&["succeeded", "2 files"])
    }

    fn takes_one_change(&mut self) -> Result<()> {
        self.terminal.press(&["p"])?;
        self.terminal.until(&["before · README.md", "M greet.py"])?;
        self.terminal.press(&["G", "Enter"])?;
        self.terminal.until(&["after · greet.py", "Good day"])?;
        self.terminal.press(&["C-w", "l", "C-w", "l", "a"])?;
        self.terminal.until(&["◐ M greet.py", "accepted"])?;
        self.keep("nvim-preview")?;
        self.terminal.enter(":Pactify apply-selected")?;
        self.terminal.until(&["Apply what is accepted: 1 file(s), 1 change(s)"])?;
        ensure!(self.repository.read("greet.py")? == GREET, "written before the answer");
        self.terminal.enter("1")?;
        self.terminal.until_gone("accepted")?;
        self.terminal.until(&["= ", "applied"])?;
        let taken = self.repository.read("greet.py")?;
        ensure!(taken.contains("Good day") && !taken.contains("everybody"), "{taken}");
        Ok(())
    }

    fn takes_the_rest(&mut self) -> Result<()> {
        self.terminal.enter(":Pactify apply")?;
        self.terminal.until(&["Apply all of it: 2 file(s)"])?;
        self.terminal.enter("1")?;
        self.terminal.until(&["= A README.md", "= M greet.py"])?;
        self.keep("nvim-applied")?;
        let (program, readme) = (self.repository.read("greet.py")?, self.repository.read("README.md")?);
        ensure!(program.contains("everybody") && readme == README, "{program}{readme}");
        self.terminal.press(&["q"])?;
        self.terminal.until(&["Jobs of greet"])?;
        self.terminal.press(&["q"])?;
        self.terminal.until_gone("Jobs of greet")?;
        self.terminal.until(&["Good day", "everybody"])
    }

    fn undoes_both(&mut self) -> Result<()> {
        self.terminal.enter(":Pactify jobs all")?;
        self.terminal.until(&["Jobs of greet", "· applied"])?;
        self.terminal.press(&["u"])?;
        self.terminal.until(&["    for name in arguments:", "Good day", "partly applied", "undone, "])?;
        self.keep_as_it_is("nvim-undo")?;
        self.terminal.press(&["q"])?;
        self.terminal.until_gone("Jobs of greet")?;

        self.terminal.enter(":Pactify undo")?;
        self.terminal.until(&["Pactify undo:"])?;
        self.terminal.enter("1")?;
        self.terminal.until(&["return \"hello \" + name"])?;
        self.terminal.until_gone("Pactify undo:")?;
        let (program, left) = (self.repository.read("greet.py")?, self.repository.status()?);
        ensure!(program == GREET && left.is_empty(), "{left}{program}");
        self.terminal.enter(":qall")
    }
}
