//! Hostile jobs, callers and neighbours, end to end: what a job leaves behind, a harness that misbehaves, input that no
//! honest client sends. Each must be answered by a refusal that names the thing, never by a hang, a crash, or a file
//! that nobody chose.
//!
//! The scripted agent has no sandbox: it stands for a harness that can write wherever the person can.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{Editor, JOB, configure, limit, pid, scripted_sandbox, use_scripted_agent};
use pactify_tests::rendezvous;
use pactify_tests::sandbox::{Sandbox, shell_program};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

mod callers;

/// A canary that no shape gives away.
const CANARY: &str = "correct horse battery staple";

/// The scripted agent as the sandbox's codex, with another answer to some of its commands: branches of a shell's
/// `case`.
fn use_scripted_agent_but(sandbox: &Sandbox, branches: &str) -> Result<()> {
    let codex = use_scripted_agent(sandbox, &[])?;
    let script = sandbox.root().join("another-codex");
    shell_program(&script, &format!("case \"$1\" in {branches} esac\nexec {:?} \"$@\"", codex.display()))?;
    configure(sandbox, &format!("[harnesses.codex]\nexecutable = {:?}\n", script.display().to_string()))
}

/// Every regular file below a folder. What goes away meanwhile, as a job's temporary files do, is none.
pub(super) fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let below = entry.file_type().and_then(|kind| match (kind.is_dir(), kind.is_file()) {
            (true, _) => files_below(&entry.path()),
            (_, true) => Ok(vec![entry.path()]),
            _ => Ok(Vec::new()),
        });
        match below {
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => {}
            below => found.extend(below?),
        }
    }
    Ok(found)
}

/// Characters that could move a cursor, change direction or hide.
fn deceives(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
}

