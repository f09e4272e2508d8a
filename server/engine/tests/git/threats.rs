//! The attacks of the threat model, T-01 … T-27, and the measured facts behind them, M1 … M13: one table.
//!
//! A row first shows that its attack works without us, under plain git or under a program that does the obvious thing,
//! or says why that cannot be shown here. Then it shows that the same attack fails against what we do.

mod capturing;
mod execution;
mod limits;
mod links;
mod measured;
mod names;
mod promotion;
pub(crate) mod world;

use std::collections::BTreeMap;

/// What an attack does where nothing is in its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fires {
    /// Its harm was seen.
    Here,
    /// Its harm needs something that is not here; in a few words.
    CannotHere(&'static str),
}

struct Row {
    id: &'static str,
    title: &'static str,
    fires: fn() -> Fires,
    fails: fn(),
}

macro_rules! rows {
    ($($test:ident $id:literal $title:literal $($part:ident)::+;)*) => {
        const ROWS: &[Row] = &[
            $(Row { id: $id, title: $title, fires: $($part)::+::fires, fails: $($part)::+::fails }),*
        ];

        $(
            #[test]
            fn $test() {
                prove($id);
            }
        )*
    };
}

rows! {
    m01 "M1" "a command in core.fsmonitor runs on a status" measured::fsmonitor;
    m02 "M2" "a filter that attributes name runs on status, diff and add" measured::filters;
    m03 "M3" "external diffs and text conversions run on a diff" measured::diffs;
    m04 "M4" "hook files run on status, update-ref and worktree commands" measured::hooks;
    m05 "M5" "configured hooks run in spite of core.hooksPath" measured::configured_hooks;
    m06 "M6" "a rewritten .git file leads git into another repository" measured::redirect;
    m07 "M7" "a tree that became a link has its target emptied" measured::emptied;
    m08 "M8" "config.worktree of the tree moves the checkout elsewhere" capturing::elsewhere;
    m09 "M9" "index flags and excludes hide edits" capturing::hidden;
    m10 "M10" "pipes stop and block git" capturing::pipes;
    m11 "M11" "nested repositories hide contents or stop git" capturing::nested;
    m12 "M12" "patches write outside the checkout" capturing::patches;
    m13 "M13" "a capture through the tree's own git directory runs filters" capturing::private;
    t01 "T-01" "cleanup wipes another directory" links::cleanup;
    t02 "T-02" "fsmonitor" execution::fsmonitor;
    t03 "T-03" "filter, textconv, diff and merge drivers" execution::drivers;
    t04 "T-04" "hooks, as files and in configuration" execution::hooks;
    t05 "T-05" "configuration in the environment" execution::environment;
    t06 "T-06" "keys that fire when the person works on" execution::later;
    t07 "T-07" "a second, unhardened way to start git" execution::sibling;
    t08 "T-08" "a redirected .git file, a crafted commondir" execution::discovery;
    t09 "T-09" "core.worktree leads to another directory" execution::worktree;
    t10 "T-10" "a repository made unusable" execution::denial;
    t11 "T-11" "programs planted in the tree" execution::planted;
    t12 "T-12" "edits that are hidden from a status" limits::hidden;
    t13 "T-13" "committed, reset and switched away" limits::committed;
    t14 "T-14" "nested repositories" limits::nested;
    t15 "T-15" "symbolic links" links::symlinks;
    t16 "T-16" "names that are paths" names::syntax;
    t17 "T-17" "names that fold to one" names::collisions;
    t18 "T-18" "entries that change their type" links::types;
    t19 "T-19" "writing through a link" links::through;
    t20 "T-20" "modes" limits::modes;
    t21 "T-21" "a preview that is stale" limits::stale;
    t22 "T-22" "huge and degenerate contents" limits::huge;
    t23 "T-23" "names and notes that deceive" names::display;
    t24 "T-24" "files that editors obey" promotion::editors;
    t25 "T-25" "files that agents obey" promotion::agents;
    t26 "T-26" "files that git, shells and builds obey" promotion::tools;
    t27 "T-27" "submodules" promotion::submodules;
}

/// Whether there is a row of this name.
pub(crate) fn is_row(id: &str) -> bool {
    ROWS.iter().any(|row| row.id == id)
}

fn prove(id: &str) {
    let row = ROWS.iter().find(|row| row.id == id).unwrap();
    (row.fires)();
    (row.fails)();
}

/// Each attack once, and how many of them can be shown to be real on this machine.
#[test]
fn the_table_is_complete() {
    let expected: Vec<String> =
        (1..=13).map(|number| format!("M{number}")).chain((1..=27).map(|number| format!("T-{number:02}"))).collect();
    assert_eq!(ROWS.iter().map(|row| row.id).collect::<Vec<_>>(), expected);
    let cannot: BTreeMap<&str, &str> = ROWS
        .iter()
        .filter_map(|row| match (row.fires)() {
            Fires::Here => None,
            Fires::CannotHere(why) => Some((row.id, why)),
        })
        .collect();
    for Row { id, title, .. } in ROWS {
        println!("{id} {title}: {}", cannot.get(id).unwrap_or(&"fires here"));
    }
    println!("{} rows: {} fire here, {} cannot", ROWS.len(), ROWS.len() - cannot.len(), cannot.len());
}
