//! Verification: whether a captured result passes the commands that the person wants it to pass.
//!
//! It comes after the capture, so that nothing that these commands write is ever part of the result; what they leave in
//! the tree is [`super::residue`]'s. They run one after the other in the job's tree, until one fails. Only a result is
//! verified: not what a job left that failed or was cancelled, no tree without changes, and no read-only job. Without
//! commands, what the repository looks like is suggested, unless the person wanted none.

use pactify_core::job::event::{Known, TreeRecord};
use pactify_core::job::setup::Decision;
use pactify_core::job::verify::{self, Check};
use pactify_core::{Failure, FailureCode, display};

use super::command::{Command, Done, End};
use super::error::{Concluded as _, Stop};
use super::{Host, HostError, command, residue};
use crate::causes::with_causes;
use crate::git::{Git, GitError};

/// Runs the job's verification commands. What speaks against the result is the failure; a cancel meanwhile is the
/// caller's to see.
pub(super) async fn run(host: &mut Host, tree: &TreeRecord) -> Result<(), Stop> {
    let checks = host.spec().verify.clone();
    if let Some(text) = verify::denied(&checks) {
        host.record(Known::Notice { id: "verifyDenied".to_owned(), text })?;
    }
    let wanted: Vec<&Check> = checks.iter().filter(|check| check.decision == Decision::Allow).collect();
    if wanted.is_empty() {
        if checks.is_empty() && !host.spec().no_verify {
            suggest(host).await?;
        }
        return Ok(());
    }
    residue::begin(host, tree).await?;
    host.record(Known::VerificationStarted)?;
    let verified = run_each(host, tree, &wanted).await.concluded()?;
    if verified.as_ref().err().is_none_or(|failure| failure.code != FailureCode::ProcessesSurvived) {
        residue::end(host).await?;
    }
    Ok(verified?)
}

async fn run_each(host: &mut Host, tree: &TreeRecord, wanted: &[&Check]) -> Result<(), Stop> {
    for (index, check) in wanted.iter().enumerate() {
        let command = Command {
            item: format!("verify{}", index + 1),
            name: "verification",
            text: check.command.clone(),
            seconds: host.settings().verify_seconds,
            failure: FailureCode::VerificationFailed,
        };
        let done = command::run(host, &command, tree).await?;
        let limit = format!("{} s ([limits] verify-seconds)", command.seconds);
        let trouble = done.trouble(&limit);
        if done.end == End::Cancelled {
            return Ok(());
        }
        record(host, check, &done, trouble.is_none())?;
        if let Some(trouble) = trouble {
            return Err(failed(check, &trouble, &done).into());
        }
    }
    Ok(())
}

fn record(host: &mut Host, check: &Check, done: &Done, passed: bool) -> Result<(), HostError> {
    let (command, exit_code, tail) = (check.command.clone(), done.exit_code(), done.tail.clone());
    host.record(Known::Verified { command, passed, exit_code, tail })
}

async fn suggest(host: &mut Host) -> Result<(), HostError> {
    let (env, spec) = (host.env().clone(), host.spec().clone());
    let suggestion = host
        .away(move || {
            let git = Git::find(&env)?;
            verify::suggestion(|name| git.tracked(&spec.repository, &spec.base, name))
        })
        .await?;
    match suggestion {
        Ok(None) => Ok(()),
        Ok(Some(command)) => {
            host.record(Known::Notice { id: "verifySuggested".to_owned(), text: verify::suggested(command) })
        }
        Err(error) => {
            let error: GitError = error;
            tracing::info!(error = with_causes(&error), "what a result could be verified with is not known");
            Ok(())
        }
    }
}

fn failed(check: &Check, how: &str, done: &Done) -> Failure {
    let message = format!("the result did not pass `{}`, which {how}", display::headline(&check.command, 100));
    let next = "look at the changes all the same: they can be applied; or resume the job with what is wrong";
    Failure::new(FailureCode::VerificationFailed, message, next).quoting(&done.tail)
}
