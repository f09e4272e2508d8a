//! Files of the job's tree that a harness reads and writes through us; in the checkout it reads only.
//!
//! The harness works in the same tree meanwhile, so what a name leads to can change between two looks: every step goes
//! from a directory's descriptor to the next and follows no link, only regular files are opened, and nothing waits: a
//! file system that the job mounted in its tree, which may never answer, is not entered. What may be asked for at all
//! was decided before ([`pactify_core::harness::FileRequest`] holds a path below the tree).

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use pactify_core::RepoPath;
use pactify_core::harness::{FileAction, FileAnswer, FileRequest};
use pactify_core::job::access::Access;
use pactify_core::job::event::{CheckoutRecord, TreeRecord};
use pactify_core::job::state::JobState;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::disk::{DIRECTORY, SAFE, ensure_on_same, open_on_same};
use crate::git::capture;

/// The longest file that is handed over, in bytes: an agent gets it on one line.
const MAX: u64 = 8 << 20;

/// Where a file is put together before it takes its place.
const FRESH: &str = ".pactify-write";

/// What the files are below: the very directory that was recorded.
#[derive(Clone, Copy)]
pub(super) enum Root<'a> {
    Tree(&'a TreeRecord),
    Checkout(&'a CheckoutRecord),
}

impl<'a> Root<'a> {
    /// That of the running attempt.
    pub(super) fn of(state: &'a JobState) -> Option<Self> {
        let checkout = state.guarded.as_ref().map(|guarded| Self::Checkout(&guarded.checkout));
        checkout.or_else(|| state.tree.as_ref().map(Self::Tree))
    }

    fn open(self) -> Result<OwnedFd, Refused> {
        let checkout = match self {
            Self::Tree(tree) => return capture::open_recorded(tree).map_err(|_| Refused::Tree),
            Self::Checkout(checkout) => checkout,
        };
        let opened = rustix::fs::open(checkout.path.as_path(), DIRECTORY, Mode::empty()).map_err(|_| Refused::Tree)?;
        let stat = fstat(&opened)?;
        if (stat.st_dev, stat.st_ino) == (checkout.device, checkout.inode) { Ok(opened) } else { Err(Refused::Tree) }
    }
}

/// Why a file is not handed over, or not written.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("there is no such file")]
    Missing,
    #[error("the job is read-only")]
    ReadOnly,
    #[error("the job's tree is not where it was")]
    Tree,
    #[error("a link, a mount, or something that is no regular file, is at the path or on the way to it")]
    NotRegular,
    #[error("it has more than {MAX} bytes")]
    TooLarge,
    #[error("it is not UTF-8")]
    NotText,
    #[error("{0}")]
    System(Errno),
    #[error("{0}")]
    Io(std::io::Error),
}

/// Does what `request` asks for, in the tree of a job of this mode.
pub(super) fn serve(root: Option<Root<'_>>, access: Access, request: &FileRequest) -> FileAnswer {
    let done = match &request.action {
        FileAction::Read => read(root, &request.path).map(FileAnswer::Contents),
        FileAction::Write(_) if access == Access::ReadOnly => Err(Refused::ReadOnly),
        FileAction::Write(text) => match root {
            Some(Root::Checkout(_)) => Err(Refused::ReadOnly),
            Some(Root::Tree(_)) | None => write(root, &request.path, text).map(|()| FileAnswer::Written),
        },
    };
    match done {
        Ok(answer) => answer,
        Err(Refused::Missing) => FileAnswer::Missing,
        Err(refused) => FileAnswer::Refused(refused.to_string()),
    }
}

fn read(root: Option<Root<'_>>, path: &RepoPath) -> Result<String, Refused> {
    let directory = directory_of(root, path, false)?;
    let name = path.file_name();
    let fd = step(&directory, name, OFlags::RDONLY | SAFE)?;
    let stat = fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refused::NotRegular);
    }
    let mut bytes = Vec::new();
    File::from(fd).take(MAX + 1).read_to_end(&mut bytes).map_err(Refused::Io)?;
    if bytes.len() as u64 > MAX {
        return Err(Refused::TooLarge);
    }
    String::from_utf8(bytes).map_err(|_| Refused::NotText)
}

