//! Logins of a person, as a harness uses them: linked into the job's home, never copied.
//!
//! What a harness does to a login when it refreshes it differs, and was measured for each: a file written in place
//! (opencode), a file replaced by rename beside itself (codex), a link replaced by a private file (kimi, if its file
//! were linked), a directory whose files are replaced (kimi). [`PlannedLink`] says which. [`judge`] tells a login from
//! what is left of one, [`is_of_account`] one account from another. [`settle`] decides what becomes of one after a job.
//! Linking, looking and writing back are the engine's work.

pub mod settle;

use serde_json::Value;

use crate::{AbsPath, Failure, FailureCode};

/// A link that a plan makes, to a login of the person or to what belongs to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedLink {
    /// Where the link is made, below the job's home.
    pub at: AbsPath,
    /// What it leads to; left out without an error when that does not exist ([`LinkKind::Shared`] apart).
    pub target: AbsPath,
    /// What it leads to, and what the harness does with it.
    pub kind: LinkKind,
}

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A login file that the harness writes in place, through the link: it must be writable.
    WrittenFile,
    /// A login file that the harness replaces by rename: the file and its directory must be writable.
    ReplacedFile,
    /// A directory of logins: each regular file directly in it is one. It and they must be writable.
    Directory,
    /// A directory that holds no login and is the person's and the job's in common: of locks, by which processes that
    /// refresh one login wait for each other, or of sessions. Made where it is missing, if the directory above it is
    /// there.
    Shared,
}

/// Where a harness keeps logins of the person, as jobs are led to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginPlace {
    /// The way from where the person keeps the harness's state.
    pub path: &'static str,
    /// What is there.
    pub kind: LinkKind,
}

/// What can be seen of logins without asking a provider.
pub struct SeenLogins<'a> {
    /// What each login file that is there is worth.
    pub worth: &'a [LoginWorth],
    /// The person's own configuration of the harness ([`super::Harness::person_files`]), as far as any job takes from
    /// it.
    pub person_files: &'a [super::PersonFile],
    /// The person's settings in pactify's configuration.
    pub settings: &'a super::HarnessSettings,
    /// The model that is asked for.
    pub model: Option<&'a str>,
    /// The version that the program reported, where it was asked.
    pub version: Option<&'a str>,
    /// Whether a variable that the harness would be given is set.
    pub is_set: &'a dyn Fn(&str) -> bool,
}

impl SeenLogins<'_> {
    /// Whether anybody may be logged in with one of the files. One that is not understood counts: it may be of a newer
    /// kind.
    pub fn has_login(&self) -> bool {
        self.worth.iter().any(|worth| *worth != LoginWorth::Tombstone)
    }

    /// Whether one of these variables is set.
    pub fn has_any<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        names.into_iter().any(|name| (self.is_set)(name))
    }
}

/// How a person logs in with a harness, as one step.
pub fn step(name: &str, command: Option<&str>) -> String {
    match command {
        Some(command) => format!("run `{command}` in a terminal, or configure a provider in [harnesses.{name}]"),
        None => format!("log in with {name} itself, or configure a provider in [harnesses.{name}]"),
    }
}

/// The failure of a turn that came to nothing, of a harness that had no login: that is what a person can see to first.
/// A failure that says what was wrong stays what it is.
pub fn for_want_of_login(failure: Failure, name: &str, command: Option<&str>) -> Failure {
    use FailureCode as C;
    match failure.code {
        C::HarnessFailed | C::NoResult | C::ProviderRefused | C::ProviderUnreachable => Failure::new(
            C::LoginRequired,
            format!("no login of {name} was found: {}", failure.message),
            format!("{}; then retry the job. If it needs none: {}", step(name, command), failure.next),
        ),
        _ => failure,
    }
}

/// A login of a harness that pactify keeps itself, because the person's own cannot be linked (opencode 2.x has it in a
/// database). Made by running the harness's own command, with the person at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLogin {
    /// Arguments of the harness's executable.
    pub args: &'static [&'static str],
    /// Variables that lead it into [`super::Places::kept`]: each name, and the folder below.
    pub variables: &'static [(&'static str, &'static str)],
}

/// With which of the person's variables a harness logs in at model vendors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VendorKeys {
    /// With these. Other vendors' keys are none of its business.
    Own(&'static [&'static str]),
    /// With the key of whatever vendor the person chose.
    Every,
}

/// The keys of vendors, as the harnesses that serve many of them read them. (opencode 1.18, of its own list: those of
/// vendors who have models alone, and those by which models can be had and nothing else.)
const EVERY_VENDOR: &[&str] = &[
    "AI_GATEWAY_API_KEY",
    "ANTHROPIC_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_API_KEY",
    "CEREBRAS_API_KEY",
    "COHERE_API_KEY",
    "DASHSCOPE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "KIMI_API_KEY",
    "MINIMAX_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "NEBIUS_API_KEY",
    "NVIDIA_API_KEY",
    "OPENAI_API_KEY",
    "OPENCODE_API_KEY",
    "OPENROUTER_API_KEY",
    "PERPLEXITY_API_KEY",
    "SNOWFLAKE_CORTEX_PAT",
    "SNOWFLAKE_CORTEX_TOKEN",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
    "ZHIPU_API_KEY",
];