#[test]
fn a_tree_that_the_job_swapped_is_not_worked_in_again() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;

    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), {"say": "first"}])), &json!({}))?;
    editor.until(&job, "finished")?;
    editor.left_alone(&job)?;
    let folder = sandbox.job(&job);
    std::fs::rename(folder.join("tree"), folder.join("elsewhere"))?;
    std::os::unix::fs::symlink(repository.path(), folder.join("tree"))?;

    let before = repository.snapshot()?;
    let more = brief(&json!([write("owned.txt", "in the checkout\n")]));
    editor.run("resume", &json!({"jobId": job, "message": more}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(
        before.changed_since(&repository.snapshot()?),
        Vec::<String>::new(),
        "nothing is written before an apply"
    );
    assert_eq!((&status["attempt"], &status["outcome"]), (&json!(2), &json!("failed")), "{status:#}");
    let message = status["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("tree"), "{status:#}");
    Ok(())
}

#[test]
fn a_harness_that_never_pauses_runs_out_of_time_all_the_same() -> Result<()> {
    let sandbox = Sandbox::new()?;
    use_scripted_agent_but(&sandbox, "exec) exec yes '{\"type\":\"turn.started\"}';;")?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate("Never stop talking.", &json!({"timeoutSeconds": 2}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "timedOut", "{status:#}");
    let events = editor.events(&job)?;
    let at = |kind: &str| {
        let event = events.iter().find(|event| event["event"]["type"] == kind);
        second_of_day(event.and_then(|event| event["at"].as_str()).context("no such event")?)
    };
    let took = (at("deadlinePassed")? - at("launched")?).rem_euclid(86_400.0);
    assert!(took < 45.0, "noticed after {took} s");
    Ok(())
}

/// Of a time as the wire writes it.
fn second_of_day(at: &str) -> Result<f64> {
    let (_, clock) = at.trim_end_matches('Z').split_once('T').context("no time")?;
    clock.split(':').try_fold(0.0, |sum, part| Ok(sum * 60.0 + part.parse::<f64>()?))
}

#[test]
fn traps_in_the_job_s_directory_neither_hang_nor_stop_a_repair() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::aside(&sandbox, Some(repository.path()))?;

    for trap in ["host.log", "host.sock", "wire.log", "summary.json", "manifest", "message", "capture", "tmp", "home"] {
        // It takes a file's place in one step: whoever reads the job may write some of these again at any moment.
        let mut list = vec![write("half.txt", "half\n"), json!({"fifo": "../trap"})];
        list.extend(matches!(trap, "tmp" | "home").then(|| json!({"delete": format!("../{trap}")})));
        list.extend([json!({"rename": ["../trap", format!("../{trap}")]}), json!({"say": "set"}), json!("hang")]);
        let list = Value::from(list);
        let job = editor.delegate(&brief(&list), &json!({}))?;
        editor.event(&job, "message").context(trap)?;
        editor.kill_host(&job)?;

        let moved = editor.run("cancel", &json!({"jobId": job})).context(trap)?;
        assert_eq!(moved["state"], "finished", "{trap}");
        let status = editor.status(&job)?;
        let captured = status["changes"]["files"] == json!(1);
        assert!(captured || status["error"]["code"] == "captureFailed", "{trap}: {status:#}");
        assert!(captured || trap == "manifest", "{trap}: {status:#}");
        let discarded = editor.run("discard", &json!({"jobId": job})).context(trap)?;
        assert_eq!(discarded["disposition"], "discarded", "{trap}");
        assert!(!sandbox.job(&job).join("tree").exists(), "{trap}");
    }
    Ok(())
}

#[test]
fn a_resume_that_waits_for_its_turn_can_be_taken_back() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    limit(&sandbox, "running-jobs", 1)?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n")])), &json!({}))?;
    editor.until(&job, "finished")?;

    let busy = editor.delegate(&brief(&json!([{"say": "busy"}, "hang"])), &json!({}))?;
    editor.event(&busy, "message")?;
    editor.run("resume", &json!({"jobId": job, "message": brief(&json!([write("b.txt", "b\n")]))}))?;
    editor.run("cancel", &json!({"jobId": job}))?;
    editor.run("cancel", &json!({"jobId": busy}))?;
    editor.until(&busy, "finished")?;

    // Its host is gone, or the result could not be applied: the job would be in use.
    editor.apply(&job)?;
    let status = editor.status(&job)?;
    assert_eq!((&status["attempt"], &status["outcome"]), (&json!(1), &json!("succeeded")), "{status:#}");
    assert!(!sandbox.job(&job).join("tree").join("b.txt").exists(), "it never ran");
    Ok(())
}

#[test]
fn a_harness_whose_launch_cannot_be_recorded_does_not_run_on() -> Result<()> {
    let sandbox = Sandbox::new()?;
    // Between the last check and the launch the journal becomes unusable.
    use_scripted_agent_but(&sandbox, "sandbox) echo spoilt >> \"$TMPDIR/../events.jsonl\";; exec) exec sleep 300;;")?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate("Sleep.", &json!({}))?;
    let host = editor.host(&job)?;
    ensure!(rendezvous::ends(host, JOB)?, "the host ends");
    assert_eq!(marked(&job)?, Vec::<String>::new(), "and nothing of the job outlives it");
    for verb in ["cancel", "discard"] {
        let refused = editor.refused(verb, &json!({"jobId": job}))?;
        assert_eq!(refused.reason(), "storeDamaged", "{verb}: {refused:?}");
        assert!(refused.message.contains("events.jsonl"), "{verb}: {refused:?}");
    }
    Ok(())
}

/// The processes that carry a job's mark.
fn marked(job: &str) -> Result<Vec<String>> {
    let mark = format!("PACTIFY_JOB={job}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let folder = entry?.path();
        let Ok(environment) = std::fs::read(folder.join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) {
            found.push(folder.display().to_string());
        }
    }
    Ok(found)
}

#[test]
fn values_that_are_words_of_ours_do_not_break_the_record() -> Result<()> {
    let mut sandbox = Sandbox::new()?;
    let codex = use_scripted_agent(&sandbox, &[])?;
    let names = ["LEVEL", "KIND", "RESULT"];
    configure(
        &sandbox,
        &format!("[harnesses.codex]\nexecutable = {:?}\nenvironment = {names:?}\n", codex.display().to_string()),
    )?;
    for (name, value) in names.iter().zip(["message", "attemptEnded", "completed"]) {
        sandbox.set(name, value);
    }
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let job = editor.delegate(&brief(&json!([write("a.txt", "a\n"), {"say": "it attemptEnded"}])), &json!({}))?;
    let status = editor.until(&job, "finished")?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    assert_eq!(status["finalMessage"], "it [redacted]");
    Ok(())
}

#[test]
fn a_secret_of_the_harness_is_never_on_disk() -> Result<()> {
    let mut sandbox = Sandbox::new()?;
    let codex = use_scripted_agent(&sandbox, &[])?;
    let executable = codex.display().to_string();
    configure(&sandbox, &format!("[harnesses.codex]\nexecutable = {executable:?}\nenvironment = [\"SPECIAL\"]\n"))?;
    sandbox.set("SPECIAL", CANARY);
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let told = json!({"say": "the value is $SPECIAL"});
    let lists = [
        json!([{"run": "echo $SPECIAL; echo $SPECIAL >&2"}, told, {"reason": "hm"}]),
        json!([{"run": "echo \"$SPECIAL\"; printf '%s' \"$SPECIAL\" | od -c >/dev/null"}, {"exit": 3}]),
    ];
    for list in &lists {
        let job = editor.delegate(&brief(list), &json!({}))?;
        let status = editor.until(&job, "finished")?;
        let shown = serde_json::to_string(&editor.run("events", &json!({"jobId": job, "limit": 1000}))?)?;
        assert!(shown.contains("[redacted]"), "the payload fires: {shown}");
        assert!(!shown.contains(CANARY) && !status.to_string().contains(CANARY), "{status:#}");
        editor.left_alone(&job)?;
    }
    for file in files_below(&sandbox.pactify_home())? {
        let bytes = std::fs::read(&file)?;
        let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!found, "{}", file.display());
    }
    Ok(())
}

#[test]
fn what_an_agent_says_cannot_drive_the_editor() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}exe.txt\r";
    let mut jobs = Vec::new();
    for last in [json!({"say": hostile}), json!({"fail": hostile})] {
        let list = json!([{"say": hostile}, {"reason": hostile}, {"warn": hostile}, {"error": hostile},
            {"run": format!("true '{hostile}'")}, write(&format!("{hostile}.txt"), "x"), last]);
        let job = editor.delegate(&format!("{hostile}{}", brief(&list)), &json!({}))?;
        editor.until(&job, "finished")?;
        jobs.push(job);
    }
    // The end of the first one's progress, and its message, come before the second's.
    editor.client().take("both messages", JOB, {
        let mut count = 0;
        move |message| {
            count += u32::from(message["method"] == "window/showMessage");
            count == 2
        }
    })?;
    for message in editor.client().drain() {
        let method = message["method"].as_str().unwrap_or_default();
        if matches!(method, "window/showMessage" | "window/logMessage" | "$/progress") {
            assert_plain(&message["params"], method)?;
        }
    }
    for job in &jobs {
        let refused = editor.refused("content", &json!({"jobId": job, "side": "result", "path": hostile}))?;
        assert!(!refused.message.chars().any(deceives), "{refused:?}");
        let events = editor.events(job)?;
        let mut notices = events.iter().filter(|event| event["event"]["type"] == "notice");
        notices.try_for_each(|event| assert_plain(event, "notice"))?;
        assert_plain(&editor.status(job)?["error"], "error")?;
        assert_plain(&editor.run("status", &json!({}))?["jobs"], "jobs")?;
    }
    Ok(())
}

