//! What tests of the store, and of what is written beside it, share: a store of their own, jobs, themselves as a child,
//! and impostors of files.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use pactify_core::job::event::{AttemptReason, HostRecord, Known, ProcessRecord};
use pactify_core::job::outcome::Outcome;
use pactify_core::job::{Base, Isolation, JobSpec, Limits, RepositoryRecord, SPEC_FORMAT};
use pactify_core::{AbsPath, AttemptNo};
use rustix::fs::Mode;

use super::Store;
use crate::job_dir::{JobDir, JobLock};
use crate::journal::Journal;

pub(crate) const ID: &str = "20261129-154512-aaaaaa";

/// A store in a directory that goes away with the value.
pub(crate) struct Home {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = directory();
        let store = store(&dir.path().join("home"));
        Self { dir, store }
    }

    pub(crate) fn job(&self) -> (JobDir, JobLock) {
        self.store.create_job(&spec(ID)).unwrap()
    }

    /// A job with a journal open on it.
    pub(crate) fn journal(&self) -> (JobDir, Journal) {
        let (job, lock) = self.job();
        (job, Journal::open(lock).unwrap())
    }
}

/// A directory in memory where there is one: these tests ask what is written, not how long a disk takes.
pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A directory on a disk and its path, links resolved.
pub(crate) fn folder() -> (tempfile::TempDir, AbsPath) {
    let directory = tempfile::tempdir().unwrap();
    let path = AbsPath::new(directory.path().canonicalize().unwrap()).unwrap();
    (directory, path)
}

pub(crate) fn store(home: &Path) -> Store {
    Store::open(&AbsPath::new(home).unwrap()).unwrap()
}

pub(crate) fn spec(id: &str) -> JobSpec {
    let path = |text: &str| AbsPath::new(text).unwrap();
    JobSpec {
        format: SPEC_FORMAT,
        id: id.parse().unwrap(),
        created_at: at(),
        brief: pactify_core::brief::Brief::new("# Fix the parser\n\nIt fails.").unwrap(),
        harness: "codex".parse().unwrap(),
        executable: path("/usr/bin/codex"),
        interpreter: None,
        search_path: None,
        settings: Default::default(),
        model: None,
        with_user_config: false,
        access: serde_json::from_value("write".into()).unwrap(),
        isolation: Isolation::Private,
        repository: RepositoryRecord {
            worktree: path("/src/project"),
            git_dir: path("/src/project/.git"),
            common_dir: path("/src/project/.git"),
            prefix: String::new(),
        },
        base: Base {
            kind: Default::default(),
            commit: "a".repeat(40).parse().unwrap(),
            tree: "b".repeat(40).parse().unwrap(),
            parent: None,
        },
        lfs: pactify_core::lfs::LfsPolicy::default(),
        permissions: pactify_core::permission::Policy::default(),
        setup: None,
        verify: Vec::new(),
        no_verify: false,
        place: pactify_core::job::Place::Tree,
        limits: Limits::default(),
        retry_of: None,
        written_by: "0.1.0".into(),
        unknown: Default::default(),
    }
}

pub(crate) fn at() -> jiff::Timestamp {
    "2026-11-29T15:45:12Z".parse().unwrap()
}

pub(crate) fn started() -> Known {
    let process = ProcessRecord { pid: 1, start_time: 2, boot_id: "boot".into() };
    Known::AttemptStarted { reason: AttemptReason::Run, host: HostRecord { process, version: "0.1.0".into() } }
}

pub(crate) fn message(text: &str) -> Known {
    Known::Message { text: text.into() }
}

pub(crate) fn ended() -> Known {
    Known::AttemptEnded {
        outcome: Outcome::NoChanges, failure: None, final_message: Some("fertig: größer 🙂".into())
    }
}

pub(crate) fn append(journal: &mut Journal, event: Known) {
    journal.append(at(), AttemptNo::FIRST, event).unwrap();
}

const HOME: &str = "PACTIFY_TEST_CHILD_HOME";

/// The home that a parent test gave to this process, if it is its child.
#[expect(clippy::disallowed_methods, reason = "the parent test has no other way to reach its child")]
pub(crate) fn given_home() -> Option<std::path::PathBuf> {
    std::env::var_os(HOME).map(Into::into)
}

/// The test `name` (with its module path below the crate) again, as a child that knows its home. `through` is a shell
/// command line that ends by executing its arguments.
#[expect(clippy::disallowed_methods, reason = "a test starts itself; the engine's runner is for the engine")]
pub(crate) fn child(name: &str, home: &Path, through: Option<&str>) -> Command {
    let test = std::env::current_exe().unwrap();
    let mut command = match through {
        None => Command::new(test),
        Some(script) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(script).arg(test);
            shell
        }
    };
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(HOME, home);
    command
}

