//! What the store promises, against real directories.

mod space;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use pactify_core::job::event::Event;
use pactify_core::job::state::{Host, JobState, SeenState};
use pactify_core::{AttemptNo, Seq};

use super::fixture::{self, Home, ID, Impostor, append, at, ended, message, promptly, root, spec, started, store};
use super::*;
use crate::disk::Kind;
use crate::journal::summary::Summary;
use crate::journal::{End, Journal, Reader};

#[test]
fn a_job_is_created_appended_to_and_read_back() {
    let home = Home::new();
    let (job, mut journal) = home.journal();
    let store = &home.store;
    assert_eq!(store.seen(job.id()).unwrap().1, SeenState::Queued);

    append(&mut journal, started());
    let chatter = ["a", "b"].map(|text| Event::from(message(text)));
    assert_eq!(journal.append_all(at(), AttemptNo::FIRST, chatter).unwrap(), Seq(3));
    assert_eq!(store.seen(job.id()).unwrap().1, SeenState::Preparing);
    append(&mut journal, ended());
    assert_eq!(journal.state(), &store.state(job.id()).unwrap().state);
    drop(journal);

    let batch = Reader::open(&job).unwrap().read(usize::MAX).unwrap();
    assert_eq!((batch.records.len(), batch.end), (4, End::Clean));
    let (snapshot, seen) = store.seen(job.id()).unwrap();
    assert_eq!(seen, SeenState::Finished);
    assert_eq!(*snapshot.spec, spec(ID));
}

#[test]
fn an_unfinished_job_without_a_host_is_lost_and_its_record_is_left_alone() {
    let home = Home::new();
    let (job, mut journal) = home.journal();
    append(&mut journal, started());
    drop(journal);
    let before = std::fs::read(job.journal()).unwrap();
    assert_eq!(home.store.seen(job.id()).unwrap().1, SeenState::Lost);
    let listed = home.store.list(None, 10).unwrap().jobs;
    assert!(matches!(listed[..], [Listed::Job { seen: SeenState::Lost, .. }]), "{listed:?}");
    assert_eq!(std::fs::read(job.journal()).unwrap(), before);
}

/// A wake-up is there as soon as the call returns that caused it, so nothing is waited for.
#[test]
fn a_store_wakes_for_each_move_of_a_job_whoever_makes_it_and_for_no_chatter() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let home = Home::new();
    let other = store(home.store.home().as_path());
    let watch = other.wakeup().unwrap();
    let wakes = || {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_awake = poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&at_once)).unwrap() == 1;
        watch.rearm();
        is_awake
    };
    assert!(!wakes());
    let (job, mut journal) = home.journal();
    assert!(wakes(), "a job came");
    append(&mut journal, started());
    assert!(wakes(), "it stands otherwise");
    append(&mut journal, message("chatter"));
    assert!(!wakes());
    append(&mut journal, ended());
    assert!(wakes(), "it ended");
    let trash = home.store.area(Area::Trash).unwrap();
    std::fs::rename(job.path(), trash.path().as_path().join("gone")).unwrap();
    assert!(wakes(), "it went");
}

#[test]
fn an_id_is_given_once() {
    let home = Home::new();
    let (job, mut journal) = home.journal();
    append(&mut journal, started());
    let before = std::fs::read(job.journal()).unwrap();
    assert!(matches!(home.store.create_job(&spec(ID)), Err(StoreError::JobExists { .. })));
    drop(journal);
    assert!(matches!(home.store.create_job(&spec(ID)), Err(StoreError::JobExists { .. })));
    assert_eq!(std::fs::read(job.journal()).unwrap(), before);
    assert_eq!(home.store.shared.jobs.names().unwrap(), [ID]);
}

/// Gives a directory a time of long ago.
fn grow_old(path: &Path) {
    std::fs::File::open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
}

