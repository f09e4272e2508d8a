//! Which paths and parts of a result a person names.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use pactify_core::change::group::GroupId;
use pactify_core::change::sensitive::Tier;
use pactify_core::failure::{Conflict, ConflictKind};
use pactify_core::path::PathName;
use pactify_core::protocol::{FileChange, Selected};
use pactify_core::{Failure, FailureCode, JobId, RepoPath};

use super::meant;

/// The choice that `--path`, `--group` and `--confirm` make among the files of a job's result. A path that is none of
/// them stands for those below it; sensitive ones among these were not named by that.
///
/// # Errors
/// When one names nothing of the result, or a sensitive file only by its directory.
pub(super) fn selected(
    job: &JobId,
    paths: &[OsString],
    groups: &[OsString],
    confirmed: &[PathName],
    files: &[FileChange],
) -> Result<Vec<Selected>, Failure> {
    let mut selected: Vec<Selected> = Vec::new();
    let mut unnamed = Vec::new();
    let is_file = |path: &PathName| files.iter().any(|file| file.path == *path);
    let mut unknown: Vec<PathName> = confirmed.iter().filter(|path| !is_file(path)).cloned().collect();
    for named in paths {
        let path = repo_path(named)?;
        let below = below(&path, files);
        if below.is_empty() {
            let path = PathName::from(path);
            unknown.extend((!is_file(&path)).then(|| path.clone()));
            selected.push(Selected { path, groups: None });
        }
        for file in below {
            if file.tier == Some(Tier::Sensitive) && !confirmed.contains(&file.path) {
                unnamed.push(file.path.clone());
            }
            selected.push(Selected { path: file.path.clone(), groups: None });
        }
    }
    let groups: Vec<(PathName, GroupId)> = groups.iter().map(part_name).collect::<Result<_, _>>()?;
    unknown.extend(groups.iter().map(|(path, _)| path).filter(|path| !is_file(path)).cloned());
    if !unknown.is_empty() {
        return Err(meant::unknown(job, &unknown, files));
    }
    unnamed.retain(|path| !paths.iter().any(|named| path_name(named).is_ok_and(|named| named == *path)));
    if !unnamed.is_empty() {
        return Err(not_named(unnamed));
    }
    for (path, group) in groups {
        match selected.iter_mut().find(|selected| selected.path == path) {
            Some(Selected { groups: Some(groups), .. }) => groups.push(group),
            Some(_) => {}
            None => selected.push(Selected { path, groups: Some(vec![group]) }),
        }
    }
    Ok(selected)
}

/// A path as the person typed it: relative to the top of the repository, byte for byte. What a shell's completion adds
/// (`./` before it, `/` behind it) is no part of it.
pub(super) fn path_name(path: &OsString) -> Result<PathName, Failure> {
    repo_path(path).map(PathName::from)
}

fn repo_path(path: &OsString) -> Result<RepoPath, Failure> {
    let mut plain = path.as_bytes();
    while let Some(rest) = plain.strip_prefix(b"./") {
        plain = rest;
    }
    while let Some(rest) = plain.strip_suffix(b"/").filter(|rest| !rest.is_empty()) {
        plain = rest;
    }
    RepoPath::new(plain).map_err(|error| {
        Failure::new(
            FailureCode::InvalidParams,
            error.to_string(),
            "name a path relative to the top of the repository, as `pactify sub diff --stat` lists it",
        )
    })
}

/// The files below a path that is no file of the result itself.
fn below<'f>(path: &RepoPath, files: &'f [FileChange]) -> Vec<&'f FileChange> {
    let bytes = |file: &FileChange| RepoPath::try_from(file.path.clone()).ok();
    let is_file = files.iter().any(|file| bytes(file).as_ref() == Some(path));
    let prefix = [path.as_bytes(), b"/"].concat();
    let is_below = |file: &&FileChange| bytes(file).is_some_and(|found| found.as_bytes().starts_with(&prefix));
    if is_file { Vec::new() } else { files.iter().filter(is_below).collect() }
}

fn not_named(paths: Vec<PathName>) -> Failure {
    let detail = "it can execute by itself later; look at it, then name or confirm it";
    let conflict =
        |path| Conflict { path, kind: ConflictKind::SensitiveNotConfirmed, detail: detail.to_owned(), object: None };
    let message = "a directory does not name the sensitive files in it";
    Failure::new(FailureCode::ApplyConflict, message, "look at them, then name each with --path or --confirm")
        .with_conflicts(paths.into_iter().map(conflict).collect())
}

fn part_name(named: &OsString) -> Result<(PathName, GroupId), Failure> {
    let next = "name it as `pactify sub diff --hunks` does, like src/parse.rs:-12,3+14,4";
    let invalid = |message: String| Failure::new(FailureCode::InvalidParams, message, next);
    let bytes = named.as_bytes();
    let colon = bytes.iter().rposition(|byte| *byte == b':');
    let colon = colon.ok_or_else(|| invalid(format!("--group {} names no part", named.to_string_lossy())))?;
    let group = String::from_utf8_lossy(&bytes[colon + 1..]);
    let group = group.parse().map_err(|error| invalid(format!("--group: {error}")))?;
    Ok((path_name(&OsString::from_vec(bytes[..colon].to_vec()))?, group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_behind_the_last_colon() {
        let (path, group) = part_name(&"a:b.rs:-1,2+1,0".into()).unwrap();
        assert_eq!((path.path.as_str(), group.to_string().as_str()), ("a:b.rs", "-1,2+1,0"));
        for named in ["a.rs", "a.rs:", "a.rs:all", ":mode"] {
            assert_eq!(part_name(&named.into()).unwrap_err().code, FailureCode::InvalidParams, "{named}");
        }
    }
}
