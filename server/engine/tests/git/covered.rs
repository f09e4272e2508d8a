//! Tests named by other tests: what a table says is covered elsewhere has to be there.

use std::fs;
use std::path::Path;

/// Insists that the source file `path`, from the server's folder, has a test of that name.
#[track_caller]
pub(crate) fn covered(path: &str, test: &str) {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let source = fs::read_to_string(server.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let function = format!("fn {test}(");
    let at = lines.iter().position(|line| line.starts_with(&function));
    let at = at.unwrap_or_else(|| panic!("{path} has no function {test}"));
    let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with('#') || line.starts_with("///"));
    // In a `proptest!` block, the attribute is the same.
    assert!(attributes.into_iter().any(|line| *line == "#[test]"), "{path}: {test} is no test");
}
