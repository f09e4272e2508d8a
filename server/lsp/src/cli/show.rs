//! `pactify sub show`: one job, whole.

use jiff::Timestamp;
use pactify_core::protocol::view::{path_of_uri, totals_line};
use pactify_core::protocol::{ApplyView, JobDetail, JobStatus, Tone, words};

use super::output::{FAINT, PLAIN, STRONG, style_of};
use super::restore::print_outside;
use super::run::commands;
use super::target::JobName;
use super::{DONE, Ended, Terminal};

/// Show one job
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A job is named by its id, by the beginning or end of it, or by `last`.

Examples:
  pactify sub show
  pactify sub show k3xq2a --json")]
pub(super) struct Args {
    /// The job
    #[arg(default_value = "last", add = super::candidates::jobs())]
    job: JobName,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = terminal.jobs.status(&self.job.find(terminal)?)?;
        if self.json {
            terminal.output.json(&JobStatus { job });
        } else {
            print(terminal, &job);
        }
        Ok(DONE)
    }
}

fn print(terminal: &Terminal, detail: &JobDetail) {
    let output = &terminal.output;
    let job = &detail.summary;
    output.styled(&[(&job.id, STRONG)]);
    for (name, value) in fields(detail, terminal.env().now()) {
        output.styled(&[(&format!("{name:<12}"), FAINT), (&value, PLAIN)]);
    }
    let ending = words::ending(detail);
    output.styled(&[(&format!("\n{}", ending.what), style_of(ending.tone))]);
    output.text(&ending.next);
    if let Some(commands) = commands(job) {
        output.text(&commands);
    }
    if !detail.applies.is_empty() {
        output.styled(&[("\nApplies", STRONG)]);
        detail.applies.iter().for_each(|apply| print_apply(terminal, apply));
    }
    if !detail.verification.is_empty() {
        output.styled(&[("\nVerification", STRONG)]);
        for one in &detail.verification {
            let (word, tone) = if one.passed { ("passed  ", Tone::Good) } else { ("failed  ", Tone::Bad) };
            output.styled(&[(word, style_of(tone)), (&one.command, PLAIN)]);
            if !one.passed {
                output.text(one.tail.trim_end());
            }
        }
    }
    if !detail.checkout_changes.is_empty() {
        output.styled(&[("\nChanged in your checkout while it ran", STRONG)]);
        detail.checkout_changes.iter().for_each(|change| output.text(change));
        if detail.checkout_changes_more > 0 {
            output.text(&format!("and {} more", detail.checkout_changes_more));
        }
    }
    if !detail.only_in_tree.is_empty() {
        output.styled(&[("\nOnly in its tree", STRONG)]);
        detail.only_in_tree.iter().for_each(|left| output.text(left));
    }
    if !detail.outside.is_empty() {
        output.styled(&[("\nChanged outside the worktree while it ran", STRONG)]);
        print_outside(output, &detail.outside);
    }
    output.styled(&[("\nBrief", STRONG)]);
    output.text(detail.brief.trim_end());
    if let Some(message) = &detail.final_message {
        output.styled(&[("\nAnswer", STRONG)]);
        output.text(message.trim_end());
    }
}

/// An apply, by the number that `pactify sub undo --apply` takes.
fn print_apply(terminal: &Terminal, apply: &ApplyView) {
    let more = if apply.paths_more > 0 { format!(" and {} more", apply.paths_more) } else { String::new() };
    let undone = if apply.undone { ", undone" } else { "" };
    let (number, since) = (apply.apply.to_string(), words::age(terminal.env().now(), apply.at));
    let what = format!("  {}{more}", apply.paths.join(", "));
    terminal.output.styled(&[(&number, STRONG), (&what, PLAIN), (&format!("  {since}{undone}"), FAINT)]);
}

/// A place as one types it.
fn place(uri: &str) -> String {
    path_of_uri(uri).map_or_else(|| uri.to_owned(), |path| path.to_string())
}

fn fields(detail: &JobDetail, now: Timestamp) -> Vec<(&'static str, String)> {
    let job = &detail.summary;
    let mut fields = vec![("state", words::state(job).to_owned())];
    let mut add = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
    add("result", words::disposition(job.disposition).map(str::to_owned));
    add("created", Some(format!("{:.0} ({})", job.created_at, words::age(now, job.created_at))));
    add(
        "harness",
        Some(
            [Some(job.harness.clone()), detail.harness_version.clone()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" "),
        ),
    );
    add("model", detail.actual_model.clone().or_else(|| job.model.clone()));
    add(
        "settings",
        detail.with_user_config.then(|| format!("your own of {}, as far as its access lets it", job.harness)),
    );
    add("repository", Some(place(&job.repository)));
    add("base", Some(job.base.commit.clone()));
    add("changes", job.changes.map(totals_line));
    add("change set", detail.change_set.clone());
    add("worktree", detail.worktree.as_deref().map(place));
    add("session", detail.session.clone());
    add("tokens", job.usage.map(|usage| format!("{} in, {} out", usage.input_tokens, usage.output_tokens)));
    add("activity", job.activity.clone().filter(|_| job.ended_at.is_none()));
    for waiting in &detail.requests {
        let (since, all) =
            (words::age(now, waiting.since), if waiting.detail.is_some() { " shows all of it" } else { "" });
        add("waits for", Some(format!("{} ({since}; `pactify sub answer {}`{all})", waiting.title, job.id)));
    }
    for notice in &job.notices {
        add("note", Some(notice.clone()));
    }
    fields
}
