//! What secrets look like: one table of shapes, each with the part to take out and a test of whether it is worth it.
//!
//! The part to take out (the group `s`) never contains a quotation mark or half an escape sequence, so that JSON stays
//! JSON. Shapes that ordinary code could have as well ask for a value that looks random.
//!
//! Blanks, letters and word boundaries are those of ASCII, as in every format that secrets are written in. (Unicode's
//! tables hold about 2,900 pointers that each start of a program would relocate.)

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::REDACTED;

/// A kind of secret.
pub(super) struct Shape {
    pattern: Regex,
    worth: fn(&str) -> bool,
}

/// A pattern, and whether what it found is worth taking out.
type Source = (&'static str, fn(&str) -> bool);

/// Every shape, in the order in which they are tried.
pub(super) fn all() -> &'static [Shape] {
    static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
        let compile = |&(pattern, worth): &Source| {
            let pattern = Regex::new(&format!("(?x-u){pattern}")).expect("a constant pattern, compiled by every test");
            Shape { pattern, worth }
        };
        SOURCES.iter().map(compile).collect()
    });
    &SHAPES
}

impl Shape {
    /// `text` without the secrets of this shape; `None` when there is none.
    pub(super) fn redact(&self, text: &str) -> Option<String> {
        let mut clean = String::new();
        let mut done = 0;
        for captures in self.pattern.captures_iter(text.as_bytes()) {
            let Some(found) = captures.name("s") else { continue };
            // Every pattern's secret begins and ends beside ASCII, so this is never half a character.
            let Some(secret) = text.get(found.range()) else { continue };
            if written(secret) && (self.worth)(secret) {
                clean.push_str(&text[done..found.start()]);
                clean.push_str(REDACTED);
                done = found.end();
            }
        }
        (done > 0).then(|| clean + &text[done..])
    }
}

