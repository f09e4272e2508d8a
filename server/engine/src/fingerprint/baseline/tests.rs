//! The baseline against real files. The test's clock runs an hour ahead where files are to look settled, and an hour
//! late where they are to look just written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::*;
use crate::env::{Clock, Directories, ManualClock, Variables};

struct Checkout {
    folder: tempfile::TempDir,
}

/// When the baseline is taken, compared with the files' last change.
#[derive(Clone, Copy)]
enum When {
    AtOnce,
    Later,
}

impl Checkout {
    fn new() -> Self {
        let this = Self { folder: tempfile::tempdir().unwrap() };
        for (name, text) in [("a", "one\n"), ("dir/b", "two\n"), ("ignored/c", "three\n"), (".git/config", "x")] {
            this.write(name, text);
        }
        symlink("a", this.at("link")).unwrap();
        this
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("checkout").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), text).unwrap();
    }

    fn top(&self) -> AbsPath {
        AbsPath::new(self.folder.path().join("checkout")).unwrap()
    }
}

fn env(when: When) -> Env {
    let env = Env::from_values(Variables::new(), Directories::under(&AbsPath::new("/nowhere").unwrap()));
    let hours = match when {
        When::AtOnce => -1,
        When::Later => 1,
    };
    let shown = env.now().checked_add(jiff::Span::new().hours(hours)).unwrap();
    env.with_clock(Clock::Manual(ManualClock::at(shown)))
}

/// What a comparison finds after `change`: `changed`, then `~touched`.
fn found(when: When, change: impl Fn(&Checkout)) -> Vec<String> {
    let checkout = Checkout::new();
    let env = env(when);
    let baseline = Baseline::take(&env, &checkout.top()).unwrap();
    change(&checkout);
    let Comparison { changed, touched, more } = baseline.compare(&env, |_| None).unwrap();
    assert_eq!(more, 0);
    changed.into_iter().chain(touched.into_iter().map(|path| format!("~{path}"))).collect()
}

#[test]
fn nothing_changed_is_nothing_found_and_git_is_left_out() {
    for when in [When::AtOnce, When::Later] {
        assert_eq!(found(when, |_| {}), Vec::<String>::new());
        assert_eq!(found(when, |checkout| checkout.write(".git/config", "other")), Vec::<String>::new());
    }
}

#[test]
fn every_kind_of_change_is_named_wherever_it_is() {
    type Change = fn(&Checkout);
    let cases: &[(Change, &[&str])] = &[
        (|checkout| checkout.write("new/file", ""), &["new/file: is new", "new: is new"]),
        (|checkout| checkout.write("a", "longer than before\n"), &["a: has another content"]),
        (|checkout| checkout.write("ignored/c", "longer\n"), &["ignored/c: has another content"]),
        (|checkout| fs::remove_file(checkout.at("dir/b")).unwrap(), &["dir/b: is gone"]),
        (
            |checkout| fs::set_permissions(checkout.at("a"), fs::Permissions::from_mode(0o755)).unwrap(),
            &["a: has another mode"],
        ),
        (
            |checkout| {
                fs::remove_file(checkout.at("a")).unwrap();
                symlink("dir/b", checkout.at("a")).unwrap();
            },
            &["a: is of another kind"],
        ),
        (
            |checkout| {
                fs::remove_file(checkout.at("a")).unwrap();
                let mode = Mode::RUSR | Mode::WUSR;
                rustix::fs::mknodat(rustix::fs::CWD, checkout.at("a"), FileType::Fifo, mode, 0).unwrap();
            },
            &["a: is of another kind"],
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(found(When::Later, change), *expected);
        assert_eq!(found(When::AtOnce, change), *expected);
    }
}

/// The same size and the same modification time: what `rsync -t`, or somebody with something to hide, would leave.
fn rewrite_in_place(path: &Path, text: &str) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, text).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn a_forged_modification_time_hides_nothing() {
    let forge = |checkout: &Checkout| rewrite_in_place(&checkout.at("a"), "TWO\n");
    assert_eq!(found(When::AtOnce, forge), ["a: has another content"]);
    assert_eq!(found(When::Later, forge), ["a: was written to, and its content is unknown"]);
}

