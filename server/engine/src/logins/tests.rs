//! What becomes of logins on real files. The decisions themselves are tested where they are made.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use pactify_core::harness::codex::Codex;

use super::*;
use crate::process::{JobTree, Marker, Patience};
use crate::store::fixture::folder;

const OLD: &str = r#"{"access_token":"a1","refresh_token":"r1-0123456789"}"#;
const NEW: &str = r#"{"access_token":"a2","refresh_token":"r2-0123456789"}"#;
const NEWER: &str = r#"{"access_token":"a3","refresh_token":"r3-0123456789"}"#;
const TOMBSTONE: &str = r#"{"access_token":"","refresh_token":""}"#;

/// A person with a login, and a store.
struct World {
    _directory: tempfile::TempDir,
    root: AbsPath,
    logins: Logins,
    kind: LinkKind,
}

impl World {
    fn new(kind: LinkKind) -> Self {
        let (directory, root) = folder();
        let store = Store::open(&root.join("pactify")).unwrap();
        fs::create_dir_all(root.join("person").join("credentials").as_path()).unwrap();
        let logins = Logins::open(&store).unwrap();
        let world = Self { _directory: directory, root, logins, kind };
        world.write(OLD);
        world
    }

    fn login(&self) -> AbsPath {
        self.root.join("person").join("credentials").join("login.json")
    }

    fn write(&self, contents: &str) {
        fs::write(self.login().as_path(), contents).unwrap();
    }

    fn read(&self) -> String {
        fs::read_to_string(self.login().as_path()).unwrap()
    }

    /// A job with its home and its link, begun.
    fn job(&self, id: &str) -> (JobId, AbsPath) {
        let job: JobId = id.parse().unwrap();
        let home = self.root.join("pactify").join("jobs").join(id).join("home");
        fs::create_dir_all(home.as_path()).unwrap();
        let (at, target) = match self.kind {
            LinkKind::Directory => (home.join("credentials"), self.root.join("person").join("credentials")),
            _ => (home.join("login.json"), self.login()),
        };
        symlink(target.as_path(), at.as_path()).unwrap();
        let links = [PlannedLink { at, target, kind: self.kind }];
        let secrets = self.logins.begin(&job, &home, &Codex, &links).unwrap();
        assert!(secrets.iter().any(|secret| secret.starts_with('r')) || self.read() == TOMBSTONE, "{secrets:?}");
        (job, home)
    }

    fn end(&self, (job, home): &(JobId, AbsPath)) -> Vec<&'static str> {
        let patience = Patience { grace: Duration::ZERO, kill: Duration::from_secs(60) };
        let dead = JobTree::left_by(Marker::of(job), None, None).sweep(patience).unwrap();
        let told = self.logins.end(&dead, job, home, Timestamp::UNIX_EPOCH).unwrap();
        told.into_iter().map(|told| told.id).collect()
    }

    fn quarantined(&self) -> Vec<(String, String)> {
        let quarantine = Quarantine::open(&self.logins.store).unwrap();
        let read = |id: &str| String::from_utf8(quarantine.get(id).unwrap().1).unwrap();
        quarantine.list().unwrap().into_iter().map(|(id, _)| (id.clone(), read(&id))).collect()
    }

    /// What is left of uses: directories, without the locks.
    fn in_use(&self) -> usize {
        self.logins.area.names().unwrap().iter().filter(|name| !name.ends_with(".lock")).count()
    }
}

const FIRST: &str = "20261129-101112-aaaaaa";
const SECOND: &str = "20261129-101112-bbbbbb";

fn replace_link(home: &AbsPath, contents: &str) {
    let link = home.join("login.json");
    fs::remove_file(link.as_path()).unwrap();
    fs::write(link.as_path(), contents).unwrap();
}

