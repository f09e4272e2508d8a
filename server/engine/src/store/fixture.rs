//! What the tests of the store, the journal and the lock share: a store of their own, jobs, and themselves as a child.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use pactify_core::job::event::{AttemptReason, HostRecord, Known, ProcessRecord};
use pactify_core::job::outcome::Outcome;
use pactify_core::job::{Base, Isolation, JobSpec, Limits, RepositoryRecord, SPEC_FORMAT};
use pactify_core::{AbsPath, AttemptNo};

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
    let user = if rustix::process::geteuid().is_root() { "" } else { "--user --map-root-user" };
    let mount = format!("mount -t tmpfs -o {options} none \"$HERE\"");
    let script = format!("exec unshare {user} --mount sh -c '{mount} && exec \"$0\" \"$@\"' \"$0\" \"$@\"");
    let done = child(name, dir.path(), Some(&script)).env("HERE", dir.path()).output().unwrap();
    let said = [&done.stdout[..], &done.stderr[..]].map(String::from_utf8_lossy);
    assert!(done.status.success(), "{}", said.concat());
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
    match result.recv_timeout(std::time::Duration::from_secs(20)) {
        Ok(result) => result,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it blocks"),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => panic!("it ended without a result"),
        },
    }
}
