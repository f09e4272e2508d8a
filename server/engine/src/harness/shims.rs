//! Programs that stand for others: what a version manager puts on the search path under a tool's name.
//!
//! Such a shim decides by its own name, and by files of the folder that it is started in, which program it runs. In a
//! job's tree those are the repository's, and a link that is resolved has lost its name. So the manager is asked once,
//! when a program is looked for: at the person's home, and with no variable but those that lead to its own files. Its
//! answer is held to what holds for every program that is found ([`Apart`]).

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use pactify_core::{AbsPath, display};

use super::search::{Apart, PATIENCE, real};
use crate::causes::with_causes;
use crate::env::Env;
use crate::process::run::Overflow;
use crate::process::{ChildEnv, EnvPolicy, Invocation, Limits};

/// A path, and room to spare, in bytes.
const ANSWER: usize = 16 * 1024;
/// How much of a script is looked at, in bytes: asdf notes each version that has the tool in a line of its own.
const SCRIPT: u64 = 16 * 1024;
/// How much is told of what a manager says, in characters.
const TOLD: usize = 200;

/// A version manager.
struct Chooser {
    name: &'static str,
    sign: Sign,
    /// Where its own program is, from the folder of what the sign was found on; else it is searched for.
    beside: &'static str,
    /// What it is asked: this, and the name of the tool.
    asked: &'static str,
    /// The variables that say where it keeps its own.
    homes: &'static [&'static str],
    /// Variables by which it answers from what is installed, and asks nobody.
    offline: &'static [(&'static str, &'static str)],
}

