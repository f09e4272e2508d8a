//! One suite for every harness: each row of [`rows!`] goes through each case here.
//!
//! A harness is a [`Row`]: how a person's machine is set up with it, and how it is made to do the few things that the
//! cases are made of. Real programs play against the scripted provider, twins by themselves. [`lies`] is the table of
//! what measured harnesses call a success, and what becomes of it.

mod acp;
mod agents;
mod agy;
mod cli;
mod codex;
mod lies;

use std::any::Any;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use pactify_tests::editor::{Editor, JOB};
use pactify_tests::provider::Provider;
use pactify_tests::rendezvous;
use pactify_tests::sandbox::{Repository, Sandbox};
use serde_json::{Value, json};

use crate::codex::processes_of;

/// A harness.
pub(crate) trait Row {
    /// Its name in the configuration and in the tables.
    fn name(&self) -> &'static str;

    /// A machine on which it is set up, and plays this.
    fn stage(&self, play: &Play) -> Result<Stage>;

    /// The event by which a job shows that it is at work, a command at best.
    fn at_work(&self) -> &'static str {
        "commandStarted"
    }

    /// What it leaves in the git directory of each repository that it sees.
    fn leaves(&self) -> &'static [&'static str] {
        &[]
    }

    /// That a read-only job, which ended, tried to write a file and to run a command that writes one, and was refused
    /// both: in the words of whoever refused them.
    fn was_refused(&self, stage: &Stage, editor: &mut Editor, job: &str, status: &Value) -> Result<()>;

    /// What only this harness can show of a job that went through a case.
    fn look_closer(&self, _case: Case, _stage: &Stage, _job: &str, _status: &Value) -> Result<()> {
        Ok(())
    }

    /// Whether a login that the program refreshed in a job is the person's afterwards.
    fn login(&self) -> Result<Login>;

    /// What it calls a success without one, and how the job ended.
    fn lies(&self) -> Result<Vec<Lie>>;
}

/// What a harness is made to do.
pub(crate) enum Play {
    /// These things, one list for each turn of the session.
    Turns(Vec<Vec<Act>>),
    /// Whatever it does when its provider behaves like this.
    Trouble(Trouble),
}

/// One thing that an agent does.
#[derive(Clone)]
pub(crate) enum Act {
    /// Creates or replaces a file: path, text.
    Write(&'static str, &'static str),
    /// Runs a command.
    Shell(&'static str),
    /// Says something; at the end of a turn this is its answer.
    Say(&'static str),
}

/// The cases at which a harness may be looked at more closely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Writes,
    Resumes,
}

/// A provider's behaviour.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    Unauthorized,
    RateLimit,
    ServerError,
    Refused,
    Hang,
    Malformed,
}

/// A machine that is set up.
pub(crate) struct Stage {
    pub(crate) sandbox: Sandbox,
    /// The provider that a real harness talks to.
    pub(crate) provider: Option<Provider>,
    /// Whatever has to stay for as long as it is used, such as a port.
    #[expect(dead_code, reason = "it is there to be dropped with the stage")]
    pub(crate) held: Box<dyn Any>,
    pub(crate) harness: &'static str,
    /// What each turn is asked, where the harness reads from it what to play.
    pub(crate) briefs: Vec<String>,
    pub(crate) pace: Pace,
}

/// How long a harness takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// How often [`JOB`] may pass before a job has ended.
    pub(crate) patience: u32,
    /// How long it may say nothing when its provider does, in seconds: more than it needs to begin.
    pub(crate) silence: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { patience: 1, silence: 4 }
    }
}

/// What became of a login.
pub(crate) enum Login {
    /// The person's own file is the refreshed one.
    Refreshed,
    /// There is none that pactify has a part in, for this reason.
    None(&'static str),
}

/// Something that was called a success.
pub(crate) struct Lie {
    pub(crate) told: &'static str,
    /// The job's outcome, with the code of its failure.
    pub(crate) outcome: String,
}

impl Stage {
    /// With a twin of a harness, which needs no provider and begins at once.
    pub(crate) fn of_a_twin(sandbox: Sandbox, harness: &'static str, briefs: Vec<String>) -> Self {
        Self { sandbox, provider: None, held: Box::new(()), harness, briefs, pace: Pace::default() }
    }

