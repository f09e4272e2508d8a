//! Sockets, routes, limits and time of the provider.
//!
//! Reads a request, lets [`super::reply`] decide, and sends what it decided when it is due. A client that leaves early
//! is noticed at once and logged. Besides the API there are `GET /__log` (the log as JSON) and `POST /__reset` (forgets
//! log and progress) for those who drive the provider as a process.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, UPGRADE};
use hyper::http::{request, response};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};

use super::log::{Entry, Kind, Log};
use super::reply::{Chunk, Reply, Then, Wire};
use super::script::{Script, Scripts, Step};

/// Connections served at a time; more wait in the listener's queue.
const MOST_CONNECTIONS: usize = 256;
/// codex sends about 40 kB to begin with.
const LARGEST_BODY: usize = 16 << 20;
/// Sessions whose progress is kept.
const MOST_SESSIONS: usize = 10_000;
/// A request must have arrived after this long.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);

/// What all connections share, with each other and with the handle.
pub(super) struct Shared {
    scripts: Scripts,
    turns: Mutex<HashMap<(String, String), usize>>,
    answers: AtomicUsize,
    seed: u64,
    pub(super) log: Log,
}

impl Shared {
    pub(super) fn new(scripts: Scripts) -> Self {
        // Ids must differ between providers too: a resumed conversation may meet a second one.
        let seed = RandomState::new().hash_one("scripted-provider");
        Self { scripts, turns: Mutex::default(), answers: AtomicUsize::new(0), seed, log: Log::new() }
    }
}

/// Serves until told to stop; then every connection is cut.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let free = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            let permit = Arc::clone(&free).acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            _ = &mut stopped => return,
            accepted = accepted => accepted,
        };
        // A connection that was reset before it was accepted says nothing about the next one.
        let Ok((stream, _)) = accepted else { continue };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&shared), request));
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_PATIENCE)
                .serve_connection(TokioIo::new(stream), service);
            // Errors are the client's: it left, or it is cut off as its script wants.
            let _ = connection.await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the script drops this connection")]
struct Dropped;

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Timed>, Dropped> {
    let (head, body) = request.into_parts();
    let (reply, entry) = match read(&head, body).await {
        Ok((body, bytes)) => route(&shared, &head, body, bytes),
        Err(refusal) => (refusal, None),
    };
    let mut watch = Watch { shared: Arc::clone(&shared), entry };
    if !reply.pause.is_zero() {
        sleep(reply.pause).await;
    }
    match reply.then {
        Then::Close => {
            watch.entry = None;
            Err(Dropped)
        }
        Then::Send { status, headers, chunks } => {
            let mut builder = response::Builder::new().status(status);
            for (name, value) in headers {
                builder = builder.header(name, value);
            }
            let body = Timed { chunks: chunks.into_iter(), next: None, watch };
            // A script may hold a status or a header that HTTP doesn't know.
            builder.body(body).map_err(|_| Dropped)
        }
    }
}

/// The body as JSON (or as text, if it isn't) and its size, or why it isn't taken.
async fn read(head: &request::Parts, body: Incoming) -> Result<(Value, usize), Reply> {
    if let Some(encoding) = head.headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        let message = format!("the scripted provider reads bodies that aren't compressed, this one is {encoding:?}");
        return Err(Reply::refusal(415, &message));
    }
    let collected = match timeout(REQUEST_PATIENCE, Limited::new(body, LARGEST_BODY).collect()).await {
        Err(_) => return Err(Reply::refusal(408, "the request body took too long")),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return Err(Reply::refusal(413, &format!("the request body is larger than {LARGEST_BODY} bytes")));
        }
        Ok(Err(error)) => return Err(Reply::refusal(400, &format!("the request body broke off: {error}"))),
        Ok(Ok(collected)) => collected.to_bytes(),
    };
    if collected.is_empty() {
        return Ok((Value::Null, 0));
    }
    let text = || Value::String(String::from_utf8_lossy(&collected).into_owned());
    Ok((serde_json::from_slice(&collected).unwrap_or_else(|_| text()), collected.len()))
}

