//! What editors of every kind see of a job: progress, words, refusals; with our plugin, without one, and with nothing.
//!
//! The clients are raw ones, so that each can lack what real editors lack. How jobs run and end is [`super::hosts`]'s
//! subject.

use anyhow::{Context as _, Result, ensure};
use pactify_tests::agent::{brief, write};
use pactify_tests::editor::{JOB, scripted_sandbox, uri};
use pactify_tests::lsp::{Client, Launch, Reply, RpcError};
use pactify_tests::outside;
use pactify_tests::sandbox::{Repository, Sandbox};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// An editor that shows progress and documents, without our plugin.
fn plain() -> Value {
    json!({"window": {"workDoneProgress": true, "showDocument": {"support": true}}})
}

fn launch(sandbox: &Sandbox) -> Result<Launch> {
    Ok(Launch::new(sandbox.command(outside::program("pactify-lsp")?)).arg("--stdio"))
}

fn open(sandbox: &Sandbox, folders: &[&Repository<'_>], capabilities: &Value) -> Result<Client> {
    initialize(launch(sandbox)?, folders, capabilities)
}

fn initialize(launch: Launch, folders: &[&Repository<'_>], capabilities: &Value) -> Result<Client> {
    let mut client = launch.spawn()?;
    let folders: Vec<Value> = folders.iter().map(|one| json!({"uri": uri(one.path()), "name": "one"})).collect();
    let params = json!({
        "processId": null, "rootUri": null, "workspaceFolders": folders, "capabilities": capabilities,
        "clientInfo": {"name": "test"},
    });
    client.initialize_with(params)?;
    Ok(client)
}

fn command(client: &mut Client, verb: &str, arguments: &[Value]) -> Result<Result<Value, RpcError>> {
    let params = json!({"command": format!("pactify.{verb}"), "arguments": arguments});
    let id = client.send_request("workspace/executeCommand", params)?;
    client.answer(id, JOB)
}

fn run(client: &mut Client, verb: &str, argument: Value) -> Result<Value> {
    Ok(command(client, verb, &[argument])??)
}

/// The stable code, the message and the next step of a refusal.
fn refusal(client: &mut Client, verb: &str, arguments: &[Value]) -> Result<(String, String, String)> {
    let error = command(client, verb, arguments)?.err().with_context(|| format!("{verb} was not refused"))?;
    let data = error.data.context("no data")?;
    let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
    ensure!(error.message.contains(&text("message")) && error.message.contains(&text("next")), "{}", error.message);
    Ok((text("code"), text("message"), text("next")))
}

fn delegate(client: &mut Client, steps: Value) -> Result<String> {
    let delegated = run(client, "delegate", json!({"brief": brief(&steps)}))?;
    Ok(delegated["jobId"].as_str().context("no jobId")?.to_owned())
}

fn status(client: &mut Client, job: &str) -> Result<Value> {
    Ok(run(client, "status", json!({"jobId": job}))?["job"].take())
}

/// The next progress of this kind: its token and its value.
fn progress(client: &Client, kind: &str) -> Result<(Value, Value)> {
    let is_it = |message: &Value| message["method"] == "$/progress" && message["params"]["value"]["kind"] == kind;
    let mut message = client.take(kind, JOB, is_it)?;
    Ok((message["params"]["token"].take(), message["params"]["value"].take()))
}

fn message(client: &Client) -> Result<(i64, String)> {
    let params = client.notification("window/showMessage", JOB)?;
    Ok((params["type"].as_i64().context("no type")?, params["message"].as_str().unwrap_or_default().to_owned()))
}

/// Kinds of the progress that is left in the inbox.
fn kinds(client: &Client) -> Vec<String> {
    let left = client.drain();
    let progress = left.iter().filter(|message| message["method"] == "$/progress");
    progress.map(|message| message["params"]["value"]["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_job_is_one_progress_and_one_message() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut client = open(&sandbox, &[&repository], &plain())?;
    let job = delegate(&mut client, json!([write("a.txt", "a\n"), {"say": "Done."}]))?;

    let (token, begin) = progress(&client, "begin")?;
    assert_eq!((&begin["title"], &begin["cancellable"]), (&json!("codex: Do as you are told."), &json!(true)));
    let (ended, end) = progress(&client, "end")?;
    assert_eq!((ended, &end["message"]), (token, &json!("changed 1 file, +1 −0")));
    let (kind, text) = message(&client)?;
    assert_eq!(kind, 3, "information: {text}");
    assert!(text.starts_with("codex: Do as you are told.: changed 1 file, +1 −0; preview"), "{text}");
    assert!(kinds(&client).iter().all(|kind| kind == "report"), "one begin, one end");

    let preview = run(&mut client, "diffPreview", json!({"jobId": job, "show": true}))?;
    assert_eq!(preview["files"][0]["path"], "a.txt");
    let (_, shown) = client.server_request("window/showDocument", JOB)?;
    let file = shown["uri"].as_str().and_then(|uri| uri.strip_prefix("file://")).context("no file")?;
    assert!(std::fs::read_to_string(file)?.contains("+a\n"));
    run(&mut client, "apply", json!({"jobId": job, "changeSet": preview["changeSet"]}))?;
    assert_eq!(repository.read("a.txt")?, "a\n");
    assert_eq!(client.stop(), 0);
    Ok(())
}

#[test]
fn every_editor_of_a_repository_sees_the_job_and_can_cancel_it() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let (repository, other) = (sandbox.filled("one")?, sandbox.filled("other")?);
    let mut first = open(&sandbox, &[&repository], &plain())?;
    let second = open(&sandbox, &[&repository], &plain())?;
    let stranger = open(&sandbox, &[&other], &plain())?;
    let job = delegate(&mut first, json!([write("a.txt", "a\n"), "hang"]))?;

    progress(&first, "begin")?;
    let (token, _) = progress(&second, "begin")?;
    second.notify("window/workDoneProgress/cancel", json!({"token": token}))?;
    for client in [&first, &second] {
        let (_, end) = progress(client, "end")?;
        assert!(end["message"].as_str().unwrap_or_default().starts_with("cancelled"), "{end}");
    }
    assert_eq!(status(&mut first, &job)?["outcome"], "cancelled");
    assert_eq!(kinds(&stranger), [""; 0], "another repository's editor is left alone");
    Ok(())
}

#[test]
fn a_job_of_one_folder_among_several_is_about_that_folder_alone() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let (one, two) = (sandbox.filled("one")?, sandbox.filled("two")?);
    let mut client = open(&sandbox, &[&one, &two], &plain())?;
    let steps = brief(&json!([write("a.txt", "a\n")]));
    let (code, message, _) = refusal(&mut client, "delegate", &[json!({"brief": steps})])?;
    assert!(code == "invalidParams" && message.contains("several folders"), "{message}");
    let before = one.snapshot()?;
    for repository in [&two, &one] {
        let named = json!({"brief": steps, "repository": uri(repository.path())});
        let delegated = run(&mut client, "delegate", named)?;
        let job = delegated["jobId"].as_str().context("no jobId")?.to_owned();
        progress(&client, "end")?;
        let preview = run(&mut client, "diffPreview", json!({"jobId": job}))?;
        run(&mut client, "apply", json!({"jobId": job, "changeSet": preview["changeSet"]}))?;
        assert_eq!(repository.read("a.txt")?, "a\n");
        let listed = run(&mut client, "status", json!({"repository": uri(repository.path()), "all": true}))?;
        assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(1), "{listed}");
        if repository.path() == two.path() {
            assert_eq!(before.changed_since(&one.snapshot()?), [""; 0]);
        }
    }
    Ok(())
}

#[test]
fn an_editor_without_progress_is_sent_none() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut client = open(&sandbox, &[&repository], &json!({}))?;
    let job = delegate(&mut client, json!([write("a.txt", "a\n")]))?;
    let (_, text) = message(&client)?;
    assert!(text.contains("changed 1 file"), "{text}");
    run(&mut client, "diffPreview", json!({"jobId": job, "show": true}))?;
    let (_, text) = message(&client)?;
    assert!(text.contains(&format!("{job}.patch")), "said instead of shown: {text}");
    let methods: Vec<Value> = client.drain().iter().map(|message| message["method"].clone()).collect();
    assert!(methods.is_empty(), "{methods:?}");
    Ok(())
}

