//! One place for a job: delegated, followed to its end, held against what it must have left, applied under fire,
//! discarded.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fastrand::Rng;
use pactify_tests::agent::{self, Step};
use pactify_tests::outside;
use pactify_tests::rendezvous;
use pactify_tests::running::Running;
use serde_json::{Value, json};

use super::session::{Answer, Session, pause};
use super::shared::{self, Edit, LINES, SHARED};
use super::{Soak, TOLD};

/// A job's whole life, on a machine that runs twenty of them and kills their hosts.
const LIFE: Duration = Duration::from_secs(300);
/// For an apply to begin.
const MIDDLE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(250);

pub(super) struct Slot<'a> {
    soak: &'a Soak,
    number: usize,
    repository: usize,
    rng: Rng,
    session: Session<'a>,
    applied: Vec<(usize, String, String)>,
}

/// What a job will write, in this order.
struct Task {
    title: String,
    brief: String,
    files: Vec<(String, String)>,
    /// Where the agent tells what it has written: out of everybody's reach.
    told: PathBuf,
    /// A line of the shared file, which is the first that it writes.
    shared: Option<Edit>,
    hangs: bool,
}

/// What is to be in the checkout because of one job.
struct Captured {
    files: Vec<(String, String)>,
    /// The edit of the shared file, if that was captured whole.
    shared: Option<Edit>,
    /// Whether the shared file was left out, because its line is another one by now.
    alone: bool,
}

impl<'a> Slot<'a> {
    pub(super) fn new(soak: &'a Soak, number: usize, repository: usize, rng: Rng) -> Self {
        let folder = checkout(soak, repository);
        Self { soak, number, repository, rng, session: Session::new(soak, folder), applied: Vec::new() }
    }

    /// Lives jobs until the time is over; returns what is in the checkout because of them: repository, path, content.
    pub(super) fn live(mut self) -> anyhow::Result<Vec<(usize, String, String)>> {
        for round in 0.. {
            if self.soak.is_over() {
                break;
            }
            let task = self.task(round);
            let title = task.title.clone();
            if let Err(error) = self.job(&task) {
                let error = error.context(format!("job {title:?}"));
                self.soak.fail(anyhow::anyhow!("{error:#}"));
                return Err(error);
            }
        }
        Ok(std::mem::take(&mut self.applied))
    }

    fn task(&mut self, round: u64) -> Task {
        let title = format!("soak {} {round}", self.number);
        let files: Vec<_> = (0..self.rng.usize(1..6))
            .map(|n| {
                let text = format!("{title} {n} {}\n", self.rng.u64(..)).repeat(self.rng.usize(1..200));
                (format!("work/s{}/j{round}/f{n}.txt", self.number), text)
            })
            .collect();
        let shared = (self.rng.u8(..3) == 0).then(|| Edit { line: self.rng.usize(..LINES), text: title.clone() });
        let whole = shared.iter().map(|edit| (SHARED.to_owned(), shared::text([edit])));
        let files: Vec<_> = whole.chain(files).collect();
        let told = self.soak.sandbox.root().join(TOLD).join(format!("{}-{round}", self.number));
        let mut steps = vec![Step::Say("Beginning.".into())];
        let hangs = self.rng.u8(..10) == 0;
        if self.rng.u8(..4) == 0 {
            let escape = json!({"how": ["doubleFork", "setsid", "ignoreSignals"], "seconds": 600.0});
            steps.extend(serde_json::from_value(escape).map(Step::Escape));
        }
        for (path, text) in &files {
            steps.push(Step::write(path, text));
            steps.push(Step::Run(format!("echo {path} >> '{}'", told.display())));
            steps.push(Step::Sleep(self.rng.f64() * 1.2));
        }
        steps.push(if hangs { Step::Hang } else { Step::Say("Done.".into()) });
        Task { told, shared, brief: format!("{title}\n\n{}", agent::prompt(&steps)), title, files, hangs }
    }

