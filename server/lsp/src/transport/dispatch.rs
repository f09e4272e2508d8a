//! Messages to the service, its answers to the outbox.
//!
//! Owns: which handlers run, what becomes of a panic, whose request an answer of the client belongs to, and when the
//! session is over. Never waits for a handler: each is polled once where it arrives (so that notifications take effect
//! in order, and a quick answer costs no task) and spawned only if it is not done by then.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_util::Sink;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower_lsp::ExitedError;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};
use tower_service::Service;

use super::Ending;
use super::editor::Editor;
use super::frame::{Event as Frame, Fault};
use super::message::{self, Incoming, with_message};
use super::outbox::Outbox;
use super::written;

/// Requests of the client that may run at once; the next one is refused, so that a runaway client costs no memory.
const MAX_RUNNING: usize = 1024;
/// Requests sent through tower-lsp's `Client` whose answers are remembered.
const MAX_FORWARDED: usize = 1024;
/// The specification's `RequestFailed`.
const REQUEST_FAILED: i64 = -32803;

/// What happens without the client saying anything.
pub(super) enum Happening {
    Finished(Finished),
    EditorGone,
}

/// A handler that is done.
pub(super) struct Finished {
    id: Option<Id>,
    outcome: Result<Result<Option<Response>, ExitedError>, Box<dyn Any + Send>>,
    /// The result that stands behind a response of success, if the handler wrote it.
    written: Option<written::Text>,
}

pub(super) struct Dispatcher<S, R> {
    service: S,
    /// Where answers to requests of tower-lsp's `Client` go.
    replies: R,
    forwarded: VecDeque<Id>,
    running: JoinSet<Finished>,
    outbox: Outbox,
    editor: Editor,
    shut_down: bool,
}