    pub(crate) fn repository(&self) -> Result<Repository<'_>> {
        self.sandbox.filled("one")
    }

    pub(crate) fn brief(&self, turn: usize) -> &str {
        self.briefs.get(turn).map_or("Do as you are told.", String::as_str)
    }

    fn tree(&self, job: &str) -> PathBuf {
        self.sandbox.job(job).join("tree")
    }

    /// The job, once it has ended.
    pub(crate) fn finished(&self, editor: &mut Editor, job: &str) -> Result<Value> {
        finished(editor, job, self.pace.patience)
    }

    pub(crate) fn delegate(&self, editor: &mut Editor, more: &Value) -> Result<String> {
        let mut argument = json!({"harness": self.harness});
        if let (Some(argument), Some(more)) = (argument.as_object_mut(), more.as_object()) {
            argument.extend(more.clone());
        }
        editor.delegate(self.brief(0), &argument)
    }
}

/// The job, once it has ended; [`JOB`] may pass so often.
pub(crate) fn finished(editor: &mut Editor, job: &str, patience: u32) -> Result<Value> {
    editor.until_within(job, "finished", JOB * patience)
}

/// Every case, for each of these harnesses.
macro_rules! rows {
    ($($name:ident: $row:expr,)*) => {
        /// The harnesses of this suite.
        fn rows() -> Vec<&'static dyn Row> {
            vec![$(&$row),*]
        }

        $(mod $name {
            use super::*;

            #[test]
            fn a_write_job_is_captured_and_applied() -> Result<()> {
                writes(&$row)
            }

            #[test]
            fn a_read_only_job_that_is_told_to_write_writes_nothing() -> Result<()> {
                only_reads(&$row)
            }

            #[test]
            fn a_cancel_during_a_command_leaves_no_process_and_a_session_that_goes_on() -> Result<()> {
                cancels(&$row)
            }

            #[test]
            fn a_resume_goes_on_in_the_same_session_and_tree() -> Result<()> {
                resumes(&$row)
            }

            #[test]
            fn a_retry_begins_anew() -> Result<()> {
                retries(&$row)
            }

            #[test]
            fn a_provider_that_refuses_ends_the_job_with_its_code() -> Result<()> {
                fails(&$row, Trouble::Unauthorized, &["loginRequired"])?;
                fails(&$row, Trouble::RateLimit, &["quotaExceeded"])
            }

            #[test]
            fn a_provider_in_trouble_ends_the_job_with_its_code() -> Result<()> {
                fails(&$row, Trouble::ServerError, &["providerUnreachable"])?;
                fails(&$row, Trouble::Malformed, &["providerUnreachable", "providerRefused"])
            }

            #[test]
            fn a_provider_that_is_not_there_ends_the_job_in_time() -> Result<()> {
                fails(&$row, Trouble::Refused, &["providerUnreachable"])?;
                fails(&$row, Trouble::Hang, &["stalled"])
            }

            #[test]
            fn a_refreshed_login_is_the_persons() -> Result<()> {
                refreshes(&$row)
            }
        })*
    };
}

rows! {
    on_codex: crate::conformance::codex::Codex,
    on_kimi: crate::agents::Agent::Kimi,
    on_opencode: crate::agents::Agent::Opencode,
    on_acp: crate::conformance::acp::Acp,
    on_agy: crate::conformance::agy::Agy,
    on_cli: crate::conformance::cli::Cli,
}

