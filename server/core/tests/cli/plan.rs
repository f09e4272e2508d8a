//! What is started: arguments, input, environment, and what is refused.

use pactify_core::brief::Brief;
use pactify_core::harness::Stdin;
use pactify_core::job::access::Access;

use super::asked::{Asked, session};
use super::mine;

const ALL: &str = r#"
args = ["--cd={root}", "-l", "{lang}", "--", "{prompt}"]
read-only-args = ["--plan"]
resume-args = ["--resume", "{session}"]
output = "jsonl"
env = { AGENT_HOME = "/opt", TERM = "xterm" }
environment = ["MY_KEY"]
"#;

#[test]
fn placeholders_are_filled_in_and_the_brief_is_text() {
    let launch = mine(ALL).plan(Access::Write).unwrap();
    assert_eq!(launch.args, ["--cd=/j/tree", "-l", "de", "--", "Fix {root} and {{x}}."]);
    assert_eq!(launch.stdin, Stdin::Null, "it is in the arguments");
    assert_eq!(launch.cwd.to_string(), "/j/tree");
    assert_eq!(launch.keep_env, ["MY_KEY"]);
    let last = |name: &str| launch.env.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
    assert_eq!([last("AGENT_HOME"), last("TERM"), last("TMPDIR")], [Some("/opt"), Some("xterm"), Some("/j/tmp")]);
}

#[test]
fn without_a_prompt_among_its_arguments_a_program_reads_the_brief() {
    let launch = mine(ALL).plan(Access::ReadOnly).unwrap();
    assert_eq!(launch.args, ["--plan"]);
    assert_eq!(launch.stdin, Stdin::Text("Fix {root} and {{x}}.".to_owned()));
}

#[test]
fn a_resume_adds_its_arguments() {
    let asked = Asked { resume: session("s-1"), ..mine(ALL) };
    assert_eq!(asked.plan(Access::ReadOnly).unwrap().args, ["--plan", "--resume", "s-1"]);
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let long = |bytes: usize| Asked { brief: Brief::new("x".repeat(bytes)).unwrap(), ..mine("args = [\"{prompt}\"]") };
    assert!(long(128 * 1024 - 1).plan(Access::Write).is_ok());
    for (asked, access, named) in [
        (long(128 * 1024), Access::Write, "has 131072 bytes, and Linux takes 131071"),
        (mine("args = []"), Access::ReadOnly, "how mine is kept from writing, so it has no read-only mode"),
        (Asked { model: Some("big"), ..mine("") }, Access::Write, "takes no model"),
        (Asked { resume: session("s"), ..mine("") }, Access::Write, "does not say how a session goes on"),
        (Asked { resume: session("-s"), ..mine(ALL) }, Access::Write, "\"-s\" is no session"),
    ] {
        let failure = asked.plan(access).unwrap_err();
        assert!(failure.message.contains(named), "{}", failure.message);
    }
}

#[test]
fn only_what_is_told_how_to_look_has_a_read_only_mode() {
    assert_eq!(mine("").harness.modes(), [Access::Write]);
    assert_eq!(mine("read-only-args = []").harness.modes(), [Access::Write, Access::ReadOnly]);
}
