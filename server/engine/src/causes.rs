//! An error and everything that caused it, as one line: how errors of this crate become messages.
//!
//! What a person can do about it is said where an error becomes a [`pactify_core::Failure`]; making text of unknown
//! origin safe to show is [`pactify_core::display`]'s.

use std::error::Error;

/// The error's text, then each cause's. A cause that the text ends with already is not said twice.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Outer {
        #[error("cannot open {0}")]
        Silent(&'static str, #[source] std::io::Error),
        #[error("cannot open it: {0}")]
        Telling(#[source] std::io::Error),
    }

    #[test]
    fn every_cause_is_said_once() {
        let cause = || std::io::Error::other("the disk is gone");
        assert_eq!(with_causes(&Outer::Silent("x", cause())), "cannot open x: the disk is gone");
        assert_eq!(with_causes(&Outer::Telling(cause())), "cannot open it: the disk is gone");
    }
}
