//! The real kimi and the real opencode, against the scripted provider.

use anyhow::{Context as _, Result};
use pactify_tests::editor::Editor;
use serde_json::{Value, json};

use super::{Act, Case, Lie, Login, Pace, Play, Row, Stage, Trouble, ending};
use crate::agents::{self, Agent, KEY, PATIENCE, logins, privacy};
use crate::codex::refusing_port;

/// So many jobs run at once: each is half a gigabyte, and seconds of processor time.
const AT_ONCE: usize = 5;

/// What a session is asked, turn by turn.
const BRIEFS: [&str; 2] = ["Write the first file.", "Now the second one."];

impl Row for Agent {
    fn name(&self) -> &'static str {
        Agent::name(*self)
    }

    fn stage(&self, play: &Play) -> Result<Stage> {
        let agent = *self;
        let mut held = None;
        let stage = match play {
            Play::Turns(turns) => {
                agents::Stage::playing(agent, &turns.iter().flatten().map(|act| step(agent, act)).collect())?
            }
            Play::Trouble(Trouble::Refused) => {
                let stage = agents::Stage::playing(agent, &json!([{"message": "unreachable"}]))?;
                // Bound, so that nobody else gets the port; not listening, so that it refuses.
                let (holder, port) = refusing_port()?;
                held = Some(holder);
                stage.configure(&[("x".to_owned(), format!("http://127.0.0.1:{port}/v1"))], None)?;
                stage
            }
            Play::Trouble(trouble) => agents::Stage::playing(agent, &json!([troubled(*trouble)]))?,
        };
        let agents::Stage { agent, sandbox, provider } = stage;
        Ok(Stage {
            sandbox,
            provider: Some(provider),
            held: Box::new(held),
            harness: agent.name(),
            briefs: BRIEFS.map(str::to_owned).to_vec(),
            pace: Pace { patience: PATIENCE, silence: 40 },
        })
    }

    fn leaves(&self) -> &'static [&'static str] {
        match self {
            Self::Kimi => &[],
            // A number of its own.
            Self::Opencode => &[".git/opencode"],
        }
    }

    fn was_refused(&self, stage: &Stage, _editor: &mut Editor, _job: &str, _status: &Value) -> Result<()> {
        let requests = stage.provider.as_ref().context("it has a provider")?.requests();
        let offered = requests.first().context("nothing was asked")?.body["tools"].as_array().context("no tools")?;
        let mut offered: Vec<_> = offered.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
        offered.sort_unstable();
        let reading = if *self == Self::Kimi { ["Glob", "Grep", "Read"] } else { ["glob", "grep", "read"] };
        assert_eq!(offered, reading, "what is offered is what reads");
        let heard = requests.last().context("nothing was asked")?.body.to_string();
        let told = ["disabled by the active tool policy", "unavailable tool"];
        let times: usize = told.iter().map(|words| heard.matches(words).count()).sum();
        assert!(times >= 2, "both calls were made, and refused: {heard}");
        Ok(())
    }

    fn look_closer(&self, case: Case, stage: &Stage, job: &str, status: &Value) -> Result<()> {
        let requests = stage.provider.as_ref().context("it has a provider")?.requests();
        let asked = requests.first().context("nothing was asked")?;
        let heard = requests.last().context("nothing was asked")?.body.to_string();
        match case {
            Case::Writes => {
                assert!(status["session"].is_string() && status["harnessVersion"].is_string(), "{status:#}");
                // Three answers of the provider; opencode counts the last one.
                assert_eq!(status["usage"]["outputTokens"], if *self == Self::Kimi { 90 } else { 30 }, "{status:#}");
                let key = format!("Bearer {KEY}");
                assert_eq!(asked.headers.get("authorization"), Some(&key), "it is there to be found");
                assert!(asked.body.to_string().contains(BRIEFS[0]));
                assert!(!status["notices"].to_string().contains("was asked for"), "the model is the one: {status:#}");
                privacy::assert_kept_nowhere(&stage.sandbox, job)
            }
            Case::Resumes => {
                for words in [BRIEFS[0], "First done.", BRIEFS[1]] {
                    assert!(heard.contains(words), "the model hears the whole session, and so {words:?}");
                }
                Ok(())
            }
        }
    }

    fn login(&self) -> Result<Login> {
        match self {
            Self::Kimi => logins::kimi_refreshes_it_where_the_person_keeps_it()?,
            Self::Opencode => logins::opencode_writes_it_where_the_person_keeps_it()?,
        }
        Ok(Login::Refreshed)
    }

    /// What it says when its provider gives it half an answer, or nothing that is one.
    fn lies(&self) -> Result<Vec<Lie>> {
        let agent = *self;
        let raw = |text: &str, kind: &str| json!({"raw": text, "content_type": kind});
        // What looks like a secret, and what is outside the tree.
        let refused = if agent == Agent::Kimi { ".env" } else { "../b.txt" };
        let mut told = vec![
            ("nothing", "an answer without anything in it", raw("data: [DONE]\n\n", "text/event-stream")),
            ("html", "a page in place of an answer", raw("<html>gateway</html>", "text/html")),
            ("cut", "half an answer, as if it were one", json!({"truncate": true})),
            ("done", "“done” where nothing was changed", json!({"message": "All done, the file is written."})),
        ];
        told.push((
            "refused",
            "“done” after one edit, and another one that it refused itself",
            json!([agent.write("a.txt", "a\n"), agent.write(refused, "b\n"), {"message": "All done."}]),
        ));
        if agent == Self::Kimi {
            told.push(("later", "`end_turn` after HTTP 429 with a time to wait", later()));
            told.push(("broken", "`end_turn` after HTTP 500", troubled(Trouble::ServerError)));
            told.push(("nonsense", "`end_turn` after an answer that is none", troubled(Trouble::Malformed)));
            told.push(("nobody", "`end_turn` after a refused connection", Value::Null));
        } else {
            told.push(("later", "trying again for ever, after HTTP 429 with a time to wait", later()));
            told.push(("broken", "trying again for ever, after HTTP 500", troubled(Trouble::ServerError)));
        }
        let played = told.iter().filter(|(_, _, step)| !step.is_null());
        let steps = |step: &Value| if step.is_array() { step.clone() } else { json!([step]) };
        let scripts = played.map(|(name, _, step)| ((*name).to_owned(), json!({"steps": steps(step)})));
        let stage = agents::Stage::new(agent, &Value::Object(scripts.collect()))?;
        let (_holder, port) = refusing_port()?;
        let url = |(name, _, step): &(&str, &str, Value)| match step {
            Value::Null => ((*name).to_owned(), format!("http://127.0.0.1:{port}/v1")),
            _ => ((*name).to_owned(), stage.provider.base_url(name)),
        };
        stage.configure(&told.iter().map(url).collect::<Vec<_>>(), None)?;
        let repository = stage.repository()?;
        let mut editor = Editor::open(&stage.sandbox, repository.path())?;
        let mut lies = Vec::new();
        for some in told.chunks(AT_ONCE) {
            let mut jobs = Vec::new();
            for (script, told, _) in some {
                // The start of an agent is silence, too.
                let more = json!({"model": stage.model(script), "stallSeconds": 200});
                jobs.push((*told, stage.delegate(&mut editor, "Say hello.", more)?));
            }
            for (told, job) in jobs {
                lies.push(Lie { told, outcome: ending(&agents::finished(&mut editor, &job)?) });
            }
        }
        lies.push(smaller(agent)?);
        lies.push(lost(agent)?);
        Ok(lies)
    }
}

