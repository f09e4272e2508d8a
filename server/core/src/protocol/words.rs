//! What people read about a job, in words: the same in an editor's progress, a message and a terminal.
//!
//! Pure; whatever came from an agent or a repository is neutralised ([`crate::display`]). Colours, columns and where
//! a line appears are the front ends' business.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::view::totals_line;
use super::{EventView, JobDetail, JobSummary, WaitingView};
use crate::Failure;
use crate::display::{counted, headline, neutral, neutral_block, one_line, script};
use crate::fingerprint::{OutsideChange, Weight};
use crate::job::access::Access;
use crate::job::event::{AttemptReason, Event, ExitRecord, Known, PlanEntry, PlanStatus};
use crate::job::outcome::{Deadline, Disposition, Outcome};
use crate::job::state::SeenState;
use crate::permission::{OptionKind, PermissionOption};

/// How good a piece of news is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Tone {
    /// What was asked for.
    Good,
    /// Neither good nor bad.
    Plain,
    /// Something went wrong.
    Bad,
}

/// What to tell about a job that needs no more waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    /// How good it is.
    pub tone: Tone,
    /// What happened, as a fragment: `changed 3 files, +10 −2`.
    pub what: String,
    /// What the person can do now.
    pub next: String,
}

/// A job in a few words, for the title of a progress: `codex: Fix the parser`.
pub fn title(job: &JobSummary) -> String {
    format!("{}: {}", neutral(&job.harness), headline(&job.title, 60))
}

/// Where a job stands, in one word or two.
pub fn state(job: &JobSummary) -> &'static str {
    match (job.state, job.outcome) {
        (SeenState::Queued, _) => "queued",
        (SeenState::Preparing, _) => "preparing",
        (SeenState::Running, _) => "running",
        (SeenState::Waiting, _) => "waiting",
        (SeenState::Verifying, _) => "verifying",
        (SeenState::Lost, _) => "lost",
        (SeenState::Finished, Some(outcome)) => self::outcome(outcome),
        (SeenState::Finished, None) => "finished",
    }
}

/// An outcome, in one word or two.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::NoChanges => "no changes",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
        Outcome::TimedOut => "timed out",
        Outcome::Stalled => "stalled",
        Outcome::OverLimit => "over its limit",
        Outcome::ReadOnlyViolated => "read-only violated",
        Outcome::NoResult => "no result",
        Outcome::VerificationFailed => "verification failed",
    }
}

/// What became of a result, in one word or two; nothing while nobody decided.
pub fn disposition(disposition: Disposition) -> Option<&'static str> {
    match disposition {
        Disposition::Pending => None,
        Disposition::Applied => Some("applied"),
        Disposition::PartlyApplied => Some("partly applied"),
        Disposition::Discarded => Some("discarded"),
    }
}

/// What the job is doing, for the changing line of a progress.
pub fn activity(job: &JobSummary) -> String {
    if let Some(waiting) = &job.waiting {
        let more = if job.waiting_more > 0 { format!(" (and {} more)", job.waiting_more) } else { String::new() };
        return format!("waits for you: {}{more}", headline(&waiting.title, 100));
    }
    let doing = job.activity.as_deref().map(|activity| headline(activity, 100)).filter(|text| !text.is_empty());
    match (job.state, doing) {
        (SeenState::Running, Some(doing)) => doing,
        (SeenState::Queued, Some(why)) => why,
        (SeenState::Queued, None) => "waits for its turn".to_owned(),
        (SeenState::Preparing, _) => "makes its tree".to_owned(),
        (SeenState::Verifying, _) => "verifies its result".to_owned(),
        (SeenState::Lost, _) => "its host is gone".to_owned(),
        (_, _) => state(job).to_owned(),
    }
}

/// How long ago, in the largest unit that fits.
pub fn age(now: Timestamp, then: Timestamp) -> String {
    match now.duration_since(then).as_secs().max(0) {
        seconds @ 0..60 => format!("{seconds} s ago"),
        seconds @ 60..3600 => format!("{} min ago", seconds / 60),
        seconds @ 3600..86400 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} d ago", seconds / 86400),
    }
}

