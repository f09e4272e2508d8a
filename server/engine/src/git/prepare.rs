//! Makes a job's tree: all of it, or nothing.
//!
//! A [`Isolation::Private`] tree has a git directory of its own: own configuration, hooks, index, refs and stash;
//! objects are borrowed. A [`Isolation::Linked`] one is registered in the person's repository as `git worktree add
//! --detach` would, and populated through the same inert git directory. Either way no filter, hook or program that a
//! configuration names can run, and a ref in the person's repository keeps the base from being collected.
//!
//! Every step that leaves something behind is entered in an [`undo::Undo`] first.

mod environment;
mod linked;
mod notices;
mod populate;
mod release;
mod uncommitted;
mod undo;

use std::os::fd::OwnedFd;
use std::time::Duration;

use pactify_core::AbsPath;
use pactify_core::job::event::TreeRecord;
use pactify_core::job::{Base, BaseKind, Isolation, RepositoryRecord};
use pactify_core::lfs::LfsPolicy;
use rustix::fs::{Mode, OFlags};

use self::environment::Site;
pub(super) use self::linked::registration;
pub use self::notices::Notice;
use self::populate::{Populated, Target};
use self::undo::Undo;
pub(super) use self::undo::remove;
use super::command::{Call, Place, Verb};
use super::config::{Layout, Rules, Settings, create_directory, create_file, lenders};
use super::error::GitError;
use super::included::Included;
use super::listing::Listing;
use super::manifest::{Header, Manifest};
use super::places::bytes;
use super::read::read;
use super::{CheckoutSeen, Git, Places, snapshot};

/// How long writing a whole tree may take: large repositories on slow disks.
pub(super) const POPULATE: Duration = Duration::from_secs(30 * 60);

/// What kind of tree a job gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// How it is separated from the checkout.
    pub isolation: Isolation,
    /// What it holds for files in Git LFS.
    pub lfs: LfsPolicy,
}

/// A populated tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Which directory it is.
    pub tree: TreeRecord,
    /// What it lacks, compared with the person's checkout.
    pub notices: Vec<Notice>,
    /// What that was like, where it was looked at.
    pub checkout: Option<CheckoutSeen>,
}

impl Git {
    /// Makes the tree of a job from `base`. The job's directory must be there and hold none yet.
    ///
    /// # Errors
    /// When it cannot be made; then nothing of it is left.
    pub fn prepare(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        base: &Base,
        wanted: impl Into<Wanted>,
    ) -> Result<Prepared, GitError> {
        let mut undo = Undo::new(self, places, repository);
        let prepared = self.prepare_undoably(places, repository, base, wanted.into(), &mut undo)?;
        undo.keep();
        Ok(prepared)
    }

    fn prepare_undoably(
        &self,
        places: &Places,
        repository: &RepositoryRecord,
        base: &Base,
        wanted: Wanted,
        undo: &mut Undo<'_>,
    ) -> Result<Prepared, GitError> {
        let isolation = wanted.isolation;
        let person = Place::Person(repository);
        let settings = self.settings(person)?;
        let rules = self.rules(repository, &settings)?;

        undo.keep_ref();
        self.set_ref(repository, &places.keep_ref(), base.public_commit())?;

        let git_dir = places.git();
        undo.path(git_dir.clone());
        self.create_git_dir(&git_dir, &lenders(places, repository, base)?, repository, base, &settings, &rules)?;
        self.copy_refs(&git_dir, repository)?;
        copy_sparse_patterns(&git_dir, repository, &settings)?;

        let tree = places.tree();
        undo.path(tree.clone());
        let rules_now = rules.clone();
        let mut header = Header::new(base.clone(), isolation, String::new(), rules);
        let index = match isolation {
            Isolation::Private => {
                create_directory(&tree)?;
                header.git_file = String::from_utf8_lossy(&[b"gitdir: ", bytes(&git_dir), b"\n"].concat()).into_owned();
                create_file(&tree.join(".git"), &[b"gitdir: ", bytes(&git_dir), b"\n"].concat())?;
                git_dir.join("index")
            }
            Isolation::Linked => {
                let registered = self.register(&tree, repository, base, undo)?;
                header.git_file = registered.git_file;
                header.registration = Some(registered.name);
                registered.directory.join("index")
            }
        };
        let directory = open_directory(&tree)?;
        let checkout = &repository.worktree;
        let target = Target { git_dir: &git_dir, tree: &tree, directory: &directory, index: &index, checkout };
        let place = target.place();
        let Populated { listing, files } = self.populate(&target, &base.tree, repository, &settings, &header.rules)?;

        header.lfs_store = Some(environment::local_store(repository, &settings).directory().clone());
        let site = Site {
            places,
            repository,
            settings: &settings,
            rules: &header.rules,
            place,
            listing: &listing,
            directory: &directory,
            lfs: wanted.lfs,
        };
        let furnished = self.furnish(&site)?;
        undo.path(places.included());
        Included::write(&places.included(), &furnished.included)?;
        undo.path(places.manifest());
        let sparse = settings.is_on("core.sparsecheckout");
        let probe = places.directory().join("manifest.probe");
        let mut manifest = Manifest::record(header, files, &probe)?;
        manifest.add(furnished.rewritten.iter().chain(&furnished.below_submodules), &directory, &probe)?;
        self.verify(place, &tree, base, &manifest, (!sparse).then_some(&listing))?;
        manifest.write(&places.manifest())?;
        let stat = rustix::fs::fstat(&directory).map_err(GitError::errno("look at", tree.as_path()))?;
        let mut notices = self.notices(place, &listing, sparse)?;
        notices.extend(furnished.notices);
        let checkout = match base.kind {
            BaseKind::Head => {
                let (notice, seen) = self.notice_uncommitted(places, repository, &settings, rules_now);
                notices.extend(notice);
                seen
            }
            BaseKind::WorkingTree | BaseKind::Buffers => {
                notices.extend(snapshot::notices(places)?.into_iter().map(|text| Notice { id: "base", text }));
                None
            }
        };
        let tree = TreeRecord { path: tree, device: stat.st_dev, inode: stat.st_ino, isolation };
        Ok(Prepared { tree, notices, checkout })
    }

