//! Which program a job runs where a version manager stands between, and that people are told of the same one.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pactify_tests::agent::{self, Profile, Step};
use pactify_tests::editor::{Editor, configure, uri};
use pactify_tests::outside;
use pactify_tests::sandbox::Sandbox;
use pactify_tests::tools::Tool;
use serde_json::{Value, json};

use crate::agents::{self, Agent};

/// A twin of mise: it decides by its own name, and by the nearest `mise.toml`. Without one that knows the tool, it
/// fails as mise does in a home that is not the person's.
const MISE: &str = r#"#!/bin/sh
me=${0##*/}
if test "$me" = mise; then test "$1" = which || exit 2; tool=$2; else tool=$me; fi
at=$PWD
while test ! -f "$at/mise.toml" && test -n "$at"; do at=${at%/*}; done
test -n "$at" || at=$HOME
program=$(sed -n "s/^$tool = \"\(.*\)\"$/\1/p" "$at/mise.toml" 2> /dev/null)
if test -z "$program"; then echo "mise ERROR $tool is not a valid shim." >&2; exit 1; fi
if test "$me" = mise; then echo "$program"; else exec "$program" "$@"; fi
"#;

fn program(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("no folder")?)?;
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, Permissions::from_mode(0o755))?)
}

/// A search path of shims of these tools, each of which is a program at home.
fn manage(sandbox: &mut Sandbox, tools: &[(&str, PathBuf)]) -> Result<PathBuf> {
    let home = sandbox.home();
    let (mise, shims) = (home.join(".local/bin/mise"), home.join(".local/share/mise/shims"));
    program(&mise, MISE)?;
    fs::create_dir_all(&shims)?;
    let mut active = "[tools]\n".to_owned();
    for (tool, program) in tools {
        symlink(&mise, shims.join(tool))?;
        active += &format!("{tool} = \"{}\"\n", program.display());
    }
    fs::write(home.join("mise.toml"), active)?;
    sandbox.set("PATH", format!("{}:/usr/bin:/bin", shims.display()));
    sandbox.set("SHELL", "/bin/false");
    configure(sandbox, "")?;
    Ok(shims)
}

/// What is found for `harness`.
fn found(list: &Value, harness: &str) -> Result<Value> {
    let mut views = list["harnesses"].as_array().into_iter().flatten();
    Ok(views.find(|view| view["name"] == harness).context("no such harness")?.clone())
}

#[test]
fn an_agent_and_what_runs_it_come_from_a_version_manager_and_the_repository_has_no_say() -> Result<()> {
    let mut stage =
        agents::Stage::playing(Agent::Kimi, &json!([Agent::Kimi.write("a.txt", "a\n"), {"message": "Done."}]))?;
    let (kimi, node, search) = (Tool::Kimi.find()?, Tool::Node24.find()?, Tool::Ripgrep.find()?);
    let tools = [("kimi", kimi.clone()), ("node", node.clone()), ("rg", search)];
    let shims = manage(&mut stage.sandbox, &tools)?;
    let repository = stage.repository()?;
    let (ran, theirs) = (stage.sandbox.root().join("ran"), repository.path().join("theirs"));
    program(&theirs, &format!("#!/bin/sh\necho {} >> {}\necho v24.9.9\n", "ran", ran.display()))?;
    let named = format!("kimi = \"{0}\"\nnode = \"{0}\"\n", theirs.display());
    repository.write("mise.toml", named)?;
    repository.commit("tools of its own")?;
    // The danger is there: started in the repository, either shim runs what that names.
    for tool in ["kimi", "node"] {
        let started = stage.sandbox.command(shims.join(tool)).current_dir(repository.path()).output()?;
        assert!(started.status.success() && ran.exists(), "{started:?}");
        fs::remove_file(&ran)?;
    }

    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let listed = found(&editor.run("harnesses", &json!({}))?, "kimi")?;
    assert_eq!((&listed["executable"], &listed["failure"]), (&json!(kimi.canonicalize()?), &Value::Null), "{listed:#}");
    let job = editor.delegate("Write it.", &json!({"harness": "kimi"}))?;
    let status = agents::finished(&mut editor, &job)?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let record: Value =
        serde_json::from_slice(&fs::read(stage.sandbox.pactify_home().join("jobs").join(&job).join("job.json"))?)?;
    assert_eq!(
        (&record["executable"], &record["interpreter"]),
        (&json!(kimi.canonicalize()?), &json!(node.canonicalize()?))
    );
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran)?);
    Ok(())
}

#[test]
fn a_shim_without_an_answer_is_named_with_what_to_do() -> Result<()> {
    let mut sandbox = Sandbox::new()?;
    let real =
        agent::install(&outside::program("scripted-agent")?, &sandbox.root().join("agent"), &Profile::default())?;
    let shims = manage(&mut sandbox, &[("codex", real.clone())])?;
    let repository = sandbox.repository("one")?;
    repository.fill()?;
    fs::rename(sandbox.home().join("mise.toml"), repository.path().join("mise.toml"))?;
    let mut editor = Editor::open(&sandbox, repository.path())?;
    let refused = editor.refused("delegate", &json!({"brief": "Do it."}))?;
    let (reason, data) = (refused.reason().to_owned(), refused.data.context("no data")?.to_string());
    assert_eq!(reason, "harnessIncompatible", "{data}");
    let shim = shims.join("codex");
    for told in
        [&format!("{} is a shim of mise", shim.display()), "not a valid shim", "executable =", "[harnesses.codex]"]
    {
        assert!(data.contains(told), "{told}: {data}");
    }
    configure(&sandbox, &format!("[harnesses.codex]\nexecutable = {:?}\n", real.display().to_string()))?;
    let job =
        editor.delegate(&agent::prompt(&[Step::write("a.txt", "a\n"), Step::Say("Done.".to_owned())]), &json!({}))?;
    assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    Ok(())
}

#[test]
fn what_is_told_of_is_what_a_job_there_would_run() -> Result<()> {
    let mut sandbox = Sandbox::new()?;
    let (one, two) = (sandbox.repository("one")?.path().to_owned(), sandbox.repository("two")?.path().to_owned());
    let bin = one.join("node_modules/.bin");
    let agent = outside::program("scripted-agent")?;
    let theirs = agent::install(&agent, &bin, &Profile::default())?;
    let ours = agent::install(&agent, &sandbox.root().join("agent"), &Profile::default())?;
    let ours_in = ours.parent().context("no folder")?;
    sandbox.set("PATH", format!("{}:{}:/usr/bin:/bin", bin.display(), ours_in.display()));
    sandbox.set("SHELL", "/bin/false");
    configure(&sandbox, "")?;
    for folder in ["one", "two"] {
        sandbox.repository(folder)?.fill()?;
    }
    let mut editor = Editor::open(&sandbox, &one)?;
    let asked =
        [(json!({}), &ours), (json!({"repository": uri(&one)}), &ours), (json!({"repository": uri(&two)}), &theirs)];
    for (params, expected) in asked {
        let listed = found(&editor.run("harnesses", &params)?, "codex")?;
        assert_eq!(listed["executable"], json!(expected), "{params}");
        let told = editor.run("doctor", &params)?.to_string();
        assert!(told.contains(&expected.display().to_string()), "{params}: {told}");
        let brief = agent::prompt(&[Step::Say("Done.".to_owned())]);
        let job = editor.delegate(&brief, &params)?;
        editor.until(&job, "finished")?;
        let record = fs::read(sandbox.pactify_home().join("jobs").join(&job).join("job.json"))?;
        assert_eq!(serde_json::from_slice::<Value>(&record)?["executable"], json!(expected), "{params}");
    }
    Ok(())
}
