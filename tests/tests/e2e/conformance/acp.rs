//! An agent of the person's own that speaks ACP: the scripted agent.

use anyhow::{Result, ensure};
use pactify_tests::agent;
use pactify_tests::editor::{self, Editor};
use pactify_tests::outside;
use pactify_tests::sandbox::Sandbox;
use serde_json::{Value, json};

use super::{Act, Lie, Login, Play, Row, Stage, Trouble, ending};

pub(super) struct Acp;

/// A machine on which the scripted agent is one of the person's own.
pub(super) fn sandbox() -> Result<Sandbox> {
    let sandbox = Sandbox::new()?;
    let program = outside::program("scripted-agent")?.display().to_string();
    let text = format!(
        "[harnesses.scripted]\ncommand = {program:?}\nargs = [\"acp\"]\nprotocol = \"acp\"\nread-only-args = [\"acp\"]\n\
         read-only-mode = \"look\"\n"
    );
    editor::configure(&sandbox, &text)?;
    Ok(sandbox)
}

impl Row for Acp {
    fn name(&self) -> &'static str {
        "acp"
    }

    fn stage(&self, play: &Play) -> Result<Stage> {
        let briefs = match play {
            Play::Turns(turns) => turns.iter().map(|acts| agent::brief(&acts.iter().map(step).collect())).collect(),
            Play::Trouble(trouble) => vec![agent::brief(&json!([troubled(*trouble)]))],
        };
        Ok(Stage::of_a_twin(sandbox()?, "scripted", briefs))
    }

    /// By pactify, which it asks first. One that writes all the same is found out ([`Row::lies`]).
    fn was_refused(&self, _stage: &Stage, editor: &mut Editor, job: &str, _status: &Value) -> Result<()> {
        let decided = editor.events_of(job, "permissionDecided")?;
        let decided: Vec<_> = decided.iter().map(|told| (&told["title"], &told["granted"])).collect();
        let no = json!(false);
        ensure!(decided == [(&json!("write hello.txt"), &no), (&json!("echo x > shell.txt"), &no)], "{decided:?}");
        Ok(())
    }

    fn login(&self) -> Result<Login> {
        Ok(Login::None("an agent of the person's own has the person's home"))
    }

    fn lies(&self) -> Result<Vec<Lie>> {
        let sandbox = sandbox()?;
        let repository = sandbox.filled("one")?;
        let mut editor = Editor::open(&sandbox, repository.path())?;
        let mut lies = Vec::new();
        for (told, more, steps) in told() {
            let mut argument = json!({"harness": "scripted"});
            if let (Some(argument), Some(more)) = (argument.as_object_mut(), more.as_object()) {
                argument.extend(more.clone());
            }
            let job = editor.delegate(&agent::brief(&steps), &argument)?;
            lies.push(Lie { told, outcome: ending(&editor.until(&job, "finished")?) });
        }
        lies.push(replaced(&mut editor, &sandbox)?);
        Ok(lies)
    }
}