#[test]
fn an_editor_that_never_answers_is_still_served() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut client = initialize(launch(&sandbox)?.answering(|_, _| Reply::Never), &[&repository], &plain())?;
    let job = delegate(&mut client, json!([write("a.txt", "a\n")]))?;
    message(&client)?;
    run(&mut client, "diffPreview", json!({"jobId": job, "show": true}))?;
    client.server_request("window/workDoneProgress/create", JOB)?;
    client.server_request("window/showDocument", JOB)?;
    assert_eq!(status(&mut client, &job)?["outcome"], "succeeded");
    assert_eq!(kinds(&client), [""; 0], "no progress under a token that was not accepted");
    assert_eq!(client.stop(), 0);
    Ok(())
}

#[test]
fn an_editor_that_can_pass_no_arguments_is_understood_or_told() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut client = open(&sandbox, &[&repository], &plain())?;

    let (code, message, next) = refusal(&mut client, "delegate", &[])?;
    assert_eq!(code, "invalidParams");
    assert!(message.contains("missing field `brief`") && next.contains(".brief.md"), "{message}: {next}");
    assert_eq!(command(&mut client, "status", &[])??["jobs"], json!([]));
    assert!(command(&mut client, "harnesses", &[])??["harnesses"].is_array());
    assert!(command(&mut client, "doctor", &[])??["findings"].is_array());

    // The open brief is the task, saved or not.
    let text = brief(&json!([write("a.txt", "a\n")]));
    let document =
        json!({"uri": uri(&repository.path().join("task.brief.md")), "languageId": "markdown", "version": 1});
    let mut opened = document.clone();
    opened["text"] = json!("");
    client.notify("textDocument/didOpen", json!({"textDocument": opened}))?;
    client.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": [{"text": text}]}))?;
    let job = command(&mut client, "delegate", &[])??["jobId"].as_str().context("no jobId")?.to_owned();
    progress(&client, "end")?;

    let preview = command(&mut client, "diffPreview", &[])??;
    assert_eq!(preview["jobId"], json!(job));
    client.server_request("window/showDocument", JOB)?;
    let (code, message, _) = refusal(&mut client, "apply", &[])?;
    assert_eq!(code, "invalidParams");
    assert!(message.contains("missing field `jobId`"), "{message}");
    let (_, message, next) = refusal(&mut client, "apply", &[json!({"jobId": job})])?;
    assert!(message.contains("missing field `changeSet`"), "{message}");
    assert!(next.contains(preview["changeSet"].as_str().context("no changeSet")?), "{next}");
    Ok(())
}

