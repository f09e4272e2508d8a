//! The fold of a journal, event by event and for any order of events.

use proptest::prelude::*;

use super::*;
use crate::job::event::{Event, ExitRecord};
use crate::job::outcome::Deadline;

fn process() -> ProcessRecord {
    ProcessRecord { pid: 7, start_time: 9, boot_id: "b".into() }
}

fn started(reason: AttemptReason) -> Known {
    Known::AttemptStarted { reason, host: HostRecord { process: process(), version: "0.1.0".into() } }
}

fn ended(outcome: Outcome) -> Known {
    Known::AttemptEnded { outcome, failure: None, final_message: None }
}

fn launched() -> Known {
    Known::Launched { leader: process(), harness_version: None }
}

fn asked(request: &str) -> Known {
    let title = format!("may I {request}?");
    Known::PermissionRequested { request: request.into(), title, detail: None, options: vec![] }
}

fn answered(request: &str) -> Known {
    Known::PermissionAnswered { request: request.into(), option: None }
}

fn applied(apply: u32) -> Known {
    let tree: crate::ObjectId = "a".repeat(40).parse().unwrap();
    Known::Applied {
        apply,
        change_set: crate::ChangeSetId::of_result_tree(tree),
        complete: true,
        accepted: None,
        paths: Vec::new(),
    }
}

fn tree_ready() -> Known {
    let path = crate::AbsPath::new("/tree").unwrap();
    Known::TreeReady { tree: TreeRecord { path, device: 1, inode: 2, isolation: crate::job::Isolation::Private } }
}

fn id(digit: &str) -> ObjectId {
    digit.repeat(40).parse().unwrap()
}

fn captured(tree: &str) -> Known {
    let (change_set, totals) = (crate::ChangeSetId::of_result_tree(id(tree)), crate::change::Totals::default());
    Known::Captured { result: ResultRecord { change_set, base_tree: id("0"), totals } }
}

fn journal(events: impl IntoIterator<Item = (u32, Known)>) -> Vec<Record> {
    let at = Timestamp::UNIX_EPOCH;
    (1..)
        .zip(events)
        .map(|(seq, (attempt, known))| Record {
            seq: Seq(seq),
            at,
            attempt: serde_json::from_value(attempt.into()).unwrap(),
            event: known.into(),
        })
        .collect()
}

#[test]
fn a_whole_life_folds_to_its_end() {
    let state = JobState::fold(&journal([
        (1, started(AttemptReason::Run)),
        (1, launched()),
        (1, Known::SessionStarted { session: "s".into(), model: None }),
        (1, Known::Message { text: "working".into() }),
        (1, ended(Outcome::Succeeded)),
        (1, applied(1)),
    ]));
    assert_eq!(state.seen(Host::Gone), SeenState::Finished);
    assert_eq!(state.disposition, Disposition::Applied);
    assert_eq!(state.ended().unwrap().outcome, Outcome::Succeeded);
    assert_eq!(state.ignored, 0);
}

#[test]
fn an_open_attempt_without_a_host_is_lost() {
    let state = JobState::fold(&journal([(1, started(AttemptReason::Run)), (1, launched())]));
    assert_eq!(state.seen(Host::Alive), SeenState::Running);
    assert_eq!(state.seen(Host::Gone), SeenState::Lost);
    assert_eq!(JobState::default().seen(Host::Gone), SeenState::Lost);
    assert_eq!(JobState::default().seen(Host::Alive), SeenState::Queued);
}

#[test]
fn a_recovery_opens_the_next_attempt_and_keeps_the_session() {
    let state = JobState::fold(&journal([
        (1, started(AttemptReason::Run)),
        (1, Known::SessionStarted { session: "s".into(), model: None }),
        (2, started(AttemptReason::Recovery)),
        (1, ended(Outcome::Succeeded)),
        (2, ended(Outcome::Failed)),
    ]));
    let attempt = state.attempt.as_ref().unwrap();
    assert_eq!((attempt.number, attempt.session.as_deref()), (AttemptNo::FIRST.next(), Some("s")));
    assert_eq!(state.ended().unwrap().outcome, Outcome::Failed, "the late word of attempt 1 counts for nothing");
    assert_eq!(state.ignored, 1);
}

