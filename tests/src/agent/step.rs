//! The steps of an agent's script, and how they are written.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that the agent does. Written as `{"name": value}` or, without a value, as `"name"`.
///
/// Paths are relative to the working folder of the turn (`-C`) unless absolute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// An `agent_message`.
    Say(String),
    /// A `reasoning` item.
    Reason(String),
    /// An `error` item: a warning.
    Warn(String),
    /// An `error` event, which does not end the turn.
    Error(String),

    /// Creates or replaces a file.
    Write(Edit),
    /// Adds to the end of a file.
    Append(Edit),
    /// Removes a file or a folder with all that is in it.
    Delete(Name),
    /// Renames a file or a folder: from, to.
    Rename(Name, Name),
    /// Sets a file's mode, given in octal digits: path, mode.
    Chmod(Name, String),
    /// Makes a symbolic link: path, target.
    Symlink(Name, Name),
    /// Makes a named pipe.
    Fifo(Name),
    /// Makes a folder and those above it.
    Mkdir(Name),
    /// Makes a git repository with one commit.
    Repository(Name),
    /// From here on the file steps work in a read-only turn too.
    IgnoreSandbox,

    /// Runs a shell command in a session of its own and reports it with its output, as codex does.
    Run(String),
    /// Starts a process that tries to survive the turn, and goes on once it runs.
    Escape(Escape),

    /// Prints this line as it is.
    Emit(String),
    /// Prints these bytes, given in hexadecimal digits, with no newline.
    EmitBytes(Hex),
    /// Prints this many messages as fast as it can.
    Flood(u64),
    /// Prints messages at a pace until a file exists; the last one tells the pace that was kept.
    Chatter(Chatter),
    /// Prints one valid line with a message of this many bytes.
    LongLine(u64),
    /// Prints a line without an end, until the reader is gone (or 64 GiB).
    EndlessLine,
    /// Prints this line to the standard error.
    Stderr(String),
    /// Prints this many bytes to the standard error.
    StderrFlood(u64),
    /// Closes the standard output.
    CloseStdout,

    /// Pauses for this many seconds.
    Sleep(f64),
    /// Does nothing more until a signal ends it.
    Hang,
    /// From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT have no effect.
    IgnoreSignals,
    /// Waits until this file exists: path, seconds after which the turn fails.
    WaitFor(Name, f64),
    /// Writes arguments, environment, working folder and prompt of this run to a file, as JSON.
    Report(Name),

    /// Something that only an agent which speaks ACP does.
    Acp(Acp),

    /// Ends the turn with `turn.failed` and exit code 1 (over ACP: refuses the prompt).
    Fail(String),
    /// Ends the process with this code and no further event.
    Exit(i32),
    /// Ends the process by this signal number.
    Die(i32),
}

/// What only an agent that speaks the Agent Client Protocol does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Acp {
    /// Asks for a permission, and goes on by what it is answered.
    Ask {
        /// What for.
        title: String,
        /// The arguments of the tool call that it is about, if there are any.
        #[serde(default)]
        input: Value,
        /// The answers it takes; without any: once, always, no.
        #[serde(default)]
        options: Vec<Choice>,
        /// The steps after a yes.
        #[serde(default)]
        then: Vec<Step>,
        /// The steps after anything else.
        #[serde(default)]
        otherwise: Vec<Step>,
    },
    /// Asks for this many permissions at once, waits for all answers and says how many are a yes.
    AskMany(u64),
    /// Reads a file through the client, and puts what came of it into another one by itself: path, place.
    ReadFile(String, Name),
    /// Writes a file through the client: path, content. Says why, if it is refused.
    WriteFile(String, String),
    /// Asks the client for anything, and says what came of it: method, parameters.
    Request(String, Value),
    /// Tells anything of the session.
    Update(Value),
    /// Tells anything of another session.
    UpdateOf(String, Value),
    /// Says the value of a variable in so many pieces, as a message and as the output of a command that grows.
    Spell {
        /// The variable.
        variable: String,
        /// How many pieces.
        pieces: usize,
    },
    /// From here on a cancel has no effect.
    IgnoreCancel,
    /// From here on the end of the input is no reason to end.
    IgnoreEnd,
    /// Ends the turn for this reason.
    Stop(String),
    /// Refuses the prompt: code, message.
    Refuse(i64, String),
}

/// An answer that a permission takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Choice {
    /// Its id.
    pub id: String,
    /// Its meaning, in the protocol's words.
    pub kind: String,
    /// What people read.
    #[serde(default)]
    pub name: String,
}

/// A path and what to put there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Where.
    pub path: Name,
    /// What.
    pub content: Content,
}

/// A path: text, or `{"hex": "…"}` for bytes that aren't UTF-8.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Name {
    /// As text.
    Text(String),
    /// As bytes.
    Hex {
        /// Hexadecimal digits, two per byte.
        hex: Hex,
    },
}

