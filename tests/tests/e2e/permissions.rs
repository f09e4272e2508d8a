//! Permissions that people decide: any number at once, answered from anywhere, by whoever is first.
//!
//! The agent is a shell script that speaks as much of the Agent Client Protocol as it takes to ask; it notes each
//! answer.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pactify_tests::editor::{Editor, JOB, configure, limit, uri};
use pactify_tests::lsp::{Client, Launch, Reply};
use pactify_tests::outside;
use pactify_tests::sandbox::{Repository, Sandbox};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Asks for as many permissions as its first argument says, and ends its turn when all are answered. Its options are in
/// a hostile order, under hostile names. Its third argument is a command that it wants to run, if there is one.
const AGENT: &str = r#"
say() { printf '%s\n' "$1"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | grep -o '"id":[0-9]*' | head -n 1 | cut -d: -f2)
  case $line in
  *'"outcome"'*)
    printf '%s\n' "$line" >> "$2"
    if [ "$(wc -l < "$2")" -eq "$1" ]; then
      echo done > by-the-job
      say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}}}'
      say "{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{\"stopReason\":\"end_turn\"}}"
    fi ;;
  *'"initialize"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{}}}" ;;
  *'"session/new"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"s\"}}" ;;
  *'"session/prompt"'*)
    prompt=$id
    for number in $(seq "$1"); do
      say "{\"jsonrpc\":\"2.0\",\"id\":$((1000 + number)),\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s\",\"toolCall\":{\"toolCallId\":\"c$number\",\"title\":\"step $number\",\"rawInput\":{\"command\":\"${3:-step $number}\"}},\"options\":[{\"optionId\":\"never\",\"name\":\"Allow\",\"kind\":\"reject_always\"},{\"optionId\":\"no\",\"name\":\"Yes\",\"kind\":\"reject_once\"},{\"optionId\":\"yes\",\"name\":\"No\",\"kind\":\"allow_once\"}]}}"
    done ;;
  esac
done
"#;

pub(crate) struct Stage {
    pub(crate) sandbox: Sandbox,
    answers: PathBuf,
}

impl Stage {
    pub(crate) fn new(requests: u32, answer_seconds: u32) -> Result<Self> {
        Self::running(requests, answer_seconds, "")
    }

    /// With an agent that asks for `command`.
    pub(crate) fn running(requests: u32, answer_seconds: u32, command: &str) -> Result<Self> {
        let sandbox = Sandbox::new()?;
        let (script, answers) = (sandbox.root().join("asker.sh"), sandbox.root().join("answers"));
        std::fs::write(&script, AGENT)?;
        let args = json!([script, requests.to_string(), answers, command]);
        let text = format!(
            "[defaults]\nharness = \"asker\"\n[harnesses.asker]\ncommand = \"sh\"\nargs = {args}\nprotocol = \"acp\"\n"
        );
        configure(&sandbox, &text)?;
        limit(&sandbox, "answer-seconds", answer_seconds)?;
        Ok(Self { sandbox, answers })
    }

    pub(crate) fn repository(&self) -> Result<Repository<'_>> {
        self.sandbox.filled("one")
    }

    /// The options that the agent was given, by the number of its request.
    fn answers(&self) -> Result<Vec<(u64, String)>> {
        let read = |line: &str| -> Result<(u64, String)> {
            let answer: Value = serde_json::from_str(line)?;
            let outcome = &answer["result"]["outcome"];
            let option = outcome["optionId"].as_str().or(outcome["outcome"].as_str()).context("no outcome")?;
            Ok((answer["id"].as_u64().context("no id")? - 1000, option.to_owned()))
        };
        let mut answers: Vec<_> = std::fs::read_to_string(&self.answers)?.lines().map(read).collect::<Result<_>>()?;
        answers.sort();
        Ok(answers)
    }
}

/// The job's open requests, once there are so many.
fn open(editor: &mut Editor, job: &str, count: usize) -> Result<Value> {
    let deadline = Instant::now() + JOB;
    loop {
        let status = editor.status(job)?;
        if status["requests"].as_array().map_or(0, Vec::len) == count {
            return Ok(status);
        }
        ensure!(Instant::now() < deadline, "not {count} requests are open: {status:#}");
        let _ = editor.client().notification("pactify/job/event", Duration::from_millis(200));
    }
}

