//! emmylua_check's own program again, so that the lock file beside it says what it is built from.

use std::error::Error;

use clap::Parser;
use emmylua_check::{CmdArgs, run_check};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    tokio::runtime::Runtime::new()?.block_on(run_check(CmdArgs::parse()))
}