/// What a job asks for, for an editor that shows a question and no more. What is left out of it is said before the
/// rest: VS Code, without a word, shows 1000 characters of a message.
pub fn question(job: &JobSummary, waiting: &WaitingView, now: Timestamp) -> String {
    const DETAIL_MAX: usize = 600;
    let asks = |most| format!("{} asks ({}): {}", title(job), age(now, waiting.since), one_line(&waiting.title, most));
    let Some(detail) = &waiting.detail else { return asks(400) };
    let shown: String = neutral_block(detail).chars().take(DETAIL_MAX).collect();
    let left_out = match detail.chars().count() {
        0..=DETAIL_MAX => String::new(),
        all => {
            format!("\n[{DETAIL_MAX} of {all} characters; `pactify sub answer {}` shows them all]", neutral(&job.id))
        }
    };
    format!("{}{left_out}\n\n{shown}", asks(120))
}

/// The answers to a permission request, as people are shown them: no two alike, and what each means comes first,
/// because its name is the harness's to choose.
pub fn choices(waiting: &WaitingView) -> Vec<(String, &PermissionOption)> {
    let mut shown: Vec<(String, &PermissionOption)> = Vec::new();
    for option in &waiting.options {
        let name = format!("{}: {}", meaning(option.kind), headline(&option.name, 60));
        let same = shown.iter().filter(|(known, _)| *known == name || known.starts_with(&format!("{name} ("))).count();
        shown.push((if same == 0 { name } else { format!("{name} ({})", same + 1) }, option));
    }
    shown
}

fn meaning(kind: OptionKind) -> &'static str {
    match kind {
        OptionKind::AllowOnce => "Allow",
        OptionKind::AllowAlways => "Always allow",
        OptionKind::RejectOnce => "Deny",
        OptionKind::RejectAlways => "Always deny",
        OptionKind::Unknown => "Other",
    }
}

/// What to tell when the job ended, or its host is gone.
pub fn ending(job: &JobDetail) -> Ending {
    let JobSummary { id, state, outcome, changes, access, disposition, .. } = &job.summary;
    if *state == SeenState::Lost {
        return Ending {
            tone: Tone::Bad,
            what: "its host is gone".to_owned(),
            next: format!("what it left is kept: `pactify sub show {id}`, or start the server again to capture it"),
        };
    }
    let changed = changes.filter(|totals| totals.files > 0);
    if matches!(outcome, Some(Outcome::Succeeded | Outcome::NoChanges))
        && let danger =
            job.outside.iter().filter(|change| change.weight == Weight::Dangerous && !change.restored).count()
        && danger > 0
    {
        let done = changed.map_or_else(|| "finished".to_owned(), |totals| format!("changed {}", totals_line(totals)));
        return Ending {
            tone: Tone::Bad,
            what: format!("{done}, with {} outside the worktree", counted(danger as u64, "dangerous change")),
            next: format!("look at them, and put them back, with `pactify sub restore {id} --list`"),
        };
    }
    let ending = match (outcome, changed) {
        (Some(Outcome::Succeeded), Some(totals)) => Ending {
            tone: Tone::Good,
            what: format!("changed {}", totals_line(totals)),
            next: "preview the changes, then apply or discard them".to_owned(),
        },
        (Some(Outcome::Succeeded), None) if *access == Access::ReadOnly => {
            Ending { tone: Tone::Good, what: "finished".to_owned(), next: answer(job) }
        }
        (Some(Outcome::Succeeded | Outcome::NoChanges), _) => {
            Ending { tone: Tone::Plain, what: "finished without changing anything".to_owned(), next: answer(job) }
        }
        (Some(Outcome::Cancelled), Some(totals)) => Ending {
            tone: Tone::Plain,
            what: format!("cancelled after changing {}", totals_line(totals)),
            next: "preview what it did, apply or discard it, or retry the job".to_owned(),
        },
        (Some(Outcome::Cancelled), None) => {
            Ending { tone: Tone::Plain, what: "cancelled".to_owned(), next: "retry the job, or leave it".to_owned() }
        }
        (Some(outcome), _) => failed(*outcome, job.error.as_ref()),
        (None, _) => Ending { tone: Tone::Plain, what: self::state(&job.summary).to_owned(), next: answer(job) },
    };
    decided(ending, *disposition)
}

/// The ending of a job of whose result something became since.
fn decided(ending: Ending, disposition: Disposition) -> Ending {
    let next = match disposition {
        Disposition::Pending => return ending,
        Disposition::Applied => "undo the apply, if it is not what you want, or resume the job with a message",
        Disposition::PartlyApplied => "apply or discard the rest, or undo the apply",
        Disposition::Discarded => "retry the job to have it done again",
    };
    let became = self::disposition(disposition).unwrap_or_default();
    Ending { what: format!("{}, {became}", ending.what), next: next.to_owned(), ..ending }
}