#[test]
fn a_login_refreshed_in_the_jobs_home_is_written_back_and_only_over_what_was_there() {
    let world = World::new(LinkKind::ReplacedFile);
    fs::set_permissions(world.login().as_path(), fs::Permissions::from_mode(0o644)).unwrap();
    let job = world.job(FIRST);
    replace_link(&job.1, NEW);
    assert_eq!(world.read(), OLD, "without us, the person is left with the spent one");
    assert_eq!(world.end(&job), ["loginWrittenBack"]);
    assert_eq!(world.read(), NEW);
    assert_eq!(fs::metadata(world.login().as_path()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!((world.in_use(), world.quarantined().len()), (0, 0));
    assert_eq!(
        fs::read_dir(world.root.join("person").join("credentials").as_path()).unwrap().count(),
        1,
        "nothing is left beside"
    );

    let job = world.job(SECOND);
    replace_link(&job.1, NEWER);
    let own = r#"{"refresh_token":"the person logged in again"}"#;
    world.write(own);
    assert_eq!(world.end(&job), ["loginQuarantined"]);
    assert_eq!(world.read(), own, "a newer login of the person is never overwritten");
    let kept = world.quarantined();
    assert_eq!(kept[0], (format!("19700101T000000Z-{SECOND}-codex"), NEWER.to_owned()));
    let folder = world.root.join("pactify").join("credential-quarantine");
    assert_eq!(fs::metadata(folder.as_path()).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in fs::read_dir(folder.as_path()).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    let (login, replaced) = world.logins.restore(&kept[0].0, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!((login, world.read().as_str()), (world.login(), NEWER));
    let kept = world.quarantined();
    assert_eq!((Some(&kept[0].0), kept[0].1.as_str()), (replaced.as_ref(), own), "what it replaced is kept in turn");
    for id in ["", "..", "../jobs/x", "a/b", &"a".repeat(200), "20261129"] {
        assert!(
            matches!(world.logins.restore(id, Timestamp::UNIX_EPOCH), Err(LoginError::NotQuarantined { .. })),
            "{id}"
        );
    }
}

#[test]
fn a_refresh_in_a_linked_folder_is_where_it_belongs_and_one_beside_it_is_brought_there() {
    let world = World::new(LinkKind::Directory);
    let job = world.job(FIRST);
    fs::write(job.1.join("credentials").join("login.json").as_path(), NEW).unwrap();
    assert_eq!((world.end(&job), world.read().as_str()), (vec![], NEW));

    let job = world.job(SECOND);
    fs::remove_file(job.1.join("credentials").as_path()).unwrap();
    fs::create_dir(job.1.join("credentials").as_path()).unwrap();
    fs::write(job.1.join("credentials").join("login.json").as_path(), NEWER).unwrap();
    fs::write(job.1.join("credentials").join("other.json").as_path(), NEWER).unwrap();
    assert_eq!((world.end(&job), world.read().as_str()), (vec!["loginWrittenBack"], NEWER));
    assert_eq!(fs::read_dir(world.root.join("person").join("credentials").as_path()).unwrap().count(), 1);
}

#[test]
fn an_emptied_login_comes_back_and_the_last_job_takes_the_copy_away() {
    let world = World::new(LinkKind::Directory);
    let (first, second) = (world.job(FIRST), world.job(SECOND));
    // Measured of kimi: a refresh that is refused leaves this, through the link.
    fs::write(first.1.join("credentials").join("login.json").as_path(), TOMBSTONE).unwrap();
    assert_eq!(world.read(), TOMBSTONE, "without us, the person is logged out");
    assert_eq!((world.end(&first), world.read().as_str()), (vec!["loginRestored"], OLD));
    assert_eq!(world.in_use(), 1, "the second job still uses it");

    fs::write(second.1.join("credentials").join("login.json").as_path(), TOMBSTONE).unwrap();
    assert_eq!((world.end(&second), world.read().as_str()), (vec!["loginRestored"], OLD));
    assert_eq!(world.in_use(), 0);

    // A good one that replaced it meanwhile stays.
    let job = world.job("20261129-101112-cccccc");
    world.write(NEW);
    assert_eq!((world.end(&job), world.read().as_str()), (vec![], NEW));
    // One that was empty before is the person's business.
    world.write(TOMBSTONE);
    let job = world.job("20261129-101112-dddddd");
    assert_eq!((world.end(&job), world.read().as_str()), (vec![], TOMBSTONE));
}

#[test]
fn two_jobs_that_refresh_one_login_lose_neither() {
    let world = World::new(LinkKind::ReplacedFile);
    let (first, second) = (world.job(FIRST), world.job(SECOND));
    replace_link(&first.1, NEW);
    replace_link(&second.1, NEWER);
    let ended: Vec<_> = std::thread::scope(|scope| {
        let threads = [&first, &second].map(|job| scope.spawn(|| world.end(job)));
        threads.map(|thread| thread.join().unwrap()).into_iter().flatten().collect()
    });
    let mut sorted = ended.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["loginQuarantined", "loginWrittenBack"]);
    let mut both = vec![world.read(), world.quarantined().remove(0).1];
    both.sort();
    assert_eq!(both, [NEW, NEWER]);
    assert_eq!(world.in_use(), 0);
}

#[test]
fn nothing_that_a_job_left_in_place_of_its_link_is_followed_or_believed() {
    type Leave = fn(&AbsPath, &AbsPath);
    let leave: [(&str, Leave); 6] = [
        ("a pipe", |link, _| {
            rustix::fs::mknodat(rustix::fs::CWD, link.as_path(), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap()
        }),
        ("a link to another secret", |link, secret| symlink(secret.as_path(), link.as_path()).unwrap()),
        ("another name of a secret", |link, secret| fs::hard_link(secret.as_path(), link.as_path()).unwrap()),
        ("a directory", |link, _| fs::create_dir(link.as_path()).unwrap()),
        ("a huge file", |link, _| fs::File::create(link.as_path()).unwrap().set_len(MAX_BYTES + 1).unwrap()),
        ("a socket", |link, _| drop(std::os::unix::net::UnixListener::bind(link.as_path()).unwrap())),
    ];
    for (what, leave) in leave {
        let world = World::new(LinkKind::ReplacedFile);
        let secret = world.root.join("secret.json");
        fs::write(secret.as_path(), NEWER).unwrap();
        let job = world.job(FIRST);
        let link = job.1.join("login.json");
        fs::remove_file(link.as_path()).unwrap();
        leave(&link, &secret);
        assert_eq!(world.end(&job), ["loginOdd"], "{what}");
        assert_eq!((world.read().as_str(), world.quarantined().len(), world.in_use()), (OLD, 0, 0), "{what}");
    }
    // The home itself led elsewhere.
    let world = World::new(LinkKind::ReplacedFile);
    let job = world.job(FIRST);
    fs::create_dir(world.root.join("evil").as_path()).unwrap();
    fs::write(world.root.join("evil").join("login.json").as_path(), NEWER).unwrap();
    fs::rename(job.1.as_path(), world.root.join("moved").as_path()).unwrap();
    symlink(world.root.join("evil").as_path(), job.1.as_path()).unwrap();
    assert_eq!((world.end(&job), world.read().as_str()), (vec!["loginOdd"], OLD));
}

#[test]
fn a_folder_that_was_swapped_gets_nothing() {
    let world = World::new(LinkKind::ReplacedFile);
    let job = world.job(FIRST);
    replace_link(&job.1, NEW);
    let (folder, aside) = (world.root.join("person").join("credentials"), world.root.join("aside"));
    fs::rename(folder.as_path(), aside.as_path()).unwrap();
    fs::create_dir(folder.as_path()).unwrap();
    world.write(OLD);
    assert_eq!((world.end(&job), world.read().as_str()), (vec!["loginQuarantined"], OLD));
}

#[test]
fn a_login_that_cannot_be_looked_at_stays_in_use_and_is_told_of() {
    let world = World::new(LinkKind::ReplacedFile);
    let job = world.job(FIRST);
    replace_link(&job.1, NEW);
    let (folder, aside) = (world.root.join("person").join("credentials"), world.root.join("aside"));
    fs::rename(folder.as_path(), aside.as_path()).unwrap();
    assert_eq!((world.end(&job), world.in_use()), (vec!["loginUnsettled"], 1));
    fs::rename(aside.as_path(), folder.as_path()).unwrap();
    assert_eq!((world.end(&job), world.read().as_str(), world.in_use()), (vec!["loginWrittenBack"], NEW, 0));
}

#[test]
fn what_stays_unsettled_is_kept_apart_before_the_home_goes() {
    let world = World::new(LinkKind::ReplacedFile);
    let late = |(job, home): &(JobId, AbsPath)| {
        let told = world.logins.settle_late(job, home, Timestamp::UNIX_EPOCH)?;
        Ok::<_, LoginError>(told.into_iter().map(|told| told.id).collect::<Vec<_>>())
    };
    let job = world.job(FIRST);
    replace_link(&job.1, NEW);
    let (folder, aside) = (world.root.join("person").join("credentials"), world.root.join("aside"));
    fs::rename(folder.as_path(), aside.as_path()).unwrap();
    assert_eq!(world.end(&job), ["loginUnsettled"]);
    assert_eq!(late(&job).unwrap(), ["loginQuarantined", "loginQuarantined"]);
    let kept: Vec<_> = world.quarantined().into_iter().map(|(_, contents)| contents).collect();
    assert_eq!((kept, world.in_use()), (vec![NEW.to_owned(), OLD.to_owned()], 0), "the refreshed one, and the backup");

    fs::rename(aside.as_path(), folder.as_path()).unwrap();
    let job = world.job(SECOND);
    replace_link(&job.1, NEWER);
    assert_eq!(late(&job).unwrap(), ["loginWrittenBack"], "what can be settled is");
    assert_eq!((world.read().as_str(), late(&job).unwrap()), (NEWER, vec![]));
}

#[test]
fn a_write_meets_only_what_was_seen() {
    let world = World::new(LinkKind::ReplacedFile);
    let place = Place::open(&world.login()).unwrap();
    let none: place::Keep<'_> = &|bytes| panic!("{} stood beside", String::from_utf8_lossy(bytes));
    for seen in [Some(NEWER), Some(""), None] {
        let put = place.put(NEW.as_bytes(), seen.map(str::as_bytes), none);
        assert!(matches!(put, Err(LoginError::Raced { .. })), "{seen:?}: {put:?}");
        assert_eq!(world.read(), OLD);
    }
    place.put(NEW.as_bytes(), Some(OLD.as_bytes()), none).unwrap();
    fs::remove_file(world.login().as_path()).unwrap();
    assert!(matches!(place.put(OLD.as_bytes(), Some(NEW.as_bytes()), none), Err(LoginError::Raced { .. })));
    place.put(OLD.as_bytes(), None, none).unwrap();
    assert_eq!(world.read(), OLD);
}

#[test]
fn what_stands_beside_a_login_is_kept_before_it_goes() {
    for (beside, quarantined) in [(NEWER, 1), (TOMBSTONE, 1), (NEW, 0), (OLD, 0)] {
        let world = World::new(LinkKind::ReplacedFile);
        let path = world.root.join("person").join("credentials").join(".login.json.pactify");
        // What is there after two exchanges, when a newer login came between them.
        fs::write(path.as_path(), beside).unwrap();
        let job = world.job(FIRST);
        replace_link(&job.1, NEW);
        assert_eq!((world.end(&job), world.read().as_str()), (vec!["loginWrittenBack"], NEW));
        assert!(!path.as_path().exists());
        let kept = world.quarantined();
        assert_eq!(kept.len(), quarantined, "{beside}");
        assert!(kept.iter().all(|(_, contents)| contents == beside));
    }
    // What cannot be read stays, and nothing is written.
    let world = World::new(LinkKind::ReplacedFile);
    let path = world.root.join("person").join("credentials").join(".login.json.pactify");
    symlink("elsewhere", path.as_path()).unwrap();
    let job = world.job(FIRST);
    replace_link(&job.1, NEW);
    assert_eq!((world.end(&job), world.read().as_str()), (vec!["loginQuarantined"], OLD));
    assert!(path.as_path().is_symlink());
}
