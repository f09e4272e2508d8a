//! A client that costs nearly nothing: frames that are ready to be sent, answers that aren't looked into.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use pactify_tests::{lsp, rendezvous};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use serde_json::{Value, json};

/// For any answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on pipes; dropping it ends it.
pub(super) struct Piped {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl Piped {
    pub(super) fn start(mut command: Command) -> anyhow::Result<Self> {
        let name = command.get_program().to_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("can't start {}", name.display()))?;
        let (input, output) = child.stdin.take().zip(child.stdout.take()).context("the child has no pipes")?;
        Ok(Self { child, input, output: BufReader::new(output), next_id: 0 })
    }

    /// Initializes the session, as an editor without any capability does.
    pub(super) fn initialize(&mut self, folder: &str) -> anyhow::Result<()> {
        let folders = json!([{"uri": folder, "name": "folder"}]);
        let params = json!({"processId": null, "rootUri": folder, "workspaceFolders": folders, "capabilities": {}});
        self.request("initialize", &params)?;
        self.notify("initialized", &json!({}))
    }

    /// Asks, and waits for the result.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let (frame, id) = self.frame(method, params);
        self.input.write_all(&frame)?;
        let mut answer = self.answer(id)?;
        ensure!(answer.get("error").is_none(), "{method} was refused: {}", answer["error"]);
        Ok(answer["result"].take())
    }

    /// Runs the verb `pactify.<verb>`.
    pub(super) fn run(&mut self, verb: &str, argument: &Value) -> anyhow::Result<Value> {
        self.request("workspace/executeCommand", &call(verb, argument))
    }

    /// The time from the first byte of a verb's request to the last byte of the answer.
    pub(super) fn time(&mut self, verb: &str, argument: &Value) -> anyhow::Result<Duration> {
        let (frame, id) = self.frame("workspace/executeCommand", &call(verb, argument));
        let begun = Instant::now();
        self.input.write_all(&frame)?;
        loop {
            let body = self.read()?;
            let took = begun.elapsed();
            // The server may have said something of its own meanwhile.
            let message: Value = serde_json::from_slice(&body)?;
            if message["id"] == id {
                ensure!(message.get("error").is_none(), "pactify.{verb} was refused: {}", message["error"]);
                return Ok(took);
            }
        }
    }

    /// The process's resident memory, in KiB.
    pub(super) fn memory(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    fn notify(&mut self, method: &str, params: &Value) -> anyhow::Result<()> {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        Ok(self.input.write_all(&lsp::frame(body.to_string().as_bytes()))?)
    }

    fn frame(&mut self, method: &str, params: &Value) -> (Vec<u8>, u64) {
        self.next_id += 1;
        let body = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        (lsp::frame(body.to_string().as_bytes()), self.next_id)
    }

    fn answer(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            let message: Value = serde_json::from_slice(&self.read()?)?;
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    /// The body of the next frame.
    fn read(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut length = 0;
        loop {
            self.wait()?;
            let mut header = String::new();
            ensure!(self.output.read_line(&mut header)? > 0, "the server has ended");
            match header.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse()?,
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body)?;
        Ok(body)
    }

    /// Waits until something can be read.
    fn wait(&self) -> anyhow::Result<()> {
        if !self.output.buffer().is_empty() {
            return Ok(());
        }
        let mut output = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        match poll(&mut output, Some(&Timespec::try_from(PATIENCE)?))? {
            0 => bail!("no answer within {PATIENCE:?}"),
            _ => Ok(()),
        }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = rendezvous::ends(Pid::from_child(&self.child), PATIENCE);
        let _ = self.child.wait();
    }
}

fn call(verb: &str, argument: &Value) -> Value {
    json!({"command": format!("pactify.{verb}"), "arguments": [argument]})
}