/// Puts a new file into the place of whatever regular file is there: a hard link of it elsewhere keeps its content.
fn write(root: Option<Root<'_>>, path: &RepoPath, text: &str) -> Result<(), Refused> {
    if text.len() as u64 > MAX {
        return Err(Refused::TooLarge);
    }
    let directory = directory_of(root, path, true)?;
    let name = path.file_name();
    let mode = match step(&directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC) {
        Ok(old) => {
            let stat = fstat(&old)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                return Err(Refused::NotRegular);
            }
            Some(Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO))
        }
        Err(Refused::Missing) => None,
        Err(refused) => return Err(refused),
    };
    match unlinkat(&directory, FRESH, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | SAFE;
    let fresh = openat(&directory, FRESH, flags, Mode::from_raw_mode(0o644))?;
    let placed = mode
        .map_or(Ok(()), |mode| fchmod(&fresh, mode))
        .map_err(Refused::from)
        .and_then(|()| File::from(fresh).write_all(text.as_bytes()).map_err(Refused::Io))
        .and_then(|()| Ok(renameat(&directory, FRESH, &directory, name)?));
    if placed.is_err() {
        let _ = unlinkat(&directory, FRESH, AtFlags::empty());
    }
    placed
}

/// The directory that a path is directly below, component by component from the recorded root.
fn directory_of(root: Option<Root<'_>>, path: &RepoPath, make: bool) -> Result<OwnedFd, Refused> {
    let mut directory = root.ok_or(Refused::Tree)?.open()?;
    let mut parts: Vec<&[u8]> = path.components().collect();
    parts.pop();
    for part in parts {
        directory = if make {
            ensure_on_same(&directory, part, Mode::from_raw_mode(0o755)).map_err(refused)?
        } else {
            step(&directory, part, DIRECTORY)?
        };
    }
    Ok(directory)
}

/// Opens what is directly below, on the same file system.
fn step(directory: &OwnedFd, name: &[u8], flags: OFlags) -> Result<OwnedFd, Refused> {
    open_on_same(directory, name, flags, Mode::empty()).map_err(refused)
}

