//! Facts of a data directory, read while mysqld does not run. Never writes;
//! what cannot be read is an error or `unparsable`, never "nothing there".

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use gtid::{GtidSet, Uuid};
use wire::{OnDisk, Tail, Volume, layout};

use super::{
    binlog::{BinlogError, Scan},
    live_binlog::LiveBinlog,
    record::{RecordError, read_undo},
};

/// What could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OnDiskError {
    /// A file of mysqld's.
    #[error("reading {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// Logs of which nobody says which count.
    #[error("{path} is missing, and {file} is there")]
    NoIndex { path: PathBuf, file: PathBuf },
    /// auto.cnf without a uuid in it.
    #[error("{path} holds no server-uuid")]
    NoUuid { path: PathBuf },
    /// A relay log; binlogs have `unparsable` instead.
    #[error("reading relay log {path}: {source}")]
    RelayLog { path: PathBuf, source: BinlogError },
    /// The marker.
    #[error(transparent)]
    Undo(#[from] RecordError),
}

/// The volume as the state names it. What is known of its binlogs is read on;
/// `unlogged` is what its data holds without a binlog of it.
pub(crate) fn volume(
    datadir: &Path,
    agent_dir: &Path,
    known: &LiveBinlog,
    unlogged: &GtidSet,
) -> Volume {
    match read(datadir, agent_dir, known) {
        Ok(Some(mut on_disk)) => {
            on_disk.binlog = on_disk.binlog.union(unlogged);
            Volume::Data { on_disk }
        }
        Ok(None) => Volume::Empty,
        Err(error) => Volume::Unreadable {
            message: error.to_string(),
        },
    }
}

/// `None` when there is no data. Data directories appear by rename, so one
/// that exists is whole.
fn read(
    datadir: &Path,
    agent_dir: &Path,
    known: &LiveBinlog,
) -> Result<Option<OnDisk>, OnDiskError> {
    let failed = |source| OnDiskError::Read {
        path: datadir.to_owned(),
        source,
    };
    match fs::read_dir(datadir) {
        Ok(mut entries) => match entries.next() {
            None => return Ok(None),
            Some(entry) => drop(entry.map_err(failed)?),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed(source)),
    }
    let files = index(datadir, layout::BINLOG_BASENAME)?;
    let mut binlog = GtidSet::default();
    let mut tail = Vec::new();
    for path in files.iter().rev().take(2).rev() {
        let (previous, facts) = tail_of(path, known.scan(path))?;
        if tail.is_empty() {
            binlog = previous;
        }
        binlog = binlog.union(&facts.gtids);
        tail.push(facts);
    }
    Ok(Some(OnDisk {
        uuid: uuid(datadir)?,
        binlog,
        relay: relay(datadir)?,
        tail,
        undo: read_undo(agent_dir)?,
    }))
}

fn open(path: &Path) -> Result<File, OnDiskError> {
    File::open(path).map_err(|source| OnDiskError::Read {
        path: path.to_owned(),
        source,
    })
}

fn tail_of(path: &Path, mut scan: Scan) -> Result<(GtidSet, Tail), OnDiskError> {
    let (scan, unparsable) = match scan.go_on(open(path)?) {
        Ok(()) => (scan, false),
        Err(BinlogError::Encrypted | BinlogError::NotABinlog | BinlogError::Damaged { .. }) => {
            (Scan::default(), true)
        }
        Err(BinlogError::Io(source)) => {
            return Err(OnDiskError::Read {
                path: path.to_owned(),
                source,
            });
        }
    };
    let facts = Tail {
        file: path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        gtids: scan.gtids,
        in_use: scan.in_use,
        stopped: scan.stopped,
        unparsable,
    };
    Ok((scan.previous, facts))
}

fn relay(datadir: &Path) -> Result<GtidSet, OnDiskError> {
    let mut gtids = GtidSet::default();
    for path in index(datadir, layout::RELAY_LOG_BASENAME)? {
        let scan = Scan::of(open(&path)?).map_err(|source| OnDiskError::RelayLog {
            path: path.clone(),
            source,
        })?;
        gtids = gtids.union(&scan.gtids);
    }
    Ok(gtids)
}

/// The files named in `<basename>.index`, oldest first; none without an index
/// and without a file. mysqld changes an index by removing it and renaming its
/// successor, at boot too when it crashed between the two.
pub(crate) fn index(datadir: &Path, basename: &str) -> Result<Vec<PathBuf>, OnDiskError> {
    let name = format!("{basename}.index");
    // The last one again: the successor may have got its name meanwhile.
    for name in [&name, &format!("{name}_crash_safe"), &name] {
        let path = datadir.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => {
                return Ok(text
                    .lines()
                    .filter(|line| !line.is_empty())
                    .map(|line| datadir.join(line.strip_prefix("./").unwrap_or(line)))
                    .collect());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(OnDiskError::Read { path, source }),
        }
    }
    match numbered(datadir, basename)? {
        None => Ok(Vec::new()),
        Some(file) => Err(OnDiskError::NoIndex {
            path: datadir.join(name),
            file,
        }),
    }
}

/// One of the files `<basename>.<digits>`.
fn numbered(datadir: &Path, basename: &str) -> Result<Option<PathBuf>, OnDiskError> {
    let failed = |source| OnDiskError::Read {
        path: datadir.to_owned(),
        source,
    };
    for entry in fs::read_dir(datadir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let digits = name
            .to_str()
            .and_then(|name| name.strip_prefix(basename)?.strip_prefix('.'));
        if digits.is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// From auto.cnf; `None` without the file.
fn uuid(datadir: &Path) -> Result<Option<Uuid>, OnDiskError> {
    let path = datadir.join("auto.cnf");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OnDiskError::Read { path, source }),
    };
    let uuid = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| matches!(key.trim(), "server-uuid" | "server_uuid"))
        .and_then(|(_, value)| value.trim().to_lowercase().parse().ok());
    uuid.map(Some).ok_or(OnDiskError::NoUuid { path })
}

/// Gives a data directory a new identity.
pub(crate) fn write_uuid(datadir: &Path) -> io::Result<()> {
    let uuid = uuid::Uuid::new_v4();
    super::durable::write(
        &datadir.join("auto.cnf"),
        format!("[auto]\nserver-uuid={uuid}\n").as_bytes(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_is_being_replaced_is_read_and_a_lost_one_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let read = || index(directory.path(), "binlog");
        assert_eq!(read().unwrap(), Vec::<PathBuf>::new());
        fs::write(at("binlog.index_crash_safe"), "./binlog.000001\n").unwrap();
        assert_eq!(read().unwrap(), [at("binlog.000001")]);
        fs::remove_file(at("binlog.index_crash_safe")).unwrap();
        fs::write(at("binlog.000001"), "").unwrap();
        assert!(matches!(read(), Err(OnDiskError::NoIndex { .. })));
        fs::write(at("binlog.index"), "./binlog.000001\n./binlog.000002\n").unwrap();
        assert_eq!(read().unwrap(), [at("binlog.000001"), at("binlog.000002")]);
    }
}
