//! `cargo xtask image …`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use xtask::cluster::Cluster;
use xtask::host::{Progress, ensure_packages};
use xtask::image;

use super::Done;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make the MySQL image and print where it is.
    Mysql,
    /// Build katazuke and load it into the running cluster.
    Load,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    let progress = Progress::shown();
    match arguments.action {
        Action::Mysql => {
            ensure_packages(&progress)?;
            println!("{}", image::mysql_archive(&progress)?.display());
        }
        Action::Load => {
            image::build_katazuke()?;
            progress.step("built");
            image::load_katazuke(&Cluster::attach()?)?;
            progress.step(&format!("loaded as {}", image::KATAZUKE));
        }
    }
    Ok(ExitCode::SUCCESS)
}
