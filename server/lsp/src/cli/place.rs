//! Where a command works: the directory it was called in, or the one it was given.

use std::path::{Path, PathBuf};

use pactify_core::protocol::view::file_uri;
use pactify_core::{Failure, FailureCode};

/// The `file:` URI of `directory`, or of the working directory. Links are resolved: a repository is named by its place.
pub(super) fn repository(directory: Option<&Path>) -> Result<String, Failure> {
    let named = directory.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let place = std::fs::canonicalize(&named).map_err(|error| {
        Failure::new(
            FailureCode::InvalidParams,
            format!("{} cannot be used: {error}", named.display()),
            "name an existing directory in a git repository",
        )
    })?;
    Ok(file_uri(&place))
}
