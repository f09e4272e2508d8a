//! A job that is made while the disk fills up: a small tmpfs in a mount namespace of the test's own.

use std::path::{Path, PathBuf};

use pactify_core::FailureCode;

use super::*;

/// What a full disk has no more of.
#[derive(Clone, Copy, Debug)]
enum Of {
    Files,
    Bytes,
}

const PAGE: u64 = 4096;

#[test]
fn a_job_for_which_there_is_no_room_leaves_nothing_and_says_so() {
    const NAME: &str = "store::tests::space::a_job_for_which_there_is_no_room_leaves_nothing_and_says_so";
    let Some(disk) = fixture::given_home() else {
        fixture::on_a_small_disk(NAME, "size=2m,nr_inodes=64");
        return;
    };
    let store = store(&disk.join("home"));
    // The directory, its lock, the spec, the journal.
    assert_eq!(refusals(&store, &disk, Of::Files, ID), 4);
    // The spec and the journal: a directory and an empty file take no page.
    assert_eq!(refusals(&store, &disk, Of::Bytes, "20261129-154512-bbbbbb"), 2);
}

/// Makes a job with room for nothing, then for one thing more each time; returns how often it was refused.
fn refusals(store: &Store, disk: &Path, of: Of, id: &str) -> u64 {
    let mut filler = Filler::fill(disk, of);
    let there = store.shared.jobs.names().unwrap();
    for refused in 0.. {
        let failure = match store.create_job(&spec(id)) {
            Ok((job, lock)) => {
                drop(lock);
                store.seen(job.id()).unwrap();
                filler.empty();
                return refused;
            }
            Err(error) => pactify_core::Failure::from(error),
        };
        assert_eq!(failure.code, FailureCode::NoSpace, "{of:?} {refused}: {failure:?}");
        let named = failure.message.contains(&format!("{}/.new-{id}", store.jobs()));
        assert!(named && failure.next.contains("free some space"), "{of:?} {refused}: {failure:?}");
        assert_eq!(store.shared.jobs.names().unwrap(), there, "{of:?} {refused}: something of it is left");
        filler.give_back_one();
    }
    unreachable!("there is room for a job in the end");
}

/// What takes the room.
struct Filler {
    of: Of,
    file: PathBuf,
    count: u64,
}

impl Filler {
    fn fill(disk: &Path, of: Of) -> Self {
        let file = disk.join("filler");
        let count = match of {
            Of::Files => (0..).take_while(|at| std::fs::write(file.with_extension(at.to_string()), "").is_ok()).count(),
            Of::Bytes => {
                fixture::fill(disk);
                std::fs::metadata(&file).unwrap().len().div_euclid(PAGE) as usize
            }
        };
        assert!(count > 8, "{of:?}: {count}");
        Self { of, file, count: count as u64 }
    }

    fn give_back_one(&mut self) {
        self.count -= 1;
        match self.of {
            Of::Files => std::fs::remove_file(self.file.with_extension(self.count.to_string())).unwrap(),
            Of::Bytes => {
                let file = std::fs::File::options().write(true).open(&self.file).unwrap();
                file.set_len(self.count * PAGE).unwrap();
            }
        }
    }

    fn empty(&mut self) {
        while self.count > 0 {
            self.give_back_one();
        }
    }
}
