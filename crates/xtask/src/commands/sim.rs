//! `cargo xtask sim`: one seed with its trace, or many with what happened in them.

use std::process::ExitCode;

use sim::{End, Report, WANTED, exhaust, explore, run_traced};

/// Which seeds.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// One seed, with its trace.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// How many seeds.
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Threads; as many as there are cores where it is not said.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    threads: Option<u64>,
    /// Every pair of faults at every gap in a small world.
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    exhaustive: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if let Some(seed) = arguments.seed {
        return one(seed);
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let threads = arguments.threads.unwrap_or(cores);
    if arguments.exhaustive {
        let report = exhaust(threads);
        say(&report);
        println!("{} different pictures were judged", report.states.len());
        return verdict(&report, 0);
    }
    let report = explore(arguments.first, arguments.seeds, threads);
    say(&report);
    verdict(&report, arguments.seeds)
}

fn one(seed: u64) -> ExitCode {
    let outcome = run_traced(seed);
    for line in &outcome.trace {
        println!("{line}");
    }
    println!("seed {seed}, hash {:016x}: {:?}", outcome.hash, outcome.end);
    match outcome.end {
        End::Healthy | End::Held(_) => ExitCode::SUCCESS,
        End::Violated(_) => ExitCode::FAILURE,
    }
}

fn say(report: &Report) {
    for line in report.tally.lines() {
        println!("{line}");
    }
    println!(
        "{} seeds: {} Healthy and quiet at the end, {} held by a named situation, {} violated; hash {:016x}",
        report.seeds,
        report.healthy,
        report.held.len(),
        report.violated.len(),
        report.hash
    );
    for (seed, why) in &report.held {
        println!("held      --seed {seed}: {why}");
    }
    for (seed, why) in &report.violated {
        println!("VIOLATED  --seed {seed}: {why}");
    }
}

/// A run in which something never happened proves nothing about it.
fn verdict(report: &Report, seeds: u64) -> ExitCode {
    let missing = report.tally.missing();
    if !missing.is_empty() {
        println!(
            "never happened, of {} that should: {}",
            WANTED.len(),
            missing.join(", ")
        );
    }
    match report.violated.is_empty() && (missing.is_empty() || seeds < 2_000) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