    fn job(&mut self, task: &Task) -> anyhow::Result<()> {
        let job = self.delegate(task)?;
        self.soak.counts.jobs.fetch_add(1, Relaxed);
        let status = self.finish(&job, task)?;
        let succeeded = status["outcome"] == "succeeded";
        let result = self.check_result(&job, task, succeeded)?;
        let Some(mut result) = result else { return self.discard(&job, &Captured::none()) };
        if !result.files.is_empty() && self.rng.u8(..10) < 8 {
            self.apply_under_fire(&job)?;
            if self.rng.u8(..10) < 8 {
                self.apply(&job, &mut result)?;
                if self.rng.u8(..10) < 3 {
                    self.undo(&job, &result)?;
                }
            }
        }
        self.discard(&job, &result)
    }

    /// Delegates, also if the server dies while it does: the job is there once, or not at all.
    fn delegate(&mut self, task: &Task) -> anyhow::Result<String> {
        loop {
            let asked = self.session.ask("delegate", &json!({"brief": task.brief}))?;
            match asked {
                Answer::Result(delegated) => return Ok(delegated["jobId"].as_str().context("no jobId")?.to_owned()),
                Answer::Refused(refusal) if refusal.reason() == "storeBusy" => pause(LOOK),
                Answer::Refused(refusal) => bail!("delegate: {refusal} {:?}", refusal.data),
                Answer::Gone => {
                    let list = self.session.get("status", &json!({"all": true, "limit": 500}))?;
                    let jobs = list["jobs"].as_array().context("no jobs")?;
                    let same: Vec<_> = jobs.iter().filter(|job| job["title"] == task.title.as_str()).collect();
                    ensure!(same.len() < 2, "{} jobs of one delegate", same.len());
                    if let Some(job) = same.first() {
                        return Ok(job["id"].as_str().context("no id")?.to_owned());
                    }
                }
            }
        }
    }

    /// Follows it to its end, and repairs it when its host was killed.
    fn finish(&mut self, job: &str, task: &Task) -> anyhow::Result<Value> {
        let deadline = Instant::now() + LIFE;
        let mut lost = false;
        let mut cancelled = false;
        loop {
            let status = self.session.get("status", &json!({"jobId": job}))?["job"].take();
            match status["state"].as_str().unwrap_or_default() {
                "finished" => {
                    let counts = &self.soak.counts;
                    let outcome = status["outcome"].as_str().unwrap_or_default();
                    let expected: (&AtomicU64, bool) = match outcome {
                        "succeeded" => (&counts.succeeded, !task.hangs),
                        "cancelled" => (&counts.cancelled, cancelled || lost),
                        "failed" => (&counts.lost, status["error"]["code"] == "hostLost"),
                        _ => (&counts.lost, false),
                    };
                    ensure!(expected.1, "ended as {outcome}: {status:#}");
                    expected.0.fetch_add(1, Relaxed);
                    return Ok(status);
                }
                "lost" => {
                    lost = true;
                    // Any writer command repairs it; it may be over by the time that it is asked.
                    let _ = self.session.insist("cancel", &json!({"jobId": job}))?;
                }
                "running" if task.hangs && self.rng.u8(..8) == 0 => {
                    cancelled = true;
                    let _ = self.session.insist("cancel", &json!({"jobId": job}))?;
                }
                _ => {}
            }
            if self.rng.u8(..60) == 0 {
                self.session.close();
                self.soak.counts.editors_killed.fetch_add(1, Relaxed);
            }
            ensure!(Instant::now() < deadline, "not finished after {LIFE:?}: {status:#}");
            pause(LOOK);
        }
    }