/// No text in `value` has a character that deceives.
fn assert_plain(value: &Value, what: &str) -> Result<()> {
    match value {
        Value::String(text) if text.chars().any(deceives) => bail!("{what}: {text:?}"),
        Value::Array(items) => items.iter().try_for_each(|item| assert_plain(item, what)),
        Value::Object(fields) => fields.values().try_for_each(|field| assert_plain(field, what)),
        _ => Ok(()),
    }
}

#[test]
fn a_repair_that_is_killed_is_repaired_by_whoever_comes_next() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut first = Editor::open(&sandbox, repository.path())?;
    let job = first.delegate(&brief(&json!([write("half.txt", "half\n"), "ignoreSignals", "hang"])), &json!({}))?;
    first.event(&job, "filesTouched")?;
    let host = first.host(&job)?;
    first.client().signal(Signal::KILL)?;
    kill_process(host, Signal::KILL)?;
    drop(first);

    let mut killed = std::collections::BTreeSet::from([host.as_raw_nonzero()]);
    let deadline = Instant::now() + JOB * 3;
    // Two servers at once, and each host that repairs is killed as soon as it is seen, three times.
    let mut left = 3;
    loop {
        let (mut one, mut two) =
            (Editor::open(&sandbox, repository.path())?, Editor::open(&sandbox, repository.path())?);
        let status = one.status(&job)?;
        if status["state"] == "finished" && left == 0 {
            assert_eq!((&status["error"]["code"], &status["changes"]["files"]), (&json!("hostLost"), &json!(1)));
            assert_eq!(two.status(&job)?["outcome"], "failed");
            break;
        }
        ensure!(Instant::now() < deadline, "{status:#}");
        if left == 0 {
            one.until(&job, "finished")?;
            continue;
        }
        for started in one.events_of(&job, "attemptStarted")? {
            let found = pid(&started["host"]["pid"])?;
            if killed.insert(found.as_raw_nonzero()) {
                let _ = kill_process(found, Signal::KILL);
            }
        }
        left -= 1;
    }
    let mut editor = Editor::open(&sandbox, repository.path())?;
    editor.left_alone(&job)?;
    assert_eq!(marked(&job)?, Vec::<String>::new());
    editor.apply(&job)?;
    assert_eq!(repository.read("half.txt")?, "half\n");
    Ok(())
}