/// The patterns, in verbose syntax: blanks mean nothing, `Q` in the comments is an optional, possibly escaped quote.
const SOURCES: &[Source] = &[
    // A private key in PEM, its line feeds as they are or escaped; to the end of the text when it was cut.
    (r"-----BEGIN\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY-----(?<s>(?: [A-Za-z0-9+/=:,\s] | \\+[nr] | -[A-Za-z0-9] )+)", any),
    // A JSON web token.
    (r"(?<s> eyJ[A-Za-z0-9_-]{6,} \. [A-Za-z0-9_-]{6,} (?: \. [A-Za-z0-9_-]* )? )", any),
    // Tokens of services, by their prefixes.
    (
        r"\b(?<s>
            gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,}
          | xox[abeoprs]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,}
          | (?:AKIA|ASIA)[A-Z0-9]{16} | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{16,}
          | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{40,} | hf_[A-Za-z0-9]{24,} | gsk_[A-Za-z0-9]{24,}
          | xai-[A-Za-z0-9]{24,} | dop_v1_[a-f0-9]{40,} | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
          | [sr]k_(?:live|test)_[A-Za-z0-9]{16,} | age-secret-key-1[a-z0-9]{40,} | AGE-SECRET-KEY-1[A-Z0-9]{40,} )",
        any,
    ),
    // OpenAI and those who took their prefix over; `sk-` alone also begins names of packages.
    (r"\b(?<s> [sr]k-[A-Za-z0-9_-]{16,} )", random),
    // https://user:password@host, https://token@host, ?access_token=…
    (r#"://[^\s/?\#@:"'\\<>]*:(?<s>[^\s/?\#"'\\<>]+)@"#, any),
    (r#"://(?<s>[^\s/?\#@:"'\\<>]{20,})@"#, any),
    (
        r#"(?i)[?&](?:access_token|id_token|refresh_token|api_?key|key|token|sig|signature|secret|password|auth)
           =(?<s>[^\s&\#"'\\]{6,})"#,
        any,
    ),
    // Headers.
    (r#"(?i)authorization\\*["']?\s*[:=]\s*\\*["']?(?:bearer|basic|token|digest|apikey)\s+(?<s>[^\s"'\\]{4,})"#, any),
    (r"(?i)\bbearer\s+(?<s>[A-Za-z0-9._~+/=-]{8,})", random),
    (r#"(?i)\b(?:set-)?cookie:\s*(?<s>[^\s=;"'\\]+=[^"'\\\r\n]{4,})"#, any),
    // NAME=value, as a shell and `env` write it. A quoted value may hold blanks.
    (r#"(?:\b|_)(?:SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)[A-Z0-9_]*=(?<s>[^\s"'\\]{3,})"#, any),
    (r#"(?:\b|_)(?:KEY|TOKEN|PAT|AUTH)=(?<s>[^\s"'\\]{6,})"#, any),
    (
        r#"(?:\b|_)(?:SECRET[A-Z0-9_]*|PASSWORD[A-Z0-9_]*|PASSWD|PASSPHRASE|CREDENTIALS?|KEY|TOKEN|PAT|AUTH)
           =\\*["'](?<s>[^"'\\\r\n]{3,})"#,
        any,
    ),
    // name: "value" in JSON, YAML, TOML and code.
    (
        r#"(?i)(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|token|credentials?)
           \\*["']?\s*(?::|=>|:?=)\s*\\*["'](?<s>[^"'\\\s]{6,})"#,
        random,
    ),
    // name = value without quotes, as in an INI file.
    (
        r#"(?i)(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|token)
           \s*[:=]\s*(?<s>[A-Za-z0-9+/_=~-]{16,})(?:[\s"'\\,;]|$)"#,
        very_random,
    ),
    // --token value, --password=value, curl -u user:password
    (r#"(?i)--(?:[a-z]+-)*(?:password|passwd|token|api-?key|secret|access-key)=\\*["']?(?<s>[^\s"'\\]{4,})"#, any),
    (
        r#"(?i)--(?:[a-z]+-)*(?:password|passwd|token|api-?key|secret|access-key)\s+\\*["']?(?<s>[^\s"'\\-][^\s"'\\]{5,})"#,
        random,
    ),
    (r#"\bcurl\b[^|;\r\n]{0,400}?\s(?:-u|--user)[\s=]*\\*["']?[^\s:"'\\]+:(?<s>[^\s"'\\]{4,})"#, any),
];

fn any(_: &str) -> bool {
    true
}

/// A value that is written out: no placeholder, no reference, and more than what stands where a secret stood. (A
/// cookie's value goes to the end of its line, and may hold what another shape was taken out of.)
fn written(value: &str) -> bool {
    let reference = value.starts_with(['$', '<', '{', '(', '%']) || value.replace(REDACTED, "").is_empty();
    let code = ["environ", "process.env", "getenv", "env!(", "secrets."].iter().any(|call| value.contains(call));
    let mask = value.chars().all(|c| matches!(c, '*' | 'x' | 'X' | '.' | '…'));
    !(reference || code || mask)
}

/// Not a word or a name: it has a digit, or a sign that names do not have, or it is long and of mixed case.
fn random(value: &str) -> bool {
    let name = |c: char| c.is_alphabetic() || matches!(c, '_' | '-' | '.' | ':' | '/' | ',' | ';' | ')');
    let mixed = value.len() >= 20 && value.contains(char::is_uppercase) && value.contains(char::is_lowercase);
    mixed || value.chars().any(|c| c.is_ascii_digit() || !name(c))
}

/// Digits and letters change place too often for a name.
fn very_random(value: &str) -> bool {
    let digits: Vec<bool> = value.chars().filter(char::is_ascii_alphanumeric).map(|c| c.is_ascii_digit()).collect();
    let changes = digits.windows(2).filter(|pair| pair[0] != pair[1]).count();
    changes >= 4 || (value.len() >= 32 && changes >= 2)
}