#[test]
fn unsaved_text_stops_an_apply_until_it_is_saved() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut client = open(&sandbox, &[&repository], &plain())?;
    let job = delegate(&mut client, json!([write("README.md", "# New\n"), write("other.txt", "o\n")]))?;
    progress(&client, "end")?;
    let change_set = run(&mut client, "diffPreview", json!({"jobId": job}))?["changeSet"].take();
    let apply = json!({"jobId": job, "changeSet": change_set});

    let document = json!({"uri": uri(&repository.path().join("README.md")), "version": 1});
    let mut opened = document.clone();
    opened["text"] = json!(repository.read("README.md")?);
    opened["languageId"] = json!("markdown");
    client.notify("textDocument/didOpen", json!({"textDocument": opened}))?;
    let edit =
        json!([{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "x"}]);
    client.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": edit}))?;
    let error =
        command(&mut client, "apply", std::slice::from_ref(&apply))?.err().context("applied under unsaved text")?;
    let data = error.data.context("no data")?;
    assert_eq!(
        (&data["conflicts"][0]["path"], &data["conflicts"][0]["kind"]),
        (&json!("README.md"), &json!("unsavedText"))
    );
    assert_eq!(repository.status()?, "", "nothing was written");

    // A save is believed once the file has the text: editors tell of copies that they wrote elsewhere, too.
    client.notify("textDocument/didSave", json!({"textDocument": document}))?;
    command(&mut client, "apply", std::slice::from_ref(&apply))?.err().context("applied under unsaved text")?;
    let back =
        json!([{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}, "text": ""}]);
    client.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": back}))?;
    client.notify("textDocument/didSave", json!({"textDocument": document}))?;
    run(&mut client, "apply", apply)?;
    assert_eq!(repository.read("README.md")?, "# New\n");
    Ok(())
}

