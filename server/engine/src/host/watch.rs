//! The watch over what the job shares with the person: looked at before anything runs, compared when everything is
//! dead.
//!
//! What was seen is on disk and its digest in the journal, so that a recovery compares as well; while the host lives,
//! what it remembers counts, and not what lies on the disk. A comparison that cannot be made counts as a dangerous
//! change: it does not take the job's result from the person, but an apply waits for their word.

use pactify_core::display::headline;
use pactify_core::fingerprint::{OutsideChange, Weight, weigh};
use pactify_core::job::event::Known;
use pactify_core::protocol::words;
use pactify_core::{AttemptNo, Failure, FailureCode};

use super::error::Stop;
use super::{Host, HostError};
use crate::causes::with_causes;
use crate::fingerprint::{FingerprintError, Outside, Watch};
use crate::git::Git;

/// Looks, and remembers.
pub(super) async fn begin(host: &mut Host) -> Result<(), Stop> {
    let (env, spec, job, attempt) = (host.env().clone(), host.spec().clone(), host.dir().clone(), host.attempt);
    let jobs = host.store.jobs();
    let begun = host
        .away(move || -> Result<_, Failure> {
            let git = Git::find(&env)?;
            Ok(Watch::of(&git, &job, &spec, &jobs)?.begin(attempt)?)
        })
        .await?;
    let (state, digest) = begun?;
    host.record(Known::OutsideRecorded { digest })?;
    host.watched = Some(state);
    Ok(())
}

/// Looks again, and records what changed since.
pub(super) async fn end(host: &mut Host) -> Result<(), HostError> {
    let remembered = host.watched.take();
    let Some(watched) = host.state().watched.clone() else { return Ok(()) };
    let (env, spec, job) = (host.env().clone(), host.spec().clone(), host.dir().clone());
    let (jobs, of, digest) = (host.store.jobs(), watched.of, watched.digest.clone());
    let ended = host
        .away(move || -> Result<Option<Outside>, Failure> {
            let git = Git::find(&env)?;
            let watch = Watch::of(&git, &job, &spec, &jobs)?;
            let ended = || -> Result<_, FingerprintError> {
                let before = match remembered {
                    Some(state) => state,
                    None => watch.begun(of, &watched.digest)?,
                };
                watch.end(of, &before)
            };
            Ok(ended()?)
        })
        .await?;
    match ended {
        Ok(None) => Ok(()),
        Ok(Some(outside)) => tell(host, of, outside),
        Err(failure) => {
            let text = format!("what changed outside the worktree while the job ran is not known: {}", failure.message);
            // As bad as it could be: a job may have made the comparison fail.
            let unknown = OutsideChange {
                id: weigh::id(of, 0),
                weight: Weight::Dangerous,
                place: "the git directory".to_owned(),
                what: format!("could not be compared: {}", headline(&failure.message, 200)),
                restorable: false,
                restored: false,
            };
            host.record(Known::OutsideChanges {
                of,
                changes: vec![unknown],
                more: 0,
                more_dangerous: 0,
                before: digest,
                after: String::new(),
            })?;
            host.record(Known::Notice { id: "outsideUnknown".to_owned(), text })
        }
    }
}

/// Removes what was kept, where the comparison found nothing; called when the attempt's end is in the journal. What was
/// never compared stays for the recovery that will.
pub(super) fn forget(host: &Host) {
    let state = host.state();
    let Some(watched) = &state.watched else { return };
    let ended = state.attempt.as_ref().and_then(|attempt| attempt.ended.as_ref());
    let is_compared = ended.is_some_and(|ended| {
        ended.failure.as_ref().is_none_or(|failure| failure.code != FailureCode::ProcessesSurvived)
    });
    if is_compared && let Err(error) = Watch::forget(host.dir(), watched.of) {
        tracing::warn!(error = with_causes(&error), "what was seen outside before the job stays");
    }
}

fn tell(host: &mut Host, of: AttemptNo, outside: Outside) -> Result<(), HostError> {
    let Outside { changes, more, more_dangerous, before, after } = outside;
    let mut text = words::outside(&changes, more);
    let id = match changes.iter().map(|change| change.weight).min() {
        Some(Weight::Ordinary) | None => "outsideOrdinary",
        Some(Weight::Dangerous | Weight::Notable) => {
            text = format!("{text} (`pactify sub restore {} --list`)", host.job());
            "outsideChanges"
        }
    };
    host.record(Known::OutsideChanges { of, changes, more, more_dangerous, before, after })?;
    host.record(Known::Notice { id: id.to_owned(), text })
}
