//! Random results, taken in random parts, while the person goes on working. After every step each path holds what the
//! model says, or nothing changed at all.
//!
//! The seeds are fixed; `PACTIFY_TEST_CASES` asks for another number of cases of each seed, and `PACTIFY_TEST_SEED` for
//! another start.

use std::collections::BTreeMap;

use pactify_core::change::group::GroupId;
use pactify_core::failure::ConflictKind;
use pactify_core::protocol::{ApplyParams, Selected, ShownMerge};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

use super::model::{Path, Pick, Verdict};
use super::world::{World, bytes, id_of, name};
use crate::apply::tests::fixture::{Files, Node};

/// The last one holds anything: texts, bytes, links.
const PATHS: [&str; 4] = ["a.txt", "b", "dir/c", "odd"];

/// A file in a directory, and a file of that name in its place.
const SWAP: [&str; 2] = ["swap", "swap/inner"];

/// Of each of the ten seeds.
const CASES: u32 = 1_000;

/// A change of some lines: at a place, this many of them become these.
type Edit = (u8, u8, Vec<u8>);

#[derive(Clone, Debug)]
pub(super) struct PathCase {
    /// How many lines, and whether the last one is whole; no file when absent.
    base: Option<(u8, bool)>,
    /// Something else than lines instead.
    odd: Option<u8>,
    /// Whether its lines repeat themselves.
    repeats: bool,
    pub(super) job: Work,
    /// Before each step.
    pub(super) person: Vec<Option<Work>>,
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    Edits {
        edits: Vec<Edit>,
        flip: bool,
    },
    /// Something that has no lines.
    Put(u8),
    Delete,
    Nothing,
}

#[derive(Clone, Debug)]
struct Case {
    paths: Vec<PathCase>,
    /// What each step chooses of each path: nothing, the whole, or these of its parts.
    steps: Vec<Vec<Option<Option<u8>>>>,
    /// In which order the rest is taken.
    order: u64,
    /// Whether a directory becomes a file, or the other way round, and in which step that is taken.
    swap: (bool, usize),
}

const STEPS: usize = 3;

fn any_edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec((0_u8..12, 0_u8..3, prop::collection::vec(0_u8..6, 0..3)), 1..4)
}

fn any_work() -> impl Strategy<Value = Work> {
    let edits = (any_edits(), prop::bool::weighted(0.15)).prop_map(|(edits, flip)| Work::Edits { edits, flip });
    let flip = Just(Work::Edits { edits: vec![], flip: true });
    prop_oneof![12 => edits, 1 => flip, 1 => Just(Work::Delete), 1 => Just(Work::Nothing)]
}

pub(super) fn any_path() -> impl Strategy<Value = PathCase> {
    let base = prop_oneof![9 => (0_u8..11, prop::bool::weighted(0.9)).prop_map(Some), 1 => Just(None)];
    let person = prop::collection::vec(prop::option::weighted(0.2, any_work()), STEPS);
    (base, prop::bool::weighted(0.25), any_work(), person).prop_map(|(base, repeats, job, person)| PathCase {
        base,
        odd: None,
        repeats,
        job,
        person,
    })
}

/// A path that may hold anything, and become anything.
fn any_odd_path() -> impl Strategy<Value = PathCase> {
    let work = || prop_oneof![3 => any::<u8>().prop_map(Work::Put), 1 => any_work()];
    let person = prop::collection::vec(prop::option::weighted(0.2, work()), STEPS);
    (any_path(), prop::option::weighted(0.7, any::<u8>()), work(), person)
        .prop_map(|(path, odd, job, person)| PathCase { odd, job, person, ..path })
}

/// What has no lines. Few, so that both sides agree at times.
fn odd(number: u8) -> Node {
    match number % 6 {
        0 => Node::File(b"\0one".to_vec()),
        1 => Node::File(b"\0two".to_vec()),
        2 => Node::Executable(b"\0one".to_vec()),
        3 => Node::File(b"gr\xfc\xdfe\n".to_vec()),
        4 => Node::Link(b"a.txt".to_vec()),
        _ => Node::Link(b"dir/c".to_vec()),
    }
}

