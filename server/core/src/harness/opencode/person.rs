//! What a write job takes of the person's own `opencode.json`: all but what its access mode rests on, and what would
//! run code inside opencode.
//!
//! The text may be JSON with comments and trailing commas, and names files relative to its own directory; what is taken
//! over is plain JSON that names them from anywhere.

use serde_json::Value;

use super::super::settings::bounds::Object;
use super::super::{PersonFile, Request};
use crate::{AbsPath, Failure, FailureCode};

/// The files that opencode reads, each over the one before, and the instructions beside them.
pub(super) const NAMES: &[&str] =
    &["opencode/config.json", "opencode/opencode.json", "opencode/opencode.jsonc", INSTRUCTIONS];
pub(super) const INSTRUCTIONS: &str = "opencode/AGENTS.md";

/// What stays behind: permissions and what has permissions of its own; plugins, which could answer for the person; what
/// says whom a session is told, and what nobody has tried in a job.
const LEFT_OUT: &[&str] = &[
    "permission",
    "permissions",
    "tools",
    "mode",
    "default_agent",
    "plugin",
    "share",
    "autoshare",
    "autoupdate",
    "snapshot",
    "server",
    "experimental",
];

/// The same, of one agent.
const LEFT_OUT_OF_AGENTS: &[&str] = &["permission", "permissions", "tools"];

/// The person's configuration, as a job may have it.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) config: Object,
    /// The keys that stay behind.
    pub(super) left_out: Vec<String>,
}

/// All of the person's files, one over the other. The agent of a job is `build`; where the job names a model, that
/// one's own model stays behind.
pub(super) fn take(request: &Request<'_>) -> Result<Taken, Failure> {
    let mut config = Object::new();
    for file in request.person_files.iter().filter(|file| file.name != INSTRUCTIONS) {
        merge(&mut config, read(file, request.places.user_home.as_ref())?);
    }
    config.remove("$schema");
    let mut left_out = Vec::new();
    let mut leave = |from: &mut Object, keys: &[&str], of: &str| {
        for key in keys {
            if from.remove(*key).is_some() {
                left_out.push(format!("{of}{key}"));
            }
        }
    };
    leave(&mut config, LEFT_OUT, "");
    let agents = config.get_mut("agent").and_then(Value::as_object_mut);
    for (name, agent) in agents.into_iter().flatten() {
        let Some(agent) = agent.as_object_mut() else { continue };
        leave(agent, LEFT_OUT_OF_AGENTS, &format!("agent.{name}."));
        if name == "build" {
            leave(agent, &["disable"], "agent.build.");
            if request.model.is_some() {
                leave(agent, &["model"], "agent.build.");
            }
        }
    }
    Ok(Taken { config, left_out })
}

/// The values of it that must be recorded nowhere. Of a file that cannot be read none: then nothing is started.
pub(super) fn secrets(request: &Request<'_>) -> Vec<String> {
    let values = request.person_files.iter().filter_map(|file| serde_json::from_str(&plain(&file.text)).ok());
    values.flat_map(|value: Value| crate::redact::secrets_in_json(&value)).collect()
}

/// Puts one configuration of opencode over another as it does itself: what is no table in both is the upper one's.
pub(super) fn merge(config: &mut Object, upper: Object) {
    for (key, value) in upper {
        match (config.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(inner)) => merge(below, inner),
            (_, value) => drop(config.insert(key, value)),
        }
    }
}

fn read(file: &PersonFile, home: Option<&AbsPath>) -> Result<Object, Failure> {
    let refused = |what: String| {
        let next = "correct it, or leave `withUserConfig` out; then retry the job";
        Failure::new(FailureCode::InvalidConfig, format!("your own {}: {what}", file.name), next)
    };
    let mut value: Value = serde_json::from_str(&plain(&file.text)).map_err(|error| {
        // Never the text around a mistake: it may be a key.
        refused(format!("it is no JSON (line {})", error.line()))
    })?;
    let folder = file.name.rsplit_once('/').map(|(folder, _)| file.directory.descend(folder));
    let directory = folder.unwrap_or_else(|| file.directory.clone());
    anchor(&mut value, &Anchor { directory: &directory, home });
    if let Some(Value::Array(texts)) = value.get_mut("instructions") {
        for text in texts {
            anchor_home(text, home);
        }
    }
    match value {
        Value::Object(config) => Ok(config),
        _ => Err(refused("it is no object".to_owned())),
    }
}

