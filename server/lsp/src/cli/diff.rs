//! `pactify sub diff`: what a job changed.

use std::ffi::OsString;

use pactify_core::change::ChangeKind;
use pactify_core::change::group::GroupId;
use pactify_core::change::sensitive::Tier;
use pactify_core::fingerprint::Weight;
use pactify_core::path::PathName;
use pactify_core::protocol::view::totals_line;
use pactify_core::protocol::{FileChange, OutlookKind, Preview, PreviewFormat, PreviewParams, words};
use pactify_core::{Failure, FailureCode, JobId};

use super::choice::path_name;
use super::meant;
use super::output::{BAD, CARE, FAINT, GOOD, Output, PLAIN, STRONG};
use super::target::JobName;
use super::{DONE, Ended, Terminal};

/// Show what a job changed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Piped, the patch is exact and whole, whatever is in its files: `git apply` takes it.

Examples:
  pactify sub diff
  pactify sub diff last --stat
  pactify sub diff last src/parse.rs
  pactify sub diff last --hunks
  pactify sub diff k3xq2a --patch > change.patch")]
pub(super) struct Args {
    /// The job
    #[arg(default_value = "last", add = super::candidates::jobs())]
    job: JobName,
    /// Only this path of the repository
    path: Option<OsString>,
    /// List the paths instead of the lines
    #[arg(long, conflicts_with_all = ["patch", "hunks"])]
    stat: bool,
    /// Print the changed lines with the names by which `pactify sub apply --group` takes them
    #[arg(long, conflicts_with = "patch")]
    hunks: bool,
    /// Print a patch (the default)
    #[arg(long)]
    patch: bool,
    /// Print JSON, with the changed lines
    #[arg(long, conflicts_with_all = ["stat", "patch", "hunks"])]
    pub(super) json: bool,
}

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = self.job.find(terminal)?;
        let path = self.path.as_ref().map(path_name).transpose()?;
        let format = match (self.json || self.hunks, self.stat) {
            (true, _) => PreviewFormat::Hunks,
            (_, true) => PreviewFormat::Summary,
            _ => PreviewFormat::Patch,
        };
        let output = &terminal.output;
        let meant = |failure| or_meant(terminal, &job, path.as_ref(), failure);
        if format == PreviewFormat::Patch {
            return print_patch(terminal, &job, path.clone()).map_err(meant);
        }
        let preview = whole(terminal, &job, path.clone(), format, false).map_err(meant)?;
        match format {
            PreviewFormat::Hunks if self.json => output.json(&preview),
            PreviewFormat::Hunks => preview.files.iter().for_each(|file| print_hunks(output, file)),
            _ => print_summary(output, &preview),
        }
        if preview.truncated {
            output.note(
                "some of it was too long and is cut; `pactify sub export --branch` makes a branch with all of it",
            );
        }
        Ok(DONE)
    }
}

/// The failure, or the path that was meant where the job has none that is called so.
fn or_meant(terminal: &Terminal, job: &JobId, path: Option<&PathName>, failure: Failure) -> Failure {
    let Some(path) = path.filter(|_| failure.code == FailureCode::InvalidParams) else { return failure };
    match whole(terminal, job, None, PreviewFormat::Summary, false) {
        Ok(preview) if preview.files.iter().all(|file| file.path != *path) => {
            meant::unknown(job, std::slice::from_ref(path), &preview.files)
        }
        _ => failure,
    }
}

/// A whole preview, of however many pages.
pub(super) fn whole(
    terminal: &Terminal,
    job: &JobId,
    path: Option<PathName>,
    format: PreviewFormat,
    checkout: bool,
) -> Result<Preview, Failure> {
    let (path, path_bytes) = path.map_or((None, None), |name| (Some(name.path), name.path_bytes));
    let (cursor, limit) = (None, Some(5000));
    let (job_id, show) = (job.to_string(), false);
    let mut params = PreviewParams { job_id, path, path_bytes, format, cursor, limit, checkout, show };
    let mut whole = terminal.jobs.preview(&params)?;
    while let Some(next) = whole.next.take() {
        params.cursor = Some(next);
        let page = terminal.jobs.preview(&params)?;
        if page.change_set != whole.change_set {
            return Err(Failure::new(FailureCode::StalePreview, "the result changed meanwhile", "ask again"));
        }
        whole.files.extend(page.files);
        whole.truncated |= page.truncated;
        whole.next = page.next;
    }
    Ok(whole)
}

