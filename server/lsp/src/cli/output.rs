//! Everything that the terminal program prints.
//!
//! Results go to standard output, everything else (progress, notices, refusals) to standard error. Each line is
//! neutralised here, once, so that no text of a job can move the cursor or hide; colours are added after that, on
//! a terminal that wants them. A reader that went away is no error.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use pactify_core::protocol::ErrorData;
use pactify_core::protocol::words::Tone;
use pactify_core::{Failure, FailureCode, display};
use pactify_engine::env::Env;
use serde::Serialize;
use serde_json::json;

use super::wording;

/// How a piece of text is set off.
pub(super) const PLAIN: Style = Style::new();
pub(super) const STRONG: Style = Style::new().bold();
pub(super) const FAINT: Style = Style::new().dimmed();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const CARE: Style = AnsiColor::Yellow.on_default();

/// The process's two streams.
#[derive(Clone, Debug)]
pub(super) struct Output {
    out: Stream,
    err: Stream,
    /// A status line stands on the terminal.
    status: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    is_terminal: bool,
    coloured: bool,
}

/// Columns of a terminal that does not say.
const WIDTH: usize = 80;

impl Output {
    /// The process's own streams, without colours.
    pub(super) fn of_process() -> Self {
        let stream = |is_terminal| Stream { is_terminal, coloured: false };
        let (out, err) = (stream(io::stdout().is_terminal()), stream(io::stderr().is_terminal()));
        Self { out, err, status: Arc::default() }
    }

    /// With colours, where the terminal takes them and the person did not turn them off (`NO_COLOR`, `TERM=dumb`).
    pub(super) fn styled_for(self, env: &Env) -> Self {
        let wanted = env.variable("NO_COLOR").is_none() && env.variable("TERM").is_some_and(|term| term != "dumb");
        let styled = |stream: Stream| Stream { coloured: stream.is_terminal && wanted, ..stream };
        Self { out: styled(self.out), err: styled(self.err), status: self.status }
    }

    /// Whether a person reads standard output.
    pub(super) fn is_terminal(&self) -> bool {
        self.out.is_terminal
    }

    /// Text of a result, as lines.
    pub(super) fn text(&self, text: &str) {
        self.styled(&[(text, PLAIN)]);
    }

    /// A line of a result, in pieces.
    pub(super) fn styled(&self, pieces: &[(&str, Style)]) {
        self.end_status();
        write(io::stdout(), &line(pieces, self.out.coloured));
    }

    /// A result for programs: one line of JSON.
    pub(super) fn json(&self, value: &impl Serialize) {
        let text = serde_json::to_string(value).unwrap_or_default();
        write(io::stdout(), format!("{text}\n").as_bytes());
    }

    /// Bytes that must arrive as they are (a patch for `git apply`); on a terminal they are neutralised like the rest.
    pub(super) fn exact(&self, text: &str) {
        if self.out.is_terminal {
            text.lines().for_each(|line| self.text(line));
        } else {
            write(io::stdout(), text.as_bytes());
        }
    }

    /// A line for people, beside the result.
    pub(super) fn note(&self, text: &str) {
        self.note_styled(&[(text, PLAIN)]);
    }

    /// The same, in pieces.
    pub(super) fn note_styled(&self, pieces: &[(&str, Style)]) {
        self.end_status();
        write(io::stderr(), &line(pieces, self.err.coloured));
    }

    /// Puts `text` into the one line that is rewritten in place. Nothing where nobody watches.
    pub(super) fn status(&self, text: &str) {
        if self.err.is_terminal {
            let shown = fit(&display::neutral(text), self.width());
            self.status.store(true, Ordering::Relaxed);
            write(io::stderr(), format!("\r\x1b[K{shown}").as_bytes());
        }
    }

    /// Removes the status line.
    pub(super) fn end_status(&self) {
        if self.status.swap(false, Ordering::Relaxed) {
            write(io::stderr(), b"\r\x1b[K");
        }
    }

