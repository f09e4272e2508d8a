//! Every command of the wire, once: its name, its typed twin, the types of its argument and its results.
//!
//! The server registers these, the clients' constants are generated from them, and the documentation's table is
//! checked against them.

/// A verb that editors can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name in `workspace/executeCommand`.
    pub name: &'static str,
    /// Its typed request.
    pub method: &'static str,
    /// The argument's type in [`super`].
    pub params: &'static str,
    /// The results' types in [`super`].
    pub results: &'static [&'static str],
}

/// Every command of this build.
pub const ALL: &[Command] = &[
    command("pactify.delegate", "pactify/job/delegate", "DelegateParams", &["Delegated"]),
    command("pactify.status", "pactify/job/status", "StatusParams", &["JobStatus", "JobList"]),
    command("pactify.events", "pactify/job/events", "EventsParams", &["EventList"]),
    command("pactify.diffPreview", "pactify/job/diffPreview", "PreviewParams", &["Preview"]),
    command("pactify.content", "pactify/job/content", "ContentParams", &["Content"]),
    command("pactify.apply", "pactify/job/apply", "ApplyParams", &["Applied"]),
    command("pactify.undo", "pactify/job/undo", "UndoParams", &["Undone"]),
    command("pactify.restoreOutside", "pactify/job/restoreOutside", "RestoreParams", &["RestoredOutside"]),
    command("pactify.cancel", "pactify/job/cancel", "JobParams", &["JobMoved"]),
    command("pactify.answer", "pactify/job/answer", "AnswerParams", &["JobMoved"]),
    command("pactify.discard", "pactify/job/discard", "JobParams", &["JobMoved"]),
    command("pactify.resume", "pactify/job/resume", "ResumeParams", &["JobMoved"]),
    command("pactify.retry", "pactify/job/retry", "RetryParams", &["Delegated"]),
    command("pactify.openWorktree", "pactify/job/openWorktree", "JobParams", &["Worktree"]),
    command("pactify.export", "pactify/job/export", "ExportParams", &["Exported"]),
    command("pactify.approve", "pactify/job/approve", "ApproveParams", &["Approved"]),
    command("pactify.harnesses", "pactify/job/harnesses", "HarnessesParams", &["HarnessList"]),
    command("pactify.doctor", "pactify/job/doctor", "DoctorParams", &["Findings"]),
    command("pactify.debugReport", "pactify/job/debugReport", "Empty", &["DebugReport"]),
];

/// The notification of one event, for clients that asked for it.
pub const JOB_EVENT: &str = "pactify/job/event";

/// The notification that a job's state or disposition changed.
pub const JOB_CHANGED: &str = "pactify/job/changed";

const fn command(
    name: &'static str,
    method: &'static str,
    params: &'static str,
    results: &'static [&'static str],
) -> Command {
    Command { name, method, params, results }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_and_its_twin_have_one_verb() {
        for command in ALL {
            let verb = command.name.strip_prefix("pactify.").unwrap();
            assert_eq!(command.method, format!("pactify/job/{verb}"));
        }
    }
}
