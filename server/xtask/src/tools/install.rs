//! All of a tool or nothing of it: concurrent installers wait for each other, an unfinished install is done again.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use pactify_tests::tools::{COMPLETE, Tool};

use super::ToolError;
use crate::run::say;

/// Makes `folder` by filling a temporary one beside it, under a lock; does nothing if it is complete by then.
pub(super) fn atomically(
    tool: Tool,
    folder: &Path,
    fill: impl FnOnce(&Path) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| ToolError::Cache { tool, path, source }
    };
    let cache = folder.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(cache).map_err(at(cache))?;
    // The lock stays when the tool is there: a removed one could be held by two at once.
    let lock_path = beside(folder, ".lock-");
    let lock = File::options().create(true).append(true).open(&lock_path).map_err(at(&lock_path))?;
    if lock.try_lock().is_err() {
        say(&format!("{tool}: another process installs it; waiting for that"));
        lock.lock().map_err(at(&lock_path))?;
    }
    if folder.join(COMPLETE).is_file() {
        return Ok(());
    }
    say(&format!("{tool}: installing into {}", folder.display()));
    remove(folder).map_err(at(folder))?;
    // A name of its own: the npm of a killed installer may still be filling the one before, and so resist removal.
    let partials = beside(folder, ".tmp-");
    for leftover in leftovers(&partials).map_err(at(cache))? {
        let _ = remove(&leftover);
    }
    let partial = partials.with_extension(std::process::id().to_string());
    fs::create_dir(&partial).map_err(at(&partial))?;
    let filled = fill(&partial).and_then(|()| {
        let program = partial.join(tool.program());
        if program.exists() { Ok(()) } else { Err(ToolError::NoProgram { tool, path: program }) }
    });
    if let Err(error) = filled {
        // The next installer would remove it too.
        let _ = remove(&partial);
        return Err(error);
    }
    publish(&partial, folder).map_err(at(folder))
}

/// Makes `link` lead to `folder`; what a person has put there instead of a link is left alone.
pub(super) fn link(folder: &Path, link: &Path) -> io::Result<()> {
    match fs::read_link(link) {
        Ok(target) if target == folder => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            say(&format!("{} is left alone: it is not a link", link.display()));
            return Ok(());
        }
        _ => {}
    }
    // Replaced in one step: another clone's build may be looking through it.
    let fresh = link.with_extension(std::process::id().to_string());
    symlink(folder, &fresh)?;
    fs::rename(&fresh, link)
}

/// Everything durable, then the marker, then the name.
fn publish(partial: &Path, folder: &Path) -> io::Result<()> {
    rustix::fs::syncfs(File::open(partial)?)?;
    let marker = File::create_new(partial.join(COMPLETE))?;
    marker.sync_all()?;
    File::open(partial)?.sync_all()?;
    fs::rename(partial, folder)?;
    File::open(folder.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// What killed installers of this tool have left.
fn leftovers(partials: &Path) -> io::Result<Vec<PathBuf>> {
    let all = fs::read_dir(partials.parent().unwrap_or(Path::new("/")))?.map(|entry| Ok(entry?.path()));
    let is_ours = |path: &io::Result<PathBuf>| path.as_ref().map_or(true, |path| path.with_extension("") == partials);
    all.filter(is_ours).collect()
}

fn beside(folder: &Path, prefix: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{prefix}{name}"))
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Puts the program where it has to be.
    fn fill(partial: &Path) -> Result<(), ToolError> {
        let program = partial.join(Tool::Ruff.program());
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(program, "program").unwrap();
        Ok(())
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_or_killed_install_is_done_again() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("ruff-1");
        let failed =
            atomically(Tool::Ruff, &folder, |_| Err(ToolError::NoInstaller { tool: Tool::Ruff, installer: "pip" }));
        assert!(failed.unwrap_err().to_string().contains("without pip"));
        let empty = atomically(Tool::Ruff, &folder, |_| Ok(()));
        assert!(matches!(empty, Err(ToolError::NoProgram { .. })));
        assert_eq!(names(cache.path()), [".lock-ruff-1"]);

        // What a kill leaves behind: a half-filled temporary folder, or a folder with no marker.
        for leftover in [".tmp-ruff-1.77", "ruff-1"] {
            fs::create_dir(cache.path().join(leftover)).unwrap();
            fs::write(cache.path().join(leftover).join("half"), "").unwrap();
        }
        atomically(Tool::Ruff, &folder, fill).unwrap();
        assert_eq!(names(&folder), [COMPLETE, "site"]);
        assert_eq!(names(cache.path()), [".lock-ruff-1", "ruff-1"]);
    }

    #[test]
    fn a_link_follows_its_pin_and_a_folder_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for target in ["one", "one", "two"] {
            link(&at(target), &at("link")).unwrap();
            assert_eq!(fs::read_link(at("link")).unwrap(), at(target));
        }
        fs::create_dir(at("own")).unwrap();
        link(&at("one"), &at("own")).unwrap();
        assert!(at("own").symlink_metadata().unwrap().is_dir());
        assert_eq!(names(place.path()), ["link", "own"]);
    }

    #[test]
    fn of_many_installers_one_does_the_work() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("ruff-1");
        let installs = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let counted = |partial: &Path| {
                        installs.fetch_add(1, Ordering::SeqCst);
                        fill(partial)
                    };
                    atomically(Tool::Ruff, &folder, counted).unwrap();
                    assert!(folder.join(COMPLETE).is_file());
                });
            }
        });
        assert_eq!(installs.into_inner(), 1);
    }
}