#[test]
fn a_tree_is_uncaptured_from_a_launch_in_it_until_a_capture_or_its_end() {
    let is_uncaptured = |events: &[Known]| {
        let events = [started(AttemptReason::Run)].into_iter().chain(events.iter().cloned());
        let state = JobState::fold(&journal(events.map(|event| (1, event))));
        (state.is_uncaptured, state.is_to_capture())
    };
    let end = || ended(Outcome::Failed);
    for (events, expected) in [
        (vec![launched(), end()], (false, false)),
        (vec![tree_ready(), end()], (false, false)),
        (vec![tree_ready(), launched()], (true, false)),
        (vec![tree_ready(), launched(), end()], (true, true)),
        (vec![tree_ready(), launched(), captured("1"), end()], (false, false)),
        (vec![tree_ready(), launched(), end(), Known::TreeRemoved], (false, false)),
        (vec![tree_ready(), launched(), end(), Known::Discarded], (false, false)),
    ] {
        assert_eq!(is_uncaptured(&events), expected, "{events:?}");
    }
}

#[test]
fn what_was_not_as_it_was_in_the_checkout_is_kept_for_a_recovery_and_not_for_another_turn() {
    let compared = Known::CheckoutCompared { of: AttemptNo::FIRST, changed: vec!["a: is new".into()], more: 3 };
    let after = |reason| {
        let state =
            JobState::fold(&journal([(1, started(AttemptReason::Run)), (1, compared.clone()), (2, started(reason))]));
        (state.checkout_changes.len(), state.checkout_changes_more)
    };
    assert_eq!(after(AttemptReason::Recovery), (1, 3));
    assert_eq!(after(AttemptReason::Resume), (0, 0));
}

#[test]
fn a_session_knows_what_its_attempts_used() {
    let used = |input_tokens| Known::Usage { usage: Usage { input_tokens, ..Usage::default() } };
    let named = |session: &str| Known::SessionStarted { session: session.into(), model: None };
    let sofar = |more: &[(u32, Known)]| {
        let first = [(1, started(AttemptReason::Run)), (1, named("s")), (1, used(5)), (1, ended(Outcome::Succeeded))];
        let second = [(2, started(AttemptReason::Resume)), (2, used(7))];
        let state = JobState::fold(&journal(first.into_iter().chain(second).chain(more.iter().cloned())));
        state.attempt.unwrap().session_usage().input_tokens
    };
    assert_eq!(sofar(&[]), 12);
    assert_eq!(sofar(&[(2, named("s"))]), 12);
    assert_eq!(sofar(&[(2, named("another"))]), 7, "another session counts from zero");
}

/// One event of every kind, but for those of which there are several below.
fn of_every_kind() -> Vec<Known> {
    let (text, item) = (|| "m".to_owned(), || "i".to_owned());
    let checkout = CheckoutRecord { path: crate::AbsPath::new("/checkout").unwrap(), device: 1, inode: 3 };
    vec![
        started(AttemptReason::Resume),
        tree_ready(),
        launched(),
        Known::SessionStarted { session: "s".into(), model: None },
        Known::Message { text: text() },
        Known::Reasoning { text: text() },
        Known::CommandStarted { item: item(), command: text() },
        Known::CommandOutput { item: item(), text: text() },
        Known::CommandEnded { item: item(), exit_code: Some(0), tail: text() },
        Known::FilesTouched { paths: vec![text()] },
        Known::ToolUsed { tool: text(), failed: false },
        Known::Plan { entries: vec![] },
        Known::Activity { text: text() },
        Known::Notice { id: item(), text: text() },
        Known::Usage { usage: Usage::default() },
        asked("r"),
        answered("r"),
        Known::PermissionDecided { title: text(), granted: true, option: None },
        Known::CancelRequested,
        Known::DeadlinePassed { deadline: Deadline::Stall },
        Known::HarnessExited { exit: ExitRecord::Code(0) },
        Known::Swept { killed: 0, survivors: vec![] },
        captured("1"),
        Known::VerificationStarted,
        Known::Verified { command: text(), passed: true, exit_code: Some(0), tail: text() },
        Known::CheckoutGuarded { checkout, digest: "d".into() },
        Known::CheckoutCompared { of: AttemptNo::FIRST, changed: vec![], more: 0 },
        ended(Outcome::Failed),
        applied(1),
        Known::Undone { apply: 1, accepted: None },
        Known::Discarded,
        Known::TreeRemoved,
        Known::OutsideRecorded { digest: "d".into() },
        Known::OutsideChanges {
            of: AttemptNo::FIRST,
            changes: vec![],
            more: 0,
            more_dangerous: 0,
            before: "d".into(),
            after: "e".into(),
        },
        Known::OutsideRestored { ids: vec![] },
    ]
}

#[test]
fn the_events_of_the_property_tests_are_of_every_kind() {
    let names: BTreeSet<String> = of_every_kind().into_iter().map(|known| Event::from(known).name()).collect();
    assert_eq!(names.len(), 35, "{names:?}");
}

