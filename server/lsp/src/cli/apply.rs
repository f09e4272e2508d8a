//! `pactify sub apply`: puts a result into the checkout, all that was chosen or nothing.

use std::ffi::OsString;

use pactify_core::change::group::GroupId;
use pactify_core::change::hunk;
use pactify_core::failure::{Conflict, ConflictKind};
use pactify_core::path::PathName;
use pactify_core::protocol::{Applied, ApplyParams, Content, ContentParams, PreviewFormat, ShownMerge, Side, words};
use pactify_core::{Failure, FailureCode};

use super::choice::path_name;
use super::diff::{print_summary, whole};
use super::output::{BAD, FAINT, GOOD, Output, PLAIN, STRONG};
use super::target::JobName;
use super::{DONE, Ended, Terminal, choice};

/// Put a job's changes into your checkout: all of them, or none
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Shows what it will do and asks. If anything stands in the way, every conflict is
listed and nothing is written. Files that execute by themselves later (editor
tasks, hooks, agent configuration) are written only when they are named with
--path or --confirm. Where your checkout has changes of its own, both are merged;
a merge is shown before it is written.

Examples:
  pactify sub apply last
  pactify sub apply last --path src/parse.rs --path tests/parse.rs
  pactify sub apply last --group src/parse.rs:-12,3+14,4
  pactify sub apply k3xq2a --confirm .vscode/tasks.json --merge --yes")]
pub(super) struct Args {
    /// The job
    #[arg(add = super::candidates::jobs())]
    job: JobName,
    /// Only this path, or everything below it; may be given several times
    #[arg(long, value_name = "PATH")]
    path: Vec<OsString>,
    /// Only this part of a path, as `pactify sub diff --hunks` names it; may be given several times
    #[arg(long, value_name = "PATH:PART")]
    group: Vec<OsString>,
    /// A sensitive path that you looked at and want; may be given several times
    #[arg(long, value_name = "PATH")]
    confirm: Vec<OsString>,
    /// Apply everything although something dangerous changed outside the job's tree
    #[arg(long)]
    confirm_outside: bool,
    /// Write merges of your checkout's changes and the job's, as they are shown
    #[arg(long)]
    merge: bool,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
    /// Print JSON; needs --yes
    #[arg(long, requires = "yes")]
    pub(super) json: bool,
}

/// How often a merge is shown anew because the checkout changed again.
const ROUNDS: usize = 3;

impl Args {
    pub(super) fn run(self, terminal: &Terminal) -> Ended {
        let job = self.job.find(terminal)?;
        let output = &terminal.output;
        let confirm_sensitive: Vec<PathName> = self.confirm.iter().map(path_name).collect::<Result<_, _>>()?;
        // Where the checkout cannot be looked at now, the apply itself says why.
        let mut preview = whole(terminal, &job, None, PreviewFormat::Summary, true)
            .or_else(|_| whole(terminal, &job, None, PreviewFormat::Summary, false))?;
        let select = choice::selected(&job, &self.path, &self.group, &confirm_sensitive, &preview.files)?;
        if !select.is_empty() {
            preview.files.retain(|file| select.iter().any(|selected| selected.path == file.path));
        }
        if !self.json {
            print_summary(output, &preview);
        }
        if !self.yes {
            let question = match preview.files.len() {
                1 => "Write this path into the checkout?".to_owned(),
                count => format!("Write these {count} paths into the checkout?"),
            };
            let next = "look at the diff, then pass --yes";
            if !output.confirm(&question, "write into the checkout", "nothing was written", next)? {
                return Ok(FailureCode::WrongState.exit_code());
            }
        }
        let select = (!select.is_empty()).then_some(select);
        let (job_id, change_set, confirm_merges) = (job.to_string(), preview.change_set, vec![]);
        let confirm_outside = self.confirm_outside;
        let params = ApplyParams { job_id, change_set, select, confirm_sensitive, confirm_merges, confirm_outside };
        match self.apply(terminal, params)? {
            None => {
                output.note("nothing was written");
                Ok(FailureCode::ApplyConflict.exit_code())
            }
            Some(applied) => {
                if self.json {
                    output.json(&applied);
                } else {
                    tell(terminal, &applied);
                }
                Ok(DONE)
            }
        }
    }

