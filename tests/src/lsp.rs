//! An editor, as far as a language server can tell: a client on the real standard streams of a real process.
//!
//! Owns: starting a server, framing, matching answers to requests, answering the server's own requests by a policy,
//! and deadlines on every wait. It checks on its own that the server writes nothing but well-formed frames. It knows
//! no method beyond the protocol's life cycle; tests name the rest.
//!
//! ```no_run
//! use pactify_tests::{lsp::Launch, sandbox::Sandbox};
//! use serde_json::json;
//!
//! let sandbox = Sandbox::new().unwrap();
//! let mut client = Launch::new(sandbox.command("target/debug/pactify-lsp")).spawn().unwrap();
//! client.initialize(json!({})).unwrap();
//! let answer = client.request("workspace/executeCommand", json!({"command": "pactify.status"})).unwrap();
//! assert_eq!(client.stop(), 0);
//! ```

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::rendezvous;
use inbox::{Inbox, Reading, Receiver};

mod inbox;

/// How long a wait lasts that names no deadline of its own.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Standard error may end this long after the process.
const AFTERMATH: Duration = Duration::from_secs(20);

/// What the client answers to the server's requests.
pub type Policy = Box<dyn FnMut(&str, &Value) -> Reply + Send>;

/// One answer of a [`Policy`].
#[derive(Debug, Clone)]
pub enum Reply {
    /// A result.
    Result(Value),
    /// An error.
    Error(i64, &'static str),
    /// None at all, as some editors do. A test may still [`respond`](Client::respond) later.
    Never,
}

/// What the server is given as its standard input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// What most editors give.
    Pipes,
    /// What Node gives.
    Sockets,
}

/// A server about to be started.
pub struct Launch {
    command: Command,
    streams: Streams,
    policy: Policy,
    pause_at: Option<&'static str>,
}

/// The error member of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// Its number.
    pub code: i64,
    /// Its text.
    pub message: String,
    /// Whatever else came with it.
    pub data: Option<Value>,
}

/// The server's input, for a thread that may be left waiting for it.
#[derive(Clone)]
pub struct Sender(Arc<Mutex<Option<Box<dyn Write + Send>>>>);

/// A session with a running server. Dropping it kills the server.
pub struct Client {
    child: Child,
    input: Sender,
    inbox: Arc<Inbox>,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when standard error has ended.
    stderr_open: mpsc::Receiver<()>,
    next_id: i64,
}

impl Launch {
    /// A server with this command line and environment, such as [`Sandbox::command`](crate::sandbox::Sandbox::command)
    /// makes.
    pub fn new(command: Command) -> Self {
        let policy = Box::new(|_: &str, _: &Value| Reply::Result(Value::Null));
        Self { command, streams: Streams::Pipes, policy, pause_at: None }
    }

    /// One more argument.
    pub fn arg(mut self, arg: &str) -> Self {
        self.command.arg(arg);
        self
    }

    /// The kind of standard streams.
    pub fn streams(mut self, streams: Streams) -> Self {
        self.streams = streams;
        self
    }

    /// How the server's requests are answered; by default all succeed with `null`.
    pub fn answering(mut self, policy: impl FnMut(&str, &Value) -> Reply + Send + 'static) -> Self {
        self.policy = Box::new(policy);
        self
    }

    /// Reads no further (but for the buffer it is in) once the server has sent a message of this method.
    pub fn reading_until(mut self, method: &'static str) -> Self {
        self.pause_at = Some(method);
        self
    }

    /// Starts the server.
    pub fn spawn(self) -> Result<Client> {
        let Self { mut command, streams, policy, pause_at } = self;
        command.stderr(Stdio::piped());
        let name = command.get_program().to_owned();
        let starting = || format!("starting {}", name.display());
        match streams {
            Streams::Pipes => {
                let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().with_context(starting)?;
                let pipes = child.stdin.take().zip(child.stdout.take());
                let (input, output) = pipes.context("the child has no pipes")?;
                Client::new(child, Box::new(input), Box::new(output), policy, pause_at)
            }
            Streams::Sockets => {
                let ((input, stdin), (output, stdout)) = (UnixStream::pair()?, UnixStream::pair()?);
                let command = command.stdin(OwnedFd::from(stdin)).stdout(OwnedFd::from(stdout));
                Client::new(
                    command.spawn().with_context(starting)?,
                    Box::new(input),
                    Box::new(output),
                    policy,
                    pause_at,
                )
            }
        }
    }
}