impl<S, R> Dispatcher<S, R>
where
    S: Service<Request, Response = Option<Response>, Error = ExitedError>,
    S::Future: Send + 'static,
    R: Sink<Response, Error = ExitedError> + Unpin,
{
    pub(super) fn new(service: S, replies: R, outbox: Outbox) -> Self {
        Self {
            service,
            replies,
            forwarded: VecDeque::new(),
            running: JoinSet::new(),
            outbox,
            editor: Editor::default(),
            shut_down: false,
        }
    }

    /// Acts on what the client sent.
    pub(super) fn on_frame(&mut self, frame: Frame) -> ControlFlow<Ending> {
        let body = match frame {
            Frame::Body(body) => body,
            Frame::Fault(fault) => {
                self.refuse(Id::Null, refusal(&fault));
                return ControlFlow::Continue(());
            }
        };
        match message::parse(&body) {
            Incoming::Notification { method, .. } if method == "exit" => return ControlFlow::Break(self.exit()),
            Incoming::Notification { method, params } => self.on_notification(method, params),
            Incoming::Request { id, method, params } => self.on_request(id, method, params),
            Incoming::Answer { id, result } => self.on_answer(id, result),
            Incoming::Refused { id, error } => self.refuse(id, error),
            Incoming::Complaint(error) => tracing::warn!(%error, "the client could not read a message"),
        }
        ControlFlow::Continue(())
    }

    /// Sends on what the server said through tower-lsp's `Client`.
    pub(super) fn on_forward(&mut self, request: &Request) {
        if let Some(id) = request.id() {
            if self.forwarded.len() == MAX_FORWARDED {
                self.forwarded.pop_front();
            }
            self.forwarded.push_back(id.clone());
        }
        self.outbox.forward(request);
    }

    /// Waits for a spawned handler to be done, or the editor to be gone.
    pub(super) async fn next(&mut self) -> Happening {
        tokio::select! {
            // Panics are caught inside the task and nothing aborts one, so a task always has a result.
            Some(Ok(finished)) = self.running.join_next() => Happening::Finished(finished),
            () = self.editor.gone() => Happening::EditorGone,
        }
    }

    /// Answers for a handler that is done.
    pub(super) fn on_finished(&mut self, Finished { id, outcome, written }: Finished) {
        match (id, outcome) {
            (_, Ok(Ok(Some(response)))) => match written {
                Some(result) if response.is_ok() => self.outbox.respond_written(response.id(), &result),
                _ => self.outbox.respond(&response),
            },
            // tower-lsp keeps silent about unknown requests that begin with `$/`; the specification wants an error.
            (Some(id), Ok(Ok(None))) => self.refuse(id, Error::method_not_found()),
            (Some(id), Ok(Err(ExitedError { .. }))) => self.refuse(id, Error::invalid_request()),
            (None, Ok(_)) => {}
            (id, Err(panic)) => self.on_panic(id, panic.as_ref()),
        }
    }

    /// The client sends no more.
    pub(super) fn on_input_end(&self) -> Ending {
        if self.shut_down { Ending::Orderly } else { Ending::InputClosed }
    }

    fn exit(&self) -> Ending {
        if self.shut_down { Ending::Orderly } else { Ending::ExitWithoutShutdown }
    }

    fn on_notification(&mut self, method: String, params: Option<Value>) {
        if method == "window/workDoneProgress/cancel"
            && let Some(token) = params.as_ref().and_then(|params| params.get("token"))
            && let Ok(token) = serde_json::from_value(token.clone())
            && self.outbox.cancel_progress(&token)
        {
            return;
        }
        self.call(build(method, None, params));
    }

    fn on_request(&mut self, id: Id, method: String, params: Option<Value>) {
        match method.as_str() {
            "initialize" => self.editor = Editor::named_in(params.as_ref()),
            "shutdown" => self.shut_down = true,
            _ if self.running.len() >= MAX_RUNNING => {
                let code = ErrorCode::ServerError(REQUEST_FAILED);
                let text = format!("{MAX_RUNNING} requests are running already");
                return self.refuse(id, with_message(code, text));
            }
            _ => {}
        }
        self.call(build(method, Some(id), params));
    }

    fn on_answer(&mut self, id: Id, result: Result<Value, Error>) {
        if let Some(at) = self.forwarded.iter().position(|forwarded| *forwarded == id) {
            self.forwarded.remove(at);
            self.reply(Response::from_parts(id, result));
        } else if !self.outbox.answer(&id, result) {
            tracing::debug!(%id, "an answer came too late, or to a request that was never made");
        }
    }

    /// tower-lsp panics over an answer that nobody waits for any more.
    fn reply(&mut self, response: Response) {
        let replies = &mut self.replies;
        let sent = catch_unwind(AssertUnwindSafe(|| Pin::new(replies).start_send(response)));
        if !matches!(sent, Ok(Ok(()))) {
            tracing::debug!("an answer came too late");
        }
    }

    fn call(&mut self, request: Request) {
        let id = request.id().cloned();
        let future = match catch_unwind(AssertUnwindSafe(|| self.service.call(request))) {
            Ok(future) => future,
            Err(panic) => return self.on_finished(Finished { id, outcome: Err(panic), written: None }),
        };
        let mut handler = Box::pin(async move {
            let (outcome, written) = written::run(future).await;
            Finished { id, outcome, written }
        });
        // Whatever this poll registers with the waker is registered again by the first poll of the task.
        match handler.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(finished) => self.on_finished(finished),
            Poll::Pending => {
                self.running.spawn(handler);
            }
        }
    }

    fn on_panic(&mut self, id: Option<Id>, panic: &(dyn Any + Send)) {
        let text = panic_text(panic);
        tracing::error!(text, "a handler panicked");
        let Some(id) = id else { return };
        // tower-lsp still counts the request as running, and would refuse its id for ever.
        if let Id::Number(_) | Id::String(_) = id {
            self.call(build("$/cancelRequest".to_owned(), None, Some(json!({"id": id}))));
        }
        self.refuse(
            id,
            with_message(ErrorCode::InternalError, format!("the request failed inside the server: {text}")),
        );
    }

    fn refuse(&self, id: Id, error: Error) {
        self.outbox.respond(&Response::from_error(id, error));
    }
}

fn build(method: String, id: Option<Id>, params: Option<Value>) -> Request {
    let request = Request::build(method);
    let request = match id {
        Some(id) => request.id(id),
        None => request,
    };
    match params {
        Some(params) => request.params(params).finish(),
        None => request.finish(),
    }
}

fn refusal(fault: &Fault) -> Error {
    let code = match fault {
        Fault::BodyTooLong(_) | Fault::HeaderTooLong => ErrorCode::InvalidRequest,
        Fault::NoLength | Fault::UnreadableLength(_) | Fault::TwoLengths(..) => ErrorCode::ParseError,
    };
    with_message(code, fault.to_string())
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}