/// The answer, and the log entry to repeat should the client not wait for it.
fn route(shared: &Shared, head: &request::Parts, body: Value, bytes: usize) -> (Reply, Option<Entry>) {
    let path = head.uri.path();
    match (&head.method, path) {
        (&Method::GET, "/__log") => return (Reply::json(200, &json!(shared.log.entries())), None),
        (&Method::POST, "/__reset") => {
            shared.log.clear();
            shared.turns.lock().unwrap_or_else(PoisonError::into_inner).clear();
            return (Reply::json(200, &json!({"ok": true})), None);
        }
        _ => {}
    }
    let (name, rest) = script_of(path);
    let mut entry = entry(head, name, body, bytes);
    let Some(script) = shared.scripts.get(name) else {
        shared.log.push(entry);
        let known = shared.scripts.names().collect::<Vec<_>>().join(", ");
        return (Reply::refusal(404, &format!("no script {name:?}; there are: {known}")), None);
    };
    let is = |method: &Method, end: &str| head.method == *method && rest.ends_with(end);
    if is(&Method::POST, "/responses") {
        return respond(shared, script, Wire::Responses, entry);
    }
    if is(&Method::POST, "/chat/completions") {
        return respond(shared, script, Wire::Chat, entry);
    }
    let reply = if is(&Method::POST, "/oauth/token") {
        entry.kind = Kind::OAuth;
        match &script.oauth {
            Some(answer) => Reply::json(answer.status, &answer.body),
            None => Reply::refusal(404, "this script has no oauth answer"),
        }
    } else if head.headers.contains_key(UPGRADE) {
        Reply::refusal(script.ws_status.unwrap_or(426), "no WebSocket here")
    } else if is(&Method::GET, "/models") {
        models(script)
    } else {
        Reply::refusal(404, &format!("no route {} {path}", head.method))
    };
    shared.log.push(entry);
    (reply, None)
}

fn respond(shared: &Shared, script: &Script, wire: Wire, mut entry: Entry) -> (Reply, Option<Entry>) {
    if script.require_auth.as_ref().is_some_and(|wanted| entry.headers.get(AUTHORIZATION.as_str()) != Some(wanted)) {
        entry.kind = Kind::Unauthorized;
        shared.log.push(entry);
        let error = json!({"message": "Incorrect API key provided", "type": "invalid_request_error",
            "code": "invalid_api_key"});
        return (Reply::json(401, &json!({"error": error})), None);
    }
    let seed = || format!("{:016x}{:06}", shared.seed, shared.answers.fetch_add(1, Ordering::Relaxed));
    if wire == Wire::Chat && entry.body["tools"].as_array().is_none_or(Vec::is_empty) {
        let reply = Reply::to(&Step::message("A title"), wire, &entry.body, &seed());
        shared.log.push(entry);
        return (reply, None);
    }
    entry.kind = Kind::Request;
    {
        let mut turns = shared.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (entry.script.clone(), entry.session.clone());
        if turns.len() >= MOST_SESSIONS && !turns.contains_key(&key) {
            return (Reply::refusal(503, "too many sessions"), None);
        }
        let turn = turns.entry(key).or_insert(0);
        entry.turn = *turn;
        *turn += 1;
    }
    let reply = Reply::to(&script.step(entry.turn), wire, &entry.body, &seed());
    // The copy for a client that leaves needs no second copy of what it had sent.
    let gone = Entry { kind: Kind::ClientGone, body: Value::Null, bytes: 0, ..entry.clone() };
    shared.log.push(entry);
    (reply, Some(gone))
}

fn models(script: &Script) -> Reply {
    if let Some(status) = script.models_status {
        return Reply::refusal(status, "the script refuses to list models");
    }
    let model = json!({"id": "scripted-model", "object": "model", "created": 0, "owned_by": "scripted-provider"});
    Reply::json(200, &script.models.clone().unwrap_or_else(|| json!({"object": "list", "data": [model]})))
}

/// `/s/NAME/rest` names a script, any other path means `default`.
fn script_of(path: &str) -> (&str, &str) {
    match path.strip_prefix("/s/").map(|named| named.split_once('/').unwrap_or((named, ""))) {
        Some((name, _)) => (name, &path["/s/".len() + name.len()..]),
        None => ("default", path),
    }
}

fn entry(head: &request::Parts, script: &str, body: Value, bytes: usize) -> Entry {
    let headers: BTreeMap<String, String> = head
        .headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect();
    let in_header = ["session-id", "session_id", "x-session-id"].iter().find_map(|name| headers.get(*name)).cloned();
    let session = in_header.or_else(|| body["prompt_cache_key"].as_str().map(str::to_owned));
    Entry {
        at: Duration::ZERO,
        kind: Kind::Other,
        method: head.method.to_string(),
        path: head.uri.to_string(),
        script: script.to_owned(),
        session: session.unwrap_or_else(|| "-".to_owned()),
        turn: 0,
        headers,
        body,
        bytes,
    }
}

/// Logs, when dropped with its entry, that the client didn't wait for the end of the answer.
struct Watch {
    shared: Arc<Shared>,
    entry: Option<Entry>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.shared.log.push(entry);
        }
    }
}

/// A body whose chunks come when they are due.
struct Timed {
    chunks: std::vec::IntoIter<Chunk>,
    next: Option<(Pin<Box<Sleep>>, String)>,
    watch: Watch,
}

impl Body for Timed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some((due, text)) = &mut self.next {
                ready!(due.as_mut().poll(context));
                let text = std::mem::take(text);
                self.next = None;
                if !text.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(text.into()))));
                }
            }
            let Some(chunk) = self.chunks.next() else {
                self.watch.entry = None;
                return Poll::Ready(None);
            };
            self.next = Some((Box::pin(sleep(chunk.after)), chunk.text));
        }
    }
}
