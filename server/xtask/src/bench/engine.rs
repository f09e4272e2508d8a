//! What the engine itself takes: measured by `engine-bench`, because automation is neither built as the product is nor
//! compiles it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::Figure;
use crate::run::{aloud, command};

/// For all of its measures.
const LIMIT: Duration = Duration::from_secs(3600);

/// The figures of the measures whose names contain `filter`; `folder` is where their repositories are made.
pub(super) fn figures(programs: &Path, folder: &Path, filter: &str) -> anyhow::Result<Vec<Figure>> {
    let mut bench = command(programs.join("engine-bench"));
    bench.arg(folder).arg(filter);
    let said = aloud(bench, LIMIT).map_err(|failed| failed.error)?;
    let lines = said.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).with_context(|| format!("no figure: {line}"))).collect()
}
