//! A person's home, repository and store in a directory of the test's own, and git as a person would call it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pactify_core::brief::Brief;
use pactify_core::change::{ChangeKind, ChangeSet, Note};
use pactify_core::harness::settings::HarnessSettings;
use pactify_core::job::access::Access;
use pactify_core::job::event::{AttemptReason, HostRecord, Known, ProcessRecord, TreeRecord};
use pactify_core::job::outcome::Outcome;
use pactify_core::job::{Base, BaseKind, Isolation, JobSpec, Limits, RepositoryRecord, SPEC_FORMAT};
use pactify_core::{AbsPath, AttemptNo, JobId, RepoPath};
use pactify_engine::env::{Directories, Env, Variables};
use pactify_engine::git::{Buffer, Captured, Examined, Git, GitError, Places, Prepared, Snapshot, Source, Wanted};
use pactify_engine::job_dir::JobLock;
use pactify_engine::journal::Journal;
use pactify_engine::process::{JobTree, Marker, Patience, VerifiedDead};
use pactify_engine::store::Store;
use tempfile::TempDir;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) struct Fixture {
    /// Removed at the end.
    _root: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) repo: PathBuf,
    pub(crate) store: AbsPath,
    pub(crate) git: Git,
}

/// A finished job in the store, as [`pactify_engine::jobs::Jobs`] sees it.
pub(crate) struct Landed {
    pub(crate) job: Job,
    pub(crate) captured: Captured,
    pub(crate) env: Env,
}

/// git, with a record of what it is called for.
pub(crate) struct Counting {
    pub(crate) git: Git,
    log: PathBuf,
}

/// What a job starts from.
#[derive(Debug)]
pub(crate) struct Shot {
    pub(crate) places: Places,
    pub(crate) repository: RepositoryRecord,
    pub(crate) head: Base,
    pub(crate) base: Base,
    pub(crate) notices: Vec<String>,
}

pub(crate) struct Job {
    pub(crate) places: Places,
    pub(crate) repository: RepositoryRecord,
    pub(crate) base: Base,
    pub(crate) prepared: Prepared,
}

