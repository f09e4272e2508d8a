//! Text of unknown origin, made safe to show: in an editor, a terminal, a log.
//!
//! Control characters (ANSI escapes among them), bidirectional controls and invisible characters become visible
//! escapes (threat T-23: what is shown must be what is there). Nothing here decides what is shown where.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

/// `text` on one line, with every character that could move the cursor, change direction or hide, escaped.
pub fn neutral(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Like [`neutral`], but line feeds and tabs stay: for messages and command output of several lines.
pub fn neutral_block(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

/// The first line of `text`, at most `max` characters, cut with an ellipsis.
pub fn headline(text: &str, max: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    let mut shown: String = neutral(line).chars().take(max + 1).collect();
    if shown.chars().count() > max {
        shown = shown.chars().take(max.saturating_sub(1)).collect();
        shown.push('…');
    }
    shown
}

/// `text` on one line of at most `max` characters, each run of blanks as one of them: nothing is pushed out of it by
/// padding.
pub fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    for word in text.split(is_blank).filter(|word| !word.is_empty()) {
        // A character has four bytes at most.
        if line.len() > 4 * max {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(head(word, 4 * max + 4));
    }
    headline(&line, max)
}

/// `text`, where each run of blanks that could push what follows out of sight is told as how long it is.
pub fn without_padding(text: &str) -> String {
    const BLANKS: usize = 64;
    const LINE_BREAKS: usize = 4;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_blank) {
        let end = rest[start..].find(|c| !is_blank(c)).map_or(rest.len(), |length| start + length);
        let run = &rest[start..end];
        let (count, breaks) = (run.chars().count(), run.matches('\n').count());
        out.push_str(&rest[..start]);
        let _ = match (breaks > LINE_BREAKS, count > BLANKS) {
            (true, _) => write!(out, "\n[… {breaks} line breaks]\n"),
            // What follows stays on a line of its own: it may be a command, and what is before it a comment.
            (false, true) if breaks > 0 => write!(out, "\n[… {count} blanks]\n"),
            (false, true) => write!(out, " [… {count} blanks] "),
            (false, false) => out.write_str(run),
        };
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Whether it shows nothing: white space, and the letters that are as empty.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

/// `1 path`, `2 paths`: so many of what `one` is the word for.
pub fn counted(count: u64, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {one}{plural}")
}

/// The first `max` bytes of `text`, up to a character boundary.
pub fn head(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The last `max` bytes of `text`, from a character boundary on.
pub fn tail(text: &str, max: usize) -> &str {
    let mut start = text.len().saturating_sub(max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// `text` without the escape sequences by which programs colour and move (ECMA-48: CSI, OSC and its kin, single ones).
pub fn without_ansi(text: &str) -> Cow<'_, str> {
    static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
            .expect("a constant pattern, compiled by every test")
    });
    SEQUENCE.replace_all(text, "")
}

fn escaped(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| deceives(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if deceives(c) && !keep(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}')
}

/// The script in the command line of a shell that runs one (`/bin/bash -lc 'ls'`), as harnesses record their commands;
/// any other line as it is. For people only: the record keeps the line. Its quotes are taken off as codex put them on,
/// by the same library; those of a line that was cut stay inside it.
pub fn script(line: &str) -> Cow<'_, str> {
    let program = ["/usr/bin/", "/bin/"].iter().find_map(|folder| line.strip_prefix(folder)).unwrap_or(line);
    let arguments = ["bash ", "zsh ", "sh "].iter().find_map(|shell| program.strip_prefix(shell));
    let Some(script) = arguments.and_then(|rest| rest.strip_prefix("-lc ").or_else(|| rest.strip_prefix("-c "))) else {
        return line.into();
    };
    match (shlex::split(script).as_deref(), script.chars().next()) {
        (Some([words]), _) => words.clone().into(),
        // One that was cut has no quote at its end.
        (_, Some(quote @ ('\'' | '"'))) => script[1..].strip_suffix(quote).unwrap_or(&script[1..]).into(),
        _ => script.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_untouched_and_not_copied() {
        assert!(matches!(neutral("Grüße, 文档 🙂"), Cow::Borrowed(_)));
    }

    #[test]
    fn colours_and_titles_are_taken_out() {
        for (text, expected) in [
            ("plain [31m text", "plain [31m text"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;http://a\u{1b}\\y", "xy"),
            ("\u{1b}(Ba\u{1b}7b\u{1b}[?25lc", "abc"),
            ("torn \u{1b}", "torn \u{1b}"),
        ] {
            assert_eq!(without_ansi(text), expected, "{text:?}");
        }
    }

    #[test]
    fn of_a_shell_its_script_is_shown() {
        for (line, expected) in [
            ("/bin/bash -lc 'cat README.md'", "cat README.md"),
            ("/usr/bin/zsh -c \"cat > a <<'END'", "cat > a <<'END'"),
            ("bash -lc ls", "ls"),
            ("bash -lc echo hi", "echo hi"),
            // As codex quotes them: measured.
            (r#"/bin/bash -lc "printf %s | base64 -d > 'hello.txt'""#, "printf %s | base64 -d > 'hello.txt'"),
            (r#"/bin/bash -c 'echo $A; python3 -c '"'print(\"x\")'""#, r#"echo $A; python3 -c 'print("x")'"#),
            (r#"/bin/bash -lc 'python3 -c '"'pri"#, r#"python3 -c '"'pri"#),
            ("/bin/bash script.sh", "/bin/bash script.sh"),
            ("cargo test", "cargo test"),
            ("cat /bin/bash -c x", "cat /bin/bash -c x"),
        ] {
            assert_eq!(script(line), expected, "{line}");
        }
    }

    #[test]
    fn what_deceives_becomes_visible() {
        assert_eq!(neutral("a\u{1b}[31mb\r\nc"), "a\\u{1b}[31mb\\u{d}\\u{a}c");
        assert_eq!(neutral("cod\u{202e}exe"), "cod\\u{202e}exe");
        assert_eq!(neutral_block("a\n\tb\u{7}"), "a\n\tb\\u{7}");
    }

    #[test]
    fn padding_pushes_nothing_out_of_sight() {
        let wide = |blank: &str| format!("ls{}; rm x", blank.repeat(500));
        for blank in [" ", "\t", "\n", "\r\n", "\u{a0}", "\u{3000}", "\u{3164}", "\u{2800} "] {
            assert_eq!(one_line(&wide(blank), 40), "ls ; rm x", "{blank:?}");
            assert!(without_padding(&wide(blank)).len() < 60, "{blank:?}");
        }
        assert_eq!(one_line(&format!(" a\u{1b} {}", "é".repeat(500)), 12), "a\\u{1b} ééé…");
        assert_eq!(without_padding(&wide("\u{3000}")), "ls [… 500 blanks] ; rm x");
        assert_eq!(without_padding(&wide("\n ")), "ls\n[… 500 line breaks]\n; rm x");
        let commented = format!("true #\n{}rm x", " ".repeat(70));
        assert_eq!(without_padding(&commented), "true #\n[… 71 blanks]\nrm x");
        let plain = "if a:\n        b\n\n\nc\td\n";
        assert_eq!(without_padding(plain), plain);
    }

    #[test]
    fn headlines_and_tails_are_bounded_in_characters() {
        assert_eq!(headline("  Fix the thing\nand more", 40), "Fix the thing");
        assert_eq!(headline("ääääää", 4), "äää…");
        assert_eq!(tail("aäb", 2), "b");
        assert_eq!(head("aäb", 2), "a");
        assert_eq!(head("ab", 10), "ab");
        assert_eq!(tail("ab", 10), "ab");
    }
}
