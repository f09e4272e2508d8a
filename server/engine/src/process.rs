//! Processes: what one is, how it starts, what it may see, and how a whole tree of them ends.
//!
//! This is the only module that starts processes; `clippy.toml` bans the std and tokio routes everywhere else.
//!
//! - [`identity`]: a process that cannot be confused with a later one of the same pid.
//! - [`environment`]: which variables a child gets, as data.
//! - [`spawn`]: an [`Invocation`] and its asynchronous form, a [`Child`] with pipes.
//! - [`run`]: its blocking form, with a deadline and bounded output.
//! - [`detach`]: starting and becoming a host, the process that owns one job.
//! - [`tree`]: ending everything a job started, and the proof that it ended ([`VerifiedDead`]).
//! - [`reap`]: who collects which exit status in a child subreaper.
//!
//! It knows nothing about jobs beyond their [`Marker`], and nothing about harnesses or git.

pub mod detach;
pub mod environment;
pub mod identity;
pub mod reap;
pub mod run;
pub mod spawn;
pub mod tree;

mod descriptors;
mod holders;
mod signals;
mod table;

pub use self::environment::{ChildEnv, EnvPolicy, Marker};
pub use self::holders::working_in;
pub use self::identity::ProcessIdentity;
pub use self::run::{Limits, Output, RunError};
pub use self::spawn::{Child, Invocation, Pipes, SpawnError};
pub use self::tree::{JobTree, NotDead, Patience, VerifiedDead};
