//! Links between the documents lead somewhere: to a file of the repository, and to a heading that is in it.

use super::Problem;
use crate::repository::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.below("", ".md").filter(|file| !file.path.contains("/fixtures/")) {
        for (at, target) in links(&file.text) {
            if let Some(what) = broken(tree, &file.path, target) {
                problems.push(Problem::new(&file.path, at, what));
            }
        }
    }
    problems
}

/// Why this link of the document leads nowhere, if so.
fn broken(tree: &Tree, document: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = if path.is_empty() { document.to_owned() } else { resolve(document, path) };
    if !tree.has(&path) {
        return Some(format!("({target}) leads to no file"));
    }
    let text = &tree.file(&path)?.text;
    let is_there = anchor.is_none_or(|anchor| headings(text).any(|heading| heading == anchor));
    (!is_there).then(|| format!("({target}) leads to no heading"))
}

/// The targets of the links outside of code, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, line) in prose(text) {
        // What stands between backticks is code.
        let parts = line.split('`').step_by(2);
        for part in parts {
            let after = part.split("](").skip(1);
            found.extend(after.filter_map(|rest| Some((at, rest.split_once(')')?.0))));
        }
    }
    found
}

/// The lines outside of fences, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_fence = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        !in_fence && !is_fence
    })
}

/// The names that the headings of a document have as anchors.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles = prose(text).map(|(_, line)| line).filter(|line| line.starts_with('#'));
    let titles = titles.map(|line| line.trim_start_matches('#').trim());
    titles.map(|title| {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    })
}

/// A path seen from the folder of the document.
fn resolve(document: &str, path: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn dead_links_are_found_with_their_lines() {
        let text = "# One, `two` (three)!\n[a](b.md) [b](b.md#no) [`c`](../x.md#one-two-three)\n\
            [d](#gone) `[e](code)` [f](https://example.com)\n```\n[g](fenced)\n```\n[h](lost.md) [i](..)\n";
        let files = [("docs/a.md", text), ("docs/b.md", "# B\n"), ("x.md", "## One, `two` (three)!\n")];
        assert_eq!(
            found(check, &files),
            [
                "docs/a.md:2: (b.md#no) leads to no heading",
                "docs/a.md:3: (#gone) leads to no heading",
                "docs/a.md:7: (lost.md) leads to no file",
            ]
        );
    }
}
