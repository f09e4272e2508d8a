//! What a plan is made from, and where its job is.

use super::{About, HarnessSettings, LoginPlace, PersonFile, PlannedLink};
use crate::brief::Brief;
use crate::job::event::Usage;
use crate::permission::Policy;
use crate::{AbsPath, JobId};

/// What a plan is made from.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The job.
    pub job: &'a JobId,
    /// The task, or the message of a resume.
    pub brief: &'a Brief,
    /// The program, resolved.
    pub executable: &'a AbsPath,
    /// What runs it, where it is a script ([`super::Harness::interpreter`]), resolved.
    pub interpreter: Option<&'a AbsPath>,
    /// The person's settings for this harness.
    pub settings: &'a HarnessSettings,
    /// The model to ask for.
    pub model: Option<&'a str>,
    /// Who answers what the harness asks for, where the job may write.
    pub permissions: Policy,
    /// The job's own directories.
    pub places: &'a Places,
    /// The session to go on with.
    pub resume: Option<Resume<'a>>,
    /// Whether the job is to have the person's own configuration of the harness, as far as its access mode lets it.
    pub with_user_config: bool,
    /// Of that, the files that are there ([`super::Harness::person_files`]).
    pub person_files: &'a [PersonFile],
    /// What nobody can guess, in hexadecimal digits: a password, where a harness needs one.
    pub nonce: &'a str,
    /// The version that the program reported ([`super::Harness::parse_version`]), where it was asked.
    pub version: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// The text of one of the person's own files.
    pub fn person_file(&self, name: &str) -> Option<&'a str> {
        self.person_files.iter().find(|file| file.name == name).map(|file| file.text.as_str())
    }
}

/// A session that goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resume<'a> {
    /// The harness's own id of it.
    pub session: &'a str,
    /// What the session used before, over all its attempts: some harnesses count on from there.
    pub used: Usage,
}

/// The directories of one job that a harness may know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The tree it works in.
    pub tree: AbsPath,
    /// A private home for the harness's state (0700, empty at first, kept over resumes).
    pub home: AbsPath,
    /// A private directory for temporary files; not an ancestor of `home`.
    pub tmp: AbsPath,
    /// The person's own home directory.
    pub user_home: Option<AbsPath>,
    /// Where the person keeps this harness's own state, to link logins from ([`About::home_variable`],
    /// [`About::home_folder`]).
    pub person_state: Option<AbsPath>,
    /// Where pactify keeps a login of its own for this harness ([`super::Harness::kept_login`]), below `PACTIFY_HOME`;
    /// it need not exist.
    pub kept: AbsPath,
}

impl Places {
    /// The links from `state`, where the program keeps its state in the job, to the person's logins.
    pub(super) fn login_links(&self, about: &About, state: &AbsPath) -> Vec<PlannedLink> {
        let Some(persons) = &self.person_state else { return Vec::new() };
        let link = |place: &LoginPlace| PlannedLink {
            at: state.descend(place.path),
            target: persons.descend(place.path),
            kind: place.kind,
        };
        about.login_places.iter().map(link).collect()
    }
}
