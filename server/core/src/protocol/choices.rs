//! What an argument or a result of the wire chooses among. What exists also apart from the wire (access, states,
//! outcomes) is where it belongs: [`crate::job`].

use serde::{Deserialize, Serialize};

/// Where a brief comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum BriefSource {
    /// The text itself.
    Text(String),
    /// A document: the open editor's text where it is open, else the file.
    Document {
        /// Its `file:` URI.
        uri: String,
    },
}

/// Why a job's harness is the one that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum HarnessChoice {
    /// It was asked for, or the job that is done again had it.
    Named,
    /// It is the configuration's.
    Configured,
    /// It was the first that was found.
    FirstFound,
}

/// How much a preview tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PreviewFormat {
    /// Paths, kinds and counts.
    #[default]
    Summary,
    /// Changed lines, too.
    Hunks,
    /// A patch of all of it.
    Patch,
}

/// Which content of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// What the job started from.
    Base,
    /// What the job left.
    Result,
    /// What the checkout holds now.
    Current,
    /// What the checkout would hold after an apply.
    Merged,
}

/// What applying a path would do, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum OutlookKind {
    /// It is written as it was shown.
    Clean,
    /// There is nothing to do: the checkout has it.
    Already,
    /// The checkout's changes and the job's are merged; that has to be looked at first.
    Merge,
    /// It is not written.
    Conflict,
}

/// What an export makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ExportForm {
    /// A patch document.
    Patch,
    /// A branch in the person's repository.
    Branch,
}

/// How bad a finding is, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Jobs cannot run.
    Error,
    /// Something works less well.
    Warning,
    /// All is well.
    Ok,
}
