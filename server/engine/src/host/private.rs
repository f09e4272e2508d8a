//! What a harness's private home has of the person's for one attempt only, and what a repository has for a harness.
//!
//! Files that hold keys are written for each attempt and removed after it: also by the recovery of one whose host died.

use std::io;
use std::path::Path;

use pactify_core::harness::{Harness, Instructions, PersonFile, registry};
use pactify_core::{AbsPath, Failure, FailureCode};

use super::Host;
use super::launch::temporary;
use crate::causes::with_causes;
use crate::disk::{Dir, DiskError};
use crate::env::Env;

/// The longest configuration or login of a person's own that is read, in bytes. (Those measured have some kilobytes.)
const CONFIG_MAX: u64 = 1 << 20;

/// The files of the person's own configuration that a job's plan takes from, as far as they are there. Unlike
/// everything in a job's home one may be a link: many people keep such files elsewhere.
pub(crate) fn person_files(
    env: &Env,
    harness: &dyn Harness,
    with_user_config: bool,
) -> Result<Vec<PersonFile>, Failure> {
    let Some(wanted) = harness.person_files(with_user_config) else { return Ok(Vec::new()) };
    let chosen = env.variable(wanted.variable).and_then(|path| AbsPath::new(path).ok());
    let directory = chosen.unwrap_or_else(|| env.directories().home().join(wanted.folder));
    let mut found = Vec::new();
    for &name in wanted.names {
        let text = read(&directory.as_path().join(name)).map_err(|error| {
            let harness = harness.name();
            let next = format!("see that {harness}'s own {name} can be read, then retry the job");
            let message = format!("{harness}'s own {name} cannot be read: {error}");
            Failure::new(FailureCode::InvalidConfig, message, next)
        })?;
        found.extend(text.map(|text| PersonFile { name, directory: directory.clone(), text }));
    }
    Ok(found)
}

/// The text of a file of the person's; nothing where there is none.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    let described = match std::fs::metadata(path) {
        Ok(described) => described,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !described.is_file() || described.len() > CONFIG_MAX {
        return Err(io::Error::other("it is no ordinary file of at most 1 MiB"));
    }
    std::fs::read_to_string(path).map(Some)
}

/// Removes what was there for this attempt only.
pub(super) fn remove(host: &Host) {
    let Some(harness) = registry::find(&host.spec().harness, &host.spec().settings) else { return };
    for name in harness.about().private_files {
        match unlink(&host.dir().home(), name) {
            Ok(()) | Err(DiskError::Missing { .. }) => {}
            Err(error) => {
                tracing::warn!(error = with_causes(&error), name, "a private file of the job was not removed")
            }
        }
    }
}

fn unlink(home: &AbsPath, name: &str) -> Result<(), DiskError> {
    let mut dir = Dir::foreign(home)?;
    let mut parts: Vec<&str> = name.split('/').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        dir = dir.dir(part)?;
    }
    // What a crash left of one that was being written is as private.
    match dir.remove(&temporary(last)) {
        Ok(()) | Err(DiskError::Missing { .. }) => dir.remove(last),
        Err(error) => Err(error),
    }
}

