//! How what a harness says is understood.

use std::time::Duration;

use super::{Evidence, FileAnswer, FileRequest};
use crate::job::event::{ExitRecord, Known};
use crate::job::outcome::Verdict;

/// The understanding of one harness process, line by line.
///
/// The host calls [`Driver::on_line`] for each line of standard output (without the line feed),
/// [`Driver::on_stderr`] for each line of standard error, [`Driver::on_evidence`] for each file that
/// [`Driver::evidence`] names once nothing of the job runs any more, and [`Driver::on_exit`] once, last.
pub trait Driver: Send {
    /// Steps to take at the start, before any line.
    fn on_start(&mut self) -> Vec<Step> {
        Vec::new()
    }

    /// A line of standard output before secrets were taken out of it, for what must not be altered: a file's content
    /// that is to be written. `None`: the line without secrets ([`Driver::on_line`]) says all.
    fn on_raw(&mut self, _line: &str) -> Option<Vec<Step>> {
        None
    }

    /// A line of standard output.
    fn on_line(&mut self, line: &str) -> Vec<Step>;

    /// Whether texts in this line of standard output may be pieces of longer ones, or may grow with the next lines:
    /// then only its outline is kept ([`crate::redact::outline`]), as half a secret is one that nothing finds.
    fn is_in_pieces(&self, _line: &str) -> bool {
        true
    }

    /// A line of standard error.
    fn on_stderr(&mut self, _line: &str) -> Vec<Step> {
        Vec::new()
    }

    /// A person asked for the end, or a deadline passed: what to say to the program before it is interrupted.
    fn on_cancel(&mut self) -> Vec<Step> {
        Vec::new()
    }

    /// How long the program may then take to end by itself before it is interrupted.
    fn cancel_patience(&self) -> Duration {
        Duration::ZERO
    }

    /// A permission ([`Known::PermissionRequested`]) was answered with one of its options; `None` when nobody answered
    /// in time.
    fn on_answer(&mut self, _request: &str, _option: Option<&str>) -> Vec<Step> {
        Vec::new()
    }

    /// A [`FileRequest`] of this id was done, or could not be.
    fn on_file(&mut self, _request: u64, _answer: FileAnswer) -> Vec<Step> {
        Vec::new()
    }

    /// Records of the harness's own that tell what its stream does not. The job may have written them: they can
    /// turn a success into a failure, and never the other way round.
    fn evidence(&self) -> Vec<Evidence> {
        Vec::new()
    }

    /// A line of an [`Evidence`] that is read by lines, without its line feed; `None` for one that is too long.
    fn on_evidence_line(&mut self, _evidence: &Evidence, _line: Option<&[u8]>) {}

    /// What an [`Evidence`] holds; `None` when there is no such file, or it is longer than its limit. Of one that is
    /// read by lines all were told before, and it holds nothing more.
    fn on_evidence(&mut self, _evidence: &Evidence, _contents: Option<&[u8]>) -> Vec<Step> {
        Vec::new()
    }

    /// The process ended, all its output was seen. The last word: what the launch came to.
    fn on_exit(&mut self, exit: ExitRecord) -> Conclusion;
}

/// What a driver asks the host to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Record this.
    Record(Known),
    /// Write this line (a line feed is added) to the program's standard input.
    Send(String),
    /// End the program's standard input: it has nothing more to do. It is ended if it does not end by itself.
    CloseInput,
    /// Look at, or change, a file of the job's tree, and tell the driver ([`Driver::on_file`]).
    File(FileRequest),
}

/// What a launch came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// Whether the turn was completed.
    pub verdict: Verdict,
    /// The agent's last words.
    pub final_message: Option<String>,
}