/// What a file holds: text, `{"hex": "…"}`, or `{"zeros": N}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// This text.
    Text(String),
    /// These bytes.
    Hex {
        /// Hexadecimal digits, two per byte.
        hex: Hex,
    },
    /// This many bytes of nothing (a sparse file).
    Zeros {
        /// How many.
        zeros: u64,
    },
}

/// How an agent talks on and on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Chatter {
    /// Messages a second.
    pub per_second: u32,
    /// The file that ends it.
    pub until: Name,
    /// Seconds after which the turn fails.
    pub seconds: f64,
}

/// A process that tries to survive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Escape {
    /// The ways in which it tries.
    pub how: Vec<Escapee>,
    /// The file that gets its process id.
    pub pid_file: Option<Name>,
    /// It ends by itself after this long (at most ten minutes, which is also the default).
    pub seconds: Option<f64>,
}

/// A way of getting away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Escapee {
    /// Its parent has ended: it is adopted.
    DoubleFork,
    /// It leads a session of its own.
    Setsid,
    /// SIGINT, SIGTERM, SIGHUP and SIGQUIT don't end it.
    IgnoreSignals,
    /// Its environment is empty: no marker.
    ScrubEnvironment,
    /// It holds the agent's standard output and error open.
    KeepOutput,
}

/// Bytes as hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hex(pub Vec<u8>);

/// Why a script isn't played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// A line of the block isn't a step.
    #[error("line {line} of the agent's script is not a step: {text}")]
    NotAStep {
        /// Counted from 1 in the block.
        line: usize,
        /// What stands there.
        text: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The block has no end.
    #[error("the agent's script is not closed with a fence")]
    NotClosed,
}

impl Step {
    /// Creates or replaces a file with this text.
    #[must_use]
    pub fn write(path: &str, text: &str) -> Self {
        Self::Write(Edit { path: path.into(), content: Content::Text(text.to_owned()) })
    }

    /// The steps in the last block of a prompt; none without a block.
    pub fn in_prompt(prompt: &str) -> Result<Option<Vec<Self>>, ScriptError> {
        let Some((_, block)) = prompt.rsplit_once("```agent\n") else { return Ok(None) };
        let (block, _) = block.split_once("```").ok_or(ScriptError::NotClosed)?;
        let lines = block.lines().enumerate().filter(|(_, text)| !text.trim().is_empty());
        let steps = lines.map(|(index, text)| {
            serde_json::from_str(text.trim()).map_err(|source| ScriptError::NotAStep {
                line: index + 1,
                text: text.to_owned(),
                source,
            })
        });
        steps.collect::<Result<_, _>>().map(Some)
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a step has only text, numbers and lists")
    }
}

impl Name {
    pub(super) fn to_path(&self) -> PathBuf {
        match self {
            Self::Text(text) => PathBuf::from(text),
            Self::Hex { hex } => PathBuf::from(OsString::from_vec(hex.0.clone())),
        }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(digits: String) -> Result<Self, String> {
        let pair = |pair: &[u8]| {
            let digits = std::str::from_utf8(pair).ok().filter(|digits| digits.len() == 2)?;
            u8::from_str_radix(digits, 16).ok()
        };
        let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(pair).collect();
        bytes.map(Self).ok_or_else(|| format!("not pairs of hexadecimal digits: {digits}"))
    }
}

impl From<Hex> for String {
    fn from(hex: Hex) -> Self {
        hex.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_survives_being_put_into_a_prompt() {
        let steps = vec![
            Step::Say("a \"quoted\" word\nand a newline".to_owned()),
            Step::write("a b/ü.txt", "text\n"),
            Step::Write(Edit { path: Name::Hex { hex: Hex(vec![0xff, b'a']) }, content: Content::Zeros { zeros: 7 } }),
            Step::Chmod("run.sh".into(), "755".to_owned()),
            Step::Escape(Escape { how: vec![Escapee::DoubleFork, Escapee::Setsid], ..Escape::default() }),
            Step::IgnoreSandbox,
            Step::Hang,
        ];
        let prompt = format!("Please.\n\n{}\nThank you.", super::super::prompt(&steps));
        assert_eq!(Step::in_prompt(&prompt).unwrap(), Some(steps));
    }

    #[test]
    fn the_last_block_counts_and_a_broken_one_is_an_error() {
        let check = |prompt: &str, expect: &str| {
            let found = match Step::in_prompt(prompt) {
                Ok(steps) => format!("{steps:?}"),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expect, "{prompt}");
        };
        check("no block", "None");
        check("```agent\n```", "Some([])");
        check("```agent\n\"hang\"\n```\n```agent\n{\"exit\": 3}\n```", "Some([Exit(3)])");
        check("```agent\n{\"exit\": 3}\n", "the agent's script is not closed with a fence");
        check(
            "```agent\n\"hang\"\n{\"sya\": \"hi\"}\n```",
            "line 2 of the agent's script is not a step: {\"sya\": \"hi\"}",
        );
        check("```agent\n{\"emitBytes\": 3}\n```", "line 1 of the agent's script is not a step: {\"emitBytes\": 3}");
    }
}