/// One event in one line, for a log that a person reads; `None` when only programs care. An event of a newer build is
/// shown by its name.
pub fn event(event: &EventView) -> Option<String> {
    let known = match serde_json::from_value(event.event.clone()) {
        Ok(Event::Known(known)) => known,
        Ok(unknown @ Event::Unknown(_)) => return Some(neutral(&unknown.name()).into_owned()),
        Err(_) => return None,
    };
    Some(match known {
        Known::AttemptStarted { reason: AttemptReason::Run, .. } => "started".to_owned(),
        Known::AttemptStarted { reason: AttemptReason::Resume, .. } => "resumed".to_owned(),
        Known::AttemptStarted { reason: AttemptReason::Recovery, .. } => "recovered after its host was gone".to_owned(),
        Known::TreeReady { .. } => "its tree is ready".to_owned(),
        Known::Launched { harness_version: Some(version), .. } => {
            format!("the harness runs ({})", headline(&version, 40))
        }
        Known::Launched { .. } => "the harness runs".to_owned(),
        Known::SessionStarted { model: Some(model), .. } => format!("session with {}", headline(&model, 60)),
        Known::Message { text } | Known::Activity { text } => headline(&text, 400),
        Known::CommandStarted { command, .. } => format!("$ {}", headline(&script(&command), 200)),
        Known::CommandEnded { exit_code: Some(code), .. } if code != 0 => format!("exit code {code}"),
        Known::FilesTouched { paths } => format!("edits {}", headline(&paths.join(", "), 200)),
        Known::ToolUsed { tool, failed: true } => format!("uses {} (failed)", headline(&tool, 60)),
        Known::ToolUsed { tool, .. } => format!("uses {}", headline(&tool, 60)),
        Known::Plan { entries } => {
            let is_done = |entry: &&PlanEntry| entry.status == PlanStatus::Completed;
            let done = entries.iter().filter(is_done).count();
            let now = entries.iter().find(|entry| entry.status == PlanStatus::InProgress);
            let now = now.map(|entry| format!(": {}", headline(&entry.text, 200))).unwrap_or_default();
            format!("plan, {done} of {} done{now}", entries.len())
        }
        Known::Notice { text, .. } => notice(&text),
        Known::PermissionRequested { title, .. } => format!("waits for you: {}", headline(&title, 200)),
        Known::PermissionAnswered { option: Some(option), .. } => format!("answered: {}", headline(&option, 60)),
        Known::PermissionAnswered { .. } => "nobody answered: denied".to_owned(),
        Known::PermissionDecided { title, granted: true, .. } => format!("was granted: {}", headline(&title, 200)),
        Known::PermissionDecided { title, .. } => format!("was refused: {}", headline(&title, 200)),
        Known::CancelRequested => "cancel was asked for".to_owned(),
        Known::DeadlinePassed { deadline: Deadline::Total } => "its time is over".to_owned(),
        Known::DeadlinePassed { deadline: Deadline::Stall } => "it was silent for too long".to_owned(),
        Known::DeadlinePassed { deadline: Deadline::Tokens } => "it used more tokens than are allowed".to_owned(),
        Known::DeadlinePassed { deadline: Deadline::Cost } => "it cost more than is allowed".to_owned(),
        Known::HarnessExited { exit: ExitRecord::Code(code) } => format!("the harness ended with exit code {code}"),
        Known::HarnessExited { exit: ExitRecord::Signal(signal) } => {
            format!("the harness was ended by signal {signal}")
        }
        Known::Swept { survivors, .. } if !survivors.is_empty() => {
            format!("processes that could not be ended: {}", headline(&survivors.join(", "), 200))
        }
        Known::Captured { result } => format!("captured {}", totals_line(result.totals)),
        Known::VerificationStarted => "verifies its result".to_owned(),
        Known::Verified { command, passed, .. } => {
            format!("{} `{}`", if passed { "passed" } else { "did not pass" }, headline(&command, 200))
        }
        Known::CheckoutCompared { changed, more, .. } if !changed.is_empty() => {
            format!("your checkout is not as it was: {}", counted(changed.len() as u64 + more, "change"))
        }
        Known::AttemptEnded { outcome, .. } => format!("ended: {}", self::outcome(outcome)),
        Known::Applied { paths, .. } => format!("applied {}", counted(paths.len() as u64, "path")),
        Known::Undone { apply, .. } => format!("apply {apply} was undone"),
        Known::Discarded => "discarded".to_owned(),
        Known::TreeRemoved => "its tree was removed to make room".to_owned(),
        Known::OutsideChanges { changes, more, .. } => outside(&changes, more),
        Known::OutsideRestored { ids } => {
            format!("put back {} outside the worktree", counted(ids.len() as u64, "change"))
        }
        Known::SessionStarted { .. }
        | Known::Reasoning { .. }
        | Known::CommandOutput { .. }
        | Known::CommandEnded { .. }
        | Known::Usage { .. }
        | Known::CheckoutGuarded { .. }
        | Known::CheckoutCompared { .. }
        | Known::OutsideRecorded { .. }
        | Known::Swept { .. } => return None,
    })
}

