//! agy, by its twin: the real one cannot be run here.

use anyhow::{Result, ensure};
use pactify_tests::agy;
use pactify_tests::editor::Editor;
use serde_json::{Value, json};

use super::{Act, Lie, Login, Play, Row, Stage, Trouble, ending};
use crate::agy::sandbox;

pub(super) struct Agy;

impl Row for Agy {
    fn name(&self) -> &'static str {
        "agy"
    }

    fn stage(&self, play: &Play) -> Result<Stage> {
        let briefs = match play {
            Play::Turns(turns) => {
                turns.iter().map(|acts| agy::brief(&acts.iter().map(step).collect::<Vec<_>>())).collect()
            }
            Play::Trouble(trouble) => vec![agy::brief(&troubled(*trouble))],
        };
        Ok(Stage::of_a_twin(sandbox(agy::VERSION)?, "agy", briefs))
    }

    /// By its own plan mode, and by the hook.
    fn was_refused(&self, _stage: &Stage, editor: &mut Editor, job: &str, status: &Value) -> Result<()> {
        ensure!(status["notices"].to_string().contains("agy refused its agent 2 action(s)"), "it told of none");
        let (tools, commands) = (editor.events_of(job, "toolUsed")?, editor.events_of(job, "commandEnded")?);
        let failed = tools.iter().filter(|tool| tool["tool"] == "write_to_file" && tool["failed"] == true).count();
        let refused = commands.iter().filter(|ended| ended["tail"] == "it was refused, or failed").count();
        ensure!((failed, refused) == (1, 1), "{tools:?} {commands:?}");
        Ok(())
    }

    fn login(&self) -> Result<Login> {
        let sandbox = sandbox(agy::VERSION)?;
        let repository = sandbox.filled("one")?;
        let mut editor = Editor::open(&sandbox, repository.path())?;
        let refreshed = "{\"refresh_token\":\"r-1\"}";
        let job = editor
            .delegate(&agy::brief(&[json!({"refreshLogin": refreshed}), json!({"say": "Hello."})]), &json!({}))?;
        editor.until(&job, "finished")?;
        let kept = std::fs::read_to_string(sandbox.home().join(".gemini/antigravity-cli/antigravity-oauth-token"))?;
        ensure!(kept == refreshed, "the person's login is {kept}");
        Ok(Login::Refreshed)
    }

    fn lies(&self) -> Result<Vec<Lie>> {
        let sandbox = sandbox(agy::VERSION)?;
        let repository = sandbox.filled("one")?;
        let mut editor = Editor::open(&sandbox, repository.path())?;
        let write = json!({"write": ["a.txt", "a\n"]});
        let say = json!({"say": "Done."});
        let stderr = |line: &str| json!({"stderr": line});
        let result = |members: Value| json!({"result": members});
        let mut lies = Vec::new();
        for (told, access, steps) in [
            (
                "exit code 0 and `ERROR`, after work",
                "write",
                vec![write.clone(), say.clone(), result(json!({"status": "ERROR"}))],
            ),
            ("`SUCCESS`, then exit code 1", "write", vec![write.clone(), say.clone(), json!({"exitLater": 1})]),
            ("exit code 0 without a result", "write", vec![write.clone(), say.clone(), json!({"exit": 0})]),
            (
                "`SUCCESS` with a part of the answer, after its time-out",
                "write",
                vec![write.clone(), say.clone(), stderr("print timeout after 5m0s, returning partial output")],
            ),
            (
                "`SUCCESS` after it ended background tasks",
                "write",
                vec![write.clone(), say.clone(), stderr("terminating 2 background task(s) on exit")],
            ),
            (
                "`SUCCESS` after work, and one tool that was refused",
                "write",
                vec![
                    write.clone(),
                    say.clone(),
                    result(json!({"denied_actions": [{"tool": "run_command", "reason": "denied"}]})),
                ],
            ),
            ("`SUCCESS` without an answer", "write", vec![write.clone()]),
            (
                "`SUCCESS` without an answer, after a refused tool, in a read-only job",
                "readOnly",
                vec![
                    json!({"run": "make"}),
                    stderr("jetski: no output produced — a tool required the \"command\" permission"),
                ],
            ),
            ("`SUCCESS`, and nothing was changed", "write", vec![say.clone()]),
            (
                "`SUCCESS` with an old quota error for an answer",
                "write",
                vec![json!({"say": "RESOURCE_EXHAUSTED: quota exceeded, resets in 3h"})],
            ),
            ("`WAITING`", "write", vec![write.clone(), say.clone(), result(json!({"status": "WAITING"}))]),
            (
                "a command that no hook saw, in a read-only job",
                "readOnly",
                vec![json!({"runUnasked": "true"}), say.clone()],
            ),
            (
                "hooks that did not load, in a read-only job",
                "readOnly",
                vec![json!("forgetHooks"), json!({"view": "README.md"}), say.clone()],
            ),
            ("a change, in a read-only job", "readOnly", vec![json!({"runUnasked": "echo x > x"}), say.clone()]),
            ("`SUCCESS` by a smaller model than the one that was asked for", "write", by_a_smaller_model(&write, &say)),
            ("a step that failed alike over and over", "write", over_and_over(&write, &say)),
        ] {
            let job = editor
                .delegate(&agy::brief(&steps), &json!({"harness": "agy", "access": access, "model": "big-model"}))?;
            lies.push(Lie { told, outcome: ending(&editor.until(&job, "finished")?) });
        }
        let brief = agy::brief(&[write, say]);
        let job = editor.delegate(&brief, &json!({"harness": "agy"}))?;
        editor.until(&job, "finished")?;
        let home = sandbox.job(&job).join("home");
        std::fs::remove_dir_all(home.join("gemini/antigravity-cli/conversations"))?;
        editor.run("resume", &json!({"jobId": job, "message": brief}))?;
        let outcome = ending(&editor.until(&job, "finished")?);
        lies.push(Lie { told: "another conversation than the one to go on with", outcome });
        Ok(lies)
    }
}

fn by_a_smaller_model(write: &Value, say: &Value) -> Vec<Value> {
    let smaller = json!({"event": "init", "init": {"model": "small-model"}});
    vec![json!({"emit": smaller.to_string()}), write.clone(), say.clone()]
}

fn over_and_over(write: &Value, say: &Value) -> Vec<Value> {
    [vec![write.clone()], vec![json!({"run": "false"}); 60], vec![say.clone()]].concat()
}

fn step(act: &Act) -> Value {
    match act {
        Act::Write(path, text) => json!({"write": [path, text]}),
        Act::Shell(command) => json!({"run": command}),
        Act::Say(text) => json!({"say": text}),
    }
}

/// How it tells of its provider, as far as that is known.
fn troubled(trouble: Trouble) -> Vec<Value> {
    let error = |words: &str| vec![json!({"result": {"status": "ERROR", "error": words}}), json!({"exitLater": 1})];
    match trouble {
        Trouble::Unauthorized => error("401 Unauthorized: request had invalid authentication credentials"),
        Trouble::RateLimit => error("429 RESOURCE_EXHAUSTED: quota exceeded, resets in 2h"),
        Trouble::ServerError => error("500 Internal Server Error"),
        Trouble::Refused => error("dial tcp 127.0.0.1:9: connect: connection refused"),
        Trouble::Hang => vec![json!("hang")],
        Trouble::Malformed => error("parse error: unexpected end of JSON input"),
    }
}
