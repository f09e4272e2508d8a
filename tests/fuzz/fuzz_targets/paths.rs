//! Whatever a tree calls its entries: a path leads back to its bytes, is fit to be shown, and is writable only if no
//! file system could take it for something else. Links that stay inside do so by a second reckoning.

#![no_main]

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use libfuzzer_sys::fuzz_target;
use pactify_core::path::rules::{WritablePath, folded, link_stays_inside};
use pactify_core::path::{PathName, RepoPath};
use pactify_core::protocol::view::{file_uri, path_of_uri};
use pactify_core::{AbsPath, change, display};

fuzz_target!(|input: (&[u8], &[u8])| {
    let (bytes, other) = input;
    if let Ok(path) = RepoPath::new(bytes) {
        leads_back(&path);
        folds(&path);
        if link_stays_inside(&path, other) {
            stays_inside(&path, other);
        }
        if let Ok(writable) = WritablePath::check(path) {
            is_harmless(writable.path());
        }
    }
    if let Ok(path) = AbsPath::new(OsString::from_vec([b"/", bytes].concat())) {
        assert_eq!(path_of_uri(&file_uri(path.as_path())).as_ref(), (!bytes.contains(&0)).then_some(&path));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Some(path) = path_of_uri(text) {
            assert!(!path.as_path().as_os_str().as_bytes().contains(&0));
        }
        let name = PathName { path: String::new(), path_bytes: Some(text.to_owned()) };
        if let Ok(path) = RepoPath::try_from(name) {
            leads_back(&path);
        }
        assert!(!display::neutral(text).chars().any(char::is_control));
    }
});

fn leads_back(path: &RepoPath) {
    let name = PathName::from(path.clone());
    assert!(!name.path.chars().any(char::is_control), "{name:?}");
    let text = serde_json::to_string(&name).unwrap();
    assert_eq!(&RepoPath::try_from(serde_json::from_str::<PathName>(&text).unwrap()).unwrap(), path);
    assert_eq!(path.components().collect::<Vec<_>>().join(&b'/'), path.as_bytes());
    assert!(path.components().all(|part| !matches!(part, b"" | b"." | b"..")));
    assert_eq!(path.ancestors().last(), path.parent());
    let _ = change::sensitive::tier(path);
}

fn folds(path: &RepoPath) {
    let lower = RepoPath::new(path.as_bytes().to_ascii_lowercase()).unwrap();
    assert_eq!(folded(path), folded(&lower), "case alone makes no other name");
}

fn is_harmless(path: &RepoPath) {
    for part in path.components() {
        let last = part.last().unwrap();
        assert!(part.len() <= 255 && !matches!(last, b'.' | b' '));
        assert!(!part.iter().any(|byte| byte.is_ascii_control() || matches!(byte, b'\\' | b':' | b'/')));
        let lower = part.to_ascii_lowercase();
        assert!(lower != b".git" && !lower.starts_with(b"git~1"));
        let visible: String = String::from_utf8_lossy(&lower)
            .chars()
            .filter(|c| !matches!(c, '\u{200c}' | '\u{200d}' | '\u{feff}'))
            .collect();
        assert_ne!(visible, ".git");
    }
}

fn stays_inside(path: &RepoPath, target: &[u8]) {
    let mut depth = path.components().count() - 1;
    assert!(!target.starts_with(b"/"));
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => depth = depth.checked_sub(1).expect("above the top of the checkout"),
            name => {
                assert!(!name.eq_ignore_ascii_case(b".git"), "into git's own directory");
                depth += 1;
            }
        }
    }
}
