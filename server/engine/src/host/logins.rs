//! The logins that a job uses: remembered before its harness is started, looked at once everything of it is dead.

use std::sync::Arc;

use pactify_core::Failure;
use pactify_core::harness::{Harness, Launch};
use pactify_core::job::event::Known;

use super::attempt::swept;
use super::drive::LEFTOVERS;
use super::error::Stop;
use super::{Host, HostError};
use crate::causes::with_causes;
use crate::logins::{Logins, Told};
use crate::process::{JobTree, Marker, VerifiedDead};

/// Remembers them; from here on what is in them is recorded nowhere.
pub(super) async fn begin(host: &mut Host, harness: &Arc<dyn Harness>, launch: &Launch) -> Result<(), Stop> {
    // The record of a use, and the home, are about to be overwritten.
    settle_late(host).await?;
    if launch.links.is_empty() {
        return Ok(());
    }
    host.uses_logins = true;
    let (store, job, home) = (host.store.clone(), host.job().clone(), host.dir().home());
    let (harness, links) = (harness.clone(), launch.links.clone());
    let begun = host.away(move || Logins::open(&store)?.begin(&job, &home, &*harness, &links)).await?;
    host.keep_secret(begun.map_err(Failure::from)?);
    Ok(())
}

/// Looks at those that an earlier turn left unsettled.
async fn settle_late(host: &mut Host) -> Result<(), Stop> {
    let (store, job, home, at) = (host.store.clone(), host.job().clone(), host.dir().home(), host.env().now());
    let told = host.away(move || Logins::open(&store)?.settle_late(&job, &home, at)).await?;
    Ok(tell(host, told.map_err(Failure::from)?)?)
}

fn tell(host: &mut Host, told: Vec<Told>) -> Result<(), HostError> {
    told.into_iter().try_for_each(|told| host.record(Known::Notice { id: told.id.to_owned(), text: told.text }))
}

/// Looks at them, puts right what is to be put right, and tells of it. What goes wrong takes no result from the person.
pub(super) async fn end(host: &mut Host, dead: VerifiedDead) -> Result<VerifiedDead, HostError> {
    let (store, job, home, at) = (host.store.clone(), host.job().clone(), host.dir().home(), host.env().now());
    let (ended, dead) = host
        .away(move || {
            let ended = Logins::open(&store).and_then(|logins| logins.end(&dead, &job, &home, at));
            (ended, dead)
        })
        .await?;
    match ended {
        Ok(told) => tell(host, told)?,
        Err(error) => {
            let text = format!("what became of the logins that the job used is not known: {}", with_causes(&error));
            host.record(Known::Notice { id: "loginUnsettled".to_owned(), text })?;
        }
    }
    Ok(dead)
}

/// The same for a harness that was not started after all: its checks may have been. What outlives them is a failure of
/// the job like what outlives a harness.
pub(super) async fn abandon(host: &mut Host) -> Result<(), Stop> {
    if !host.uses_logins {
        return Ok(());
    }
    let tree = JobTree::below_this_host(Marker::of(host.job()), None);
    match host.away(move || tree.sweep(LEFTOVERS)).await? {
        Ok(dead) => end(host, dead).await.map(drop).map_err(Stop::from),
        Err(alive) => swept(host, Err(alive)).map(drop),
    }
}
