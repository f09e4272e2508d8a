//! The scripted agent as a process: codex's command line, its lines, and its ways to misbehave.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use pactify_tests::agent::{self, Edit, Escape, Escapee, Hex, Login, Name, Profile, Step};
use pactify_tests::rendezvous;
use pactify_tests::running::{Ended, Running};
use pactify_tests::sandbox::{Repository, Sandbox};
use rustix::process::{Pid, Signal};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox with a repository, a `CODEX_HOME` and an installed agent.
struct Stage {
    sandbox: Sandbox,
    codex: PathBuf,
}

impl Stage {
    fn new(profile: &Profile) -> anyhow::Result<Self> {
        let mut sandbox = Sandbox::new()?;
        let home = sandbox.root().join("codex-home");
        std::fs::create_dir(&home)?;
        sandbox.set("CODEX_HOME", home);
        let agent = PathBuf::from(env!("CARGO_BIN_EXE_scripted-agent"));
        let codex = agent::install(&agent, &sandbox.root().join("bin"), profile)?;
        Ok(Self { sandbox, codex })
    }

    fn repository(&self) -> anyhow::Result<Repository<'_>> {
        let repository = self.sandbox.repository("r")?;
        repository.write("base.txt", "base\n")?;
        repository.commit("base")?;
        Ok(repository)
    }

    fn start(&self, arguments: &[&str], input: &str) -> anyhow::Result<Running> {
        let mut command = self.sandbox.command(&self.codex);
        command.args(arguments);
        Running::start(command, input.as_bytes())
    }

    fn end(&self, arguments: &[&str], input: &str) -> anyhow::Result<Ended> {
        self.start(arguments, input)?.wait(PATIENCE)
    }
}

fn exec<'a>(mode: &'a str, repository: &'a Repository<'_>) -> Vec<&'a str> {
    let folder = repository.path().to_str().expect("sandboxes have plain names");
    vec!["exec", "--json", "--strict-config", "-s", mode, "-C", folder, "-"]
}

/// Each event in short: its type, then the item's type and status.
fn shape(ended: &Ended) -> anyhow::Result<Vec<String>> {
    let short = |event: Value| {
        let words = [&event["type"], &event["item"]["type"], &event["item"]["status"]];
        words.into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
    };
    Ok(ended.json_lines()?.into_iter().map(short).collect())
}

#[test]
fn a_turn_has_the_shape_that_was_recorded_of_codex() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile::default())?;
    let repository = stage.repository()?;
    let steps = [
        Step::Reason("**Planning**".to_owned()),
        Step::Say("I'll create the file now.".to_owned()),
        Step::write("hello.txt", "hello\n"),
        Step::Run("echo one; exit 3".to_owned()),
        Step::Say("Created hello.txt.".to_owned()),
    ];
    let prompt = format!("Some text.\n{}More text.", agent::prompt(&steps));
    let ended = stage.end(&exec("workspace-write", &repository), &prompt)?.success()?;
    assert_eq!(
        shape(&ended)?,
        [
            "thread.started",
            "turn.started",
            "item.completed reasoning",
            "item.completed agent_message",
            "item.started file_change in_progress",
            "item.completed file_change completed",
            "item.started command_execution in_progress",
            "item.completed command_execution failed",
            "item.completed agent_message",
            "turn.completed",
        ]
    );
    let command = &ended.json_lines()?[7]["item"];
    assert_eq!((&command["aggregated_output"], &command["exit_code"]), (&"one\n".into(), &3.into()));
    assert_eq!(repository.read("hello.txt")?, "hello\n");
    Ok(())
}

#[test]
fn a_read_only_turn_writes_nothing_unless_it_breaks_out() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile::default())?;
    let repository = stage.repository()?;
    let before = repository.snapshot()?;
    let refused = agent::prompt(&[Step::write("a.txt", "x"), Step::Delete("base.txt".into())]);
    let ended = stage.end(&exec("read-only", &repository), &refused)?.success()?;
    assert_eq!(repository.snapshot()?, before);
    assert_eq!(shape(&ended)?, ["thread.started", "turn.started", "item.completed agent_message", "turn.completed"]);
    assert!(ended.stderr.contains("patch rejected: writing is blocked by read-only sandbox"), "{}", ended.stderr);

    let broken_out = agent::prompt(&[Step::IgnoreSandbox, Step::write("a.txt", "x")]);
    stage.end(&exec("read-only", &repository), &broken_out)?.success()?;
    assert_eq!(repository.snapshot()?.changed_since(&before), ["a.txt"]);
    Ok(())
}

