//! Why a host ends without ending its attempt. Whatever else goes wrong is part of the job's outcome.

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

impl HostError {
    /// As a failure of the job, when it came up while the harness ran.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Journal(error) => error.into(),
            error => Failure::internal(with_causes(&error)),
        }
    }
}
