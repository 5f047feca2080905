//! The one server program: which part of Katazuke this process is. No logic.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "katazuke", version, about = "A Kubernetes operator for MySQL")]
enum Command {
    /// Look after the MySQLCluster resources of a Kubernetes cluster.
    Operator(Box<operator::Options>),
    /// The parent of mysqld, in its container.
    #[command(subcommand)]
    Agent(Agent),
}

#[derive(Subcommand)]
enum Agent {
    /// Be the parent of mysqld.
    Run(Box<agent::Options>),
    /// Copy this program, for an init container.
    Install {
        /// Directory, or file name.
        destination: PathBuf,
    },
}

fn main() -> ExitCode {
    let command = Command::parse();
    agent::log_to_stdout();
    match command {
        Command::Operator(options) => operator::main(*options),
        Command::Agent(Agent::Run(options)) => agent::main(*options),
        Command::Agent(Agent::Install { destination }) => agent::install(&destination),
    }
}