    /// The result is what the agent wrote: all of it when it succeeded, else the first part of it, and at least what it
    /// had told to be written when it died. Nothing that can be taken where its torn end is of the shared file.
    fn check_result(&mut self, job: &str, task: &Task, succeeded: bool) -> anyhow::Result<Option<Captured>> {
        let told = std::fs::read_to_string(&task.told).unwrap_or_default().lines().count();
        let preview = match self.session.insist("diffPreview", &json!({"jobId": job}))? {
            Ok(preview) => preview,
            // Its host died before there was a tree.
            Err(refusal) if refusal.reason() == "wrongState" && !succeeded => {
                ensure!(told == 0, "{told} files were written, and there is no result");
                return Ok(Some(Captured::none()));
            }
            Err(refusal) => bail!("diffPreview: {refusal} {:?}", refusal.data),
        };
        let files = preview["files"].as_array().context("no files")?;
        let paths: Vec<_> = files.iter().filter_map(|file| file["path"].as_str()).collect();
        let expected: Vec<_> = task.files.iter().map(|(path, _)| path.as_str()).take(paths.len()).collect();
        ensure!(paths == expected, "the result has {paths:?}, the job wrote {expected:?}");
        ensure!(!succeeded || paths.len() == task.files.len(), "a part of the result is lost: {paths:?}");
        ensure!(paths.len() >= told, "{told} files were written, and the result has {paths:?}");
        self.soak.counts.told.fetch_add(told as u64, Relaxed);
        let (mut result, mut shared) = (Vec::new(), None);
        for (number, (path, written)) in task.files.iter().take(paths.len()).enumerate() {
            let content = self.session.get("content", &json!({"jobId": job, "side": "result", "path": path}))?;
            let text = content["text"].as_str().unwrap_or_default();
            let torn = number >= told && path == expected[expected.len() - 1] && written.starts_with(text);
            ensure!(text == written || torn, "{path} holds {} bytes of {}", text.len(), written.len());
            match &task.shared {
                Some(_) if number == 0 && text != written => return Ok(None),
                Some(edit) if number == 0 => shared = Some(edit.clone()),
                _ => result.push((path.clone(), text.to_owned())),
            }
        }
        Ok(Some(Captured { files: result, shared, alone: false }))
    }

