//! Which variables a child gets, as data.
//!
//! A harness gets what the person has, minus what is none of its business (a deny-list: logins need variables nobody
//! can list). Our own git gets what it needs and nothing else (an allow-list). Variables that steer git or pactify
//! never pass from us to a child, whatever the configuration says: an inherited `GIT_DIR` would redirect every
//! command.
//!
//! The result is a [`ChildEnv`], the only kind of environment [`super::spawn`] accepts. What a harness needs on top is
//! set on it afterwards by the launch plan; the [`Marker`] is set last.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

use pactify_core::JobId;
use pactify_core::harness::VendorKeys;
use pactify_core::redact::names_a_secret;

use crate::env::Variables;

use self::Pattern::{Name, Prefix, Secret};

/// What to let through from the inherited variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvPolicy {
    /// Everything except what is denied; a name in `let_through` is let through although it is denied.
    AllBut {
        /// What is kept back.
        denied: Vec<Pattern>,
        /// Exact names the person lets through; has no effect on [`NEVER`].
        let_through: Vec<OsString>,
    },
    /// Nothing except what is named.
    Only(Vec<Pattern>),
}

/// A set of variable names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Exactly this name.
    Name(&'static str),
    /// Every name that starts like this.
    Prefix(&'static str),
    /// Every name that says of itself that it holds a secret.
    Secret,
}

/// The environment of a child.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ChildEnv(Variables);

/// The mark every process of a job carries in its environment: `PACTIFY_JOB=<id>`.
///
/// Compared as a whole, so that a job within a job is told apart from the job around it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Marker(JobId);

/// What no policy lets through. `GIT_*` redirects and reconfigures git; `PACTIFY_*` is ours.
pub const NEVER: &[Pattern] = &[Prefix("GIT_"), Prefix("PACTIFY_")];

/// What a harness does not inherit unless the person lets it through by name.
pub const HARNESS_DENIED: &[Pattern] = &[
    // Code injected into every program, or into every program of one runtime.
    Name("LD_PRELOAD"),
    Name("LD_AUDIT"),
    Prefix("DYLD_INSERT_"),
    Name("BASH_ENV"),
    Name("ENV"),
    Prefix("BASH_FUNC_"),
    Name("NODE_OPTIONS"),
    Name("PYTHONSTARTUP"),
    Name("PERL5OPT"),
    Name("RUBYOPT"),
    // The session of the editor or terminal we run in: the harness is not part of it.
    Prefix("ELECTRON_"),
    Prefix("VSCODE_"),
    Prefix("NVIM"),
    Name("VIM"),
    Name("VIMRUNTIME"),
    Name("MYVIMRC"),
    Name("INSIDE_EMACS"),
    Prefix("ZED_"),
    Name("TERM_PROGRAM"),
    Name("TERM_PROGRAM_VERSION"),
    Name("TMUX"),
    Name("TMUX_PANE"),
    Name("STY"),
    Name("EDITOR"),
    Name("VISUAL"),
    Name("BROWSER"),
    Prefix("NODE_CHANNEL_"),
    Name("NODE_UNIQUE_ID"),
    // Sockets and descriptors that a service supervisor meant for us.
    Name("NOTIFY_SOCKET"),
    Prefix("LISTEN_"),
    Name("MAKEFLAGS"),
    Name("CARGO_MAKEFLAGS"),
    // The settings of an agent session we may have been started from.
    Prefix("CODEX_"),
    Prefix("OPENAI_"),
    Prefix("ANTHROPIC_"),
    Prefix("CLAUDE"),
    Prefix("GEMINI_"),
    Prefix("KIMI_"),
    Prefix("MOONSHOT_"),
    Prefix("OPENCODE"),
    // A harness that logs in by one has it let through.
    Secret,
    Name("SSH_AUTH_SOCK"),
    Name("SSH_ASKPASS"),
];

/// What our own git inherits.
pub const GIT_ALLOWED: &[Pattern] = &[
    Name("PATH"),
    Name("HOME"),
    Name("USER"),
    Name("LOGNAME"),
    Name("TMPDIR"),
    Name("TZ"),
    Name("LANG"),
    Prefix("LC_"),
    Name("XDG_CONFIG_HOME"),
    // Where the loader finds git's libraries on systems that have them elsewhere.
    Name("LD_LIBRARY_PATH"),
];

impl EnvPolicy {
    /// The policy for harnesses and for what they run.
    #[must_use]
    pub fn harness<N: Into<OsString>>(let_through: impl IntoIterator<Item = N>) -> Self {
        let let_through = let_through.into_iter().map(Into::into).collect();
        // Not each of them looks like a secret.
        let vendors = VendorKeys::Every.names().iter().map(|name| Name(name));
        Self::AllBut { denied: HARNESS_DENIED.iter().copied().chain(vendors).collect(), let_through }
    }

    /// The policy for our own git.
    #[must_use]
    pub fn git() -> Self {
        Self::Only(GIT_ALLOWED.to_vec())
    }

    /// The policy for version managers: what git gets, and what says where files are; `homes` are its own.
    #[must_use]
    pub fn version_manager(homes: &[&'static str]) -> Self {
        let files = ["XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"];
        let places = files.iter().chain(homes).map(|name| Name(name));
        Self::Only(GIT_ALLOWED.iter().copied().chain(places).collect())
    }

    /// The part of `inherited` that passes.
    #[must_use]
    pub fn filter(&self, inherited: &Variables) -> ChildEnv {
        let passing = inherited.iter().filter(|(name, _)| self.lets_through(name));
        ChildEnv(passing.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Whether a variable of this name passes.
    #[must_use]
    pub fn lets_through(&self, name: &OsStr) -> bool {
        if any(NEVER, name) {
            return false;
        }
        match self {
            Self::AllBut { denied, let_through } => !any(denied, name) || let_through.iter().any(|own| own == name),
            Self::Only(allowed) => any(allowed, name),
        }
    }
}

impl Pattern {
    /// Whether the pattern holds for `name`.
    #[must_use]
    pub fn matches(self, name: &OsStr) -> bool {
        let name = name.as_bytes();
        match self {
            Name(exact) => name == exact.as_bytes(),
            Prefix(start) => name.starts_with(start.as_bytes()),
            Secret => std::str::from_utf8(name).is_ok_and(names_a_secret),
        }
    }
}

impl ChildEnv {
    /// Sets a variable, whatever the policy said about its name.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> &mut Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Removes a variable.
    pub fn unset(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.0.remove(name.as_ref());
        self
    }

    /// Marks everything that inherits this environment as belonging to a job.
    pub fn mark(&mut self, marker: &Marker) -> &mut Self {
        self.set(Marker::NAME, marker.0.as_str())
    }

    /// The variables.
    #[must_use]
    pub fn variables(&self) -> &Variables {
        &self.0
    }

    /// Everything we have. Only for a process that is ourselves again: the host.
    pub(super) fn inherit(variables: &Variables) -> Self {
        Self(variables.clone())
    }
}

/// The names only: values may be secrets.
impl fmt::Debug for ChildEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Marker {
    /// The variable that holds it.
    pub const NAME: &str = "PACTIFY_JOB";

    /// The marker of a job.
    #[must_use]
    pub fn of(job: &JobId) -> Self {
        Self(job.clone())
    }

    /// Whether an entry of an environment block is this marker.
    pub(super) fn is_entry(&self, entry: &[u8]) -> bool {
        let value = entry.strip_prefix(Self::NAME.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value == Some(self.0.as_str().as_bytes())
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", Self::NAME, self.0.as_str())
    }
}

fn any(patterns: &[Pattern], name: &OsStr) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(job: &str) -> Marker {
        Marker::of(&job.parse().unwrap())
    }

    fn inherited(names: &[&str]) -> Variables {
        names.iter().map(|name| (name.into(), "inherited".into())).collect()
    }

    fn passing(policy: &EnvPolicy, names: &[&str]) -> Vec<String> {
        let env = policy.filter(&inherited(names));
        env.variables().keys().map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_harness_keeps_what_logins_and_toolchains_need() {
        let names = [
            "CARGO_HOME",
            "DBUS_SESSION_BUS_ADDRESS",
            "HOME",
            "HTTPS_PROXY",
            "JAVA_HOME",
            "LANG",
            "LC_ALL",
            "LD_LIBRARY_PATH",
            "PATH",
            "SSL_CERT_FILE",
            "TERM",
            "XDG_RUNTIME_DIR",
        ];
        assert_eq!(passing(&EnvPolicy::harness([""; 0]), &names), names);
    }

    #[test]
    fn a_harness_inherits_no_redirection_injection_session_or_secret() {
        let names = [
            "ANTHROPIC_API_KEY",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_SECRET_ACCESS_KEY",
            "AZURE_OPENAI_KEY",
            "BASH_FUNC_ls%%",
            "CODEX_HOME",
            "ELECTRON_RUN_AS_NODE",
            "GITHUB_TOKEN",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_KEY_0",
            "GIT_DIR",
            "GIT_EXTERNAL_DIFF",
            "GIT_INDEX_FILE",
            "GIT_SSH_COMMAND",
            "GIT_WORK_TREE",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "NVIM",
            "OPENAI_BASE_URL",
            "PACTIFY_HOME",
            "PACTIFY_JOB",
            "PACT_RELAY_TOKEN",
            "PGPASSWORD",
            "SNOWFLAKE_CORTEX_PAT",
            "SSH_AUTH_SOCK",
            "SVN_PASSWD",
            "VSCODE_IPC_HOOK_CLI",
            "WATSONX_AI_APIKEY",
        ];
        assert_eq!(passing(&EnvPolicy::harness([""; 0]), &names), [""; 0]);
    }

    #[test]
    fn a_person_lets_denied_names_through_but_never_git_s_or_ours() {
        let policy = EnvPolicy::harness(["GATEWAY_API_KEY", "GIT_DIR", "PACTIFY_JOB"]);
        let names = ["GATEWAY_API_KEY", "GATEWAY_API_KEY_2", "GIT_DIR", "OTHER_API_KEY", "PACTIFY_JOB"];
        assert_eq!(passing(&policy, &names), ["GATEWAY_API_KEY", "GATEWAY_API_KEY_2"]);
    }

    #[test]
    fn each_harness_logs_in_with_keys_of_its_own_vendor_or_of_any() {
        use pactify_core::harness::registry;
        let vendors = VendorKeys::Every.names();
        let others = [
            "AWS_SECRET_ACCESS_KEY",
            "AZURE_OPENAI_KEY",
            "CODEX_API_KEY",
            "GITHUB_TOKEN",
            "GIT_DIR",
            "GIT_SSH_COMMAND",
            "GIT_WORK_TREE",
            "OPENAI_BASE_URL",
            "PACTIFY_HOME",
            "PACTIFY_SERVE_TOKEN",
        ];
        let names = [vendors, &others, &["PATH"]].concat();
        let mut seen = 0;
        for harness in registry::all() {
            let keys = harness.about().vendor_keys;
            let mut expected: Vec<_> = names
                .iter()
                .copied()
                .filter(|name| *name == "PATH" || keys.names().contains(name) && !name.starts_with("GIT_"))
                .collect();
            expected.sort_unstable();
            let policy = EnvPolicy::harness(keys.names().iter().copied());
            assert_eq!(passing(&policy, &names), expected, "{}", harness.name());
            match keys {
                VendorKeys::Every => assert_eq!(expected.len(), vendors.len() + 1),
                VendorKeys::Own(_) => assert!(expected.len() <= 2, "{}: {expected:?}", harness.name()),
            }
            seen += 1;
        }
        assert!(seen >= 4, "{seen}");
        let own = EnvPolicy::harness(["GEMINI_API_KEY", "GIT_DIR"]);
        assert_eq!(passing(&own, &names), ["GEMINI_API_KEY", "PATH"]);
    }

    #[test]
    fn what_only_sounds_like_a_secret_passes() {
        let names = ["AWS_PROFILE", "AWS_REGION", "KEYBOARD_LAYOUT", "TOKENIZERS_PARALLELISM", "XMODIFIERS"];
        assert_eq!(passing(&EnvPolicy::harness([""; 0]), &names), names);
    }

    #[test]
    fn our_git_gets_an_allow_list() {
        let names =
            ["CDPATH", "GIT_DIR", "HOME", "LC_ALL", "LD_PRELOAD", "MY_VARIABLE", "PAGER", "PATH", "SSH_ASKPASS"];
        assert_eq!(passing(&EnvPolicy::git(), &names), ["HOME", "LC_ALL", "PATH"]);
    }

    #[test]
    fn the_marker_is_set_after_the_filter_and_replaces_an_outer_one() {
        let mut env = EnvPolicy::harness([""; 0]).filter(&inherited(&["PACTIFY_JOB", "PATH"]));
        env.mark(&marker("20261129-101112-aaaaaa"));
        let expected = [("PACTIFY_JOB", "20261129-101112-aaaaaa"), ("PATH", "inherited")];
        assert_eq!(env.variables(), &expected.map(|(name, value)| (name.into(), value.into())).into());
    }

    #[test]
    fn a_marker_matches_its_whole_entry_only() {
        let marker = marker("20261129-101112-aaaaaa");
        assert!(marker.is_entry(b"PACTIFY_JOB=20261129-101112-aaaaaa"));
        for other in [
            "PACTIFY_JOB=20261129-101112-aaaaab",
            "PACTIFY_JOB=20261129-101112-aaaaaaa",
            "PACTIFY_JOB=20261129-101112-aaaaa",
            "XPACTIFY_JOB=20261129-101112-aaaaaa",
            "PACTIFY_JOB",
            "",
        ] {
            assert!(!marker.is_entry(other.as_bytes()), "{other:?}");
        }
    }
}
