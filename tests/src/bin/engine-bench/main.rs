//! `engine-bench FOLDER [FILTER]`: how long the engine takes for what people wait for, against git in the same run.
//!
//! It calls the engine in its own process, so it has to be built as the product is: `cargo xtask bench` does that and
//! makes a document of the figures, which are printed as one JSON object a line. FOLDER is where the repositories are
//! made. FILTER is part of a measure's name. Ours and git's take turns; medians are told.

mod results;
mod trees;
mod world;

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde::Serialize;

use self::world::World;

/// A promise, and what was found.
#[derive(Serialize)]
struct Figure {
    what: String,
    reference: String,
    unit: &'static str,
    ours: f64,
    theirs: f64,
    /// The ratio must not be larger; a figure without a bar is only told.
    bar: Option<f64>,
}

/// A measure's name, how many files its repository has, and what measures.
type Measure = (&'static str, usize, fn(&World) -> anyhow::Result<Vec<Figure>>);

const MEASURES: [Measure; 7] = [
    ("tree-1k", 1_000, trees::ready),
    ("tree-10k", 10_000, trees::ready),
    ("tree-50k", 50_000, trees::ready),
    ("capture", 50_000, trees::capture),
    ("baseline", 50_000, trees::baseline),
    ("listing", 50_000, results::listing),
    ("apply", 50_000, results::apply),
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().context("say where the repositories are to be made")?;
    let filter = arguments.get(1).map(String::as_str).unwrap_or_default();
    let chosen: Vec<&Measure> = MEASURES.iter().filter(|(name, ..)| name.contains(filter)).collect();
    let mut world: Option<World> = None;
    for (name, files, measure) in chosen {
        // One repository serves the measures next to each other that want the same size.
        let fitting = match world.take().filter(|world| world.files == *files) {
            Some(world) => world,
            None => World::new(Path::new(folder), *files)?,
        };
        say(&format!("measuring: {name}"));
        for figure in measure(&fitting)? {
            ensure!(figure.ours.is_finite() && figure.theirs > 0.0, "{} was not measured", figure.what);
            writeln!(io::stdout(), "{}", serde_json::to_string(&figure)?)?;
        }
        world = Some(fitting);
    }
    Ok(())
}

/// In milliseconds.
fn time<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let begun = Instant::now();
    let result = work()?;
    Ok((1000.0 * begun.elapsed().as_secs_f64(), result))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn say(line: &str) {
    // Nobody may be listening.
    let _ = writeln!(io::stderr(), "{line}");
}