/// A notice, in one line.
pub fn notice(text: &str) -> String {
    format!("note: {}", headline(text, 300))
}

/// What changed outside a job's tree, in one sentence that accuses nobody.
pub fn outside(changes: &[OutsideChange], more: u64) -> String {
    const NAMED: usize = 3;
    let told = changes.iter().filter(|change| change.weight != Weight::Ordinary);
    let told: Vec<&OutsideChange> =
        if told.clone().next().is_some() { told.collect() } else { changes.iter().collect() };
    let mut named: Vec<String> =
        told.iter().take(NAMED).map(|change| headline(&format!("{} {}", change.place, change.what), 160)).collect();
    let more = more + told.len().saturating_sub(NAMED) as u64;
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let dangerous = changes.iter().any(|change| change.weight == Weight::Dangerous);
    let where_ = if dangerous { "dangerous changes outside the worktree" } else { "outside the worktree" };
    format!("while the job ran, {where_}: {}", named.join("; "))
}

fn failed(outcome: Outcome, failure: Option<&Failure>) -> Ending {
    match failure {
        Some(failure) => Ending {
            tone: Tone::Bad,
            what: headline(&failure.message, 300),
            next: format!("{} ({})", headline(&failure.next, 300), failure.code.as_str()),
        },
        None => Ending {
            tone: Tone::Bad,
            what: self::outcome(outcome).to_owned(),
            next: "see what happened with `pactify sub events`".to_owned(),
        },
    }
}

