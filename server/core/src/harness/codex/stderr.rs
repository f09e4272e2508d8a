//! What codex says on standard error: facts that `--json` leaves out, among much noise.
//!
//! [`Line::of`] sorts one line. What it means for the job is decided in [`super::driver`] and [`super::failure`].

/// One line of standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'l> {
    /// Says nothing about the job.
    Noise,
    /// A tool call was refused before it started; no event tells of it.
    ToolRefused(&'l str),
    /// The login could not be refreshed.
    LoginNotRefreshed(&'l str),
    /// codex could not make the helpers that its sandbox needs.
    NoSandboxHelpers(&'l str),
    /// Anything else.
    Other(&'l str),
}

impl<'l> Line<'l> {
    pub(super) fn of(line: &'l str) -> Self {
        let line = line.trim_end();
        if let Some((target, message)) = logged_error(line) {
            return match target {
                "codex_core::tools::router" => match message.strip_prefix("error=").unwrap_or(message) {
                    // A call that ran and failed; its event tells of it.
                    ran if ran.starts_with("Exit code: ") => Self::Noise,
                    refused => Self::ToolRefused(refused),
                },
                "codex_login::auth::manager" => match message.strip_prefix("Failed to refresh token: ") {
                    Some(reason) => Self::LoginNotRefreshed(reason),
                    None => Self::Noise,
                },
                _ => Self::Other(message),
            };
        }
        if line.starts_with("WARNING: ") && line.contains("could not create PATH aliases") {
            return Self::NoSandboxHelpers(line);
        }
        if is_noise(line) { Self::Noise } else { Self::Other(line) }
    }
}

/// Target and message of a log line: `2026-11-29T13:45:01.795453Z ERROR codex_core::tools::router: error=…`.
fn logged_error(line: &str) -> Option<(&str, &str)> {
    let (time, rest) = line.split_once(' ')?;
    let dated = time.len() >= 20 && time.as_bytes()[0].is_ascii_digit() && time.ends_with('Z');
    rest.trim_start().strip_prefix("ERROR ").filter(|_| dated)?.split_once(": ")
}

fn is_noise(line: &str) -> bool {
    let text = line.trim_start();
    let frame = || text.split_once(": <unknown>").is_some_and(|(n, _)| n.bytes().all(|b| b.is_ascii_digit()));
    text.is_empty()
        || matches!(
            text,
            "Reading additional input from stdin..." | "Reading prompt from stdin..." | "Stack backtrace:"
        )
        || text.starts_with("warning: Untrusted project-local configuration is disabled.")
        || frame()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_by_what_they_say() {
        for (line, expect) in [
            ("", Line::Noise),
            ("Reading additional input from stdin...", Line::Noise),
            ("   7: <unknown>", Line::Noise),
            (
                "2026-11-29T13:45:01.795453Z ERROR codex_core::tools::router: error=unsupported call: x",
                Line::ToolRefused("unsupported call: x"),
            ),
            (
                "2026-11-29T13:37:16.645289Z ERROR codex_login::auth::manager: Failed to refresh token status=401",
                Line::Noise,
            ),
            (
                "2026-11-29T13:37:16.645289Z ERROR codex_login::auth::manager: Failed to refresh token: used up",
                Line::LoginNotRefreshed("used up"),
            ),
            ("ERROR codex_core::tools::router: error=x", Line::Other("ERROR codex_core::tools::router: error=x")),
            ("Error: Model provider `nope` not found", Line::Other("Error: Model provider `nope` not found")),
        ] {
            assert_eq!(Line::of(line), expect, "{line:?}");
        }
    }
}
