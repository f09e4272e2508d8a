//! What is known of a program before anything is asked of it, as data: one constant for each harness.
//!
//! What depends on a version, a request or the person's settings is a method of [`super::Harness`].

use super::{Instructions, LoginPlace, UserConfig, VendorKeys};

/// A program, as far as it is always the same.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// What to look for on the search path, most specific first; nothing where the settings name the program.
    pub executables: &'static [&'static str],
    /// How to install it, for people who have not.
    pub install_hint: &'static str,
    /// How it is asked for its version; empty where it must not be asked.
    pub version_args: &'static [&'static str],
    /// The versions that it was made for, each one or the start of some (`0.171`); none where that is not known. A
    /// person is told of any other one ([`super::version::untested`]).
    pub tested_versions: &'static [&'static str],
    /// Variables that are set for it whenever it is asked anything.
    pub probe_environment: &'static [(&'static str, &'static str)],
    /// Variables that lead its state elsewhere, for a program that makes itself a home even to tell its version.
    pub probe_variables: &'static [&'static str],
    /// Whether the operating system confines what its commands do.
    pub has_sandbox: bool,
    /// Whether its write jobs can ask the person for permissions ([`crate::permission::Policy::Ask`]). One that cannot
    /// is never started as if it could.
    pub can_ask: bool,
    /// What such a job does without asking all the same, as a sentence: a person who wants to be asked is told.
    pub never_asks: Option<&'static str>,
    /// The variable by which a person moves its state ([`super::Places::person_state`]).
    pub home_variable: Option<&'static str>,
    /// Where a person keeps its state when no variable says otherwise, below their home directory.
    pub home_folder: Option<&'static str>,
    /// What it means to its write jobs that one is to have the person's own configuration.
    pub user_config: UserConfig,
    /// The same of its read-only jobs.
    pub read_only_user_config: UserConfig,
    /// Planned files, below the job's home, that hold secrets: removed when nothing of the job runs any more.
    pub private_files: &'static [&'static str],
    /// What it reads from a repository as instructions, and cannot be kept from reading: a job names what is there.
    pub instructions: Instructions,
    /// Asks for a login beforehand: arguments of a command that answers with exit code 0 when one is there. (That a run
    /// was refused for want of a login is for its [`super::Driver`] to say.)
    pub login_probe: Option<&'static [&'static str]>,
    /// The command by which a person logs in with it, so that jobs can be led to the login; nothing where it has none
    /// of its own.
    pub login_command: Option<&'static str>,
    /// Where its logins are that jobs are led to, below where the person keeps its state.
    pub login_places: &'static [LoginPlace],
    /// What it adds to where the person keeps its state when a session is kept there: below that place. A job's
    /// sessions must not be among them. Empty where a job's sessions are the person's own.
    pub session_places: &'static [&'static str],
    /// Files that it makes directly in a repository's git directory, by name. They steer nothing, so that a guard over
    /// a checkout takes no notice of them.
    pub git_files: &'static [&'static str],
    /// Whether it searches with ripgrep ([`super::ripgrep`]).
    pub needs_ripgrep: bool,
    /// The keys of model vendors that it logs in with, from the person's environment.
    pub vendor_keys: VendorKeys,
}

impl About {
    /// Nothing but the usual.
    pub const USUAL: Self = Self {
        executables: &[],
        install_hint: "",
        version_args: &["--version"],
        tested_versions: &[],
        probe_environment: &[],
        probe_variables: &[],
        has_sandbox: false,
        can_ask: false,
        never_asks: None,
        home_variable: None,
        home_folder: None,
        user_config: UserConfig::Taken,
        read_only_user_config: UserConfig::Taken,
        private_files: &[],
        instructions: Instructions::Read(&[]),
        login_probe: None,
        login_command: None,
        login_places: &[],
        session_places: &[],
        git_files: &[],
        needs_ripgrep: false,
        vendor_keys: VendorKeys::Own(&[]),
    };

    /// A program of the person's own.
    pub const OWN: Self = Self {
        install_hint: "it is a program of your own",
        version_args: &[],
        user_config: UserConfig::Always,
        read_only_user_config: UserConfig::Always,
        instructions: Instructions::COMMON,
        ..Self::USUAL
    };
}
