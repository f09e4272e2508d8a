//! Values of the house as wire shapes: pure conversions, used by every front end.

use std::fmt::Write as _;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use super::{ApplyView, JobDetail, JobSummary, VerificationView, WaitingView, words};
use crate::AbsPath;
use crate::display::{counted, neutral, neutral_block, one_line};
use crate::job::JobSpec;
use crate::job::state::{JobState, SeenState, Verification, Waiting, WrittenApply};
use crate::permission::PermissionOption;

/// What RFC 3986 leaves unescaped in a path.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@').remove(b'+');

/// The longest title of a request, in characters: none that is recorded is longer.
const TITLE_MAX: usize = 400;

/// The `file:` URI of an absolute path.
pub fn file_uri(path: &Path) -> String {
    format!("file://{}", percent_encode(path.as_os_str().as_encoded_bytes(), PATH))
}

/// The absolute path behind a `file:` URI; `None` for another scheme, a foreign host or a relative path.
pub fn path_of_uri(uri: &str) -> Option<AbsPath> {
    use std::os::unix::ffi::OsStringExt as _;
    let rest = uri.strip_prefix("file://")?;
    let encoded = rest.strip_prefix("localhost").unwrap_or(rest);
    let encoded = encoded.split(['?', '#']).next()?;
    let bytes: Vec<u8> = percent_decode_str(encoded).collect();
    if bytes.contains(&0) {
        return None;
    }
    AbsPath::new(std::ffi::OsString::from_vec(bytes)).ok()
}

/// One job, whole: its summary and what only its spec and state tell.
pub fn detail(summary: JobSummary, spec: &JobSpec, state: &JobState) -> JobDetail {
    let attempt = state.attempt.as_ref();
    let ended = state.ended();
    let mut detail = JobDetail {
        summary,
        brief: spec.brief.as_str().to_owned(),
        with_user_config: spec.with_user_config,
        worktree: state.tree.as_ref().map(|tree| file_uri(tree.path.as_path())),
        only_in_tree: Vec::new(),
        session: attempt.and_then(|attempt| attempt.session.clone()),
        harness_version: attempt.and_then(|attempt| attempt.harness_version.clone()),
        actual_model: attempt.and_then(|attempt| attempt.actual_model.clone()),
        attempt: attempt.map(|attempt| attempt.number.get()),
        change_set: state.result.as_ref().map(|result| result.change_set.to_string()),
        final_message: ended.and_then(|ended| ended.final_message.clone()),
        verification: state.verification.iter().map(verification).collect(),
        checkout_changes: state.checkout_changes.clone(),
        checkout_changes_more: state.checkout_changes_more,
        requests: attempt.into_iter().flat_map(|attempt| &attempt.waiting).map(waiting).collect(),
        error: ended.and_then(|ended| ended.failure.clone()),
        outside: state.outside_changes(),
        applies: state.applies.written().iter().map(apply).collect(),
        ending: None,
    };
    if matches!(detail.summary.state, SeenState::Finished | SeenState::Lost) {
        detail.ending = Some(words::ending(&detail));
    }
    detail
}

fn apply(apply: &WrittenApply) -> ApplyView {
    let WrittenApply { number, at, paths, paths_more, undone } = apply;
    let paths = paths.iter().map(|path| neutral(path).into_owned()).collect();
    ApplyView { apply: *number, at: *at, paths, paths_more: *paths_more, undone: *undone }
}

fn verification(verification: &Verification) -> VerificationView {
    let Verification { command, passed, exit_code, tail } = verification;
    let tail = neutral_block(tail).into_owned();
    VerificationView { command: neutral(command).into_owned(), passed: *passed, exit_code: *exit_code, tail }
}

/// An open permission request. Its ids are the harness's, and stay what they are; what is shown is neutralised.
pub fn waiting(waiting: &Waiting) -> WaitingView {
    let option =
        |option: &PermissionOption| PermissionOption { name: neutral(&option.name).into_owned(), ..option.clone() };
    WaitingView {
        request_id: waiting.request.clone(),
        title: one_line(&waiting.title, TITLE_MAX),
        detail: waiting.detail.as_deref().map(|detail| neutral_block(detail).into_owned()),
        since: waiting.since,
        options: waiting.options.iter().map(option).collect(),
    }
}

/// How a progress line counts changes: `3 files, +10 −2`.
pub fn totals_line(totals: crate::change::Totals) -> String {
    let mut line = format!("{}, +{} −{}", counted(totals.files, "file"), totals.added, totals.deleted);
    if totals.sensitive > 0 {
        let _ = write!(line, ", {} sensitive", totals.sensitive);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_uris_translate_both_ways() {
        for path in ["/", "/a/b.rs", "/with space/ä#?%.txt", "/a+b@c"] {
            let uri = file_uri(Path::new(path));
            assert_eq!(path_of_uri(&uri).unwrap().as_path(), Path::new(path), "{uri}");
        }
        assert_eq!(path_of_uri("file:///a%20b").unwrap().as_path(), Path::new("/a b"));
        assert_eq!(path_of_uri("file://localhost/a").unwrap().as_path(), Path::new("/a"));
        for uri in ["untitled:Untitled-1", "file://server/share", "file:///a/../b", "file:///a%00", "/a", "file:a"] {
            assert!(path_of_uri(uri).is_none(), "{uri}");
        }
    }
}