    fn create_git_dir(
        &self,
        path: &AbsPath,
        alternates: &[AbsPath],
        repository: &RepositoryRecord,
        base: &Base,
        settings: &Settings,
        rules: &Rules,
    ) -> Result<(), GitError> {
        let mut carried = settings.carried();
        carried.insert("core.logallrefupdates".to_owned(), "true".to_owned());
        let sha256 = base.tree.is_sha256();
        let layout = Layout { path, settings: carried, rules, sha256, checkout: true, head: &base.commit, alternates };
        layout.create()?;
        copy_shallow(path, repository)
    }

    /// Gives the job's git directory copies of the person's refs, so that `git log main` means something in it.
    fn copy_refs(&self, git_dir: &AbsPath, repository: &RepositoryRecord) -> Result<(), GitError> {
        let call = Call::new(Verb::ForEachRef, Place::Person(repository)).args([
            "--format=%(objectname) %(refname)",
            "refs/heads",
            "refs/tags",
            "refs/remotes",
        ]);
        create_file(&git_dir.join("packed-refs"), &self.run(&call)?)
    }

    /// Holds the populated tree against what was asked for.
    fn verify(
        &self,
        place: Place<'_>,
        tree: &AbsPath,
        base: &Base,
        manifest: &Manifest,
        complete: Option<&Listing>,
    ) -> Result<(), GitError> {
        let wrong = |why: String| GitError::NotPopulated { path: tree.clone(), why };
        let head = self.resolve(place, "HEAD^{commit}")?;
        if head.as_ref() != Some(&base.commit) {
            let found = head.map_or_else(|| "nothing".to_owned(), |id| id.to_string());
            return Err(wrong(format!("its HEAD is {found}, not {}", base.commit)));
        }
        let absent =
            complete.and_then(|listing| listing.entries.keys().find(|path| !manifest.files.contains_key(path)));
        match absent {
            Some(path) => Err(wrong(format!("{path} is not there"))),
            None => Ok(()),
        }
    }
}

impl From<Isolation> for Wanted {
    fn from(isolation: Isolation) -> Self {
        Self { isolation, ..Self::default() }
    }
}

/// Tells a git directory of ours where the person's history is cut off.
pub(super) fn copy_shallow(git_dir: &AbsPath, repository: &RepositoryRecord) -> Result<(), GitError> {
    let shallow = repository.common_dir.join("shallow");
    match read(shallow.as_path()) {
        Ok(cut) => create_file(&git_dir.join("shallow"), &cut),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(GitError::io("read", shallow.as_path())(error)),
    }
}

/// Gives a git directory of ours the patterns of a sparse checkout.
pub(super) fn copy_sparse_patterns(
    git_dir: &AbsPath,
    repository: &RepositoryRecord,
    settings: &Settings,
) -> Result<(), GitError> {
    if !settings.is_on("core.sparsecheckout") {
        return Ok(());
    }
    let patterns = repository.git_dir.join("info").join("sparse-checkout");
    match read(patterns.as_path()) {
        Ok(text) => create_file(&git_dir.join("info").join("sparse-checkout"), &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(GitError::io("read", patterns.as_path())(error)),
    }
}

fn open_directory(path: &AbsPath) -> Result<OwnedFd, GitError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path.as_path(), flags, Mode::empty()).map_err(GitError::errno("open", path.as_path()))
}
