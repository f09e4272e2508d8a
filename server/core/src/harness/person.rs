//! The person's own configuration of a harness, and what a job takes of it.
//!
//! pactify generates the configuration of a job. With `withUserConfig` the person's own goes below it: rendered into
//! the job's home, without what its access mode rests on, so that what a mode promises holds whatever the person's
//! files say. The files are the person's, and are only ever read.

use std::fmt;

use crate::AbsPath;

/// What it means to a harness, in one access mode, that a job is to have the person's own configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserConfig {
    /// The job takes it over, as far as the access mode lets it.
    Taken,
    /// It has it in any case.
    Always,
    /// It cannot, for this reason.
    Refused(&'static str),
}

/// Where a person keeps files of their configuration of a harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonFiles {
    /// The variable that names the directory.
    pub variable: &'static str,
    /// Below the person's home directory, where no variable does.
    pub folder: &'static str,
    /// The files, below that. None of them need be there.
    pub names: &'static [&'static str],
}

/// One of these files, as it is.
#[derive(Clone, PartialEq, Eq)]
pub struct PersonFile {
    /// Its name, as [`PersonFiles::names`] has it.
    pub name: &'static str,
    /// The directory that it is in.
    pub directory: AbsPath,
    /// Its text.
    pub text: String,
}

impl fmt::Debug for PersonFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It may hold keys.
        write!(f, "PersonFile({}, {} bytes)", self.name, self.text.len())
    }
}
