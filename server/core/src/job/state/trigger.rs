//! What each event asks of a job's phase.

use super::Trigger;
use crate::job::event::Known;

pub(super) fn trigger(known: &Known) -> Trigger {
    match known {
        Known::AttemptStarted { .. } => Trigger::Start,
        Known::Launched { .. } => Trigger::Launch,
        Known::PermissionRequested { .. } => Trigger::Ask,
        Known::PermissionAnswered { .. } => Trigger::Settle,
        Known::HarnessExited { .. } => Trigger::Exit,
        Known::VerificationStarted => Trigger::Verify,
        Known::AttemptEnded { .. } => Trigger::End,
        Known::Applied { .. }
        | Known::Undone { .. }
        | Known::Discarded
        | Known::TreeRemoved
        | Known::OutsideRestored { .. } => Trigger::Dispose,
        Known::TreeReady { .. }
        | Known::SessionStarted { .. }
        | Known::Message { .. }
        | Known::Reasoning { .. }
        | Known::CommandStarted { .. }
        | Known::CommandOutput { .. }
        | Known::CommandEnded { .. }
        | Known::FilesTouched { .. }
        | Known::ToolUsed { .. }
        | Known::Plan { .. }
        | Known::Activity { .. }
        | Known::Notice { .. }
        | Known::Usage { .. }
        | Known::PermissionDecided { .. }
        | Known::CancelRequested
        | Known::DeadlinePassed { .. }
        | Known::Swept { .. }
        | Known::Verified { .. }
        | Known::CheckoutGuarded { .. }
        | Known::CheckoutCompared { .. }
        | Known::OutsideRecorded { .. }
        | Known::OutsideChanges { .. }
        | Known::Captured { .. } => Trigger::Report,
    }
}
