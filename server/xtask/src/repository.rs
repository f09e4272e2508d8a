//! This repository: where it is, and what text it holds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::run::{command, output};

/// For git to list the files.
const LIST: Duration = Duration::from_secs(60);

/// The text of a repository: what git tracks, or would if it was added.
pub(crate) struct Tree {
    /// Every file, in the order of its path.
    pub(crate) files: Vec<SourceFile>,
    /// Every path, with the folders above.
    paths: BTreeSet<String>,
}

/// One file of it.
pub(crate) struct SourceFile {
    /// Relative to the root, with slashes.
    pub(crate) path: String,
    /// Its content; empty if that is not text.
    pub(crate) text: String,
}

/// The folder that the clone is in.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// Where cargo builds this clone. Clones don't share one: tests take the product's programs from it.
pub(crate) fn target() -> PathBuf {
    root().join("target")
}

impl Tree {
    /// Reads the repository whose root this is.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut git = command("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
        let listed = output(git, LIST)?;
        // Listed but not there: removed, and not committed yet. Links are their own text, not what they lead to.
        let is_file = |path: &&str| root.join(path).symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        let paths = listed.split('\0').filter(|path| !path.is_empty());
        let files = paths.filter(is_file).map(|path| {
            let bytes = fs::read(root.join(path))?;
            let text = if bytes.contains(&0) { String::new() } else { String::from_utf8(bytes).unwrap_or_default() };
            Ok((path.to_owned(), text))
        });
        Ok(Self::of(files.collect::<std::io::Result<Vec<_>>>()?))
    }

    /// A tree of these paths and texts.
    pub(crate) fn of(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let files: Vec<SourceFile> = files.into_iter().map(|(path, text)| SourceFile { path, text }).collect();
        let above = |file: &SourceFile| Path::new(&file.path).ancestors().map(shown).collect::<Vec<_>>();
        let paths = files.iter().flat_map(above).collect();
        Self { files, paths }
    }

    /// Is there a file or a folder at this path?
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// The file at this path.
    pub(crate) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files below `folder` whose names end in `ending`.
    pub(crate) fn below<'a>(&'a self, folder: &'a str, ending: &'a str) -> impl Iterator<Item = &'a SourceFile> {
        self.files.iter().filter(move |file| file.path.starts_with(folder) && file.path.ends_with(ending))
    }

    /// The Rust sources that people wrote.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.below("", ".rs").filter(|file| !file.path.contains("/fixtures/"))
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
