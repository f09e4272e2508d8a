//! Applies to real directories: what is written, what is refused, and that a refusal changes nothing.

mod current;
#[cfg(feature = "fault-injection")]
mod faults;
pub(crate) mod fixture;
mod impostors;
mod ordinary;
#[cfg(feature = "fault-injection")]
mod power;
mod property;
mod races;
mod refusals;
mod undo;
