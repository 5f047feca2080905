//! `cargo xtask demo`

use std::process::ExitCode;

use clap::Args;
use xtask::demo::{AtTheEnd, Operator, demo};

use super::Done;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Leave the cluster running and say how to use it.
    #[arg(long)]
    keep: bool,
    /// Kill the leading operator every ten seconds or so while it runs.
    #[arg(long)]
    kill_operator: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let at_the_end = if arguments.keep {
        AtTheEnd::Keep
    } else {
        AtTheEnd::Delete
    };
    let operator = if arguments.kill_operator {
        Operator::KilledAgainAndAgain
    } else {
        Operator::Undisturbed
    };
    let score = demo(at_the_end, operator)?;
    println!("\n{}\n{}", score.table(), score.sentence());
    Ok(ExitCode::SUCCESS)
}
