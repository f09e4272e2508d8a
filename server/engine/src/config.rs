//! Reading the person's configuration file. What it means is [`pactify_core::config`].

use std::io::Read as _;

use pactify_core::config::Settings;
use pactify_core::{Failure, FailureCode};

use crate::env::Env;

/// The longest configuration file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The settings in force: the file's, or the defaults where there is no file.
pub fn load(env: &Env) -> Result<Settings, Failure> {
    let path = env.directories().config_file();
    let unreadable = |error: std::io::Error| {
        let next = "make it a readable file, or remove it to use the defaults";
        Failure::new(FailureCode::InvalidConfig, format!("cannot read {path}: {error}"), next)
    };
    // The file is the person's own, so links are followed; a pipe in its place must not block.
    let file = rustix::fs::open(
        path.as_path(),
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    );
    let file = match file {
        Ok(file) => std::fs::File::from(file),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(Settings::default()),
        Err(error) => return Err(unreadable(error.into())),
    };
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(std::io::Error::other("it is not a regular file")));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(unreadable(std::io::Error::other("it is over 1 MiB")));
    }
    let parsed = Settings::parse(&text).map(|settings| settings.speaking(locale(env)));
    parsed.map_err(|mut failure| {
        failure.message = format!("{path}: {}", failure.message);
        failure
    })
}

/// The person's locale for messages, by the variables and in the order of POSIX.
fn locale(env: &Env) -> &str {
    let set = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(|name| env.variable(name));
    set.and_then(|locale| locale.to_str()).unwrap_or_default()
}