    /// Whether somebody is there who reads questions and can answer them.
    pub(super) fn can_ask(&self) -> bool {
        self.err.is_terminal && io::stdin().is_terminal()
    }

    /// Asks a yes-or-no question; `None` when nobody can answer.
    pub(super) fn ask(&self, question: &str) -> Option<bool> {
        if !self.can_ask() {
            return None;
        }
        self.end_status();
        write(io::stderr(), format!("{} [y/N] ", display::neutral(question)).as_bytes());
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// Asks before something happens; says `declined` when the answer is no.
    ///
    /// # Errors
    /// When nobody can be asked whether to do it; `next` says what to do instead.
    pub(super) fn confirm(&self, question: &str, whether: &str, declined: &str, next: &str) -> Result<bool, Failure> {
        match self.ask(question) {
            Some(true) => Ok(true),
            Some(false) => {
                self.note(declined);
                Ok(false)
            }
            None => {
                let message = format!("nobody can be asked whether to {whether}");
                Err(Failure::new(FailureCode::InvalidParams, message, next))
            }
        }
    }

    /// Tells why nothing was done, and gives the exit code for it.
    pub(super) fn refuse(&self, failure: &Failure, json: bool) -> ExitCode {
        if json {
            self.json(&json!({"error": ErrorData::from(failure.clone())}));
        }
        let failure = wording::in_terminal(failure);
        self.note_styled(&[("pactify: ", BAD), (&failure.message, PLAIN)]);
        for conflict in &failure.conflicts {
            self.note_styled(&[("  ", PLAIN), (&conflict.path.path, STRONG), (": ", PLAIN), (&conflict.detail, PLAIN)]);
        }
        self.note_styled(&[("next: ", FAINT), (&failure.next, PLAIN)]);
        ExitCode::from(failure.code.exit_code())
    }

    fn width(&self) -> usize {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
        size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(WIDTH)
    }
}

/// The style of good and bad news.
pub(super) fn style_of(tone: Tone) -> Style {
    match tone {
        Tone::Good => GOOD,
        Tone::Plain => PLAIN,
        Tone::Bad => BAD,
    }
}

fn line(pieces: &[(&str, Style)], coloured: bool) -> Vec<u8> {
    let mut line = String::new();
    for (text, style) in pieces {
        let text = display::neutral_block(text);
        if coloured && *style != PLAIN {
            line.push_str(&format!("{style}{text}{style:#}"));
        } else {
            line.push_str(&text);
        }
    }
    line.push('\n');
    line.into_bytes()
}

/// The beginning of `text` that surely fits one line: a character may take two columns.
fn fit(text: &str, width: usize) -> String {
    let columns = |c: char| if c.is_ascii() { 1 } else { 2 };
    let whole: usize = text.chars().map(columns).sum();
    if whole < width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(3);
    let mut shown: String = text
        .chars()
        .take_while(|c| {
            let fits = columns(*c) <= left;
            left = left.saturating_sub(columns(*c));
            fits
        })
        .collect();
    shown.push('…');
    shown
}

/// A closed pipe means that the reader has seen enough.
fn write(mut to: impl Write, bytes: &[u8]) {
    let _ = to.write_all(bytes).and_then(|()| to.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_job_cannot_reach_the_terminal_as_control() {
        let hostile = "a\x1b]0;owned\x07b\u{202e}\nc";
        let text = String::from_utf8(line(&[(hostile, BAD)], true)).unwrap();
        assert!(text.starts_with("\x1b[31m") && text.ends_with("\x1b[0m\n"), "{text:?}");
        assert!(text.contains("a\\u{1b}]0;owned\\u{7}b\\u{202e}\nc"), "{text:?}");
        assert_eq!(line(&[("a", BAD), ("b", PLAIN)], false), b"ab\n");
    }

    #[test]
    fn a_status_fits_its_line() {
        assert_eq!(fit("short", 10), "short");
        assert_eq!(fit("exactly-10", 10), "exactly…");
        assert_eq!(fit("文文文文文文", 9), "文文文…");
    }
}
