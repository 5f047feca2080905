//! `cargo xtask bench`

use std::process::ExitCode;

use xtask::bench::{bench, table};

use super::Done;

pub(crate) fn run() -> Done {
    let rows = bench()?;
    println!("\n{}", table(&rows));
    Ok(ExitCode::SUCCESS)
}