/// An editor that asks its person; the test is that person.
fn asking(sandbox: &Sandbox, folder: &Path) -> Result<Client> {
    let answers = |method: &str, _: &Value| match method {
        "window/showMessageRequest" => Reply::Never,
        _ => Reply::Result(Value::Null),
    };
    let server = Launch::new(sandbox.command(outside::program("pactify-lsp")?)).arg("--stdio").answering(answers);
    let mut client = server.spawn()?;
    client.initialize_with(json!({
        "processId": null,
        "workspaceFolders": [{"uri": uri(folder), "name": "folder"}],
        "capabilities": {"window": {"showMessage": {}}, "workspace": {"workspaceFolders": true}},
    }))?;
    Ok(client)
}

#[test]
fn several_requests_are_answered_from_anywhere_and_outlive_the_server() -> Result<()> {
    let stage = Stage::new(3, 600)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("ask", &json!({"permissions": "ask"}))?;
    let status = open(&mut editor, &job, 3)?;
    assert_eq!((&status["state"], &status["waitingMore"]), (&json!("waiting"), &json!(2)), "{status:#}");
    assert_eq!(status["waiting"], status["requests"][0]);
    assert_eq!(status["waiting"]["title"], "step 1", "{status:#}");
    let events = editor.run("events", &json!({"jobId": job, "limit": 1000}))?;
    let is_request = |event: &&Value| event["event"]["type"] == "permissionRequested";
    let asked = events["events"].as_array().into_iter().flatten().find(is_request).context("no request")?;
    ensure!(asked["at"].is_string() && status["waiting"]["since"] == asked["at"], "{asked:#} {status:#}");
    let ids: Vec<String> =
        (0..3).map(|at| status["requests"][at]["requestId"].as_str().unwrap_or("").to_owned()).collect();

    let answer = |request: &str, option: &str| json!({"jobId": job, "requestId": request, "optionId": option});
    assert_eq!(editor.refused("answer", &answer(&ids[0], "perhaps"))?.reason(), "invalidParams");
    assert_eq!(editor.refused("answer", &answer("another", "yes"))?.reason(), "requestNotOpen");
    editor.run("answer", &answer(&ids[0], "yes"))?;
    assert_eq!(editor.refused("answer", &answer(&ids[0], "no"))?.reason(), "requestNotOpen", "a second time");
    let several = stage.sandbox.start("pactify", &["sub", "answer", &job, "--deny"], b"")?.wait(JOB)?;
    ensure!(several.code() == 2 && several.stderr.contains("2 requests are open"), "{}", several.stderr);
    let denied = ["sub", "answer", &job, "--deny", "--request", &ids[1]];
    stage.sandbox.start("pactify", &denied, b"")?.wait(JOB)?.success()?;
    open(&mut editor, &job, 1)?;
    editor.client().signal(Signal::KILL)?;
    drop(editor);

    let client = asking(&stage.sandbox, repository.path())?;
    let (id, question) = client.server_request("window/showMessageRequest", JOB)?;
    let told = question["message"].as_str().context("no message")?;
    ensure!(told.contains(" asks (") && told.ends_with(" ago): step 3"), "since when it is open: {told}");
    let titles: Vec<&Value> =
        question["actions"].as_array().into_iter().flatten().map(|action| &action["title"]).collect();
    assert_eq!(titles, ["Always deny: Allow", "Deny: Yes", "Allow: No"]);
    client.respond(id, Reply::Result(json!({"title": "Allow: No"})))?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    editor.until(&job, "finished")?;
    let told = |all: &[(u64, &str)]| all.iter().map(|(id, option)| (*id, (*option).to_owned())).collect::<Vec<_>>();
    assert_eq!(stage.answers()?, told(&[(1, "yes"), (2, "no"), (3, "yes")]));
    assert_eq!(editor.refused("answer", &answer(&ids[2], "yes"))?.reason(), "requestNotOpen", "the job is over");
    Ok(())
}