#[test]
fn the_same_content_is_only_touched_where_that_is_known() {
    let touch = |checkout: &Checkout| fs::write(checkout.at("a"), "one\n").unwrap();
    assert_eq!(found(When::AtOnce, touch), ["~a"]);
    assert_eq!(found(When::Later, touch), ["a: was written to, and its content is unknown"]);

    let checkout = Checkout::new();
    let env = env(When::Later);
    let baseline = Baseline::take(&env, &checkout.top()).unwrap();
    fs::write(checkout.at("a"), "one\n").unwrap();
    fs::write(checkout.at("dir/b"), "TWO\n").unwrap();
    let index: BTreeMap<&[u8], ObjectId> =
        [(&b"a"[..], Algorithm::Sha1.blob(b"one\n")), (b"dir/b", Algorithm::Sha256.blob(b"two\n"))].into();
    let compared = baseline.compare(&env, |path| index.get(path).cloned()).unwrap();
    assert_eq!((compared.changed, compared.touched), (vec!["dir/b: has another content".into()], vec!["a".into()]));
}

#[test]
fn what_cannot_be_known_is_never_unchanged() {
    let checkout = Checkout::new();
    let env = env(When::Later);
    let baseline = Baseline::take(&env, &checkout.top()).unwrap();

    let other = super::tests::env(When::AtOnce);
    assert!(matches!(baseline.compare(&other, |_| None), Err(BaselineError::ClockStepped)));

    let (here, aside) = (checkout.folder.path().join("checkout"), checkout.folder.path().join("aside"));
    fs::rename(&here, &aside).unwrap();
    assert!(matches!(baseline.compare(&env, |_| None), Err(BaselineError::Replaced { .. })));
    symlink(&aside, &here).unwrap();
    assert!(matches!(baseline.compare(&env, |_| None), Err(BaselineError::Replaced { .. })));
    fs::remove_file(&here).unwrap();
    fs::rename(&aside, &here).unwrap();
    assert!(baseline.compare(&env, |_| None).unwrap().is_unchanged());
}

#[test]
fn a_recovery_compares_with_what_was_written_down() {
    for when in [When::AtOnce, When::Later] {
        let checkout = Checkout::new();
        let env = env(when);
        let bytes = Baseline::take(&env, &checkout.top()).unwrap().to_bytes().unwrap();
        let read = || Baseline::from_bytes(&bytes).unwrap();
        assert!(read().compare(&env, |_| None).unwrap().is_unchanged());
        rewrite_in_place(&checkout.at("a"), "TWO\n");
        checkout.write("new", "");
        let changed = read().compare(&env, |_| None).unwrap().changed;
        assert!(changed.len() == 2 && changed[0].starts_with("a: ") && changed[1] == "new: is new", "{changed:?}");
        for cut in (0..bytes.len()).step_by(7) {
            assert!(Baseline::from_bytes(&bytes[..cut]).is_none(), "cut at {cut}");
        }
        assert!(Baseline::from_bytes(&[&bytes[..], b"x"].concat()).is_none());
    }
}

#[test]
fn a_git_file_is_guarded_like_any_other() {
    let change = |checkout: &Checkout| checkout.write(".git", "gitdir: /elsewhere\n");
    let checkout = Checkout::new();
    fs::remove_dir_all(checkout.at(".git")).unwrap();
    checkout.write(".git", "gitdir: /here\n");
    let env = env(When::Later);
    let baseline = Baseline::take(&env, &checkout.top()).unwrap();
    change(&checkout);
    assert_eq!(baseline.compare(&env, |_| None).unwrap().changed, [".git: has another content"]);
}