/// The paths of a preview, and what the capture saw.
pub(super) fn print_summary(output: &Output, preview: &Preview) {
    for file in &preview.files {
        print_file(output, file);
    }
    for note in &preview.notes {
        output.note(&format!("note: {note}"));
    }
    output.styled(&[(&totals_line(preview.totals), STRONG)]);
    tell_outside(output, preview);
}

/// What changed outside the job's tree: at the end, where it is read.
fn tell_outside(output: &Output, preview: &Preview) {
    let told: Vec<_> = preview.outside.iter().filter(|change| change.weight != Weight::Ordinary).cloned().collect();
    if !told.is_empty() {
        output.note(&words::outside(&told, 0));
        output.note(&format!("see `pactify sub restore {} --list`", preview.job_id));
    }
}

fn print_file(output: &Output, file: &FileChange) {
    let (letter, style) = match file.kind {
        ChangeKind::Added => ("A", GOOD),
        ChangeKind::Modified => ("M", PLAIN),
        ChangeKind::Deleted => ("D", BAD),
        ChangeKind::ModeChanged => ("m", PLAIN),
        ChangeKind::TypeChanged => ("T", CARE),
    };
    let binary = if file.binary { "  binary" } else { "" };
    let tier = match file.tier {
        Some(Tier::Sensitive) => "  sensitive: it executes by itself later",
        Some(Tier::BuildInput) => "  builds or tests run it",
        None => "",
    };
    let renamed = match (&file.renamed_from, &file.renamed_to) {
        (Some(from), _) => format!("  was {}", from.path),
        (_, Some(to)) => format!("  is now {}", to.path),
        _ => String::new(),
    };
    let outlook = file.outlook.as_ref();
    let (good, bad) = match outlook.map(|outlook| outlook.kind) {
        Some(OutlookKind::Already) => ("  your checkout has it already", String::new()),
        Some(OutlookKind::Merge) => ("  will be merged", String::new()),
        Some(OutlookKind::Conflict) => {
            ("", outlook.and_then(|outlook| outlook.detail.as_ref()).map(|why| format!("  {why}")).unwrap_or_default())
        }
        Some(OutlookKind::Clean) | None => ("", String::new()),
    };
    let refused = file.refused.as_ref().map(|why| format!("  never applied: {why}")).unwrap_or_default();
    output.styled(&[
        (letter, style),
        (" ", PLAIN),
        (&file.path.path, PLAIN),
        (&renamed, FAINT),
        (binary, FAINT),
        (tier, CARE),
        (good, CARE),
        (&bad, BAD),
        (&refused, BAD),
    ]);
}

/// The hunks of one file, each with its name.
fn print_hunks(output: &Output, file: &FileChange) {
    print_file(output, file);
    for hunk in file.hunks.iter().flatten() {
        let id = hunk.id.unwrap_or(GroupId::Whole).to_string();
        let accepted = if hunk.accepted { "  applied" } else { "" };
        output.styled(&[("@@ ", FAINT), (&id, STRONG), (accepted, GOOD)]);
        for line in &hunk.old_lines {
            output.styled(&[("-", BAD), (line, BAD)]);
        }
        for line in &hunk.new_lines {
            output.styled(&[("+", GOOD), (line, GOOD)]);
        }
    }
    for group in file.groups.iter().flatten().filter(|group| group.id == GroupId::Mode) {
        let accepted = if group.accepted { "  applied" } else { "" };
        output.styled(&[("@@ ", FAINT), ("mode", STRONG), (accepted, GOOD)]);
    }
}

/// All of the patch: it may become a file.
fn print_patch(terminal: &Terminal, job: &JobId, path: Option<PathName>) -> Ended {
    let output = &terminal.output;
    let (patch, lacks) = terminal.jobs.patch(job, path.clone())?;
    if !output.is_terminal() {
        output.exact(&patch);
        return incomplete(lacks);
    }
    let preview = whole(terminal, job, path, PreviewFormat::Summary, false)?;
    for line in patch.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => BAD,
            Some(b'@') => FAINT,
            Some(b'd') if line.starts_with("diff ") => STRONG,
            _ => PLAIN,
        };
        output.styled(&[(line, style)]);
    }
    for note in &preview.notes {
        output.note(&format!("note: {note}"));
    }
    tell_outside(output, &preview);
    incomplete(lacks)
}

/// How a command ends that printed a patch: badly, where that is not all of it.
pub(super) fn incomplete(lacks: Option<String>) -> Ended {
    match lacks {
        None => Ok(DONE),
        Some(lacks) => Err(Failure::new(
            FailureCode::InvalidParams,
            format!("the patch is not complete: {lacks}"),
            "export the result as a branch, or apply it",
        )),
    }
}
