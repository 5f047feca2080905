//! What the agent must not forget: versions, fences, peers. Never written in
//! place; a record that cannot be read is an error, not an empty record, for a
//! forgotten fence would be a lost write.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gtid::GtidSet;
use serde::{Deserialize, Serialize};
use wire::{Stamp, Undo};

use super::durable;

/// The persisted part of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Highest version seen (R2).
    pub(crate) seen: Stamp,
    /// Never resume an epoch at or below it.
    #[serde(default)]
    pub(crate) self_fenced: Option<Stamp>,
    /// Epochs in which an OK may have been given without acknowledgement.
    #[serde(default)]
    pub(crate) not_strict: Vec<u64>,
    /// Instances whose accounts may replicate from here.
    #[serde(default)]
    pub(crate) peers: Vec<String>,
    /// The data came by clone, with the donor's replication settings in it:
    /// they are reset before this server says anything.
    #[serde(default)]
    pub(crate) cloned: bool,
    /// What this data holds without ever having logged it: the donor's set. A
    /// cloned server's first binlog has an empty Previous_gtids, so the files
    /// alone would tell of less than there is.
    #[serde(default)]
    pub(crate) unlogged: GtidSet,
}

/// Could not read or write the agent's own files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// Reading.
    #[error("reading {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// The content is not what an agent wrote.
    #[error("{path} is damaged: {source}")]
    Damaged {
        path: PathBuf,
        source: serde_json::Error,
    },
    /// Writing.
    #[error("writing {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    /// Turning into JSON.
    #[error("encoding {path}: {source}")]
    Encode {
        path: PathBuf,
        source: serde_json::Error,
    },
}

fn read<T: for<'a> Deserialize<'a>>(path: PathBuf) -> Result<Option<T>, RecordError> {
    let content = match fs::read(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RecordError::Read { path, source }),
    };
    match serde_json::from_slice(&content) {
        Ok(value) => Ok(Some(value)),
        Err(source) => Err(RecordError::Damaged { path, source }),
    }
}

fn write<T: Serialize>(path: PathBuf, value: &T) -> Result<(), RecordError> {
    let content = match serde_json::to_vec_pretty(value) {
        Ok(content) => content,
        Err(source) => return Err(RecordError::Encode { path, source }),
    };
    durable::write(&path, &content).map_err(|source| RecordError::Write { path, source })
}

impl Record {
    /// The record of this volume; a volume without one is new.
    pub(crate) fn read(agent_dir: &Path) -> Result<Self, RecordError> {
        Ok(read(agent_dir.join("record.json"))?.unwrap_or_default())
    }

    /// On disk when it returns.
    pub(crate) fn write(&self, agent_dir: &Path) -> Result<(), RecordError> {
        write(agent_dir.join("record.json"), self)
    }
}

/// The marker of an undo under way, in a file of its own.
pub(crate) fn read_undo(agent_dir: &Path) -> Result<Option<Undo>, RecordError> {
    read(agent_dir.join("undo.json"))
}

/// Begins an undo.
pub(crate) fn write_undo(agent_dir: &Path, undo: &Undo) -> Result<(), RecordError> {
    write(agent_dir.join("undo.json"), undo)
}

/// Ends an undo.
pub(crate) fn remove_undo(agent_dir: &Path) -> Result<(), RecordError> {
    let path = agent_dir.join("undo.json");
    durable::remove_file(&path).map_err(|source| RecordError::Write { path, source })
}
