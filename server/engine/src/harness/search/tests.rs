//! What is found under a thin search path, and what must never be.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use pactify_core::harness::registry;
use tempfile::TempDir;

use super::*;
use crate::env::Directories;

/// A person's machine: a home, a repository, a thin search path, a login shell.
struct Machine {
    _guard: TempDir,
    root: AbsPath,
}

impl Machine {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let root = AbsPath::new(guard.path().canonicalize().unwrap()).unwrap();
        for folder in ["home", "repo/.git", "repo/bin", "thin", "local"] {
            fs::create_dir_all(root.as_path().join(folder)).unwrap();
        }
        Self { _guard: guard, root }
    }

    fn at(&self, below: &str) -> AbsPath {
        AbsPath::new(self.root.as_path().join(below)).unwrap()
    }

    fn program(&self, below: &str, text: &str) -> AbsPath {
        let path = self.at(below);
        fs::write(path.as_path(), text).unwrap();
        fs::set_permissions(path.as_path(), Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn env(&self, path: &str, shell: Option<&str>) -> Env {
        let mut variables = crate::env::Variables::from([("PATH".into(), path.into())]);
        if let Some(text) = shell {
            variables.insert("SHELL".into(), self.program("home/shell", text).as_path().into());
        }
        Env::from_values(variables, Directories::under(&self.at("home")))
    }

    fn repository(&self) -> RepositoryRecord {
        let git = self.at("repo/.git");
        RepositoryRecord { worktree: self.at("repo"), git_dir: git.clone(), common_dir: git, prefix: String::new() }
    }

    fn find(&self, env: &Env) -> Result<Found, Failure> {
        let codex = registry::built_in(&registry::default_name()).unwrap();
        find(env, &*codex, &HarnessSettings::default(), Some(&self.repository()))
    }

    /// A login shell that knows of `local` and answers what it is asked.
    fn honest(&self) -> String {
        format!(
            "#!/bin/sh\ntest \"$1 $2\" = '-l -c' || exit 2\nPATH={}:$PATH\nexport PATH\neval \"$3\"\n",
            self.at("local")
        )
    }

    /// A search path of these directories.
    fn path(&self, below: &[&str]) -> String {
        below.iter().map(|folder| self.at(folder).to_string()).collect::<Vec<_>>().join(":")
    }
}

#[test]
fn this_process_s_own_search_path_comes_first_and_no_shell_is_asked_then() {
    let machine = Machine::new();
    let thin = machine.program("thin/codex", "");
    machine.program("local/codex", "");
    let env = machine.env(&machine.path(&["thin"]), Some("#!/bin/sh\ntouch ../asked\n"));
    let found = machine.find(&env).unwrap();
    assert_eq!((found.program.executable, found.search_path), (thin, None));
    assert!(!machine.at("asked").as_path().exists() && !machine.at("home/asked").as_path().exists());
}

#[test]
fn the_login_shell_knows_more_is_asked_once_and_at_home() {
    let machine = Machine::new();
    let local = machine.program("local/codex", "");
    let shell = machine.honest().replacen("eval", "echo Welcome; pwd >> asked; echo $$ >&2; eval", 1);
    let env = machine.env(&machine.path(&["thin"]), Some(&shell));
    for _ in 0..2 {
        let found = machine.find(&env.clone()).unwrap();
        assert_eq!(found.program.executable, local);
        assert_eq!(found.search_path, Some(machine.path(&["thin", "local"])));
        assert_eq!(found.env.variable("PATH").unwrap().to_str(), found.search_path.as_deref());
    }
    let asked = fs::read_to_string(machine.at("home/asked").as_path()).unwrap();
    assert_eq!(asked, format!("{}\n", machine.at("home")));
}

#[test]
fn a_program_that_the_repository_offers_is_never_found() {
    let machine = Machine::new();
    machine.program("repo/codex", "");
    machine.program("repo/bin/codex", "");
    fs::create_dir_all(machine.at("home/.pactify/jobs/j/tree").as_path()).unwrap();
    machine.program("home/.pactify/jobs/j/tree/codex", "");
    std::os::unix::fs::symlink(machine.at("repo/bin").as_path(), machine.at("linked").as_path()).unwrap();
    let hostile = format!(".::bin:./:{}", machine.path(&["repo", "repo/bin", "linked", "home/.pactify/jobs/j/tree"]));

    // Without the guard it would be found.
    let unguarded = machine.env(&hostile, None);
    assert_eq!(unguarded.find_executable("codex").unwrap(), machine.at("repo/codex"));

    let shell = machine.honest().replacen("PATH=", &format!("PATH={hostile}:"), 1);
    let env = machine.env(&hostile, Some(&shell));
    let failure = machine.find(&env).unwrap_err();
    assert_eq!(failure.code, FailureCode::HarnessNotFound);
    assert!(failure.message.contains(&machine.path(&["local"])) && !failure.message.contains("repo"), "{failure}");
    let local = machine.program("local/codex", "");
    let found = machine.find(&env).unwrap();
    assert_eq!((found.program.executable, found.search_path), (local, Some(machine.path(&["local"]))));
}

#[test]
fn a_link_that_leads_into_the_repository_is_passed_over() {
    use std::os::unix::fs::symlink;

    let machine = Machine::new();
    let offered = machine.program("repo/bin/codex", "");
    let local = machine.program("local/codex", "");
    let job = machine.at("home/.pactify/jobs/j/tree");
    fs::create_dir_all(job.as_path()).unwrap();
    machine.program("home/.pactify/jobs/j/tree/codex", "");
    let env = machine.env(&machine.path(&["thin", "local"]), None);
    let thin = machine.at("thin/codex");
    // In the repository itself, by a link of a link, by a link in there that leads out, in the tree of a job.
    symlink(local.as_path(), machine.at("repo/bin/out").as_path()).unwrap();
    symlink("repo/bin/codex", machine.at("again").as_path()).unwrap();
    for leads_to in ["../repo/bin/codex", "../again", "../repo/bin/out", "../home/.pactify/jobs/j/tree/codex"] {
        let _ = fs::remove_file(thin.as_path());
        symlink(leads_to, thin.as_path()).unwrap();
        // Without the guard it would be found.
        assert_eq!(env.find_executable("codex").unwrap(), thin, "{leads_to}");
        assert_eq!(machine.find(&env).unwrap().program.executable, local, "{leads_to}");
    }
    // What the person names by its place is their choice.
    let codex = registry::built_in(&registry::default_name()).unwrap();
    let settings = HarnessSettings { executable: Some(thin.clone()), ..HarnessSettings::default() };
    fs::remove_file(thin.as_path()).unwrap();
    symlink("../repo/bin/codex", thin.as_path()).unwrap();
    let found = find(&env, &*codex, &settings, Some(&machine.repository())).unwrap();
    assert_eq!(found.program.executable, offered);
}

#[test]
fn a_shell_that_prints_garbage_hangs_or_fails_is_done_without() {
    let machine = Machine::new();
    machine.program("local/codex", "");
    let local = machine.at("local");
    for (what, text) in [
        ("says nothing", "#!/bin/sh\n".to_owned()),
        ("does not exist", format!("#!/no/such/interpreter\n{local}")),
        ("guesses", format!("#!/bin/sh\necho pactify{local}pactify\necho {local}\n")),
        (
            "tears its answer",
            format!("#!/bin/sh\nPATH={local} /bin/sh -c \"$3\" | /usr/bin/env -i PATH=/usr/bin:/bin head -c 20\n"),
        ),
        (
            "says too much",
            format!(
                "#!/bin/sh\nPATH=/usr/bin:/bin\nhead -c 1000000 /dev/zero | tr '\\0' x\nPATH={local}\neval \"$3\"\n"
            ),
        ),
    ] {
        let env = machine.env(&machine.path(&["thin"]), Some(&text));
        assert_eq!(machine.find(&env).unwrap_err().code, FailureCode::HarnessNotFound, "{what}");
    }
    let env = machine.env(&machine.path(&["thin"]), Some("#!/bin/sh\necho >> asked\nexec /bin/sleep 600\n"));
    assert!(machine.find(&env).is_err() && machine.find(&env).is_err());
    let asked = fs::read_to_string(machine.at("home/asked").as_path()).unwrap();
    assert_eq!(asked, "\n", "it is asked once, and given up");
}

#[test]
fn noise_around_the_answer_and_an_exit_code_do_not_matter() {
    let machine = Machine::new();
    let local = machine.program("local/codex", "");
    let shell =
        machine.honest().replacen("eval", "printf 'no newline'; cat /bin/true 2>/dev/null; eval", 1) + "exit 3\n";
    let env = machine.env(&machine.path(&["thin"]), Some(&shell));
    assert_eq!(machine.find(&env).unwrap().program.executable, local);
}

#[test]
fn what_is_asked_is_one_command_of_plain_words_in_any_shell_s_language() {
    let machine = Machine::new();
    let local = machine.program("local/codex", "");
    // In fish `$PATH` is a list, csh has words of its own: they are asked nothing but to start a program, with one
    // argument that is quoted in the one way that all of them share.
    let check = "case $3 in \"/bin/sh -c '\"*\"'\") ;; *) exit 2 ;; esac\ninner=${3#*\\'}\ninner=${inner%\\'}\n\
                 case $inner in *\\'*|*!*) exit 2 ;; esac\nexec /bin/sh -c \"$inner\"\n";
    let shell = machine.honest().replacen("eval \"$3\"\n", check, 1);
    let env = machine.env(&machine.path(&["thin"]), Some(&shell));
    assert_eq!(machine.find(&env).unwrap().program.executable, local);
}

#[test]
fn a_program_that_is_named_by_its_place_is_not_searched_for() {
    let machine = Machine::new();
    let env = machine.env("", Some("#!/bin/sh\ntouch asked\n"));
    let codex = registry::built_in(&registry::default_name()).unwrap();
    let settings = HarnessSettings { executable: Some(machine.at("none/codex")), ..HarnessSettings::default() };
    let failure = find(&env, &*codex, &settings, None).unwrap_err();
    assert_eq!(failure.code, FailureCode::HarnessNotFound);
    assert!(!machine.at("home/asked").as_path().exists());
}
