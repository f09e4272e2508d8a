//! The guard over what a read-only job looks around in, its tree or the person's checkout: fail-closed.
//!
//! Of its tree the change set tells first; what that cannot show is compared here. In the checkout a baseline is taken
//! before the launch and compared once everything is verified dead, by a recovery as well. Any difference fails the job
//! and is named, whoever made it: nobody can tell the person's edit from the job's. A comparison that cannot be made
//! counts as a difference. Nothing here changes the checkout, or takes anything back in it.

use pactify_core::display::headline;
use pactify_core::harness::registry;
use pactify_core::job::access::Access;
use pactify_core::job::event::{CheckoutRecord, Known, TreeRecord};
use pactify_core::job::outcome;
use pactify_core::{AttemptNo, Failure, FailureCode};

use super::error::Stop;
use super::{Host, HostError};
use crate::causes::with_causes;
use crate::fingerprint::{Baseline, Checkout, Comparison, DIRECTORY, FingerprintError, Spared};
use crate::process::ProcessIdentity;

/// Looks at the checkout, and remembers.
pub(super) async fn begin(host: &mut Host) -> Result<CheckoutRecord, Stop> {
    let (env, spec, job, attempt) = (host.env().clone(), host.spec().clone(), host.dir().clone(), host.attempt);
    let spared = spared(host);
    let begun = host
        .away(move || -> Result<_, Failure> {
            let sha256 = spec.base.commit.is_sha256();
            let checkout = Checkout::take(&env, &spec.repository, sha256, &spared).map_err(|error| {
                let message = format!("your checkout cannot be guarded: {}", with_causes(&error));
                let next = "make it readable for you, or let the job look at a tree of its own, without `--in-place`";
                Failure::new(FailureCode::LaunchFailed, message, next)
            })?;
            let directory = job.dir().ensure_dir(DIRECTORY).map_err(FingerprintError::from)?;
            let digest = checkout.keep(&directory, attempt)?;
            Ok((checkout, digest))
        })
        .await?;
    let (checkout, digest) = begun?;
    let record = checkout.record().clone();
    host.record(Known::CheckoutGuarded { checkout: record.clone(), digest })?;
    host.guarded = Some(checkout);
    Ok(record)
}

/// Looks again. What is not as it was is the failure. Nothing of the job may run any more, and what it shares with the
/// person must have been compared before ([`super::watch`]).
pub(super) async fn end(host: &mut Host) -> Result<(), Stop> {
    let remembered = host.guarded.take();
    let Some(guarded) = host.state().guarded.clone() else {
        // Where a host compared and died before it could conclude, what it found is the conclusion.
        let state = host.state();
        return Ok(outcome::checkout_as_recorded(&state.checkout_changes, state.checkout_changes_more)?);
    };
    let of = guarded.of;
    host.compared = Some(of);
    let compared = match compare(host, remembered, of, guarded.digest, &guarded.boot_id).await? {
        Ok(found) => found,
        Err(why) => {
            let why = headline(&why, 300);
            host.record(Known::CheckoutCompared {
                of,
                changed: vec![format!("{}{why}", outcome::NOT_COMPARED)],
                more: 0,
            })?;
            return Err(outcome::checkout_unknown(&why).into());
        }
    };
    let Comparison { mut changed, more, .. } = compared;
    let outside = host.state().outside.iter().filter(|seen| seen.of == of);
    let mut unnamed = more;
    for seen in outside {
        unnamed += seen.more;
        changed.extend(seen.changes.iter().map(|change| format!("git directory: {} {}", change.place, change.what)));
    }
    host.record(Known::CheckoutCompared { of, changed: changed.clone(), more: unnamed })?;
    Ok(outcome::checkout_as_recorded(&changed, unnamed)?)
}

/// Looks at the tree of a read-only job before it is launched: a change set leaves out what is ignored, too large,
/// unreadable or a repository of its own. Of a write job there is nothing to remember.
pub(super) async fn look(host: &mut Host, tree: &TreeRecord) -> Result<Option<Baseline>, Stop> {
    if host.spec().access == Access::Write {
        return Ok(None);
    }
    let (env, path) = (host.env().clone(), tree.path.clone());
    let looked = host.away(move || Baseline::take(&env, &path)).await?;
    let taken = looked.map_err(|error| {
        let message = format!("the job's tree cannot be guarded: {}", with_causes(&error));
        Failure::new(FailureCode::LaunchFailed, message, "see what its setup left there, then retry the job")
    });
    Ok(Some(taken?))
}

/// Looks at it again, when nothing of the job runs any more: what is not as it was, if anything.
pub(super) async fn look_again(host: &mut Host, before: Baseline) -> Result<Option<Failure>, HostError> {
    let env = host.env().clone();
    let compared = host.away(move || before.compare(&env, |_| None)).await?;
    Ok(match compared {
        Ok(Comparison { changed, more, .. }) if changed.is_empty() && more == 0 => None,
        Ok(Comparison { changed, more, .. }) => Some(outcome::tree_changed(&changed, more)),
        Err(error) => Some(outcome::tree_unknown(&headline(&with_causes(&error), 300))),
    })
}

/// Removes the record of a checkout that was compared; called when what was found is in the journal.
pub(super) fn forget(host: &Host) {
    let Some(of) = host.compared.filter(|_| host.state().guarded.is_none()) else { return };
    let directory = host.dir().dir().ensure_dir(DIRECTORY).map_err(FingerprintError::from);
    if let Err(error) = directory.and_then(|directory| Checkout::forget(&directory, of)) {
        tracing::info!(error = with_causes(&error), "the record of a checkout stays until the job is discarded");
    }
}

/// What is not the agent's doing: other jobs' registrations, and the files that its harness makes.
fn spared(host: &Host) -> Spared {
    let harness = registry::find(&host.spec().harness, &host.spec().settings);
    Spared { jobs: host.store.jobs(), files: harness.map_or(&[], |harness| harness.about().git_files) }
}

async fn compare(
    host: &mut Host,
    remembered: Option<Checkout>,
    of: AttemptNo,
    digest: String,
    boot_id: &str,
) -> Result<Result<Comparison, String>, HostError> {
    let own = ProcessIdentity::of_self().map_err(HostError::SetUp)?;
    if pactify_core::job::event::ProcessRecord::from(&own).boot_id != boot_id {
        return Ok(Err("the machine was started anew meanwhile".to_owned()));
    }
    let (env, spec, job) = (host.env().clone(), host.spec().clone(), host.dir().clone());
    let spared = spared(host);
    host.away(move || {
        let checkout = match remembered {
            Some(checkout) => checkout,
            None => job
                .dir()
                .ensure_dir(DIRECTORY)
                .map_err(FingerprintError::from)
                .and_then(|directory| Checkout::kept(&directory, of, &digest))
                .map_err(|error| with_causes(&error))?,
        };
        checkout.compare(&env, spec.base.commit.is_sha256(), &spared).map_err(|error| with_causes(&error))
    })
    .await
}
