//! Why a host ends without ending its attempt ([`HostError`]). Whatever else goes wrong is part of the job's outcome,
//! and ends the step in which it comes up ([`Stop`]).

use std::ffi::OsString;
use std::io;

use pactify_core::Failure;
use pactify_core::brief::BriefError;

use crate::causes::with_causes;
use crate::disk::DiskError;
use crate::env::EnvError;
use crate::job_dir::socket::SocketError;
use crate::job_dir::{LockError, SpecError};
use crate::journal::JournalError;
use crate::process::detach::DetachError;
use crate::store::StoreError;

/// Why a host ended without ending its attempt.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error("cannot become a host")]
    Detach(#[from] DetachError),
    #[error("cannot read the surroundings")]
    Env(#[from] EnvError),
    #[error("cannot open the store")]
    Store(#[from] StoreError),
    #[error("cannot read the job")]
    Spec(#[from] SpecError),
    #[error("cannot hold the job")]
    Lock(#[from] LockError),
    #[error("cannot write the journal")]
    Journal(#[from] JournalError),
    #[error("cannot use the disk")]
    Disk(#[from] DiskError),
    #[error("cannot take a slot")]
    Slot(#[source] io::Error),
    #[error("cannot set the host up")]
    SetUp(#[source] io::Error),
    #[error("cannot listen")]
    Listen(#[from] SocketError),
    #[error("a step of ours panicked")]
    Panicked(#[from] tokio::task::JoinError),
    #[error("the message of a resume is unusable")]
    Message(#[source] BriefError),
    #[error("{0:?} is not a host's command line")]
    Arguments(Vec<OsString>),
}

/// Why a step of an attempt does not come to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// What is wrong becomes part of the job's outcome.
    Failed(Failure),
    /// The host ends.
    Host(HostError),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<HostError> for Stop {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

/// What a step came to, for whoever has more to do in either case.
pub(super) trait Concluded<T> {
    /// The failure apart from what ends the host.
    fn concluded(self) -> Result<Result<T, Failure>, HostError>;
}

impl<T> Concluded<T> for Result<T, Stop> {
    fn concluded(self) -> Result<Result<T, Failure>, HostError> {
        match self {
            Ok(value) => Ok(Ok(value)),
            Err(Stop::Failed(failure)) => Ok(Err(failure)),
            Err(Stop::Host(error)) => Err(error),
        }
    }
}

impl HostError {
    /// As a failure of the job, when it came up while the harness ran.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Journal(error) => error.into(),
            error => Failure::internal(with_causes(&error)),
        }
    }
}