fn writes(row: &dyn Row) -> Result<()> {
    let stage = row.stage(&Play::Turns(vec![vec![
        Act::Write("hello.txt", "hello\n"),
        Act::Shell("cat hello.txt && echo shell > shell.txt"),
        Act::Say("Done."),
    ]]))?;
    let repository = stage.repository()?;
    let before = repository.snapshot()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, &json!({}))?;
    let status = stage.finished(&mut editor, &job)?;
    assert_eq!((&status["outcome"], &status["finalMessage"]), (&json!("succeeded"), &json!("Done.")), "{status:#}");
    assert_eq!(status["changes"]["files"], 2, "{status:#}");
    let changed = before.changed_since(&repository.snapshot()?);
    let changed: Vec<_> = changed.into_iter().filter(|path| !row.leaves().contains(&path.as_str())).collect();
    assert_eq!(changed, [format!(".git/refs/pactify/keep/{job}")], "nothing but what keeps the base from gc");
    editor.apply(&job)?;
    assert_eq!((repository.read("hello.txt")?, repository.read("shell.txt")?), ("hello\n".into(), "shell\n".into()));
    row.look_closer(Case::Writes, &stage, &job, &status)
}

fn only_reads(row: &dyn Row) -> Result<()> {
    let stage = row.stage(&Play::Turns(vec![vec![
        Act::Write("hello.txt", "hello\n"),
        Act::Shell("echo x > shell.txt"),
        Act::Say("I was not allowed to."),
    ]]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, &json!({"access": "readOnly"}))?;
    let status = stage.finished(&mut editor, &job)?;
    let ended = (&status["outcome"], &status["finalMessage"]);
    assert_eq!(ended, (&json!("succeeded"), &json!("I was not allowed to.")), "{status:#}");
    assert_eq!(status["changes"]["files"], 0, "{status:#}");
    let tree = stage.tree(&job);
    assert!(!tree.join("hello.txt").exists() && !tree.join("shell.txt").exists());
    row.was_refused(&stage, &mut editor, &job, &status).with_context(|| format!("{status:#}"))
}

fn cancels(row: &dyn Row) -> Result<()> {
    let stage = row.stage(&Play::Turns(vec![
        vec![Act::Write("half.txt", "half\n"), Act::Shell("touch started; sleep 3001")],
        vec![Act::Say("Went on.")],
    ]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, &json!({}))?;
    editor.event_within(&job, row.at_work(), JOB * stage.pace.patience)?;
    rendezvous::appears(&stage.tree(&job).join("started"), JOB * stage.pace.patience)?;
    let running = |words: &str| processes_of(&job).any(|(_, arguments)| arguments.contains(words));
    assert!(running("sleep 3001"), "the command runs");
    editor.run("cancel", &json!({"jobId": job}))?;
    let status = stage.finished(&mut editor, &job)?;
    assert_eq!((&status["outcome"], &status["error"]), (&json!("cancelled"), &Value::Null), "{status:#}");
    let left = left_of(&job);
    assert!(left.is_empty(), "{left:?}");

    // What was taken back is no failure of the session.
    editor.run("resume", &json!({"jobId": job, "message": stage.brief(1)}))?;
    let again = stage.finished(&mut editor, &job)?;
    assert_eq!((&again["outcome"], &again["attempt"]), (&json!("succeeded"), &json!(2)), "{again:#}");
    assert_eq!((&again["finalMessage"], &again["session"]), (&json!("Went on."), &status["session"]), "{again:#}");
    editor.apply(&job)?;
    assert_eq!(repository.read("half.txt")?, "half\n", "what was done before is captured");
    Ok(())
}

/// The processes of a job that are left, apart from its host.
pub(crate) fn left_of(job: &str) -> Vec<String> {
    let is_host =
        |arguments: &String| arguments.split(' ').next().is_some_and(|program| program.ends_with("/pactify-lsp"));
    processes_of(job).map(|(_, arguments)| arguments).filter(|arguments| !is_host(arguments)).collect()
}

fn resumes(row: &dyn Row) -> Result<()> {
    let stage = row.stage(&Play::Turns(vec![
        vec![Act::Write("first.txt", "1\n"), Act::Say("First done.")],
        vec![Act::Write("second.txt", "2\n"), Act::Say("Second done.")],
    ]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, &json!({}))?;
    let first = stage.finished(&mut editor, &job)?;
    assert_eq!(first["finalMessage"], "First done.", "{first:#}");
    editor.run("resume", &json!({"jobId": job, "message": stage.brief(1)}))?;
    let second = stage.finished(&mut editor, &job)?;
    assert_eq!((&second["outcome"], &second["attempt"]), (&json!("succeeded"), &json!(2)), "{second:#}");
    assert_eq!((&second["finalMessage"], &second["session"]), (&json!("Second done."), &first["session"]));
    assert_eq!(second["changes"]["files"], 2, "the tree is the first attempt's: {second:#}");
    row.look_closer(Case::Resumes, &stage, &job, &second)
}

fn retries(row: &dyn Row) -> Result<()> {
    const ANSWER: &str = "Wrote it for the first time.";
    let stage = row.stage(&Play::Turns(vec![vec![Act::Write("first.txt", "1\n"), Act::Say(ANSWER)]]))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, &json!({}))?;
    let first = stage.finished(&mut editor, &job)?;
    let again = editor.run("retry", &json!({"jobId": job}))?["jobId"].as_str().context("no jobId")?.to_owned();
    assert_ne!(again, job);
    let second = stage.finished(&mut editor, &again)?;
    assert_eq!((&second["outcome"], &second["finalMessage"]), (&json!("succeeded"), &json!(ANSWER)), "{second:#}");
    for same in ["brief", "harness", "outcome", "finalMessage", "changes", "attempt"] {
        assert_eq!(second[same], first[same], "{same}: {first:#}\n{second:#}");
    }
    assert!(second["session"].is_string() && second["session"] != first["session"], "{first:#}\n{second:#}");
    if let Some(provider) = &stage.provider {
        let heard = provider.requests().pop().context("nothing was asked")?.body.to_string();
        assert!(!heard.contains(ANSWER), "the model hears nothing of the first session: {heard}");
    }
    Ok(())
}

fn fails(row: &dyn Row, trouble: Trouble, codes: &[&str]) -> Result<()> {
    let stage = row.stage(&Play::Trouble(trouble))?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let Pace { silence, .. } = stage.pace;
    let stall = if matches!(trouble, Trouble::Hang) { silence } else { 10 * silence };
    let job = stage.delegate(&mut editor, &json!({"stallSeconds": stall}))?;
    let status = stage.finished(&mut editor, &job).with_context(|| format!("{} and {trouble:?}", row.name()))?;
    let code = status["error"]["code"].as_str().unwrap_or_default();
    assert!(codes.contains(&code), "{} and {trouble:?}: {status:#}", row.name());
    assert!(status["error"]["next"].as_str().is_some_and(|next| !next.is_empty()), "{status:#}");
    Ok(())
}

fn refreshes(row: &dyn Row) -> Result<()> {
    match row.login()? {
        Login::Refreshed => Ok(()),
        Login::None(why) => {
            // It must be true then that nothing of a login is in the job's own home.
            let stage = row.stage(&Play::Turns(vec![vec![Act::Say("Hello.")]]))?;
            let repository = stage.repository()?;
            let mut editor = Editor::open(&stage.sandbox, repository.path())?;
            let job = stage.delegate(&mut editor, &json!({}))?;
            stage.finished(&mut editor, &job)?;
            let home = stage.tree(&job).with_file_name("home");
            assert_eq!(std::fs::read_dir(home)?.count(), 0, "{why}");
            Ok(())
        }
    }
}

/// How a finished job ended, with the code of its failure.
pub(crate) fn ending(status: &Value) -> String {
    let outcome = status["outcome"].as_str().unwrap_or("unfinished");
    match status["error"]["code"].as_str() {
        Some(code) if code != outcome => format!("{outcome} ({code})"),
        _ => outcome.to_owned(),
    }
}
