//! What a job's tree has beside the files of its base, and what becomes of it.

mod includes;
mod lfs;
mod submodules;

use pactify_core::job::Isolation;

use crate::support::Job;

/// One engine serves both.
const BOTH: [Isolation; 2] = [Isolation::Private, Isolation::Linked];

/// The text of the notice `id`.
fn notice<'a>(job: &'a Job, id: &str) -> Option<&'a str> {
    job.prepared.notices.iter().find(|notice| notice.id == id).map(|notice| notice.text.as_str())
}
