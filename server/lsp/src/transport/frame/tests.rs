//! Frames, whole and in pieces, correct and not.

use proptest::prelude::*;

use super::*;

fn decode(bytes: &[u8]) -> Vec<Event> {
    decode_in_pieces(bytes, &[])
}

fn decode_in_pieces(mut bytes: &[u8], sizes: &[usize]) -> Vec<Event> {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    let mut sizes = sizes.iter().copied().cycle();
    while !bytes.is_empty() {
        let size = sizes.next().unwrap_or(bytes.len()).clamp(1, bytes.len());
        let (mut piece, rest) = bytes.split_at(size);
        events.extend(std::iter::from_fn(|| decoder.next(&mut piece)));
        bytes = rest;
    }
    events
}

fn body(text: &str) -> Event {
    Event::Body(text.as_bytes().to_vec())
}

#[test]
fn headers_are_read_tolerantly() {
    let cases = [
        "Content-Length: 2\r\n\r\nhi",
        "content-length:2\r\n\r\nhi",
        "CONTENT-LENGTH \t: 2 \r\n\r\nhi",
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\nhi",
        "A: 1\r\nB: 2\r\nContent-Length: 2\r\nC: 3\r\n\r\nhi",
        "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
        "Content-Length: 2\n\nhi",
        "\r\n\r\nContent-Length: 2\r\n\r\nhi",
        &format!("{}x\r\nContent-Length: 2\r\n\r\nhi", " ".repeat(400)),
        &format!("Content-Length:{}7\r\nContent-Length: 2\r\n\r\nhi", " ".repeat(400)),
        "a line that is no header\r\nContent-Length: 2\r\n\r\nhi",
        "Content-Length: 0000000000000000000000000000002\r\n\r\nhi",
    ];
    for case in cases {
        assert_eq!(decode(case.as_bytes()), [body("hi")], "{case:?}");
    }
}

#[test]
fn an_empty_body_is_a_message_of_its_own() {
    assert_eq!(decode(b"Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\nx"), [body(""), body("x")]);
}

#[test]
fn an_unreadable_header_costs_its_own_message_only() {
    let cases = [
        ("X: 5\r\n\r\nhello", Fault::NoLength),
        ("Content-Length: five\r\n\r\nhello", Fault::UnreadableLength("five".into())),
        ("Content-Length: -5\r\n\r\nhello", Fault::UnreadableLength("-5".into())),
        ("Content-Length: +5\r\n\r\nhello", Fault::UnreadableLength("+5".into())),
        ("Content-Length:\r\n\r\nhello", Fault::UnreadableLength(String::new())),
        ("Content-Length: 99999999999999999999\r\n\r\nhello", Fault::UnreadableLength("99999999999999999999".into())),
        ("Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", Fault::TwoLengths(5, 6)),
        ("Content-Length: x\r\n\r\ncontent-lencontent-length", Fault::UnreadableLength("x".into())),
    ];
    for (broken, fault) in cases {
        let stream = format!("{broken}Content-Length: 2\r\n\r\nhi");
        assert_eq!(decode(stream.as_bytes()), [Event::Fault(fault), body("hi")], "{broken:?}");
    }
}

#[test]
fn a_message_over_the_limit_is_skipped_and_framing_is_kept() {
    let length = MAX_BODY + 1;
    let mut decoder = Decoder::default();
    let header = format!("Content-Length: {length}\r\n\r\n");
    assert_eq!(decoder.next(&mut header.as_bytes()), Some(Event::Fault(Fault::BodyTooLong(length))));
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..MAX_BODY >> 20 {
        assert_eq!(decoder.next(&mut &chunk[..]), None);
    }
    assert_eq!(decoder.next(&mut &b"xContent-Length: 2\r\n\r\nhi"[..]), Some(body("hi")));
}

#[test]
fn a_declared_length_allocates_nothing() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.next(&mut &b"Content-Length: 67108864\r\n\r\nx"[..]), None);
    let State::Body { body, .. } = &decoder.state else { panic!("{:?}", decoder.state) };
    assert!(body.capacity() <= 2 * FIRST_ALLOCATION as usize, "{}", body.capacity());
}

#[test]
fn a_header_over_the_limit_is_refused_without_being_kept() {
    let mut stream = b"X-Junk: ".to_vec();
    stream.resize(1 << 20, b'j');
    stream.extend_from_slice(b"\r\nContent-Length: 5\r\n\r\nhelloContent-Length: 2\r\n\r\nhi");
    assert_eq!(decode(&stream), [Event::Fault(Fault::HeaderTooLong), body("hi")]);

    let mut decoder = Decoder::default();
    assert_eq!(decoder.next(&mut &vec![b'j'; 1 << 20][..]), None);
    let State::Header(header) = &decoder.state else { panic!("{:?}", decoder.state) };
    assert!(header.line.capacity() <= 2 * MAX_LINE, "{}", header.line.capacity());
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_however_it_is_cut(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
        sizes in prop::collection::vec(1usize..64, 1..8),
    ) {
        let mut stream = Vec::new();
        for body in &bodies {
            encode(body, &mut stream);
        }
        let expected: Vec<Event> = bodies.into_iter().map(Event::Body).collect();
        prop_assert_eq!(decode_in_pieces(&stream, &sizes), expected);
    }

    #[test]
    fn any_bytes_give_the_same_events_however_they_are_cut(
        stream in prop::collection::vec(
            prop_oneof![
                any::<u8>().prop_map(|byte| vec![byte]),
                Just(b"Content-Length: ".to_vec()),
                Just(b"\r\n\r\n".to_vec()),
                (0u8..20).prop_map(|length| length.to_string().into_bytes()),
            ],
            0..60,
        ).prop_map(|parts| parts.concat()),
        sizes in prop::collection::vec(1usize..16, 1..8),
    ) {
        prop_assert_eq!(decode_in_pieces(&stream, &sizes), decode(&stream));
    }
}