#[test]
fn a_job_that_was_never_finished_making_is_not_listed_and_can_be_swept() {
    let home = Home::new();
    let (job, lock) = home.job();
    drop(lock);
    let unborn = |id: &str| job.path().as_path().with_file_name(format!(".new-{id}"));
    std::fs::create_dir_all(job.path().as_path().join("base/objects")).unwrap();
    std::fs::rename(job.path(), unborn(ID)).unwrap();
    let (_, busy) = home.store.create_job(&spec("20261129-154512-bbbbbb")).unwrap();
    std::fs::rename(busy.job().path(), unborn("20261129-154512-bbbbbb")).unwrap();
    assert!(home.store.list(None, 10).unwrap().jobs.is_empty());
    for id in [ID, "20261129-154512-bbbbbb"] {
        grow_old(&unborn(id));
    }
    assert_eq!(home.store.sweep_unborn().unwrap(), 1);
    assert!(!unborn(ID).exists() && unborn("20261129-154512-bbbbbb").exists(), "one in the making is left alone");
    assert_eq!(home.store.area(Area::Trash).unwrap().names().unwrap(), [format!(".new-{ID}.base")]);
}

#[test]
fn what_never_got_a_lock_is_swept_but_not_in_its_first_moments() {
    let home = Home::new();
    let begun = home.store.shared.jobs.create_dir(&format!(".new-{ID}")).unwrap();
    assert_eq!(home.store.sweep_unborn().unwrap(), 0, "its maker is about to take one");
    grow_old(begun.path().as_path());
    assert_eq!(home.store.sweep_unborn().unwrap(), 1, "its maker died");
    assert_eq!(home.store.shared.jobs.names().unwrap(), [""; 0]);
}

#[test]
fn a_draft_is_nobodys_until_it_is_a_job_and_leaves_nothing_if_it_never_is() {
    let home = Home::new();
    let id: JobId = ID.parse().unwrap();
    let draft = home.store.draft(&id).unwrap();
    std::fs::create_dir(draft.job().path().join("base").as_path()).unwrap();
    assert!(matches!(home.store.draft(&id), Err(StoreError::JobExists { .. })));
    assert!(home.store.list(None, 10).unwrap().jobs.is_empty());
    grow_old(draft.job().path().as_path());
    assert_eq!(home.store.sweep_unborn().unwrap(), 0, "it is in the making");
    drop(draft);
    assert_eq!(home.store.shared.jobs.names().unwrap(), [""; 0]);

    let draft = home.store.draft(&id).unwrap();
    std::fs::create_dir(draft.job().path().join("base").as_path()).unwrap();
    let (job, _lock) = draft.create(&spec(ID)).unwrap();
    assert!(job.path().join("base").as_path().is_dir());
    assert_eq!(home.store.shared.jobs.names().unwrap(), [ID]);
}

#[test]
fn everything_is_private_from_its_creation_whatever_the_umask() {
    const NAME: &str = "store::tests::everything_is_private_from_its_creation_whatever_the_umask";
    if let Some(home) = fixture::given_home() {
        std::fs::write(home.join("control"), "").unwrap();
        let store = store(&home.join("deep/home"));
        let (_, lock) = store.create_job(&spec(ID)).unwrap();
        let _listener = crate::job_dir::socket::bind(&lock).unwrap();
        let mut journal = Journal::open(lock).unwrap();
        append(&mut journal, started());
        append(&mut journal, ended());
        for area in [Area::Trash, Area::Repositories, Area::Editors, Area::Applies, Area::Previews] {
            store.area(area).unwrap();
        }
        return;
    }
    for (umask, control) in [("000", 0o666), ("077", 0o600), ("277", 0o400)] {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        let done = fixture::child(NAME, dir.path(), Some(&script)).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&dir.path().join("control")), control, "the umask is in force");
        let mut seen = 0;
        let mut left = vec![dir.path().join("deep/home")];
        while let Some(path) = left.pop() {
            seen += 1;
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path), expected, "{} under {umask}", path.display());
            if path.is_dir() {
                left.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        assert_eq!(seen, 14, "home, format, jobs, five areas, the job and its five files");
    }
}

