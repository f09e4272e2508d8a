//! What verification writes into the job's tree: looked at before and after, and removed, or given its name again,
//! before the job goes on there.
//!
//! How it is told from the job's own work, and removed, is [`crate::git::residue`]'s. A look that fails costs no
//! result: it is told, since what the verification wrote is then part of what a further turn leaves.

use pactify_core::Failure;
use pactify_core::RepoPath;
use pactify_core::job::event::{Known, TreeRecord};

use super::setup::named;
use super::{Host, HostError};
use crate::disk::DiskError;
use crate::git::residue::{Cleared, Residue, Standing};
use crate::git::{Git, Stage};
use crate::job_dir::{JobDir, names};

/// The longest record, in bytes: some hundred thousand paths.
const MAX_RECORD: u64 = 64 << 20;

/// Looks at the tree, in which verification is about to run.
pub(super) async fn begin(host: &mut Host, tree: &TreeRecord) -> Result<(), HostError> {
    let (job, look) = (host.dir().clone(), look(host, tree));
    let begun = host
        .away(move || -> Result<(), Failure> {
            Ok(job.dir().replace(names::BEFORE_VERIFICATION, &look()?.to_bytes(), true)?)
        })
        .await?;
    tell_failure(host, begun)
}

/// Looks again, once nothing of the verification runs any more: after it, or after a host that died in it.
pub(super) async fn end(host: &mut Host) -> Result<(), HostError> {
    let Some(tree) = host.state().tree.clone() else { return Ok(()) };
    let (job, look) = (host.dir().clone(), look(host, &tree));
    let ended = host
        .away(move || -> Result<(), Failure> {
            let Some(before) = read(&job, names::BEFORE_VERIFICATION)? else { return Ok(()) };
            let before = Standing::parse(&before)
                .ok_or_else(|| Failure::internal("the record of the tree before the verification is damaged"))?;
            let residue = look()?.since(&before);
            if !residue.is_empty() {
                job.dir().replace(names::RESIDUE, &residue.to_bytes(), true)?;
            }
            Ok(job.dir().remove(names::BEFORE_VERIFICATION)?)
        })
        .await?;
    tell_failure(host, ended)
}

/// Takes back what the verification before this turn made and renamed, and says so.
pub(super) async fn clear(host: &mut Host, tree: &TreeRecord) -> Result<(), HostError> {
    let (job, tree) = (host.dir().clone(), tree.clone());
    let cleared = host
        .away(move || -> Result<Option<Cleared>, Failure> {
            let Some(record) = read(&job, names::RESIDUE)? else { return Ok(None) };
            let residue = Residue::parse(&record)
                .ok_or_else(|| Failure::internal("the record of what the verification wrote is damaged"))?;
            let cleared = residue.clear(&tree).map_err(|error| error.into_failure(Stage::Prepare))?;
            job.dir().remove(names::RESIDUE)?;
            Ok(Some(cleared))
        })
        .await?;
    match cleared {
        Ok(None) => Ok(()),
        Ok(Some(cleared)) => match told(&cleared) {
            Some(text) => host.record(Known::Notice { id: "verificationResidue".to_owned(), text }),
            None => Ok(()),
        },
        Err(failure) => tell_failure(host, Err(failure)),
    }
}

fn look(host: &Host, tree: &TreeRecord) -> impl FnOnce() -> Result<Standing, Failure> + Send + 'static {
    let (env, places, base, tree) = (host.env().clone(), host.places(), host.spec().base.clone(), tree.clone());
    move || {
        let standing = Git::find(&env)?.standing(&places, &base, &tree);
        standing.map_err(|error| error.into_failure(Stage::Other))
    }
}

fn read(job: &JobDir, name: &str) -> Result<Option<Vec<u8>>, DiskError> {
    match job.dir().read(name, MAX_RECORD) {
        Err(DiskError::Missing { .. }) => Ok(None),
        read => read.map(Some),
    }
}

fn tell_failure(host: &mut Host, done: Result<(), Failure>) -> Result<(), HostError> {
    let Err(failure) = done else { return Ok(()) };
    let text = format!(
        "what the verification wrote into the job's tree is not known ({}): if the job is resumed, it is part of its changes",
        failure.message
    );
    host.record(Known::Notice { id: "verificationResidue".to_owned(), text })
}

fn told(residue: &Cleared) -> Option<String> {
    let part = |paths: &[RepoPath], what: &str| (!paths.is_empty()).then(|| format!("{what} {}", named(paths)));
    let parts: Vec<String> = [
        part(&residue.removed, "removed what it had made:"),
        part(&residue.renamed, "gave what it had renamed its name again:"),
        part(&residue.kept, "left what it had made and somebody has touched since:"),
        part(&residue.changed, "left what it had changed of the result, which is part of the job's changes now:"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty())
        .then(|| format!("the verification wrote into the job's tree; before this turn pactify {}", parts.join("; ")))
}
