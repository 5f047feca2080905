//! Follows the last binlog of a running mysqld: its end and its GTIDs, waiters
//! included (fact 24). Reads the files itself, because every statement that
//! names the binlog's end can hang behind a stuck rotation (fact 8).

use std::{
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
    /// The file.
    #[error("reading {path}: {source}")]
    Scan { path: PathBuf, source: BinlogError },
}

/// Where the reading stands.
#[derive(Debug, Default)]
pub(crate) struct LiveBinlog {
    path: PathBuf,
    scan: Scan,
}

impl LiveBinlog {
    /// Reads what was added since the last time.
    pub(crate) fn read(
        &mut self,
        datadir: &Path,
    ) -> Result<(BinlogPosition, GtidSet), LiveBinlogError> {
        let Some(last) = index(datadir, layout::BINLOG_BASENAME)?.pop() else {
            return Ok((BinlogPosition::default(), GtidSet::default()));
        };
        if last != self.path {
            self.path = last;
            self.scan = Scan::default();
        }
        let failed = |source| LiveBinlogError::Scan {
            path: self.path.clone(),
            source,
        };
        let file = File::open(&self.path).map_err(|error| failed(BinlogError::Io(error)))?;
        if let Err(source) = self.scan.go_on(file) {
            self.scan = Scan::default();
            return Err(failed(source));
        }
        let position = BinlogPosition {
            file: number(&self.path),
            offset: self.scan.complete,
        };
        Ok((position, self.scan.gtids.clone()))
    }
}

/// `binlog.000012` is 12.
fn number(path: &Path) -> u64 {
    path.extension()
        .and_then(|extension| extension.to_str())
        .and_then(|extension| extension.parse().ok())
        .unwrap_or_default()
}