#[test]
fn it_makes_what_an_adversary_would_leave_behind() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile::default())?;
    let repository = stage.repository()?;
    let odd = Name::Hex { hex: Hex(b"odd\xff\n.txt".to_vec()) };
    let steps = [
        Step::Fifo("pipe".into()),
        Step::Symlink("out".into(), "/etc".into()),
        Step::Mkdir("empty/inner".into()),
        Step::Repository("nested".into()),
        Step::Chmod("base.txt".into(), "4755".to_owned()),
        Step::Write(Edit { path: odd, content: agent::Content::Zeros { zeros: 3 } }),
        Step::Append(Edit { path: "base.txt".into(), content: agent::Content::Text("more\n".to_owned()) }),
        Step::Rename("base.txt".into(), "moved.txt".into()),
    ];
    stage.end(&exec("workspace-write", &repository), &agent::prompt(&steps))?.success()?;
    let listed = repository.git(&["-c", "core.quotePath=true", "status", "--porcelain", "--untracked-files=all"])?;
    assert_eq!(listed, " D base.txt\n?? moved.txt\n?? nested/\n?? \"odd\\377\\n.txt\"\n?? out");
    assert_eq!(repository.read("moved.txt")?, "base\nmore\n");
    let kind = |path: &str| repository.path().join(path).symlink_metadata().map(|found| found.file_type());
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&kind("pipe")?));
    assert!(kind("empty/inner")?.is_dir());
    Ok(())
}

#[test]
fn refusals_come_before_any_event_as_with_codex() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile { has_sandbox: false, login: Login::None, ..Profile::default() })?;
    let repository = stage.repository()?;
    let outside = stage.sandbox.root().to_str().unwrap();
    let unknown = [&exec("read-only", &repository)[..7], &["resume", "01a2", "-"]].concat();
    let preflight = ["sandbox", "-c", "sandbox_mode=\"read-only\"", "--", "true"];
    for (arguments, input, code, complaint) in [
        (&["exec", "--json", "--no-such-flag"][..], "x", 2, "--no-such-flag"),
        (&["exec", "--json", "-s", "nonsense", "-"], "x", 2, "nonsense"),
        (&exec("read-only", &repository), " \n", 1, "No prompt provided via stdin."),
        (&["exec", "--json", "-C", outside, "-"], "x", 1, "Not inside a trusted directory"),
        (&["exec", "--json", "-C", "/no/such", "-"], "x", 1, "Error"),
        (&unknown, "x", 1, "no rollout found for thread id 01a2"),
        (&preflight, "", 1, "bwrap: Creating new namespace failed"),
        (&["login", "status"], "", 1, "Not logged in"),
    ] {
        let ended = stage.end(arguments, input)?;
        assert_eq!((ended.code(), ended.stdout.as_str()), (code, ""), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(complaint), "{arguments:?}: {}", ended.stderr);
    }
    assert_eq!(stage.end(&["--version"], "")?.success()?.stdout, "codex-cli 0.171.0\n");
    Ok(())
}

#[test]
fn a_thread_is_resumed_with_cumulative_usage() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile { steps: vec![Step::Say("from the profile".to_owned())], ..Profile::default() })?;
    let repository = stage.repository()?;
    let first = stage.end(&exec("read-only", &repository), "no block here")?.success()?.json_lines()?;
    assert_eq!(first[2]["item"]["text"], "from the profile");
    let id = first[0]["thread_id"].as_str().context("an id")?;
    let again = [&exec("read-only", &repository)[..7], &["resume", id, "-"]].concat();
    let second = stage.end(&again, "go on")?.success()?.json_lines()?;
    assert_eq!(second[0]["thread_id"], id);
    let tokens = |events: &[Value]| events.last().and_then(|event| event["usage"]["input_tokens"].as_u64());
    assert_eq!((tokens(&first), tokens(&second)), (Some(120), Some(240)));
    Ok(())
}

