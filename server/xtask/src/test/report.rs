//! The table at the end: every step, its time, its tests; below it, why some of them failed.

use std::time::Duration;

use super::tally::Tally;
use crate::run::say;

/// One line of it.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) took: Duration,
    /// Why it failed, if it did.
    pub(super) failure: Option<Vec<String>>,
    /// Nothing for a step that runs no tests.
    pub(super) tally: Tally,
}

impl Line {
    /// A step without tests, or that failed beside them, counts as one.
    fn counted(&self) -> Tally {
        match (self.failure.is_some(), self.tally) {
            (true, tally) => Tally { failed: tally.failed.max(1), ..tally },
            (false, Tally { passed: 0, failed: 0 }) => Tally { passed: 1, failed: 0 },
            (false, tally) => tally,
        }
    }
}

pub(super) fn print(lines: &[Line], took: Duration) {
    say("");
    for line in lines {
        say(&row(line));
    }
    for failure in lines.iter().filter_map(|line| line.failure.as_ref()) {
        say(&format!("\n{}", failure.join("\n")));
    }
    let all = lines.iter().map(Line::counted).fold(Tally::default(), std::ops::Add::add);
    say(&format!("\n{} passed, {} failed ({})", all.passed, all.failed, shown(took)));
}

fn row(line: &Line) -> String {
    let outcome = if line.failure.is_some() { "FAILED" } else { "ok" };
    let tests = match line.tally {
        Tally { passed: 0, failed: 0 } => String::new(),
        Tally { passed, failed: 0 } => format!("{passed} tests"),
        Tally { passed, failed } => format!("{} tests, {failed} failed", passed + failed),
    };
    format!("  {:14} {outcome:7} {:>8}  {tests}", line.name, shown(line.took)).trim_end().to_owned()
}

fn shown(took: Duration) -> String {
    match took.as_secs() {
        0..60 => format!("{:.1} s", took.as_secs_f64()),
        seconds => format!("{}:{:02} min", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_counts_even_if_all_its_tests_passed() {
        let line = |has_failed: bool, passed, failed| Line {
            name: "tests",
            took: Duration::from_millis(75_400),
            failure: has_failed.then(Vec::new),
            tally: Tally { passed, failed },
        };
        for (line, passed, failed, expected) in [
            (line(false, 0, 0), 1, 0, "  tests          ok      1:15 min"),
            (line(false, 7, 0), 7, 0, "  tests          ok      1:15 min  7 tests"),
            (line(true, 7, 2), 7, 2, "  tests          FAILED  1:15 min  9 tests, 2 failed"),
            (line(true, 7, 0), 7, 1, "  tests          FAILED  1:15 min  7 tests"),
            (line(true, 0, 0), 0, 1, "  tests          FAILED  1:15 min"),
        ] {
            assert_eq!((line.counted(), row(&line).as_str()), (Tally { passed, failed }, expected));
        }
    }
}
