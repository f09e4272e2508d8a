//! One path under every constellation of base, accepted, chosen and current content.

use super::*;

fn entry(name: &str) -> Option<Entry> {
    let (mode, digit) = match name.strip_prefix('+') {
        Some(digit) => (EntryMode::Executable, digit),
        None => (EntryMode::File, name),
    };
    let (mode, digit) = digit.strip_prefix('@').map_or((mode, digit), |digit| (EntryMode::Symlink, digit));
    (name != "-").then(|| Entry { mode, object: object(digit), size: 1 })
}

fn object(digit: &str) -> ObjectId {
    digit.repeat(40).parse().unwrap()
}

fn path() -> RepoPath {
    RepoPath::new("a").unwrap()
}

/// `-` is nothing, a digit a file, `+` before it an executable, `@` a link.
fn set(old: &str, new: &str) -> ChangeSet {
    let changes = vec![Change { path: path(), old: entry(old), new: entry(new) }];
    let id = ChangeSetId::of_result_tree(object("e"));
    ChangeSet { id, base_tree: object("f"), changes, notes: vec![] }
}

fn checkout(current: &str) -> Checkout {
    let observed = match entry(current) {
        None => Observed::Absent,
        Some(entry) => Observed::Entry { mode: entry.mode, object: entry.object },
    };
    Checkout { observed: [(path(), observed)].into(), ..Checkout::default() }
}

fn told(outlook: &Outlook) -> String {
    match outlook {
        Outlook::Clean => "clean".to_owned(),
        Outlook::Already => "already".to_owned(),
        Outlook::Merge(object) => format!("merge {}", &object.as_str()[..1]),
        Outlook::Conflict(conflict) => format!("{:?}", conflict.kind),
    }
}

fn clean(digit: &str) -> Option<Merge> {
    Some(Merge::Clean { object: object(digit), size: 1 })
}

#[test]
fn a_whole_path_goes_by_the_three_way_rule() {
    let both = Some(Merge::Conflicted { places: 1 });
    for (old, new, current, merge, expected) in [
        ("1", "2", "1", None, "clean"),
        ("1", "2", "2", None, "already"),
        ("1", "2", "3", None, "ContentDiffers"),
        ("1", "2", "3", clean("4"), "merge 4"),
        ("1", "2", "3", clean("3"), "already"),
        ("1", "2", "3", clean("2"), "clean"),
        ("1", "2", "3", both.clone(), "ContentDiffers"),
        ("1", "2", "3", Some(Merge::Impossible("it is no text".into())), "ContentDiffers"),
        ("1", "2", "-", None, "Missing"),
        ("1", "2", "@3", clean("4"), "ContentDiffers"),
        ("-", "2", "-", None, "clean"),
        ("-", "2", "2", None, "already"),
        ("-", "2", "+2", None, "AlreadyExists"),
        ("-", "2", "3", clean("4"), "AlreadyExists"),
        ("1", "-", "1", None, "clean"),
        ("1", "-", "-", None, "already"),
        ("1", "-", "3", clean("4"), "ContentDiffers"),
        ("1", "@2", "1", None, "clean"),
        ("1", "@2", "3", clean("4"), "ContentDiffers"),
        // The bit and the content merge apart.
        ("1", "2", "+1", None, "merge 2"),
        ("1", "+1", "3", None, "merge 3"),
        ("1", "+2", "+1", None, "clean"),
        ("1", "+2", "2", None, "clean"),
        ("1", "+2", "3", clean("4"), "merge 4"),
        ("+1", "2", "+3", clean("4"), "merge 4"),
    ] {
        let merges = merge.clone().map(|merge| (path(), merge)).into_iter().collect();
        let grounds = Grounds { merges, ..Grounds::default() };
        let outlook = set(old, new).outlook(&grounds, &checkout(current));
        assert_eq!(told(&outlook[&path()]), expected, "{old} → {new}, the checkout has {current}, {merge:?}");
    }
}

#[test]
fn what_was_accepted_before_is_the_base_of_the_next_apply() {
    // Base 1, result 5. `old` was accepted, `without` is that without the chosen part, `target` with it.
    for (old, without, target, current, merge, expected) in [
        ("2", "2", "3", "2", None, "clean"),
        ("2", "2", "3", "3", None, "already"),
        ("2", "2", "3", "1", None, "ContentDiffers"),
        ("2", "2", "3", "1", clean("4"), "merge 4"),
        // Taken back by hand, and wanted again.
        ("5", "1", "5", "1", None, "clean"),
        ("5", "1", "5", "5", None, "already"),
        // Edited since: nothing new is chosen, so the person's text stays.
        ("5", "1", "5", "7", None, "already"),
        ("5", "1", "5", "-", None, "already"),
        ("-", "-", "5", "-", None, "clean"),
    ] {
        let goal = Goal { old: entry(old), without: entry(without), target: entry(target) };
        let merges = merge.map(|merge| (path(), merge)).into_iter().collect();
        let grounds = Grounds { goals: [(path(), goal)].into(), merges, ..Grounds::default() };
        let outlook = set("1", "5").outlook(&grounds, &checkout(current));
        assert_eq!(told(&outlook[&path()]), expected, "{old} {without} {target}, the checkout has {current}");
    }
}

#[test]
fn a_merge_is_written_only_as_it_was_shown() {
    let set = set("1", "2");
    let everything = Selection::All { confirmed: vec![] };
    let mut grounds = Grounds::default();
    let wanted = ToMerge { path: path(), base: object("1"), ours: object("3"), theirs: object("2") };
    assert_eq!(set.to_merge(&everything, &grounds, &checkout("3")), [wanted]);
    assert_eq!(set.to_merge(&everything, &grounds, &checkout("1")), []);
    assert_eq!(set.to_merge(&Selection::Paths(vec![]), &grounds, &checkout("3")), []);

    grounds.merges.insert(path(), Merge::Clean { object: object("4"), size: 9 });
    let refused = set.check(&everything, &grounds, &checkout("3")).unwrap_err();
    assert_eq!(
        (refused[0].kind, refused[0].object.as_deref()),
        (ConflictKind::MergeNotShown, Some(object("4").as_str()))
    );
    grounds.shown.insert(path(), object("5"));
    assert_eq!(set.check(&everything, &grounds, &checkout("3")).unwrap_err(), refused);
    grounds.shown.insert(path(), object("4"));
    let plan = set.check(&everything, &grounds, &checkout("3")).unwrap();
    let [action] = plan.actions() else { panic!("{plan:?}") };
    assert_eq!(action.becomes.as_ref().map(|entry| &entry.object), Some(&object("4")));
    assert!(action.merged && plan.is_complete());
    assert_eq!(plan.accepts()[&path()], entry("2"), "what is accepted is the job's, not the merge");
}

#[test]
fn a_plan_is_complete_when_all_of_the_result_is_accepted() {
    let (file, none) = (checkout("1"), Selection::Paths(vec![path()]));
    let goal = |target: &str| Goal { old: entry("1"), without: entry("1"), target: entry(target) };
    for (target, complete) in [("2", true), ("3", false)] {
        let grounds = Grounds { goals: [(path(), goal(target))].into(), ..Grounds::default() };
        assert_eq!(set("1", "2").check(&none, &grounds, &file).unwrap().is_complete(), complete, "{target}");
    }
}