impl VendorKeys {
    /// The names of the variables.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Own(names) => names,
            Self::Every => EVERY_VENDOR,
        }
    }
}

/// What the contents of a login file are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginWorth {
    /// Somebody is logged in with it.
    Good,
    /// It is understood, and there is nothing in it to log in with: what a logout, or a refused refresh, leaves.
    Tombstone,
    /// It is not understood. It may be torn, or of a version that nobody knows yet.
    Unknown,
}

/// Keys below which logins keep what one logs in with. (codex: `tokens`, `OPENAI_API_KEY`; kimi: the OAuth names;
/// opencode: `key`, `refresh`, `access`, `token`.)
const SECRET_KEYS: &[&str] = &[
    "access",
    "access_token",
    "api_key",
    "apikey",
    "id_token",
    "key",
    "openai_api_key",
    "refresh",
    "refresh_token",
    "secret",
    "token",
];

/// Keys whose texts say of what kind a login is: they stay in one that was emptied. (kimi: `scope`, `token_type`;
/// codex: `auth_mode`, `last_refresh`; opencode: `type`.)
const PLAIN_KEYS: &[&str] = &["auth_mode", "last_refresh", "scope", "token_type", "type"];

/// Shorter texts of a login that is not understood are no secrets.
const SECRET_MIN: usize = 16;

/// Keys at which logins name the account that they are of. (opencode 1.18, measured: `accountId` beside the tokens of
/// an OAuth login. codex: `account_id` among its `tokens`, as its public source has it. kimi 2.1, measured: none.)
const ACCOUNT_KEYS: &[&str] = &["account_id", "accountid"];

/// Whether a refreshed login is of every account that the login before it names. One that names another account there,
/// or none any more, is not: a refresh changes tokens, not whose they are.
pub fn is_of_account(refreshed: &[u8], before: &[u8]) -> bool {
    let parse = |contents: &[u8]| serde_json::from_slice::<Value>(contents).ok();
    match (parse(before), parse(refreshed)) {
        (Some(before), Some(refreshed)) => is_of(&refreshed, &before),
        _ => true,
    }
}

fn is_of(refreshed: &Value, before: &Value) -> bool {
    let Some(before) = before.as_object() else { return true };
    before.iter().all(|(key, old)| {
        let new = refreshed.get(key);
        match old.as_str().filter(|_| ACCOUNT_KEYS.contains(&key.to_ascii_lowercase().as_str())) {
            Some(account) => account.is_empty() || new.and_then(Value::as_str) == Some(account),
            None => is_of(new.unwrap_or(&Value::Null), old),
        }
    })
}

/// Judges a login file in JSON: good if anything in it looks like a token, whatever else is there; a tombstone only if
/// no text is left in it that may be one under a name that nobody knows yet.
pub fn judge(contents: &[u8]) -> LoginWorth {
    if contents.iter().all(u8::is_ascii_whitespace) {
        return LoginWorth::Tombstone;
    }
    match serde_json::from_slice::<Value>(contents) {
        Ok(value @ Value::Object(_)) if !secrets_of(&value).is_empty() => LoginWorth::Good,
        Ok(value @ Value::Object(_)) if texts_of(&value).is_empty() => LoginWorth::Tombstone,
        _ => LoginWorth::Unknown,
    }
}

/// What one logs in with, out of a login file: what must be recorded nowhere. Of one that is not understood, every text
/// that is long enough, and the whole where it is no JSON.
pub fn secrets(contents: &[u8]) -> Vec<String> {
    let Ok(value) = serde_json::from_slice::<Value>(contents) else { return words_of(contents) };
    match secrets_of(&value) {
        known if !known.is_empty() => known,
        _ => texts_of(&value).into_iter().filter(|text| text.len() >= SECRET_MIN).collect(),
    }
}

/// Of something torn: the whole, and the words in it that are as long as a token.
fn words_of(contents: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(contents);
    let between = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ':' | ';' | '{' | '}' | '[' | ']');
    let words = text.split(between).filter(|word| word.len() >= SECRET_MIN);
    let whole = Some(text.trim()).filter(|whole| !whole.is_empty());
    let mut found: Vec<_> = words.chain(whole).map(ToOwned::to_owned).collect();
    found.dedup();
    found
}

/// Every text that is not empty, and not under a key that says what kind of login it is.
fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts_of).collect(),
        Value::Object(members) => {
            let is_plain = |key: &str| PLAIN_KEYS.contains(&key.to_ascii_lowercase().as_str());
            members
                .iter()
                .filter(|(key, value)| !(is_plain(key) && value.is_string()))
                .flat_map(|(_, value)| texts_of(value))
                .collect()
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn secrets_of(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, false, &mut found);
    found
}

