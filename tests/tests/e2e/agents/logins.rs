//! Logins of kimi and opencode, refreshed by the real programs while a job uses them. Cases of the conformance suite.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use pactify_tests::editor::{Editor, JOB};
use pactify_tests::provider::{Entry, Kind};
use pactify_tests::rendezvous;
use rustix::process::Pid;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Agent, PATIENCE, Stage, finished};
use crate::codex::process_of;

/// A person who is logged in to kimi with tokens that have ended, and what its server says of new ones.
struct LoggedIn {
    stage: Stage,
    login: PathBuf,
    before: String,
}

impl LoggedIn {
    fn to_kimi(answer: &Value) -> Result<Self> {
        let steps = json!([{"edit": {"path": "a.txt", "content": "a\n"}}, {"message": "Done."}]);
        let mut stage = Stage::new(Agent::Kimi, &json!({"x": {"steps": steps, "oauth": answer}}))?;
        let url = stage.provider.base_url("x");
        let host = url.trim_end_matches("/v1").to_owned();
        stage.sandbox.set("KIMI_CODE_OAUTH_HOST", &host);
        // Where its servers are others than kimi's own, a login's name says which.
        let servers = Sha256::digest(format!("{{\"oauthHost\":\"{host}\",\"baseUrl\":\"{url}\"}}"));
        let servers: String = servers.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let name = format!("kimi-code-env-{servers}");
        let own = stage.sandbox.home().join(".kimi-code");
        let config = format!(
            "default_model = \"x\"\n[providers.\"managed:kimi-code\"]\ntype = \"kimi\"\nbase_url = {url:?}\napi_key = \"\"\n\
             oauth = {{ storage = \"file\", key = \"oauth/{name}\", oauth_host = {host:?} }}\n[models.x]\nprovider = \"managed:kimi-code\"\n\
             model = \"scripted\"\nmax_context_size = 131072\ncapabilities = [\"tool_use\"]\n"
        );
        fs::write(own.join("config.toml"), config)?;
        fs::create_dir_all(own.join("credentials"))?;
        let login = own.join("credentials").join(format!("{name}.json"));
        let before = json!({"access_token": "old-access", "refresh_token": "old-refresh", "expires_at": 1_600_000_000,
            "scope": "kimi-code", "token_type": "Bearer", "expires_in": 3600})
        .to_string();
        fs::write(&login, &before)?;
        fs::set_permissions(&login, fs::Permissions::from_mode(0o600))?;
        let config = stage.sandbox.config_home().join("pactify/config.toml");
        let text = fs::read_to_string(&config)?;
        let let_through = "[harnesses.kimi]\nenvironment = [\"KIMI_CODE_OAUTH_HOST\"]\n";
        fs::write(&config, text.replace("[harnesses.kimi]\n", let_through))?;
        Ok(Self { stage, login, before })
    }

    /// Has a job done, for which kimi asks for new tokens; the job, and how it ended.
    fn delegate(&self) -> Result<(String, Value)> {
        let repository = self.stage.repository()?;
        let mut editor = Editor::open(&self.stage.sandbox, repository.path())?;
        let job = self.stage.delegate(&mut editor, "Add a file.", json!({}))?;
        let status = finished(&mut editor, &job)?;
        let is_refresh = |entry: &Entry| entry.kind == Kind::OAuth;
        ensure!(self.stage.provider.log().iter().any(is_refresh), "nobody asked for new tokens: {status:#}");
        Ok((job, status))
    }
}

/// kimi asks its server for a new one, because the old one has ended, and replaces the file that it is in.
pub(crate) fn kimi_refreshes_it_where_the_person_keeps_it() -> Result<()> {
    let fresh = json!({"access_token": "fresh-access", "refresh_token": "fresh-refresh", "expires_in": 3600,
        "scope": "kimi-code", "token_type": "Bearer"});
    let person = LoggedIn::to_kimi(&json!({"body": fresh}))?;
    let (job, status) = person.delegate()?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let LoggedIn { stage, login, .. } = &person;
    let asked = &stage.provider.requests()[0];
    assert_eq!(asked.headers.get("authorization").map(String::as_str), Some("Bearer fresh-access"));
    let kept = fs::read_to_string(login)?;
    assert!(kept.contains("fresh-refresh") && !login.is_symlink(), "{kept}");
    let inside = fs::canonicalize(stage.sandbox.job(&job).join("home/kimi/credentials")).context("no link")?;
    let own = login.parent().context("no folder")?;
    assert_eq!(inside, fs::canonicalize(own)?, "the job was led to it, and had no copy");
    Ok(())
}

