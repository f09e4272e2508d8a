//! Reading the records that a harness keeps in the job's home, once nothing of the job runs any more.
//!
//! The job may have put anything there: nothing is followed, nothing but a regular file of a bounded length is read,
//! and what stands for `*` must be the only directory, but for those whose names begin with a dot.

use pactify_core::AbsPath;
use pactify_core::harness::Evidence;

use crate::disk::{Dir, DiskError};

/// The file's contents; `None` when there is no such file, or it is none that can be trusted.
pub(super) fn read(home: &AbsPath, wanted: &Evidence) -> Option<Vec<u8>> {
    match find(home, wanted) {
        Ok(found) => found,
        Err(DiskError::Missing { .. }) => None,
        Err(error) => {
            tracing::info!(%error, "a harness's own record is not read");
            None
        }
    }
}

fn find(home: &AbsPath, wanted: &Evidence) -> Result<Option<Vec<u8>>, DiskError> {
    let is_name = |part: &String| !matches!(part.as_str(), "" | "." | "..") && !part.contains(['/', '\0']);
    let Some((name, way)) = wanted.path.split_last() else { return Ok(None) };
    if !wanted.path.iter().all(is_name) {
        return Ok(None);
    }
    let mut dir = Dir::open(home)?;
    for part in way {
        let next = if part == "*" { only_directory(&dir)? } else { Some(dir.dir(part)?) };
        let Some(next) = next else { return Ok(None) };
        dir = next;
    }
    dir.read(name, wanted.limit).map(Some)
}

fn only_directory(dir: &Dir) -> Result<Option<Dir>, DiskError> {
    let mut found =
        dir.names()?.into_iter().filter(|name| !name.starts_with('.')).filter_map(|name| dir.dir(&name).ok());
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(Some(only)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_record_is_found_and_nothing_that_a_job_put_in_its_place_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let home = AbsPath::new(directory.path().canonicalize().unwrap()).unwrap();
        let wanted = |path: &[&str]| Evidence { path: path.iter().map(|&part| part.to_owned()).collect(), limit: 8 };
        let at = |below: &str| home.as_path().join(below);
        fs::create_dir_all(at("sessions/wd_1/s")).unwrap();
        fs::create_dir_all(at("sessions/.index")).unwrap();
        fs::write(at("sessions/file"), "").unwrap();
        fs::write(at("sessions/wd_1/s/state"), "told").unwrap();
        fs::write(at("sessions/wd_1/s/long"), "123456789").unwrap();
        symlink("state", at("sessions/wd_1/s/link")).unwrap();
        symlink("wd_1", at("linked")).unwrap();

        let told = Some(b"told".to_vec());
        assert_eq!(read(&home, &wanted(&["sessions", "*", "s", "state"])), told);
        assert_eq!(read(&home, &wanted(&["sessions", "wd_1", "*", "state"])), told);
        for refused in [
            &["sessions", "*", "s", "none"][..],
            &["sessions", "*", "s", "long"],
            &["sessions", "*", "s", "link"],
            &["sessions", "*", "s"],
            &["linked", "s", "state"],
            &["sessions", "..", "sessions", "file"],
            &["sessions/wd_1", "s", "state"],
            &[],
        ] {
            assert_eq!(read(&home, &wanted(refused)), None, "{refused:?}");
        }
        fs::create_dir(at("sessions/wd_2")).unwrap();
        assert_eq!(read(&home, &wanted(&["sessions", "*", "s", "state"])), None, "no longer the only one");
    }
}
