//! Talking to a living host: one line of JSON each way over its socket.
//!
//! Little goes this way, since the journal already tells every reader what happened: a host can be asked who it is, to
//! end its job, and to take a person's answer. Both sides may be of different versions: a request that a host does not
//! know gets [`Reply::Unsupported`], and unknown fields are ignored. Who may ask is checked where the connection is
//! made ([`crate::job_dir::socket`]).

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The version of this protocol. It grows with each request that is added.
pub(crate) const PROTOCOL: u32 = 2;

/// The longest message, in bytes.
const MAX_MESSAGE: u64 = 64 * 1024;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a host can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "camelCase")]
pub(crate) enum Request {
    /// Who are you?
    Hello,
    /// End the job.
    Cancel,
    /// This is the person's answer to a permission request.
    Answer {
        /// The request.
        id: String,
        /// One of its options.
        option: String,
    },
}

/// What a host answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "camelCase")]
pub(crate) enum Reply {
    /// To [`Request::Hello`].
    Hello {
        /// The host's pactify version.
        version: String,
        /// Its [`PROTOCOL`].
        protocol: u32,
        /// Its job.
        job: String,
    },
    /// It will be done; the journal tells when it was.
    Accepted,
    /// To [`Request::Answer`]: the request is not open. It was answered, has expired, or was never asked.
    NotOpen,
    /// To [`Request::Answer`]: the request has no such option, or one that the job's mode rules out.
    NoSuchOption,
    /// This build does not know the request.
    Unsupported,
    /// A reply of a newer build.
    #[serde(other)]
    Other,
}

/// Why a host could not be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// Nobody listens.
    #[error("the job's host does not answer")]
    Unreachable(#[source] io::Error),
    /// Something that is no reply came back.
    #[error("the job's host answers what is no reply: {0}")]
    Garbled(String),
}

/// Asks the host at the other end of `stream` and waits for its answer, [`PATIENCE`] at most.
pub(crate) fn ask(mut stream: UnixStream, request: &Request) -> Result<Reply, ControlError> {
    let unreachable = ControlError::Unreachable;
    stream.set_read_timeout(Some(PATIENCE)).map_err(unreachable)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(unreachable)?;
    let mut line = serde_json::to_vec(request).map_err(|error| ControlError::Garbled(error.to_string()))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(unreachable)?;
    let mut answer = String::new();
    BufReader::new(stream.take(MAX_MESSAGE)).read_line(&mut answer).map_err(unreachable)?;
    if answer.is_empty() {
        return Err(unreachable(io::ErrorKind::UnexpectedEof.into()));
    }
    serde_json::from_str(&answer).map_err(|error| ControlError::Garbled(error.to_string()))
}

/// Serves one connection: hands its request to `decide` and writes the answer.
pub(super) async fn serve<D: Future<Output = Reply>>(
    stream: tokio::net::UnixStream,
    decide: impl FnOnce(Request) -> D,
) -> io::Result<()> {
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
    let (reader, mut writer) = stream.into_split();
    let mut reader = tokio::io::BufReader::new(reader.take(MAX_MESSAGE));
    let mut line = String::new();
    tokio::time::timeout(PATIENCE, reader.read_line(&mut line)).await??;
    let reply = match serde_json::from_str::<Request>(&line) {
        Ok(request) => decide(request).await,
        Err(_) => Reply::Unsupported,
    };
    let mut answer = serde_json::to_vec(&reply)?;
    answer.push(b'\n');
    tokio::time::timeout(PATIENCE, writer.write_all(&answer)).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that reads one line and answers with `answer`, whatever it was asked.
    fn host_that_says(answer: &'static str) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut request = String::new();
            BufReader::new(theirs.try_clone().unwrap()).read_line(&mut request).unwrap();
            (&theirs).write_all(answer.as_bytes()).unwrap();
        });
        ours
    }

    #[test]
    fn hosts_of_other_versions_are_understood_as_far_as_they_go() {
        for (answer, expected) in [
            ("{\"reply\":\"accepted\",\"since\":\"1.9\"}\n", Reply::Accepted),
            ("{\"reply\":\"unsupported\"}\n", Reply::Unsupported),
            ("{\"reply\":\"rescheduled\"}\n", Reply::Other),
            (
                "{\"reply\":\"hello\",\"version\":\"9.0.0\",\"protocol\":7,\"job\":\"j\",\"mood\":1}\n",
                Reply::Hello { version: "9.0.0".into(), protocol: 7, job: "j".into() },
            ),
        ] {
            assert_eq!(ask(host_that_says(answer), &Request::Cancel).unwrap(), expected);
        }
    }

    #[test]
    fn a_host_that_is_gone_or_garbled_is_an_error() {
        assert!(matches!(ask(host_that_says(""), &Request::Hello), Err(ControlError::Unreachable(_))));
        assert!(matches!(ask(host_that_says("hi\n"), &Request::Hello), Err(ControlError::Garbled(_))));
    }

    #[tokio::test]
    async fn requests_of_newer_builds_are_answered() {
        let decide = async |request| match request {
            Request::Hello => Reply::Hello { version: "0".into(), protocol: PROTOCOL, job: "j".into() },
            Request::Cancel => Reply::Accepted,
            Request::Answer { .. } => Reply::NotOpen,
        };
        for (request, expected) in [
            ("{\"request\":\"cancel\"}", Reply::Accepted),
            ("{\"request\":\"answer\",\"id\":\"1\",\"option\":\"yes\",\"mood\":1}", Reply::NotOpen),
            ("{\"request\":\"answer\"}", Reply::Unsupported),
            ("{\"request\":\"teleport\"}", Reply::Unsupported),
            ("not json", Reply::Unsupported),
        ] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            theirs.set_nonblocking(true).unwrap();
            let theirs = tokio::net::UnixStream::from_std(theirs).unwrap();
            let asking = tokio::task::spawn_blocking(move || {
                (&ours).write_all(format!("{request}\n").as_bytes()).unwrap();
                let mut answer = String::new();
                BufReader::new(ours).read_line(&mut answer).unwrap();
                serde_json::from_str::<Reply>(&answer).unwrap()
            });
            serve(theirs, decide).await.unwrap();
            assert_eq!(asking.await.unwrap(), expected, "{request}");
        }
    }
}
