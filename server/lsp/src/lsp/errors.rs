//! Refusals as JSON-RPC errors.
//!
//! The error's `message` holds the next step too, because most editors show nothing else; `data` has the parts.

use pactify_core::protocol::ErrorData;
use pactify_core::{Failure, FailureCode, display};
use tower_lsp::jsonrpc::{Error, ErrorCode};

/// The specification's `RequestFailed`: the request was valid and could not be done.
const REQUEST_FAILED: i64 = -32803;

/// The one place where a failure becomes an error of the wire.
pub(super) fn of_failure(failure: Failure) -> Error {
    let code = match failure.code {
        FailureCode::InvalidParams => ErrorCode::InvalidParams,
        FailureCode::Internal => ErrorCode::InternalError,
        _ => ErrorCode::ServerError(REQUEST_FAILED),
    };
    // It may quote what a repository, a program or a client said, and editors show it as it is.
    let message = display::neutral_block(&format!("{}: {}", failure.message, failure.next)).into_owned();
    let data = serde_json::to_value(ErrorData::from(failure)).ok();
    Error { code, message: message.into(), data }
}

/// `workspace/executeCommand` with a name that is not ours.
pub(super) fn unknown_command(name: &str) -> Error {
    of_failure(Failure::new(
        FailureCode::InvalidParams,
        format!("{name:?} is not a command of pactify"),
        "the server's executeCommandProvider lists them",
    ))
}

#[cfg(test)]
mod tests {
    use pactify_core::failure::{Conflict, ConflictKind};
    use pactify_core::path::PathName;

    use super::*;

    #[test]
    fn an_error_carries_code_next_and_every_conflict() {
        let conflict = |path: &str, kind| Conflict {
            path: PathName { path: path.to_owned(), path_bytes: None },
            kind,
            detail: "it changed since".to_owned(),
            object: None,
        };
        let failure = Failure::new(FailureCode::ApplyConflict, "2 paths are in the way", "resolve them, then apply")
            .with_conflicts(vec![
                conflict("a.rs", ConflictKind::ContentDiffers),
                conflict("b", ConflictKind::UnsavedText),
            ]);
        insta::assert_json_snapshot!(of_failure(failure));
    }

    #[test]
    fn the_number_follows_the_code() {
        for (code, number) in [
            (FailureCode::InvalidParams, -32602),
            (FailureCode::Internal, -32603),
            (FailureCode::JobNotFound, -32803),
            (FailureCode::LoginRequired, -32803),
        ] {
            assert_eq!(of_failure(Failure::new(code, "x", "y")).code.code(), number);
        }
    }
}
