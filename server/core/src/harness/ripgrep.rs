//! ripgrep, with which kimi and opencode search.
//!
//! Where there is no `rg` on the `PATH` each of them downloads one into its home, and no setting of theirs keeps them
//! from it; but a job talks to its provider alone. So a file stands where they would put it: they take it for the
//! program (kimi 2.1 and opencode 1.18 only ask whether it is a file), cannot run it, and their search fails. Of that a
//! notice of the job and the doctor tell.

use super::PlannedFile;
use crate::AbsPath;

/// Its program.
pub const PROGRAM: &str = "rg";

/// What a person can do who has none.
pub const INSTALL: &str = "install ripgrep (https://github.com/BurntSushi/ripgrep#installation)";

/// What stands for it in the folder in which a harness keeps programs that it downloaded.
pub(super) fn stand_in(folder: &AbsPath) -> PlannedFile {
    PlannedFile {
        path: folder.join(PROGRAM),
        contents: "ripgrep is not installed, and a job downloads none\n".to_owned(),
    }
}

/// What is wrong with a harness that finds none.
pub fn missing(name: &str) -> String {
    format!("there is no `{PROGRAM}` on the PATH of {name}, and its jobs download none: its tools that search fail")
}
