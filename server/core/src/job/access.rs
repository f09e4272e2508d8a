//! Access as a type: a read-only plan cannot hold a write grant.
//!
//! [`Access`] is the word in records and on the wire. In code a plan is a `Plan<ReadOnly>` or a `Plan<Write>`
//! ([`crate::harness::Plan`]), and only the latter's grant names something that may be written.

use serde::{Deserialize, Serialize};

use crate::AbsPath;

/// Whether a job may change files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// It may change its own tree.
    #[default]
    Write,
    /// It may look; any change fails it.
    ReadOnly,
}

/// One of the two access modes, as a type.
pub trait Mode: sealed::Sealed {
    /// What a plan of this mode is allowed.
    type Grant: Clone + std::fmt::Debug + PartialEq + Send;
    /// The mode's word.
    const ACCESS: Access;
}

/// The mode of jobs that may change their tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {}

/// The mode of jobs that may only look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnly {}

/// What a write job is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteGrant {
    /// The only directory it may change, besides its private home and temporary directory.
    pub tree: AbsPath,
    /// Whether its commands may use the network.
    pub network: bool,
}

/// What a read-only job is allowed: to read the tree. There is no field for anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadGrant {
    /// Where it looks.
    pub tree: AbsPath,
}

impl Mode for Write {
    type Grant = WriteGrant;
    const ACCESS: Access = Access::Write;
}

impl Mode for ReadOnly {
    type Grant = ReadGrant;
    const ACCESS: Access = Access::ReadOnly;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Write {}
    impl Sealed for super::ReadOnly {}
}