fn any_case() -> impl Strategy<Value = Case> {
    let pick = prop::option::weighted(0.7, prop::option::weighted(0.8, any::<u8>()));
    let steps = prop::collection::vec(prop::collection::vec(pick, PATHS.len()), 1..=STEPS);
    let quiet = prop::bool::weighted(0.4);
    let paths = (prop::collection::vec(any_path(), PATHS.len() - 1), any_odd_path(), quiet);
    let paths = paths.prop_map(|(mut paths, odd, quiet)| {
        paths.push(odd);
        if quiet {
            paths.iter_mut().for_each(|path| path.person.fill(None));
        }
        paths
    });
    let swap = (any::<bool>(), 0..=STEPS);
    (paths, steps, any::<u64>(), swap).prop_map(|(paths, steps, order, swap)| Case { paths, steps, order, swap })
}

impl PathCase {
    pub(super) fn base(&self) -> Option<Node> {
        if let Some(number) = self.odd {
            return Some(odd(number));
        }
        let (count, whole) = self.base?;
        let line = |number: u8| if self.repeats { format!("{}\n", number % 2) } else { format!("line {number}\n") };
        let mut text: String = (0..count).map(line).collect();
        if !whole {
            text.pop();
        }
        Some(Node::File(text.into_bytes()))
    }
}

impl Work {
    /// What it makes of a file; both sides draw their lines from one pool, so that they agree at times.
    pub(super) fn on(&self, node: Option<&Node>) -> Option<Node> {
        let (edits, flip) = match self {
            Self::Nothing => return node.cloned(),
            Self::Delete => return None,
            Self::Put(number) => return Some(odd(*number)),
            Self::Edits { edits, flip } => (edits, *flip),
        };
        let text = node.filter(|node| !matches!(node, Node::Link(_))).map(bytes).unwrap_or_default().to_vec();
        // What has no lines is written anew.
        let text = String::from_utf8(text).ok().filter(|text| !text.contains('\0')).unwrap_or_default();
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        for (at, count, fresh) in edits {
            let at = usize::from(*at).min(lines.len());
            let end = (at + usize::from(*count)).min(lines.len());
            if at > 0 && !lines[at - 1].ends_with('\n') {
                lines[at - 1].push('\n');
            }
            lines.splice(at..end, fresh.iter().map(|line| format!("new {line}\n")));
        }
        let text = lines.concat().into_bytes();
        let executable = matches!(node, Some(Node::Executable(_))) != flip;
        Some(if executable { Node::Executable(text) } else { Node::File(text) })
    }
}

/// The world of a case, the model of it, and what the checkout holds by the model.
struct Run {
    world: World,
    paths: BTreeMap<&'static str, Path>,
    now: Files,
    edited: bool,
    /// Decides which applies are taken back.
    turn: u64,
}

impl Run {
    fn new(case: &Case) -> Self {
        let (mut base, mut result, mut paths) = (Files::new(), Files::new(), BTreeMap::new());
        for (name, path) in PATHS.into_iter().zip(&case.paths) {
            let before = path.base();
            let after = path.job.on(before.as_ref());
            base.extend(before.clone().map(|node| (name.as_bytes().to_vec(), node)));
            result.extend(after.clone().map(|node| (name.as_bytes().to_vec(), node)));
            paths.insert(name, Path::new(before, after));
        }
        let swapped = |at: usize| Some(Node::File(format!("at {}\n", SWAP[at]).into_bytes()));
        let (from, to) = if case.swap.0 { (0, 1) } else { (1, 0) };
        base.extend(swapped(from).map(|node| (SWAP[from].as_bytes().to_vec(), node)));
        result.extend(swapped(to).map(|node| (SWAP[to].as_bytes().to_vec(), node)));
        paths.insert(SWAP[from], Path::new(swapped(from), None));
        paths.insert(SWAP[to], Path::new(None, swapped(to)));
        let world = World::new(&base, &result);
        Self { world, paths, now: base, edited: false, turn: case.order }
    }

