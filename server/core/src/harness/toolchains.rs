//! The person's toolchains, for commands that see another home than theirs.
//!
//! A harness with a home of the job's own gives that home to its commands as well, and a `cargo` that looks for
//! `~/.rustup` there finds nothing. What leads managers of toolchains to what they installed is a variable of each; for
//! a job that may run commands, [`places`] says which to set, and to what.
//!
//! No row leads to anything that holds credentials. That is why these are none: `CARGO_HOME` (`credentials.toml`),
//! `GRADLE_USER_HOME` (`gradle.properties`), `RYE_HOME` (`credentials`), `JULIA_DEPOT_PATH` (`servers/*/auth.toml`),
//! and the homes of npm, pip, Maven and conda, whose settings hold tokens. A person who wants one has it in their
//! environment, which passes.

use crate::AbsPath;

/// Where a manager keeps what it installed, when nobody says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Toolchain {
    /// The variable that says so.
    variable: &'static str,
    /// One that says it as well: where it is set, `variable` would contradict it.
    other: Option<&'static str>,
    /// The directory.
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Below the person's home directory.
    Home(&'static str),
    /// Below `XDG_DATA_HOME`.
    Data(&'static str),
}

const fn toolchain(variable: &'static str, place: Place) -> Toolchain {
    Toolchain { variable, other: None, place }
}

const TOOLCHAINS: &[Toolchain] = &[
    // `cargo` and `rustc` on PATH are rustup's, and look for the real ones here. Cargo's own home stays the job's:
    // crates are fetched once more.
    toolchain("RUSTUP_HOME", Place::Home(".rustup")),
    // The shims of these on PATH look here for the version that a project wants.
    toolchain("PYENV_ROOT", Place::Home(".pyenv")),
    toolchain("RBENV_ROOT", Place::Home(".rbenv")),
    toolchain("VOLTA_HOME", Place::Home(".volta")),
    toolchain("ASDF_DATA_DIR", Place::Home(".asdf")),
    toolchain("MISE_DATA_DIR", Place::Data("mise")),
    // Functions of a shell, which find here what they switch to.
    toolchain("NVM_DIR", Place::Home(".nvm")),
    toolchain("FNM_DIR", Place::Data("fnm")),
    toolchain("SDKMAN_DIR", Place::Home(".sdkman")),
    // The interpreters of uv alone: its credentials lie beside them.
    toolchain("UV_PYTHON_INSTALL_DIR", Place::Data("uv/python")),
    // Go fetches its toolchains as modules. Not GOPATH, in whose `bin` a job's `go install` would put programs.
    Toolchain { variable: "GOMODCACHE", other: Some("GOPATH"), place: Place::Home("go/pkg/mod") },
];

/// The variables to set, and the directories that they are to lead to if these exist. `is_set` tells which the person
/// has set already: those stay. `data` is their `XDG_DATA_HOME`.
pub fn places(home: &AbsPath, data: Option<&AbsPath>, is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, AbsPath)> {
    let data = data.cloned().unwrap_or_else(|| home.descend(".local/share"));
    let free = TOOLCHAINS.iter().filter(|one| !is_set(one.variable) && !one.other.is_some_and(&is_set));
    free.map(|one| {
        let place = match one.place {
            Place::Home(way) => home.descend(way),
            Place::Data(way) => data.descend(way),
        };
        (one.variable, place)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text).unwrap()
    }

    fn of(found: &[(&'static str, AbsPath)], variable: &str) -> Option<String> {
        found.iter().find(|(name, _)| *name == variable).map(|(_, place)| place.to_string())
    }

    #[test]
    fn each_manager_is_led_to_where_it_keeps_things() {
        let found = places(&path("/home/a"), None, |_| false);
        assert_eq!(of(&found, "RUSTUP_HOME").as_deref(), Some("/home/a/.rustup"));
        assert_eq!(of(&found, "MISE_DATA_DIR").as_deref(), Some("/home/a/.local/share/mise"));
        assert_eq!(of(&found, "GOMODCACHE").as_deref(), Some("/home/a/go/pkg/mod"));
        let elsewhere = places(&path("/home/a"), Some(&path("/data")), |_| false);
        assert_eq!(of(&elsewhere, "UV_PYTHON_INSTALL_DIR").as_deref(), Some("/data/uv/python"));
    }

    #[test]
    fn what_the_person_said_stays() {
        let found = places(&path("/home/a"), None, |name| name == "RUSTUP_HOME" || name == "GOPATH");
        assert_eq!((of(&found, "RUSTUP_HOME"), of(&found, "GOMODCACHE")), (None, None));
        assert_eq!(found.len(), TOOLCHAINS.len() - 2);
    }

    #[test]
    fn no_place_that_holds_credentials_is_among_them() {
        for variable in ["CARGO_HOME", "GRADLE_USER_HOME", "RYE_HOME", "JULIA_DEPOT_PATH", "HOME", "XDG_CONFIG_HOME"] {
            assert!(TOOLCHAINS.iter().all(|one| one.variable != variable), "{variable}");
        }
    }
}
