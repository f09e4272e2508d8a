//! `cargo xtask test`: everything that has to hold before a change lands, in one command.
//!
//! [`plan`] says what is run, [`environment`] in which world, [`tally`] reads what the runners say about themselves,
//! [`report`] is the table at the end, with the [`last_words`] of what failed. Every step has a time limit; one that
//! fails doesn't keep the others from running.

mod environment;
mod last_words;
mod plan;
mod report;
mod tally;

use std::time::{Duration, Instant};

use clap::Args;

use crate::run::{self, say};
use plan::{Step, Work};
use report::Line;
use tally::Tally;

/// For all of it: steps that would take longer are ended.
const ALL: Duration = Duration::from_secs(50 * 60);

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only what needs seconds: formats, tidy, clippy, unit tests
    #[arg(long)]
    quick: bool,
    /// Only tests whose names contain this, and nothing but tests
    filter: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    environment::prepare()?;
    let begun = Instant::now();
    let steps = match (&arguments.filter, arguments.quick) {
        (Some(filter), true) => plan::quick_chosen(filter),
        (Some(filter), false) => plan::chosen(filter),
        (None, true) => plan::quick(),
        (None, false) => plan::full(),
    };
    let count = steps.len();
    let perform = |(at, step)| perform(step, &format!("[{at}/{count}]"), ALL.saturating_sub(begun.elapsed()));
    let lines: Vec<Line> = (1..).zip(steps).map(perform).collect();
    report::print(&lines, begun.elapsed());
    let failed = lines.iter().filter(|line| line.failure.is_some()).count();
    anyhow::ensure!(failed == 0, "{failed} of {count} steps failed");
    Ok(())
}

fn perform(step: Step, at: &str, left: Duration) -> Line {
    say(&format!("\n{at} {}", step.name));
    let begun = Instant::now();
    let (result, said) = match step.work {
        Work::Own(own) => (own(), String::new()),
        Work::Run(make) => match make().map(|command| run::aloud(command, step.limit.min(left))) {
            Ok(Ok(said)) => (Ok(()), said),
            Ok(Err(failed)) => (Err(failed.error.into()), failed.said),
            Err(error) => (Err(error), String::new()),
        },
    };
    let failure = result.err().map(|error| {
        let why = format!("{}: {error:#}", step.name);
        say(&why);
        std::iter::once(why).chain(last_words::of(&said)).collect()
    });
    Line { name: step.name, took: begun.elapsed(), failure, tally: Tally::read(&said) }
}