/// Another model than the one that was asked for, as its configuration is another one once it reads it.
fn smaller(agent: Agent) -> Result<Lie> {
    let steps = json!({"steps": [agent.write("a.txt", "a\n"), {"message": "Done."}]});
    let stage = agents::Stage::new(agent, &json!({"big": steps, "small": steps}))?;
    let (file, big, small) = match agent {
        Agent::Kimi => ("$KIMI_CODE_HOME/config.toml", "default_model = \"big\"", "default_model = \"small\""),
        Agent::Opencode => ("$XDG_CONFIG_HOME/opencode/opencode.json", "big/m", "small/m"),
    };
    let altered = stage.altered(&format!("test -f \"{file}\" && sed -i 's|{big}|{small}|' \"{file}\""))?;
    stage.configure(&["big", "small"].map(|name| (name.to_owned(), stage.provider.base_url(name))), Some(&altered))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, BRIEFS[0], json!({"model": stage.model("big")}))?;
    let outcome = ending(&agents::finished(&mut editor, &job)?);
    Ok(Lie { told: "“done” by a smaller model than the one that was asked for", outcome })
}

/// A session that is gone when the job wants to go on with it.
fn lost(agent: Agent) -> Result<Lie> {
    let steps = json!([agent.write("a.txt", "a\n"), {"message": "Done."}, {"message": "Went on."}]);
    let stage = agents::Stage::playing(agent, &steps)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, BRIEFS[0], json!({}))?;
    let status = agents::finished(&mut editor, &job)?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let home = stage.sandbox.job(&job).join("home");
    let sessions = if agent == Agent::Kimi { "kimi/sessions" } else { "data/opencode" };
    std::fs::remove_dir_all(home.join(sessions)).context(sessions)?;
    editor.run("resume", &json!({"jobId": job, "message": BRIEFS[1]}))?;
    let outcome = ending(&agents::finished(&mut editor, &job)?);
    Ok(Lie { told: "a session that is no longer there", outcome })
}

/// The calls are made whether they were offered or not.
fn step(agent: Agent, act: &Act) -> Value {
    match act {
        Act::Write(path, text) => agent.write(path, text),
        Act::Shell(command) => agent.run(command),
        Act::Say(text) => json!({"message": text}),
    }
}

fn error(status: u16, code: &str, message: &str) -> Value {
    json!({"status": status, "body": {"error": {"message": message, "type": code, "code": code}}})
}

fn later() -> Value {
    let mut step = error(429, "rate_limit", "Rate limit reached.");
    step["headers"] = json!({"retry-after": "1"});
    step
}

fn troubled(trouble: Trouble) -> Value {
    match trouble {
        Trouble::Unauthorized => error(401, "invalid_api_key", "Incorrect API key."),
        Trouble::RateLimit => error(429, "rate_limit_exceeded", "Rate limit reached."),
        Trouble::ServerError => error(500, "server_error", "Oops."),
        Trouble::Hang => json!({"hang": 600}),
        Trouble::Malformed | Trouble::Refused => json!({
            "raw": "data: {\"id\": \"x\", \"choices\": [ {\"delta\": \n\ndata: [DONE]\n\n",
            "content_type": "text/event-stream",
        }),
    }
}
