//! A terminal with a program in it, as a person has it before them: keys in, a screen out.
//!
//! It is tmux with a socket and a configuration of its own. A picture is the screen with its colours as it was at that
//! moment; turning it into an image takes long, and is done when all of them are taken ([`Picture`]).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::running::Running;
use crate::sandbox::Sandbox;
use crate::tools::Tool;

/// True colours, no status line, and an Escape that is one at once.
const CONFIGURATION: &str = "set -g status off\nset -g default-terminal tmux-256color\nset -sg escape-time 0\n\
    set -as terminal-features ',*:RGB'\n";
/// For tmux to do as it is told.
const PROMPT: Duration = Duration::from_secs(60);
/// For what a program shows after a key, on a busy machine.
const SHOWN: Duration = Duration::from_secs(60);
/// Between two looks at the screen.
const LOOK: Duration = Duration::from_millis(50);

/// A program in a terminal. Both end when it is dropped.
pub struct Terminal<'a> {
    sandbox: &'a Sandbox,
    tmux: PathBuf,
    socket: PathBuf,
}

/// A screen as it was.
#[derive(Clone, Debug)]
pub struct Picture(Value);

impl<'a> Terminal<'a> {
    /// Starts a program in a terminal of so many columns and rows.
    pub fn start(sandbox: &'a Sandbox, name: &str, program: &Command, (columns, rows): (u16, u16)) -> Result<Self> {
        let configuration = sandbox.root().join(format!("{name}.tmux"));
        std::fs::write(&configuration, CONFIGURATION)?;
        let terminal = Self { sandbox, tmux: Tool::Tmux.find()?, socket: sandbox.root().join(format!("{name}.sock")) };
        let mut tmux = terminal.tmux(&["-f"]);
        tmux.arg(configuration).args(["new-session", "-d", "-x", &columns.to_string(), "-y", &rows.to_string(), "--"]);
        tmux.arg(program.get_program()).args(program.get_args());
        tmux.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        tmux.envs([("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("LC_ALL", "C.UTF-8")]);
        if let Some(folder) = program.get_current_dir() {
            tmux.current_dir(folder);
        }
        said(tmux)?;
        Ok(terminal)
    }

    /// Presses keys, as tmux names them (`Enter`, `C-c`, `a`).
    pub fn press(&self, keys: &[&str]) -> Result<()> {
        said(self.tmux(&[&["send-keys", "--"], keys].concat())).map(drop)
    }

    /// Types a text.
    pub fn write(&self, text: &str) -> Result<()> {
        said(self.tmux(&["send-keys", "-l", "--", text])).map(drop)
    }

    /// Types a text, then Enter.
    pub fn enter(&self, text: &str) -> Result<()> {
        self.write(text)?;
        self.press(&["Enter"])
    }

    /// What is on the screen, without colours.
    pub fn screen(&self) -> Result<String> {
        said(self.tmux(&["capture-pane", "-p"]))
    }

    /// Waits until the screen holds all of `texts`.
    pub fn until(&self, texts: &[&str]) -> Result<()> {
        let holds = |screen: &str| texts.iter().all(|text| screen.contains(text));
        self.until_found(&format!("{texts:?}"), |screen| holds(screen).then_some(()))
    }

    /// Waits until the screen holds `text` no more.
    pub fn until_gone(&self, text: &str) -> Result<()> {
        self.until_found(&format!("no {text:?}"), |screen| (!screen.contains(text)).then_some(()))
    }

    /// Waits until `look` finds something on the screen, and gives it. `what` says what it looks for.
    pub fn until_found<T>(&self, what: &str, look: impl Fn(&str) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + SHOWN;
        loop {
            let screen = self.screen()?;
            if let Some(found) = look(&screen) {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                bail!("the screen should show {what}:\n{screen}");
            }
            #[expect(clippy::disallowed_methods, reason = "a screen says nothing of itself: it is looked at")]
            std::thread::sleep(LOOK);
        }
    }

    /// The screen as it is now.
    pub fn picture(&self) -> Result<Picture> {
        let place =
            said(self.tmux(&["display-message", "-p", "#{pane_width} #{pane_height} #{cursor_x} #{cursor_y}"]))?;
        let place: Vec<u32> = place.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let text = said(self.tmux(&["capture-pane", "-e", "-p", "-N"]))?;
        Ok(Picture(json!({"place": place, "text": text})))
    }

    fn tmux(&self, arguments: &[&str]) -> Command {
        let mut tmux = self.sandbox.command(&self.tmux);
        tmux.arg("-S").arg(&self.socket).args(arguments);
        tmux
    }
}

impl Picture {
    /// Draws pictures into files: `(picture, file, whether its background is light)`.
    pub fn draw(sandbox: &Sandbox, pictures: &[(Self, PathBuf, bool)]) -> Result<()> {
        let list = sandbox.root().join("pictures.json");
        let told: Vec<Value> = pictures
            .iter()
            .map(|(picture, file, is_light)| json!({"screen": picture.0, "file": file, "light": is_light}))
            .collect();
        std::fs::write(&list, serde_json::to_vec(&told)?)?;
        let mut node = sandbox.command(Tool::Node24.find()?);
        node.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/terminal.mjs")).arg(&list);
        for (name, tool) in [
            ("PACTIFY_PLAYWRIGHT", Tool::PlaywrightCore),
            ("PACTIFY_CHROMIUM", Tool::Chromium),
            ("PACTIFY_XTERM", Tool::Xterm),
        ] {
            node.env(name, tool.find()?);
        }
        node.env("PACTIFY_UI_ROOT", sandbox.root().join("browser"));
        Running::start(node, b"")?.wait(SHOWN * 2)?.success().map(drop)
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = said(self.tmux(&["kill-server"]));
    }
}

/// Runs tmux, and gives what it says.
fn said(command: Command) -> Result<String> {
    let ended = Running::start(command, b"")?.wait(PROMPT)?.success().context("tmux did not do as it was told")?;
    Ok(ended.stdout)
}
