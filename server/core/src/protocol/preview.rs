//! What a job changed: summary, lines, contents, and ways to take it elsewhere.

use super::{ExportForm, PreviewFormat, Side};
use crate::change::sensitive::Tier;
use crate::change::{ChangeKind, EntryMode, Totals};
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
        /// What the capture saw and left out, one sentence each.
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
        /// With format `hunks`: the changed runs of lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub hunks: Option<Vec<HunkView>>,
    }

    /// One side of a changed path.
    pub struct SideView {
        /// What kind of entry it is.
        pub mode: EntryMode,
        /// Its size in bytes.
        pub size: u64,
    }

    /// A run of changed lines. Lines count from 1; an empty side names the line that it follows.
    pub struct HunkView {
        /// The first old line.
        pub old_start: u64,
        /// The old lines, without line feeds.
        pub old_lines: Vec<String>,
        /// The first new line.
        pub new_start: u64,
        /// The new lines, without line feeds.
        pub new_lines: Vec<String>,
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
