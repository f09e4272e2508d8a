//! A checkout and a result, taken in parts by what [`super::super::Jobs::apply`] is made of. No git process has a part
//! in it, so that thousands of them take seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use pactify_core::change::{Entry, EntryMode, Totals};
use pactify_core::path::PathName;
use pactify_core::protocol::ApplyParams;
use pactify_core::{AbsPath, Failure, ObjectId, RepoPath};

use super::super::apply::{Wish, plan};
use super::super::offer::Offer;
use super::super::preview::Captured;
use super::super::scene::InCheckout;
use crate::apply::tests::fixture::{CapturedResult, Files, Node, Sandbox, apply_id};
use crate::apply::{self, Applied, Materials};
use crate::env::{Directories, Env, Variables};
use crate::git::{CheckoutForm, Git, Objects, Texts};
use crate::hash::Algorithm;
use crate::store::fixture::{ID, spec};

pub(super) struct World {
    pub(super) sandbox: Sandbox,
    result: CapturedResult,
    accepted: BTreeMap<RepoPath, Option<Entry>>,
    accepted_before: BTreeMap<RepoPath, Option<Entry>>,
    applies: u32,
}

/// The objects of every world of this process: they are few, and the same ones come up again and again.
struct Store {
    git: Git,
    capture: AbsPath,
    /// Goes with the process; the system clears what is left.
    _folder: tempfile::TempDir,
}

fn store() -> &'static Store {
    static STORE: OnceLock<Store> = OnceLock::new();
    STORE.get_or_init(|| {
        let folder = crate::store::fixture::directory();
        let home = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
        let capture = home.join("capture");
        git2::Repository::init_bare(capture.as_path()).unwrap();
        let path = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
        let env = Env::from_values(Variables::from([path]), Directories::under(&home));
        Store { git: Git::find(&env).unwrap(), capture, _folder: folder }
    })
}

fn objects() -> Objects {
    store().git.objects(&store().capture, &Algorithm::Sha1.blob(b"")).unwrap()
}

impl World {
    pub(super) fn new(base: &Files, result: &Files) -> Self {
        let written = objects();
        for node in base.values().chain(result.values()) {
            written.write(bytes(node)).unwrap();
        }
        let (sandbox, result) = (Sandbox::in_memory(base), CapturedResult::between(base, result));
        Self { sandbox, result, accepted: BTreeMap::new(), accepted_before: BTreeMap::new(), applies: 0 }
    }

    /// Everything in the checkout but directories.
    pub(super) fn files(&self) -> Files {
        let mut files = self.sandbox.picture();
        files.retain(|_, node| *node != Node::Directory);
        files
    }

    /// The person's own edit.
    pub(super) fn edit(&self, path: &str, node: Option<&Node>) {
        match node {
            Some(node) => self.sandbox.put(path, node),
            None => drop(std::fs::remove_file(self.sandbox.at(path))),
        }
    }

    /// Takes what `params` choose, as the façade does; what is accepted is remembered as its tree would.
    pub(super) fn apply(&mut self, params: &ApplyParams) -> Result<Applied, Failure> {
        let lock = self.sandbox.lock();
        let mut spec = spec(ID);
        spec.repository = self.sandbox.repository.clone();
        let captured = Captured {
            set: self.result.set.clone(),
            texts: Texts::default(),
            renames: None,
            totals: Totals::default(),
            objects: objects(),
            accepted: None,
            accepted_entries: self.accepted.clone(),
            capture: store().capture.clone(),
            spec: Arc::new(spec),
            outside: Vec::new(),
        };
        let (mut offer, form) = (Offer::of(&captured), CheckoutForm::plain());
        let plan = plan(&mut offer, &form, Wish::read(params)?, vec![])?;
        let accepts = plan.accepts().clone();
        let canonical = InCheckout { form: &form, offer: &offer };
        let materials = Materials { contents: &offer, canonical: &canonical };
        let applied = apply::apply(plan, &apply_id(self.applies + 1), materials, &lock)?;
        if !applied.written.is_empty() {
            self.applies += 1;
        }
        self.accepted_before.clone_from(&self.accepted);
        for (path, entry) in accepts {
            if let Some(made) = entry.as_ref().and_then(|entry| offer.made(&entry.object)) {
                captured.objects.write(&made).unwrap();
            }
            let change = captured.set.changes.iter().find(|change| change.path == path).unwrap();
            let facts = |entry: &Option<Entry>| entry.as_ref().map(|entry| (entry.mode, entry.object.clone()));
            match facts(&change.old) == facts(&entry) {
                true => drop(self.accepted.remove(&path)),
                false => drop(self.accepted.insert(path, entry)),
            }
        }
        Ok(applied)
    }

    /// Takes the last apply back.
    pub(super) fn undo(&mut self) {
        let (lock, id) = (self.sandbox.lock(), apply_id(self.applies));
        apply::undo(&id, &[], &lock).unwrap();
        apply::forget(&lock, &id).unwrap();
        self.applies -= 1;
        self.accepted = std::mem::take(&mut self.accepted_before);
    }

    /// The argument of an apply without a choice.
    pub(super) fn params(&self) -> ApplyParams {
        ApplyParams {
            job_id: ID.to_owned(),
            change_set: self.result.set.id.to_string(),
            select: None,
            confirm_sensitive: vec![],
            confirm_merges: vec![],
            confirm_outside: false,
        }
    }
}

pub(super) fn bytes(node: &Node) -> &[u8] {
    match node {
        Node::File(bytes) | Node::Executable(bytes) | Node::Link(bytes) => bytes,
        Node::Directory => b"",
    }
}

pub(super) fn mode(node: &Node) -> EntryMode {
    match node {
        Node::Executable(_) => EntryMode::Executable,
        Node::Link(_) => EntryMode::Symlink,
        Node::File(_) | Node::Directory => EntryMode::File,
    }
}

pub(super) fn id_of(bytes: &[u8]) -> ObjectId {
    Algorithm::Sha1.blob(bytes)
}

pub(super) fn name(path: &str) -> PathName {
    RepoPath::new(path).unwrap().into()
}
