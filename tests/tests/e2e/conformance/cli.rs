//! A plain program of the person's own: a shell script that prints lines of JSON and does what the brief says.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Result, ensure};
use pactify_tests::editor::{Editor, configure};
use pactify_tests::sandbox::Sandbox;
use serde_json::{Value, json};

use super::{Act, Lie, Login, Play, Row, Stage, Trouble, ending};

pub(super) struct Cli;

/// What the program knows; the brief is the rest of it. When it may only look, it refuses itself what writes, as
/// `read-only-args` promise. One that does not is found out ([`Row::lies`]).
const PROGRAM: &str = r#"#!/bin/sh
mode=$1
say() { printf '{"role":"assistant","content":"%s"}\n' "$1"; }
may() { test "$mode" = write || { printf '{"type":"tool_use","name":"%s","status":"failed"}\n' "$1"; false; }; }
write() { may write && printf "$2" > "$1"; }
run() { may run && setsid -w sh -c "$1"; }
printf '{"type":"init","session_id":"%s"}\n' "${2:-session-$$}"
eval "$(cat)"
"#;

fn sandbox() -> Result<Sandbox> {
    let sandbox = Sandbox::new()?;
    let program = sandbox.root().join("my-agent");
    std::fs::write(&program, PROGRAM)?;
    std::fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let program = program.display().to_string();
    let text = format!(
        "[harnesses.mine]\ncommand = {program:?}\nargs = [\"write\"]\nread-only-args = [\"look\"]\n\
         resume-args = [\"{{session}}\"]\noutput = \"jsonl\"\n"
    );
    configure(&sandbox, &text)?;
    Ok(sandbox)
}

impl Row for Cli {
    fn name(&self) -> &'static str {
        "cli"
    }

    fn stage(&self, play: &Play) -> Result<Stage> {
        let briefs = match play {
            Play::Turns(turns) => turns.iter().map(|acts| acts.iter().map(line).collect()).collect(),
            Play::Trouble(trouble) => vec![troubled(*trouble).to_owned()],
        };
        Ok(Stage::of_a_twin(sandbox()?, "mine", briefs))
    }

    /// It does not tell of its commands.
    fn at_work(&self) -> &'static str {
        "sessionStarted"
    }

    fn was_refused(&self, _stage: &Stage, editor: &mut Editor, job: &str, _status: &Value) -> Result<()> {
        let used = editor.events_of(job, "toolUsed")?;
        let used: Vec<_> = used.iter().map(|told| (&told["tool"], &told["failed"])).collect();
        let failed = json!(true);
        ensure!(used == [(&json!("write"), &failed), (&json!("run"), &failed)], "{used:?}");
        Ok(())
    }

    fn login(&self) -> Result<Login> {
        Ok(Login::None("a program of the person's own has the person's home"))
    }

    fn lies(&self) -> Result<Vec<Lie>> {
        let sandbox = sandbox()?;
        let repository = sandbox.filled("one")?;
        let mut editor = Editor::open(&sandbox, repository.path())?;
        let mut lies = Vec::new();
        for (told, access, brief) in [
            ("“done”, then exit code 1", "write", "write a a; say Done.; exit 1"),
            ("“done”, then a signal", "write", "write a a; say Done.; kill -9 $$"),
            ("“done” where nothing was changed", "write", "say Done."),
            ("exit code 0 without an answer, in a read-only job", "readOnly", "true"),
            ("exit code 0 after work, in lines of JSON, without an answer", "write", "write a a"),
            ("exit code 0 after noise, in a read-only job", "readOnly", "echo Welcome; echo '{\"torn\":'"),
            (
                "exit code 0 after `is_error`",
                "write",
                "write a a; echo '{\"type\":\"result\",\"is_error\":true,\"result\":\"API Error: 500\"}'",
            ),
            (
                "exit code 0 after `error_max_turns`",
                "write",
                "write a a; echo '{\"type\":\"result\",\"subtype\":\"error_max_turns\"}'",
            ),
            (
                "exit code 0 after an error event",
                "write",
                "write a a; say Done.; echo '{\"type\":\"error\",\"message\":\"no\"}'",
            ),
            (
                "exit code 0 after `turn.failed`",
                "write",
                "write a a; echo '{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}'",
            ),
            (
                "`turn.failed`, then a success",
                "write",
                "write a a; echo '{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}'; \
                 echo '{\"type\":\"result\",\"subtype\":\"success\"}'",
            ),
            (
                "an error event, then a session's name",
                "write",
                "write a a; echo '{\"type\":\"error\",\"message\":\"no\"}'; \
                 echo '{\"type\":\"system\",\"session_id\":\"s\"}'",
            ),
            (
                "the same command over and over",
                "write",
                "write a a; for i in $(seq 60); do echo '{\"type\":\"tool_use\",\"name\":\"sh\",\"input\":\"make\",\"output\":\"no\"}'; done; \
                 say Done.",
            ),
            ("a change, in a read-only job", "readOnly", "echo x > x; say Done."),
            ("a change of an ignored file, in a read-only job", "readOnly", "echo x > x.o; say Done."),
            (
                "a change below a directory that it made unreadable, in a read-only job",
                "readOnly",
                "echo x > src/main.c; chmod 000 src; say Done.",
            ),
        ] {
            let job = editor.delegate(brief, &json!({"harness": "mine", "access": access}))?;
            lies.push(Lie { told, outcome: ending(&editor.until(&job, "finished")?) });
        }
        let job = editor.delegate("write a a; say Done.", &json!({"harness": "mine"}))?;
        editor.until(&job, "finished")?;
        let other = "write b b; echo '{\"type\":\"init\",\"session_id\":\"other\"}'; say Done.";
        editor.run("resume", &json!({"jobId": job, "message": other}))?;
        let outcome = ending(&editor.until(&job, "finished")?);
        lies.push(Lie { told: "another session than the one to go on with", outcome });
        Ok(lies)
    }
}

fn line(act: &Act) -> String {
    match act {
        Act::Write(path, text) => format!("write {path} '{text}'\n"),
        Act::Shell(command) => format!("run '{command}'\n"),
        Act::Say(text) => format!("say '{text}'\n"),
    }
}

fn troubled(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Unauthorized => "echo 'Error: 401 Incorrect API key.' >&2; exit 1",
        Trouble::RateLimit => "echo 'Error: 429 Slow down.' >&2; exit 1",
        Trouble::ServerError => "echo 'Error: 500 Oops.' >&2; exit 1",
        Trouble::Refused => "echo 'Error: connect ECONNREFUSED 127.0.0.1:9' >&2; exit 1",
        Trouble::Hang => "sleep 3001",
        Trouble::Malformed => "echo 'Error: JSON parsing failed' >&2; exit 1",
    }
}