#[test]
fn homes_that_others_may_write_to_are_refused_and_readable_ones_made_private() {
    let dir = tempfile::tempdir().unwrap();
    let home = AbsPath::new(dir.path().join("home")).unwrap();
    std::fs::create_dir(&home).unwrap();
    let set = |mode| std::fs::set_permissions(&home, std::fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o777, 0o770, 0o702, 0o1777] {
        set(mode);
        let refused = Store::open(&home);
        assert!(matches!(refused, Err(StoreError::WritableByOthers { .. })), "{mode:o}: {refused:?}");
        assert!(std::fs::read_dir(&home).unwrap().next().is_none(), "nothing was put into it");
    }
    set(0o755);
    Store::open(&home).unwrap();
    assert_eq!(std::fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_linked_home_is_resolved_once() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap().join("real");
    store(&real);
    let link = dir.path().join("link");
    symlink(&real, &link).unwrap();
    let store = store(&link);
    assert_eq!(store.home().as_path(), real);
    let (job, _lock) = store.create_job(&spec(ID)).unwrap();
    std::fs::remove_file(&link).unwrap();
    store.state(job.id()).unwrap();
}

#[test]
fn homes_that_are_no_directory_of_ours_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| AbsPath::new(dir.path().join(name)).unwrap();
    std::fs::write(path("file"), "").unwrap();
    symlink(path("nowhere"), path("dangling")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, path("fifo").as_path(), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
    for name in ["file", "dangling", "fifo"] {
        let home = path(name);
        let refused = promptly(move || Store::open(&home).map(drop));
        let named = refused.as_ref().err().map(ToString::to_string).unwrap_or_default();
        assert!(named.contains(name), "{name}: {refused:?}");
    }
    let foreign = if root() {
        std::fs::create_dir(path("foreign")).unwrap();
        std::os::unix::fs::chown(path("foreign"), Some(1), None).unwrap();
        path("foreign")
    } else {
        AbsPath::new("/usr").unwrap()
    };
    let refused = Store::open(&foreign);
    assert!(matches!(refused, Err(StoreError::Disk(DiskError::ForeignOwner { .. }))), "{refused:?}");
}

#[test]
fn stores_of_a_newer_pactify_or_of_nobody_are_not_touched() {
    let home = Home::new();
    let path = home.store.home().join("format");
    for (text, code) in
        [("2\n", "storeNewer"), ("", "storeDamaged"), ("one\n", "storeDamaged"), ("0\n", "storeDamaged")]
    {
        std::fs::write(&path, text).unwrap();
        let error = Store::open(home.store.home()).unwrap_err();
        assert_eq!(pactify_core::Failure::from(error).code.as_str(), code, "{text:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    for impostor in Impostor::ALL {
        let home = Home::new();
        impostor.take_the_place_of(&home.store.home().join("format"));
        let path = home.store.home().clone();
        let refused = promptly(move || Store::open(&path).map(drop)).unwrap_err().to_string();
        assert!(refused.contains(impostor.called()), "{impostor:?}: {refused}");
    }
}

#[test]
fn a_link_in_place_of_the_jobs_or_of_one_job_is_not_followed() {
    let home = Home::new();
    let (job, lock) = home.job();
    drop(lock);
    let real = home.dir.path().join("elsewhere");
    std::fs::rename(job.path(), &real).unwrap();
    symlink(&real, job.path()).unwrap();
    let refused = home.store.job(job.id());
    assert!(matches!(refused, Err(StoreError::Disk(DiskError::WrongKind { found: Kind::Symlink, .. }))), "{refused:?}");
    let jobs = home.store.home().join("jobs");
    std::fs::rename(&jobs, home.dir.path().join("jobs")).unwrap();
    symlink(home.dir.path().join("jobs"), &jobs).unwrap();
    assert!(matches!(Store::open(home.store.home()), Err(StoreError::Disk(DiskError::WrongKind { .. }))));
}

#[test]
fn one_bad_job_never_hides_the_others() {
    let home = Home::new();
    let ids = ["20261129-154512-aaaaaa", "20261129-154513-aaaaaa", "20261129-154514-aaaaaa", "20261129-154515-aaaaaa"];
    for id in ids {
        let mut journal = Journal::open(home.store.create_job(&spec(id)).unwrap().1).unwrap();
        append(&mut journal, started());
        append(&mut journal, ended());
    }
    let file = |at: usize, name: &str| home.store.home().join("jobs").join(ids[at]).join(name);
    std::fs::remove_file(file(0, "summary.json")).unwrap();
    std::fs::remove_file(file(0, "events.jsonl")).unwrap();
    std::fs::write(file(1, "job.json"), r#"{"format":7}"#).unwrap();
    std::fs::remove_file(file(1, "summary.json")).unwrap();
    std::fs::write(file(2, "events.jsonl"), "{\"pactify\":\"journal\",\"format\":3}\n").unwrap();
    let page = home.store.list(None, 10).unwrap();
    match &page.jobs[..] {
        [
            Listed::Job { seen: SeenState::Finished, .. },
            Listed::Newer { format: 3, .. },
            Listed::Newer { format: 7, .. },
            Listed::Damaged { reason, .. },
        ] => assert!(reason.contains("missing"), "{reason}"),
        jobs => panic!("{jobs:?}"),
    }
}

#[test]
fn damage_shows_what_stands_before_it() {
    let home = Home::new();
    let (job, mut journal) = home.journal();
    [started(), message("one"), ended()].into_iter().for_each(|event| append(&mut journal, event));
    drop(journal);
    let text = std::fs::read_to_string(job.journal()).unwrap().replace("one", "two");
    std::fs::write(job.journal(), text + " ").unwrap();
    let listed = home.store.describe(job.id()).unwrap();
    let Some(Listed::Damaged { summary: Some(summary), reason, .. }) = listed else { panic!("{listed:?}") };
    assert!(reason.contains("line 3"), "{reason}");
    assert_eq!(summary.attempt, Some(AttemptNo::FIRST));
}

#[test]
fn what_stands_in_place_of_a_summary_is_not_followed_and_changes_nothing() {
    for impostor in Impostor::ALL {
        let home = Home::new();
        let (job, mut journal) = home.journal();
        append(&mut journal, started());
        let path = job.path().join("summary.json");
        let moved = path.as_path().with_extension("moved");
        impostor.take_the_place_of(&path);
        assert!(impostor.fools_a_plain_read(&path), "{impostor:?}");
        let kept = std::fs::read(&moved).unwrap();

        let fresh = store(home.store.home().as_path());
        let list = |store: &Store| {
            let store = store.clone();
            let listed = promptly(move || store.list(None, 10)).unwrap().jobs;
            match &listed[..] {
                [Listed::Job { seen, .. }] => *seen,
                listed => panic!("{impostor:?}: {listed:?}"),
            }
        };
        assert_eq!(
            (list(&fresh), fresh.journals_read()),
            (SeenState::Preparing, 1),
            "{impostor:?}: nobody believed it"
        );

        // The next one takes its place, but for a directory's, which stays where it is.
        promptly(move || append(&mut journal, ended()));
        assert_eq!(list(&fresh), SeenState::Finished, "{impostor:?}");
        assert_eq!(std::fs::read(&moved).unwrap(), kept, "{impostor:?}: what it led to is as it was");
        let is_ours = std::fs::symlink_metadata(&path).unwrap().is_file();
        assert_eq!(is_ours, !matches!(impostor, Impostor::Directory), "{impostor:?}");
        assert!(!job.path().join(".summary.json.new").as_path().exists(), "{impostor:?}");
    }
}

#[test]
fn ten_thousand_jobs_are_listed_without_reading_their_journals() {
    const JOBS: usize = 10_000;
    let home = Home::new();
    make_finished_jobs(&home.store, JOBS);

    let walk = |store: &Store| {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = store.list(after.as_ref(), 4000).unwrap();
            all.extend(page.jobs.into_iter().map(|job| match job {
                Listed::Job { summary, seen: SeenState::Finished } => summary,
                job => panic!("{job:?}"),
            }));
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    };
    let listed = walk(&home.store);
    assert_eq!(listed.len(), JOBS);
    assert!(listed.is_sorted_by(|a, b| a.id > b.id), "newest first");
    assert_eq!(home.store.journals_read(), 0);

    let file = |at: usize| home.store.home().join("jobs").join(listed[at].id.as_str()).join("summary.json");
    std::fs::remove_file(file(17)).unwrap();
    let text = std::fs::read_to_string(file(99)).unwrap();
    std::fs::write(file(99), text.replace("noChanges", "cancelled")).unwrap();
    let fresh = store(home.store.home().as_path());
    assert!(walk(&fresh) == listed, "deleting or corrupting a summary changes nothing");
    assert_eq!(fresh.journals_read(), 2);
}

/// Writes jobs as [`Store::create_job`] and a journal would, without waiting for the disk 50,000 times.
fn make_finished_jobs(store: &Store, count: usize) {
    let (id, lock) = store.create_job(&spec(ID)).map(|(job, lock)| (job.id().clone(), lock)).unwrap();
    let mut journal = Journal::open(lock).unwrap();
    [started(), ended()].into_iter().for_each(|event| append(&mut journal, event));
    let state: JobState = journal.state().clone();
    drop(journal);
    for second in 1..count {
        let (hours, rest) = (second / 3600, second % 3600);
        let mut spec = spec(ID);
        spec.id = format!("20261128-{hours:02}{:02}{:02}-aaaaaa", rest / 60, rest % 60).parse().unwrap();
        let dir = store.shared.jobs.create_dir(spec.id.as_str()).unwrap();
        let job = JobDir::new(spec.id.clone(), dir);
        std::fs::write(job.path().join("job.json"), serde_json::to_vec(&spec).unwrap()).unwrap();
        let mut bytes = journal::test_journal(&spec.id, [started(), ended()]);
        std::fs::write(job.journal(), &mut bytes).unwrap();
        let stamp = journal_stamp(&store.shared.jobs, &spec.id).unwrap();
        Summary::of(&spec, &state, stamp).write(&job).unwrap();
    }
    assert_eq!(store.state(&id).unwrap().state.seen(Host::Gone), SeenState::Finished);
    store.shared.journals_read.store(0, Ordering::Relaxed);
}

#[test]
fn a_job_that_stands_still_is_read_once() {
    let home = Home::new();
    let (job, mut journal) = home.journal();
    append(&mut journal, started());
    let first = home.store.state(job.id()).unwrap();
    assert!(Arc::ptr_eq(&first, &home.store.state(job.id()).unwrap()));
    assert_eq!(home.store.journals_read(), 1);
    append(&mut journal, ended());
    assert_eq!(home.store.state(job.id()).unwrap().state, *journal.state());
    assert_eq!(home.store.journals_read(), 2);

    let trash = home.store.area(Area::Trash).unwrap();
    std::fs::rename(job.path(), trash.path().as_path().join("gone")).unwrap();
    assert!(matches!(home.store.state(job.id()), Err(StoreError::JobNotFound { .. })));
}

#[test]
fn no_descriptor_is_kept_for_a_job_that_was_read() {
    let home = Home::new();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let ids: Vec<JobId> = (0..40)
        .map(|second| {
            let (job, lock) = home.store.create_job(&spec(&format!("20261129-1545{second:02}-aaaaaa"))).unwrap();
            drop(lock);
            job.id().clone()
        })
        .collect();
    let before = open();
    ids.iter().for_each(|id| drop(home.store.seen(id).unwrap()));
    // Other tests of this process may open a few meanwhile.
    assert!(open() < before + 20, "{before} grew to {}", open());
}

#[test]
fn a_home_may_be_made_by_many_at_once() {
    for _ in 0..50 {
        let dir = tempfile::tempdir().unwrap();
        let home = pactify_core::AbsPath::new(dir.path().canonicalize().unwrap().join("home")).unwrap();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let home = home.clone();
                std::thread::spawn(move || Store::open(&home).map(drop))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
    }
}
