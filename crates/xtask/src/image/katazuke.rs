//! The katazuke image: one static binary. Loading a fresh build into a running
//! cluster takes seconds, so that a change can be tried at once.

use std::path::PathBuf;
use std::process::Command;

use super::archive::{Recipe, write_archive, write_program_layer};
use super::{ImageError, KATAZUKE};
use crate::cluster::Cluster;
use crate::host::{HostError, create_folder, line_of, project_root, remove_file, run};

const AT: &str = "/usr/bin/katazuke";

fn binary() -> PathBuf {
    project_root().join("target/x86_64-unknown-linux-gnu/debug/katazuke")
}

/// Compiles the binary; cargo shows its own progress.
pub fn build_katazuke() -> Result<(), ImageError> {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(project_root())
        .args(["build", "--quiet", "--package", "katazuke"]);
    let command = line_of(&cargo);
    let status = cargo.status().map_err(|source| HostError::Start {
        command: command.clone(),
        source,
    })?;
    if status.success() {
        return Ok(());
    }
    Err(HostError::Failed {
        command,
        status,
        output: "see above".to_owned(),
    }
    .into())
}

/// Puts the binary that was built last into every running node, as an image.
pub fn load_katazuke(cluster: &Cluster) -> Result<(), ImageError> {
    let binary = binary();
    if !binary.exists() {
        return Err(ImageError::NoBinary { path: binary });
    }
    let folder = cluster.images_folder();
    create_folder(&folder)?;
    let stripped = folder.join("katazuke");
    // Symbols are half of the file; a panic names its file and line without.
    run(Command::new("strip")
        .arg("--strip-all")
        .arg("-o")
        .arg(&stripped)
        .arg(&binary))?;
    let (layer, archive) = (folder.join("katazuke.layer"), folder.join("katazuke.tar"));
    write_program_layer(&stripped, AT, &layer)?;
    write_archive(
        &Recipe {
            name: KATAZUKE,
            entrypoint: &[AT],
        },
        &layer,
        &archive,
    )?;
    let loaded = cluster.import_image(&archive);
    remove_file(&layer)?;
    loaded.map_err(|source| ImageError::Load {
        image: KATAZUKE,
        source: Box::new(source),
    })
}