impl Client {
    fn new(
        mut child: Child,
        input: Box<dyn Write + Send>,
        output: Box<dyn Read + Send>,
        policy: Policy,
        pause_at: Option<&'static str>,
    ) -> Result<Self> {
        let mut stderr = child.stderr.take().context("the child has no standard error")?;
        let input = Sender(Arc::new(Mutex::new(Some(input))));
        let inbox = Arc::new(Inbox::default());
        let log = Arc::new(Mutex::new(Vec::new()));
        let receiver = Receiver { output, inbox: inbox.clone(), input: input.clone(), policy, pause_at };
        thread::spawn(move || receiver.run());
        let (open, stderr_open) = mpsc::channel();
        thread::spawn({
            let log = log.clone();
            move || {
                let _open: mpsc::Sender<()> = open;
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                    lock(&log).extend_from_slice(&buffer[..count]);
                }
            }
        });
        Ok(Self { child, input, inbox, stderr: log, stderr_open, next_id: 0 })
    }

    /// Initializes the session with these client capabilities, and gives the server's answer.
    pub fn initialize(&mut self, capabilities: Value) -> Result<Value> {
        let params = json!({"processId": std::process::id(), "rootUri": null, "capabilities": capabilities});
        self.initialize_with(params)
    }

    /// Initializes the session with exactly these parameters.
    pub fn initialize_with(&mut self, params: Value) -> Result<Value> {
        let answer = self.request("initialize", params)?;
        self.notify("initialized", json!({}))?;
        Ok(answer)
    }

    /// Asks, and waits for a result; an error answer is an error whose source is an [`RpcError`].
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.request_within(method, params, DEADLINE)
    }

    /// The same with another deadline.
    pub fn request_within(&mut self, method: &str, params: Value, within: Duration) -> Result<Value> {
        let id = self.send_request(method, params)?;
        self.answer(id, within)?.map_err(|error| anyhow!(error).context(format!("{method} was refused")))
    }

    /// Asks without waiting; see [`Self::answer`].
    pub fn send_request(&mut self, method: &str, params: Value) -> Result<i64> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    /// Waits for the answer to the request of this id.
    pub fn answer(&self, id: i64, within: Duration) -> Result<Result<Value, RpcError>> {
        let is_it = |message: &Value| message.get("method").is_none() && message["id"] == json!(id);
        let message = self.take(&format!("the answer to request {id}"), within, is_it)?;
        Ok(into_result(message))
    }

    /// Waits for an error that carries no id, as the answer to something unreadable does.
    pub fn anonymous_error(&self, within: Duration) -> Result<RpcError> {
        let is_it = |message: &Value| message.get("error").is_some() && message["id"].is_null();
        let message = self.take("an error without an id", within, is_it)?;
        into_result(message).err().context("the answer has a result")
    }

    /// Waits for a notification of this method and gives its parameters. Earlier other messages stay.
    pub fn notification(&self, method: &str, within: Duration) -> Result<Value> {
        let is_it = |message: &Value| message["method"] == method && message.get("id").is_none();
        Ok(self.take(method, within, is_it)?["params"].take())
    }

    /// Waits for a request of the server and gives its id and parameters, whether or not the policy answers it.
    pub fn server_request(&self, method: &str, within: Duration) -> Result<(Value, Value)> {
        let is_it = |message: &Value| message["method"] == method && message.get("id").is_some();
        let mut message = self.take(method, within, is_it)?;
        Ok((message["id"].take(), message["params"].take()))
    }

    /// Answers a request of the server by hand.
    pub fn respond(&self, id: Value, reply: Reply) -> Result<()> {
        self.input.respond(id, reply)
    }

    /// Waits for the first message that `wanted` picks and takes it out.
    pub fn take(&self, what: &str, within: Duration, wanted: impl FnMut(&Value) -> bool) -> Result<Value> {
        self.inbox.take(within, wanted).with_context(|| {
            let stderr = self.stderr();
            format!("waiting {within:?} for {what}; the server's standard error: {stderr}")
        })
    }

    /// Every message that has come and was not taken.
    pub fn drain(&self) -> Vec<Value> {
        self.inbox.drain()
    }

    /// Tells.
    pub fn notify(&self, method: &str, params: Value) -> Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Sends any message in a frame.
    pub fn send(&self, message: &Value) -> Result<()> {
        self.input.send(message)
    }

    /// Writes any bytes to the server.
    pub fn send_raw(&self, bytes: &[u8]) -> Result<()> {
        self.input.send_raw(bytes)
    }

    /// Another hold of the server's input.
    pub fn sender(&self) -> Sender {
        self.input.clone()
    }

    /// Closes the server's input.
    pub fn close_input(&self) {
        lock(&self.input.0).take();
    }

    /// Stops reading the server's output (but for one buffer that may be on its way).
    pub fn stop_reading(&self) {
        self.inbox.set(Reading::Paused);
    }

    /// Reads on.
    pub fn read_on(&self) {
        self.inbox.set(Reading::On);
    }

    /// Closes our end of the server's output once the current read returns.
    pub fn close_output(&self) {
        self.inbox.set(Reading::Closed);
    }

    /// Shuts the server down as an editor does and gives its exit code.
    pub fn stop(mut self) -> i32 {
        let stopped = self.request("shutdown", Value::Null).and_then(|_| self.notify("exit", Value::Null));
        match stopped.and_then(|()| self.wait_for_exit(DEADLINE)) {
            Ok(status) => status.code().unwrap_or_else(|| -status.signal().unwrap_or(0)),
            Err(error) => panic!("the server does not stop: {error:?}"),
        }
    }

    /// Waits for the process to end.
    pub fn wait_for_exit(&mut self, within: Duration) -> Result<ExitStatus> {
        let status = match self.child.try_wait()? {
            Some(status) => status,
            None => {
                let ended = rendezvous::ends(self.pid(), within)?;
                ensure!(ended, "the server still runs after {within:?}; its standard error: {}", self.stderr());
                self.child.wait()?
            }
        };
        // A process that the server left behind may hold it for longer; what came so far is what it said.
        let _ = self.stderr_open.recv_timeout(AFTERMATH);
        Ok(status)
    }

    /// Sends a signal to the server.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.pid(), signal)?)
    }

    /// The server's process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// What the server has written to standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&lock(&self.stderr)).into_owned()
    }
}

