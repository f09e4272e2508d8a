//! What `pactify sub run` and `pactify sub retry` both take: what the job is to be, and whether its end is awaited.
//!
//! What is not said is decided by each of them: it is as configured, or as the older job had it.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pactify_core::job::BaseKind;
use pactify_core::permission::Policy;

use super::candidates;

#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    /// Let it look, and fail it if it changes anything
    #[arg(long)]
    pub(super) read_only: bool,
    /// In a read-only job: look around in your checkout itself, at ignored files and what is not committed; whatever
    /// changes there meanwhile fails the job
    #[arg(long, conflicts_with = "base")]
    in_place: bool,
    /// What it starts from: HEAD's commit, or that with your uncommitted changes
    #[arg(long, value_name = "BASE", value_parser = base())]
    pub(super) base: Option<BaseKind>,
    /// A command that the result has to pass, instead of any other; can be repeated
    #[arg(long, value_name = "COMMAND", conflicts_with = "no_verify")]
    verify: Vec<String>,
    /// Take the result unverified
    #[arg(long)]
    no_verify: bool,
    /// The model to ask for
    #[arg(long)]
    pub(super) model: Option<String>,
    /// Give it your own configuration of the agent CLI, as far as the access mode lets it; what the mode rests on stays
    /// pactify's
    #[arg(long)]
    with_user_config: bool,
    /// Who answers what the agent asks for: `allow` grants everything, `ask` asks you
    #[arg(long, value_name = "WHO", value_parser = policy())]
    pub(super) permissions: Option<Policy>,
    /// The file with the brief; - is standard input
    #[arg(long, value_name = "FILE", value_hint = candidates::LEFT_TO_THE_SHELL)]
    pub(super) brief: Option<PathBuf>,
    /// Print the new job's id and leave it running
    #[arg(long)]
    pub(super) detach: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Asked {
    pub(super) fn in_place(&self) -> Option<bool> {
        self.in_place.then_some(true)
    }

    pub(super) fn with_user_config(&self) -> Option<bool> {
        self.with_user_config.then_some(true)
    }

    /// The commands; none at all is another thing than nothing said.
    pub(super) fn verify(&self) -> Option<Vec<String>> {
        (self.no_verify || !self.verify.is_empty()).then(|| self.verify.clone())
    }
}

fn policy() -> impl TypedValueParser<Value = Policy> {
    PossibleValuesParser::new(["allow", "ask"]).map(|word| if word == "ask" { Policy::Ask } else { Policy::Allow })
}

/// Words are spelt as options are; the configuration's and the wire's spelling is taken, too.
fn base() -> impl TypedValueParser<Value = BaseKind> {
    let working_tree = PossibleValue::new("working-tree").alias("workingTree");
    // Refused later, with the reason: only an editor knows of unsaved text.
    let buffers = PossibleValue::new("buffers").hide(true);
    PossibleValuesParser::new([PossibleValue::new("head"), working_tree, buffers]).map(|word| match word.as_str() {
        "head" => BaseKind::Head,
        "buffers" => BaseKind::Buffers,
        _ => BaseKind::WorkingTree,
    })
}