fn collect(value: &Value, secret: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) if secret && !text.trim().is_empty() => found.push(text.clone()),
        Value::Object(members) => {
            for (key, value) in members {
                let named = SECRET_KEYS.contains(&key.to_ascii_lowercase().as_str());
                collect(value, named, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, secret, found)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_told_from_what_is_left_of_one() {
        use LoginWorth::{Good, Tombstone, Unknown};
        for (contents, expected) in [
            // codex: with ChatGPT, with a key, logged out.
            (r#"{"OPENAI_API_KEY":null,"tokens":{"id_token":"a","access_token":"b","refresh_token":"c"}}"#, Good),
            (r#"{"OPENAI_API_KEY":"sk-x"}"#, Good),
            (r#"{"OPENAI_API_KEY":null,"tokens":null}"#, Tombstone),
            // kimi: as it is, and as a refused refresh leaves it.
            (r#"{"access_token":"a","refresh_token":"r","expires_at":1,"scope":"","token_type":"Bearer"}"#, Good),
            (r#"{"access_token":"","refresh_token":"r","expires_at":0}"#, Good),
            (r#"{"access_token":"","refresh_token":"","expires_at":0,"token_type":"Bearer"}"#, Tombstone),
            // opencode: a key, OAuth, the last provider logged out.
            (r#"{"anthropic":{"type":"api","key":"k"}}"#, Good),
            (r#"{"openai":{"type":"oauth","refresh":"r","access":"","expires":0}}"#, Good),
            ("{}", Tombstone),
            // Of a version that nobody knows yet: it may be the newest login.
            (r#"{"credential":{"jwt":"eyJhbGciOi"}}"#, Unknown),
            (r#"{"access_token":"","refresh_token":"","session":["s-1"]}"#, Unknown),
            (r#"{"credential":{"jwt":" ","uses":3,"scope":"all"},"list":[]}"#, Tombstone),
            ("", Tombstone),
            (" \n", Tombstone),
            // Torn, or something else.
            (r#"{"access_token":"a"#, Unknown),
            ("token", Unknown),
            ("null", Unknown),
            (r#"["token"]"#, Unknown),
        ] {
            assert_eq!(judge(contents.as_bytes()), expected, "{contents}");
        }
        assert_eq!(judge(b"\xff\xfe"), Unknown);
    }

    #[test]
    fn what_one_logs_in_with_is_found_wherever_it_stands() {
        let text = r#"{"x":{"type":"oauth","refresh":"rrr","accountId":"acct"},"OPENAI_API_KEY":"kkk","keys":["no"],"token":["t1","t2"]}"#;
        let mut found = secrets(text.as_bytes());
        found.sort();
        assert_eq!(found, ["kkk", "rrr", "t1", "t2"]);
        assert_eq!(secrets(b" \n"), [""; 0]);
    }

    #[test]
    fn a_refreshed_login_is_of_the_account_that_it_was_of() {
        let codex = |account: &str| format!(r#"{{"tokens":{{"access_token":"a{account}","account_id":"{account}"}}}}"#);
        let opencode = |more: &str| format!(r#"{{"openai":{{"type":"oauth","refresh":"r"{more}}},"x":{{"key":"k"}}}}"#);
        for (refreshed, before, expected) in [
            (codex("one"), codex("one").replace("aone", "older"), true),
            (codex("two"), codex("one"), false),
            (codex("").replace(r#","account_id":"""#, ""), codex("one"), false),
            (codex("one"), codex("").replace(r#","account_id":"""#, ""), true),
            (opencode(r#","accountId":"one""#), opencode(r#","accountId":"one""#), true),
            (opencode(r#","accountId":"two""#), opencode(r#","accountId":"one""#), false),
            (opencode(r#","accountId":7"#), opencode(r#","accountId":"one""#), false),
            (r#"{"x":{"key":"k"}}"#.to_owned(), opencode(r#","accountId":"one""#), false),
            (r#"{"openai":{"type":"oauth","refresh":"r"}}"#.to_owned(), opencode(""), true),
            (r#"{"OPENAI_API_KEY":"sk-x","tokens":null}"#.to_owned(), codex("one"), false),
            // kimi names none.
            (r#"{"access_token":"new"}"#.to_owned(), r#"{"access_token":"old"}"#.to_owned(), true),
            ("no JSON".to_owned(), codex("one"), true),
        ] {
            assert_eq!(is_of_account(refreshed.as_bytes(), before.as_bytes()), expected, "{refreshed} {before}");
        }
    }

    #[test]
    fn of_a_login_that_is_not_understood_every_long_text_is_a_secret() {
        let text = r#"{"credential":{"jwt":"0123456789abcdef","label":"short"},"more":["fedcba9876543210"]}"#;
        assert_eq!(secrets(text.as_bytes()), ["0123456789abcdef", "fedcba9876543210"]);
        assert_eq!(secrets(br#"["0123456789abcdef","short"]"#), ["0123456789abcdef"]);
        assert_eq!(secrets(b"a plain token\n"), ["a plain token"]);
        let torn = r#"{"access_token":"0123456789abcdef","refr"#;
        assert_eq!(secrets(torn.as_bytes()), ["0123456789abcdef", torn]);
    }
}
