//! Follows the last binlog of a running mysqld: its end and its GTIDs, waiters
//! included (fact 24). Reads the files itself, because every statement that
//! names the binlog's end can hang behind a stuck rotation (fact 8).

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
};

use gtid::GtidSet;
use wire::{BinlogPosition, layout};

use super::{
    binlog::{BinlogError, Scan},
    on_disk::{OnDiskError, index},
};

/// Cannot follow it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveBinlogError {
    /// The index.
    #[error(transparent)]
    Index(#[from] OnDiskError),
    /// A running mysqld always has one.
    #[error("no binlog is named in the index")]
    NoFile,
    /// The file.
    #[error("reading {path}: {source}")]
    Scan { path: PathBuf, source: BinlogError },
}

/// How far the last two files were read. After an exit only their ends are
/// read, however large they are: an exit is told at once.
#[derive(Debug, Default)]
pub(crate) struct LiveBinlog {
    scans: BTreeMap<PathBuf, Scan>,
}

impl LiveBinlog {
    /// What is known of a file.
    pub(crate) fn scan(&self, path: &Path) -> Scan {
        self.scans.get(path).cloned().unwrap_or_default()
    }

    /// Reads what was added since the last time: the end of the last file and
    /// its GTIDs.
    pub(crate) fn read(
        &mut self,
        datadir: &Path,
    ) -> Result<(BinlogPosition, GtidSet), LiveBinlogError> {
        let files = index(datadir, layout::BINLOG_BASENAME)?;
        let last_two = &files[files.len().saturating_sub(2)..];
        self.scans.retain(|path, _| last_two.contains(path));
        let mut found = None;
        for path in last_two {
            let failed = |source| LiveBinlogError::Scan {
                path: path.clone(),
                source,
            };
            let file = File::open(path).map_err(|error| failed(BinlogError::Io(error)))?;
            let scan = self.scans.entry(path.clone()).or_default();
            if let Err(source) = scan.go_on(file) {
                self.scans.remove(path);
                return Err(failed(source));
            }
            let position = BinlogPosition {
                file: number(path),
                offset: scan.complete,
            };
            found = Some((position, scan.gtids.clone()));
        }
        found.ok_or(LiveBinlogError::NoFile)
    }
}

/// `binlog.000012` is 12.
fn number(path: &Path) -> u64 {
    path.extension()
        .and_then(|extension| extension.to_str())
        .and_then(|extension| extension.parse().ok())
        .unwrap_or_default()
}
