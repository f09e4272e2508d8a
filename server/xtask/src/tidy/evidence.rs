//! The page of what went wrong elsewhere names tests that there are, and leaves no idea out.

use super::Problem;
use crate::repository::{SourceFile, Tree};

const PAGE: &str = "docs/evidence.md";

/// How the first cells of its tables count: a letter that every one of them begins with, and the numbers.
const IDEAS: std::ops::RangeInclusive<u32> = 1..=64;
const REPORTS: [u32; 14] = [73, 74, 76, 77, 80, 81, 82, 83, 85, 86, 87, 94, 95, 97];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let Some(page) = tree.file(PAGE) else { return vec![Problem::new(PAGE, 0, "is missing")] };
    let rows: Vec<_> = rows(page).collect();
    let mut problems = Vec::new();
    let wanted = IDEAS.map(|number| number.to_string()).chain(REPORTS.map(|number| format!("R{number}")));
    for number in wanted {
        let count = rows.iter().filter(|row| row.number == number).count();
        if count != 1 {
            problems.push(Problem::new(PAGE, 0, format!("has {count} rows for {number}")));
        }
    }
    for row in rows {
        let named: Vec<_> = row.evidence.split('`').skip(1).step_by(2).filter(|word| word.contains("::")).collect();
        if named.is_empty() && !row.evidence.ends_with('.') {
            problems.push(Problem::new(PAGE, row.line, format!("{} names no test and says no reason", row.number)));
        }
        for name in named.into_iter().filter(|name| !is_test(tree, name)) {
            problems.push(Problem::new(PAGE, row.line, format!("there is no test {name}")));
        }
    }
    problems
}

/// A row of one of its tables.
struct Row<'a> {
    line: usize,
    number: String,
    evidence: &'a str,
}

/// The rows whose first cell is a number, or `R` and a number.
fn rows(page: &SourceFile) -> impl Iterator<Item = Row<'_>> {
    (1..).zip(page.text.lines()).filter_map(|(line, text)| {
        let cells: Vec<_> = text.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(str::trim).collect();
        let [number, _, evidence] = cells[..] else { return None };
        let digits = number.strip_prefix('R').unwrap_or(number);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Row { line, number: number.to_owned(), evidence })
    })
}

/// Whether a source that ends like this module has a test of this name: `hosts::a_job_outlives_its_server`.
fn is_test(tree: &Tree, name: &str) -> bool {
    let Some((module, test)) = name.rsplit_once("::") else { return false };
    let file = format!("/{}.rs", module.replace("::", "/"));
    let function = format!("fn {test}(");
    let has_it = |source: &SourceFile| {
        let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
        let found = (0..lines.len()).filter(|at| lines[*at].starts_with(&function));
        found.into_iter().any(|at| {
            let above = lines[..at].iter().rev().take_while(|line| line.starts_with('#') || line.starts_with("//"));
            above.into_iter().any(|line| *line == "#[test]")
        })
    };
    tree.rust().filter(|source| source.path.ends_with(&file)).any(has_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;
    use crate::tidy::found;

    #[test]
    fn tests_that_there_are_not_and_ideas_that_are_left_out_are_found() {
        let text = std::fs::read_to_string(repository::root().join(PAGE)).unwrap();
        let (first, rest) = text.split_once("\n| 1 |").unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        let spoilt = format!("{first}\n| 2 | twice | `lies::it_is`, `no::such_test` |\n| 1 | a | because |\n{rest}");
        let source = "    #[test]\n    #[expect(x)]\n    fn it_is() {\n}\nfn no_test() {}\n";
        let problems = found(check, &[(PAGE, &spoilt), ("tests/e2e/lies.rs", source), ("a/no.rs", source)]);
        for expected in ["has 2 rows for 2", "1 names no test and says no reason", "there is no test no::such_test"] {
            assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:?}");
        }
        assert!(!problems.iter().any(|problem| problem.contains("lies::it_is")), "{problems:?}");
        assert!(!is_test(&Tree::of([("x/lies.rs".to_owned(), source.to_owned())]), "lies::no_test"));
    }
}
