//! An editor that loses its server at any moment, and opens again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use pactify_tests::editor::Editor;
use pactify_tests::lsp::RpcError;
use rustix::process::Pid;
use serde_json::{Value, json};

use super::Soak;

/// For one answer, on a machine that runs twenty jobs.
const ANSWER: Duration = Duration::from_secs(90);
/// For a request that is refused as busy, or whose server is killed again and again.
const PATIENCE: Duration = Duration::from_secs(240);
const BETWEEN: Duration = Duration::from_millis(150);

/// A request's answer.
pub(super) enum Answer {
    Result(Value),
    Refused(RpcError),
    /// The server went; whether it did what was asked is unknown.
    Gone,
}

/// One slot's editor.
pub(super) struct Session<'a> {
    soak: &'a Soak,
    folder: PathBuf,
    open: Option<(Editor, Pid)>,
}

impl<'a> Session<'a> {
    pub(super) fn new(soak: &'a Soak, folder: PathBuf) -> Self {
        Self { soak, folder, open: None }
    }

    /// Asks once.
    pub(super) fn ask(&mut self, verb: &str, argument: &Value) -> anyhow::Result<Answer> {
        let Some(client) = self.open()? else { return Ok(Answer::Gone) };
        let params = json!({"command": format!("pactify.{verb}"), "arguments": [argument]});
        let client = client.client();
        let answer = client.send_request("workspace/executeCommand", params).and_then(|id| client.answer(id, ANSWER));
        Ok(match answer {
            Ok(Ok(result)) => Answer::Result(result),
            Ok(Err(refusal)) => Answer::Refused(refusal),
            Err(error) if self.is_alive() => return Err(error.context(format!("pactify.{verb} has no answer"))),
            Err(_) => {
                self.close();
                Answer::Gone
            }
        })
    }

    /// Asks until there is an answer; what is asked must be safe to ask twice. Busy is no answer.
    pub(super) fn insist(&mut self, verb: &str, argument: &Value) -> anyhow::Result<Result<Value, RpcError>> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.ask(verb, argument)? {
                Answer::Result(result) => return Ok(Ok(result)),
                Answer::Refused(refusal) if refusal.reason() != "storeBusy" => return Ok(Err(refusal)),
                Answer::Refused(_) | Answer::Gone => pause(BETWEEN),
            }
        }
        bail!("pactify.{verb} {argument} has no answer in {PATIENCE:?}")
    }

    /// The same for what may not be refused.
    pub(super) fn get(&mut self, verb: &str, argument: &Value) -> anyhow::Result<Value> {
        self.insist(verb, argument)?
            .map_err(|refusal| anyhow::anyhow!("pactify.{verb} {argument}: {refusal} {:?}", refusal.data))
    }

    /// The editor goes without a word.
    pub(super) fn close(&mut self) {
        if let Some((editor, pid)) = self.open.take() {
            self.soak.servers().retain(|server| *server != pid);
            drop(editor);
        }
    }

    fn open(&mut self) -> anyhow::Result<Option<&mut Editor>> {
        if self.open.is_none() {
            // A server that is killed while it starts is no failure; one that fails by itself, again and again, is.
            let deadline = Instant::now() + PATIENCE;
            let mut editor = loop {
                match Editor::open(&self.soak.sandbox, &self.folder) {
                    Ok(editor) => break editor,
                    Err(error) if Instant::now() >= deadline => return Err(error).context("no server starts"),
                    Err(_) => pause(BETWEEN),
                }
            };
            let pid = editor.client().pid();
            self.soak.servers().push(pid);
            self.open = Some((editor, pid));
        }
        Ok(self.open.as_mut().map(|(editor, _)| editor))
    }

    fn is_alive(&mut self) -> bool {
        // A server that was killed has ended within this time, or never.
        let grace = Duration::from_millis(500);
        self.open.as_mut().is_some_and(|(editor, _)| editor.client().wait_for_exit(grace).is_err())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Nothing tells when the thing waited for has happened.
pub(super) fn pause(time: Duration) {
    std::thread::sleep(time);
}
