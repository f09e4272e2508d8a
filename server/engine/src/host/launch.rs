//! Carrying out a launch plan: files, links, checks, then the process.
//!
//! The job's home and temporary directory belong to the job from its first attempt on, so a later attempt finds there
//! what the job put there: every step goes through a directory descriptor and follows no link.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use pactify_core::harness::{Harness, Launch, LinkKind, PlannedFile, PlannedLink, Preflight, Request, toolchains};
use pactify_core::job::access::Access;
use pactify_core::job::event::ExitRecord;
use pactify_core::{AbsPath, Failure, FailureCode, display};
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, symlinkat, unlinkat};

use super::turn::Workplace;
use crate::causes::with_causes;
use crate::disk::{DIRECTORY, ensure_on_same, open_on_same};
use crate::env::Env;
use crate::process::run::{Overflow, RunError};
use crate::process::{ChildEnv, EnvPolicy, Invocation, Limits, Marker};

/// Why a launch could not be prepared.
#[derive(Debug, thiserror::Error)]
pub(super) enum LaunchError {
    /// A file of the plan was not written.
    #[error("cannot write {path}")]
    Write {
        /// Which.
        path: AbsPath,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A login cannot be refreshed where it is, and a refresh would be lost.
    #[error("the login {target} cannot be written: a refreshed login would be lost")]
    LoginNotWritable {
        /// The login.
        target: AbsPath,
    },
    /// A check before the launch failed; what that means is the harness's to say.
    #[error("a check before the launch failed")]
    Preflight {
        /// Which.
        check: Box<Preflight>,
        /// How it ended; `None` when it took too long.
        exit: Option<ExitRecord>,
        /// The end of all that it printed.
        output: String,
    },
}

/// Writes files and links, then runs the checks; the failed ones that need not pass. Blocks, for as long as each check
/// may take.
pub(super) fn prepare(
    launch: &Launch,
    roots: &[&AbsPath],
    environment: &ChildEnv,
) -> Result<Vec<LaunchError>, LaunchError> {
    for file in &launch.files {
        write(file, roots).map_err(|source| LaunchError::Write { path: file.path.clone(), source })?;
    }
    for link in &launch.links {
        make_link(link, roots)?;
    }
    check(launch, environment)
}

fn check(launch: &Launch, environment: &ChildEnv) -> Result<Vec<LaunchError>, LaunchError> {
    let mut told = Vec::new();
    for check in &launch.preflight {
        match preflight(launch, check, environment) {
            Err(error) if check.must_pass => return Err(error),
            result => told.extend(result.err()),
        }
    }
    Ok(told)
}

/// What the checks of a plan say that need not pass, in a home made for nothing else.
pub(crate) fn advice(
    env: &Env,
    harness: &dyn Harness,
    request: &Request<'_>,
    launch: Launch,
) -> Result<Option<Failure>, Failure> {
    if launch.preflight.iter().all(|check| check.must_pass) {
        return Ok(None);
    }
    let roots = [&request.places.home, &request.places.tmp];
    let mut environment = EnvPolicy::harness(&launch.keep_env).filter(env.variables());
    for (name, value) in &launch.env {
        environment.set(name, value);
    }
    let preflight = launch.preflight.into_iter().filter(|check| !check.must_pass).collect();
    // Nothing of it is anybody's to keep, should this process be killed. What is shorter is no key, and may be a word.
    let secrets: Vec<String> = harness.secrets(request).into_iter().filter(|secret| secret.len() >= 8).collect();
    let without = |text: String| secrets.iter().fold(text, |text, secret| text.replace(secret, "left-out"));
    let files = launch.files.into_iter().map(|file| PlannedFile { contents: without(file.contents), ..file }).collect();
    let launch = Launch { files, links: Vec::new(), preflight, ..launch };
    let told = prepare(&launch, &roots, &environment).map_err(|error| error.into_failure(harness, request))?;
    Ok(told.into_iter().next().map(|error| error.into_failure(harness, request)))
}

/// The environment of the harness: the person's without what is none of its business, the plan's on top, our mark last.
/// Looks at the disk.
pub(super) fn environment(
    env: &Env,
    launch: &Launch,
    marker: &Marker,
    workplace: &Workplace,
    access: Access,
) -> ChildEnv {
    let mut environment = EnvPolicy::harness(&launch.keep_env).filter(env.variables());
    if access == Access::Write && launch.hides_home() {
        for (name, place) in toolchains(env) {
            environment.set(name, place.as_path().as_os_str());
        }
    }
    for (name, value) in &launch.env {
        environment.set(name, value);
    }
    if let Some(job) = launch.cwd.as_path().parent() {
        // A tree that loses its `.git` file must not become part of a repository around the store (bug report 25).
        environment.set("GIT_CEILING_DIRECTORIES", job.as_os_str());
    }
    if let Workplace::Checkout(_) = workplace {
        // A `git status` must not refresh the index of the person's checkout.
        environment.set("GIT_OPTIONAL_LOCKS", "0");
    }
    environment.mark(marker);
    environment
}

/// The person's toolchains that are there, and that no variable of theirs leads to.
fn toolchains(env: &Env) -> Vec<(&'static str, AbsPath)> {
    let data = env.variable("XDG_DATA_HOME").and_then(|path| AbsPath::new(path).ok());
    let mut found = toolchains::places(env.directories().home(), data.as_ref(), |name| env.variable(name).is_some());
    found.retain(|(_, place)| place.as_path().is_dir());
    found
}

/// The plan, with the keys of model vendors that are the harness's to log in with let through.
pub(super) fn with_vendor_keys(mut launch: Launch, harness: &dyn Harness) -> Launch {
    for &name in harness.about().vendor_keys.names() {
        if launch.keep_env.iter().all(|kept| kept != name) {
            launch.keep_env.push(name.to_owned());
        }
    }
    launch
}

/// The process that the plan describes.
pub(super) fn invocation(launch: &Launch, environment: ChildEnv) -> Invocation {
    Invocation::new(launch.executable.clone(), launch.cwd.clone(), environment).args(&launch.args)
}

fn write(file: &PlannedFile, roots: &[&AbsPath]) -> io::Result<()> {
    let (directory, name) = directory_of(&file.path, roots)?;
    let temporary = temporary(&name);
    let _ = unlinkat(&directory, &temporary, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(&directory, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
    let written = io::Write::write_all(&mut std::fs::File::from(fd), file.contents.as_bytes())
        .and_then(|()| Ok(renameat(&directory, &temporary, &directory, &name)?));
    // It may hold keys.
    written.inspect_err(|_| {
        let _ = unlinkat(&directory, &temporary, AtFlags::empty());
    })
}

/// What a file is called until it is complete.
pub(super) fn temporary(name: &str) -> String {
    format!(".{name}.new")
}

fn make_link(link: &PlannedLink, roots: &[&AbsPath]) -> Result<(), LaunchError> {
    let failed = |source| LaunchError::Write { path: link.at.clone(), source };
    let target = link.target.as_path();
    if link.kind == LinkKind::Shared && target.parent().is_some_and(Path::is_dir) {
        match std::fs::DirBuilder::new().mode(0o700).create(target) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
    }
    if std::fs::metadata(target).is_err() {
        return Ok(());
    }
    if !can_be_refreshed(target, link.kind) {
        return Err(LaunchError::LoginNotWritable { target: link.target.clone() });
    }
    let (directory, name) = directory_of(&link.at, roots).map_err(failed)?;
    let _ = unlinkat(&directory, &name, AtFlags::empty());
    symlinkat(target, &directory, &name).map_err(|error| failed(error.into()))
}

/// Whether the harness can refresh what is there, in its own way.
pub(crate) fn can_be_refreshed(target: &Path, kind: LinkKind) -> bool {
    let Ok(resolved) = target.canonicalize() else { return false };
    let is = |kind: fn(&std::fs::FileType) -> bool| resolved.metadata().is_ok_and(|found| kind(&found.file_type()));
    let writable = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    writable(&resolved)
        && match kind {
            LinkKind::WrittenFile => is(std::fs::FileType::is_file),
            LinkKind::ReplacedFile => is(std::fs::FileType::is_file) && resolved.parent().is_some_and(writable),
            LinkKind::Directory | LinkKind::Shared => is(std::fs::FileType::is_dir),
        }
}

/// Opens the directory of a planned path, component by component from its root, following nothing and entering no
/// mount.
fn directory_of(path: &AbsPath, roots: &[&AbsPath]) -> io::Result<(OwnedFd, String)> {
    let outside = || io::Error::other("the plan writes outside the job's own directories");
    let (root, below) = roots
        .iter()
        .find_map(|root| Some((*root, path.as_path().strip_prefix(root.as_path()).ok()?)))
        .ok_or_else(outside)?;
    let name = below.file_name().and_then(|name| name.to_str()).ok_or_else(outside)?;
    let (parent, own) = root.as_path().parent().zip(root.as_path().file_name()).ok_or_else(outside)?;
    let parent = openat(rustix::fs::CWD, parent, DIRECTORY, Mode::empty())?;
    let mut directory = open_on_same(&parent, own, DIRECTORY, Mode::empty())?;
    for part in below.parent().into_iter().flat_map(Path::components) {
        directory = ensure_on_same(&directory, part.as_os_str(), Mode::RWXU)?;
    }
    Ok((directory, name.to_owned()))
}

fn preflight(launch: &Launch, check: &Preflight, environment: &ChildEnv) -> Result<(), LaunchError> {
    let invocation = Invocation::new(launch.executable.clone(), launch.cwd.clone(), environment.clone());
    let limits = Limits { deadline: check.limit, bytes: 64 * 1024, overflow: Overflow::Cut };
    let (exit, output) = match invocation.args(&check.args).run(&[], &limits) {
        Ok(output) if output.success() => return Ok(()),
        Ok(output) => {
            let said = [output.stdout.bytes, output.stderr.bytes].concat();
            (Some(exit_record(output.status)), String::from_utf8_lossy(&said).into_owned())
        }
        Err(RunError::Deadline { stderr, .. }) => (None, String::from_utf8_lossy(&stderr).into_owned()),
        Err(error) => (None, with_causes(&error)),
    };
    let output = display::neutral_block(display::tail(output.trim(), 2_000)).into_owned();
    Err(LaunchError::Preflight { check: Box::new(check.clone()), exit, output })
}

/// How a process ended, for the record.
pub(super) fn exit_record(status: ExitStatus) -> ExitRecord {
    match status.code() {
        Some(code) => ExitRecord::Code(code),
        None => ExitRecord::Signal(status.signal().unwrap_or_default()),
    }
}

impl LaunchError {
    /// As it is told to people.
    pub(super) fn into_failure(self, harness: &dyn Harness, request: &Request<'_>) -> Failure {
        let message = self.to_string();
        match self {
            Self::Preflight { check, exit, output } => harness.preflight_failure(request, &check, exit, &output),
            Self::Write { source, .. } => Failure::new(
                FailureCode::LaunchFailed,
                format!("{message}: {source}"),
                "check the disk and the permissions of PACTIFY_HOME, then retry",
            ),
            Self::LoginNotWritable { target } => Failure::new(
                FailureCode::LoginRequired,
                message,
                format!("make {target} and its directory writable for you, then retry"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use pactify_core::harness::Stdin;
    use pactify_core::job::event::CheckoutRecord;

    use super::*;
    use crate::env::Directories;
    use crate::store::fixture::{self, folder};

    #[test]
    fn planned_files_never_follow_what_a_job_left() {
        let (_victim_guard, victim) = folder();
        let (_guard, home) = folder();
        std::fs::write(victim.join("precious").as_path(), "precious").unwrap();
        std::os::unix::fs::symlink(victim.join("precious").as_path(), home.join("config.toml").as_path()).unwrap();
        std::os::unix::fs::symlink(victim.as_path(), home.join("sub").as_path()).unwrap();

        let file = |path: AbsPath| PlannedFile { path, contents: "planned".to_owned() };
        write(&file(home.join("config.toml")), &[&home]).unwrap();
        assert_eq!(std::fs::read_to_string(home.join("config.toml").as_path()).unwrap(), "planned");
        assert!(!home.join("config.toml").as_path().is_symlink());
        assert!(write(&file(home.join("sub").join("x")), &[&home]).is_err(), "a linked directory is refused");
        assert!(write(&file(victim.join("x")), &[&home]).is_err(), "a place outside the roots is refused");
        assert_eq!(std::fs::read_to_string(victim.join("precious").as_path()).unwrap(), "precious");
        assert_eq!(std::fs::read_dir(victim.as_path()).unwrap().count(), 1);
    }

    #[test]
    fn only_commands_that_see_another_home_are_led_to_toolchains() {
        let (_guard, home) = folder();
        std::fs::create_dir(home.join(".rustup").as_path()).unwrap();
        let env = Env::from_values([].into(), Directories::under(&home));
        let led = |access, own_home: bool| {
            let env_of_plan = own_home.then(|| ("HOME".to_owned(), "/job/home".to_owned()));
            let launch = Launch {
                executable: home.join("agent"),
                args: Vec::new(),
                cwd: home.clone(),
                env: env_of_plan.into_iter().collect(),
                keep_env: Vec::new(),
                files: Vec::new(),
                links: Vec::new(),
                stdin: Stdin::Null,
                preflight: Vec::new(),
                leftovers: Vec::new(),
            };
            let checkout = CheckoutRecord { path: home.clone(), device: 0, inode: 0 };
            let marker = Marker::of(&"20261129-154512-abcdef".parse().unwrap());
            let environment = environment(&env, &launch, &marker, &Workplace::Checkout(checkout), access);
            let names = environment.variables().keys().map(|name| name.to_string_lossy().into_owned());
            names.filter(|name| name.ends_with("_HOME") || name == "GOMODCACHE").collect::<Vec<_>>()
        };
        assert_eq!(led(Access::Write, true), ["RUSTUP_HOME"], "what is there, and nothing else");
        assert_eq!(led(Access::Write, false), [""; 0]);
        assert_eq!(led(Access::ReadOnly, true), [""; 0]);
    }

    #[test]
    fn a_missing_login_is_no_link() {
        let (_login_guard, login) = folder();
        let (_guard, home) = folder();
        let kind = LinkKind::ReplacedFile;
        let link = PlannedLink { at: home.join("auth.json"), target: login.join("auth.json"), kind };
        make_link(&link, &[&home]).unwrap();
        assert!(!home.join("auth.json").as_path().is_symlink());
        std::fs::write(login.join("auth.json").as_path(), "{}").unwrap();
        make_link(&link, &[&home]).unwrap();
        make_link(&link, &[&home]).unwrap();
        assert_eq!(std::fs::read_link(home.join("auth.json").as_path()).unwrap(), login.join("auth.json").as_path());
    }

    /// Modes stop nobody where tests are run by root: what cannot be written is mounted so.
    #[test]
    fn a_login_that_could_not_be_refreshed_is_refused() {
        const NAME: &str = "host::launch::tests::a_login_that_could_not_be_refreshed_is_refused";
        if let Some(given) = fixture::given_home() {
            return among_locked_logins(&AbsPath::new(given.canonicalize().unwrap()).unwrap());
        }
        let (guard, home) = folder();
        std::fs::create_dir(home.join("home").as_path()).unwrap();
        for folder in ["free", "locked", "held"] {
            std::fs::create_dir(home.join(folder).as_path()).unwrap();
            std::fs::write(home.join(folder).join("auth.json").as_path(), "{}").unwrap();
        }
        // Of the one nothing can be written, of the other the file alone.
        let mounts = "mount --bind \"$HERE/locked\" \"$HERE/locked\" && mount --bind \"$HERE/held\" \"$HERE/held\" && \
            mount --bind \"$HERE/free/auth.json\" \"$HERE/held/auth.json\" && \
            mount -o remount,bind,ro \"$HERE/locked\" && mount -o remount,bind,ro \"$HERE/held\"";
        fixture::among_mounts(NAME, guard.path(), mounts);
    }

    fn among_locked_logins(given: &AbsPath) {
        use LinkKind::{Directory, ReplacedFile, Shared, WrittenFile};
        let home = given.join("home");
        assert!(std::fs::write(given.join("locked").join("auth.json").as_path(), "").is_err(), "this proves nothing");
        for (kind, folder, is_linked) in [
            (ReplacedFile, "free", true),
            (ReplacedFile, "held", false),
            (ReplacedFile, "locked", false),
            (WrittenFile, "free", true),
            (WrittenFile, "held", true),
            (WrittenFile, "locked", false),
            (Directory, "free", true),
            (Directory, "locked", false),
            (Shared, "free", true),
            (Shared, "locked", false),
        ] {
            let is_file = matches!(kind, ReplacedFile | WrittenFile);
            let target = if is_file { given.join(folder).join("auth.json") } else { given.join(folder) };
            let at = home.join(&format!("{folder}-{kind:?}"));
            match make_link(&PlannedLink { at: at.clone(), target: target.clone(), kind }, &[&home]) {
                Ok(()) => assert!(is_linked, "{kind:?} {folder}"),
                Err(LaunchError::LoginNotWritable { target: named }) => {
                    assert_eq!((is_linked, named), (false, target), "{kind:?} {folder}");
                }
                Err(other) => panic!("{kind:?} {folder}: {other:?}"),
            }
            assert_eq!(at.as_path().is_symlink(), is_linked, "{kind:?} {folder}");
        }
    }

    #[test]
    fn a_folder_of_locks_is_made_where_the_harness_has_a_home_and_only_what_was_planned_is_linked() {
        let (_login_guard, login) = folder();
        let (_guard, home) = folder();
        let make = |at: &str, target: AbsPath, kind| {
            make_link(&PlannedLink { at: home.join(at), target, kind }, &[&home]).is_ok()
        };
        let made = |at: &str| std::fs::read_link(home.join(at).as_path()).is_ok();
        assert!(
            make("oauth", login.join("none").join("oauth"), LinkKind::Shared) && !made("oauth"),
            "no home, no locks"
        );
        assert!(make("oauth", login.join("oauth"), LinkKind::Shared) && made("oauth"));
        assert!(make("oauth", login.join("oauth"), LinkKind::Shared), "they are there already");
        let mode = std::fs::metadata(login.join("oauth").as_path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);

        std::fs::write(login.join("file").as_path(), "{}").unwrap();
        for (target, kind) in [
            ("oauth", LinkKind::WrittenFile),
            ("oauth", LinkKind::ReplacedFile),
            ("file", LinkKind::Directory),
            ("file", LinkKind::Shared),
        ] {
            assert!(!make("odd", login.join(target), kind) && !made("odd"), "{target} is no {kind:?}");
        }
    }
}
