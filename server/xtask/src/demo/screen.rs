//! What is printed: on standard output, in colours where a person looks at it.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use pactify_core::display::neutral;
use pactify_tests::outside;

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const CYAN: &str = "36";

/// The terminal, or the pipe that stands in for it.
pub(super) struct Screen {
    has_colours: bool,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self { has_colours: io::stdout().is_terminal() && outside::variable("NO_COLOR").is_none() }
    }

    /// The next part begins.
    pub(super) fn heading(&self, text: &str) {
        self.line(&format!("\n{}", self.paint(BOLD, text)));
    }

    pub(super) fn fact(&self, name: &str, value: &str) {
        self.line(&format!("  {:14} {}", self.paint(DIM, format!("{name:14}")), neutral(value)));
    }

    pub(super) fn good(&self, text: &str) {
        self.line(&format!("  {} {}", self.paint(GREEN, "✓"), neutral(text)));
    }

    /// Something that isn't as it should be, and why it goes on all the same.
    pub(super) fn note(&self, text: &str) {
        self.line(&format!("  {} {text}", self.paint(RED, "!")));
    }

    /// The changing line of a progress.
    pub(super) fn progress(&self, text: &str) {
        self.line(&format!("  {} {}", self.paint(CYAN, "◌"), neutral(text)));
    }

    /// One event of the job.
    pub(super) fn event(&self, text: &str) {
        self.line(&format!("    {}", self.paint(DIM, neutral(text))));
    }

    pub(super) fn quote(&self, text: &str) {
        for line in text.lines() {
            self.line(&format!("  {} {}", self.paint(CYAN, "│"), neutral(line)));
        }
    }

    pub(super) fn patch(&self, patch: &str) {
        for line in patch.lines() {
            let colour = match line.as_bytes().first() {
                Some(b'+') => GREEN,
                Some(b'-') => RED,
                Some(b'@') => CYAN,
                Some(b' ') => "",
                _ => BOLD,
            };
            self.line(&format!("  {}", self.paint(colour, neutral(line))));
        }
    }

    /// A file of the checkout.
    pub(super) fn file(&self, path: &str, content: &str) {
        self.line(&format!("  {}", self.paint(BOLD, neutral(path))));
        self.quote(content);
    }

    fn paint(&self, colour: &str, text: impl Display) -> String {
        if self.has_colours && !colour.is_empty() {
            format!("\u{1b}[{colour}m{text}\u{1b}[0m")
        } else {
            text.to_string()
        }
    }

    /// It doesn't matter if nobody reads it.
    fn line(&self, text: &str) {
        let _ = writeln!(io::stdout(), "{text}");
    }
}
