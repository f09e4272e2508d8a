//! Showing what a job changed: summary first, lines on demand, always of the captured objects.
//!
//! Everything here is bounded and pages; what is cut short says so. Sensitive paths come first. The job's tree is never
//! looked at: it may have been changed since, or be a trap.

mod file;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use pactify_core::change::plan::Selection;
use pactify_core::change::sensitive::{Tier, tier};
use pactify_core::change::{Change, ChangeKind, ChangeSet, Entry, EntryMode, Note, Totals, hunk};
use pactify_core::fingerprint::OutsideChange;
use pactify_core::job::state::SeenState;
use pactify_core::job::{JobSpec, Place};
use pactify_core::path::PathName;
use pactify_core::protocol::{ExportForm, ExportParams, Exported, FileChange, Preview, PreviewFormat, PreviewParams};
use pactify_core::{AbsPath, Failure, FailureCode, JobId, ObjectId, RepoPath, display};

use super::cut_off::CutOff;
use super::offer::{Chosen, Offer};
use super::scene::Scene;
use super::{Jobs, Page, invalid, job_id, page, unchanged};
use crate::apply::unsaved::unsaved;
use crate::git::renames::Rename;
use crate::git::{GitError, Objects, Patch, Places, Texts};
use crate::store::JobSnapshot;

/// The longest patch that is sent in one piece, in bytes.
const MAX_PATCH: usize = 16 << 20;

/// When a page has more changed lines than this, it ends.
const MAX_PAGE_LINES: usize = 50_000;

impl Jobs {
    /// What a job changed.
    pub fn preview(&self, params: &PreviewParams) -> Result<Preview, Failure> {
        let job = job_id(&params.job_id)?;
        let result = self.result(&job)?;
        let only = match (&params.path, &params.path_bytes) {
            (None, None) => None,
            (path, bytes) => Some(repo_path(path.clone().unwrap_or_default(), bytes.clone())?),
        };
        let mut changes: Vec<&Change> = match &only {
            None => result.set.changes.iter().collect(),
            Some(only) => result.set.changes.iter().filter(|change| change.path == *only).collect(),
        };
        if let (Some(only), true) = (&only, changes.is_empty()) {
            return Err(unchanged(only));
        }
        changes.sort_by_key(|change| tier(&change.path) != Some(Tier::Sensitive));
        let mut page = page(params.cursor.as_deref(), params.limit, 500, 5_000, changes.len())?;
        let mut offer = Offer::of(&result);
        let mut files: Vec<FileChange> = Vec::new();
        let mut lines = 0;
        for (at, change) in changes.iter().enumerate().take(page.range.end).skip(page.range.start) {
            if lines > MAX_PAGE_LINES {
                page = Page { range: page.range.start..at, next: Some(at.to_string()) };
                break;
            }
            files.push(file::change(change, &offer, params.format)?);
            lines += files.last().map_or(0, file::lines);
        }
        let shown: Vec<&Change> = changes[page.range].to_vec();
        self.add_renames(&result, &shown, &mut files)?;
        if params.checkout {
            self.add_outlook(&job, &mut offer, &shown, &mut files)?;
        }
        let mut truncated = files.iter().any(|file| file.truncated && params.format == PreviewFormat::Hunks);
        let patch = match params.format {
            PreviewFormat::Patch => {
                let (patch, left_out) = self.patch_of(&result, only.as_ref())?.within(MAX_PATCH);
                truncated |= !left_out.is_empty();
                let why = format!("the patch is over {} MiB", MAX_PATCH >> 20);
                Some((patch, lacks(&why, &left_out, "`pactify sub diff` prints all of it")))
            }
            PreviewFormat::Summary | PreviewFormat::Hunks => None,
        };
        let (patch, lacking) = patch.unzip();
        let told = CutOff::of(self.store()).told(&job, &result.spec.repository);
        Ok(Preview {
            job_id: job.to_string(),
            change_set: result.set.id.to_string(),
            totals: result.totals,
            files,
            notes: told.into_iter().chain(lacking.flatten()).chain(result.set.notes.iter().map(note)).collect(),
            outside: result.outside.clone(),
            next: page.next,
            patch,
            truncated,
        })
    }

    /// The whole patch, however long, for whoever writes it to a file, and a sentence on what it had to leave out. Of
    /// one path only, if one is named.
    pub fn patch(&self, job: &JobId, only: Option<PathName>) -> Result<(String, Option<String>), Failure> {
        let only = only.map(|name| repo_path(name.path, name.path_bytes)).transpose()?;
        let result = self.result(job)?;
        match &only {
            Some(only) if !result.set.changes.iter().any(|change| change.path == *only) => Err(unchanged(only)),
            only => {
                let (patch, left_out) = self.patch_of(&result, only.as_ref())?.within(usize::MAX);
                Ok((patch, lacks("contents are too large", &left_out, "`pactify sub export --branch` has all of it")))
            }
        }
    }

