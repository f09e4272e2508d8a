//! An index as git writes it (version 2), of files that were just made, with the tree that they come from.
//!
//! git's `index-format.adoc` is the description. Each entry holds its file's `stat`, so that git need not read the file
//! to know that it is unchanged; the `TREE` extension spares git from comparing the index with HEAD's tree.

use std::collections::{BTreeMap, HashMap};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use pactify_core::change::EntryMode;
use pactify_core::{AbsPath, ObjectId, RepoPath};
use rustix::fs::Stat;
use sha1::Digest as _;

use crate::git::error::GitError;
use crate::git::listing::{Listed, Listing};
use crate::git::objects::oid;

/// The longest name whose length an entry tells.
const LONGEST: usize = 0xFFF;

/// Writes the index of `entries`, which are `listing`'s, of the tree `base`. One without a `stat` is yet to be made.
/// Nothing may be at `path` yet.
pub(super) fn write(
    path: &AbsPath,
    base: &ObjectId,
    listing: &Listing,
    entries: &[(&RepoPath, &Listed)],
    stats: &[Option<Stat>],
) -> Result<(), GitError> {
    let failed = || GitError::objects("write the index", path.as_path());
    let mut bytes = b"DIRC\0\0\0\x02".to_vec();
    put(&mut bytes, entries.len() as u64);
    for ((name, entry), stat) in entries.iter().zip(stats) {
        put_entry(&mut bytes, name, entry, stat.as_ref()).map_err(failed())?;
    }
    let mut tree = Vec::new();
    Trees::of(listing).put(&mut tree, None, base).map_err(failed())?;
    bytes.extend(b"TREE");
    put(&mut bytes, tree.len() as u64);
    bytes.extend(tree);
    let digest = sha1::Sha1::digest(&bytes);
    bytes.extend(digest);
    let failed = GitError::io("write", path.as_path());
    // git's own bits, which the person's umask narrows.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o666).open(path);
    file.and_then(|mut file| file.write_all(&bytes)).map_err(failed)
}

/// The low 32 bits, which is all that an index has room for.
fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend(((number & 0xFFFF_FFFF) as u32).to_be_bytes());
}

fn put_entry(bytes: &mut Vec<u8>, name: &RepoPath, entry: &Listed, stat: Option<&Stat>) -> Result<(), git2::Error> {
    let begin = bytes.len();
    let mode = match entry.mode {
        EntryMode::File => 0o100_644,
        EntryMode::Executable => 0o100_755,
        EntryMode::Symlink => 0o120_000,
        EntryMode::Gitlink => 0o160_000,
    };
    let facts = stat.map_or([0; 10], |stat| {
        // A negative time keeps its low bits, as in git.
        let seconds = |seconds: i64| seconds.cast_unsigned();
        let size = if entry.mode == EntryMode::Gitlink { 0 } else { stat.st_size.cast_unsigned() };
        let (ids, times) = ([stat.st_uid, stat.st_gid], [stat.st_ctime_nsec, stat.st_mtime_nsec]);
        let [changed, modified] = [seconds(stat.st_ctime), seconds(stat.st_mtime)];
        [changed, times[0], modified, times[1], stat.st_dev, stat.st_ino, 0, ids[0].into(), ids[1].into(), size]
    });
    for (at, fact) in facts.into_iter().enumerate() {
        put(bytes, if at == 6 { mode } else { fact });
    }
    bytes.extend(oid(&entry.object)?.as_bytes());
    let name = name.as_bytes();
    bytes.extend((name.len().min(LONGEST) as u16).to_be_bytes());
    bytes.extend(name);
    // At least one NUL, up to a length that eight divides.
    let length = bytes.len() - begin;
    bytes.resize(begin + (length / 8 + 1) * 8, 0);
    Ok(())
}

/// The directories of a listing: how many entries are below each, and which directories are in it.
struct Trees<'a> {
    listing: &'a Listing,
    entries: HashMap<Option<RepoPath>, usize>,
    within: BTreeMap<Option<RepoPath>, Vec<&'a RepoPath>>,
}

impl<'a> Trees<'a> {
    fn of(listing: &'a Listing) -> Self {
        let mut entries = HashMap::new();
        let mut of_one: HashMap<&[u8], usize> = HashMap::new();
        for path in listing.entries.keys() {
            let bytes = path.as_bytes();
            let slash = bytes.iter().rposition(|byte| *byte == b'/');
            *of_one.entry(slash.map_or(b"", |slash| &bytes[..slash])).or_default() += 1;
        }
        for (directory, count) in of_one {
            let directory = RepoPath::new(directory).ok();
            for above in directory.iter().flat_map(RepoPath::ancestors).map(Some).chain([None]) {
                *entries.entry(above).or_default() += count;
            }
            if directory.is_some() {
                *entries.entry(directory).or_default() += count;
            }
        }
        let mut within: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for directory in listing.directories.keys() {
            within.entry(directory.parent()).or_default().push(directory);
        }
        Self { listing, entries, within }
    }

    /// `<name>\0<entries> <directories>\n<id>`, then the same of each directory in it.
    fn put(&self, bytes: &mut Vec<u8>, directory: Option<&RepoPath>, tree: &ObjectId) -> Result<(), git2::Error> {
        let key = directory.cloned();
        let below = self.within.get(&key).map_or(&[][..], Vec::as_slice);
        bytes.extend(directory.map_or(&b""[..], RepoPath::file_name));
        let entries = self.entries.get(&key).copied().unwrap_or_default();
        bytes.extend(format!("\0{entries} {}\n", below.len()).into_bytes());
        bytes.extend(oid(tree)?.as_bytes());
        for inner in below {
            if let Some(Some(tree)) = self.listing.directories.get(*inner) {
                self.put(bytes, Some(inner), tree)?;
            }
        }
        Ok(())
    }
}
