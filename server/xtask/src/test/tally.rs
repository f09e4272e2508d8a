//! How many tests a runner says that it ran.

use std::ops::Add;

/// Tests of one step, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
}

impl Tally {
    /// Adds up the summaries of nextest (one) and of cargo's own runner (one for each binary).
    pub(super) fn read(said: &str) -> Self {
        let summaries = said.lines().filter(|line| is_summary(line));
        summaries.map(Self::of_summary).fold(Self::default(), Add::add)
    }

    fn of_summary(line: &str) -> Self {
        let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches([',', ';', ':'])).collect();
        let before = |what: &[&str]| {
            let at = words.windows(what.len() + 1).find(|words| words[1..] == *what);
            at.and_then(|words| words[0].parse::<u64>().ok()).unwrap_or(0)
        };
        let failed = before(&["failed"]) + before(&["timed", "out"]) + before(&["exec", "failed"]);
        Self { passed: before(&["passed"]), failed }
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

/// What nextest quotes of a failed test is indented: cargo's own summaries aren't.
fn is_summary(line: &str) -> bool {
    line.trim_start().starts_with("Summary [") || line.starts_with("test result: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_read_and_added_up() {
        for (said, passed, failed) in [
            ("     Summary [   0.012s] 3 tests run: 3 passed, 0 skipped\n", 3, 0),
            ("     Summary [ 12.5s] 9 tests run: 6 passed (1 slow), 2 failed, 1 timed out, 4 skipped\n", 6, 3),
            ("test result: FAILED. 5 passed; 1 failed; 0 ignored\ntest result: ok. 2 passed; 0 failed;\n", 7, 1),
            (
                "     Summary [ 1s] 2 tests run: 1 passed, 1 failed\n    test result: FAILED. 0 passed; 1 failed;\n",
                1,
                1,
            ),
            ("I passed, 3 passed\n", 0, 0),
        ] {
            assert_eq!(Tally::read(said), Tally { passed, failed }, "{said}");
        }
    }
}
