//! The command that makes a fresh tree ready, before the harness is started.
//!
//! Which text it is, and that the person wants it, was decided when the job was created ([`pactify_core::job::setup`]).
//! How it runs is [`super::command`]. If it fails, no harness is started.

use pactify_core::job::access::Access;
use pactify_core::job::event::{Known, TreeRecord};
use pactify_core::job::setup::Decision;
use pactify_core::{Failure, FailureCode, RepoPath};

use super::command::{Command, Done, End};
use super::error::Stop;
use super::{Host, command};
use crate::git::{Git, Stage, Watch};

/// How many changed files are named.
const NAMED: usize = 3;

/// Runs the job's setup command in its fresh tree, if it has one. A cancel meanwhile is the caller's to see.
pub(super) async fn run(host: &mut Host, tree: &TreeRecord) -> Result<(), Stop> {
    let Some(setup) = host.spec().setup.clone() else { return Ok(()) };
    if setup.decision == Decision::Deny {
        host.record(Known::Notice { id: "setupDenied".to_owned(), text: setup.denied() })?;
        return Ok(());
    }
    let watch = watch(host).await?;
    let command = Command {
        item: "setup".to_owned(),
        name: "setup command",
        text: setup.command,
        seconds: host.settings().setup_seconds,
        failure: FailureCode::SetupFailed,
    };
    let done = command::run(host, &command, tree).await?;
    match done.trouble(&format!("{} s ([limits] setup-seconds)", command.seconds)) {
        Some(how) => Err(failed(&how, &done).into()),
        None if done.end == End::Cancelled => Ok(()),
        None => look(host, watch, tree.clone()).await,
    }
}

async fn watch(host: &mut Host) -> Result<Watch, Stop> {
    let (env, places, base) = (host.env().clone(), host.places(), host.spec().base.clone());
    let watched = move || Git::find(&env)?.watch(&places, &base);
    Ok(host.away(watched).await?.map_err(|error| error.into_failure(Stage::Prepare))?)
}

/// Says what it changed that git does not ignore. A read-only job could not be told apart from that.
async fn look(host: &mut Host, watch: Watch, tree: TreeRecord) -> Result<(), Stop> {
    let changed = host.away(move || watch.changed(&tree)).await?;
    let changed = changed.map_err(|error| error.into_failure(Stage::Prepare))?;
    if changed.is_empty() {
        return Ok(());
    }
    let text = format!("the setup command changed files that git does not ignore: {}", named(&changed));
    if host.spec().access == Access::ReadOnly {
        let next = "let it change ignored files only, or have the repository ignore these: a read-only job's tree must stay as it is";
        return Err(Failure::new(FailureCode::SetupFailed, text, next).into());
    }
    host.record(Known::Notice {
        id: "setupChanges".to_owned(),
        text: format!("{text}; they are part of the job's diff"),
    })?;
    Ok(())
}

/// Paths, the first few of them by name.
pub(super) fn named(paths: &[RepoPath]) -> String {
    let shown: Vec<String> = paths.iter().take(NAMED).map(ToString::to_string).collect();
    match paths.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}

fn failed(how: &str, done: &Done) -> Failure {
    let next = "run the command in your checkout to see what it lacks, then retry the job";
    Failure::new(FailureCode::SetupFailed, format!("the setup command {how}"), next).quoting(&done.tail)
}
