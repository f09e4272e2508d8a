//! Parts by name, and the law that any choice of them in any order is the same as all of it at once.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::change::{Entry, EntryMode};

fn change(old: (EntryMode, &str), new: (EntryMode, &str)) -> Change {
    let entry = |(mode, text): (EntryMode, &str)| {
        // Any id that differs with the text.
        let object = format!(
            "{:040x}",
            text.bytes().fold(7_u128, |sum, byte| sum.wrapping_mul(31).wrapping_add(u128::from(byte)))
        );
        Some(Entry { mode, object: object[object.len() - 40..].parse().unwrap(), size: text.len() as u64 })
    };
    Change { path: crate::RepoPath::new("a").unwrap(), old: entry(old), new: entry(new) }
}

fn parts<'t>(old: &'t str, new: &'t str) -> Parts<'t> {
    let change = change((EntryMode::File, old), (EntryMode::File, new));
    divide(&change, Some(old.as_bytes()), Some(new.as_bytes()), None, || unreachable!()).unwrap()
}

fn ids(old: &str, new: &str) -> Vec<String> {
    parts(old, new).ids().iter().map(ToString::to_string).collect()
}

#[test]
fn names_read_like_a_unified_diff_and_lead_back() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("a\nb\nc\n", "a\nB\nc\n", &["-2,1+2,1"]),
        ("a\nc\n", "a\nb\nc\n", &["-1,0+2,1"]),
        ("a\n", "x\na\n", &["-0,0+1,1"]),
        ("a\nb\n", "b\n", &["-1,1+0,0"]),
        ("1\n2\n3\n4\n5\n", "1\nzwei\n3\n4\n", &["-2,1+2,1", "-5,1+4,0"]),
        ("a", "a\n", &["-1,1+1,1"]),
    ];
    for (old, new, expected) in cases {
        assert_eq!(ids(old, new), *expected, "{old:?} → {new:?}");
        for id in *expected {
            assert_eq!(id.parse::<GroupId>().unwrap().to_string(), *id);
        }
    }
    assert_eq!(["whole".parse(), "mode".parse()], [Ok(GroupId::Whole), Ok(GroupId::Mode)]);
}

#[test]
fn what_names_no_part_is_refused() {
    for text in [
        "",
        "all",
        "-1,1",
        "+1,1",
        "-1,1+",
        "-01,1+1,1",
        "-0,1+1,1",
        "-1,0+1,0",
        "-1,1+1,1 ",
        "-4294967295,1+1,1",
        "-99999999999,1+1,1",
        "--1,1+1,1",
    ] {
        assert!(text.parse::<GroupId>().is_err(), "{text:?}");
    }
    let parts = parts("a\nb\nc\n", "a\nB\nc\n");
    for id in ["mode", "-1,1+1,1", "-2,1+2,2", "-2,1+9,1", "-900,1+2,1"] {
        let id = id.parse().unwrap();
        assert_eq!(parts.choose(&[id]), Err(PartError::Unknown(id)), "{id}");
    }
}