/// Runs the test `name` again, as a child that knows its home: a disk of its own, a tmpfs mounted with `options`.
pub(crate) fn on_a_small_disk(name: &str, options: &str) {
    let dir = tempfile::tempdir().unwrap();
    let user = if root() { "" } else { "--user --map-root-user" };
    let mount = format!("mount -t tmpfs -o {options} none \"$HERE\"");
    let script = format!("exec unshare {user} --mount sh -c '{mount} && exec \"$0\" \"$@\"' \"$0\" \"$@\"");
    let done = child(name, dir.path(), Some(&script)).env("HERE", dir.path()).output().unwrap();
    let said = [&done.stdout[..], &done.stderr[..]].map(String::from_utf8_lossy);
    assert!(done.status.success(), "{}", said.concat());
}

/// Runs the test `name` again, as a child that knows its home, with `mounts` made that nobody else sees: a shell
/// command line in which `$HERE` is that home. Where there are no such namespaces it says that it is skipped.
pub(crate) fn among_mounts(name: &str, home: &Path, mounts: &str) {
    let user = if rustix::process::geteuid().is_root() { "" } else { "--user --map-root-user" };
    let script = format!(
        "unshare {user} --mount true || {{ echo skipped: no mount namespaces here; exit 0; }}; \
         exec unshare {user} --mount sh -c '{mounts} && exec \"$0\" \"$@\"' \"$0\" \"$@\""
    );
    let done = child(name, home, Some(&script)).env("HERE", home).output().unwrap();
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success(), "{said}");
    said.lines().filter(|line| line.starts_with("skipped")).for_each(|line| println!("{line}"));
}

/// Writes until nothing more fits, and proves it.
pub(crate) fn fill(disk: &Path) {
    let mut file = std::fs::File::create(disk.join("filler")).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let refused = std::fs::write(disk.join("one-more"), [0; 4096]).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
}

/// Runs `work` and fails when it takes longer than anything that does not block.
pub(crate) fn promptly<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || done.send(work()));
    match result.recv_timeout(std::time::Duration::from_secs(60)) {
        Ok(result) => result,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it blocks"),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => panic!("it ended without a result"),
        },
    }
}

/// What may stand where a file should be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Impostor {
    Fifo,
    Symlink,
    Directory,
    Socket,
    Device,
    ForeignFile,
}

impl Impostor {
    pub(crate) const ALL: [Self; 6] =
        [Self::Fifo, Self::Symlink, Self::Directory, Self::Socket, Self::Device, Self::ForeignFile];

    /// Puts it there; the symlink leads to what was there before.
    pub(crate) fn take_the_place_of(self, path: &AbsPath) {
        let path = path.as_path();
        let moved = path.with_extension("moved");
        std::fs::rename(path, &moved).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        let node = |kind, device| rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, device);
        match self {
            Self::Fifo => node(rustix::fs::FileType::Fifo, 0).unwrap(),
            Self::Symlink => symlink(&moved, path).unwrap(),
            Self::Directory => std::fs::create_dir(path).unwrap(),
            Self::Socket => node(rustix::fs::FileType::Socket, 0).unwrap(),
            // Only root can make these two; for anybody else a link leads to one that is there.
            Self::Device if root() => node(rustix::fs::FileType::CharacterDevice, rustix::fs::makedev(1, 3)).unwrap(),
            Self::Device => symlink("/dev/null", path).unwrap(),
            Self::ForeignFile if root() => {
                match moved.is_dir() {
                    true => std::fs::create_dir(path).unwrap(),
                    false => drop(std::fs::copy(&moved, path).unwrap()),
                }
                std::os::unix::fs::chown(path, Some(1), None).unwrap();
            }
            Self::ForeignFile => symlink("/etc/passwd", path).unwrap(),
        }
    }

    /// Whether a program that just opens and reads would read what is not ours, wait for ever, or read nonsense.
    pub(crate) fn fools_a_plain_read(self, path: &AbsPath) -> bool {
        let path = path.as_path().to_owned();
        match self {
            Self::Directory | Self::Socket => std::fs::read(path).is_err(),
            Self::Symlink | Self::ForeignFile => std::fs::read(path).is_ok(),
            // A mount without devices refuses to open it, any other does not.
            Self::Device => std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()),
            Self::Fifo => {
                let (done, opened) = std::sync::mpsc::channel();
                let reader = path.clone();
                let waiting = std::thread::spawn(move || done.send(std::fs::File::open(reader)));
                let waits = opened.recv_timeout(std::time::Duration::from_millis(20)).is_err();
                // Lets the reader go again.
                drop(std::fs::File::options().write(true).open(path).unwrap());
                waiting.join().unwrap().unwrap();
                waits
            }
        }
    }

    pub(crate) fn called(self) -> &'static str {
        match self {
            Self::Fifo => "a pipe",
            Self::Directory => "a directory",
            Self::Socket => "a socket",
            Self::Device if root() => "a device",
            Self::ForeignFile if root() => "belongs to user 1",
            Self::Symlink | Self::Device | Self::ForeignFile => "a symbolic link",
        }
    }
}

pub(crate) fn root() -> bool {
    rustix::process::geteuid().is_root()
}
