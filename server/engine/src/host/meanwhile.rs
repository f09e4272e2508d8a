//! What happened to the person's checkout while something ran that nothing confines to a job's tree: an agent without a
//! sandbox, or verification.
//!
//! The files of the checkout are the person's to edit meanwhile, so nothing can be concluded from a change there; it is
//! told, and the person knows what was theirs. Where it can't be told, nothing is said, and nothing of the job depends
//! on it.

use pactify_core::Failure;
use pactify_core::display::neutral;
use pactify_core::harness::{HarnessName, registry};
use pactify_core::job::JobSpec;
use pactify_core::job::access::Access;
use pactify_core::job::event::Known;

use super::{Host, HostError};
use crate::git::{ChangedMeanwhile, CheckoutBefore, Git, Stage};

/// How many files are named.
const NAMED: usize = 5;

/// Who is not confined.
#[derive(Debug)]
enum Who {
    Harness(HarnessName),
    Verification,
}

/// What the end of the job is held against.
#[derive(Debug)]
pub(super) struct Before {
    who: Who,
    checkout: CheckoutBefore,
}

impl Who {
    fn of(spec: &JobSpec) -> Option<Self> {
        let confined = registry::find(&spec.harness, &spec.settings).is_none_or(|harness| harness.about().has_sandbox);
        match spec.access {
            Access::Write if !confined => Some(Self::Harness(spec.harness.clone())),
            Access::Write if !spec.verify.is_empty() => Some(Self::Verification),
            _ => None,
        }
    }
}

/// Remembers the checkout before anything runs that could write to it. Where it was looked at as the tree was made, and
/// no command of the person's has run since, it is not looked at again.
pub(super) async fn begin(host: &mut Host) -> Result<Option<Before>, HostError> {
    let (env, spec, places) = (host.env().clone(), host.spec().clone(), host.places());
    let Some(who) = Who::of(&spec) else { return Ok(None) };
    let now = env.now();
    let seen = match host.checkout.take().filter(|_| spec.setup.is_none()) {
        Some(seen) => Ok(seen),
        None => {
            host.away(move || -> Result<_, Failure> {
                let seen = Git::find(&env)?.see_checkout(&places, &spec.repository, &spec.base);
                seen.map_err(|error| error.into_failure(Stage::Prepare))
            })
            .await?
        }
    };
    match seen {
        Ok(seen) => Ok(Some(Before { who, checkout: seen.since(now) })),
        Err(failure) => {
            tracing::info!(%failure, "what changes in the checkout while the job runs will not be known");
            Ok(None)
        }
    }
}

/// Tells which files of the checkout changed since.
pub(super) async fn end(host: &mut Host, before: Option<Before>) -> Result<(), HostError> {
    let Some(Before { who, checkout }) = before else { return Ok(()) };
    let (env, spec, places) = (host.env().clone(), host.spec().clone(), host.places());
    let looked = host
        .away(move || -> Result<_, Failure> {
            let changed = Git::find(&env)?.changed_since(&places, &spec.repository, &spec.base, &checkout);
            changed.map_err(|error| error.into_failure(Stage::Capture))
        })
        .await?;
    match looked {
        Ok(changed) if changed.paths.is_empty() => {}
        Ok(changed) => {
            let notice = Known::Notice { id: "checkoutChanged".to_owned(), text: told(&who, &changed) };
            if let Err(error) = host.record(notice) {
                // On a full disk the result still counts.
                tracing::warn!(%error, "what changed in the checkout is not recorded");
            }
        }
        Err(failure) => tracing::info!(%failure, "what changed in the checkout while the job ran is not known"),
    }
    Ok(())
}

fn told(who: &Who, changed: &ChangedMeanwhile) -> String {
    let paths = &changed.paths;
    let named: Vec<_> = paths.iter().take(NAMED).map(|path| neutral(&path.display()).into_owned()).collect();
    let named = named.join(", ");
    let more = if paths.len() > NAMED { ", …" } else { "" };
    let hidden = if changed.untracked_hidden { " (new files were not looked for)" } else { "" };
    let files = match paths.len() {
        1 => "1 file of your checkout".to_owned(),
        count => format!("{count} files of your checkout"),
    };
    let who = match who {
        Who::Harness(name) => format!("{name} is not confined to its tree"),
        Who::Verification => "verification is not confined to the job's tree".to_owned(),
    };
    format!(
        "{files} changed while the job ran{hidden}: {named}{more}. {who}: what you did not change yourself, it may have"
    )
}
