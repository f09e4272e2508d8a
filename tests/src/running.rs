//! A process that a test started: its output as it comes, its end, and its certain death when dropped.
//!
//! It leads a process group of its own, which is what is killed; what has left that group is not reached.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::rendezvous;

/// More output than this is read and forgotten.
const MOST_OUTPUT: usize = 64 << 20;
/// Output may come this long after the process has ended (from children of its own).
const AFTERMATH: Duration = Duration::from_secs(20);

/// A running process.
pub struct Running {
    name: String,
    child: Child,
    pid: Pid,
    reach: Reach,
    stdout: Arc<Capture>,
    stderr: Arc<Capture>,
}

/// A process that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// All it printed, with what isn't UTF-8 replaced.
    pub stdout: String,
    /// The same of its standard error.
    pub stderr: String,
}

/// What there still is to be killed.
#[derive(Clone, Copy)]
enum Reach {
    Group,
    Process,
    Nothing,
}

impl Running {
    /// Starts a process with its output captured and this as its input.
    pub fn start(mut command: Command, input: &[u8]) -> anyhow::Result<Self> {
        command.process_group(0);
        Self::spawn(command, input, Reach::Group)
    }

    /// The same in the caller's own process group: an interrupt at the terminal reaches it too, but only the process
    /// itself is killed when this is dropped.
    pub fn start_beside(command: Command, input: &[u8]) -> anyhow::Result<Self> {
        Self::spawn(command, input, Reach::Process)
    }

    fn spawn(mut command: Command, input: &[u8], reach: Reach) -> anyhow::Result<Self> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let name = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("can't start {name}"))?;
        let pid = Pid::from_child(&child);
        let stdout = Capture::of(child.stdout.take());
        let stderr = Capture::of(child.stderr.take());
        if let Some(mut stdin) = child.stdin.take() {
            let input = input.to_vec();
            // The process may end without reading it.
            std::thread::spawn(move || stdin.write_all(&input));
        }
        Ok(Self { name, child, pid, reach, stdout, stderr })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends it a signal, and nobody else.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill_process(self.pid, signal).with_context(|| format!("can't signal {}", self.name))
    }

    /// Waits for a whole line of its standard output that contains `text`; returns that line.
    pub fn wait_for_line(&self, text: &str, patience: Duration) -> anyhow::Result<String> {
        self.line_of(&self.stdout, text, patience)
    }

    /// The same of its standard error.
    pub fn wait_for_error_line(&self, text: &str, patience: Duration) -> anyhow::Result<String> {
        self.line_of(&self.stderr, text, patience)
    }

    fn line_of(&self, capture: &Capture, text: &str, patience: Duration) -> anyhow::Result<String> {
        let found = capture.wait(patience, |bytes| {
            let all = String::from_utf8_lossy(bytes);
            let whole = all.rsplit_once('\n').map_or("", |(whole, _)| whole);
            whole.lines().find(|line| line.contains(text)).map(str::to_owned)
        });
        found.with_context(|| format!("no line with {text:?} within {patience:?} from {self}"))
    }

    /// Waits for its end and for all of its output.
    pub fn wait(mut self, patience: Duration) -> anyhow::Result<Ended> {
        if !rendezvous::ends(self.pid, patience)? {
            bail!("still running after {patience:?}: {self}");
        }
        for capture in [&self.stdout, &self.stderr] {
            // Whoever left the group may hold the pipe for longer; what came so far is the output.
            capture.wait_for_end(AFTERMATH);
        }
        let status = self.finish()?;
        Ok(Ended { status, stdout: self.stdout.text(), stderr: self.stderr.text() })
    }

    /// Kills what is left. Before the process is reaped: its number, and so its group's, is still its own.
    fn finish(&mut self) -> io::Result<ExitStatus> {
        // What is gone already needs no killing.
        let _ = match self.reach {
            Reach::Group => kill_process_group(self.pid, Signal::KILL),
            Reach::Process => kill_process(self.pid, Signal::KILL),
            Reach::Nothing => Ok(()),
        };
        self.reach = Reach::Nothing;
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
        write!(f, "{}\n-- stdout so far\n{stdout}\n-- stderr so far\n{stderr}", self.name)
    }
}

impl Ended {
    /// The exit code, or 128 and the signal's number.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status.code().or_else(|| Some(128 + self.status.signal()?)).unwrap_or(-1)
    }

    /// The standard output as JSON values, one per line.
    pub fn json_lines(&self) -> anyhow::Result<Vec<serde_json::Value>> {
        let parse = |line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// Itself if it ended with code 0; else an error that shows what it printed.
    pub fn success(self) -> anyhow::Result<Self> {
        if self.status.success() {
            return Ok(self);
        }
        bail!("ended with {}\n-- stdout\n{}\n-- stderr\n{}", self.status, self.stdout, self.stderr)
    }
}

/// What came out of a pipe so far.
#[derive(Default)]
struct Capture {
    state: Mutex<Captured>,
    grown: Condvar,
}

#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    is_complete: bool,
}

impl Capture {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Arc<Self> {
        let capture = Arc::new(Self::default());
        let Some(mut pipe) = pipe else { return capture };
        let writer = Arc::clone(&capture);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let read = match pipe.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) | Ok(0) => break,
                    Ok(read) => read,
                };
                let mut state = writer.state();
                let room = MOST_OUTPUT.saturating_sub(state.bytes.len()).min(read);
                state.bytes.extend_from_slice(&buffer[..room]);
                drop(state);
                writer.grown.notify_all();
            }
            writer.state().is_complete = true;
            writer.grown.notify_all();
        });
        capture
    }

    /// Waits until `look` finds something, the pipe ends or patience is used up.
    fn wait<T>(&self, patience: Duration, mut look: impl FnMut(&[u8]) -> Option<T>) -> Option<T> {
        let mut found = None;
        let _state = self.grown.wait_timeout_while(self.state(), patience, |state| {
            found = look(&state.bytes);
            found.is_none() && !state.is_complete
        });
        found
    }

    fn wait_for_end(&self, patience: Duration) {
        self.wait(patience, |_| None::<()>);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.state().bytes).into_owned()
    }

    fn state(&self) -> MutexGuard<'_, Captured> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
