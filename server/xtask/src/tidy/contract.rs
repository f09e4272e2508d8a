//! The documents of the contract say what the code does: commands, failures with their exit codes, configuration keys.

use std::collections::BTreeMap;

use pactify_core::FailureCode;
use pactify_core::config::{RawConfig, Settings};
use pactify_core::failure::ConflictKind;
use pactify_core::protocol::commands;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Problem;
use crate::repository::{SourceFile, Tree};

const PROTOCOL: &str = "docs/protocol.md";
const CONFIGURATION: &str = "docs/configuration.md";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let hold = |path, rule: fn(&SourceFile) -> Vec<Problem>| {
        tree.file(path).map_or_else(|| vec![Problem::new(path, 0, "is missing")], rule)
    };
    let problems = [hold(PROTOCOL, commands), hold(PROTOCOL, failures), hold(CONFIGURATION, configuration)];
    problems.into_iter().flatten().collect()
}

/// The table of commands: each one with its argument's and its results' types, and no other.
fn commands(file: &SourceFile) -> Vec<Problem> {
    let rows = rows(file, "command");
    let mut problems = Vec::new();
    for command in commands::ALL {
        let Some((line, cells)) = rows.iter().find(|(_, cells)| code(cells[0]).contains(&command.name)) else {
            problems.push(Problem::new(PROTOCOL, 0, format!("has no row for {}", command.name)));
            continue;
        };
        let types = command.results.iter().chain([&command.params]).filter(|name| **name != "Empty");
        for name in types.filter(|name| !code(cells[1]).contains(name) && !code(cells[2]).contains(name)) {
            problems.push(Problem::new(PROTOCOL, *line, format!("{} doesn't mention {name}", command.name)));
        }
    }
    for (line, cells) in rows {
        for name in code(cells[0]).into_iter().filter(|name| commands::ALL.iter().all(|known| known.name != *name)) {
            problems.push(Problem::new(PROTOCOL, line, format!("{name} is no command")));
        }
    }
    problems
}

/// The table of failures, and the list of conflicts.
fn failures(file: &SourceFile) -> Vec<Problem> {
    let mut told: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    let mut problems = Vec::new();
    for (line, cells) in rows(file, "code") {
        for name in code(cells[0]) {
            told.insert(name, (line, cells[1]));
            if parse::<FailureCode>(name).is_none() {
                problems.push(Problem::new(PROTOCOL, line, format!("{name} is no failure's code")));
            }
        }
    }
    for name in variants::<FailureCode>() {
        let exit = parse::<FailureCode>(&name).map(|code| code.exit_code().to_string()).unwrap_or_default();
        match told.get(name.as_str()) {
            None => problems.push(Problem::new(PROTOCOL, 0, format!("doesn't mention the failure {name}"))),
            Some((line, said)) if *said != exit => {
                problems.push(Problem::new(PROTOCOL, *line, format!("{name} ends with {exit}, not {said}")));
            }
            Some(_) => {}
        }
    }
    for name in variants::<ConflictKind>().iter().filter(|name| !file.text.contains(&format!("`{name}`"))) {
        problems.push(Problem::new(PROTOCOL, 0, format!("doesn't mention the conflict {name}")));
    }
    problems
}

/// The example is a valid configuration that shows every key.
fn configuration(file: &SourceFile) -> Vec<Problem> {
    let after = file.text.split("```toml\n").nth(1).unwrap_or_default();
    let example = after.split("```").next().unwrap_or_default();
    let mut problems = Vec::new();
    if let Err(failure) = Settings::parse(example) {
        problems.push(Problem::new(CONFIGURATION, 0, format!("its example is refused: {}", failure.message)));
    }
    let schema = schemars::schema_for!(RawConfig).to_value();
    let types = schema["$defs"].as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("Raw"));
    let keys = types.flat_map(|(_, shape)| shape["properties"].as_object().into_iter().flatten().map(|(key, _)| key));
    for key in keys {
        let is_shown = |line: &str| line.starts_with(&format!("{key} ")) || line.contains(&format!(".{key}]"));
        if !example.lines().any(is_shown) {
            problems.push(Problem::new(CONFIGURATION, 0, format!("its example doesn't show `{key}`")));
        }
    }
    problems
}

/// The rows of the first table whose first column has this title, each with its line and at least three cells.
fn rows<'a>(file: &'a SourceFile, title: &str) -> Vec<(usize, Vec<&'a str>)> {
    let lines = (1..).zip(file.text.lines()).skip_while(|(_, line)| !line.starts_with(&format!("| {title} |")));
    let table = lines.skip(2).take_while(|(_, line)| line.starts_with('|'));
    let cells = table.map(|(at, line)| (at, line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>()));
    cells.filter(|(_, cells)| cells.len() >= 3).collect()
}

/// What stands between backticks.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The names that the values of an enum have on the wire.
fn variants<T: schemars::JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T).to_value();
    let plain = schema["enum"].as_array().into_iter().flatten();
    let described = schema["oneOf"].as_array().into_iter().flatten();
    let described = described.flat_map(|one| one["enum"].as_array().into_iter().flatten().chain(one.get("const")));
    plain.chain(described).filter_map(Value::as_str).map(str::to_owned).collect()
}

fn parse<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(Value::from(name)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;
    use crate::tidy::found;

    /// The document as it is, with one text in place of another.
    fn spoilt(path: &str, from: &str, to: &str) -> Vec<String> {
        let read = |path: &str| std::fs::read_to_string(repository::root().join(path)).unwrap();
        let text = read(path);
        assert!(text.contains(from), "{path} has no {from}");
        let other = if path == PROTOCOL { CONFIGURATION } else { PROTOCOL };
        found(check, &[(path, &text.replacen(from, to, 1)), (other, &read(other))])
    }

    #[test]
    fn what_the_documents_leave_out_or_make_up_is_found() {
        for (path, from, to, expected) in [
            (PROTOCOL, "| `pactify.cancel` |", "| `pactify.stop` |", "has no row for pactify.cancel"),
            (PROTOCOL, "| `pactify.cancel` |", "| `pactify.stop` |", "pactify.stop is no command"),
            (PROTOCOL, "`Delegated`: ", "", "pactify.delegate doesn't mention Delegated"),
            (PROTOCOL, " `unbornHead`", "", "doesn't mention the failure unbornHead"),
            (PROTOCOL, "`unbornHead`", "`bornHead`", "bornHead is no failure's code"),
            (PROTOCOL, "`nothingToApply` | 6", "`nothingToApply` | 7", "nothingToApply ends with 6, not 7"),
            (PROTOCOL, "`nameCollides`", "", "doesn't mention the conflict nameCollides"),
            (CONFIGURATION, "stall-seconds", "pause-seconds", "its example is refused"),
            (CONFIGURATION, "stall-seconds", "# stall-seconds", "its example doesn't show `stall-seconds`"),
        ] {
            let problems = spoilt(path, from, to);
            assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:?}");
        }
    }
}
