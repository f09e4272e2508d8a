//! What a job changed: summary, lines, contents, and ways to take it elsewhere.

use super::{ExportForm, OutlookKind, PreviewFormat, Side};
use crate::change::group::GroupId;
use crate::change::sensitive::Tier;
use crate::change::{ChangeKind, EntryMode, Totals};
use crate::failure::ConflictKind;
use crate::fingerprint::OutsideChange;
use crate::path::PathName;

wire! {
    /// Argument of `pactify.diffPreview`.
    pub struct PreviewParams {
        /// The job.
        pub job_id: String,
        /// Only this path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub path: Option<String>,
        /// That path's exact bytes, percent-encoded, where its name needs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub path_bytes: Option<String>,
        /// How much to tell.
        #[serde(default)]
        pub format: PreviewFormat,
        /// The `next` of the page before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cursor: Option<String>,
        /// At most this many files: 500 when absent, 5000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub limit: Option<u32>,
        /// Whether to tell for each file what applying it to the checkout would do now. Needs the job to be finished.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub checkout: bool,
        /// Whether the server shows it as a patch document, where the client can show documents. For editors without
        /// a plugin; true when the command came without an argument.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub show: bool,
    }

    /// Result of `pactify.diffPreview`.
    pub struct Preview {
        /// The job.
        pub job_id: String,
        /// The result's name; an apply must repeat it.
        pub change_set: String,
        /// How much changed, over all pages.
        pub totals: Totals,
        /// The files of this page; sensitive ones come first.
        pub files: Vec<FileChange>,
        /// What the capture saw and left out, one sentence each; before them, as long as it is so, that an apply was
        /// cut off and the checkout may hold a part of it.
        pub notes: Vec<String>,
        /// What changed outside the job's tree while it ran, whoever did it: worst first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub outside: Vec<OutsideChange>,
        /// The cursor of the next page, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
        /// With format `patch`: a patch that `git apply` takes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub patch: Option<String>,
        /// Whether the patch or some hunks were cut short.
        #[serde(default)]
        pub truncated: bool,
    }

    /// One changed path.
    pub struct FileChange {
        /// Where.
        #[serde(flatten)]
        pub path: PathName,
        /// How it changed.
        pub kind: ChangeKind,
        /// The base side; absent when the path is new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub old: Option<SideView>,
        /// The result side; absent when the path is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub new: Option<SideView>,
        /// Whether either side is not text.
        pub binary: bool,
        /// Why it deserves a second look.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub tier: Option<Tier>,
        /// Why it can never be applied, if so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub refused: Option<String>,
        /// Whether all of it was applied before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub accepted: bool,
        /// The path that this one was before, when both together look like a rename. They are two changes, and are
        /// chosen one by one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub renamed_from: Option<PathName>,
        /// The path that this one is now, likewise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub renamed_to: Option<PathName>,
        /// With a rename: how much of the content stayed, in percent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub similarity: Option<u8>,
        /// With format `hunks`: the parts that can be chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub groups: Option<Vec<GroupView>>,
        /// With format `hunks`: the changed runs of lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub hunks: Option<Vec<HunkView>>,
        /// Whether it is too large to be shown in full; then it can only be chosen as a whole.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub truncated: bool,
        /// With `checkout`: what applying it now would do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outlook: Option<OutlookView>,
    }

    /// One part of a change that can be chosen.
    pub struct GroupView {
        /// Its name.
        pub id: GroupId,
        /// Whether it was applied before.
        pub accepted: bool,
    }

    /// What applying a path would do.
    pub struct OutlookView {
        /// In a word.
        pub kind: OutlookKind,
        /// With `merge`: the merged content's id, which confirms it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub object: Option<String>,
        /// With `conflict`: what kind of obstacle it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub conflict: Option<ConflictKind>,
        /// With `conflict`: one sentence for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub detail: Option<String>,
    }

    /// One side of a changed path.
    pub struct SideView {
        /// What kind of entry it is.
        pub mode: EntryMode,
        /// Its size in bytes.
        pub size: u64,
    }

    /// A run of changed lines. Lines count from 1; an empty side names the line that it follows. What could deceive in
    /// them (control characters, changes of direction) is escaped: `pactify.content` has the exact text.
    pub struct HunkView {
        /// The part's name, to choose it by; absent where the path can only be chosen as a whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub id: Option<GroupId>,
        /// Whether it was applied before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub accepted: bool,
        /// The first old line.
        pub old_start: u64,
        /// The old lines, without line feeds.
        pub old_lines: Vec<String>,
        /// The first new line.
        pub new_start: u64,
        /// The new lines, without line feeds.
        pub new_lines: Vec<String>,
        /// The words of the old lines that are not in the new ones; none where nearly everything changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub old_words: Vec<WordRange>,
        /// The words of the new lines that were not in the old ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub new_words: Vec<WordRange>,
    }

    /// A part of a line of a hunk.
    pub struct WordRange {
        /// Which of the hunk's lines of that side, from 0.
        pub line: u32,
        /// Where it begins, in UTF-16 code units.
        pub start: u32,
        /// Where it ends.
        pub end: u32,
    }

    /// Argument of `pactify.content`.
    pub struct ContentParams {
        /// The job.
        pub job_id: String,
        /// Which content.
        pub side: Side,
        /// Of which path.
        #[serde(flatten)]
        pub path: PathName,
        /// With side `merged`: what an apply of these parts would write; of all of the path when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub groups: Option<Vec<GroupId>>,
    }

    /// Result of `pactify.content`: `text`, or `binary` with a size; neither when that side has no such file.
    pub struct Content {
        /// The text, exactly.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub text: Option<String>,
        /// Whether it is no text, or too large to show.
        #[serde(default)]
        pub binary: bool,
        /// Its size in bytes.
        pub size: u64,
        /// Whether there is such a file on that side.
        pub exists: bool,
        /// With side `merged`: the id of what an apply would write. Where that is a merge, passing the id back in
        /// `confirmMerges` confirms it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub object: Option<String>,
        /// With side `merged`: in how many places both sides changed the same lines. Then `text` marks them, and
        /// nothing would be written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub conflicts: Option<u32>,
    }

    /// Argument of `pactify.export`.
    pub struct ExportParams {
        /// The job.
        pub job_id: String,
        /// As what.
        #[serde(rename = "as")]
        pub form: ExportForm,
        /// The branch's name: `pactify/<job id>` when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
    }

    /// Result of `pactify.export`.
    pub struct Exported {
        /// The patch, for a patch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub patch: Option<String>,
        /// The branch made, for a branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub branch: Option<String>,
    }

    /// Result of `pactify.openWorktree`.
    pub struct Worktree {
        /// The job's tree as a `file:` URI.
        pub worktree: String,
    }
}