#[test]
fn refusals_are_typed_and_name_the_next_step() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let (one, two) = (sandbox.repository("one")?, sandbox.repository("two")?);
    one.fill()?;
    let mut client = open(&sandbox, &[&one, &two], &plain())?;
    let unknown = "20260101-000000-aaaaaa";
    let cases = [
        ("delegate", json!({"brief": "x"}), "invalidParams", uri(two.path())),
        ("delegate", json!({"brief": "x", "repository": uri(two.path())}), "unbornHead", "commit".to_owned()),
        ("delegate", json!({"brief": "x", "repository": uri(sandbox.root())}), "noRepository", String::new()),
        ("delegate", json!({"brief": " ", "repository": uri(one.path())}), "invalidParams", String::new()),
        ("delegate", json!({"brief": {"uri": "file:///nowhere.brief.md"}}), "invalidParams", "text".to_owned()),
        ("delegate", json!({"brief": "x", "access": "everything"}), "invalidParams", "docs/protocol.md".to_owned()),
        ("status", json!({"jobId": unknown}), "jobNotFound", String::new()),
        ("status", json!({"jobId": "../../etc"}), "invalidParams", String::new()),
        ("apply", json!({"jobId": unknown, "changeSet": "a".repeat(40)}), "jobNotFound", String::new()),
        ("export", json!({"jobId": unknown, "as": "zip"}), "invalidParams", String::new()),
    ];
    for (verb, argument, expected, named) in cases {
        let (code, message, next) = refusal(&mut client, verb, std::slice::from_ref(&argument))?;
        assert_eq!(code, expected, "{verb} {argument}: {message}");
        assert!(!next.is_empty() && next.contains(&named), "{verb} {argument}: {next}");
    }
    let id = client.send_request("pactify/job/fly", json!({}))?;
    assert_eq!(client.answer(id, JOB)?.err().context("no error")?.code, -32601);
    let twin = client.request("pactify/job/status", json!({"all": true}))?;
    assert_eq!(twin, run(&mut client, "status", json!({"all": true}))?);
    Ok(())
}

#[test]
fn shutting_down_ends_the_progress_and_leaves_the_job() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let go = sandbox.root().join("go");
    let mut client = open(&sandbox, &[&repository], &plain())?;
    let wait = json!({"waitFor": [go.display().to_string(), 600.0]});
    let job = delegate(&mut client, json!([wait, write("a.txt", "a\n")]))?;
    let (token, _) = progress(&client, "begin")?;
    client.request("shutdown", Value::Null)?;
    assert_eq!(progress(&client, "end")?.0, token);
    client.notify("exit", Value::Null)?;
    assert_eq!(client.wait_for_exit(JOB)?.code(), Some(0));

    let mut later = open(&sandbox, &[&repository], &plain())?;
    progress(&later, "begin")?;
    std::fs::write(&go, "")?;
    progress(&later, "end")?;
    assert_eq!(status(&mut later, &job)?["outcome"], "succeeded");
    Ok(())
}

#[test]
fn a_host_that_dies_under_an_open_editor_is_one_progress_and_one_error() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut client = open(&sandbox, &[&repository], &plain())?;
    let job = delegate(&mut client, json!([write("half.txt", "half\n"), "hang"]))?;
    let report = |message: &Value| {
        let text = message["params"]["value"]["message"].as_str().unwrap_or_default();
        message["method"] == "$/progress" && text.contains("half.txt")
    };
    client.take("a report of the edit", JOB, report)?;
    let events = run(&mut client, "events", json!({"jobId": job}))?;
    let host =
        events["events"].as_array().into_iter().flatten().find_map(|event| event["event"]["host"]["pid"].as_i64());
    let host = host.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).context("no host")?;
    kill_process(host, Signal::KILL)?;

    progress(&client, "end")?;
    let (kind, text) = message(&client)?;
    assert_eq!(kind, 1, "an error: {text}");
    assert_eq!(kinds(&client).iter().filter(|kind| *kind != "report").count(), 1, "the begin alone is left");
    let lost = status(&mut client, &job)?;
    assert_eq!((&lost["state"], &lost["changes"]["files"]), (&json!("finished"), &json!(1)), "{lost:#}");
    Ok(())
}

#[test]
fn a_read_only_job_that_writes_is_an_error_that_names_it() -> Result<()> {
    let sandbox = scripted_sandbox()?;
    let repository = sandbox.filled("one")?;
    let mut client = open(&sandbox, &[&repository], &plain())?;
    let text = brief(&json!(["ignoreSandbox", write("a.txt", "a\n")]));
    run(&mut client, "delegate", json!({"brief": text, "access": "readOnly"}))?;
    let (kind, text) = message(&client)?;
    assert_eq!(kind, 1, "{text}");
    assert!(text.contains("read-only") && text.contains("(readOnlyViolated)"), "{text}");
    assert_eq!(repository.status()?, "");
    Ok(())
}