/// What it says, what is asked of it beside, and what it does.
fn told() -> Vec<(&'static str, Value, Value)> {
    let write = json!({"write": {"path": "a.txt", "content": "a\n"}});
    let ask = |then: Value| json!({"acp": {"ask": {"title": "write", "then": then}}});
    let stop = |reason: &str| json!({"acp": {"stop": reason}});
    let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    let again: Vec<Value> = (0..20)
        .map(|n| {
            json!({"acp": {"update": {"sessionUpdate": "agent_message_chunk", "messageId": n.to_string(),
            "content": {"type": "text", "text": "partial answer"}}}})
        })
        .collect();
    let smaller = json!({"sessionUpdate": "config_option_update", "configOptions": [{"id": "model",
        "category": "model", "currentValue": "scripted-model", "options": [{"value": "scripted-model"}]}]});
    vec![
        ("`end_turn` without a word (kimi after 429, 500 or a refused connection)", json!({}), json!([])),
        ("`end_turn` after work, without a closing word", json!({}), json!([{"say": "I'll write."}, write])),
        ("“done” where nothing was changed", json!({}), json!([{"say": "All done, the file is written."}])),
        (
            "“done” after every permission was refused",
            json!({}),
            json!([
                {"acp": {"ask": {"title": "write", "options": [{"id": "no", "kind": "reject_once"}]}}},
                {"say": "Done."},
            ]),
        ),
        (
            "“nothing was changed” in a read-only job that wrote",
            json!({"access": "readOnly"}),
            json!([ask(json!([])), write, {"say": "I changed nothing."}]),
        ),
        (
            "“done” after a part of it was refused",
            json!({}),
            json!([
                ask(json!([write])),
                {"acp": {"ask": {"title": "push", "options": [{"id": "no", "kind": "reject_once"}]}}},
                {"say": "All done."},
            ]),
        ),
        (
            "“done” after a write through pactify that was refused",
            json!({}),
            json!([write, {"acp": {"writeFile": ["../b.txt", "b\n"]}}, {"say": "All done."}]),
        ),
        (
            "“done” after an edit that failed",
            json!({}),
            json!([write, {"acp": {"update": {"sessionUpdate": "tool_call", "toolCallId": "edit-2", "title": "edit",
                "kind": "edit", "status": "failed"}}}, {"say": "All done."}]),
        ),
        ("`max_tokens`", json!({}), json!([write, {"say": "And so"}, stop("max_tokens")])),
        ("`refusal`", json!({}), json!([write, {"say": "No."}, stop("refusal")])),
        ("`cancelled`, and nobody had cancelled", json!({}), json!([write, {"say": "Done."}, stop("cancelled")])),
        ("a reason to stop that nobody knows", json!({}), json!([write, {"say": "Done."}, stop("finished_early")])),
        ("exit code 0 before its answer", json!({}), json!([write, {"say": "Done."}, {"exit": 0}])),
        (
            "the answer to a request that nobody made",
            json!({}),
            json!([write, {"say": "Done."}, {"emit": "{\"id\":99,\"result\":{\"stopReason\":\"end_turn\"}}"}, {"exit": 0}]),
        ),
        ("the words of another session", json!({}), json!([write, {"acp": {"updateOf": ["another", chunk("Done.")]}}])),
        ("the same words over and over (opencode when an answer breaks off)", json!({}), again.into()),
        (
            "the offer of other models than the one that was asked for",
            json!({"model": "big-model"}),
            json!([write, {"say": "Done."}]),
        ),
        (
            "“done” by a smaller model than the one that it had taken",
            json!({"model": "other-model"}),
            json!([{"acp": {"update": smaller}}, write, {"say": "Done."}]),
        ),
    ]
}

/// A session that is gone when the job wants to go on with it.
fn replaced(editor: &mut Editor, sandbox: &Sandbox) -> Result<Lie> {
    let steps = json!([{"write": {"path": "a.txt", "content": "a\n"}}, {"say": "Done."}]);
    let job = editor.delegate(&agent::brief(&steps), &json!({"harness": "scripted"}))?;
    editor.until(&job, "finished")?;
    std::fs::remove_dir_all(sandbox.home().join(".scripted-agent"))?;
    editor.run("resume", &json!({"jobId": job, "message": agent::brief(&steps)}))?;
    Ok(Lie { told: "a session that is no longer there", outcome: ending(&editor.until(&job, "finished")?) })
}

/// It asks before it acts, as the measured agents do.
fn step(act: &Act) -> Value {
    match act {
        Act::Write(path, text) => {
            json!({"acp": {"ask": {"title": format!("write {path}"), "then": [agent::write(path, text)]}}})
        }
        Act::Shell(command) => json!({"acp": {"ask": {"title": command, "then": [{"run": command}]}}}),
        Act::Say(text) => json!({"say": text}),
    }
}

/// How agents tell of their providers.
fn troubled(trouble: Trouble) -> Value {
    let refuse = |code: i64, message: &str| json!({"acp": {"refuse": [code, message]}});
    match trouble {
        Trouble::Unauthorized => refuse(-32000, "Authentication required: 401 Incorrect API key."),
        Trouble::RateLimit => refuse(-32603, "Internal error: 429 Slow down."),
        Trouble::ServerError => refuse(-32603, "Internal error: 500 Oops."),
        Trouble::Refused => refuse(-32603, "Internal error: connect ECONNREFUSED 127.0.0.1:9"),
        Trouble::Hang => json!("hang"),
        Trouble::Malformed => refuse(-32603, "Internal error: JSON parsing failed: Unexpected EOF"),
    }
}

mod conversation {
    //! What an agent asks of pactify while it works, over real pipes.

    use std::time::{Duration, Instant};

    use anyhow::Context as _;

    use super::*;