impl Fixture {
    /// A repository with `files` in its first commit.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let fixture = Self::empty(&[]);
        fixture.commit(files);
        fixture
    }

    /// A repository without a commit; `options` go to `git init`.
    pub(crate) fn empty(options: &[&str]) -> Self {
        let fixture = Self::without_repository();
        let path = fixture.repo.to_str().unwrap().to_owned();
        fixture.plain(&fixture.root, &[&["init", "-q", "-b", "main"], options, &[path.as_str()]].concat());
        fixture
    }

    pub(crate) fn without_repository() -> Self {
        // In memory where possible: fast, and free of the inode reuse delays of file systems without a journal.
        let memory = Path::new("/dev/shm");
        let builder = || {
            let mut builder = tempfile::Builder::new();
            builder.prefix("pactify-git-");
            builder
        };
        let root = builder().tempdir_in(memory).or_else(|_| builder().tempdir()).unwrap();
        let path = root.path().canonicalize().unwrap();
        for name in ["home", "repo", "store", "store/jobs"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        // No git of the tests' works on behind their backs.
        let config =
            "[user]\n\tname = Ada\n\temail = ada@example.invalid\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
        fs::write(path.join("home/.gitconfig"), config).unwrap();
        let store = absolute(&path.join("store"));
        let git = Git::find(&env(&path, &[])).unwrap();
        Self { _root: root, repo: path.join("repo"), store, git, root: path }
    }

    /// Runs git as a person would, and insists on success.
    pub(crate) fn plain(&self, directory: &Path, arguments: &[impl AsRef<OsStr>]) -> String {
        let output = self.try_plain(directory, arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        let arguments: Vec<_> = arguments.iter().map(AsRef::as_ref).collect();
        assert!(output.status.success(), "git {arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    #[expect(clippy::disallowed_methods, reason = "the person's own git, which the tests compare with")]
    pub(crate) fn try_plain(&self, directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Output {
        let mut command = Command::new(self.git.program().as_path());
        command.args(arguments).current_dir(directory).env_clear();
        command.env("PATH", PATH).env("HOME", self.root.join("home")).env("LC_ALL", "C");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_PROTOCOL_FROM_USER", "1");
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Writes files into the checkout and commits everything.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) {
        for (path, content) in files {
            write(&self.repo.join(path), content);
        }
        self.plain(&self.repo, &["add", "-A"]);
        self.plain(&self.repo, &["commit", "-q", "--allow-empty", "-m", "step"]);
    }

    pub(crate) fn examine(&self, folder: &Path) -> Result<pactify_engine::git::Examined, GitError> {
        self.git.examine(&absolute(folder))
    }

    /// The places of a new job; its directory is made.
    pub(crate) fn places(&self) -> Places {
        let places = Places::of(&self.store.join("jobs"), new_id());
        fs::create_dir(places.directory()).unwrap();
        places
    }

    pub(crate) fn job(&self) -> Job {
        self.job_in(&self.repo, Isolation::Private)
    }

    pub(crate) fn job_in(&self, folder: &Path, wanted: impl Into<Wanted>) -> Job {
        let examined = self.examine(folder).unwrap();
        let places = self.places();
        let prepared = self.git.prepare(&places, &examined.repository, &examined.head, wanted).unwrap();
        Job { places, repository: examined.repository, base: examined.head, prepared }
    }

    /// A job that starts from the checkout as it is, and from `texts`. Its tree is not made yet.
    pub(crate) fn snapshot(&self, texts: &[(&str, &str)]) -> Shot {
        self.try_snapshot_in(&self.repo, &self.git, texts).unwrap()
    }

    pub(crate) fn try_snapshot_in(&self, folder: &Path, git: &Git, texts: &[(&str, &str)]) -> Result<Shot, GitError> {
        self.try_snapshot_at(self.places(), folder, git, texts)
    }

    fn try_snapshot_at(
        &self,
        places: Places,
        folder: &Path,
        git: &Git,
        texts: &[(&str, &str)],
    ) -> Result<Shot, GitError> {
        let Examined { repository, head } = self.examine(folder).unwrap();
        let buffer = |(path, text): &(&str, &str)| Buffer { path: RepoPath::new(*path).unwrap(), text: (*text).into() };
        let buffers: Vec<Buffer> = texts.iter().map(buffer).collect();
        let kind = if texts.is_empty() { BaseKind::WorkingTree } else { BaseKind::Buffers };
        let source = Source { kind, buffers, notices: Vec::new() };
        let Snapshot { base, notices } = git.snapshot(&places, &repository, &head, &source)?;
        Ok(Shot { places, repository, head, base, notices })
    }

    /// Makes the tree of a job that starts from a snapshot.
    pub(crate) fn begin(&self, shot: Shot) -> Job {
        let Shot { places, repository, base, .. } = shot;
        let prepared = self.git.prepare(&places, &repository, &base, Isolation::Private).unwrap();
        Job { places, repository, base, prepared }
    }

    /// What the base of a snapshot has, as git lists it: by path, `<mode> <content>`.
    pub(crate) fn base_files(&self, shot: &Shot) -> BTreeMap<String, String> {
        let git_dir = if shot.base.parent.is_some() { shot.places.base() } else { shot.repository.common_dir.clone() };
        let git_dir = git_dir.as_path();
        let listed = self.plain(git_dir, &["ls-tree", "-r", "-z", shot.base.tree.as_str()]);
        let lines = listed.split('\0').filter(|line| !line.is_empty());
        lines
            .map(|line| {
                let (facts, path) = line.split_once('\t').unwrap();
                let facts: Vec<&str> = facts.split(' ').collect();
                let content = match facts[1] {
                    "blob" => String::from_utf8_lossy(&self.try_plain(git_dir, &["cat-file", "blob", facts[2]]).stdout)
                        .into_owned(),
                    _ => facts[2].to_owned(),
                };
                (path.to_owned(), format!("{} {content}", facts[0]))
            })
            .collect()
    }

    /// A job of the store that did `work` and ended.
    pub(crate) fn land(&self, work: impl FnOnce(&Job)) -> Landed {
        self.land_in(&self.repo, Isolation::Private, work)
    }

    /// The same, from any folder and with a tree of any kind.
    pub(crate) fn land_in(&self, folder: &Path, wanted: impl Into<Wanted>, work: impl FnOnce(&Job)) -> Landed {
        let store = Store::open(&self.store).unwrap();
        let Examined { repository, head: base, .. } = self.examine(folder).unwrap();
        let (id, wanted) = (new_id(), wanted.into());
        let (directory, lock) =
            store.create_job(&spec(id, wanted.isolation, repository.clone(), base.clone())).unwrap();
        let places = Places::from(&directory);
        let prepared = self.git.prepare(&places, &repository, &base, wanted).unwrap();
        self.land_prepared(lock, Job { places, repository, base, prepared }, work)
    }

    /// The same, from the checkout as it is and from `texts`.
    pub(crate) fn land_snapshot(&self, texts: &[(&str, &str)], work: impl FnOnce(&Job)) -> Landed {
        let store = Store::open(&self.store).unwrap();
        let id = new_id();
        let draft = store.draft(&id).unwrap();
        let Shot { repository, base, .. } =
            self.try_snapshot_at(Places::from(draft.job()), &self.repo, &self.git, texts).unwrap();
        let (directory, lock) = draft.create(&spec(id, Isolation::Private, repository.clone(), base.clone())).unwrap();
        let places = Places::from(&directory);
        let prepared = self.git.prepare(&places, &repository, &base, Isolation::Private).unwrap();
        self.land_prepared(lock, Job { places, repository, base, prepared }, work)
    }

    fn land_prepared(&self, lock: JobLock, job: Job, work: impl FnOnce(&Job)) -> Landed {
        work(&job);
        let captured = self.capture(&job);
        let mut journal = Journal::open(lock).unwrap();
        let process = ProcessRecord { pid: 1, start_time: 2, boot_id: "boot".into() };
        for event in [
            Known::AttemptStarted { reason: AttemptReason::Run, host: HostRecord { process, version: "0".into() } },
            Known::TreeReady { tree: job.prepared.tree.clone() },
            Known::Captured { result: captured.result.clone() },
            Known::AttemptEnded { outcome: Outcome::Succeeded, failure: None, final_message: None },
        ] {
            journal.append(at(), AttemptNo::FIRST, event).unwrap();
        }
        let own = self.git.program().as_path().parent().unwrap().display().to_string();
        Landed { job, captured, env: env(&self.root, &[("PATH", &format!("{own}:{PATH}"))]) }
    }

    /// A git that notes its calls.
    pub(crate) fn counting(&self) -> Counting {
        let log = self.root.join("calls");
        let script = self.root.join("counted/git");
        let real = self.git.program();
        // The command is the first word that is neither an option nor the value of `-c`.
        let text = format!(
            "#!/bin/sh\nskip=\nfor word; do\n\
             if [ -n \"$skip\" ]; then skip=; continue; fi\n\
             case \"$word\" in -c) skip=1 ;; -*) ;; *) echo \"$word\" >> '{}'; break ;; esac\ndone\n\
             exec '{real}' \"$@\"\n",
            log.display()
        );
        write(&script, &text);
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{PATH}", self.root.join("counted").display());
        Counting { git: Git::find(&env(&self.root, &[("PATH", &path)])).unwrap(), log }
    }

    pub(crate) fn capture(&self, job: &Job) -> Captured {
        self.try_capture(job, &job.prepared.tree).unwrap()
    }

    pub(crate) fn try_capture(&self, job: &Job, tree: &TreeRecord) -> Result<Captured, GitError> {
        self.git.capture(&dead(&job.places), &job.places, &job.repository, &job.base, tree)
    }

    /// The content of the result at `path`.
    pub(crate) fn content(&self, job: &Job, captured: &Captured, path: &str) -> Vec<u8> {
        let path = RepoPath::new(path).unwrap();
        let change = captured.change_set.changes.iter().find(|change| change.path == path);
        let object =
            &change.and_then(|change| change.new.as_ref()).unwrap_or_else(|| panic!("{path}: no content")).object;
        self.git.objects(&job.places.capture(), object).unwrap().read(object, 1 << 30).unwrap()
    }

    /// Every file below the person's checkout and home, with content, mode and modification time.
    pub(crate) fn belongings(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut waiting = vec![self.repo.clone(), self.root.join("home")];
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let metadata = fs::symlink_metadata(&path).unwrap();
                if metadata.is_dir() {
                    waiting.push(path);
                } else {
                    let content = fs::read(&path).map(|bytes| format!("{bytes:?}")).unwrap_or_default();
                    let facts =
                        format!("{:o} {:?} {content}", metadata.permissions().mode(), metadata.modified().unwrap());
                    found.insert(path, facts);
                }
            }
        }
        found
    }
}

impl Counting {
    /// What it was called for since it was asked last.
    pub(crate) fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(&self.log).unwrap_or_default().lines().map(str::to_owned).collect();
        let _ = fs::remove_file(&self.log);
        calls
    }
}

impl Job {
    pub(crate) fn id(&self) -> String {
        self.places.job().to_string()
    }

    pub(crate) fn tree(&self) -> &Path {
        self.prepared.tree.path.as_path()
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        write(&self.tree().join(path), content);
    }
}

pub(crate) fn new_id() -> JobId {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    JobId::compose(at(), number * 7919 + std::process::id())
}

pub(crate) fn at() -> jiff::Timestamp {
    "2026-11-29T16:00:00Z".parse().unwrap()
}

pub(crate) fn spec(id: JobId, isolation: Isolation, repository: RepositoryRecord, base: Base) -> JobSpec {
    JobSpec {
        format: SPEC_FORMAT,
        id,
        created_at: at(),
        brief: Brief::new("Do it").unwrap(),
        harness: "codex".parse().unwrap(),
        executable: absolute(Path::new("/bin/false")),
        interpreter: None,
        search_path: None,
        settings: HarnessSettings::default(),
        model: None,
        with_user_config: false,
        access: Access::Write,
        isolation,
        repository,
        base,
        lfs: pactify_core::lfs::LfsPolicy::default(),
        permissions: pactify_core::permission::Policy::default(),
        setup: None,
        verify: Vec::new(),
        no_verify: false,
        place: pactify_core::job::Place::Tree,
        limits: Limits::default(),
        retry_of: None,
        written_by: "0".into(),
        unknown: serde_json::Map::new(),
    }
}

/// The environment of a person whose home is below `root`, with further variables.
pub(crate) fn env(root: &Path, variables: &[(&str, &str)]) -> Env {
    let own = [("PATH", PATH.to_owned()), ("HOME", root.join("home").to_str().unwrap().to_owned())];
    let mut all: Variables = own.iter().map(|(name, value)| ((*name).into(), value.into())).collect();
    all.extend(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    let directories = Directories::under(&absolute(&root.join("home")));
    Env::from_values(all, directories.with_pactify_home(absolute(&root.join("store"))))
}

pub(crate) fn dead(places: &Places) -> VerifiedDead {
    let patience = Patience { grace: Duration::ZERO, kill: Duration::from_secs(60) };
    JobTree::left_by(Marker::of(places.job()), None, None).sweep(patience).unwrap()
}

pub(crate) fn absolute(path: &Path) -> AbsPath {
    AbsPath::new(path).unwrap()
}

pub(crate) fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// An executable script that leaves a mark when it runs.
pub(crate) fn trap(path: &Path, mark: &Path) -> String {
    write(path, &format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display()));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The changes as `kind path`, in order.
pub(crate) fn changes(set: &ChangeSet) -> Vec<String> {
    set.changes.iter().map(|change| format!("{} {}", kind(change.kind()), change.path)).collect()
}

fn kind(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "A",
        ChangeKind::Modified => "M",
        ChangeKind::Deleted => "D",
        ChangeKind::ModeChanged => "X",
        ChangeKind::TypeChanged => "T",
    }
}

/// The notes as JSON, for comparison and for messages.
pub(crate) fn notes(set: &ChangeSet) -> String {
    let mut notes: Vec<String> = set.notes.iter().map(|note: &Note| serde_json::to_string(note).unwrap()).collect();
    notes.sort();
    notes.join("\n")
}
