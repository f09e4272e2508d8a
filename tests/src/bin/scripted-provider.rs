//! `scripted-provider`: the model provider of [`pactify_tests::provider`] as a process.
//!
//! Prints its address (`http://127.0.0.1:PORT`) as its only line of output once it listens, and runs until it is ended
//! by a signal or, with `--with-stdin`, until its standard input closes (so that it can't outlive who started it).

use std::io::{self, Read, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use pactify_tests::provider::{Provider, Scripts};

/// A model provider on the loopback that follows a script
#[derive(Parser)]
struct Arguments {
    /// The script file (see the documentation of `pactify_tests::provider::script`)
    #[arg(long)]
    script: PathBuf,
    /// Listen on this port instead of a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Also write the port to this file, which appears complete
    #[arg(long)]
    port_file: Option<PathBuf>,
    /// End when the standard input closes
    #[arg(long)]
    with_stdin: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let text = std::fs::read_to_string(&arguments.script)
        .with_context(|| format!("can't read the script {}", arguments.script.display()))?;
    let scripts = Scripts::parse(&text).with_context(|| format!("in {}", arguments.script.display()))?;
    let provider = Provider::start_on(scripts, arguments.port).context("can't listen on 127.0.0.1")?;
    if let Some(path) = &arguments.port_file {
        let partial = path.with_extension("partial");
        std::fs::write(&partial, provider.port().to_string())
            .and_then(|()| std::fs::rename(&partial, path))
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    writeln!(io::stdout(), "http://127.0.0.1:{}", provider.port())?;
    if arguments.with_stdin {
        io::copy(&mut io::stdin().take(u64::MAX), &mut io::sink())?;
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}
