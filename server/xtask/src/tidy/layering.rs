//! Arrows go downward: what each module of the engine, and each front end, may know of the engine; what core may build
//! on.
//!
//! Between crates Cargo enforces it; this is for the inside, and for what Cargo would let through. The picture is in
//! `docs/architecture.md`. A new module, or a new arrow, is a decision: it is made here.

use super::{Problem, production};
use crate::repository::{SourceFile, Tree};

const ENGINE: &str = "server/engine/src/";
const CORE: &str = "server/core/Cargo.toml";

/// For each module of the engine, the others that it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("apply", &["causes", "disk", "hash", "process", "store"]),
    ("approvals", &["disk", "hash", "store"]),
    ("causes", &[]),
    ("config", &["env"]),
    ("disk", &[]),
    ("env", &[]),
    ("fingerprint", &["causes", "disk", "env", "git", "hash", "job_dir", "walk"]),
    ("git", &["causes", "disk", "env", "hash", "job_dir", "process", "tree"]),
    ("harness", &["causes", "disk", "env", "process", "tree"]),
    ("hash", &[]),
    (
        "host",
        &[
            "causes",
            "config",
            "disk",
            "env",
            "fingerprint",
            "git",
            "harness",
            "job_dir",
            "journal",
            "log",
            "logins",
            "process",
            "store",
            "tree",
        ],
    ),
    ("job_dir", &["disk"]),
    (
        "jobs",
        &[
            "apply",
            "approvals",
            "causes",
            "config",
            "env",
            "fingerprint",
            "git",
            "harness",
            "host",
            "job_dir",
            "journal",
            "logins",
            "process",
            "store",
            "tree",
        ],
    ),
    ("journal", &["disk", "hash", "job_dir"]),
    ("lib", &[]),
    ("log", &["env"]),
    ("logins", &["disk", "hash", "process", "store"]),
    ("process", &["env"]),
    ("store", &["disk", "job_dir", "journal"]),
    ("tree", &["causes", "disk", "store"]),
    ("walk", &["disk"]),
];

/// What front ends may use of the engine.
const OPEN: [&str; 5] = ["env", "host::reenter", "jobs", "log", "process::detach"];

/// What core may build on: nothing that has effects.
const PURE: [&str; 11] = [
    "jiff",
    "percent-encoding",
    "regex",
    "schemars",
    "serde",
    "serde_json",
    "shlex",
    "similar",
    "thiserror",
    "toml",
    "unicode-normalization",
];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = core(tree);
    for file in production::sources(tree, ENGINE) {
        let module = file.path[ENGINE.len()..].split(['/', '.']).next().unwrap_or_default();
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == module) else {
            problems.push(Problem::new(&file.path, 0, format!("tidy doesn't know what `{module}` may use")));
            continue;
        };
        for (at, used) in uses(file, "crate::") {
            let used = used.split("::").next().unwrap_or_default();
            let is_module = ARROWS.iter().any(|(name, _)| *name == used);
            if is_module && used != module && !allowed.contains(&used) {
                problems.push(Problem::new(&file.path, at, format!("`{module}` may not use `{used}`")));
            }
        }
    }
    for file in production::sources(tree, "server/lsp/src/") {
        for (at, used) in uses(file, "pactify_engine::") {
            if !OPEN.iter().any(|open| used == *open || used.starts_with(&format!("{open}::"))) {
                let what = format!("front ends may not use `pactify_engine::{used}`: call `jobs`");
                problems.push(Problem::new(&file.path, at, what));
            }
        }
    }
    problems
}

/// The dependencies of core.
fn core(tree: &Tree) -> Vec<Problem> {
    let Some(file) = tree.file(CORE) else { return Vec::new() };
    let Ok(manifest) = file.text.parse::<toml::Table>() else {
        return vec![Problem::new(CORE, 0, "is no TOML")];
    };
    let names = manifest.get("dependencies").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
    let impure = names.filter(|name| !PURE.contains(&name.as_str()));
    impure.map(|name| Problem::new(CORE, 0, format!("core may not build on {name}"))).collect()
}

/// The paths that follow `prefix` in the product's code, with their lines: those of a group one by one, two names deep.
fn uses(file: &SourceFile, prefix: &str) -> Vec<(usize, String)> {
    let (mut code, mut starts) = (String::new(), Vec::new());
    for (at, line) in production::lines(file) {
        starts.push((code.len(), at));
        code.push_str(line);
        code.push('\n');
    }
    let mut found = Vec::new();
    for (offset, _) in code.match_indices(prefix) {
        if code[..offset].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let before = starts.partition_point(|(start, _)| *start <= offset);
        let line = starts[before - 1].1;
        let rest = &code[offset + prefix.len()..];
        let paths = if rest.starts_with('{') { group(rest) } else { vec![path(rest)] };
        found.extend(paths.into_iter().map(|path| (line, path)));
    }
    found
}

/// The members of `{a, b::{c, d}, e}`.
fn group(text: &str) -> Vec<String> {
    let (mut depth, mut start, mut members) = (0, 1, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 1) || depth == 0 {
            members.push(path(text[start..at].trim()));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    members.retain(|member| !member.is_empty());
    members
}

/// The first two names of a path.
fn path(text: &str) -> String {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(text.len());
    let names = text[..end].split("::").filter(|name| !name.is_empty());
    names.take(2).collect::<Vec<_>>().join("::")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn arrows_that_point_upward_are_found() {
        let git = "//! Uses [`crate::host`] in words only.\n\nuse crate::{env::Env,\n    jobs::{Jobs, X}, process};\n\
            fn f() { crate::host::g(); $crate::host::h(); }\n#[cfg(test)]\nmod tests {\n    use crate::store;\n}\n";
        let lsp = "use pactify_engine::jobs::Jobs;\nuse pactify_engine::{host::reenter, host::lines, log};\n";
        let files = [
            ("server/engine/src/git/x.rs", git),
            ("server/engine/src/new.rs", ""),
            ("server/lsp/src/lsp/x.rs", lsp),
            (CORE, "[dependencies]\nserde.workspace = true\ntokio.workspace = true\n"),
        ];
        assert_eq!(
            found(check, &files),
            [
                "server/core/Cargo.toml: core may not build on tokio",
                "server/engine/src/git/x.rs:3: `git` may not use `jobs`",
                "server/engine/src/git/x.rs:5: `git` may not use `host`",
                "server/engine/src/new.rs: tidy doesn't know what `new` may use",
                "server/lsp/src/lsp/x.rs:2: front ends may not use `pactify_engine::host::lines`: call `jobs`",
            ]
        );
    }
}
