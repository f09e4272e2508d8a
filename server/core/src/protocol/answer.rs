//! Answering what a job's harness asks for.

wire! {
    /// Argument of `pactify.answer`.
    pub struct AnswerParams {
        /// The job.
        pub job_id: String,
        /// The request, as the job's `waiting` or `requests` name it.
        pub request_id: String,
        /// One of its options.
        pub option_id: String,
    }
}
