//! One play: a folder, a socket on which its processes announce themselves, and their certain end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use pactify_core::AbsPath;
use pactify_core::job::event::ProcessRecord;
use pactify_engine::env::{Directories, Env, Randomness, Variables};
use pactify_engine::process::run::Overflow;
use pactify_engine::process::{ChildEnv, Invocation, Limits, Marker, Output, ProcessIdentity};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;

/// How long anything that must happen may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const ARTIST: &str = env!("CARGO_BIN_EXE_escape-artist");

/// A play and everybody in it. Dropping it ends them all.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    roll_call: UnixListener,
    job: String,
    variables: Variables,
}

/// A process that announced itself and was told to go on.
pub(crate) struct Member {
    pub(crate) role: String,
    /// What it sees of itself.
    pub(crate) view: Value,
    pub(crate) identity: ProcessIdentity,
    pidfd: OwnedFd,
    stream: BufReader<UnixStream>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("play-").tempdir().unwrap();
        let roll_call = UnixListener::bind(folder.path().join("roll-call")).unwrap();
        let random = u32::from_le_bytes(env_of(Variables::new()).random().unwrap());
        let job = pactify_core::JobId::compose("2026-11-29T10:11:12Z".parse().unwrap(), random).as_str().to_owned();
        let variables = [("PATH", "/usr/bin:/bin"), ("HOME", folder.path().to_str().unwrap()), ("ARTIST", ARTIST)];
        let variables = variables.map(|(name, value)| (name.into(), value.into())).into();
        Self { folder, roll_call, job, variables }
    }

    /// Sets a variable for the server, and so for the host.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The folder of the play, as it stands among the arguments of its processes.
    pub(crate) fn folder(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn job(&self) -> &str {
        &self.job
    }

    pub(crate) fn marker(&self) -> Marker {
        Marker::of(&self.job.parse().unwrap())
    }

    /// Starts a host whose leader has this shape; returns the host's record as the server saw it.
    pub(crate) fn serve(&self, shape: &str) -> ProcessRecord {
        let output = self.run(ARTIST, &["serve", self.folder(), &self.job, shape]);
        serde_json::from_slice(&output.stdout.bytes).unwrap()
    }

    /// Runs a program to its end in the play's environment.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut env = ChildEnv::default();
        for (name, value) in &self.variables {
            env.set(name, value);
        }
        let (program, root) = (AbsPath::new(program).unwrap(), AbsPath::new("/").unwrap());
        let limits = Limits { deadline: PATIENCE, bytes: 1 << 20, overflow: Overflow::Fail };
        let output = Invocation::new(program, root, env).args(arguments).run(b"", &limits).unwrap();
        assert!(output.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr.bytes), self.log());
        output
    }

    /// Waits until `N` processes have announced themselves and lets each go on. In the order of their roles.
    pub(crate) fn call_roll<const N: usize>(&self) -> [Member; N] {
        let mut members: [Member; N] = std::array::from_fn(|_| self.next_member());
        members.sort_by(|a, b| a.role.cmp(&b.role));
        members
    }

    /// Starts a host with one escapee and calls the roll: escapee, host, leader.
    pub(crate) fn play(&self, shape: &str) -> [Member; 3] {
        self.serve(shape);
        self.call_roll()
    }

    /// The play's processes that run, by what no escapee hides: the play's folder among its arguments.
    pub(crate) fn cast(&self) -> Vec<(Pid, String)> {
        let folder = self.folder();
        let entries =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let pids = entries.filter_map(|name| Pid::from_raw(name.parse().ok()?));
        let arguments = |pid: Pid| std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        pids.map(|pid| (pid, String::from_utf8_lossy(&arguments(pid)).replace('\0', " ")))
            .filter(|(_, line)| line.contains(folder))
            .collect()
    }

    /// Asserts that of the play's processes only these run.
    #[track_caller]
    pub(crate) fn assert_only(&self, members: &[&Member]) {
        let expected: Vec<Pid> = members.iter().map(|member| member.identity.pid()).collect();
        let others: Vec<_> = self.cast().into_iter().filter(|(pid, _)| !expected.contains(pid)).collect();
        assert!(others.is_empty(), "still running: {others:#?}");
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn next_member(&self) -> Member {
        assert!(is_ready(&self.roll_call, PATIENCE), "nobody announces itself\n{}", self.log());
        let (stream, _) = self.roll_call.accept().unwrap();
        let pid = rustix::net::sockopt::socket_peercred(&stream).unwrap().pid;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let (role, view) = line.trim_end().split_once(' ').unwrap();
        // It waits for the answer, so its pid is still its own.
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let identity = ProcessIdentity::of(pid).unwrap();
        let view = serde_json::from_str(view).unwrap();
        let mut member = Member { role: role.to_owned(), view, identity, pidfd, stream };
        member.tell("go on");
        member
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // No process starts another one after it was killed, so this ends as soon as nobody new is found.
        for _ in 0..1000 {
            let pidfds: Vec<_> =
                self.cast().into_iter().filter_map(|(pid, _)| pidfd_open(pid, PidfdFlags::empty()).ok()).collect();
            if pidfds.is_empty() {
                return;
            }
            for pidfd in &pidfds {
                let _ = pidfd_send_signal(pidfd, Signal::KILL);
            }
            for pidfd in &pidfds {
                is_ready(pidfd, Duration::from_millis(100));
            }
        }
    }
}

impl Member {
    pub(crate) fn pid(&self) -> Pid {
        self.identity.pid()
    }

    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.stream.get_mut(), "{line}").unwrap();
    }

    /// Gives an order and returns the answer.
    pub(crate) fn ask(&mut self, order: &str) -> Value {
        self.tell(order);
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{order}: {error}: {line:?}"))
    }

    pub(crate) fn kill(&self) {
        pidfd_send_signal(&self.pidfd, Signal::KILL).unwrap();
        assert!(self.ends());
    }

    /// Whether it ends within the patience of a test.
    pub(crate) fn ends(&self) -> bool {
        is_ready(&self.pidfd, PATIENCE)
    }

    pub(crate) fn is_alive(&self) -> bool {
        !is_ready(&self.pidfd, Duration::ZERO)
    }
}

pub(crate) fn env_of(variables: Variables) -> Env {
    Env::from_values(variables, Directories::under(&AbsPath::new("/nowhere").unwrap()))
        .with_randomness(Randomness::Kernel)
}

fn is_ready(fd: impl std::os::fd::AsFd, within: Duration) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let within = Timespec::try_from(within).unwrap();
    while let Err(error) = poll(&mut fds, Some(&within)) {
        assert_eq!(error, rustix::io::Errno::INTR);
    }
    !fds[0].revents().is_empty()
}
