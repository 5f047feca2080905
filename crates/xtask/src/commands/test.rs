//! `cargo xtask test`

use std::process::ExitCode;

use clap::Args;
use xtask::tests::{Tier, all_passed, run_tiers, table};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Run this tier only; may be repeated. All of them without it.
    #[arg(long = "tier", value_enum)]
    tiers: Vec<Tier>,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let lines = run_tiers(&arguments.tiers);
    println!("\n{}", table(&lines));
    if all_passed(&lines) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
