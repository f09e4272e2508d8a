//! Why a login cannot be looked after.

use std::io;

use pactify_core::{AbsPath, Failure, FailureCode};

use crate::disk::DiskError;
use crate::store::StoreError;

/// Why a login cannot be looked after.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    /// The person's own file, or its directory.
    #[error("cannot {action} {login}: {source}")]
    Login {
        /// The login.
        login: AbsPath,
        /// What was being done.
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// It is no file, or longer than any login.
    #[error("{login} is no login file")]
    NoFile {
        /// The login.
        login: AbsPath,
    },
    /// Somebody wrote to it at the same moment.
    #[error("{login} changed at the same moment")]
    Raced {
        /// The login.
        login: AbsPath,
    },
    /// Another process holds it for too long.
    #[error("another pactify process holds the login {login}")]
    Busy {
        /// The login.
        login: AbsPath,
    },
    /// A plan's link is not below the job's home.
    #[error("{path} is not a place for a link below the job's home")]
    Outside {
        /// Where the link would be.
        path: AbsPath,
    },
    /// No login of that name is in the quarantine.
    #[error("there is no login {id:?} in the quarantine")]
    NotQuarantined {
        /// The name.
        id: String,
    },
    /// A record without a JSON form.
    #[error("the record of a login cannot be written down: {source}")]
    Unwritable {
        /// What the encoder says.
        source: serde_json::Error,
    },
    /// Our own directories.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Our own files.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl From<LoginError> for Failure {
    fn from(error: LoginError) -> Self {
        let text = error.to_string();
        match error {
            LoginError::Login { login, .. } | LoginError::NoFile { login } => Self::new(
                FailureCode::LoginRequired,
                text,
                format!("see that you may read and write {login} and its directory"),
            ),
            LoginError::Raced { .. } | LoginError::Busy { .. } => {
                Self::new(FailureCode::StoreBusy, text, "try again in a moment")
            }
            LoginError::NotQuarantined { .. } => {
                Self::new(FailureCode::InvalidParams, text, "`pactify sub login` lists what is there")
            }
            LoginError::Outside { .. } | LoginError::Unwritable { .. } => Self::internal(text),
            LoginError::Store(error) => error.into(),
            LoginError::Disk(error) => error.into(),
        }
    }
}
