//! Results that a handler writes as JSON itself.
//!
//! tower-lsp carries a result as a [`Value`], and makes one of whatever a handler returns: for a result that comes as a
//! Rust type, that is a tree of small allocations which is built, copied, written and dropped. So a handler may call
//! [`stand_in`] (or, with a text that is there already, [`stand_in_for`]): its result is written once and waits beside
//! the request, tower-lsp carries a value that stands for it, and the dispatcher puts the text into the answer. Whether
//! there is a result at all is still the service's to say: the text of a request that it refused or that was cancelled
//! is dropped.

use std::cell::Cell;
use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

tokio::task_local! {
    static RESULT: Cell<Option<Text>>;
}

/// The JSON of a result.
#[derive(Debug)]
pub(super) enum Text {
    /// Written for this request.
    New(Box<RawValue>),
    /// Written before, for whoever asks.
    Shared(Arc<RawValue>),
}

impl Deref for Text {
    type Target = RawValue;

    fn deref(&self) -> &RawValue {
        match self {
            Self::New(text) => text,
            Self::Shared(text) => text,
        }
    }
}

/// What a handler returns for `result`: a value that stands for it where a dispatcher runs the handler, else its own.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn stand_in(result: &impl Serialize) -> serde_json::Result<Value> {
    if RESULT.try_with(|_| {}).is_err() {
        return serde_json::to_value(result);
    }
    let text = to_raw_value(result)?;
    RESULT.with(|slot| slot.set(Some(Text::New(text))));
    Ok(Value::Null)
}

/// The same for a result that is JSON already.
///
/// # Errors
/// Never where a dispatcher runs the handler; elsewhere when it holds a number that no value can.
pub fn stand_in_for(text: Arc<RawValue>) -> serde_json::Result<Value> {
    if RESULT.try_with(|_| {}).is_err() {
        return serde_json::from_str(text.get());
    }
    RESULT.with(|slot| slot.set(Some(Text::Shared(text))));
    Ok(Value::Null)
}

/// Runs a handler to its end; returns what came of it (a panic as an error), and the result that it wrote.
pub(super) async fn run<F: Future>(handler: F) -> (std::thread::Result<F::Output>, Option<Text>) {
    let mut scope = pin!(RESULT.scope(Cell::default(), AssertUnwindSafe(handler).catch_unwind()));
    let outcome = scope.as_mut().await;
    (outcome, scope.take_value().and_then(Cell::into_inner))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_result_is_written_where_somebody_takes_it_and_a_value_elsewhere() {
        let result = json!({"a": [1, "b"]});
        let text: Arc<RawValue> = Arc::from(to_raw_value(&result).unwrap());
        let write: [&dyn Fn() -> Value; 2] =
            [&|| stand_in(&result).unwrap(), &|| stand_in_for(Arc::clone(&text)).unwrap()];
        for write in write {
            assert_eq!(write(), result);
            let (outcome, written) = run(async { write() }).await;
            assert_eq!(outcome.unwrap(), Value::Null);
            assert_eq!(written.unwrap().get(), result.to_string());
        }
    }

    #[tokio::test]
    async fn two_handlers_that_run_at_once_keep_their_results_apart() {
        let handler = |number: u32| {
            run(async move {
                tokio::task::yield_now().await;
                stand_in(&number).unwrap();
                tokio::task::yield_now().await;
            })
        };
        let ((_, one), (_, two)) = tokio::join!(handler(1), handler(2));
        assert_eq!((one.unwrap().get(), two.unwrap().get()), ("1", "2"));
    }

    #[tokio::test]
    async fn a_panic_is_an_outcome() {
        let (outcome, written) = run(async { panic!("oh") }).await;
        let outcome: std::thread::Result<()> = outcome;
        assert!(outcome.is_err() && written.is_none());
    }
}
