//! No type, module or file has a name that says nothing.

use super::Problem;
use crate::repository::Tree;

const EMPTY: [&str; 5] = ["manager", "service", "helper", "util", "processor"];
/// What declares a name.
const DECLARES: [&str; 6] = ["struct ", "enum ", "trait ", "type ", "mod ", "class "];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in &tree.files {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        if let Some(word) = empty(name) {
            problems.push(Problem::new(&file.path, 0, format!("its name says nothing: {word:?}")));
        }
        if ![".rs", ".ts", ".lua"].iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        for (at, line) in (1..).zip(file.text.lines()) {
            if let Some((name, word)) = declared(line).and_then(|name| Some((name, empty(name)?))) {
                problems.push(Problem::new(&file.path, at, format!("the name {name} says nothing: {word:?}")));
            }
        }
    }
    problems
}

/// The name that this line declares, if it begins a declaration.
fn declared(line: &str) -> Option<&str> {
    let mut code = line.trim_start();
    if let Some(rest) = code.strip_prefix("pub").or_else(|| code.strip_prefix("export ")) {
        code = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest).trim_start();
    }
    let rest = DECLARES.iter().find_map(|keyword| code.strip_prefix(keyword))?;
    Some(rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
}

fn empty(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    EMPTY.into_iter().find(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn names_that_say_nothing_are_found_where_they_are_declared() {
        let text = "use tower::LspService;\n    pub(crate) struct JobManager {\nmod utils;\nfn f(x: Service) {}\n";
        let expected = [
            "a/helpers.ts: its name says nothing: \"helper\"",
            "a/x.rs:2: the name JobManager says nothing: \"manager\"",
            "a/x.rs:3: the name utils says nothing: \"util\"",
        ];
        assert_eq!(found(check, &[("a/helpers.ts", ""), ("a/x.rs", text)]), expected);
    }
}
