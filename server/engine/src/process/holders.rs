//! Who works in a directory: what a person wants to know before it goes.

use std::io;
use std::path::Path;

use super::table::{newest_first, read_raw};

/// The processes whose working directory is `directory` or below it, as `name (pid)`. Of another user's processes that
/// cannot be told.
///
/// # Errors
/// When the process table cannot be listed.
pub fn working_in(directory: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for pid in newest_first()? {
        let works_there = std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at.starts_with(directory));
        if works_there && let Ok(stat) = read_raw(pid) {
            found.push(format!("{} ({pid})", stat.comm));
        }
    }
    Ok(found)
}
