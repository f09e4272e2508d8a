//! The file steps: what each does to the working folder, and how codex would report it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::step::{Content, Edit, Name, Step};

/// A file step, as it is reported.
pub(super) enum Change<'a> {
    /// By a patch: `add`, `update` or `delete` of this path.
    Patch(&'static str, &'a Name),
    /// By this command.
    Command(String),
}

/// How the step is reported; `None` if it isn't a file step. Looks at the folder, so ask before [`make`].
pub(super) fn describe<'a>(folder: &Path, step: &'a Step) -> Option<Change<'a>> {
    let written = |edit: &'a Edit| {
        let kind = if folder.join(edit.path.to_path()).exists() { "update" } else { "add" };
        Change::Patch(kind, &edit.path)
    };
    let shown = |name: &Name| name.to_path().display().to_string();
    Some(match step {
        Step::Write(edit) | Step::Append(edit) => written(edit),
        Step::Delete(path) => Change::Patch("delete", path),
        Step::Rename(from, to) => Change::Command(format!("mv {} {}", shown(from), shown(to))),
        Step::Chmod(path, mode) => Change::Command(format!("chmod {mode} {}", shown(path))),
        Step::Symlink(path, target) => Change::Command(format!("ln -s {} {}", shown(target), shown(path))),
        Step::Fifo(path) => Change::Command(format!("mkfifo {}", shown(path))),
        Step::Mkdir(path) => Change::Command(format!("mkdir -p {}", shown(path))),
        Step::Repository(path) => Change::Command(format!("git init {}", shown(path))),
        _ => return None,
    })
}

/// Does a file step; other steps do nothing here.
pub(super) fn make(folder: &Path, step: &Step) -> io::Result<()> {
    let at = |name: &Name| folder.join(name.to_path());
    match step {
        Step::Write(edit) => put(&at(&edit.path), &edit.content, OpenOptions::new().truncate(true).write(true)),
        Step::Append(edit) => put(&at(&edit.path), &edit.content, OpenOptions::new().append(true)),
        Step::Delete(path) => {
            let path = at(path);
            if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
        }
        Step::Rename(from, to) => fs::rename(at(from), at(to)),
        Step::Chmod(path, mode) => {
            let mode = u32::from_str_radix(mode, 8).map_err(io::Error::other)?;
            fs::set_permissions(at(path), Permissions::from_mode(mode))
        }
        Step::Symlink(path, target) => symlink(target.to_path(), at(path)),
        Step::Fifo(path) => Ok(mknodat(CWD, at(path), FileType::Fifo, Mode::from_raw_mode(0o644), 0)?),
        Step::Mkdir(path) => fs::create_dir_all(at(path)),
        Step::Repository(path) => repository(&at(path)),
        _ => Ok(()),
    }
}

fn put(path: &Path, content: &Content, how: &mut OpenOptions) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    let mut file: File = how.create(true).open(path)?;
    match content {
        Content::Text(text) => file.write_all(text.as_bytes()),
        Content::Hex { hex } => file.write_all(&hex.0),
        Content::Zeros { zeros } => file.set_len(file.metadata()?.len() + zeros),
    }
}

fn repository(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    let commit =
        ["-c", "user.name=a", "-c", "user.email=a@example.invalid", "commit", "-q", "--allow-empty", "-m", "a"];
    for arguments in [&["init", "-q"][..], &commit] {
        let mut git = super::play::command("git");
        let status = git.arg("-C").arg(path).args(arguments).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("git {arguments:?} ended with {status}")));
        }
    }
    Ok(())
}
