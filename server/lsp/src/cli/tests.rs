//! The command line as a person types it, and the help that teaches it.

use clap::{CommandFactory as _, Parser as _};

use pactify_core::AbsPath;

use super::{Command, Part, Program, guarded, with_sub};

fn parse(line: &str) -> Result<Command, clap::Error> {
    match Program::try_parse_from(line.split(' '))?.part {
        Part::Sub(command) => Ok(command),
        Part::Completions(args) => Ok(Command::Completions(args)),
    }
}

#[test]
fn the_definition_holds() {
    Program::command().debug_assert();
}

#[test]
fn what_people_and_scripts_type_is_understood() {
    for line in [
        "pactify sub run",
        "pactify sub run codex --read-only --model m --timeout 30m --stall 90 --json --detach --repo . --brief -",
        "pactify sub run --worktree",
        "pactify sub run --base working-tree",
        "pactify sub run --base workingTree",
        "pactify sub list --all --everywhere --limit 10",
        "pactify sub show",
        "pactify sub show last --json",
        "pactify sub events k3x --follow",
        "pactify sub diff",
        "pactify sub diff last src/a.rs --stat",
        "pactify sub apply last --path a --path b --confirm c --yes --json",
        "pactify sub discard last -y",
        "pactify sub restore last --list --json",
        "pactify sub restore last 1-1 1-2 --yes",
        "pactify sub answer last",
        "pactify sub answer k3x allow-once --request 7 --json",
        "pactify sub answer last --deny",
        "pactify sub run --permissions ask",
        "pactify sub run --read-only --in-place",
        "pactify sub run --verify make --verify test",
        "pactify sub run --no-verify",
        "pactify sub approve --brief task.md --deny",
        "pactify sub cancel last",
        "pactify sub retry last --detach",
        "pactify sub retry last --harness kimi --model k2 --with-user-config",
        "pactify sub retry last --in-place",
        "pactify sub retry last --read-only --in-place --no-verify",
        "pactify sub export last --branch",
        "pactify sub export last --branch name",
        "pactify sub harnesses --json",
        "pactify sub doctor codex --probe",
        "pactify sub debug-report",
        "pactify sub completions bash",
        "pactify completions zsh",
    ] {
        assert!(parse(line).is_ok(), "{line}: {}", parse(line).unwrap_err());
    }
}

#[test]
fn what_makes_no_sense_is_refused_as_usage() {
    for line in [
        "pactify",
        "pactify sub",
        "pactify sub fly",
        "pactify sub apply",
        "pactify sub cancel",
        "pactify sub discard",
        "pactify sub restore",
        "pactify sub restore last 1-1 --list",
        "pactify sub run --in-place",
        "pactify sub run --read-only --in-place --linked",
        "pactify sub run --read-only --in-place --base head",
        "pactify sub retry last --write --in-place",
        "pactify sub retry last --write --read-only",
        "pactify sub answer last yes --allow",
        "pactify sub apply last --json",
        "pactify sub diff last --stat --patch",
        "pactify sub run --timeout soon",
        "pactify sub run --base worktree",
        "pactify sub run --timeout 0",
        "pactify sub list --limit 0",
        "pactify sub list --everywhere --repo x",
        "pactify completions cmd.exe",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn who_leaves_sub_out_is_told_of_it() {
    for (line, tip) in
        [("pactify list", "'sub list'"), ("pactify run codex", "'sub run'"), ("pactify sub aply", "'apply'")]
    {
        let told = with_sub(parse(line).unwrap_err()).to_string();
        assert!(told.contains(&format!("a similar subcommand exists: {tip}")), "{told}");
    }
}

#[test]
fn a_panic_is_told_with_its_log_and_ends_as_an_internal_error() {
    let log = AbsPath::new("/home/.pactify/logs/pactify.log").unwrap();
    let failure = guarded(Some(log), || panic!("one\u{1b}[2J")).unwrap_err();
    assert_eq!(failure.code.exit_code(), 70);
    assert!(failure.message.ends_with("one\\u{1b}[2J"), "{}", failure.message);
    assert!(failure.next.contains("debug-report"), "{}", failure.next);
    assert!(failure.next.contains("/home/.pactify/logs/pactify.log"), "{}", failure.next);
    assert_eq!(guarded(None, || Ok(6)).unwrap(), 6);
}

#[test]
fn every_command_teaches_by_example() {
    let mut program = Program::command();
    let mut sub = program.find_subcommand_mut("sub").unwrap().clone().bin_name("pactify sub");
    sub.build();
    let mut help = format!("{}\n", Program::command().term_width(100).render_help());
    for command in sub.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set()) {
        let text = command.clone().term_width(100).render_help().to_string();
        assert!(text.contains("Example"), "{}", command.get_name());
        help.push_str(&format!("---- {}\n{text}\n", command.get_name()));
    }
    insta::assert_snapshot!(help);
}
