//! A person's answer to a permission request, on its way to the job's host.
//!
//! The host has the word on what is open: two people may answer at once, and the request may expire meanwhile. What is
//! looked at here only makes better sentences.

use pactify_core::job::state::{SeenState, Waiting};
use pactify_core::protocol::{AnswerParams, JobMoved};
use pactify_core::{Failure, FailureCode, JobId, display};

use super::dispose::{BUSY, connect, unreachable};
use super::{Jobs, invalid, job_id};
use crate::host::control::{self, Reply, Request};

impl Jobs {
    /// Answers an open permission request with one of its options.
    pub fn answer(&self, params: &AnswerParams) -> Result<JobMoved, Failure> {
        // A job must not answer what it asked itself.
        self.refuse_inside_a_job()?;
        let job = job_id(&params.job_id)?;
        let (snapshot, state) = self.store().seen(&job)?;
        let attempt = snapshot.state.attempt.as_ref();
        let open = attempt.map_or(&[][..], |attempt| &attempt.waiting);
        let asked = open.iter().find(|waiting| waiting.request == params.request_id);
        let Some(waiting) = asked.filter(|_| state != SeenState::Lost) else {
            let was_answered = attempt.is_some_and(|attempt| attempt.answered.contains(&params.request_id));
            return Err(not_open(&job, state, &params.request_id, was_answered));
        };
        if !waiting.options.iter().any(|option| option.id == params.option_id) {
            return Err(no_such_option(waiting, &params.option_id));
        }
        let request = Request::Answer { id: params.request_id.clone(), option: params.option_id.clone() };
        let stream = connect(&self.store().job(&job)?, BUSY)?;
        match control::ask(stream, &request).map_err(|error| unreachable(&job, &error))? {
            Reply::Accepted => self.moved(&job),
            Reply::NotOpen => Err(not_open(&job, self.store().seen(&job)?.1, &params.request_id, true)),
            Reply::NoSuchOption => Err(no_such_option(waiting, &params.option_id)),
            Reply::Unsupported | Reply::Other | Reply::Hello { .. } => Err(Failure::new(
                FailureCode::HostUnreachable,
                format!("the host of job {job} is of another version and takes no answers"),
                "answer with the pactify that started the job, or cancel the job",
            )),
        }
    }
}

fn not_open(job: &JobId, state: SeenState, request: &str, was_answered: bool) -> Failure {
    let request = display::headline(request, 60);
    let message = match (was_answered, state) {
        (true, _) => format!("request {request:?} of job {job} was answered, or has expired"),
        (false, SeenState::Waiting) => format!("job {job} has no open request {request:?}"),
        (false, _) => format!("job {job} waits for no answer"),
    };
    Failure::new(FailureCode::RequestNotOpen, message, "`pactify sub show` names the requests that are open")
}

fn no_such_option(waiting: &Waiting, option: &str) -> Failure {
    let ids: Vec<String> = waiting.options.iter().map(|option| display::headline(&option.id, 60)).collect();
    let option = display::headline(option, 60);
    let known = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
    invalid(format!("optionId: {option:?} is no answer to this request; its options are {known}"))
}
