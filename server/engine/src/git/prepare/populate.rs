//! Filling a job's tree with what its base holds, on several threads, in the way of `git read-tree -m -u`.
//!
//! Everybody waits for this, and git does it on one thread. So where nothing about a base is out of the ordinary, its
//! files are read with libgit2 and written by us ([`files`]), together with an index that says so ([`index`]): a `git
//! status` in the tree is clean and reads no file. What git would convert on the way (line endings, `ident`, encodings)
//! it writes itself, file by file. Everything else is git's from the first to the last file: formats that libgit2 does
//! not know, sparse checkouts, file systems that fold names or have no links, and names that git refuses.
//!
//! Either way the outcome is what git would have made ([decision
//! 23](../../../../../docs/decisions/0023-own-population.md)).

mod donor;
mod files;
mod index;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use pactify_core::change::EntryMode;
use pactify_core::job::RepositoryRecord;
use pactify_core::path::rules::{Rule, WritablePath};
use pactify_core::{AbsPath, ObjectId, RepoPath};

use super::POPULATE;
use crate::git::Git;
use crate::git::command::{Call, Place, Verb};
use crate::git::config::{Rules, Settings};
use crate::git::conversion::Stage;
use crate::git::error::GitError;
use crate::git::listing::{Listed, Listing};
use crate::git::manifest::{Fingerprint, look};

/// The tree to be filled.
pub(super) struct Target<'a> {
    pub(super) git_dir: &'a AbsPath,
    pub(super) tree: &'a AbsPath,
    pub(super) directory: &'a OwnedFd,
    pub(super) index: &'a AbsPath,
    /// The person's checkout.
    pub(super) checkout: &'a AbsPath,
}

impl<'a> Target<'a> {
    pub(super) fn place(&self) -> Place<'a> {
        Place::Private { git_dir: self.git_dir, work_tree: Some(self.tree), index: Some(self.index) }
    }
}

/// What was put into it.
pub(super) struct Populated {
    pub(super) listing: Listing,
    pub(super) files: BTreeMap<RepoPath, Fingerprint>,
}

/// Who writes a tree's files.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    Git,
    /// We do, except for these, which git converts.
    Own(BTreeSet<RepoPath>),
}

impl Git {
    pub(super) fn populate(
        &self,
        target: &Target<'_>,
        base: &ObjectId,
        repository: &RepositoryRecord,
        settings: &Settings,
        rules: &Rules,
    ) -> Result<Populated, GitError> {
        let listing = self.list(target.place(), base)?;
        let files = match self.way(target, &listing, base, settings, rules)? {
            Way::Git => {
                self.populate_with_git(target, base).and_then(|()| look(listing.entries.keys(), target.directory))
            }
            Way::Own(converted) => self.populate_ourselves(target, base, &listing, &converted),
        };
        match files {
            Ok(files) => Ok(Populated { listing, files }),
            Err(error) => Err(self.why_not_populated(target, &listing, repository).unwrap_or(error)),
        }
    }

    fn populate_with_git(&self, target: &Target<'_>, base: &ObjectId) -> Result<(), GitError> {
        let call = Call::new(Verb::ReadTree, target.place())
            .settings(&["checkout.workers=2"])
            .args(["-m", "-u", base.as_str()])
            .patience(POPULATE);
        self.run(&call).map(drop)
    }

    fn populate_ourselves(
        &self,
        target: &Target<'_>,
        base: &ObjectId,
        listing: &Listing,
        converted: &BTreeSet<RepoPath>,
    ) -> Result<BTreeMap<RepoPath, Fingerprint>, GitError> {
        let entries: Vec<(&RepoPath, &Listed)> = listing.entries.iter().collect();
        let stats = files::write(target, listing, &entries, converted)?;
        index::write(target.index, base, listing, &entries, &stats)?;
        let stats = entries.iter().zip(&stats);
        let mut files: BTreeMap<_, _> =
            stats.filter_map(|((path, _), stat)| Some(((*path).clone(), Fingerprint::of(stat.as_ref()?)))).collect();
        if !converted.is_empty() {
            self.convert(target, converted)?;
            files.extend(look(converted.iter(), target.directory)?);
        }
        Ok(files)
    }

    /// Lets git write files that are in the index already.
    fn convert(&self, target: &Target<'_>, paths: &BTreeSet<RepoPath>) -> Result<(), GitError> {
        let input = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let call = Call::new(Verb::CheckoutIndex, target.place()).args(["--index", "--quiet", "-z", "--stdin"]);
        self.run(&call.input(input).patience(POPULATE)).map(drop)
    }

