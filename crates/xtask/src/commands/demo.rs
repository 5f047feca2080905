//! `cargo xtask demo`

use std::process::ExitCode;

use clap::Args;
use xtask::demo::{AtTheEnd, demo};

use super::Done;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Leave the cluster running and say how to use it.
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let at_the_end = if arguments.keep {
        AtTheEnd::Keep
    } else {
        AtTheEnd::Delete
    };
    let score = demo(at_the_end)?;
    println!("\n{}\n{}", score.table(), score.sentence());
    Ok(ExitCode::SUCCESS)
}
