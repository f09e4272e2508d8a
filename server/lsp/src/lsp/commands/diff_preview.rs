//! `pactify.diffPreview`: what a job changed.
//!
//! Asked to `show` it (an editor without arguments means that), the server also writes the patch to a file and has
//! the client open it, or says where it is if the client cannot.

use std::time::Duration;

use lsp_types::{MessageType, ShowDocumentParams, ShowMessageParams, Url, notification, request};
use pactify_core::protocol::view::file_uri;
use pactify_core::protocol::{JobSummary, Preview, PreviewFormat, PreviewParams};
use pactify_core::{AbsPath, Failure, JobId};
use pactify_engine::jobs::Jobs;

use super::super::arguments::Arguments;
use super::super::context::Context;
use super::{Answer, answer, job_id, target};

pub(super) const NAME: &str = "pactify.diffPreview";

/// How long the client may take to open the patch.
const SHOWN_WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn run(context: &Context, arguments: Arguments) -> Answer {
    let show = arguments.is_empty();
    let arguments = target::named(context, NAME, arguments, has_changes).await?;
    let mut params: PreviewParams = arguments.read(NAME)?;
    params.show |= show;
    let job = job_id(&params.job_id)?;
    if !params.show {
        return answer(context.engine().work(move |jobs| jobs.preview(&params)).await?);
    }
    let (preview, patch) = context.engine().work(move |jobs| with_patch_file(jobs, &params, &job)).await?;
    open(context, &patch).await;
    answer(preview)
}

fn has_changes(job: &JobSummary) -> bool {
    job.changes.is_some_and(|totals| totals.files > 0) && job.disposition.is_open()
}

fn with_patch_file(jobs: &Jobs, params: &PreviewParams, job: &JobId) -> Result<(Preview, AbsPath), Failure> {
    let preview = jobs.preview(params)?;
    let patch = match &preview.patch {
        Some(patch) => patch.clone(),
        None => {
            let whole = PreviewParams { format: PreviewFormat::Patch, cursor: None, limit: None, ..params.clone() };
            jobs.preview(&whole)?.patch.unwrap_or_default()
        }
    };
    Ok((preview, jobs.patch_file(job, &patch)?))
}

/// Nobody waits for the client here: the answer to the command must not depend on it.
async fn open(context: &Context, patch: &AbsPath) {
    let outbox = context.outbox().clone();
    let Ok(uri) = Url::parse(&file_uri(patch.as_path())) else { return };
    if !context.session().client().await.show_document {
        let message = format!("the patch is in {patch}");
        outbox.notify::<notification::ShowMessage>(&ShowMessageParams { typ: MessageType::INFO, message });
        return;
    }
    let params = ShowDocumentParams { uri, external: None, take_focus: Some(true), selection: None };
    let shown = outbox.request::<request::ShowDocument>(params, SHOWN_WITHIN);
    tokio::spawn(async move {
        if let Err(error) = shown.await {
            tracing::info!(%error, "the patch was not shown");
        }
    });
}
