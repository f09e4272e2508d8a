//! What is believed of an area, and of what stands in its place.

use std::time::{Duration, Instant};

use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};

use super::*;
use crate::disk::Dir;
use crate::store::fixture::{self, Home, Impostor, promptly, store};

fn names(store: &Store) -> Arc<[String]> {
    store.names_in(Area::Applies, "intent").unwrap()
}

/// Lists the area until it is believed to stand still: until that takes no listing.
fn settled(store: &Store) -> Arc<[String]> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let listed = names(store);
        if Arc::ptr_eq(&listed, &names(store)) {
            return listed;
        }
        assert!(Instant::now() < deadline, "it is never believed");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Gives a directory the modification time that it had long ago: who sets that back still changes the other one.
fn set_back(directory: &Dir) {
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps { last_access: omit, last_modification: Timespec { tv_sec: 1, tv_nsec: 0 } };
    rustix::fs::futimens(directory, &times).unwrap();
}

#[test]
fn an_area_is_listed_anew_only_when_it_changed() {
    let home = Home::new();
    assert!(names(&home.store).is_empty());
    let made = home.store.shared.home.lookup(Area::Applies.name()).unwrap();
    assert_eq!(made.map(|_| ()), None, "looking makes nothing");
    let area = home.store.area(Area::Applies).unwrap();
    let begun = Instant::now();
    area.write_new("one.intent", b"").unwrap();
    area.write_new("two.done", b"").unwrap();
    area.write_new("intent", b"").unwrap();
    assert_eq!(*names(&home.store), ["one.intent"]);
    let again = Arc::ptr_eq(&names(&home.store), &names(&home.store));
    let is_settled = begun.elapsed() >= Duration::from_secs(TICK.unsigned_abs());
    assert!(!again || is_settled, "it changed just now: a second change could have the same time");

    assert_eq!(*settled(&home.store), ["one.intent"]);
    area.write_new("three.intent", b"").unwrap();
    set_back(&area);
    let mut now = names(&home.store).to_vec();
    now.sort();
    assert_eq!(now, ["one.intent", "three.intent"]);
}

#[test]
fn what_another_process_does_is_seen_at_once() {
    const NAME: &str = "store::area::tests::what_another_process_does_is_seen_at_once";
    if let Some(home) = fixture::given_home() {
        let area = store(&home).area(Area::Applies).unwrap();
        area.remove("one.intent").unwrap();
        area.write_new("two.intent", b"").unwrap();
        set_back(&area);
        return;
    }
    let home = Home::new();
    let area = home.store.area(Area::Applies).unwrap();
    area.write_new("one.intent", b"").unwrap();
    assert_eq!(*settled(&home.store), ["one.intent"]);
    let done = fixture::child(NAME, home.store.home().as_path(), None).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(*names(&home.store), ["two.intent"]);
}

#[test]
fn another_directory_in_the_place_of_one_that_stood_still_is_another_one() {
    let home = Home::new();
    let applies = home.store.home().join(Area::Applies.name());
    let (aside, other) = (home.store.home().join("aside"), home.store.home().join("other"));
    home.store.area(Area::Applies).unwrap().write_new("one.intent", b"").unwrap();
    assert_eq!(*settled(&home.store), ["one.intent"]);

    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("other.intent"), "").unwrap();
    std::fs::rename(&applies, &aside).unwrap();
    assert!(names(&home.store).is_empty(), "there is none");
    std::fs::rename(&other, &applies).unwrap();
    assert_eq!(*names(&home.store), ["other.intent"]);
    assert_eq!(*settled(&home.store), ["other.intent"]);

    std::fs::rename(&applies, &other).unwrap();
    std::fs::rename(&aside, &applies).unwrap();
    assert_eq!(*names(&home.store), ["one.intent"]);
}

#[test]
fn what_stands_in_the_place_of_an_area_is_neither_followed_nor_waited_for() {
    for impostor in Impostor::ALL.into_iter().filter(|impostor| !matches!(impostor, Impostor::Directory)) {
        for is_known in [false, true] {
            let home = Home::new();
            let area = home.store.area(Area::Applies).unwrap();
            area.write_new("one.intent", b"").unwrap();
            if is_known {
                settled(&home.store);
            }
            impostor.take_the_place_of(area.path());
            let store = home.store.clone();
            let refused = promptly(move || store.names_in(Area::Applies, "intent")).unwrap_err().to_string();
            let named = refused.contains(area.path().as_path().to_str().unwrap());
            assert!(named && refused.contains(impostor.called()), "{impostor:?}: {refused}");
        }
    }
}

#[test]
fn a_time_of_the_future_settles_nothing() {
    let stamp = |second| Stamp { file: FileId { device: 0, inode: 0 }, changed: [second, 0, second, 0] };
    assert!(stamp(1_000).is_settled(1_003));
    for (changed, now) in [(1_000, 1_002), (1_000, 1_000), (1_000, 10), (i64::MAX, 1_000)] {
        assert!(!stamp(changed).is_settled(now), "{changed} at {now}");
    }
}
