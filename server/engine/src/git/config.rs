//! What is taken over from the person's configuration, and how a git directory of ours is laid out.
//!
//! Only keys of a short list pass: how contents are stored, what the file system can do, who the person is. Nothing
//! that names a program, a path to one, a remote or a filter. Global filters (LFS) are not taken over either: the
//! tree then holds what the repository stores, and a notice says so.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use pactify_core::job::{Base, RepositoryRecord};
use pactify_core::{AbsPath, ObjectId};
use serde::{Deserialize, Serialize};

use super::command::{Call, Place, Verb, unexpected};
use super::error::GitError;
use super::read::read;
use super::{Git, Places, places};

/// Keys that a job's own git directory takes over.
const CARRIED: &[&str] = &[
    "core.autocrlf",
    "core.bigfilethreshold",
    "core.checkroundtripencoding",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "i18n.commitencoding",
    "i18n.logoutputencoding",
    "init.defaultbranch",
    "user.email",
    "user.name",
];

/// Those of them that decide how a captured file is stored.
const STORING: &[&str] = &[
    "core.autocrlf",
    "core.checkroundtripencoding",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
];

/// The person's effective configuration of one repository: lower-case keys, the last value of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings(BTreeMap<String, String>);

/// The person's rules for storing contents and ignoring files, as they were when the job was created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rules {
    /// Settings from [`STORING`].
    pub(super) settings: BTreeMap<String, String>,
    /// The person's own attributes: lowest precedence.
    pub(super) global_attributes: String,
    /// `info/attributes` of the repository: highest precedence.
    pub(super) info_attributes: String,
    /// The person's own ignore rules: lowest precedence.
    pub(super) global_ignores: String,
    /// `info/exclude` of the repository.
    pub(super) info_exclude: String,
}

/// A git directory to be made.
pub(super) struct Layout<'a> {
    pub(super) path: &'a AbsPath,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) rules: &'a Rules,
    pub(super) sha256: bool,
    /// Whether a directory next to it is its checkout.
    pub(super) checkout: bool,
    pub(super) head: &'a ObjectId,
    /// Object directories to borrow from.
    pub(super) alternates: &'a [AbsPath],
}

impl Settings {
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Whether a boolean is on, as git reads booleans (a key without a value is on).
    pub(super) fn is_on(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1"))
    }

    pub(super) fn carried(&self) -> BTreeMap<String, String> {
        self.chosen(CARRIED)
    }

    /// For a git directory of ours that looks at the person's checkout: what is carried, and how far their index is
    /// trusted. Commits made there are theirs, or ours where git does not know their name.
    pub(super) fn for_snapshot(&self) -> BTreeMap<String, String> {
        let mut chosen = self.carried();
        chosen.extend(self.chosen(&["core.checkstat", "core.trustctime"]));
        for (key, name) in [("user.name", "pactify"), ("user.email", "pactify@localhost")] {
            let told = chosen.get(key).is_some_and(|value| !value.trim().is_empty());
            if !told {
                chosen.insert(key.to_owned(), name.to_owned());
            }
        }
        chosen
    }

    fn chosen(&self, keys: &[&str]) -> BTreeMap<String, String> {
        keys.iter().filter_map(|key| Some(((*key).to_owned(), self.get(key)?.to_owned()))).collect()
    }
}

impl Rules {
    /// Whether a boolean setting is on.
    pub(super) fn is_on(&self, key: &str, default: bool) -> bool {
        match self.settings.get(key).map(|value| value.to_ascii_lowercase()).as_deref() {
            Some("true" | "yes" | "on" | "1") => true,
            Some("false" | "no" | "off" | "0" | "") => false,
            _ => default,
        }
    }
}

impl Git {
    /// The configuration that git uses at `place`.
    pub(super) fn settings(&self, place: Place<'_>) -> Result<Settings, GitError> {
        let call = Call::new(Verb::Config, place).args(["--list", "-z"]);
        let answer = self.run(&call)?;
        let mut settings = BTreeMap::new();
        // Our own switches come last in the list; they are not the person's.
        for entry in answer.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let text = String::from_utf8_lossy(entry);
            let (key, value) = text.split_once('\n').unwrap_or((&text, "true"));
            if !key.contains('.') {
                return Err(unexpected(&call, entry));
            }
            settings.insert(key.to_owned(), value.to_owned());
        }
        Ok(Settings(settings))
    }

    /// The rules that hold in the person's repository now.
    pub(super) fn rules(&self, record: &RepositoryRecord, settings: &Settings) -> Result<Rules, GitError> {
        let read = |configured: &str, default: &str| {
            let path = settings.get(configured).and_then(|value| self.expand(value));
            read_text(&path.unwrap_or_else(|| self.surroundings.git_config.join(default)))
        };
        let info = record.common_dir.join("info");
        Ok(Rules {
            settings: settings.chosen(STORING),
            global_attributes: read("core.attributesfile", "attributes")?,
            info_attributes: read_text(&info.join("attributes"))?,
            global_ignores: read("core.excludesfile", "ignore")?,
            info_exclude: read_text(&info.join("exclude"))?,
        })
    }

    fn expand(&self, value: &str) -> Option<AbsPath> {
        match value.strip_prefix("~/") {
            Some(below) => AbsPath::new(self.surroundings.home.as_path().join(below)).ok(),
            None => AbsPath::new(value).ok(),
        }
    }
}

