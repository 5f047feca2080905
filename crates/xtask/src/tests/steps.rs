//! What each tier runs. A step is a program with its own output on the terminal:
//! whoever reads a failed run needs exactly that.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::run::{Ended, Limits};
use super::tier::Tier;
use crate::host::{
    HostError, Progress, create_folder, ensure_packages, project_root, remove_folder, run,
    this_program,
};
use crate::image::{ImageError, mysql_archive};

/// Something that is run.
pub(super) struct Step {
    pub(super) title: &'static str,
    program: Program,
    minutes_max: u64,
}

enum Program {
    /// cargo with these words.
    Cargo(Words),
    /// cargo with these words, and a root file system with mysqld in the environment.
    CargoWithMysqld(Words),
    /// This program with these words.
    Ourselves(Words),
}

const fn step(title: &'static str, minutes_max: u64, program: Program) -> Step {
    Step {
        title,
        program,
        minutes_max,
    }
}

type Words = &'static [&'static str];

const FORMAT: Words = &["fmt", "--all", "--check"];
const LINTS: Words = &[
    "clippy",
    "--workspace",
    "--all-targets",
    "--",
    "-D",
    "warnings",
];
/// Without the crates whose `tests/` need more than Rust.
const PURE: Words = &[
    "test",
    "--workspace",
    "--exclude",
    "agent",
    "--exclude",
    "xtask",
    "--exclude",
    "e2e",
];
const SHELLS: Words = &[
    "test", "-p", "agent", "-p", "xtask", "-p", "e2e", "--lib", "--bins",
];
const AGENT: Words = &["test", "-p", "agent", "--test", "*"];
const KUBERNETES: Words = &[
    "test",
    "-p",
    "xtask",
    "--test",
    "*",
    "--",
    "--test-threads=1",
];
const PROGRAMS: Words = &["build", "-p", "katazuke", "-p", "xtask"];
const FRESH: Words = &["cluster", "up", "--fresh"];
const SPECS: Words = &["test", "-p", "e2e", "--test", "apiserver"];
const CLUSTER: Words = &[
    "test",
    "-p",
    "e2e",
    "--test",
    "cluster",
    "--",
    "--test-threads=1",
];

pub(super) fn steps_of(tier: Tier) -> Vec<Step> {
    match tier {
        Tier::Pure => vec![
            step("format", 2, Program::Cargo(FORMAT)),
            step("lints", 20, Program::Cargo(LINTS)),
            step("tidy", 2, Program::Ourselves(&["tidy"])),
            step("unit and property tests", 20, Program::Cargo(PURE)),
            step("unit tests of the shells", 20, Program::Cargo(SHELLS)),
        ],
        Tier::Mysqld => vec![step(
            "agent with real mysqld",
            20,
            Program::CargoWithMysqld(AGENT),
        )],
        Tier::LocalCluster => {
            vec![step(
                "the local Kubernetes itself",
                15,
                Program::Cargo(KUBERNETES),
            )]
        }
        Tier::Apiserver => vec![
            step("programs built", 20, Program::Cargo(PROGRAMS)),
            step("local Kubernetes", 10, Program::Ourselves(FRESH)),
            step("good and bad specs", 10, Program::Cargo(SPECS)),
        ],
        Tier::Cluster => vec![
            step("programs built", 20, Program::Cargo(PROGRAMS)),
            step("local Kubernetes", 10, Program::Ourselves(FRESH)),
            step(
                "bad input, deletion, dead operator",
                30,
                Program::Cargo(CLUSTER),
            ),
        ],
        Tier::Demo => vec![step("demo", 20, Program::Ourselves(&["demo"]))],
    }
}

impl Step {
    pub(super) fn run(&self, limits: &Limits) -> Ended {
        match self.command() {
            Ok(mut command) => limits.run(&mut command, self.minutes_max),
            Err(error) => Ended::Failed(error.to_string()),
        }
    }

    fn command(&self) -> Result<Command, StepError> {
        let mut command = match &self.program {
            Program::Cargo(words) => cargo(words),
            Program::CargoWithMysqld(words) => {
                let mut command = cargo(words);
                command.env("KATAZUKE_MYSQL_ROOT", mysql_root()?);
                command
            }
            Program::Ourselves(words) => {
                let this = this_program().map_err(StepError::Ourselves)?;
                let mut command = Command::new(this);
                command.args(*words);
                command
            }
        };
        command.current_dir(project_root());
        Ok(command)
    }
}

fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(words);
    command
}

/// Why a step could not even begin.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error("could not find this program: {0}")]
    Ourselves(std::io::Error),
    #[error("could not make the MySQL image: {0}")]
    Image(#[from] ImageError),
    #[error("could not unpack the MySQL image: {0}")]
    Host(#[from] HostError),
}

/// The files of the MySQL image in a folder, made once.
fn mysql_root() -> Result<PathBuf, StepError> {
    let progress = Progress::shown();
    ensure_packages(&progress)?;
    let archive = mysql_archive(&progress)?;
    let root = archive.with_extension("root");
    if root.join("usr/sbin/mysqld").exists() {
        return Ok(root);
    }
    let unfinished = archive.with_extension("root.unfinished");
    remove_folder(&unfinished)?;
    create_folder(&unfinished)?;
    let names = run(Command::new("tar")
        .arg("--list")
        .arg("--file")
        .arg(&archive))?;
    let is_layer = |name: &&str| {
        Path::new(name)
            .extension()
            .is_some_and(|kind| kind == "tar")
    };
    let layer = names.lines().find(is_layer).unwrap_or("layer.tar");
    // One tar inside the other; a shell joins the two.
    let script =
        "tar --extract --to-stdout --file \"$1\" \"$2\" | tar --extract --directory \"$3\"";
    let words: [OsString; 6] = [
        "-c".into(),
        script.into(),
        "sh".into(),
        archive.into(),
        layer.into(),
        unfinished.clone().into(),
    ];
    run(Command::new("sh").args(words))?;
    let failed = |source| HostError::File {
        doing: "rename",
        path: unfinished.clone(),
        source,
    };
    std::fs::rename(&unfinished, &root).map_err(failed)?;
    Ok(root)
}
