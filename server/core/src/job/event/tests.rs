//! Events as they are written, and as other builds wrote them.

use super::*;

#[test]
fn a_record_survives_the_round_trip() {
    let text = r#"{"seq":3,"at":"2026-11-29T15:00:00Z","attempt":1,"event":{"type":"message","text":"hi"}}"#;
    let record: Record = serde_json::from_str(text).unwrap();
    assert_eq!(record.event, Known::Message { text: "hi".into() }.into());
    assert_eq!(serde_json::to_string(&record).unwrap(), text);
}

#[test]
fn a_request_of_before_there_were_details_is_read_and_written_as_it_is() {
    let text = r#"{"type":"permissionRequested","request":"p1","title":"ls","options":[]}"#;
    let event: Event = serde_json::from_str(text).unwrap();
    assert!(matches!(&event, Event::Known(Known::PermissionRequested { detail: None, .. })), "{event:?}");
    assert_eq!(serde_json::to_string(&event).unwrap(), text);
}

#[test]
fn events_of_a_newer_build_are_kept_whole() {
    for text in [r#"{"type":"teleported","to":{"x":1}}"#, r#"{"type":"message","words":["new","shape"]}"#] {
        let event: Event = serde_json::from_str(text).unwrap();
        assert!(matches!(event, Event::Unknown(_)), "{text}");
        assert!(!event.is_milestone());
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
    }
    assert!(serde_json::from_str::<Event>(r#"{"text":"no type"}"#).is_err());
}

#[test]
fn an_end_of_a_newer_build_is_an_end() {
    for (text, expected, says) in [
        (r#"{"outcome":"succeeded","finalMessage":"Done.","score":1}"#, Outcome::Succeeded, None),
        (r#"{"outcome":"rescheduled"}"#, Outcome::Failed, Some("a newer pactify ended the job as \"rescheduled\"")),
        (
            r#"{"outcome":"timedOut","failure":{"code":"solarFlare","message":"the sun","next":"wait"}}"#,
            Outcome::TimedOut,
            Some("the sun"),
        ),
        (
            r#"{"outcome":"melted","failure":{"code":"solarFlare","message":"the sun","next":"wait"}}"#,
            Outcome::Failed,
            Some("a newer pactify ended the job as \"melted\": the sun"),
        ),
        (r#"{}"#, Outcome::Failed, Some("a newer pactify ended the job as \"\"")),
    ] {
        let mut value: Value = serde_json::from_str(text).unwrap();
        value["type"] = "attemptEnded".into();
        let event: Event = serde_json::from_value(value).unwrap();
        let Known::AttemptEnded { outcome, failure, .. } = event.meaning().unwrap().into_owned() else { panic!() };
        assert_eq!((outcome, failure.as_ref().map(|failure| failure.message.as_str())), (expected, says), "{text}");
    }
    assert!(Event::Unknown(serde_json::json!({"type": "teleported"})).meaning().is_none());
}

#[test]
fn a_redactor_gets_to_see_texts_and_no_word_that_programs_decide_by() {
    let failure = crate::Failure::new(crate::FailureCode::HarnessFailed, "why", "what now");
    let (final_message, outcome) = (Some("bye".to_owned()), Outcome::Failed);
    let mut ended = Known::AttemptEnded { outcome, failure: Some(failure), final_message };
    assert_eq!(ended.texts_mut(), ["why", "what now", "bye"]);
    let mut notice = Known::Notice { id: "its-name".into(), text: "its words".into() };
    assert_eq!(notice.texts_mut(), ["its words"]);
    let mut session = Known::SessionStarted { session: "s".into(), model: Some("m".into()) };
    assert_eq!(session.texts_mut(), ["s", "m"]);
    let (request, title, detail) = ("r".to_owned(), "t".to_owned(), Some("d".to_owned()));
    let mut asked = Known::PermissionRequested { request, title, detail, options: Vec::new() };
    assert_eq!(asked.texts_mut(), ["r", "t", "d"]);
    assert!(Known::Discarded.texts_mut().is_empty());
}
