//! The decisions of pactify: data in, data out.
//!
//! Nothing here reads a file, starts a process, opens a socket, asks the clock or the environment; the
//! crate's `clippy.toml` and its dependency list see to it. Effects live in `pactify-engine`, which executes
//! what this crate decides; `pactify-lsp` only translates between editors, terminals and the engine.
//!
//! Where to read first: [`job`] (what a job is and how its state follows from its journal), [`harness`] (how an
//! agent CLI is planned and understood), [`change`] (what a job changed and what may be written back),
//! [`protocol`] (the wire), [`failure`] (how anything is refused).

pub mod brief;
pub mod change;
pub mod config;
pub mod display;
pub mod doctor;
pub mod failure;
pub mod fingerprint;
pub mod harness;
pub mod id;
pub mod job;
pub mod lfs;
pub mod path;
pub mod permission;
pub mod protocol;
pub mod redact;
pub mod retention;
mod strict_json;

pub use failure::{Failure, FailureCode};
pub use id::{AttemptNo, ChangeSetId, JobId, ObjectId, Seq};
pub use path::{AbsPath, RepoPath};
