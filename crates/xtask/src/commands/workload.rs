//! `cargo xtask workload …`, which the demo and the tests run for themselves.

use std::process::ExitCode;

use xtask::workload::{Command, execute};

use super::Done;

pub(crate) fn run(command: Command) -> Done {
    execute(command)?;
    Ok(ExitCode::SUCCESS)
}
