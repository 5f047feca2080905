//! `cargo xtask generate`

use std::process::ExitCode;

use clap::Args;
use xtask::generate;
use xtask::host::project_root;

use super::Done;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Write nothing; fail if something would be written.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let root = project_root();
    if !arguments.check {
        for path in generate::generate(&root)? {
            println!("wrote {}", path.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let stale = generate::stale(&root)?;
    for path in &stale {
        println!("{} is stale: cargo xtask generate", path.display());
    }
    Ok(if stale.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