    fn edit(&mut self, path: &'static str, work: &Work) {
        let now = self.now.get(path.as_bytes());
        let edited = work.on(now);
        if edited.as_ref() == now {
            return;
        }
        self.world.edit(path, edited.as_ref());
        self.edited = true;
        match edited {
            Some(node) => drop(self.now.insert(path.as_bytes().to_vec(), node)),
            None => drop(self.now.remove(path.as_bytes())),
        }
    }

    /// Takes the picks, and insists on what the model says of them.
    fn step(&mut self, picks: &BTreeMap<&'static str, Pick>) -> Result<(), TestCaseError> {
        let mut params = self.world.params();
        let select = picks.iter().map(|(path, pick)| Selected { path: name(path), groups: self.groups(path, pick) });
        params.select = Some(select.collect());
        let verdicts: BTreeMap<&str, Verdict> = picks
            .iter()
            .map(|(path, pick)| (*path, self.paths[path].verdict(pick, self.now.get(path.as_bytes()))))
            .collect();
        let mut expected: Vec<(String, ConflictKind, Option<String>)> = Vec::new();
        for (path, verdict) in &verdicts {
            match verdict {
                Verdict::Holds(_) => {}
                Verdict::Conflict(kind) => expected.push(((*path).to_owned(), *kind, None)),
                Verdict::Shown(node) => {
                    let object = id_of(bytes(node)).to_string();
                    params.confirm_merges.push(ShownMerge { path: name(path), object: object.clone() });
                    expected.push(((*path).to_owned(), ConflictKind::MergeNotShown, Some(object)));
                }
            }
        }
        let confirmed = std::mem::take(&mut params.confirm_merges);
        let mut outcome = self.world.apply(&params);
        if let Err(failure) = &outcome {
            let told = failure.conflicts.iter().cloned();
            let told: Vec<_> = told.map(|conflict| (conflict.path.path, conflict.kind, conflict.object)).collect();
            prop_assert_eq!(&told, &expected, "{:?}", failure);
            prop_assert_eq!(&self.world.files(), &self.now, "a refusal changes nothing");
            if expected.iter().all(|(_, kind, _)| *kind == ConflictKind::MergeNotShown) {
                params.confirm_merges = confirmed;
                outcome = self.world.apply(&params);
            } else {
                return Ok(());
            }
        } else {
            prop_assert_eq!(&expected, &vec![]);
        }
        prop_assert!(outcome.is_ok(), "{:?}", outcome);
        self.undone_now_and_then(&params, outcome.is_ok_and(|applied| !applied.written.is_empty()))?;
        for (path, verdict) in verdicts {
            match verdict {
                Verdict::Holds(Some(node)) | Verdict::Shown(node) => drop(self.now.insert(path.into(), node)),
                Verdict::Holds(None) => drop(self.now.remove(path.as_bytes())),
                Verdict::Conflict(_) => prop_assert!(false, "a conflict was applied"),
            }
        }
        for (path, pick) in picks {
            self.paths.get_mut(path).unwrap().accept(pick);
        }
        prop_assert_eq!(&self.world.files(), &self.now);
        Ok(())
    }

    /// Every fourth apply that wrote something is taken back, which makes it undone, and made again.
    fn undone_now_and_then(&mut self, params: &ApplyParams, wrote: bool) -> Result<(), TestCaseError> {
        self.turn = self.turn.rotate_right(2);
        if wrote && self.turn & 3 == 0 {
            self.world.undo();
            prop_assert_eq!(&self.world.files(), &self.now, "apply and undo are nothing");
            let again = self.world.apply(params);
            prop_assert!(again.is_ok(), "{:?}", again);
        }
        Ok(())
    }

    fn groups(&self, path: &str, pick: &Pick) -> Option<Vec<GroupId>> {
        let Pick::Parts { lines, mode } = pick else { return None };
        let groups = self.paths[path].groups.as_ref().unwrap();
        let lines = lines.iter().map(|number| GroupId::of(&groups[*number]));
        Some(lines.chain(mode.then_some(GroupId::Mode)).collect())
    }

