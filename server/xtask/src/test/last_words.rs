//! Why a step failed, from what it said: repeated below the table, where whoever reads only the end finds it.

/// Lines of the beginning and of the end of what one test, or a step without tests, said: a panic is told first, before
/// its backtrace; what a program that was started said comes last.
const LINES: usize = 10;
/// Tests that are quoted; of more, the runner's own output tells.
const TESTS: usize = 5;

/// What each failed test said, or what the step said if no test failed, shortened.
pub(super) fn of(said: &str) -> Vec<String> {
    let lines: Vec<&str> = said.lines().collect();
    let failed = lines.iter().enumerate().filter(|(_, line)| has_failed(line));
    let tests: Vec<Vec<String>> = failed.filter_map(|(at, line)| test(line, &lines[at + 1..])).collect();
    if tests.is_empty() {
        return shortened(&lines);
    }
    tests.into_iter().take(TESTS).flatten().collect()
}

/// A failed test as nextest quotes it at the end of its run: a line about it, then its outputs, indented. Earlier it
/// is only named.
fn test(line: &str, after: &[&str]) -> Option<Vec<String>> {
    let is_quoted = |line: &&&str| line.is_empty() || line.starts_with("  ") && !is_outcome(line);
    let outputs: Vec<&str> = after.iter().take_while(is_quoted).copied().collect();
    let mut outputs = outputs.split(|line| line.ends_with("───")).skip(1).map(shortened);
    let stdout = outputs.next()?;
    let stderr = outputs.next().filter(|said| !said.is_empty());
    Some(std::iter::once(line.trim().to_owned()).chain(stderr.unwrap_or(stdout)).collect())
}

fn has_failed(line: &str) -> bool {
    is_outcome(line) && !["PASS", "SLOW"].iter().any(|how| line.trim_start().starts_with(how))
}

/// A line that says how a test ended: `FAIL [  81.120s] ( 940/1315) binary test`.
fn is_outcome(line: &str) -> bool {
    let Some((how, rest)) = line.trim_start().split_once(" [") else { return false };
    how.chars().all(|letter| letter.is_ascii_uppercase() || letter == '-' || letter == ' ') && rest.contains("s] (")
}

fn shortened(lines: &[&str]) -> Vec<String> {
    let told: Vec<String> =
        lines.iter().filter(|line| !line.trim().is_empty()).map(|line| format!("  {}", line.trim_end())).collect();
    if told.len() <= 2 * LINES {
        return told;
    }
    let left = format!("  … {} lines", told.len() - 2 * LINES);
    [&told[..LINES], &[left], &told[told.len() - LINES..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_test_is_quoted_once_and_none_that_passed() {
        let said = "        FAIL [  81.1s] (1/3) pactify-tests::e2e clients::together\n\
                    \x20       SLOW [> 60.0s] (───) pactify-tests::e2e lies\n\
                    ────────────\n     Summary [ 90.1s] 3 tests run: 1 passed, 2 failed\n\
                    \x20       PASS [   3.2s] (2/3) pactify-engine oracles\n  stdout ───\n\n    400 cases\n\n\
                    \x20       FAIL [  81.1s] (1/3) pactify-tests::e2e clients::together\n  stdout ───\n\n    running 1 test\n\n\
                    \x20 stderr ───\n\n    Error: not within 60 s\n\n    Caused by: x\n\n\
                    \x20    TIMEOUT [ 180.0s] (3/3) pactify-tests::e2e hangs\n  stdout ───\n\n    running 1 test\n\nerror: test run failed\n";
        assert_eq!(
            of(said),
            [
                "FAIL [  81.1s] (1/3) pactify-tests::e2e clients::together",
                "      Error: not within 60 s",
                "      Caused by: x",
                "TIMEOUT [ 180.0s] (3/3) pactify-tests::e2e hangs",
                "      running 1 test",
            ]
        );
    }

    #[test]
    fn a_step_without_tests_is_quoted_from_both_ends() {
        let said: String = (1..=40).map(|number| format!("line {number}\n\n")).collect();
        let words = of(&said);
        assert_eq!((words.len(), words[LINES - 1].as_str()), (2 * LINES + 1, "  line 10"));
        assert_eq!((words[LINES].as_str(), words[LINES + 1].as_str()), ("  … 20 lines", "  line 31"));
    }
}
