//! What harnesses call a success, and how the job ended: the table of `docs/harnesses.md`.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use super::rows;

const BEGIN: &str = "<!-- false successes: printed by the test of this name -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn false_successes() -> Result<()> {
    let mut table = "| harness | what it says | the job |\n| --- | --- | --- |\n".to_owned();
    let mut believed = Vec::new();
    for row in rows() {
        for lie in row.lies().with_context(|| row.name())? {
            writeln!(table, "| {} | {} | {} |", row.name(), lie.told, lie.outcome)?;
            if lie.outcome == "succeeded" {
                believed.push(format!("{}: {}", row.name(), lie.told));
            }
        }
    }
    println!("{table}");
    assert_eq!(believed, [""; 0], "believed\n{table}");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/harnesses.md");
    let page = std::fs::read_to_string(file)?;
    let (_, rest) = page.split_once(BEGIN).context("docs/harnesses.md has no place for the table")?;
    let (told, _) = rest.split_once(END).context("the table in docs/harnesses.md has no end")?;
    assert!(told == table, "docs/harnesses.md should have this table:\n{BEGIN}{table}{END}");
    Ok(())
}