impl Sender {
    /// Sends any message in a frame.
    pub fn send(&self, message: &Value) -> Result<()> {
        self.send_raw(&frame(message.to_string().as_bytes()))
    }

    /// Writes any bytes to the server.
    pub fn send_raw(&self, bytes: &[u8]) -> Result<()> {
        let mut input = lock(&self.0);
        let input = input.as_mut().context("the server's input is closed")?;
        input.write_all(bytes).and_then(|()| input.flush()).context("writing to the server")
    }

    fn respond(&self, id: Value, reply: Reply) -> Result<()> {
        match reply {
            Reply::Result(result) => self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
            Reply::Error(code, message) => {
                self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
            }
            Reply::Never => Ok(()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.close_output();
    }
}

impl RpcError {
    /// The stable code of a refusal of pactify; empty where there is none.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.data.as_ref().and_then(|data| data["code"].as_str()).unwrap_or_default()
    }
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "error {}: {}", self.code, self.message)
    }
}

impl std::error::Error for RpcError {}

/// One frame around a body.
pub fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend_from_slice(body);
    frame
}

fn into_result(mut message: Value) -> Result<Value, RpcError> {
    match message.get_mut("error") {
        None => Ok(message["result"].take()),
        Some(error) => Err(RpcError {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error.get("data").cloned(),
        }),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
