//! Writes a docker-archive: the one format that containerd imports and that
//! needs no tool to write. One layer, no history.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::ImageError;
use crate::host::sha256;

/// What an image is, apart from its files.
pub(super) struct Recipe<'a> {
    pub(super) name: &'a str,
    pub(super) entrypoint: &'a [&'a str],
}

/// Packs `layer` (a tar of the root file system) into `to`. A reader never
/// sees half an archive.
pub(super) fn write_archive(recipe: &Recipe, layer: &Path, to: &Path) -> Result<(), ImageError> {
    let digest = sha256(layer)?;
    let unfinished = to.with_extension("unfinished");
    pack(recipe, layer, &digest, &unfinished)
        .and_then(|()| std::fs::rename(&unfinished, to))
        .map_err(|source| ImageError::Archive {
            path: to.into(),
            source,
        })
}

fn pack(recipe: &Recipe, layer: &Path, digest: &str, to: &Path) -> std::io::Result<()> {
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Entrypoint": recipe.entrypoint,
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
    })
    .to_string();
    let config_name = format!("{:x}.json", Sha256::digest(&config));
    let layer_name = format!("{digest}.tar");
    let manifest =
        json!([{ "Config": config_name, "RepoTags": [recipe.name], "Layers": [layer_name] }])
            .to_string();
    let mut archive = tar::Builder::new(File::create(to)?);
    append(
        &mut archive,
        &config_name,
        config.len() as u64,
        config.as_bytes(),
    )?;
    append(
        &mut archive,
        "manifest.json",
        manifest.len() as u64,
        manifest.as_bytes(),
    )?;
    let file = File::open(layer)?;
    append(&mut archive, &layer_name, file.metadata()?.len(), file)?;
    archive.into_inner()?.flush()
}

fn append(
    archive: &mut tar::Builder<File>,
    name: &str,
    bytes: u64,
    content: impl Read,
) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, content)
}

/// A layer with one program and the folders that any program may count on.
pub(super) fn write_program_layer(program: &Path, at: &str, to: &Path) -> Result<(), ImageError> {
    let write = || -> std::io::Result<()> {
        let mut layer = tar::Builder::new(File::create(to)?);
        let mut folder = tar::Header::new_gnu();
        folder.set_entry_type(tar::EntryType::Directory);
        folder.set_size(0);
        folder.set_mode(0o1777);
        layer.append_data(&mut folder, "tmp/", std::io::empty())?;
        let file = File::open(program)?;
        let mut header = tar::Header::new_gnu();
        header.set_size(file.metadata()?.len());
        header.set_mode(0o755);
        layer.append_data(&mut header, at.trim_start_matches('/'), file)?;
        layer.into_inner()?.flush()
    };
    write().map_err(|source| ImageError::Archive {
        path: to.into(),
        source,
    })
}