fn refused(errno: Errno) -> Refused {
    match errno {
        // What an open of a link, a mount point, a socket or a device without a driver says.
        Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::NXIO | Errno::NODEV => Refused::NotRegular,
        errno => errno.into(),
    }
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        if errno == Errno::NOENT { Self::Missing } else { Self::System(errno) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::path::PathBuf;

    use pactify_core::AbsPath;
    use pactify_core::job::Isolation;

    use super::*;

    struct Stage {
        tree: TreeRecord,
        root: tempfile::TempDir,
    }

    impl Stage {
        /// A tree with a file, and beside it what nobody in there may reach.
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().canonicalize().unwrap().join("tree");
            fs::create_dir_all(path.join("src")).unwrap();
            fs::write(path.join("src/a.txt"), "a\n").unwrap();
            fs::create_dir(root.path().join("outside")).unwrap();
            fs::write(root.path().join("outside/secret"), "secret").unwrap();
            let stat = fs::metadata(&path).unwrap();
            let tree = TreeRecord {
                path: AbsPath::new(path).unwrap(),
                device: stat.dev(),
                inode: stat.ino(),
                isolation: Isolation::Private,
            };
            Self { tree, root }
        }

        fn at(&self, below: &str) -> PathBuf {
            self.tree.path.as_path().join(below)
        }

        fn ask(&self, path: &str, action: FileAction, access: Access) -> FileAnswer {
            let path = RepoPath::new(path).unwrap();
            serve(Some(Root::Tree(&self.tree)), access, &FileRequest { id: 1, path, action })
        }

        fn read(&self, path: &str) -> FileAnswer {
            self.ask(path, FileAction::Read, Access::ReadOnly)
        }

        fn write(&self, path: &str, text: &str) -> FileAnswer {
            self.ask(path, FileAction::Write(text.to_owned()), Access::Write)
        }
    }

    fn is_refused(answer: &FileAnswer) -> bool {
        matches!(answer, FileAnswer::Refused(_))
    }

    #[test]
    fn files_of_the_tree_are_read_and_written() {
        let stage = Stage::new();
        assert_eq!(stage.read("src/a.txt"), FileAnswer::Contents("a\n".to_owned()));
        assert_eq!(stage.read("src/b.txt"), FileAnswer::Missing);
        assert_eq!(stage.read("none/b.txt"), FileAnswer::Missing);
        assert_eq!(stage.write("src/new/deep/b.txt", "b\n"), FileAnswer::Written);
        assert_eq!(fs::read_to_string(stage.at("src/new/deep/b.txt")).unwrap(), "b\n");
        fs::set_permissions(stage.at("src/a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(stage.write("src/a.txt", "c\n"), FileAnswer::Written);
        assert_eq!(fs::read_to_string(stage.at("src/a.txt")).unwrap(), "c\n");
        assert_eq!(fs::metadata(stage.at("src/a.txt")).unwrap().mode() & 0o777, 0o755, "it stays executable");
        let names: Vec<_> = fs::read_dir(stage.at("src")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn a_read_only_job_writes_nothing() {
        let stage = Stage::new();
        let write = FileAction::Write("x".to_owned());
        assert!(is_refused(&stage.ask("src/a.txt", write, Access::ReadOnly)));
        assert_eq!(fs::read_to_string(stage.at("src/a.txt")).unwrap(), "a\n");
    }

    #[test]
    fn no_link_leads_out() {
        let stage = Stage::new();
        let outside = stage.root.path().join("outside");
        symlink(outside.join("secret"), stage.at("link")).unwrap();
        symlink(&outside, stage.at("folder")).unwrap();
        symlink("../../outside", stage.at("src/relative")).unwrap();
        symlink("a.txt", stage.at("src/inside")).unwrap();
        fs::hard_link(outside.join("secret"), stage.at("hard")).unwrap();
        // The links work: anybody who followed them would be outside.
        for path in ["link", "folder/secret", "src/relative/secret"] {
            assert_eq!(fs::read_to_string(stage.at(path)).unwrap(), "secret");
            assert!(is_refused(&stage.read(path)), "{path}");
            assert!(is_refused(&stage.write(path, "x")), "{path}");
        }
        assert!(is_refused(&stage.write("folder/new", "x")));
        assert!(is_refused(&stage.write("src/inside", "x")), "not even within the tree");
        assert_eq!(stage.write("hard", "x"), FileAnswer::Written, "the name gets a file of its own");
        assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "secret");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_text_file_is_refused_at_once() {
        let stage = Stage::new();
        let fifo = rustix::fs::mknodat(rustix::fs::CWD, stage.at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
        fifo.unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(stage.at("socket")).unwrap();
        fs::write(stage.at("bytes"), b"\xff\xfe").unwrap();
        fs::File::create(stage.at("huge")).unwrap().set_len(MAX + 1).unwrap();
        for path in ["fifo", "socket", "bytes", "huge", "src"] {
            assert!(is_refused(&stage.read(path)), "{path}");
        }
        for path in ["fifo", "socket", "src", "src/a.txt/below"] {
            assert!(is_refused(&stage.write(path, "x")), "{path}");
        }
    }

    #[test]
    fn a_tree_that_was_replaced_is_no_tree() {
        let stage = Stage::new();
        fs::rename(stage.tree.path.as_path(), stage.root.path().join("moved")).unwrap();
        symlink(stage.root.path().join("outside"), stage.tree.path.as_path()).unwrap();
        assert!(is_refused(&stage.read("secret")));
        assert!(is_refused(&stage.write("secret", "x")));
    }
}
