//! The effects of pactify: hosts, processes, journal, store, git, apply.
//!
//! Front ends call [`jobs::Jobs`]; everything else is below it. Decisions are not made here but in `pactify-core`.

#[cfg(not(target_os = "linux"))]
compile_error!("pactify runs on Linux only; on Windows, use WSL");

pub mod apply;
mod causes;
pub mod config;
pub mod disk;
pub mod env;
pub mod fingerprint;
pub mod git;
pub mod harness;
pub mod host;
pub mod job_dir;
pub mod jobs;
pub mod journal;
pub mod log;
pub mod process;
pub mod store;
pub mod tree;

mod approvals;
mod hash;
mod logins;
mod walk;