/// By what a shim is told from a program.
#[derive(Clone, Copy)]
enum Sign {
    /// It is a link to a program of this name.
    LinkTo(&'static str),
    /// It is a script with a line that begins like this.
    Line(&'static str),
    /// It lies in a folder `shims` that holds a file of this name.
    Among(&'static str),
}

/// Measured with mise 2026.9.15; the others from their public sources: volta 2.0, asdf before and since 0.16, proto
/// 0.63.
const CHOOSERS: &[Chooser] = &[
    Chooser {
        name: "mise",
        sign: Sign::LinkTo("mise"),
        beside: "mise",
        asked: "which",
        homes: &["MISE_DATA_DIR", "MISE_CONFIG_DIR", "MISE_CACHE_DIR", "MISE_STATE_DIR", "MISE_GLOBAL_CONFIG_FILE"],
        // Without it, a version that is wanted and not installed is looked for in the network.
        offline: &[("MISE_OFFLINE", "1")],
    },
    Chooser {
        name: "volta",
        sign: Sign::LinkTo("volta-shim"),
        beside: "volta",
        asked: "which",
        homes: &["VOLTA_HOME"],
        offline: &[],
    },
    Chooser {
        name: "asdf",
        sign: Sign::Line("# asdf-plugin: "),
        beside: "../bin/asdf",
        asked: "which",
        homes: &["ASDF_DIR", "ASDF_DATA_DIR", "ASDF_CONFIG_FILE"],
        offline: &[],
    },
    Chooser {
        name: "proto",
        sign: Sign::Among("registry.json"),
        beside: "../bin/proto",
        asked: "bin",
        homes: &["PROTO_HOME"],
        offline: &[],
    },
];

/// A shim whose manager names no program.
#[derive(Debug, thiserror::Error)]
#[error("{shim} is a shim of {manager}, which names no program for it: {why}")]
pub(super) struct Unanswered {
    shim: AbsPath,
    manager: &'static str,
    question: String,
    why: String,
}

impl Unanswered {
    /// What the manager was asked, as a person would.
    pub(super) fn question(&self) -> &str {
        &self.question
    }
}

/// The program that `found` stands for, links resolved; none where it stands for itself.
pub(super) fn behind(env: &Env, apart: &Apart, found: &AbsPath) -> Result<Option<AbsPath>, Unanswered> {
    let resolved = real(found);
    let Some((manager, tool)) = chooser_of(found, &resolved) else { return Ok(None) };
    let question = format!("{} {} {}", manager.name, manager.asked, tool.display());
    let unanswered = |why| Unanswered { shim: found.clone(), manager: manager.name, question, why };
    manager.ask(env, apart, tool, &resolved).map(Some).map_err(unanswered)
}

/// Whose shim it is, and the name of its tool.
fn chooser_of<'a>(found: &'a AbsPath, resolved: &'a AbsPath) -> Option<(&'static Chooser, &'a OsStr)> {
    CHOOSERS.iter().find_map(|manager| Some((manager, manager.sign.tool(found, resolved)?)))
}

impl Sign {
    /// The name of the tool, if the sign is there.
    fn tool<'a>(self, found: &'a AbsPath, resolved: &'a AbsPath) -> Option<&'a OsStr> {
        let (named, program) = (found.as_path().file_name()?, resolved.as_path().file_name()?);
        match self {
            Self::LinkTo(name) => (program == name && named != name).then_some(named),
            Self::Line(start) => has_line(resolved, start).then_some(program),
            Self::Among(other) => {
                let folder = resolved.as_path().parent().filter(|folder| folder.ends_with("shims"))?;
                folder.join(other).is_file().then_some(program)
            }
        }
    }
}

fn has_line(script: &AbsPath, start: &str) -> bool {
    let mut text = Vec::new();
    let read = File::open(script.as_path()).and_then(|file| file.take(SCRIPT).read_to_end(&mut text));
    read.is_ok()
        && text.starts_with(b"#!")
        && text.split(|byte| *byte == b'\n').any(|line| line.starts_with(start.as_bytes()))
}

/// What a manager that fails has to say: its error, which may stand behind warnings, or else its first words.
fn told(said: &str) -> String {
    let is_error = |line: &&str| {
        let line = line.to_ascii_lowercase();
        line.contains("error") && !line.contains("warn")
    };
    let error = said.lines().find(is_error);
    match display::headline(error.unwrap_or(said), TOLD) {
        nothing if nothing.is_empty() => "it fails without a word".to_owned(),
        told => told,
    }
}

impl Chooser {
    fn ask(&self, env: &Env, apart: &Apart, tool: &OsStr, resolved: &AbsPath) -> Result<AbsPath, String> {
        let program = self.program(env, apart, resolved)?;
        let home = env.directories().home().clone();
        // What a repository that holds the home has to say there is the repository's word.
        let at_home = home.as_path().is_dir() && !apart.holds(real(&home).as_path());
        let folder = if at_home { home } else { AbsPath::new("/").map_err(|error| error.to_string())? };
        let limits = Limits { deadline: PATIENCE, bytes: ANSWER, overflow: Overflow::Fail };
        let invocation =
            Invocation::new(program, folder, self.environment(env, apart)).args([self.asked.as_ref(), tool]);
        let output =
            invocation.run(&[], &limits).map_err(|error| display::neutral(&with_causes(&error)).into_owned())?;
        if !output.success() {
            return Err(told(&String::from_utf8_lossy(&output.stderr.bytes)));
        }
        let answer = output.stdout.bytes.trim_ascii();
        let named = AbsPath::new(OsStr::from_bytes(answer)).ok();
        let Some(answer) = named.and_then(|path| env.find_executable(path.as_path()).ok()) else {
            return Err(format!("{:?} is none", display::headline(&String::from_utf8_lossy(answer), TOLD)));
        };
        if !apart.is_free(&answer) {
            return Err(format!("{answer} is in the repository, or in the tree of a job"));
        }
        let behind = real(&answer);
        if chooser_of(&answer, &behind).is_some() {
            return Err(format!("{answer} is a shim again"));
        }
        Ok(behind)
    }

    /// Its own program.
    fn program(&self, env: &Env, apart: &Apart, resolved: &AbsPath) -> Result<AbsPath, String> {
        let folder = resolved.as_path().parent().unwrap_or(resolved.as_path());
        let beside = folder.join(self.beside);
        let place = beside.parent().and_then(|place| place.canonicalize().ok()).zip(beside.file_name());
        let beside = place.and_then(|(place, name)| AbsPath::new(place.join(name)).ok());
        let beside = beside.filter(|path| apart.is_free(path) && env.find_executable(path.as_path()).is_ok());
        let searched = || apart.search(env, self.name.as_ref()).next();
        beside.or_else(searched).ok_or_else(|| format!("no {} is found", self.name))
    }

    /// What it is told of the person's surroundings. A variable of the editor's may come from a repository: one that
    /// says which version is meant does not pass, nor does one that leads there.
    fn environment(&self, env: &Env, apart: &Apart) -> ChildEnv {
        let mut environment = EnvPolicy::version_manager(self.homes).filter(env.variables());
        // Where one leads that is not written plainly (relative, `~`, `..`) is the manager's to say.
        let leads_there = |name: &OsStr, value: &OsStr| {
            let is_place = self.homes.iter().any(|home| name == *home) || name.as_bytes().starts_with(b"XDG_");
            std::env::split_paths(value).any(|path| match AbsPath::new(path) {
                Ok(path) => apart.holds(real(&path).as_path()),
                Err(_) => is_place,
            })
        };
        // A shell that a repository's `bin` was added to still finds what the manager needs.
        let is_free = |path: &PathBuf| AbsPath::new(path).is_ok_and(|path| !apart.holds(real(&path).as_path()));
        let searched = environment.variables().get(OsStr::new("PATH")).map(|path| {
            let free: Vec<PathBuf> = std::env::split_paths(path).filter(is_free).collect();
            std::env::join_paths(free).unwrap_or_default()
        });
        if let Some(searched) = searched {
            environment.set("PATH", searched);
        }
        let leading = environment.variables().iter().filter(|(name, value)| leads_there(name, value));
        let theirs: Vec<_> = leading.map(|(name, _)| name.clone()).collect();
        for name in theirs {
            environment.unset(name);
        }
        environment.set("HOME", env.directories().home().as_path());
        for (name, value) in self.offline {
            environment.set(*name, *value);
        }
        environment
    }
}

#[cfg(test)]
mod tests;