#[test]
fn turns_end_badly_in_every_way() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile::default())?;
    let repository = stage.repository()?;
    for (step, code, last) in [
        (r#"{"fail": "no quota"}"#, 1, r#"{"type":"turn.failed","error":{"message":"no quota"}}"#),
        (r#"{"exit": 7}"#, 7, r#"{"type":"turn.started"}"#),
        (r#"{"die": 11}"#, 128 + 11, r#"{"type":"turn.started"}"#),
        (r#"{"emit": "not json"}"#, 0, "not json"),
        (r#"{"emitBytes": "fffe0a"}"#, 0, "\u{fffd}\u{fffd}"),
        (r#"{"waitFor": ["never", 0.01]}"#, 1, "never did not appear within 10ms"),
        (r#"{"sya": "typo"}"#, 1, "unknown variant `sya`"),
        (r#"{"delete": "missing"}"#, 1, "No such file"),
    ] {
        let ended = stage.end(&exec("workspace-write", &repository), &format!("```agent\n{step}\n```"))?;
        assert_eq!(ended.code(), code, "{step}: {}", ended.stdout);
        let is_end = |line: &&str| line.contains("turn.completed") || line.contains("\"Done.\"");
        let mut lines = ended.stdout.lines().filter(|line| !is_end(line));
        assert!(lines.next_back().unwrap().contains(last), "{step}: {}", ended.stdout);
    }
    Ok(())
}

#[test]
fn a_flood_and_a_long_line_come_out_whole() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile::default())?;
    let repository = stage.repository()?;
    let steps = [Step::Flood(2000), Step::LongLine(20 << 20), Step::StderrFlood(1 << 20)];
    let ended = stage.end(&exec("read-only", &repository), &agent::prompt(&steps))?.success()?;
    assert_eq!(ended.stdout.lines().count(), 2 + 2000 + 1 + 1);
    assert!(ended.stdout.lines().any(|line| line.len() > 20 << 20));
    assert_eq!(ended.stderr.lines().map(|line| line.len() + 1).filter(|length| *length == 1 << 16).count(), 16);
    Ok(())
}

#[test]
fn signals_end_it_as_they_end_codex_unless_it_is_deaf() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile::default())?;
    let repository = stage.repository()?;
    let ready = || Step::Say("ready".to_owned());
    let begin = |steps: &[Step]| -> anyhow::Result<Running> {
        let running = stage.start(&exec("workspace-write", &repository), &agent::prompt(steps))?;
        running.wait_for_line("ready", PATIENCE)?;
        Ok(running)
    };
    for (signal, code) in [(Signal::INT, 1), (Signal::TERM, 128 + 15), (Signal::KILL, 128 + 9)] {
        let running = begin(&[ready(), Step::Hang])?;
        running.signal(signal)?;
        assert_eq!(running.wait(PATIENCE)?.code(), code, "{signal:?}");
    }
    let go = repository.path().join("go");
    let deaf = begin(&[Step::IgnoreSignals, ready(), Step::WaitFor("go".into(), 600.0), Step::Exit(9)])?;
    deaf.signal(Signal::INT)?;
    deaf.signal(Signal::TERM)?;
    std::fs::write(go, "")?;
    assert_eq!(deaf.wait(PATIENCE)?.code(), 9);
    Ok(())
}

#[test]
fn an_interrupt_takes_the_running_command_along() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile::default())?;
    let repository = stage.repository()?;
    let prompt = agent::prompt(&[Step::Run("echo $$ > pid.new; mv pid.new pid; exec sleep 600".to_owned())]);
    let running = stage.start(&exec("workspace-write", &repository), &prompt)?;
    rendezvous::appears(&repository.path().join("pid"), PATIENCE)?;
    let command = pid(&repository, "pid")?;
    assert_eq!(rustix::process::getsid(Some(command))?, command, "a session of its own, as codex gives it");
    running.signal(Signal::INT)?;
    assert_eq!(running.wait(PATIENCE)?.code(), 1);
    assert!(rendezvous::ends(command, PATIENCE)?);
    Ok(())
}

#[test]
fn escapees_survive_the_end_of_their_agent() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile::default())?;
    let repository = stage.repository()?;
    for how in [
        &[Escapee::DoubleFork][..],
        &[Escapee::Setsid],
        &[Escapee::DoubleFork, Escapee::Setsid, Escapee::IgnoreSignals, Escapee::ScrubEnvironment],
    ] {
        let _ = std::fs::remove_file(repository.path().join("pid"));
        let escape = Escape { how: how.to_vec(), pid_file: Some("pid".into()), seconds: Some(600.0) };
        let prompt = agent::prompt(&[Step::Escape(escape)]);
        let agent = stage.start(&exec("workspace-write", &repository), &prompt)?;
        agent.wait(PATIENCE)?.success()?;
        let escapee = pid(&repository, "pid")?;
        let environment = std::fs::read(format!("/proc/{}/environ", escapee.as_raw_nonzero()));
        if !how.contains(&Escapee::Setsid) {
            // It was in the agent's group, which the test has ended.
            assert!(rendezvous::ends(escapee, PATIENCE)?, "{how:?}");
            continue;
        }
        assert_eq!(environment?.is_empty(), how.contains(&Escapee::ScrubEnvironment), "{how:?}");
        rustix::process::kill_process(escapee, Signal::TERM)?;
        if how.contains(&Escapee::IgnoreSignals) {
            assert!(!rendezvous::ends(escapee, Duration::from_millis(50))?, "{how:?}");
        }
        rustix::process::kill_process(escapee, Signal::KILL)?;
    }
    Ok(())
}

#[test]
fn a_report_shows_how_it_was_started() -> anyhow::Result<()> {
    let stage = Stage::new(&Profile::default())?;
    let repository = stage.repository()?;
    let prompt = agent::prompt(&[Step::Report("report.json".into())]);
    stage.end(&exec("workspace-write", &repository), &prompt)?.success()?;
    let report: Value = serde_json::from_str(&repository.read("report.json")?)?;
    assert_eq!(report["arguments"][1], "exec");
    assert_eq!(report["prompt"], prompt);
    assert_eq!(report["environment"]["HOME"], stage.sandbox.home().to_str().unwrap());
    Ok(())
}

fn pid(repository: &Repository<'_>, file: &str) -> anyhow::Result<Pid> {
    Pid::from_raw(repository.read(file)?.trim().parse()?).context("a process id")
}
