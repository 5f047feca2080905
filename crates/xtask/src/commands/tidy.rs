//! `cargo xtask tidy`

use std::process::ExitCode;

use xtask::host::project_root;

use super::Done;

pub(crate) fn run() -> Done {
    let findings = xtask::tidy::tidy(&project_root())?;
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy");
            Ok(ExitCode::SUCCESS)
        }
        count => {
            println!("not tidy: {count} findings");
            Ok(ExitCode::FAILURE)
        }
    }
}
