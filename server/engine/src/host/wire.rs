//! `wire.log`: what the harness said, for people who look into a failure. Bounded and redacted, never read by us. Of
//! lines that bring a text in pieces it has the outline only ([`pactify_core::redact::outline`]): who sees all pieces
//! of a secret sees the secret.

use std::fs::File;
use std::io::Write as _;

use pactify_core::display;

/// The most that is kept of one attempt, in bytes.
const MAX: u64 = 16 << 20;

/// The longest piece of one line that is kept.
const MAX_LINE: usize = 64 << 10;

/// An open wire log.
#[derive(Debug)]
pub(super) struct WireLog {
    file: Option<File>,
    left: u64,
}

impl WireLog {
    /// Writes to `file`; without one, nowhere. A log that cannot be written must never stop a job.
    pub(super) fn to(file: Option<File>) -> Self {
        Self { file, left: MAX }
    }

    /// Adds a line that holds no secret any more: `direction` is `<` for standard output, `!` for standard error, `>`
    /// for what we sent.
    pub(super) fn line(&mut self, direction: &str, line: &str) {
        let Some(file) = &mut self.file else { return };
        let head = display::head(line, MAX_LINE);
        let cut = if head.len() < line.len() { " …" } else { "" };
        let text = format!("{direction} {}{cut}\n", display::neutral(head));
        self.left = self.left.saturating_sub(text.len() as u64);
        let written =
            if self.left == 0 { file.write_all(b"= the log is full\n") } else { file.write_all(text.as_bytes()) };
        if self.left == 0 || written.is_err() {
            self.file = None;
        }
    }
}
