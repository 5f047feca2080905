//! The command line of the project's tasks. A switchboard only: every task is
//! a module of its own with its own arguments.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of this project.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// A local Kubernetes with several nodes.
    Cluster(commands::cluster::Arguments),
    /// Images, made without a registry.
    Image(commands::image::Arguments),
    /// Everything that must hold, as CI runs it.
    Test(commands::test::Arguments),
    /// The core against a model of MySQL, Kubernetes and the network, with faults by seed.
    Sim(commands::sim::Arguments),
    /// Check the rules that a program can check.
    Tidy,
    /// Write the files that follow from the code.
    Generate(commands::generate::Arguments),
    /// Break a cluster and show that no acknowledged write is lost.
    Demo(commands::demo::Arguments),
    /// Measure the demo's faults several times.
    Bench,
    /// Write to a cluster and remember every answer; run inside the client namespace.
    #[command(subcommand, hide = true)]
    Workload(xtask::workload::Command),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Cluster(arguments) => commands::cluster::run(&arguments),
        Task::Image(arguments) => commands::image::run(&arguments),
        Task::Test(arguments) => Ok(commands::test::run(&arguments)),
        Task::Sim(arguments) => Ok(commands::sim::run(&arguments)),
        Task::Generate(arguments) => commands::generate::run(&arguments),
        Task::Demo(arguments) => commands::demo::run(&arguments),
        Task::Bench => commands::bench::run(),
        Task::Tidy => commands::tidy::run(),
        Task::Workload(command) => commands::workload::run(command),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", commands::with_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