#[test]
fn only_changed_text_is_taken_apart() {
    let file = EntryMode::File;
    let divided = |change: &Change, old: Option<&[u8]>, new: Option<&[u8]>| {
        let parts = divide(change, old, new, None, || unreachable!());
        parts.map(|parts| parts.ids().iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let text = change((file, "a\n"), (file, "b\n"));
    assert_eq!(divided(&text, Some(b"a\n"), Some(b"b\n")).unwrap(), ["-1,1+1,1"]);
    assert_eq!(divided(&text, Some(b"\0"), Some(b"b\n")), Err(Undivided::NotText));
    assert_eq!(divided(&text, Some(b"\xff"), Some(b"b\n")), Err(Undivided::NotText));
    assert_eq!(divided(&text, None, Some(b"b\n")), Err(Undivided::NotText));
    let both = change((file, "a\n"), (EntryMode::Executable, "b\n"));
    assert_eq!(divided(&both, Some(b"a\n"), Some(b"b\n")).unwrap(), ["-1,1+1,1", "mode"]);
    let mode = change((file, "a\n"), (EntryMode::Executable, "a\n"));
    assert_eq!(divided(&mode, None, None).unwrap(), ["mode"]);
    for undivided in [
        Change { old: None, ..text.clone() },
        Change { new: None, ..text.clone() },
        change((file, "a\n"), (EntryMode::Symlink, "b\n")),
        change((EntryMode::Symlink, "a"), (EntryMode::Symlink, "b")),
    ] {
        assert_eq!(divided(&undivided, Some(b"a\n"), Some(b"b\n")), Err(Undivided::Kind));
    }
    let long = "x\n".repeat(MAX_LINES + 1);
    assert_eq!(divided(&text, Some(b""), Some(long.as_bytes())), Err(Undivided::TooManyLines));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a deadline that is over is a time that was")]
fn the_names_of_a_small_change_are_the_same_when_time_is_over() {
    let (old, new) = ("1\n2\n3\n4\n", "eins\n2\n3\nvier\n");
    let change = change((EntryMode::File, old), (EntryMode::File, new));
    let (over, unasked) = (Some(Instant::now()), || unreachable!("what holds no deadline asks no clock"));
    let parts = divide(&change, Some(old.as_bytes()), Some(new.as_bytes()), over, unasked).unwrap();
    assert_eq!(parts.ids().iter().map(ToString::to_string).collect::<Vec<_>>(), ids(old, new));
    let coarse = "-1,4+1,4".parse().unwrap();
    assert_eq!(parts.choose(&[coarse]), Err(PartError::Unknown(coarse)));
}

#[test]
fn one_of_two_groups_of_one_hunk_is_taken_and_the_other_one_later() {
    let (old, new) = ("1\n2\n3\n4\n", "eins\n2\n3\nvier\n");
    let parts = parts(old, new);
    let [first, last] = parts.lines() else { panic!("{:?}", parts.ids()) };
    let taken = parts.take(std::slice::from_ref(last), Had::Base).unwrap();
    assert_eq!(taken, Taken::Text("1\n2\n3\nvier\n".into()));
    assert_eq!(parts.accepted("1\n2\n3\nvier\n", &[]), Some(vec![false, true]));
    let rest = parts.take(std::slice::from_ref(first), Had::Text("1\n2\n3\nvier\n")).unwrap();
    assert_eq!(rest, Taken::Text(new.into()));
    assert_eq!(parts.take(std::slice::from_ref(first), Had::Result).unwrap(), Taken::Same);
    assert_eq!(parts.without(std::slice::from_ref(first), Had::Result).unwrap(), "1\n2\n3\nvier\n");
    assert_eq!(parts.without(std::slice::from_ref(last), Had::Text("1\n2\n3\nvier\n")).unwrap(), old);
    assert_eq!(parts.without(std::slice::from_ref(first), Had::Text("1\n2\n3\nvier\n")), None);
    assert_eq!(parts.without(std::slice::from_ref(first), Had::Base), None);
}

#[test]
fn a_text_that_comes_from_elsewhere_is_no_mix() {
    let parts = parts("1\n2\n3\n", "eins\n2\n3\n");
    assert_eq!(parts.accepted("1\n2\ndrei\n", &[]), None);
    let chosen = parts.lines().to_vec();
    assert_eq!(parts.take(&chosen, Had::Text("1\n2\ndrei\n")).unwrap(), Taken::Merge("eins\n2\n3\n".into()));
}

#[test]
fn groups_of_a_coarser_look_are_taken_if_they_make_sense() {
    let (old, new) = ("1\n2\n3\n4\n", "eins\n2\n3\nvier\n");
    let mut coarse = parts(old, new);
    coarse.exact = false;
    let whole: GroupId = "-1,4+1,4".parse().unwrap();
    let chosen = coarse.choose(&[whole]).unwrap();
    assert_eq!(coarse.mix(&chosen.lines).unwrap(), new);
    let beyond: GroupId = "-1,5+1,4".parse().unwrap();
    assert_eq!(coarse.choose(&[beyond]), Err(PartError::Unknown(beyond)));
    let overlapping = coarse.choose(&[whole, "-1,1+1,1".parse().unwrap()]).unwrap();
    assert!(matches!(coarse.mix(&overlapping.lines), Err(PartError::Overlap(_))));
}

#[test]
fn lines_are_never_torn_apart() {
    let mut parts = parts("1\n2\n3", "1\n2\n3\n4");
    parts.exact = false;
    for id in ["-3,0+4,1", "-1,1+4,1"] {
        let chosen = parts.choose(&[id.parse().unwrap()]).unwrap();
        assert!(matches!(parts.mix(&chosen.lines), Err(PartError::Overlap(_))), "{id}");
    }
}

/// Texts over few lines, so that equal ones abound; some without a last line feed.
fn any_text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a\n", "b\n", "}\n", "\n", "x\r\n", "ä\n"]);
    (prop::collection::vec(line, 0..14), any::<bool>()).prop_map(|(lines, bare)| {
        let text = lines.concat();
        if bare { text.trim_end_matches('\n').to_owned() } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        rng_seed: RngSeed::Fixed(2),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn parts_in_any_order_are_all_of_it_at_once(
        (old, new) in (any_text(), any_text()),
        order in Just((0..14_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let parts = parts(&old, &new);
        let mut text = old.clone();
        for number in order.into_iter().filter(|number| *number < parts.lines().len()) {
            let had = if text == old { Had::Base } else { Had::Text(&text) };
            match parts.take(&parts.lines()[number..=number], had).unwrap() {
                Taken::Text(taken) => text = taken,
                other => prop_assert!(false, "{other:?}"),
            }
        }
        prop_assert_eq!(text, new);
    }

    #[test]
    fn what_a_choice_makes_is_recognised(
        (old, new) in (any_text(), any_text()),
        chosen in prop::collection::vec(any::<bool>(), 14),
    ) {
        let parts = parts(&old, &new);
        let pick = |marks: &[bool]| -> Vec<Group> {
            parts.lines().iter().zip(marks).filter(|(_, mark)| **mark).map(|(group, _)| group.clone()).collect()
        };
        let text = parts.mix(&pick(&chosen)).unwrap();
        // Another choice may make the same text; what counts is that it does.
        let marks = parts.accepted(&text, &[]).expect("a mix is recognised");
        prop_assert_eq!(parts.mix(&pick(&marks)).unwrap(), text);
    }

    #[test]
    fn ids_that_parse_print_the_same(text in "(whole|mode|-[0-9]{1,6},[0-9]{1,4}\\+[0-9]{1,6},[0-9]{1,4}|.{0,12})") {
        if let Ok(id) = text.parse::<GroupId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }
}
