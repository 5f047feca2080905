//! Reads the API server's audit log, so that tests can count who wrote what.
//! It only reads; the log belongs to the API server.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::host::HostError;

use super::ClusterError;

/// The audit log of a cluster: one JSON object per line.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
}

/// One finished request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// `ResponseComplete`, `ResponseStarted` (watches) or `Panic`.
    pub stage: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, ...
    pub verb: String,
    /// Path and query.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// Who asked.
    pub user: AuditUser,
    /// The program, as it calls itself.
    #[serde(default)]
    pub user_agent: String,
    /// What it was about; absent for requests such as /readyz.
    pub object_ref: Option<AuditObject>,
    /// How it ended.
    pub response_status: Option<AuditStatus>,
    /// When this stage was reached, in RFC 3339.
    pub stage_timestamp: String,
}

/// Who asked.
#[derive(Debug, Clone, Deserialize)]
pub struct AuditUser {
    /// `system:serviceaccount:<namespace>:<name>` for a Pod.
    pub username: String,
}

/// What a request was about.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditObject {
    /// Plural, lower case.
    pub resource: String,
    /// Empty for cluster-wide objects.
    pub namespace: String,
    /// Empty for lists and generated names.
    pub name: String,
    /// Such as `status`.
    pub subresource: String,
    /// Empty for the core group.
    pub api_group: String,
}

/// How a request ended.
#[derive(Debug, Clone, Deserialize)]
pub struct AuditStatus {
    /// HTTP status.
    #[serde(default)]
    pub code: u16,
}

impl AuditEvent {
    /// Whether it asked for a change.
    pub fn is_write(&self) -> bool {
        ["create", "update", "patch", "delete", "deletecollection"].contains(&self.verb.as_str())
    }
}

impl AuditLog {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the log ends now; give it to `since` later.
    pub fn position(&self) -> Result<u64, ClusterError> {
        let file = std::fs::metadata(&self.path);
        Ok(file
            .map_err(|source| HostError::File {
                doing: "measure",
                path: self.path.clone(),
                source,
            })?
            .len())
    }

    /// All that was logged after a position. A line that is still being
    /// written is left for the next call.
    pub fn since(&self, position: u64) -> Result<Vec<AuditEvent>, ClusterError> {
        let failed = |source| HostError::File {
            doing: "read",
            path: self.path.clone(),
            source,
        };
        let mut file = File::open(&self.path).map_err(failed)?;
        file.seek(SeekFrom::Start(position)).map_err(failed)?;
        let (mut reader, mut line, mut events) = (BufReader::new(file), String::new(), Vec::new());
        while reader.read_line(&mut line).map_err(failed)? > 0 && line.ends_with('\n') {
            events.push(serde_json::from_str(&line)?);
            line.clear();
        }
        Ok(events)
    }
}
