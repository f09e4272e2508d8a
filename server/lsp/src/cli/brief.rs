//! Where `pactify sub run` takes its brief from: a file, standard input, or the person's editor.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Read};
use std::path::{Path, PathBuf};

use pactify_core::brief::{Brief, MAX_BYTES};
use pactify_core::{Failure, FailureCode};
use pactify_engine::env::Env;

/// What the editor is opened on. Lines that begin with `<!--` are taken out.
const TEMPLATE: &str = "\n<!-- Say what you want done: the first line becomes the job's title. -->\n\
<!-- Save and close to start the job; leave it empty to call it off. -->\n";

/// The editor of a person who names none.
const DEFAULT_EDITOR: &str = "vi";
/// How a shell ends that does not find a program.
const NOT_FOUND: i32 = 127;

/// The brief: from `file` (`-` is standard input), else from standard input if something is piped in, else from an
/// editor.
pub(super) fn take(file: Option<&Path>, env: &Env) -> Result<Taken, Failure> {
    let mut written = None;
    let text = match file {
        Some(path) if path == Path::new("-") => read(io::stdin().lock(), "standard input")?,
        Some(path) => {
            let shown = path.display().to_string();
            let opened = std::fs::File::open(path);
            read(opened.map_err(|error| unusable(format!("the brief {shown} cannot be read: {error}")))?, &shown)?
        }
        None if !io::stdin().is_terminal() => read(io::stdin().lock(), "standard input")?,
        None => {
            let (text, file) = edit(env)?;
            written = Some(file);
            text
        }
    };
    match Brief::new(text.clone()) {
        Ok(brief) => Ok(Taken { text: brief.into(), written }),
        Err(error) => {
            let written = written.filter(|_| !text.trim().is_empty());
            Err(kept(written, Some(&text), unusable(error.to_string())))
        }
    }
}

/// The failure of what was written for, which stays, and is named.
fn kept(written: Option<PrivateFile>, text: Option<&str>, mut failure: Failure) -> Failure {
    if let Some(file) = written.map(|file| file.keep(text)) {
        failure.next = format!("{}; what you wrote is in {}, for `--brief`", failure.next, file.display());
    }
    failure
}

/// A brief that was taken.
pub(super) struct Taken {
    pub(super) text: String,
    /// The only place where there is what the person wrote just now.
    written: Option<PrivateFile>,
}

impl Taken {
    /// Gives the brief to whoever makes something of it. Where that is refused, what was written for it stays, and is
    /// named.
    pub(super) fn give<T>(self, to: impl FnOnce(String) -> Result<T, Failure>) -> Result<T, Failure> {
        let Self { text, written } = self;
        to(text.clone()).map_err(|failure| kept(written, Some(&text), failure))
    }
}

fn read(from: impl Read, shown: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unusable(format!("the brief from {shown} cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|_| unusable(format!("the brief from {shown} is not UTF-8")))
}

/// Opens `$VISUAL` or `$EDITOR` on a template. Like git, the variable is a command line for the shell.
#[expect(clippy::disallowed_methods, reason = "the person's editor takes the person's terminal and environment")]
fn edit(env: &Env) -> Result<(String, PrivateFile), Failure> {
    let named = ["VISUAL", "EDITOR"].into_iter().find_map(|name| env.variable(name));
    let is_dumb = env.variable("TERM").is_none_or(|terminal| terminal == "dumb");
    if named.is_none() && is_dumb {
        return Err(unusable("there is no brief, and this terminal cannot show an editor".to_owned()));
    }
    let editor = named.unwrap_or(OsStr::new(DEFAULT_EDITOR));
    let file = PrivateFile::new(env)?;
    std::fs::write(&file.0, TEMPLATE).map_err(|error| file.failed(&error))?;
    let script = [editor, OsStr::new(" \"$@\"")].join(OsStr::new(""));
    let status = std::process::Command::new("/bin/sh").arg("-c").arg(script).arg("editor").arg(&file.0).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) if status.code() == Some(NOT_FOUND) && named.is_none() => {
            let message =
                format!("there is no brief: VISUAL and EDITOR name no editor, and there is no {DEFAULT_EDITOR}");
            return Err(unusable(message));
        }
        Ok(status) => {
            let failure = unusable(format!("the editor {} ended with {status}", editor.display()));
            let is_written = std::fs::read(&file.0).is_ok_and(|text| text != TEMPLATE.as_bytes());
            return Err(kept(is_written.then_some(file), None, failure));
        }
        Err(error) => return Err(unusable(format!("the editor {} cannot be started: {error}", editor.display()))),
    }
    let opened = std::fs::File::open(&file.0).map_err(|error| file.failed(&error))?;
    match read(opened, "the editor") {
        Ok(text) => Ok((without_comments(&text), file)),
        Err(failure) => Err(kept(Some(file), None, failure)),
    }
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("<!--")).collect::<Vec<_>>().join("\n")
}

/// A file that only the person can read, gone when dropped unless it is kept.
struct PrivateFile(PathBuf);

impl PrivateFile {
    fn new(env: &Env) -> Result<Self, Failure> {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        let random = env.random::<8>().map_err(|error| Failure::internal(error.to_string()))?;
        let folder = env.directories().pactify_home().join("briefs");
        let path = folder.as_path().join(format!("{:016x}.brief.md", u64::from_ne_bytes(random)));
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.and_then(|()| std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path))
            .map(|_| Self(path.clone()))
            .map_err(|error| unusable(format!("{} cannot be made: {error}", path.display())))
    }

    /// Keeps it, with this text if there is one and it can be written, else as the editor left it.
    fn keep(mut self, text: Option<&str>) -> PathBuf {
        let path = std::mem::take(&mut self.0);
        if let Some(text) = text {
            let fresh = path.with_extension("new");
            if std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, &path)).is_err() {
                let _ = std::fs::remove_file(&fresh);
            }
        }
        path
    }

    fn failed(&self, error: &io::Error) -> Failure {
        unusable(format!("{} cannot be used: {error}", self.0.display()))
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // It may be gone already, or kept.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn unusable(message: String) -> Failure {
    Failure::new(
        FailureCode::InvalidParams,
        message,
        "pipe the task in, or name a file with `--brief`, or set EDITOR to write it there",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_alone_is_no_brief() {
        assert!(Brief::new(without_comments(TEMPLATE)).is_err());
        assert_eq!(without_comments("Fix it.\n<!-- x -->\n- [ ] one"), "Fix it.\n- [ ] one");
    }

    #[test]
    fn a_brief_is_bounded_and_utf8() {
        assert_eq!(read(&b"ok"[..], "x").unwrap(), "ok");
        assert!(read(&b"\xff"[..], "x").unwrap_err().message.contains("not UTF-8"));
        let endless = read(io::repeat(b'x'), "x").unwrap();
        assert_eq!(endless.len(), MAX_BYTES + 1);
    }
}
