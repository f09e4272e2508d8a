//! The codex CLI, driven by `codex exec --json`.
use super::{Conclusion, Driver, Harness, HarnessName, Plan, Request, Step};
use crate::Failure;
use crate::job::access::{ReadGrant, ReadOnly, Write, WriteGrant};
use crate::job::event::ExitRecord;
use crate::job::outcome::Verdict;

/// The codex CLI.
#[derive(Clone, Copy, Debug)]
pub struct Codex;

impl Harness for Codex {
    fn name(&self) -> HarnessName {
        HarnessName("codex".to_owned())
    }
    fn executables(&self) -> &'static [&'static str] {
        &["codex"]
    }
    fn install_hint(&self) -> &'static str {
        "npm install -g @openai/codex"
    }
    fn parse_version(&self, stdout: &str) -> Option<String> {
        stdout.split_whitespace().last().map(str::to_owned)
    }
    fn plan_write(&self, _request: &Request<'_>, _grant: WriteGrant) -> Result<Plan<Write>, Failure> {
        Err(Failure::internal("codex is not planned yet"))
    }
    fn plan_read_only(&self, _request: &Request<'_>, _grant: ReadGrant) -> Result<Plan<ReadOnly>, Failure> {
        Err(Failure::internal("codex is not planned yet"))
    }
    fn driver(&self, _request: &Request<'_>) -> Box<dyn Driver> {
        Box::new(Silent)
    }
}

struct Silent;

impl Driver for Silent {
    fn on_line(&mut self, _line: &str) -> Vec<Step> {
        Vec::new()
    }
    fn on_exit(&mut self, _exit: ExitRecord) -> Conclusion {
        Conclusion { verdict: Verdict::Silent, final_message: None }
    }
}
