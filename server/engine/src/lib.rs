//! Effects.
pub mod env;
pub mod process;
