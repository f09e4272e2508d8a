//! Front ends.

pub mod transport;
