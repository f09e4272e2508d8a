//! Process control with real processes: hosts that are started, detached, killed; escapees that must not survive.
//!
//! [`stage`] sets a play up, follows who takes part in it, and leaves nobody behind, whatever happens.

#![expect(clippy::unwrap_used, reason = "a play that cannot be set up fails where it stands")]

mod detach;
mod stage;
mod sweep;