fn answer(job: &JobDetail) -> String {
    match job.final_message.as_deref().map(|message| headline(message, 200)).filter(|text| !text.is_empty()) {
        Some(message) => format!("it says: {message}"),
        None => format!("`pactify sub events {}` tells what it did", job.summary.id),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(fields: serde_json::Value) -> JobDetail {
        let mut job = json!({
            "id": "20261129-154512-abcdef", "title": "Fix the parser", "harness": "codex", "access": "write",
            "repository": "file:///r", "base": {"kind": "head", "commit": "a".repeat(40)}, "state": "finished",
            "disposition": "pending", "createdAt": "2026-11-29T15:45:12Z", "brief": "Fix the parser",
        });
        job.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(job).unwrap()
    }

    #[test]
    fn an_ending_says_what_happened_and_what_next() {
        let changes = json!({"files": 3, "added": 10, "deleted": 2, "sensitive": 1});
        let error = json!({"code": "loginRequired", "message": "codex is not logged in", "next": "run `codex login`"});
        let cases = [
            (json!({"outcome": "succeeded", "changes": changes}), Tone::Good, "changed 3 files, +10 −2, 1 sensitive"),
            (
                json!({"outcome": "succeeded", "access": "readOnly", "finalMessage": "All fine."}),
                Tone::Good,
                "finished",
            ),
            (json!({"outcome": "noChanges"}), Tone::Plain, "finished without changing anything"),
            (json!({"outcome": "cancelled"}), Tone::Plain, "cancelled"),
            (json!({"outcome": "cancelled", "changes": changes}), Tone::Plain, "cancelled after changing 3 files"),
            (json!({"outcome": "failed", "error": error}), Tone::Bad, "codex is not logged in"),
            (json!({"outcome": "stalled"}), Tone::Bad, "stalled"),
            (json!({"state": "lost"}), Tone::Bad, "its host is gone"),
        ];
        for (fields, tone, what) in cases {
            let ending = ending(&job(fields.clone()));
            assert_eq!(ending.tone, tone, "{fields}");
            assert!(ending.what.starts_with(what), "{fields}: {}", ending.what);
            assert!(!ending.next.is_empty(), "{fields}");
        }
    }

    #[test]
    fn a_failure_names_its_next_step_and_code() {
        let error = json!({"code": "loginRequired", "message": "codex is not logged in", "next": "run `codex login`"});
        let ending = ending(&job(json!({"outcome": "failed", "error": error})));
        assert_eq!(ending.next, "run `codex login` (loginRequired)");
    }

    #[test]
    fn an_event_is_one_line_or_none() {
        let cases = [
            (json!({"type": "message", "text": "Done.\nAll of it."}), Some("Done.")),
            (json!({"type": "commandStarted", "item": "1", "command": "rm\u{1b}[2J x"}), Some("$ rm\\u{1b}[2J x")),
            (json!({"type": "commandEnded", "item": "1", "exitCode": 0}), None),
            (json!({"type": "commandEnded", "item": "1", "exitCode": 2}), Some("exit code 2")),
            (json!({"type": "teleported", "to": 1}), Some("teleported")),
            (json!({"type": "usage", "usage": {"inputTokens": 1, "cachedInputTokens": 0, "outputTokens": 1}}), None),
        ];
        for (event, expected) in cases {
            let at = "2026-11-29T15:45:12Z".parse().unwrap();
            let view = EventView { seq: 1, at, attempt: 1, event: event.clone(), text: None };
            assert_eq!(super::event(&view).as_deref(), expected, "{event}");
        }
    }

    #[test]
    fn an_age_has_one_unit() {
        let then: Timestamp = "2026-11-29T12:00:00Z".parse().unwrap();
        for (now, expected) in [
            ("2026-11-29T11:59:59Z", "0 s ago"),
            ("2026-11-29T12:00:59Z", "59 s ago"),
            ("2026-11-29T12:59:59Z", "59 min ago"),
            ("2026-11-30T11:00:00Z", "23 h ago"),
            ("2026-12-09T12:00:00Z", "10 d ago"),
        ] {
            assert_eq!(age(now.parse().unwrap(), then), expected);
        }
    }

    #[test]
    fn a_question_says_since_when_it_is_open_and_what_it_leaves_out() {
        let (now, job) = ("2026-11-29T15:50:12Z".parse().unwrap(), job(json!({"id": "k3", "title": "Fix"})).summary);
        let asked = |title: &str, detail: Option<&str>| {
            let waiting = json!({"requestId": "1", "title": title, "detail": detail, "since": "2026-11-29T15:45:12Z"});
            question(&job, &serde_json::from_value(waiting).unwrap(), now)
        };
        assert_eq!(asked("rm  x?", None), "codex: Fix asks (5 min ago): rm x?");
        assert_eq!(asked("Run?", Some("a\nb")), "codex: Fix asks (5 min ago): Run?\n\na\nb");
        let long = asked(&"t ".repeat(200), Some(&format!("{}; rm -rf ~", "é".repeat(5000))));
        assert!(long.contains("…\n[600 of 5010 characters; `pactify sub answer k3` shows them all]\n\néé"), "{long}");
        assert!(long.chars().count() < 1000, "{long}");
    }

    #[test]
    fn an_answer_is_shown_by_what_it_means() {
        let waiting: WaitingView = serde_json::from_value(json!({
            "requestId": "1", "title": "rm x?", "since": "2026-11-29T15:45:12Z", "options": [
                {"id": "a", "name": "Deny", "kind": "allow_once"},
                {"id": "b", "name": "Allow", "kind": "reject_once"},
                {"id": "c", "name": "Deny", "kind": "allow_once"},
                {"id": "d", "name": "Maybe", "kind": "ask_my_mother"},
            ],
        }))
        .unwrap();
        let shown: Vec<_> =
            choices(&waiting).into_iter().map(|(name, option)| format!("{}={name}", option.id)).collect();
        assert_eq!(shown, ["a=Allow: Deny", "b=Deny: Allow", "c=Allow: Deny (2)", "d=Other: Maybe"]);
    }

    #[test]
    fn activity_is_what_a_person_would_ask() {
        let cases = [
            (json!({"state": "queued"}), "waits for its turn"),
            (json!({"state": "running", "activity": "runs cargo test"}), "runs cargo test"),
            (json!({"state": "running", "activity": "a\u{1b}[2Jb"}), "a\\u{1b}[2Jb"),
            (json!({"state": "running"}), "running"),
            (
                json!({"state": "waiting", "waiting": {"requestId": "1", "title": "rm x?", "since": "2026-11-29T15:45:12Z"}}),
                "waits for you: rm x?",
            ),
            (
                json!({"state": "waiting", "waitingMore": 2, "waiting": {"requestId": "1", "title": "rm x?", "since": "2026-11-29T15:45:12Z"}}),
                "waits for you: rm x? (and 2 more)",
            ),
        ];
        for (fields, expected) in cases {
            assert_eq!(activity(&job(fields).summary), expected);
        }
    }
}
