//! What happened to the person's checkout while a job ran that nothing confines to its tree.
//!
//! An agent without a sandbox may write anywhere. The files of the checkout are the person's to edit meanwhile, so nothing
//! can be concluded from a change there; it is told, and the person knows what was theirs. Where it can't be told, nothing
//! is said.

use jiff::Timestamp;
use pactify_core::display::neutral;
use pactify_core::harness::{HarnessName, registry};
use pactify_core::job::access::Access;
use pactify_core::job::event::Known;
use pactify_core::{Failure, RepoPath};

use super::{Host, HostError};
use crate::git::{Git, Stage};

/// How many files are named.
const NAMED: usize = 5;

/// Tells which files of the checkout changed since the harness was started at `since`, if it could have done that.
pub(super) async fn tell(host: &mut Host, since: Timestamp) -> Result<(), HostError> {
    let (env, spec, places) = (host.env().clone(), host.spec().clone(), host.places());
    let harness = registry::find(&spec.harness, &spec.settings);
    if spec.access != Access::Write || harness.is_none_or(|harness| harness.has_sandbox()) {
        return Ok(());
    }
    let name = spec.harness.clone();
    let changed = host
        .away(move || -> Result<Vec<RepoPath>, Failure> {
            let changed = Git::find(&env)?.changed_meanwhile(&places, &spec.repository, &spec.base, since);
            changed.map_err(|error| error.into_failure(Stage::Capture))
        })
        .await?;
    match changed {
        Ok(changed) if changed.is_empty() => Ok(()),
        Ok(changed) => host.record(Known::Notice { id: "checkoutChanged".to_owned(), text: told(&name, &changed) }),
        Err(failure) => {
            tracing::info!(%failure, "whether the checkout changed while the job ran is not known");
            Ok(())
        }
    }
}

fn told(harness: &HarnessName, changed: &[RepoPath]) -> String {
    let named: Vec<_> = changed.iter().take(NAMED).map(|path| neutral(&path.display()).into_owned()).collect();
    let files = match changed.len() {
        1 => "1 file of your checkout".to_owned(),
        count => format!("{count} files of your checkout"),
    };
    let more = if changed.len() > NAMED { ", …" } else { "" };
    format!(
        "{files} changed while the job ran: {}{more}. {harness} is not confined to its tree: what you did not change \
         yourself, it may have",
        named.join(", ")
    )
}
