//! Reading the records that a harness keeps in the job's home, once nothing of the job runs any more.
//!
//! The job may have put anything there: nothing is followed, no mount is entered, nothing but a regular file of a
//! bounded length is read, and what stands for `*` must be the only directory, but for those whose names begin with a
//! dot.

use std::io::{self, BufRead, BufReader, Read as _};

use pactify_core::AbsPath;
use pactify_core::harness::{Evidence, Reading};

use crate::disk::{Dir, DiskError, Open};

/// What is told each line, without its line feed; nothing for one that is too long.
type OnLine<'a> = &'a mut dyn FnMut(Option<&[u8]>);

/// The file's contents, which are empty where it is read by lines; `None` when there is no such file, or it is none
/// that can be trusted.
pub(super) fn read(home: &AbsPath, wanted: &Evidence, on_line: OnLine<'_>) -> Option<Vec<u8>> {
    match find(home, wanted, on_line) {
        Ok(found) => found,
        Err(DiskError::Missing { .. }) => None,
        Err(error) => {
            tracing::info!(%error, "a harness's own record is not read");
            None
        }
    }
}

fn find(home: &AbsPath, wanted: &Evidence, on_line: OnLine<'_>) -> Result<Option<Vec<u8>>, DiskError> {
    let is_name = |part: &String| !matches!(part.as_str(), "" | "." | "..") && !part.contains(['/', '\0']);
    let Some((name, way)) = wanted.path.split_last() else { return Ok(None) };
    if !wanted.path.iter().all(is_name) {
        return Ok(None);
    }
    let mut dir = Dir::foreign(home)?;
    for part in way {
        let next = if part == "*" { only_directory(&dir)? } else { Some(dir.dir(part)?) };
        let Some(next) = next else { return Ok(None) };
        dir = next;
    }
    match wanted.reading {
        Reading::Whole => dir.read(name, wanted.limit).map(Some),
        Reading::Lines { longest } => {
            let path = dir.path().join(name);
            let file = dir.file(name, Open::Read)?.take(wanted.limit + 1);
            let read = lines(BufReader::new(file), longest, on_line)
                .map_err(|source| DiskError::from_io(path.clone(), "read", source))?;
            if read > wanted.limit {
                Err(DiskError::TooLarge { path, limit: wanted.limit })
            } else {
                Ok(Some(Vec::new()))
            }
        }
    }
}

/// Tells every line; returns how many bytes there were.
fn lines(mut from: impl BufRead, longest: usize, on_line: OnLine<'_>) -> io::Result<u64> {
    let (mut read, mut line, mut is_too_long) = (0, Vec::new(), false);
    loop {
        let piece = from.fill_buf()?;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let part = &piece[..end.unwrap_or(piece.len())];
        is_too_long |= line.len() + part.len() > longest;
        if !is_too_long {
            line.extend_from_slice(part);
        }
        let is_over = piece.is_empty();
        if end.is_some() || (is_over && (is_too_long || !line.is_empty())) {
            on_line((!is_too_long).then_some(&line));
            line.clear();
            is_too_long = false;
        }
        if is_over {
            return Ok(read);
        }
        let used = part.len() + usize::from(end.is_some());
        from.consume(used);
        read += used as u64;
    }
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
    use crate::store::fixture;

    #[test]
    fn a_record_is_found_and_nothing_that_a_job_put_in_its_place_is_read() {
        let (_guard, home) = fixture::folder();
        let path = |path: &[&str]| path.iter().map(|&part| part.to_owned()).collect();
        let wanted = |parts: &[&str]| Evidence { path: path(parts), limit: 8, reading: Reading::Whole };
        let read = |home: &AbsPath, wanted: &Evidence| read(home, wanted, &mut |_| panic!("it is read as one piece"));
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

    #[test]
    fn a_record_is_read_line_by_line_and_never_held_whole() {
        let (_guard, home) = fixture::folder();
        let place = home.as_path().join("record");
        let wanted = |limit| Evidence { path: vec!["record".into()], limit, reading: Reading::Lines { longest: 4 } };
        let told = |limit| {
            let mut told: Vec<Option<String>> = Vec::new();
            let all = read(&home, &wanted(limit), &mut |line| {
                told.push(line.map(|line| String::from_utf8(line.to_vec()).unwrap()));
            });
            (told, all)
        };
        let line = |text: &str| Some(text.to_owned());
        for (text, expected) in [
            ("", vec![]),
            ("a\n\nb\n", vec![line("a"), line(""), line("b")]),
            ("1234\n12345\nc", vec![line("1234"), None, line("c")]),
            ("12345", vec![None]),
        ] {
            fs::write(&place, text).unwrap();
            assert_eq!(told(20), (expected, Some(Vec::new())), "{text:?}");
        }
        fs::write(&place, "123\n".repeat(6)).unwrap();
        assert_eq!(told(20).1, None, "longer than its limit");
        // No memory holds this one.
        fs::File::create(&place).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(told(8 << 20), (vec![None], None));
    }
    #[test]
    fn what_a_job_mounted_is_not_entered() {
        const NAME: &str = "host::evidence::tests::what_a_job_mounted_is_not_entered";
        if let Some(given) = fixture::given_home() {
            return among_mounts(&given);
        }
        let dir = tempfile::tempdir().unwrap();
        for folder in ["outside", "home/bound", "home/tmpfs", "mounted"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("outside/record"), "told").unwrap();
        fs::write(dir.path().join("home/file"), "").unwrap();
        let mounts = "mount --bind \"$HERE/outside\" \"$HERE/home/bound\" && \
            mount --bind \"$HERE/outside/record\" \"$HERE/home/file\" && mount -t tmpfs none \"$HERE/home/tmpfs\" && \
            mount --bind \"$HERE/outside\" \"$HERE/mounted\"";
        fixture::among_mounts(NAME, dir.path(), mounts);
    }

    fn among_mounts(given: &std::path::Path) {
        let given = AbsPath::new(given.canonicalize().unwrap()).unwrap();
        let (home, mounted) = (given.join("home"), given.join("mounted"));
        fs::write(home.join("tmpfs").join("record").as_path(), "told").unwrap();
        let way = |path: &[&str]| path.iter().map(|&part| part.to_owned()).collect();
        let wanted = |path: &[&str]| Evidence { path: way(path), limit: 8, reading: Reading::Whole };
        for path in [&["bound", "record"][..], &["tmpfs", "record"], &["file"]] {
            // Whoever follows names gets there.
            assert_eq!(
                fs::read(path.iter().fold(home.as_path().to_owned(), |at, part| at.join(part))).unwrap(),
                b"told"
            );
            assert_eq!(read(&home, &wanted(path), &mut |_| {}), None, "{path:?}");
        }
        assert_eq!(fs::read(mounted.join("record").as_path()).unwrap(), b"told");
        assert_eq!(read(&mounted, &wanted(&["record"]), &mut |_| {}), None, "in place of the home");
        for name in ["bound", "file", "tmpfs"] {
            let looked = Dir::foreign(&home).unwrap().lookup(name);
            assert!(matches!(looked, Err(DiskError::Mounted { .. })), "{name}: {looked:?}");
        }
    }
}
