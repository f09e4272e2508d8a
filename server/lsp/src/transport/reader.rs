//! Frames from the input, as long as the client reads what we write.

use std::ops::Range;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::frame::{Decoder, Event};
use super::stdio::Input;

/// A client that neither reads nor can send any more has this long to make room for what it has sent already.
const HANG_UP_GRACE: Duration = Duration::from_secs(1);
/// What a session starts with, which is enough for nearly all of them: a page that nobody touches costs nothing.
const FIRST_BUFFER: usize = 4 * 1024;
/// What a pipe holds.
const LARGEST_BUFFER: usize = 64 * 1024;

pub(super) struct Reader {
    input: Input,
    decoder: Decoder,
    buffer: Box<[u8]>,
    unread: Range<usize>,
    /// Set once the client has hung up while its messages had to wait.
    patience: Option<Instant>,
}

/// What waiting for the client came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Bytes, for [`Reader::decode`].
    Bytes,
    /// The client will send no more, or nothing that could still be answered.
    End,
}

impl Reader {
    pub(super) fn new(input: Input) -> Self {
        let buffer = vec![0; FIRST_BUFFER].into_boxed_slice();
        Self { input, decoder: Decoder::default(), buffer, unread: 0..0, patience: None }
    }

    /// The next frame among the bytes that have arrived.
    pub(super) fn decode(&mut self) -> Option<Event> {
        let mut bytes = &self.buffer[self.unread.clone()];
        let event = self.decoder.next(&mut bytes);
        self.unread.start = self.unread.end - bytes.len();
        event
    }

    /// Reads once, when [`Self::decode`] has nothing left (more at once, if the last time the buffer was too small);
    /// or, while the client is to be left waiting, only notices that it is gone. Dropping the future loses nothing.
    pub(super) async fn wait(&mut self, congested: bool) -> Arrival {
        if congested {
            return self.watch().await;
        }
        self.patience = None;
        if self.unread.end == self.buffer.len() && self.buffer.len() < LARGEST_BUFFER {
            self.buffer = vec![0; LARGEST_BUFFER].into_boxed_slice();
            self.unread = 0..0;
        }
        match self.input.read(&mut self.buffer).await {
            Ok(0) => Arrival::End,
            Ok(count) => {
                self.unread = 0..count;
                Arrival::Bytes
            }
            Err(error) => {
                tracing::error!(%error, "the input cannot be read");
                Arrival::End
            }
        }
    }

    async fn watch(&mut self) -> Arrival {
        let deadline = match self.patience {
            Some(deadline) => deadline,
            None => {
                self.input.hung_up().await;
                *self.patience.insert(Instant::now() + HANG_UP_GRACE)
            }
        };
        sleep_until(deadline).await;
        Arrival::End
    }
}