fn any_event() -> impl Strategy<Value = (u32, Known)> {
    let survived = Some(Failure::new(FailureCode::ProcessesSurvived, "x", "y"));
    let survived = Known::AttemptEnded { outcome: Outcome::Failed, failure: survived, final_message: None };
    let known = prop_oneof![
        4 => prop::sample::select(of_every_kind()),
        1 => Just(started(AttemptReason::Run)),
        1 => Just(started(AttemptReason::Recovery)),
        1 => Just(tree_ready()),
        1 => Just(launched()),
        1 => "[rs]".prop_map(|request| asked(&request)),
        1 => "[rs]".prop_map(|request| answered(&request)),
        1 => prop::sample::select(vec!["1", "2"]).prop_map(captured),
        1 => Just(ended(Outcome::Succeeded)),
        1 => Just(survived),
        1 => (1u32..4).prop_map(applied),
    ];
    (1u32..4, known)
}

fn is_legal(state: &JobState) -> bool {
    let attempt = state.attempt.as_ref();
    let ended = state.ended().is_some();
    let waits = attempt.is_some_and(|attempt| !attempt.waiting.is_empty());
    (state.phase == Phase::Queued) == attempt.is_none()
        && (state.phase == Phase::Finished) == ended
        && (state.phase == Phase::Waiting) == waits
        && (!state.is_uncaptured || state.tree.is_some())
        && (!state.is_to_capture() || ended)
        && (!state.is_survived() || ended)
        && state.applies.standing().iter().all(|apply| (1..=state.applies.last()).contains(apply))
}

proptest! {
    #[test]
    fn any_order_of_events_folds_to_a_legal_state(events in prop::collection::vec(any_event(), 0..40)) {
        let mut state = JobState::default();
        for record in journal(events) {
            let (ignored, known) = (state.ignored, record.event.meaning().map(std::borrow::Cow::into_owned));
            state.apply(&record);
            prop_assert!(is_legal(&state), "{state:?} after {record:?}");
            if state.ignored == ignored && matches!(known, Some(Known::Discarded | Known::TreeRemoved)) {
                prop_assert!(state.tree.is_none() && !state.is_uncaptured, "{state:?} after {record:?}");
            }
        }
    }

    #[test]
    fn the_first_terminal_event_of_an_attempt_wins(events in prop::collection::vec(any_event(), 0..40)) {
        let records = journal(events);
        let mut state = JobState::default();
        let mut first_end = None;
        for record in &records {
            let before = state.attempt.as_ref().map(|attempt| attempt.number);
            state.apply(record);
            let number = state.attempt.as_ref().map(|attempt| attempt.number);
            if number != before {
                first_end = None;
            }
            if first_end.is_none() {
                first_end = state.ended().cloned();
            }
            prop_assert_eq!(state.ended().cloned(), first_end.clone());
        }
    }

    #[test]
    fn attempts_only_go_forward(events in prop::collection::vec(any_event(), 0..40)) {
        let mut state = JobState::default();
        let mut highest = None;
        for record in journal(events) {
            state.apply(&record);
            let number = state.attempt.as_ref().map(|attempt| attempt.number);
            prop_assert!(number >= highest);
            highest = number;
        }
    }
}

