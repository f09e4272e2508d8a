//! The guard over the person's checkout while a read-only job works in it: fail-closed.
//!
//! A baseline is taken before the launch and compared once everything is verified dead, by a recovery as well. Any
//! difference fails the job and is named, whoever made it: nobody can tell the person's edit from the job's. A comparison
//! that cannot be made counts as a difference. Nothing here changes the checkout, or takes anything back in it.

use pactify_core::display::headline;
use pactify_core::job::event::{CheckoutRecord, Known};
use pactify_core::job::outcome;
use pactify_core::{AttemptNo, Failure, FailureCode};

use super::{Host, HostError};
use crate::causes::with_causes;
use crate::fingerprint::{Checkout, Comparison, DIRECTORY, FingerprintError};
use crate::process::ProcessIdentity;

/// Looks at the checkout, and remembers.
pub(super) async fn begin(host: &mut Host) -> Result<Result<CheckoutRecord, Failure>, HostError> {
    let (env, spec, job, attempt) = (host.env().clone(), host.spec().clone(), host.dir().clone(), host.attempt);
    let jobs = host.store.jobs();
    let begun = host
        .away(move || -> Result<_, Failure> {
            let sha256 = spec.base.commit.is_sha256();
            let checkout = Checkout::take(&env, &spec.repository, sha256, &jobs).map_err(|error| {
                let message = format!("your checkout cannot be guarded: {}", with_causes(&error));
                let next = "make it readable for you, or let the job look at a tree of its own, without `--in-place`";
                Failure::new(FailureCode::LaunchFailed, message, next)
            })?;
            let directory = job.dir().ensure_dir(DIRECTORY).map_err(FingerprintError::from)?;
            let digest = checkout.keep(&directory, attempt)?;
            Ok((checkout, digest))
        })
        .await?;
    match begun {
        Err(failure) => Ok(Err(failure)),
        Ok((checkout, digest)) => {
            let record = checkout.record().clone();
            host.record(Known::CheckoutGuarded { checkout: record.clone(), digest })?;
            host.guarded = Some(checkout);
            Ok(Ok(record))
        }
    }
}

/// Looks again. What is not as it was is the failure. Nothing of the job may run any more, and what it shares with the
/// person must have been compared before ([`super::watch`]).
pub(super) async fn end(host: &mut Host) -> Result<Result<(), Failure>, HostError> {
    let remembered = host.guarded.take();
    let Some(guarded) = host.state().guarded.clone() else {
        // Where a host compared and died before it could conclude, what it found is the conclusion.
        return Ok(outcome::checkout_as_recorded(&host.state().checkout_changes, host.state().checkout_changes_more));
    };
    let of = guarded.of;
    let compared = match compare(host, remembered, of, guarded.digest, &guarded.boot_id).await? {
        Ok(found) => found,
        Err(why) => {
            let why = headline(&why, 300);
            host.record(Known::CheckoutCompared {
                of,
                changed: vec![format!("{}{why}", outcome::NOT_COMPARED)],
                more: 0,
            })?;
            return Ok(Err(outcome::checkout_unknown(&why)));
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
    Ok(outcome::checkout_as_recorded(&changed, unnamed))
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
    let jobs = host.store.jobs();
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
        let compared = checkout.compare(&env, spec.base.commit.is_sha256(), &jobs);
        if let Ok(directory) = job.dir().ensure_dir(DIRECTORY)
            && let Err(error) = Checkout::forget(&directory, of)
        {
            tracing::info!(error = with_causes(&error), "the record of a checkout stays until the job is discarded");
        }
        compared.map_err(|error| with_causes(&error))
    })
    .await
}
