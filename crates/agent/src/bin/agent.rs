//! The agent alone, as the mysqld tier starts it. Never shipped: images carry
//! `katazuke agent run`.

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
enum Command {
    /// Be the parent of mysqld.
    Run(agent::Options),
}

fn main() -> ExitCode {
    let Command::Run(options) = Command::parse();
    agent::log_to_stdout();
    agent::main(options)
}