    /// Applies in a terminal, and kills that at some moment.
    fn apply_under_fire(&mut self, job: &str) -> anyhow::Result<()> {
        let mut command = self.soak.sandbox.command(outside::program("pactify")?);
        command
            .args(["sub", "apply", job, "--yes", "--merge", "--json"])
            .current_dir(checkout(self.soak, self.repository));
        let running = Running::start(command, b"")?;
        if self.rng.bool() {
            pause(Duration::from_millis(self.rng.u64(..150)));
        } else {
            // In the middle: its record is there. It may be through before that is seen.
            let record = self.soak.sandbox.pactify_home().join("applies").join(format!("{job}.1.intent"));
            let _ = rendezvous::appears(&record, MIDDLE);
            pause(Duration::from_micros(self.rng.u64(..3000)));
        }
        // Dropping kills it, if it is not done.
        drop(running);
        self.soak.counts.applies_killed.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Applies for good: whatever the killed one did, all of it is there afterwards.
    fn apply(&mut self, job: &str, result: &mut Captured) -> anyhow::Result<()> {
        let preview = self.session.get("diffPreview", &json!({"jobId": job}))?;
        let mut asked = json!({"jobId": job, "changeSet": preview["changeSet"]});
        let deadline = Instant::now() + LIFE;
        loop {
            ensure!(Instant::now() < deadline, "an apply that is always refused: {asked}");
            let refusal = match self.session.insist("apply", &asked)? {
                Ok(_) => break,
                Err(refusal) if refusal.reason() == "nothingToApply" => break,
                Err(refusal) => refusal,
            };
            ensure!(refusal.reason() == "applyConflict", "apply: {refusal} {:?}", refusal.data);
            let conflicts = refusal.data.as_ref().map(|data| data["conflicts"].clone()).unwrap_or_default();
            let only = conflicts.as_array().filter(|all| all.len() == 1 && all[0]["path"] == SHARED);
            let conflict = only.with_context(|| format!("nobody else writes these: {conflicts:#}"))?[0].clone();
            ensure!(result.shared.is_some() && !result.alone, "a conflict about what was not chosen: {conflict:#}");
            if conflict["object"].is_string() {
                asked["confirmMerges"] = json!([{"path": SHARED, "object": conflict["object"]}]);
                self.soak.counts.merges.fetch_add(1, Relaxed);
            } else {
                asked["select"] = result.files.iter().map(|(path, _)| json!({"path": path})).collect();
                asked["confirmMerges"] = json!([]);
                result.alone = true;
                self.soak.counts.conflicts.fetch_add(1, Relaxed);
            }
        }
        self.soak.counts.applied.fetch_add(1, Relaxed);
        ensure!(self.is_present(result)?, "an apply that was answered is not all there");
        let status = self.session.get("status", &json!({"jobId": job}))?["job"].take();
        let expected = if result.alone { "partlyApplied" } else { "applied" };
        ensure!(status["disposition"] == expected, "applied, and {status:#}");
        Ok(())
    }

    /// Takes the apply back: nothing of it is in the checkout then.
    fn undo(&mut self, job: &str, result: &Captured) -> anyhow::Result<()> {
        let takes_shared = result.shared.is_some() && !result.alone;
        match self.session.insist("undo", &json!({"jobId": job}))? {
            Ok(_) => {}
            // A server that was killed had done it.
            Err(_) if !self.is_present(result)? => {}
            // Somebody else's apply changed the shared file since: all of it stays.
            Err(refusal) if takes_shared && refusal.reason() == "applyConflict" => return Ok(()),
            Err(refusal) => bail!("undo: {refusal} {:?}", refusal.data),
        }
        self.soak.counts.undone.fetch_add(1, Relaxed);
        ensure!(!self.is_present(result)?, "an undo that was answered left something");
        let status = self.session.get("status", &json!({"jobId": job}))?["job"].take();
        ensure!(status["disposition"] == "pending", "undone, and {status:#}");
        Ok(())
    }

    /// Discards; all or nothing of the result is in the checkout then.
    fn discard(&mut self, job: &str, result: &Captured) -> anyhow::Result<()> {
        match self.session.insist("discard", &json!({"jobId": job}))? {
            Ok(_) => {}
            // A server that was killed had done it.
            Err(refusal) if refusal.reason() == "wrongState" => {}
            Err(refusal) => bail!("discard: {refusal} {:?}", refusal.data),
        }
        self.soak.counts.discarded.fetch_add(1, Relaxed);
        let status = self.session.get("status", &json!({"jobId": job}))?["job"].take();
        ensure!(status["disposition"] == "discarded", "discarded, and {status:#}");
        if self.is_present(result)? {
            let repository = self.repository;
            self.applied.extend(result.files.iter().map(|(path, text)| (repository, path.clone(), text.clone())));
            if let Some(edit) = result.shared.clone().filter(|_| !result.alone) {
                self.soak.shared().push((repository, edit));
            }
        }
        Ok(())
    }

    /// Whether the result is in the checkout: all of it, each file whole, or nothing.
    fn is_present(&self, result: &Captured) -> anyhow::Result<bool> {
        let checkout = checkout(self.soak, self.repository);
        let mut present = 0;
        for (path, text) in &result.files {
            match std::fs::read_to_string(checkout.join(path)) {
                Ok(found) => {
                    ensure!(found == *text, "{path} is in the checkout with {} bytes of {}", found.len(), text.len());
                    present += 1;
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).context(path.clone()),
            }
        }
        let all = result.files.len();
        ensure!(present == 0 || present == all, "{present} of {all} files were applied");
        if let Some(edit) = &result.shared {
            let is_there = edit.is_in(&std::fs::read_to_string(checkout.join(SHARED))?);
            // With nothing but the shared file it is all of the result.
            let expected = !result.alone && if all == 0 { is_there } else { present > 0 };
            ensure!(is_there == expected, "{present} of {all} files were applied, of {SHARED}: {is_there}");
        }
        Ok(present > 0)
    }
}

impl Captured {
    fn none() -> Self {
        Self { files: Vec::new(), shared: None, alone: false }
    }
}

fn checkout(soak: &Soak, repository: usize) -> PathBuf {
    soak.sandbox.root().join("repos").join(format!("r{repository}"))
}
