//! Keeps the files that hold a tail before the tail is undone. Hard links: no
//! space, no copying, and the bytes stay as they are (mysqlbinlog reads them).
//! Never removes anything.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use gtid::{GtidSet, Uuid};
use wire::{Archive, OnDisk, layout};

use super::{
    durable,
    on_disk::{OnDiskError, index},
};

const MANIFEST: &str = "manifest.json";

/// Could not keep the tail.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    /// Which files.
    #[error(transparent)]
    Index(#[from] OnDiskError),
    /// A file.
    #[error("archiving {path}: {source}")]
    Keep { path: PathBuf, source: io::Error },
    /// The description.
    #[error("encoding the manifest: {0}")]
    Encode(#[from] serde_json::Error),
}

/// Which of the logs hold the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logs {
    /// Binlogs and relay logs.
    All,
    /// Relay logs.
    Relay,
}

/// Keeps the logs that hold `tail`, fsynced; the same tail twice is once.
pub(crate) fn keep(
    datadir: &Path,
    archive_dir: &Path,
    on_disk: &OnDisk,
    (uuid, epoch, tail): (Uuid, u64, &GtidSet),
    logs: Logs,
) -> Result<(), ArchiveError> {
    let name = format!("{uuid}-{epoch}");
    let directory = archive_dir.join(&name);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ArchiveError::Keep { path, source }
    };
    fs::create_dir_all(&directory).map_err(failed(&directory))?;
    let mut bytes = 0;
    for path in files(datadir, on_disk, tail, logs)? {
        let target = directory.join(path.file_name().unwrap_or(path.as_os_str()));
        match fs::hard_link(&path, &target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(failed(&path)(source)),
        }
        bytes += fs::metadata(&target).map_err(failed(&target))?.size();
    }
    let manifest = Archive {
        name,
        uuid,
        epoch,
        gtids: tail.clone(),
        bytes,
    };
    durable::write(
        &directory.join(MANIFEST),
        &serde_json::to_vec_pretty(&manifest)?,
    )
    .map_err(failed(&directory))?;
    durable::sync_tree(archive_dir).map_err(failed(archive_dir))
}

/// The last two binlogs, or all of them when the tail is older; all relay logs.
fn files(
    datadir: &Path,
    on_disk: &OnDisk,
    tail: &GtidSet,
    logs: Logs,
) -> Result<Vec<PathBuf>, OnDiskError> {
    let mut files = index(datadir, layout::RELAY_LOG_BASENAME)?;
    match logs {
        Logs::Relay => {}
        Logs::All => {
            let binlogs = index(datadir, layout::BINLOG_BASENAME)?;
            let held = on_disk
                .tail
                .iter()
                .fold(on_disk.relay.clone(), |held, file| held.union(&file.gtids));
            let old = if held.contains(tail) {
                binlogs.len().saturating_sub(2)
            } else {
                0
            };
            files.extend(binlogs.into_iter().skip(old));
        }
    }
    Ok(files)
}

/// What is in the archive; unreadable entries are left out.
pub(crate) fn list(archive_dir: &Path) -> Vec<Archive> {
    let Ok(entries) = fs::read_dir(archive_dir) else {
        return Vec::new();
    };
    let mut archives: Vec<Archive> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read(entry.path().join(MANIFEST)).ok())
        .filter_map(|content| serde_json::from_slice(&content).ok())
        .collect();
    archives.sort_by(|one, other| one.name.cmp(&other.name));
    archives
}