    #[test]
    fn files_reach_the_agent_inside_the_tree_only() -> Result<()> {
        let sandbox = sandbox()?;
        let repository = sandbox.filled("one")?;
        repository.write("victim.txt", "precious\n")?;
        let victim = repository.path().join("victim.txt").display().to_string();
        let read = |path: &str, place: &str| json!({"acp": {"readFile": [path, place]}});
        let write = |path: &str, content: &str| json!({"acp": {"writeFile": [path, content]}});
        let mut editor = Editor::open(&sandbox, repository.path())?;
        let steps = json!([
            write("sub/new.txt", "password: 'hunter2hunter2'\n"),
            read("sub/new.txt", "read.txt"),
            {"symlink": ["link", victim]},
            {"symlink": ["folder", repository.path().display().to_string()]},
            // The agent itself could: that is what is kept from reaching out through us.
            read("link", "1.txt"), read(&victim, "2.txt"), read("../../../../etc/passwd", "3.txt"),
            read("folder/victim.txt", "4.txt"), read(".git", "5.txt"), read("none.txt", "6.txt"),
            write("link", "x"), write(&victim, "x"), write("../x", "x"), write("folder/x.txt", "x"), write(".git/config", "x"),
            {"delete": "link"}, {"delete": "folder"},
            {"say": "Done."},
        ]);
        let job = editor.delegate(&agent::brief(&steps), &json!({"harness": "scripted"}))?;
        let status = editor.until(&job, "finished")?;
        // All that was asked for was not done.
        assert_eq!(super::super::ending(&status), "failed (harnessFailed)", "{status:#}");
        let tree = sandbox.job(&job).join("tree");
        let text = |name: &str| std::fs::read_to_string(tree.join(name)).with_context(|| name.to_owned());
        assert_eq!(text("sub/new.txt")?, "password: 'hunter2hunter2'\n", "as it was sent, letter by letter");
        assert_eq!(text("read.txt")?, "password: 'hunter2hunter2'\n");
        for refused in ["1.txt", "2.txt", "3.txt", "4.txt", "5.txt", "6.txt"] {
            assert!(text(refused)?.starts_with("refused: "), "{refused}: {}", text(refused)?);
        }
        assert_eq!(repository.read("victim.txt")?, "precious\n");
        let said = editor.events(&job)?;
        let refused = |event: &&Value| event["text"].as_str().is_some_and(|text| text.starts_with("refused: "));
        assert_eq!(said.iter().filter(refused).count(), 5, "{said:?}");
        Ok(())
    }

    #[test]
    fn fifty_permissions_at_once_are_answered_by_the_person() -> Result<()> {
        let sandbox = sandbox()?;
        let repository = sandbox.filled("one")?;
        let mut editor = Editor::open(&sandbox, repository.path())?;
        let steps = json!([{"acp": {"askMany": 50}}, {"write": {"path": "a.txt", "content": "a\n"}}, {"say": "Done."}]);
        let job = editor.delegate(&agent::brief(&steps), &json!({"harness": "scripted", "permissions": "ask"}))?;
        let deadline = Instant::now() + editor::JOB;
        loop {
            let status = editor.until(&job, "waiting")?;
            if status["waitingMore"] == 49 {
                break;
            }
            ensure!(Instant::now() < deadline, "not all of them are open: {status:#}");
            // News, or another look.
            let _ = editor.client().notification("pactify/job/event", Duration::from_millis(200));
        }
        for n in 1..=50 {
            let option = if n % 2 == 0 { "once" } else { "no" };
            editor.run("answer", &json!({"jobId": job, "requestId": format!("1.p{n}"), "optionId": option}))?;
        }
        let status = editor.until(&job, "finished")?;
        assert_eq!(status["outcome"], "succeeded", "{status:#}");
        let events = Value::from(editor.events(&job)?).to_string();
        assert!(events.contains("25 of 50 granted"), "{events}");
        Ok(())
    }

    #[test]
    fn an_agent_that_listens_to_nothing_is_ended_all_the_same() -> Result<()> {
        let sandbox = sandbox()?;
        let repository = sandbox.filled("one")?;
        let mut editor = Editor::open(&sandbox, repository.path())?;
        let steps = json!([
            "ignoreSignals", {"acp": "ignoreCancel"}, {"acp": "ignoreEnd"}, {"write": {"path": "a.txt", "content": "a\n"}},
            {"run": "touch started; sleep 3001"}, {"say": "Never."},
        ]);
        let job = editor.delegate(&agent::brief(&steps), &json!({"harness": "scripted"}))?;
        let tree = sandbox.job(&job).join("tree");
        editor.event(&job, "commandStarted")?;
        pactify_tests::rendezvous::appears(&tree.join("started"), editor::JOB)?;
        editor.run("cancel", &json!({"jobId": job}))?;
        let status = editor.until(&job, "finished")?;
        assert_eq!(status["outcome"], "cancelled", "{status:#}");
        let left = super::super::left_of(&job);
        assert!(left.is_empty(), "{left:?}");
        Ok(())
    }
}