#[test]
fn every_phase_answers_every_trigger() {
    const PHASES: [Phase; 6] =
        [Phase::Queued, Phase::Preparing, Phase::Running, Phase::Waiting, Phase::Verifying, Phase::Finished];
    const TRIGGERS: [Trigger; 10] = [
        Trigger::Start,
        Trigger::Launch,
        Trigger::Ask,
        Trigger::Answer,
        Trigger::Settle,
        Trigger::Exit,
        Trigger::Verify,
        Trigger::End,
        Trigger::Dispose,
        Trigger::Report,
    ];
    let table: Vec<String> = PHASES
        .iter()
        .flat_map(|phase| TRIGGERS.iter().map(move |trigger| (phase, trigger)))
        .filter_map(|(phase, trigger)| Some(format!("{phase:?} + {trigger:?} = {:?}", transition(*phase, *trigger)?)))
        .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn what_was_accepted_outlives_a_new_result_and_goes_with_an_undo() {
    let result = captured;
    let apply = |apply, accepted: &str| Known::Applied {
        apply,
        change_set: crate::ChangeSetId::of_result_tree(id("1")),
        complete: false,
        accepted: Some(id(accepted)),
        paths: vec!["a".to_owned()],
    };
    let mut events = vec![
        (1, started(AttemptReason::Run)),
        (1, result("1")),
        (1, ended(Outcome::Succeeded)),
        (1, apply(1, "a")),
        (1, apply(2, "b")),
        (1, Known::Undone { apply: 2, accepted: Some(id("a")) }),
    ];
    let state = JobState::fold(&journal(events.clone()));
    assert_eq!((state.applies.standing(), state.accepted, state.applies.last()), (vec![1], Some(id("a")), 2));
    assert_eq!(state.applies.written().iter().map(|apply| apply.undone).collect::<Vec<_>>(), [false, true]);
    assert_eq!(state.disposition, Disposition::PartlyApplied);

    events.extend([(2, started(AttemptReason::Resume)), (2, result("2")), (2, ended(Outcome::Succeeded))]);
    let resumed = JobState::fold(&journal(events.clone()));
    assert_eq!((resumed.accepted, resumed.disposition), (Some(id("a")), Disposition::PartlyApplied));

    events.push((2, Known::Undone { apply: 1, accepted: Some(id("0")) }));
    let undone = JobState::fold(&journal(events));
    assert_eq!((undone.applies.standing(), undone.disposition), (vec![], Disposition::Pending));
}

#[test]
fn an_apply_that_wrote_nothing_is_none_to_take_back() {
    let state =
        JobState::fold(&journal([(1, started(AttemptReason::Run)), (1, ended(Outcome::Succeeded)), (1, applied(1))]));
    assert_eq!((state.applies.last(), state.applies.written()), (1, &[][..]));
}

#[test]
fn dangerous_changes_outside_that_were_not_named_outlive_those_put_back() {
    let change = || {
        let fields = serde_json::json!({
            "id": "1-1", "weight": "dangerous", "place": "hooks/x", "what": "is new", "restorable": true,
        });
        serde_json::from_value(fields).unwrap()
    };
    let changes = |unnamed| Known::OutsideChanges {
        of: crate::AttemptNo::FIRST,
        changes: vec![change()],
        more: unnamed,
        more_dangerous: unnamed,
        before: "b".to_owned(),
        after: "a".to_owned(),
    };
    for (unnamed, left) in [(0, false), (1, true)] {
        let mut events = vec![(1, started(AttemptReason::Run)), (1, launched()), (1, changes(unnamed))];
        events.push((1, ended(Outcome::Succeeded)));
        assert!(JobState::fold(&journal(events.clone())).has_danger_outside());
        events.push((1, Known::OutsideRestored { ids: vec!["1-1".to_owned()] }));
        assert_eq!(JobState::fold(&journal(events)).has_danger_outside(), left, "{unnamed}");
    }
}

#[test]
fn several_requests_wait_at_once_and_each_is_answered_once() {
    let begun = [(1, started(AttemptReason::Run)), (1, launched())];
    let told = |more: &[Known]| {
        let events = begun.iter().cloned().chain(more.iter().map(|known| (1, known.clone())));
        let state = JobState::fold(&journal(events));
        let open: Vec<_> = state.attempt.iter().flat_map(|attempt| &attempt.waiting).collect();
        (state.phase, open.iter().map(|waiting| waiting.request.clone()).collect::<Vec<_>>().join(" "), state.ignored)
    };
    let many: Vec<Known> = (0..50).map(|number| asked(&number.to_string())).collect();
    let all: Vec<Known> = (0..50).rev().map(|number| answered(&number.to_string())).collect();
    for (events, expected) in [
        (vec![asked("a"), asked("b")], (Phase::Waiting, "a b".to_owned(), 0)),
        (vec![asked("a"), asked("b"), answered("a")], (Phase::Waiting, "b".to_owned(), 0)),
        (vec![asked("a"), asked("b"), answered("b"), answered("a")], (Phase::Running, String::new(), 0)),
        (vec![asked("a"), asked("b"), answered("a"), answered("a")], (Phase::Waiting, "b".to_owned(), 1)),
        (vec![asked("a"), answered("never")], (Phase::Waiting, "a".to_owned(), 1)),
        (vec![asked("a"), asked("a")], (Phase::Waiting, "a".to_owned(), 1)),
        (vec![asked("a"), answered("a"), asked("a")], (Phase::Waiting, "a".to_owned(), 0)),
        (vec![asked("a"), Known::HarnessExited { exit: ExitRecord::Code(0) }], (Phase::Running, String::new(), 0)),
        ([many.clone(), all].concat(), (Phase::Running, String::new(), 0)),
    ] {
        assert_eq!(told(&events), expected, "{events:?}");
    }
    let (phase, open, _) = told(&many);
    assert_eq!((phase, open.split(' ').count()), (Phase::Waiting, 50));
}
