//! The frames of the language server protocol: bytes in, message bodies out, without any I/O.
//!
//! Owns: finding where a message starts and ends, the limits on its size, and getting back into step after a header
//! nobody can read. Does not read JSON; [`super::message`] does. Nothing here allocates by what a peer merely declares.
//!
//! A header that is *wrong* (no length, two different lengths) leaves us not knowing where its body ends: the decoder
//! then looks for the next `Content-Length:`. A message that is only *too big* is skipped exactly, so framing is kept.

use std::io::Write as _;

/// Largest header block that is read as one; the protocol's own headers are under 100 bytes.
pub const MAX_HEADER: usize = 64 * 1024;
/// Largest body that is kept in memory.
pub const MAX_BODY: u64 = 64 * 1024 * 1024;

const NEEDLE: &[u8] = b"content-length:";
/// How much of a header line is kept: a length header is never longer.
const MAX_LINE: usize = 256;
/// A body's buffer starts no larger than this, whatever the header declares.
const FIRST_ALLOCATION: u64 = 64 * 1024;

/// What came out of the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The body of one message.
    Body(Vec<u8>),
    /// A message that cannot be delivered; the peer should be told.
    Fault(Fault),
}

/// Why a message is not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The header block has no `Content-Length`.
    #[error("the header has no content-length")]
    NoLength,
    /// `Content-Length` is not a number.
    #[error("the content-length {0:?} is not a number of bytes")]
    UnreadableLength(String),
    /// Two `Content-Length` headers disagree.
    #[error("the header has two content-lengths, {0} and {1}")]
    TwoLengths(u64, u64),
    /// The header block is longer than [`MAX_HEADER`].
    #[error("the header is longer than {MAX_HEADER} bytes")]
    HeaderTooLong,
    /// The body is longer than [`MAX_BODY`].
    #[error("the message has {0} bytes, more than the {MAX_BODY} that are accepted")]
    BodyTooLong(u64),
}

/// Reads frames out of a stream that arrives in pieces of any size.
#[derive(Debug)]
pub struct Decoder {
    state: State,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { state: State::Header(Header::default()) }
    }
}

impl Decoder {
    /// Takes bytes off the front of `input` until one event is complete or the input is used up.
    pub fn next(&mut self, input: &mut &[u8]) -> Option<Event> {
        while !input.is_empty() {
            let (state, event) = match std::mem::replace(&mut self.state, State::Skip { left: 0 }) {
                State::Header(header) => header.read(input),
                State::Body { body, left } => read_body(body, left, input),
                State::Skip { left } => (skip(left, input), None),
                State::Lost { matched } => (search(matched, input), None),
            };
            self.state = state;
            if event.is_some() {
                return event;
            }
        }
        None
    }
}

/// Appends `body` to `out` as one frame.
pub fn encode(body: &[u8], out: &mut Vec<u8>) {
    // The header takes 40 bytes at most.
    out.reserve(body.len() + 40);
    // Writing to a vector cannot fail.
    let _ = write!(out, "Content-Length: {}\r\n\r\n", body.len());
    out.extend_from_slice(body);
}

#[derive(Debug)]
enum State {
    Header(Header),
    Body { body: Vec<u8>, left: u64 },
    Skip { left: u64 },
    Lost { matched: usize },
}

impl State {
    fn start() -> Self {
        State::Header(Header::default())
    }
}

#[derive(Debug, Default)]
struct Header {
    /// The current line, cut at [`MAX_LINE`].
    line: Vec<u8>,
    /// Bytes of the block so far.
    seen: usize,
    /// Whether the block has a line that is not blank.
    begun: bool,
    length: Option<u64>,
    fault: Option<Fault>,
}

impl Header {
    fn read(mut self, input: &mut &[u8]) -> (State, Option<Event>) {
        let end = input.iter().position(|&byte| byte == b'\n');
        let (piece, rest) = input.split_at(end.map_or(input.len(), |at| at + 1));
        *input = rest;
        self.seen = self.seen.saturating_add(piece.len());
        let room = MAX_LINE - self.line.len();
        self.line.extend_from_slice(&piece[..piece.len().min(room)]);
        if end.is_none() {
            return (State::Header(self), None);
        }
        let line = std::mem::take(&mut self.line);
        // A line that was cut has lost its line feed: it is neither blank nor a length.
        let whole = line.ends_with(b"\n");
        match (whole && line.trim_ascii().is_empty(), self.begun) {
            (true, true) => self.finish(),
            (true, false) => (State::start(), None),
            (false, _) => {
                self.begun = true;
                if whole {
                    self.read_line(line.trim_ascii());
                }
                (State::Header(self), None)
            }
        }
    }

    fn read_line(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { return };
        if !line[..colon].trim_ascii().eq_ignore_ascii_case(&NEEDLE[..NEEDLE.len() - 1]) {
            return;
        }
        let value = String::from_utf8_lossy(line[colon + 1..].trim_ascii()).into_owned();
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        match (value.parse::<u64>(), self.length) {
            (Ok(length), Some(other)) if digits && length != other => {
                self.fault.get_or_insert(Fault::TwoLengths(other, length));
            }
            (Ok(length), _) if digits => self.length = Some(length),
            _ => {
                self.fault.get_or_insert(Fault::UnreadableLength(value));
            }
        }
    }

    fn finish(self) -> (State, Option<Event>) {
        let lost = |fault| (State::Lost { matched: 0 }, Some(Event::Fault(fault)));
        let skipped = |left, fault| (State::Skip { left }, Some(Event::Fault(fault)));
        match (self.fault, self.length) {
            (Some(fault), _) => lost(fault),
            (None, None) if self.seen > MAX_HEADER => lost(Fault::HeaderTooLong),
            (None, None) => lost(Fault::NoLength),
            (None, Some(length)) if self.seen > MAX_HEADER => skipped(length, Fault::HeaderTooLong),
            (None, Some(length)) if length > MAX_BODY => skipped(length, Fault::BodyTooLong(length)),
            (None, Some(0)) => (State::start(), Some(Event::Body(Vec::new()))),
            (None, Some(left)) => {
                let body = Vec::with_capacity(usize::try_from(left.min(FIRST_ALLOCATION)).unwrap_or(0));
                (State::Body { body, left }, None)
            }
        }
    }
}

fn read_body(mut body: Vec<u8>, left: u64, input: &mut &[u8]) -> (State, Option<Event>) {
    let piece = take(left, input);
    body.extend_from_slice(piece);
    match left - piece.len() as u64 {
        0 => (State::start(), Some(Event::Body(body))),
        left => (State::Body { body, left }, None),
    }
}

fn skip(left: u64, input: &mut &[u8]) -> State {
    match left - take(left, input).len() as u64 {
        0 => State::start(),
        left => State::Skip { left },
    }
}

/// Looks for the next length header. The needle's first letter occurs in it only once, so a mismatch restarts it.
fn search(mut matched: usize, input: &mut &[u8]) -> State {
    while let Some((&byte, rest)) = input.split_first() {
        *input = rest;
        let byte = byte.to_ascii_lowercase();
        matched = match byte {
            _ if byte == NEEDLE[matched] => matched + 1,
            _ => usize::from(byte == NEEDLE[0]),
        };
        if matched == NEEDLE.len() {
            return State::Header(Header { line: NEEDLE.to_vec(), seen: NEEDLE.len(), ..Header::default() });
        }
    }
    State::Lost { matched }
}

fn take<'a>(left: u64, input: &mut &'a [u8]) -> &'a [u8] {
    let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
    let (piece, rest) = input.split_at(count);
    *input = rest;
    piece
}

#[cfg(test)]
mod tests;