/// What a harness of this version will take for instructions in this tree, or may, in one sentence.
pub(super) fn instructions(harness: &dyn Harness, version: Option<&str>, tree: &AbsPath) -> Option<String> {
    let of_harness = harness.repository_instructions(version);
    let (Instructions::Read(names) | Instructions::MayRead(names)) = of_harness;
    let is_there = |name: &&&str| tree.as_path().join(Path::new(name)).symlink_metadata().is_ok();
    let found: Vec<&str> = names.iter().filter(is_there).copied().collect();
    if found.is_empty() {
        return None;
    }
    let (harness, found) = (harness.name(), found.join(", "));
    Some(match of_harness {
        Instructions::Read(_) => format!("the repository brings instructions that {harness} follows: {found}"),
        Instructions::MayRead(_) => format!("the repository brings instructions that {harness} may read: {found}"),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use pactify_core::config::Settings;
    use pactify_core::harness::kimi::Kimi;
    use pactify_core::harness::opencode::Opencode;

    use super::*;
    use crate::env::Directories;
    use crate::store::fixture::folder;

    #[test]
    fn what_is_removed_is_never_somebody_elses() {
        let (_theirs, theirs) = folder();
        let (_home, home) = folder();
        fs::write(theirs.join("config.toml").as_path(), "precious").unwrap();
        fs::create_dir(home.join("kimi").as_path()).unwrap();
        for name in ["config.toml", ".config.toml.new"] {
            fs::write(home.join("kimi").join(name).as_path(), "key").unwrap();
        }
        unlink(&home, "kimi/config.toml").unwrap();
        assert_eq!(fs::read_dir(home.join("kimi").as_path()).unwrap().count(), 0, "an incomplete one stays");

        symlink(theirs.join("config.toml").as_path(), home.join("kimi").join("config.toml").as_path()).unwrap();
        unlink(&home, "kimi/config.toml").unwrap();
        fs::remove_dir(home.join("kimi").as_path()).unwrap();
        symlink(theirs.as_path(), home.join("kimi").as_path()).unwrap();
        assert!(unlink(&home, "kimi/config.toml").is_err());
        assert_eq!(fs::read_to_string(theirs.join("config.toml").as_path()).unwrap(), "precious");
    }

    #[test]
    fn a_configuration_is_read_where_there_is_one() {
        let (_home, home) = folder();
        let state = home.join(".kimi-code");
        let env = |variables: &[(&str, &AbsPath)]| {
            let variables = variables.iter().map(|(name, at)| ((*name).into(), at.as_path().into())).collect();
            Env::from_values(variables, Directories::under(&home))
        };
        let texts = |env: &Env, all| {
            let files = person_files(env, &Kimi, all)?;
            Ok::<_, Failure>(files.into_iter().map(|file| (file.name, file.text)).collect::<Vec<_>>())
        };
        assert_eq!(texts(&env(&[]), true).unwrap(), []);
        fs::create_dir(state.as_path()).unwrap();
        fs::write(state.join("elsewhere").as_path(), "a = 1").unwrap();
        symlink("elsewhere", state.join("config.toml").as_path()).unwrap();
        fs::write(state.join("mcp.json").as_path(), "{}").unwrap();
        assert_eq!(texts(&env(&[]), false).unwrap(), [("config.toml", "a = 1".to_owned())]);
        assert_eq!(texts(&env(&[]), true).unwrap().len(), 2, "all of it where the person said so");
        assert_eq!(texts(&env(&[("KIMI_CODE_HOME", &home)]), true).unwrap(), []);
        fs::remove_file(state.join("config.toml").as_path()).unwrap();
        fs::create_dir(state.join("config.toml").as_path()).unwrap();
        assert_eq!(texts(&env(&[]), false).unwrap_err().code, FailureCode::InvalidConfig);
    }

    #[test]
    fn instructions_of_a_repository_are_named() {
        let (_tree, tree) = folder();
        assert_eq!(instructions(&Kimi, None, &tree), None);
        fs::write(tree.join("AGENTS.md").as_path(), "").unwrap();
        fs::create_dir_all(tree.join(".kimi-code").join("agents").as_path()).unwrap();
        let told = instructions(&Kimi, None, &tree).unwrap();
        assert!(told.ends_with("kimi follows: AGENTS.md, .kimi-code/agents"), "{told}");
        assert_eq!(instructions(&Opencode, Some("1.18.33"), &tree), None, "it is kept from them");
        let told = instructions(&Opencode, Some("2.0.26"), &tree).unwrap();
        assert!(told.ends_with("opencode may read: AGENTS.md"), "{told}");
        for protocol in ["cli", "acp"] {
            let text = format!("[harnesses.mine]\ncommand = \"mine\"\nprotocol = {protocol:?}\n");
            let known = Settings::parse(&text).unwrap().known_harnesses();
            let (mine, _) = known.last().unwrap();
            let told = instructions(&**mine, None, &tree).unwrap();
            assert!(told.ends_with("mine may read: AGENTS.md, .kimi-code"), "{told}");
        }
    }
}
