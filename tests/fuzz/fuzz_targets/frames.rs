//! Whatever an editor sends: the decoder gives the same events however the bytes are cut, keeps its limits, gets back
//! into step, and each body means something.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pactify_lsp::transport::frame::{Decoder, Event, MAX_BODY, encode};
use pactify_lsp::transport::message;

fuzz_target!(|input: (u8, &[u8])| {
    let (size, stream) = input;
    let whole = decode(stream, stream.len());
    assert_eq!(decode(stream, usize::from(size) + 1), whole);
    for event in whole {
        if let Event::Body(body) = event {
            assert!(body.len() as u64 <= MAX_BODY);
            message::parse(&body);
        }
    }
    message::parse(stream);

    // After any frame that is well-formed, another one is read.
    let mut session = Vec::new();
    encode(stream, &mut session);
    encode(b"next", &mut session);
    assert_eq!(decode(&session, session.len()), [Event::Body(stream.to_vec()), Event::Body(b"next".to_vec())]);
});

fn decode(stream: &[u8], size: usize) -> Vec<Event> {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for mut piece in stream.chunks(size.max(1)) {
        events.extend(std::iter::from_fn(|| decoder.next(&mut piece)));
    }
    events
}