    /// The parts of a path that are left, those that `mask` names; nothing if that is none.
    fn pick(&self, path: &str, wanted: Option<u8>) -> Option<Pick> {
        let of = &self.paths[path];
        if !of.is_change() {
            return None;
        }
        let (Some(mask), Some(_), true) = (wanted, &of.groups, of.is_plain()) else { return Some(Pick::Whole) };
        let (lines, mode) = of.left();
        let lines: Vec<usize> = lines.into_iter().filter(|number| mask & (1 << (number % 7)) != 0).collect();
        let mode = mode && mask & 0x80 != 0;
        (!lines.is_empty() || mode).then_some(Pick::Parts { lines, mode })
    }
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let mut run = Run::new(case);
    for (number, step) in case.steps.iter().enumerate() {
        for (path, of) in PATHS.into_iter().zip(&case.paths) {
            if let Some(work) = &of.person[number] {
                run.edit(path, work);
            }
        }
        let picks = PATHS.into_iter().zip(step).filter_map(|(path, wanted)| Some((path, run.pick(path, (*wanted)?)?)));
        let mut picks: BTreeMap<&'static str, Pick> = picks.collect();
        if case.swap.1 == number {
            picks.extend(SWAP.map(|path| (path, Pick::Whole)));
        }
        if !picks.is_empty() {
            run.step(&picks)?;
        }
    }
    // The rest, part by part, in some order.
    let mut rest: Vec<BTreeMap<&'static str, Pick>> = Vec::new();
    let one = |path: &'static str, pick: Pick| BTreeMap::from([(path, pick)]);
    // One half of it would be in the other's way.
    rest.push(SWAP.map(|path| (path, Pick::Whole)).into());
    for path in PATHS {
        let of = &run.paths[path];
        match (&of.groups, of.is_plain()) {
            (Some(_), true) => {
                let (lines, mode) = of.left();
                rest.extend(lines.into_iter().map(|line| one(path, Pick::Parts { lines: vec![line], mode: false })));
                rest.extend(mode.then(|| one(path, Pick::Parts { lines: vec![], mode: true })));
            }
            _ if of.is_change() => rest.push(one(path, Pick::Whole)),
            _ => {}
        }
    }
    let mut order = case.order;
    while !rest.is_empty() {
        let picks = rest.swap_remove(usize::try_from(order % rest.len() as u64).unwrap());
        order = order.rotate_right(7) ^ 0x9e37_79b9;
        run.step(&picks)?;
    }
    if !run.edited {
        for (path, of) in &run.paths {
            prop_assert_eq!(run.now.get(path.as_bytes()), of.result.as_ref(), "all parts make the result: {}", path);
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a longer run is asked for from outside")]
fn asked_for<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn run(seed: u64) {
    let cases = asked_for("PACTIFY_TEST_CASES", CASES);
    let rng_seed = RngSeed::Fixed(asked_for("PACTIFY_TEST_SEED", 0_u64).wrapping_mul(1_000).wrapping_add(seed));
    let config = Config { cases, rng_seed, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&any_case(), |case| check(&case));
    outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
}

macro_rules! seeds {
    ($($seed:ident $number:literal;)*) => {
        $(
            #[test]
            fn $seed() {
                run($number);
            }
        )*
    };
}

seeds! {
    parts_come_to_what_the_model_says_1 1;
    parts_come_to_what_the_model_says_2 2;
    parts_come_to_what_the_model_says_3 3;
    parts_come_to_what_the_model_says_4 4;
    parts_come_to_what_the_model_says_5 5;
    parts_come_to_what_the_model_says_6 6;
    parts_come_to_what_the_model_says_7 7;
    parts_come_to_what_the_model_says_8 8;
    parts_come_to_what_the_model_says_9 9;
    parts_come_to_what_the_model_says_10 10;
}