impl Layout<'_> {
    /// Makes it. Nothing may be at its path yet.
    pub(super) fn create(&self) -> Result<(), GitError> {
        create_directory(self.path)?;
        for name in ["objects", "refs", "info"] {
            create_directory(&self.path.join(name))?;
        }
        for (directory, name) in [("objects", "info"), ("objects", "pack"), ("refs", "heads")] {
            create_directory(&self.path.join(directory).join(name))?;
        }
        let alternates: Vec<u8> =
            self.alternates.iter().flat_map(|path| [places::bytes(path), b"\n"].concat()).collect();
        let info = self.path.join("info");
        for (path, content) in [
            (self.path.join("HEAD"), format!("{}\n", self.head).as_bytes()),
            (self.path.join("config"), self.config().as_bytes()),
            (self.path.join("attributes"), self.rules.global_attributes.as_bytes()),
            (self.path.join("ignore"), self.rules.global_ignores.as_bytes()),
            (info.join("attributes"), self.rules.info_attributes.as_bytes()),
            (info.join("exclude"), self.rules.info_exclude.as_bytes()),
            (self.path.join("objects").join("info").join("alternates"), &alternates),
        ] {
            create_file(&path, content)?;
        }
        Ok(())
    }

    fn config(&self) -> String {
        let own = |name: &str| self.path.join(name).as_path().to_string_lossy().into_owned();
        let mut entries = self.settings.clone();
        let mut set = |key: &str, value: &str| entries.insert(key.to_owned(), value.to_owned());
        set("core.repositoryformatversion", if self.sha256 { "1" } else { "0" });
        set("core.bare", if self.checkout { "false" } else { "true" });
        set("core.attributesfile", &own("attributes"));
        set("core.excludesfile", &own("ignore"));
        set("gc.auto", "0");
        set("maintenance.auto", "false");
        if self.sha256 {
            set("extensions.objectformat", "sha256");
        }
        entries.iter().map(|(key, value)| config_entry(key, value)).collect()
    }
}

/// The object directories that a git directory of a job borrows from: the person's, and those of the job's own base.
pub(super) fn lenders(places: &Places, repository: &RepositoryRecord, base: &Base) -> Result<Vec<AbsPath>, GitError> {
    let mut found = object_directories(&repository.common_dir)?;
    found.extend(base.parent.is_some().then(|| places.base().join("objects")));
    Ok(found)
}

/// The person's object directory and, followed to the end, those that it borrows from itself. git follows five levels
/// only, and ours is one more.
pub(super) fn object_directories(common_dir: &AbsPath) -> Result<Vec<AbsPath>, GitError> {
    let mut found = vec![common_dir.join("objects")];
    let mut next = 0;
    while let Some(directory) = found.get(next).cloned() {
        next += 1;
        let list = directory.join("info").join("alternates");
        for line in read_bytes(&list)?.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#') {
            let path = directory.as_path().join(std::ffi::OsStr::from_bytes(line));
            // Relative entries have `..` in them. What does not exist, git ignores too.
            let Ok(Ok(path)) = fs::canonicalize(path).map(AbsPath::new) else { continue };
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Makes a directory for the person alone. Nothing may be at its path yet.
pub(super) fn create_directory(path: &AbsPath) -> Result<(), GitError> {
    DirBuilder::new().mode(0o700).create(path).map_err(GitError::io("create the directory", path.as_path()))
}

/// Makes a file for the person alone. Nothing may be at its path yet.
pub(super) fn create_file(path: &AbsPath, content: &[u8]) -> Result<(), GitError> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(GitError::io("create", path.as_path()))?;
    file.write_all(content).map_err(GitError::io("write", path.as_path()))
}

fn config_entry(key: &str, value: &str) -> String {
    let (section, name) = key.split_once('.').unwrap_or(("core", key));
    let mut quoted = String::with_capacity(value.len() + 2);
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            _ => quoted.push(c),
        }
    }
    format!("[{section}]\n\t{name} = \"{quoted}\"\n")
}

fn read_text(path: &AbsPath) -> Result<String, GitError> {
    Ok(String::from_utf8_lossy(&read_bytes(path)?).into_owned())
}

/// The content of an optional file: empty when it isn't there.
fn read_bytes(path: &AbsPath) -> Result<Vec<u8>, GitError> {
    let path: &Path = path.as_path();
    match read(path) {
        Ok(content) => Ok(content),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(GitError::io("read", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_so_that_they_stay_values() {
        let entry = config_entry("user.name", "a\"]\n[core]\n\tfsmonitor = evil # \\");
        assert_eq!(entry, "[user]\n\tname = \"a\\\"]\\n[core]\\n\\tfsmonitor = evil # \\\\\"\n");
        assert_eq!(entry.lines().count(), 2);
    }
}
