//! `pactify.delegate`: a new job from a brief.
//!
//! The brief is a text, or a document: its open text, unsaved or not, else its file. Without one, the only open
//! `*.brief.md` is meant.

use pactify_core::protocol::{BriefSource, DelegateParams};
use pactify_core::{AbsPath, Failure, FailureCode};
use serde_json::json;

use super::super::arguments::{Arguments, invalid};
use super::super::brief;
use super::super::context::Context;
use super::super::documents::{Found, Key};
use super::{Answer, answer};

pub(super) const NAME: &str = "pactify.delegate";

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let arguments = if arguments.has("brief") || matches!(arguments, Arguments::Unfit(_)) {
        arguments
    } else {
        let key = only(context.session().briefs().await)?;
        arguments.with("brief", json!({"uri": key.uri()}))
    };
    let mut params: DelegateParams = arguments.read(NAME)?;
    let document = match &params.brief {
        BriefSource::Text(_) => None,
        BriefSource::Document { uri } => Some(Key::of(uri)),
    };
    if let Some(key) = &document {
        params.brief = BriefSource::Text(text_of(context, key).await?);
    }
    if params.repository.is_none() {
        let path = match &document {
            Some(Key::File(path)) => Some(path),
            _ => None,
        };
        params.repository = Some(context.session().folders().await.repository(path)?);
    }
    context.session().unsaved_published().await?;
    let unsaved = context.session().unsaved_texts().await;
    let session = context.session().clone();
    // The job is announced where it is made: a client that stops waiting for the answer still sees its progress.
    let starting = session.starting();
    let work = context.engine().work(move |jobs| {
        let _starting = starting;
        let delegated = jobs.delegate(&params, Some(&unsaved))?;
        if let Ok(job) = delegated.job_id.parse() {
            session.created(job);
        }
        Ok(delegated)
    });
    answer(work.await?)
}

async fn text_of(context: &Context, key: &Key) -> Result<String, Failure> {
    let path = match (context.session().brief(key.clone()).await, key) {
        (Found::Text(text), _) => return brief::check(text),
        (Found::Unsaved, _) => {
            return Err(Failure::new(
                FailureCode::UnsavedBuffers,
                format!("{} has unsaved text that is not known here", key.uri()),
                "save it first, or name it *.brief.md, whose open text is known",
            ));
        }
        (Found::OnDisk, Key::File(path)) => path.clone(),
        (Found::OnDisk, Key::Other(uri)) => {
            return Err(invalid(NAME, &format!("field `brief`: {uri:?} is neither open nor a file: URI")));
        }
    };
    read(path).await
}

async fn read(path: AbsPath) -> Result<String, Failure> {
    let read = tokio::task::spawn_blocking(move || brief::read(&path)).await;
    read.unwrap_or_else(|error| Err(Failure::internal(format!("reading the brief broke off: {error}"))))
}

fn only(mut briefs: Vec<Key>) -> Result<Key, Failure> {
    match briefs.len() {
        1 => Ok(briefs.remove(0)),
        0 => Err(Failure::new(
            FailureCode::InvalidParams,
            format!("{NAME}: missing field `brief`, and no *.brief.md is open"),
            "pass the task as `brief`, or open one *.brief.md with it",
        )),
        _ => {
            let open: Vec<String> = briefs.iter().map(Key::uri).collect();
            Err(Failure::new(
                FailureCode::InvalidParams,
                format!("{NAME}: missing field `brief`, and several briefs are open"),
                format!("pass `brief` as {{\"uri\": …}} with one of {}", open.join(", ")),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_brief_the_only_open_one_is_meant() {
        let (a, b) = (Key::of("file:///a.brief.md"), Key::of("file:///b.brief.md"));
        assert_eq!(only(vec![a.clone()]).unwrap(), a);
        assert!(only(vec![]).unwrap_err().message.contains("missing field `brief`"));
        let failure = only(vec![a, b]).unwrap_err();
        assert!(failure.next.contains("file:///a.brief.md, file:///b.brief.md"), "{}", failure.next);
    }
}