    /// The result as a patch, or as a branch of the person's repository.
    pub fn export(&self, params: &ExportParams) -> Result<Exported, Failure> {
        let job = job_id(&params.job_id)?;
        let result = self.result(&job)?;
        match params.form {
            ExportForm::Patch => {
                let (patch, left_out) = self.patch_of(&result, None)?.within(MAX_PATCH);
                if left_out.is_empty() {
                    return Ok(Exported { patch: Some(patch), branch: None });
                }
                let why = format!("the patch is over {} MiB", MAX_PATCH >> 20);
                let next = "print it with `pactify sub export`, export it as a branch, or apply it";
                Err(Failure::new(FailureCode::InvalidParams, why, next))
            }
            ExportForm::Branch => {
                self.refuse_inside_a_job()?;
                let name = params.name.clone().unwrap_or_else(|| format!("pactify/{job}"));
                let (spec, tree) = (&result.spec, result.set.id.tree());
                let message = format!("{}\n\nDone by {} in pactify job {job}.\n", spec.brief.title(), spec.harness);
                self.git()?.publish_branch(&result.capture, &spec.repository, &spec.base, tree, &name, &message)?;
                Ok(Exported { patch: None, branch: Some(name) })
            }
        }
    }
}

impl Jobs {
    fn add_renames(&self, result: &Captured, shown: &[&Change], files: &mut [FileChange]) -> Result<(), Failure> {
        let renames = match &result.renames {
            Some(renames) => Cow::Borrowed(renames),
            None => {
                let (base, tree) = (&result.set.base_tree, result.set.id.tree());
                Cow::Owned(self.git()?.renames(&result.capture, base, tree, &result.set.changes)?)
            }
        };
        let to_from: HashMap<&RepoPath, &Rename> = renames.iter().map(|rename| (&rename.to, rename)).collect();
        let from_to: HashMap<&RepoPath, &Rename> = renames.iter().map(|rename| (&rename.from, rename)).collect();
        for (change, file) in shown.iter().zip(files) {
            match (change.kind(), to_from.get(&change.path), from_to.get(&change.path)) {
                (ChangeKind::Added, Some(rename), _) => {
                    file.renamed_from = Some(rename.from.clone().into());
                    file.similarity = Some(rename.similarity);
                }
                (ChangeKind::Deleted, _, Some(rename)) => {
                    file.renamed_to = Some(rename.to.clone().into());
                    file.similarity = Some(rename.similarity);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Says of each shown file what applying it to the checkout would do now.
    fn add_outlook(
        &self,
        job: &JobId,
        offer: &mut Offer<'_>,
        shown: &[&Change],
        files: &mut [FileChange],
    ) -> Result<(), Failure> {
        let _lock = self.quiet(job)?;
        let result = offer.result();
        let unsaved = unsaved(self.store(), &result.spec.repository)?;
        let form = self.form(&Places::from(&self.store().job(job)?), offer)?;
        let mut scene = Scene::of(&form, offer, &Chosen::new(), unsaved)?;
        let shown_paths = Selection::Paths(shown.iter().map(|change| change.path.clone()).collect());
        scene.merge(&shown_paths, offer)?;
        let mut outlook = result.set.outlook(&scene.grounds, &scene.checkout);
        for (change, file) in shown.iter().zip(files) {
            file.outlook = outlook.remove(&change.path).map(file::outlook);
        }
        Ok(())
    }

    /// Opens what the job's newest capture found.
    pub(super) fn result(&self, job: &JobId) -> Result<Captured, Failure> {
        let (snapshot, seen) = self.store().seen(job)?;
        let state = &snapshot.state;
        let Some(record) = &state.result else { return Err(no_result(&snapshot, seen)) };
        let (directory, git, spec) = (self.store().job(job)?, self.git()?, Arc::clone(&snapshot.spec));
        let capture = directory.capture();
        let list = git.change_list(&capture, &record.base_tree, record.change_set.tree())?;
        let mut result = Captured {
            set: list.set,
            texts: list.texts,
            renames: list.renames,
            totals: record.totals,
            objects: git.objects(&capture, record.change_set.tree())?,
            accepted: snapshot.state.accepted.clone(),
            accepted_entries: BTreeMap::new(),
            capture,
            spec,
            outside: snapshot.state.outside_changes(),
        };
        if let Some(accepted) = result.accepted.as_ref().filter(|accepted| **accepted != record.base_tree) {
            let places = Places::from(&directory);
            let Some(store) = git.accepted(&places, &result.spec.base)? else {
                let (repository, missing) = (places.accepted(), vec![accepted.to_string()]);
                return Err(GitError::ObjectsMissing { repository, missing }.into());
            };
            let changes = store.changes(&record.base_tree, accepted)?;
            result.objects = result.objects.or(store.into_objects());
            result.add_accepted(changes);
        }
        Ok(result)
    }

    fn patch_of(&self, result: &Captured, only: Option<&RepoPath>) -> Result<Patch, Failure> {
        Ok(self.git()?.patch(&result.capture, &result.set.base_tree, result.set.id.tree(), only)?)
    }
}

/// What is said of the files that a patch lacks; nothing if it has all.
fn lacks(why: &str, paths: &[String], next: &str) -> Option<String> {
    const NAMED: usize = 5;
    let named: Vec<_> = paths.iter().take(NAMED).map(String::as_str).collect();
    let more = paths.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!paths.is_empty()).then(|| format!("{why}: it lacks {}{more}; {next}", named.join(", ")))
}

fn no_result(snapshot: &JobSnapshot, seen: SeenState) -> Failure {
    let job = &snapshot.spec.id;
    if snapshot.spec.place == Place::Checkout {
        let message = format!("job {job} has no result: it only looked around in your checkout");
        return Failure::new(FailureCode::WrongState, message, format!("`pactify sub show {job}` has its answer"));
    }
    let (why, next) = match seen {
        SeenState::Finished if snapshot.state.is_to_capture() => (
            "its tree could not be captured",
            "`pactify sub show` says why; repair that, then `pactify sub cancel` on the job captures its tree",
        ),
        SeenState::Finished => ("nothing was captured", "`pactify sub show` says how it ended"),
        SeenState::Lost => {
            ("its host died", "start the server, or cancel the job: what is in its tree is captured then")
        }
        _ => ("it is not finished", "wait until it ends, or cancel it"),
    };
    Failure::new(FailureCode::WrongState, format!("job {job} has no result: {why}"), next)
}

/// A note, as one sentence.
pub(super) fn note(note: &Note) -> String {
    match note {
        Note::NestedRepository { path, files } => {
            format!(
                "{path} is a repository of its own: what is in it ({}) is not included",
                display::counted(*files, "file")
            )
        }
        Note::Submodule { path, files } => {
            format!("{path} is a submodule: what changed in it ({}) is not included", display::counted(*files, "file"))
        }
        Note::SpecialFile { path, what } => format!("{path} is a {what}: not included"),
        Note::HardLinked { path, links } => {
            format!("{path} has {links} names: its content may come from outside the job's tree")
        }
        Note::Ignored { files, examples } => {
            let shown: Vec<_> = examples.iter().map(ToString::to_string).collect();
            let are = if *files == 1 { "is" } else { "are" };
            let files = display::counted(*files, "new file");
            format!("{files} {are} ignored by the repository and not included: {}", shown.join(", "))
        }
        Note::TooLarge { path, size } => format!("{path} has {size} bytes: not included"),
        Note::Unreadable { shown, why } => format!("{} could not be read: {why}", display::neutral(shown)),
        Note::GitFileRewritten => "the job rewrote the link from its tree to its git directory".to_owned(),
        Note::Commits { refs, count } => {
            let more = if *count > refs.len() as u64 { ", …" } else { "" };
            let named: Vec<_> = refs.iter().map(|name| ref_in_words(name)).collect();
            format!("commits are only in the git directory of the job's tree: {}{more}", named.join(", "))
        }
    }
}

fn ref_in_words(name: &str) -> String {
    const WIDTH: usize = 80;
    match name.strip_prefix("refs/heads/") {
        _ if name == "refs/stash" => "the stash".to_owned(),
        Some(branch) => format!("branch {}", display::headline(branch, WIDTH)),
        None => display::headline(name, WIDTH),
    }
}

pub(super) fn repo_path(path: String, path_bytes: Option<String>) -> Result<RepoPath, Failure> {
    RepoPath::try_from(PathName { path, path_bytes }).map_err(|error| invalid(format!("path: {error}")))
}

/// A job's captured result, opened.
pub(super) struct Captured {
    /// From base to result. Paths that were accepted and that this result has again as the base had them are added:
    /// their change is from what was accepted.
    pub(super) set: ChangeSet,
    /// Which of its contents are text.
    pub(super) texts: Texts,
    /// Which of its changes are renames; `None` where nobody has looked.
    pub(super) renames: Option<Vec<Rename>>,
    pub(super) totals: Totals,
    /// Contents of the base, of the result, and of what was accepted.
    pub(super) objects: Objects,
    /// The tree of what was accepted so far.
    pub(super) accepted: Option<ObjectId>,
    /// Where that differs from the base.
    pub(super) accepted_entries: BTreeMap<RepoPath, Option<Entry>>,
    pub(super) capture: AbsPath,
    pub(super) spec: Arc<JobSpec>,
    pub(super) outside: Vec<OutsideChange>,
}

impl Captured {
    /// Whether a side is text, if that can be told without reading it.
    pub(super) fn is_text(&self, entry: &Entry) -> Option<bool> {
        match entry.mode {
            EntryMode::Gitlink => Some(true),
            _ if entry.size > hunk::MAX_TEXT_BYTES => Some(false),
            _ => self.texts.is_text(&entry.object),
        }
    }

    /// Adds what was accepted, as differences from the base.
    fn add_accepted(&mut self, changes: Vec<Change>) {
        let known: BTreeSet<RepoPath> = self.set.changes.iter().map(|change| change.path.clone()).collect();
        for Change { path, old, new } in changes {
            if !known.contains(&path) {
                self.totals.files += 1;
                self.totals.sensitive += u64::from(tier(&path) == Some(Tier::Sensitive));
                self.set.changes.push(Change { path: path.clone(), old: new.clone(), new: old });
            }
            self.accepted_entries.insert(path, new);
        }
        self.set.changes.sort_by(|one, other| one.path.cmp(&other.path));
    }
}