/// Its server refuses a new one, and kimi empties the file (measured): a login that another program of the person's may
/// just have refreshed.
#[test]
fn a_login_that_kimi_emptied_after_a_refused_refresh_is_the_person_s_again() -> Result<()> {
    let refusal = json!({"error": "invalid_grant", "error_description": "the refresh token is not valid"});
    let person = LoggedIn::to_kimi(&json!({"status": 401, "body": refusal}))?;
    let (_, status) = person.delegate()?;
    assert_eq!(
        (&status["outcome"], &status["error"]["code"]),
        (&json!("failed"), &json!("loginRequired")),
        "{status:#}"
    );
    // Only what was emptied is told to have come back.
    let notices = status["notices"].to_string();
    ensure!(notices.contains("emptied its login while the job ran") && !notices.contains("old-refresh"), "{status:#}");
    assert_eq!(fs::read_to_string(&person.login)?, person.before);
    assert_eq!(fs::metadata(&person.login)?.permissions().mode() & 0o777, 0o600);
    Ok(())
}

/// opencode writes it through the link. Its own servers cannot be stood in for, so it is told to write by the interface
/// that it opens on the loopback: with the password, which nobody but the job is given.
pub(crate) fn opencode_writes_it_where_the_person_keeps_it() -> Result<()> {
    let wait = "touch started; while ! test -e go; do sleep 0.1; done";
    let stage = Stage::playing(Agent::Opencode, &json!([Agent::Opencode.run(wait), {"message": "Done."}]))?;
    let config = stage.sandbox.config();
    fs::write(&config, fs::read_to_string(&config)?.replace("apiKey = \"{env:GATEWAY_KEY}\"\n", ""))?;
    let login = stage.sandbox.home().join(".local/share/opencode/auth.json");
    fs::create_dir_all(login.parent().context("no folder")?)?;
    fs::write(&login, json!({"x": {"type": "api", "key": "its-own-login"}}).to_string())?;

    let repository = stage.repository()?;
    let mut editor = Editor::open(&stage.sandbox, repository.path())?;
    let job = stage.delegate(&mut editor, "Wait a little.", json!({}))?;
    let tree = stage.sandbox.job(&job).join("tree");
    editor.event_within(&job, "launched", JOB * PATIENCE)?;
    rendezvous::appears(&tree.join("started"), JOB * PATIENCE)?;
    let process = process_of(&job, |arguments| arguments.contains(" acp ")).context("no opencode")?;
    let (port, password) = (port_of(process)?, variable_of(process, "OPENCODE_SERVER_PASSWORD")?);
    let fresh = json!({"type": "api", "key": "refreshed-login"}).to_string();
    let refused = put(port, "/auth/x", "wrong", &fresh)?;
    ensure!(refused.starts_with("HTTP/1.1 401"), "who has no password gets no answer: {refused}");
    let answer = put(port, "/auth/x", &password, &fresh)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    fs::write(tree.join("go"), "")?;

    let status = finished(&mut editor, &job)?;
    assert_eq!(status["outcome"], "succeeded", "{status:#}");
    let asked = &stage.provider.requests()[0];
    assert_eq!(asked.headers.get("authorization").map(String::as_str), Some("Bearer its-own-login"));
    let kept = fs::read_to_string(&login)?;
    ensure!(kept.contains("refreshed-login") && !login.is_symlink(), "{kept}");
    let link = stage.sandbox.job(&job).join("home/data/opencode/auth.json");
    assert_eq!(fs::canonicalize(&link)?, fs::canonicalize(&login)?, "the job was led to it, and had no copy");
    Ok(())
}

/// The port on which a process listens on the loopback.
fn port_of(process: Pid) -> Result<u16> {
    let folder = format!("/proc/{}", process.as_raw_nonzero());
    let open = fs::read_dir(format!("{folder}/fd"))?.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let open: Vec<String> = open.map(|target| target.display().to_string()).collect();
    let table = fs::read_to_string(format!("{folder}/net/tcp"))?;
    let listening = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Its columns: the second is the address, the fourth the state (0A: it listens), the tenth the socket.
    let own = listening.into_iter().find(|columns| {
        columns.get(3) == Some(&"0A") && columns.get(9).is_some_and(|inode| open.contains(&format!("socket:[{inode}]")))
    });
    let own = own.with_context(|| format!("it listens nowhere: {table}"))?;
    let port = own[1].split(':').nth(1).context("no port")?;
    Ok(u16::from_str_radix(port, 16)?)
}

/// A variable of a process.
fn variable_of(process: Pid, name: &str) -> Result<String> {
    let environment = fs::read_to_string(format!("/proc/{}/environ", process.as_raw_nonzero()))?;
    let value = environment.split('\0').find_map(|variable| variable.strip_prefix(name)?.strip_prefix('='));
    Ok(value.with_context(|| format!("{name} is not set"))?.to_owned())
}

/// Asks opencode's own server to put something; the first line of its answer. (It keeps the connection open.)
fn put(port: u16, path: &str, password: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(JOB))?;
    let credentials = base64(format!("opencode:{password}").as_bytes());
    write!(
        stream,
        "PUT {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Basic {credentials}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = |chunk: &[u8]| -> String {
        let bits = (0..3).fold(0_usize, |bits, at| bits << 8 | usize::from(chunk.get(at).copied().unwrap_or(0)));
        let letter = |at: usize| {
            if at > chunk.len() { '=' } else { char::from(LETTERS[bits >> (18 - 6 * at) & 63]) }
        };
        (0..4).map(letter).collect()
    };
    bytes.chunks(3).map(letters).collect()
}