#[test]
fn a_store_of_accepted_contents_that_a_job_put_there_is_not_used() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.repository("one")?;
    let lines: Vec<String> = (1..=60).map(|n| format!("line {n}\n")).collect();
    repository.write("a.txt", lines.concat())?;
    repository.commit("base")?;
    let foreign = sandbox.repository("foreign")?;
    let stranger = foreign.path().join(".git");
    let before = files_below(&stranger)?;

    let mut editor = Editor::open(&sandbox, repository.path())?;
    let plant = format!("ln -s {} ../accepted; mkdir ../accepted.new", stranger.display());
    let edit = "sed -i 's/line 3$/L3/; s/line 30$/L30/' a.txt";
    let job = editor.delegate(&brief(&json!([{"run": plant}, {"run": edit}])), &json!({}))?;
    editor.until(&job, "finished")?;
    editor.left_alone(&job)?;
    let place = sandbox.job(&job).join("accepted");
    assert!(place.symlink_metadata().is_err(), "it was planted, and is gone");

    let change_set = editor.run("diffPreview", &json!({"jobId": job}))?["changeSet"].take();
    let select = json!([{"path": "a.txt", "groups": ["-3,1+3,1"]}]);
    editor.run("apply", &json!({"jobId": job, "changeSet": change_set, "select": select}))?;
    assert_eq!(files_below(&stranger)?, before, "nothing was written there");

    // What was accepted outlives another attempt, whatever that one makes of the store.
    let spoil = "printf '[extensions]\\npartialClone = x\\n' >> ../accepted/config; echo done >> a.txt";
    editor.run("resume", &json!({"jobId": job, "message": brief(&json!([{"run": spoil}]))}))?;
    editor.until(&job, "finished")?;
    editor.apply(&job)?;
    let expected = lines.concat().replace("line 3\n", "L3\n").replace("line 30\n", "L30\n") + "done\n";
    assert_eq!(repository.read("a.txt")?, expected);
    Ok(())
}
