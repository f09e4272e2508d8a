//! What front ends ask of a finished job.

use pactify_core::Failure;
use pactify_core::protocol::{Applied, ApplyParams, Content, ContentParams, PreviewFormat, Side};
use pactify_engine::jobs::Jobs;

use crate::support::Landed;

impl Landed {
    pub(crate) fn jobs(&self) -> Jobs {
        Jobs::open(self.env.clone()).unwrap()
    }

    pub(crate) fn change_set(&self) -> &str {
        self.captured.change_set.id.as_str()
    }

    pub(crate) fn preview(&self, format: PreviewFormat) -> pactify_core::protocol::Preview {
        let params = serde_json::json!({ "jobId": self.id(), "format": format });
        self.jobs().preview(&serde_json::from_value(params).unwrap()).unwrap()
    }

    pub(crate) fn content(&self, path: &str, side: Side) -> Content {
        let path = pactify_core::path::PathName { path: path.into(), path_bytes: None };
        self.jobs().content(&ContentParams { job_id: self.id(), side, path, groups: None }).unwrap()
    }

    /// Applies all of it, sensitive paths included.
    pub(crate) fn apply(&self) -> Result<Applied, Failure> {
        let confirm_sensitive =
            self.captured.change_set.changes.iter().map(|change| change.path.clone().into()).collect();
        let change_set = self.change_set().into();
        let (select, confirm_merges, confirm_outside, job_id) = (None, vec![], false, self.id());
        let params = ApplyParams { job_id, change_set, select, confirm_sensitive, confirm_merges, confirm_outside };
        self.jobs().apply(&params)
    }

    pub(crate) fn id(&self) -> String {
        self.job.id()
    }
}
