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
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ArchiveError::Keep { path, source }
    };
    let files = files(datadir, on_disk, tail, logs)?;
    let (name, directory) = place(archive_dir, &format!("{uuid}-{epoch}"), tail, &files)?;
    fs::create_dir_all(&directory).map_err(failed(&directory))?;
    let mut bytes = 0;
    for path in files {
        let target = within(&directory, &path);
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

fn within(directory: &Path, path: &Path) -> PathBuf {
    directory.join(path.file_name().unwrap_or(path.as_os_str()))
}

/// The first directory of this name that holds nothing else: no other tail, and
/// no other file under the name of one of these.
fn place(
    archive_dir: &Path,
    name: &str,
    tail: &GtidSet,
    files: &[PathBuf],
) -> Result<(String, PathBuf), ArchiveError> {
    let mut suffix = 1_u64;
    loop {
        let name = match suffix {
            1 => name.to_owned(),
            _ => format!("{name}-{suffix}"),
        };
        let directory = archive_dir.join(&name);
        if is_free(&directory, tail, files)? {
            return Ok((name, directory));
        }
        suffix += 1;
    }
}

fn is_free(directory: &Path, tail: &GtidSet, files: &[PathBuf]) -> Result<bool, ArchiveError> {
    let keep = |path: &Path, source| ArchiveError::Keep {
        path: path.to_owned(),
        source,
    };
    let manifest = directory.join(MANIFEST);
    match fs::read(&manifest) {
        // What cannot be read is somebody else's.
        Ok(content) => match serde_json::from_slice::<Archive>(&content) {
            Ok(archive) if archive.gtids == *tail => {}
            Ok(_) | Err(_) => return Ok(false),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(keep(&manifest, source)),
    }
    for path in files {
        let target = within(directory, path);
        match fs::symlink_metadata(&target) {
            Ok(there) => {
                let here = fs::metadata(path).map_err(|source| keep(path, source))?;
                if (there.dev(), there.ino()) != (here.dev(), here.ino()) {
                    return Ok(false);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(keep(&target, source)),
        }
    }
    Ok(true)
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

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn the_same_tail_is_kept_once_and_nothing_that_was_kept_is_overwritten() {
        let volume = tempfile::tempdir().unwrap();
        let (datadir, archive) = (volume.path().join("data"), volume.path().join("archive"));
        fs::create_dir_all(&datadir).unwrap();
        let log = datadir.join("relay.000001");
        let write = |content: &str| {
            let _absent = fs::remove_file(&log);
            fs::write(&log, content).unwrap();
            let index = datadir.join(format!("{}.index", layout::RELAY_LOG_BASENAME));
            fs::write(index, "./relay.000001\n").unwrap();
        };
        let kept = |tail: &str| {
            let on_disk = OnDisk {
                uuid: None,
                binlog: GtidSet::default(),
                relay: GtidSet::default(),
                tail: Vec::new(),
                undo: None,
            };
            let tail = format!("{UUID}:{tail}").parse().unwrap();
            let whose = (UUID.parse().unwrap(), 3, &tail);
            keep(&datadir, &archive, &on_disk, whose, Logs::Relay).unwrap();
        };
        write("one");
        kept("5");
        kept("5");
        assert_eq!(list(&archive).len(), 1);
        // Another file of the same name, and another tail.
        write("two");
        kept("5");
        kept("6");
        let content = |suffix: &str| {
            let directory = archive.join(format!("{UUID}-3{suffix}"));
            fs::read_to_string(directory.join("relay.000001")).unwrap()
        };
        assert_eq!(list(&archive).len(), 3);
        assert_eq!(
            [content(""), content("-2"), content("-3")],
            ["one", "two", "two"]
        );
    }
}