    fn way(
        &self,
        target: &Target<'_>,
        listing: &Listing,
        base: &ObjectId,
        settings: &Settings,
        rules: &Rules,
    ) -> Result<Way, GitError> {
        let folds = settings.is_on("core.ignorecase") || settings.is_on("core.precomposeunicode");
        if base.is_sha256() || settings.is_on("core.sparsecheckout") || folds || !rules.is_on("core.symlinks", true) {
            return Ok(Way::Git);
        }
        let plain = listing.entries.iter().all(|(path, entry)| is_plain(path, entry, listing));
        if !plain
            || listing.entries.is_empty()
            || !listing.directories.keys().all(|path| holds_something(path, listing))
        {
            return Ok(Way::Git);
        }
        let writes_crlf = setting(settings, "core.eol") == "crlf" || settings.is_on("core.autocrlf");
        let attributes: Vec<&ObjectId> =
            listing.files_called(b".gitattributes").map(|(_, entry)| &entry.object).collect();
        let mut texts = if attributes.is_empty() { Vec::new() } else { self.contents(target.place(), &attributes)? };
        texts.extend([&rules.global_attributes, &rules.info_attributes].map(|text| text.clone().into_bytes()));
        if !writes_crlf && !texts.iter().any(|text| mentions_conversion(text)) {
            return Ok(Way::Own(BTreeSet::new()));
        }
        if settings.is_on("core.autocrlf") {
            // Files without attributes, too.
            return Ok(Way::Git);
        }
        let converts = |attribute: &[u8], value: &[u8]| match attribute {
            b"eol" => value == b"crlf",
            b"text" | b"crlf" => writes_crlf,
            _ => true,
        };
        let names = ["eol", "ident", "working-tree-encoding", "text", "crlf"];
        let converted = match Stage::open(self, target.git_dir, listing, rules)? {
            Some(stage) => stage.select(&names, listing.entries.keys(), converts)?,
            None => BTreeSet::new(),
        };
        Ok(if converted.len() > listing.entries.len() / 2 { Way::Git } else { Way::Own(converted) })
    }

    /// The reason that is not in the error itself: git names one missing object at best, and says nothing of a full
    /// disk.
    fn why_not_populated(
        &self,
        target: &Target<'_>,
        listing: &Listing,
        repository: &RepositoryRecord,
    ) -> Option<GitError> {
        let place = target.place();
        let files = listing.entries.values().filter(|entry| entry.mode != EntryMode::Gitlink);
        let objects: Vec<&ObjectId> = files.map(|entry| &entry.object).collect();
        let missing = self.absent(place, &objects).ok()?;
        if !missing.is_empty() {
            return Some(GitError::ObjectsMissing { repository: repository.common_dir.clone(), missing });
        }
        let needed = self.sizes(place, &objects).ok()?.iter().sum();
        let system = rustix::fs::statvfs(target.tree.as_path()).ok()?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        (free < needed).then(|| GitError::NoSpace { path: target.tree.clone(), needed, free })
    }
}

/// Whether git takes the entry without a second thought. What is in doubt is left to git, which refuses some names.
fn is_plain(path: &RepoPath, entry: &Listed, listing: &Listing) -> bool {
    // Links called `.gitmodules` are refused, under several spellings.
    let doubtful_link = entry.mode == EntryMode::Symlink && !is_common(path.file_name());
    let both = listing.is_directory(path);
    !doubtful_link
        && !both
        && path.components().all(|name| is_common(name) || !(name.contains(&b'\\') || names_git(name)))
}

/// git makes no empty directories, although a tree may have them.
fn holds_something(directory: &RepoPath, listing: &Listing) -> bool {
    // The least name that there is.
    let Ok(least) = RepoPath::new([directory.as_bytes(), b"/\x01"].concat()) else { return false };
    let within = &least.as_bytes()[..directory.as_bytes().len() + 1];
    listing.entries.range(least.clone()..).next().is_some_and(|(path, _)| path.as_bytes().starts_with(within))
}

/// Whether some file system takes the name for git's own directory.
fn names_git(name: &[u8]) -> bool {
    let refusal = RepoPath::new(name).map(WritablePath::check);
    matches!(refusal, Ok(Err(refusal)) if refusal.rule == Rule::GitDirectory)
}

/// Names of which none is special anywhere.
fn is_common(name: &[u8]) -> bool {
    let starts_like_git = name.len() > 3 && name[..4].eq_ignore_ascii_case(b".git");
    !starts_like_git && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-+@ ".contains(byte))
}

/// Whether attributes may make a checkout convert something, as long as it doesn't write CRLF everywhere.
fn mentions_conversion(attributes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(attributes);
    ["eol=crlf", "ident", "working-tree-encoding"].iter().any(|word| text.contains(word))
}

fn setting(settings: &Settings, key: &str) -> String {
    settings.get(key).unwrap_or_default().to_ascii_lowercase()
}