struct Anchor<'a> {
    directory: &'a AbsPath,
    home: Option<&'a AbsPath>,
}

/// Makes every `{file:…}` name its file from anywhere.
fn anchor(value: &mut Value, to: &Anchor<'_>) {
    match value {
        Value::String(text) => *text = anchored(text, to),
        Value::Array(values) => values.iter_mut().for_each(|value| anchor(value, to)),
        Value::Object(members) => members.values_mut().for_each(|value| anchor(value, to)),
        _ => {}
    }
}

fn anchored(text: &str, to: &Anchor<'_>) -> String {
    const OPEN: &str = "{file:";
    let mut parts = text.split(OPEN);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (path, rest) = part.split_once('}').map_or((part, None), |(path, rest)| (path, Some(rest)));
        let at = match (path.strip_prefix("~/"), to.home) {
            _ if path.starts_with('/') => path.to_owned(),
            (Some(below), Some(home)) => home.as_path().join(below).to_string_lossy().into_owned(),
            _ => to.directory.as_path().join(path).to_string_lossy().into_owned(),
        };
        out += OPEN;
        out += &at;
        if let Some(rest) = rest {
            out.push('}');
            out += rest;
        }
    }
    out
}

fn anchor_home(value: &mut Value, home: Option<&AbsPath>) {
    if let (Value::String(text), Some(home)) = (value, home)
        && let Some(below) = text.strip_prefix("~/")
    {
        *text = home.as_path().join(below).to_string_lossy().into_owned();
    }
}

/// JSON without comments and trailing commas; lines stay where they are.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // Where a comma stands that nothing has followed yet.
    let mut comma = None;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => c.len_utf8(),
        };
        let (taken, after) = rest.split_at(length);
        rest = after;
        if c == '/' && length > 1 {
            out.extend(taken.chars().filter(|c| *c == '\n'));
            continue;
        }
        match (c, comma) {
            ('}' | ']', Some(at)) => {
                out.replace_range(at..=at, " ");
                comma = None;
            }
            (',', _) => comma = Some(out.len()),
            (c, _) if c.is_whitespace() => {}
            _ => comma = None,
        }
        out += taken;
    }
    out
}

/// The length of the string that `text` begins with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_taken_out_and_texts_are_not() {
        for (text, expected) in [
            ("{\"a\": 1, // one\n \"b\": [1, 2,], /* two */ }", json!({"a": 1, "b": [1, 2]})),
            (r#"{"url": "https://x/,}", "q": "\"//", }"#, json!({"url": "https://x/,}", "q": "\"//"})),
            ("{\"a\": /* \n */ 1,\n // end\n}", json!({"a": 1})),
            ("{\"ä\": \"ö, ]\"}", json!({"ä": "ö, ]"})),
        ] {
            let plain = plain(text);
            assert_eq!(serde_json::from_str::<Value>(&plain).unwrap(), expected, "{text} {plain}");
            assert_eq!(plain.lines().count(), text.lines().count(), "{text}");
        }
        for broken in ["{\"a", "{\"a\": 1 /* ", "{\"a\": 1,, }", "//"] {
            assert!(serde_json::from_str::<Value>(&plain(broken)).is_err(), "{broken}");
        }
    }

    #[test]
    fn files_are_named_from_anywhere() {
        let path = |text: &str| AbsPath::new(text).unwrap();
        let (directory, home) = (path("/h/.config/opencode"), path("/h"));
        let to = Anchor { directory: &directory, home: Some(&home) };
        for (text, expected) in [
            ("{file:./key}", "{file:/h/.config/opencode/./key}"),
            ("a {file:~/key} b {file:/etc/k}", "a {file:/h/key} b {file:/etc/k}"),
            ("{file:open", "{file:/h/.config/opencode/open"),
            ("{env:KEY}", "{env:KEY}"),
        ] {
            assert_eq!(anchored(text, &to), expected);
        }
    }
}
