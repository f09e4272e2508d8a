//! Processes that try to survive the turn that started them.
//!
//! Each is this program once more, under a name of its own on the command line ([`cli`](super::cli)): no unsafe code
//! runs between fork and exec. An escapee says that it runs by a byte on a pipe that is its standard *input*, so that
//! its output can be anything; it ends by itself after at most ten minutes.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use clap::Args;

use super::play::{command, deafen, rest};
use super::step::{Escape, Escapee};

const LONGEST: Duration = Duration::from_secs(600);

/// What an escapee is told on its command line.
#[derive(Args)]
pub(super) struct Linger {
    #[arg(long)]
    seconds: f64,
    #[arg(long)]
    pid_file: Option<PathBuf>,
    /// Start another one like this and end.
    #[arg(long)]
    fork: bool,
    #[arg(long)]
    session: bool,
    #[arg(long)]
    deaf: bool,
    #[arg(long)]
    scrub: bool,
}

/// Starts an escapee; returns when it runs.
pub(super) fn start(folder: &Path, escape: &Escape) -> io::Result<()> {
    let seconds = escape.seconds.unwrap_or(LONGEST.as_secs_f64());
    let has = |how| escape.how.contains(&how);
    let linger = Linger {
        seconds,
        pid_file: escape.pid_file.as_ref().map(|name| folder.join(name.to_path())),
        fork: has(Escapee::DoubleFork),
        session: has(Escapee::Setsid),
        deaf: has(Escapee::IgnoreSignals),
        scrub: has(Escapee::ScrubEnvironment),
    };
    let (mut ready, said_by_child) = io::pipe()?;
    let output = || if has(Escapee::KeepOutput) { Stdio::inherit() } else { Stdio::null() };
    let mut child = linger.command()?.stdin(said_by_child).stdout(output()).stderr(output()).spawn()?;
    if linger.fork {
        child.wait()?;
    }
    // End of file instead of the byte: it ended before it got that far.
    ready.read_exact(&mut [0])
}

impl Linger {
    /// The life of an escapee (or of the one in the middle of a double fork).
    pub(super) fn live(mut self) -> io::Result<()> {
        if self.fork {
            self.fork = false;
            return self.command()?.spawn().map(drop);
        }
        if self.session {
            rustix::process::setsid()?;
        }
        if self.deaf {
            deafen()?;
        }
        if let Some(path) = &self.pid_file {
            let partial = path.with_extension("partial");
            std::fs::write(&partial, std::process::id().to_string())?;
            std::fs::rename(&partial, path)?;
        }
        rustix::io::write(rustix::stdio::stdin(), b"!")?;
        rest(Duration::try_from_secs_f64(self.seconds).unwrap_or(LONGEST).min(LONGEST));
        Ok(())
    }

    fn command(&self) -> io::Result<std::process::Command> {
        let mut command = command(std::env::current_exe()?);
        command.args(["__linger", "--seconds", &self.seconds.to_string()]);
        for (flag, is_set) in [("--fork", self.fork), ("--session", self.session), ("--deaf", self.deaf)] {
            if is_set {
                command.arg(flag);
            }
        }
        if let Some(path) = &self.pid_file {
            command.arg("--pid-file").arg(path);
        }
        if self.scrub {
            command.arg("--scrub").env_clear();
        }
        Ok(command)
    }
}
