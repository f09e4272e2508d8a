//! Lines of the journal: their form, their chain, their limits.

use pactify_core::job::event::Usage;
use pactify_core::{AttemptNo, Seq};

use super::*;

fn record(event: impl Into<Event>) -> Record {
    Record { seq: Seq(1), at: "2026-11-29T15:00:00Z".parse().unwrap(), attempt: AttemptNo::FIRST, event: event.into() }
}

#[test]
fn a_line_is_the_record_as_json_with_its_sum_last() {
    let mut line = Vec::new();
    append(&mut line, record(Known::Message { text: "hi".into() }), Sum::default());
    let text = String::from_utf8(line).unwrap();
    let head = r#"{"seq":1,"at":"2026-11-29T15:00:00Z","attempt":1,"event":{"type":"message","text":"hi"},"sum":""#;
    assert!(text.starts_with(head), "{text}");
    assert_eq!(text.len(), head.len() + 32 + "\"}\n".len());
}

#[test]
fn a_line_opens_only_behind_the_line_it_was_written_behind() {
    let mut line = Vec::new();
    let (written, sum) = append(&mut line, record(Known::CancelRequested), Sum([7; 16]));
    line.pop();
    assert_eq!(check(&line, Sum([7; 16])), Ok(sum));
    assert_eq!(super::record(&line), Ok(written));
    assert_eq!(check(&line, Sum([8; 16])), Err(Flaw::Damaged("its checksum does not match")));
}

#[test]
fn a_newer_header_is_named_before_anything_else_of_it_is_checked() {
    let job = "20261129-154512-aaaaaa".parse().unwrap();
    let header = br#"{"pactify":"journal","format":9,"rules":"unknown"}"#;
    assert_eq!(open_header(header, &job), Err(Flaw::Newer(9)));
    let (line, sum) = super::header(&job);
    assert_eq!(open_header(&line[..line.len() - 1], &job), Ok(sum));
    let other = "20261129-154512-bbbbbb".parse().unwrap();
    assert_eq!(open_header(&line[..line.len() - 1], &other), Err(Flaw::Damaged("it is the journal of another job")));
}

#[test]
fn events_that_are_too_long_are_cut_with_a_mark_and_stay_what_they_are() {
    let long = "ä\u{1}".repeat(MAX_LINE_BYTES / 6);
    let paths: Vec<String> = (0..60_000).map(|n| format!("src/file-{n}.rs")).collect();
    let change_set: pactify_core::ChangeSetId = "a".repeat(40).parse().unwrap();
    let events: [(Event, &str); 4] = [
        (Known::Message { text: long.clone() }.into(), "bytes left out]"),
        (Known::CommandEnded { item: "i".into(), exit_code: Some(3), tail: long.clone() }.into(), "bytes left out]"),
        (Known::Applied { apply: 1, change_set, complete: true, accepted: None, paths }.into(), "more left out]"),
        (Event::Unknown(serde_json::json!({"type": "new", "deep": {"text": long}})), "bytes left out]"),
    ];
    for (event, mark) in events {
        let name = event.name();
        let mut line = Vec::new();
        let (written, _) = append(&mut line, record(event), Sum::default());
        assert!(line.len() <= MAX_LINE_BYTES, "{name}: {}", line.len());
        assert_eq!(written.event.name(), name);
        assert!(String::from_utf8(line).unwrap().contains(mark), "{name}");
    }
}

#[test]
fn an_event_that_cannot_be_cut_leaves_a_notice() {
    let numbers: Vec<u32> = (0..200_000).collect();
    let event = Event::Unknown(serde_json::json!({"type": "numbers", "all": numbers}));
    let (written, _) = append(&mut Vec::new(), record(event), Sum::default());
    let Event::Known(Known::Notice { id, text }) = written.event else { panic!("{:?}", written.event.name()) };
    assert_eq!(id, "eventTooLong");
    assert!(text.contains("numbers"), "{text}");
}

#[test]
fn short_events_are_untouched() {
    let event: Event = Known::Usage { usage: Usage::default() }.into();
    assert_eq!(append(&mut Vec::new(), record(event.clone()), Sum::default()).0.event, event);
}
