//! What is handed to a program, in arguments, variables and files: text that it cannot take for something else.

use crate::{AbsPath, Failure, FailureCode, display};

/// A path as text.
pub(crate) fn utf8<'p>(agent: &str, path: &'p AbsPath) -> Result<&'p str, Failure> {
    path.as_path().to_str().ok_or_else(|| {
        Failure::new(
            FailureCode::InvalidConfig,
            format!("{path} is not UTF-8, and {agent} is told its paths as text"),
            "set PACTIFY_HOME to a directory with a plain name; a program of that name belongs elsewhere, too",
        )
    })
}

/// `text`, unless the program could take it for a flag or nothing could print it.
pub(crate) fn plain<'t>(agent: &str, what: &str, text: &'t str) -> Result<&'t str, Failure> {
    if is_plain(text) {
        return Ok(text);
    }
    let shown = display::headline(text, 60);
    Err(Failure::new(
        FailureCode::InvalidParams,
        format!("{what} {shown:?} is no name that {agent} could take"),
        "name one of 1 to 200 characters that does not start with '-'",
    ))
}

/// Whether it is a name that a program could be given as an argument.
pub(crate) fn is_plain(text: &str) -> bool {
    (1..=200).contains(&text.len()) && !text.starts_with('-') && !text.chars().any(char::is_control)
}
