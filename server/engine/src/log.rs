//! What pactify's own processes say about themselves: to standard error, and to a file of bounded size.
//!
//! `PACTIFY_LOG` sets the level: `off`, `error`, `warn`, `info` (default), `debug` or `trace`. Lines of other crates
//! pass from `warn` on only, so that no message of the wire, and with it no brief, is ever logged. Standard output
//! belongs to the wire and gets nothing. The file lies in `PACTIFY_HOME/logs`; processes of one kind share it, and at
//! [`MAX_BYTES`] it is renamed to `….1` and begun anew. A log that cannot be written is no reason to fail: there is
//! standard error.

use std::any::Any;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::panic::PanicHookInfo;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pactify_core::{AbsPath, display};
use rustix::fs::FlockOperation;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::env::Env;

/// The size at which the file is begun anew.
pub const MAX_BYTES: u64 = 2 << 20;

const VARIABLE: &str = "PACTIFY_LOG";

/// Whether a process also says it on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stderr {
    /// It does: editors collect it.
    Shown,
    /// It does not: a person works there, or there is none.
    Quiet,
}

/// Starts logging as `program` (`pactify-lsp`, `host` …); a panic is a line of the log from here on. Call it once, at
/// the start of `main`.
pub fn start(env: &Env, program: &str, stderr: Stderr) {
    let level = level(env);
    let kept = file(env, program).map(|path| {
        let file = LogFile { path, folder: folder(env), max: MAX_BYTES, open: Mutex::default() };
        fmt::layer().with_ansi(false).with_writer(file)
    });
    let shown = fmt::layer().with_ansi(false).without_time().with_writer(io::stderr);
    let shown = (stderr == Stderr::Shown).then_some(shown);
    // Only a second call can fail, and the first one's sinks are as good.
    let _ = tracing_subscriber::registry().with(targets(level)).with(kept).with(shown).try_init();
    log_panics();
}

/// The file in which `program` logs; `None` where it keeps none.
pub fn file(env: &Env, program: &str) -> Option<AbsPath> {
    (level(env) > LevelFilter::OFF).then(|| folder(env).join(&format!("{program}.log")))
}

/// What a panic said, on one line.
pub fn panic_message(payload: &dyn Any) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    display::neutral(text.unwrap_or("no message")).into_owned()
}

/// Makes every panic a line of the log. The default hook would print it unescaped, and only to standard error.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic: {}", panic_message(panic.payload()));
    }));
}

fn targets(level: LevelFilter) -> Targets {
    let ours = ["pactify", "pactify_core", "pactify_engine", "pactify_lsp"];
    Targets::new().with_default(LevelFilter::WARN.min(level)).with_targets(ours.map(|target| (target, level)))
}

fn folder(env: &Env) -> AbsPath {
    env.directories().pactify_home().join("logs")
}

fn level(env: &Env) -> LevelFilter {
    worded(env.variable(VARIABLE).and_then(|value| value.to_str()))
}

fn worded(value: Option<&str>) -> LevelFilter {
    value.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| Level::INFO.into())
}

struct LogFile {
    folder: AbsPath,
    path: AbsPath,
    max: u64,
    open: Mutex<Option<File>>,
}

impl LogFile {
    fn write(&self, line: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.as_ref()
            && file.metadata()?.len() >= self.max
        {
            self.rotate(file)?;
            *open = None;
        }
        let file = match open.take() {
            Some(file) => file,
            None => self.create()?,
        };
        open.insert(file).write_all(line)
    }

    fn create(&self) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let no_wait = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        let flags = i32::try_from(no_wait.bits()).unwrap_or_default();
        OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(&self.path)
    }

    /// Renames the full file, unless another process has done it already.
    fn rotate(&self, full: &File) -> io::Result<()> {
        rustix::fs::flock(full, FlockOperation::LockExclusive)?;
        let ours = full.metadata()?;
        if let Ok(there) = std::fs::symlink_metadata(&self.path)
            && (there.dev(), there.ino()) == (ours.dev(), ours.ino())
        {
            let mut older = PathBuf::from(self.path.clone()).into_os_string();
            older.push(".1");
            std::fs::rename(&self.path, older)?;
        }
        rustix::fs::flock(full, FlockOperation::Unlock)?;
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

struct Line<'a>(&'a LogFile);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // The subscriber would print an error of ours to standard error, once per line.
        let _ = self.0.write(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn log(folder: &tempfile::TempDir) -> LogFile {
        let folder = AbsPath::new(folder.path().join("logs")).unwrap();
        LogFile { path: folder.join("x.log"), folder, max: 100, open: Mutex::default() }
    }

    #[test]
    fn the_file_is_private_and_begun_anew_at_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(&folder);
        let line = [b'x'; 60];
        for _ in 0..3 {
            log.write(&line).unwrap();
        }
        let size = |name: &str| std::fs::metadata(log.folder.join(name)).unwrap();
        assert_eq!((size("x.log").len(), size("x.log.1").len()), (60, 120));
        assert_eq!(size("x.log").permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&log.folder).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn two_processes_share_a_file_without_losing_it() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (log(&folder), log(&folder));
        one.write(&[b'1'; 60]).unwrap();
        other.write(&[b'2'; 60]).unwrap();
        one.write(&[b'3'; 10]).unwrap();
        other.write(&[b'4'; 10]).unwrap();
        let kept = |name: &str| std::fs::read(one.folder.join(name)).unwrap();
        assert_eq!(kept("x.log.1").len(), 120, "renamed once, with both lines");
        assert_eq!(kept("x.log"), [[b'3'; 10], [b'4'; 10]].concat());
    }

    #[test]
    fn a_pipe_or_a_link_in_its_place_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        std::fs::write(&target, "").unwrap();
        let log = log(&folder);
        std::fs::create_dir(&log.folder).unwrap();
        std::os::unix::fs::symlink(&target, &log.path).unwrap();
        assert!(log.write(b"x").is_err());
        assert_eq!(std::fs::read(&target).unwrap(), b"");
    }

    #[test]
    fn the_level_is_a_word() {
        for (value, expected) in [
            (None, LevelFilter::INFO),
            (Some("debug"), LevelFilter::DEBUG),
            (Some(" Off "), LevelFilter::OFF),
            (Some("loud"), LevelFilter::INFO),
        ] {
            assert_eq!(worded(value), expected, "{value:?}");
        }
    }
}