    /// Applies; merges are shown and confirmed first. `None` when the person decided against a merge.
    fn apply(&self, terminal: &Terminal, mut params: ApplyParams) -> Result<Option<Applied>, Failure> {
        for _ in 0..ROUNDS {
            let mut failure = match terminal.jobs.apply(&params) {
                Ok(applied) => return Ok(Some(applied)),
                Err(failure) => failure,
            };
            let merges: Vec<&Conflict> =
                failure.conflicts.iter().filter(|conflict| conflict.kind == ConflictKind::MergeNotShown).collect();
            if merges.is_empty() || merges.len() < failure.conflicts.len() {
                return Err(failure);
            }
            let shown = merges.iter().map(|merge| self.show(terminal, &params, merge));
            params.confirm_merges = shown.collect::<Result<_, _>>()?;
            let question = match params.confirm_merges.len() {
                1 => "Write this merge?".to_owned(),
                count => format!("Write these {count} merges?"),
            };
            let wanted = self.merge || {
                let asked = (!self.yes).then(|| terminal.output.ask(&question));
                match asked.flatten() {
                    Some(true) => true,
                    Some(false) => return Ok(None),
                    None => false,
                }
            };
            if !wanted {
                "look at the merges, then pass --merge to have them written".clone_into(&mut failure.next);
                return Err(failure);
            }
        }
        let message = "the checkout changes faster than its merges can be shown";
        Err(Failure::new(FailureCode::ApplyConflict, message, "save your files, then apply again"))
    }

    /// Shows a merge as what it changes in the checkout.
    fn show(&self, terminal: &Terminal, params: &ApplyParams, merge: &Conflict) -> Result<ShownMerge, Failure> {
        let named = params.select.iter().flatten().find(|selected| selected.path == merge.path);
        let groups = named.and_then(|selected| selected.groups.clone());
        let side = |side, groups| {
            let (job_id, path) = (params.job_id.clone(), merge.path.clone());
            terminal.jobs.content(&ContentParams { job_id, side, path, groups })
        };
        let merged = side(Side::Merged, groups)?;
        if !self.json {
            print_merge(&terminal.output, &merge.path, &side(Side::Current, None)?, &merged);
        }
        let object = merged.object.or_else(|| merge.object.clone()).unwrap_or_default();
        Ok(ShownMerge { path: merge.path.clone(), object })
    }
}

/// The lines that a merge changes in the checkout. Line endings that only the checkout has are no changes.
fn print_merge(output: &Output, path: &PathName, current: &Content, merged: &Content) {
    let text = |content: &Content| content.text.as_deref().unwrap_or_default().replace("\r\n", "\n");
    let (current, merged) = (text(current), text(merged));
    let (old, new) = (hunk::lines(&current), hunk::lines(&merged));
    output.styled(&[("merge of ", PLAIN), (&path.path, STRONG), (" into your checkout:", PLAIN)]);
    for group in hunk::groups(&old, &new, None) {
        let at = format!("@@ {} @@", GroupId::of(&group));
        output.styled(&[(&at, FAINT)]);
        for line in &old[group.old] {
            output.styled(&[("-", BAD), (line.trim_end_matches('\n'), BAD)]);
        }
        for line in &new[group.new] {
            output.styled(&[("+", GOOD), (line.trim_end_matches('\n'), GOOD)]);
        }
    }
}

fn tell(terminal: &Terminal, applied: &Applied) {
    let output = &terminal.output;
    for path in &applied.applied {
        let how = if applied.merged.contains(path) { "merged " } else { "wrote " };
        output.styled(&[(how, GOOD), (&path.path, PLAIN)]);
    }
    for path in &applied.already {
        output.styled(&[("had it already ", PLAIN), (&path.path, PLAIN)]);
    }
    let state = words::disposition(applied.disposition).unwrap_or("nothing was left to write");
    output.note(&format!("{state}; nothing was staged or committed"));
}
