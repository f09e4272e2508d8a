//! A result's patch as a file, for editors that can only open files.
//!
//! One file per job under `PACTIFY_HOME/previews`, replaced by each preview. It is a copy for reading: nothing
//! is ever applied from it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use pactify_core::{AbsPath, Failure, FailureCode, JobId};

/// Writes `job`'s patch and gives the file's path.
pub fn write(pactify_home: &AbsPath, job: &JobId, patch: &str) -> Result<AbsPath, Failure> {
    let folder = pactify_home.join("previews");
    let path = folder.join(&format!("{job}.patch"));
    replace(&folder, &path, patch).map_err(|error| {
        Failure::new(
            FailureCode::StoreUnavailable,
            format!("the patch cannot be written to {path}: {error}"),
            "make room or correct the permissions there",
        )
    })?;
    Ok(path)
}

fn replace(folder: &AbsPath, path: &AbsPath, patch: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let staged = path.as_path().with_extension(format!("patch.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
    file.write_all(patch.as_bytes())?;
    std::fs::rename(staged, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_newest_patch_is_readable_by_its_person_only() {
        let folder = tempfile::tempdir().unwrap();
        let home = AbsPath::new(folder.path()).unwrap();
        let job: JobId = "20261129-154512-abcdef".parse().unwrap();
        write(&home, &job, "old").unwrap();
        let path = write(&home, &job, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let names = std::fs::read_dir(home.join("previews")).unwrap().count();
        assert_eq!(names, 1, "nothing staged is left");
    }
}