#[test]
fn what_is_asked_for_is_shown_whole_and_since_when() -> Result<()> {
    let token = format!("ghp_{}", "0aB1".repeat(9));
    let command = format!("echo {} {token} {}; rm -rf the-end-of-it", "a".repeat(900), " ".repeat(20_000));
    let stage = Stage::running(1, 600, &command)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("ask", &json!({"permissions": "ask"}))?;
    let status = open(&mut editor, &job, 1)?;
    let request = &status["requests"][0];
    let detail = request["detail"].as_str().context("no detail")?;
    ensure!(detail.ends_with("[… 20001 blanks] ; rm -rf the-end-of-it"), "{detail}");
    ensure!(detail.contains("[redacted]") && !status.to_string().contains(&token), "{detail}");
    assert_eq!(status["waiting"]["detail"], Value::Null, "a list has no details");

    let pactify = |arguments: &[&str]| -> Result<String> {
        Ok(stage.sandbox.start("pactify", &[&["sub"], arguments].concat(), b"")?.wait(JOB)?.success()?.stdout)
    };
    let printed = pactify(&["answer", &job])?;
    ensure!(printed.contains(detail) && printed.contains(" ago)"), "{printed}");
    let shown = pactify(&["show", &job])?;
    ensure!(shown.contains(" ago; `pactify sub answer") && shown.contains("shows all of it"), "{shown}");

    let client = asking(&stage.sandbox, repository.path())?;
    let (_, question) = client.server_request("window/showMessageRequest", JOB)?;
    let told = question["message"].as_str().context("no message")?;
    ensure!(
        told.chars().count() < 1000 && told.contains(&format!("`pactify sub answer {job}` shows them all")),
        "{told}"
    );
    pactify(&["answer", &job, "--deny"])?;
    editor.until(&job, "finished")?;
    Ok(())
}

#[test]
fn fifty_at_once_are_all_answered() -> Result<()> {
    let stage = Stage::new(50, 600)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("ask", &json!({"permissions": "ask"}))?;
    let status = open(&mut editor, &job, 50)?;
    for request in status["requests"].as_array().context("no requests")?.iter().rev() {
        editor.run("answer", &json!({"jobId": job, "requestId": request["requestId"], "optionId": "yes"}))?;
    }
    assert_eq!(editor.until(&job, "finished")?["outcome"], "succeeded");
    let answers = stage.answers()?;
    ensure!(answers.len() == 50 && answers.iter().all(|(_, option)| option == "yes"), "{answers:?}");
    Ok(())
}

#[test]
fn the_first_of_two_editors_decides_and_the_other_s_answer_means_nothing() -> Result<()> {
    let stage = Stage::new(1, 600)?;
    let repository = stage.repository()?;
    let (one, two) = (asking(&stage.sandbox, repository.path())?, asking(&stage.sandbox, repository.path())?);
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("ask", &json!({"permissions": "ask"}))?;
    let (first, _) = one.server_request("window/showMessageRequest", JOB)?;
    let (second, _) = two.server_request("window/showMessageRequest", JOB)?;
    one.respond(first, Reply::Result(json!({"title": "Deny: Yes"})))?;
    editor.until(&job, "finished")?;
    two.respond(second, Reply::Result(json!({"title": "Allow: No"})))?;
    let said = two.notification("window/showMessage", JOB)?;
    ensure!(!said["message"].to_string().contains("not open"), "{said:#}");
    assert_eq!(stage.answers()?, [(1, "no".to_owned())]);
    Ok(())
}

#[test]
fn silence_is_a_no_and_who_cannot_ask_is_not_started() -> Result<()> {
    let stage = Stage::new(2, 1)?;
    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = editor.delegate("ask", &json!({"permissions": "ask"}))?;
    editor.until(&job, "finished")?;
    let answers = stage.answers()?;
    ensure!(answers.len() == 2 && answers.iter().all(|(_, option)| option == "no"), "{answers:?}");
    let answered = editor.event(&job, "permissionAnswered")?;
    assert_eq!(answered["option"], Value::Null, "{answered:#}");

    let refused = editor.refused("delegate", &json!({"brief": "x", "harness": "codex", "permissions": "ask"}))?;
    ensure!(refused.reason() == "invalidParams" && refused.message.contains("does not ask"), "{}", refused.message);
    Ok(())
}
