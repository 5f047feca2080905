//! One cluster per machine, one command per cluster. A claim must never be
//! stolen while the folder that it names still exists. It also holds what has to
//! be put back on the machine: the state folder may be deleted under a cluster.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::{HostError, create_folder, remove_file};

use super::ClusterError;
use super::host_changes::Before;
use super::layout::{CLAIM, Layout};

/// Held while a command changes the cluster; the kernel drops it with the process.
#[derive(Debug)]
pub(super) struct Exclusive {
    _lock: File,
}

impl Exclusive {
    pub(super) fn take(layout: &Layout) -> Result<Self, ClusterError> {
        create_folder(&layout.state)?;
        let path = layout.lock();
        let failed = |source| HostError::File {
            doing: "lock",
            path: path.clone(),
            source,
        };
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(ClusterError::Busy {
                folder: layout.state.clone(),
            }),
            Err(TryLockError::Error(source)) => Err(failed(source).into()),
        }
    }
}

/// Whose cluster runs on this machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Nobody,
    Ours,
    Other(PathBuf),
    /// Its folder was deleted under it: anybody may clean up after it.
    Abandoned,
}

#[derive(Debug, Serialize, Deserialize)]
struct Claim {
    folder: PathBuf,
    before: Before,
}

fn read_claim() -> Option<Claim> {
    serde_json::from_str(&std::fs::read_to_string(CLAIM).ok()?).ok()
}

pub(super) fn owner(layout: &Layout) -> Owner {
    match read_claim() {
        // A claim that was never finished: nothing was changed under it.
        None if Path::new(CLAIM).exists() => Owner::Abandoned,
        None => Owner::Nobody,
        Some(claim) if claim.folder == layout.state => Owner::Ours,
        Some(claim) if claim.folder.exists() => Owner::Other(claim.folder),
        Some(_) => Owner::Abandoned,
    }
}

/// What the claim says about the machine before it was changed.
pub(super) fn before() -> Option<Before> {
    read_claim().map(|claim| claim.before)
}

/// Refuses if the machine runs somebody else's cluster.
pub(super) fn refuse_other(layout: &Layout) -> Result<(), ClusterError> {
    match owner(layout) {
        Owner::Nobody | Owner::Ours | Owner::Abandoned => Ok(()),
        Owner::Other(folder) => Err(ClusterError::Other { folder }),
    }
}

/// Written before anything is changed, so that whatever is found later has an
/// owner and can be put back.
pub(super) fn claim(layout: &Layout, before: Before) -> Result<(), ClusterError> {
    let folder = layout.state.clone();
    let text = serde_json::to_string_pretty(&Claim { folder, before })?;
    let mut options = OpenOptions::new();
    let created = options.write(true).create_new(true).open(CLAIM);
    created
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| {
            // Somebody may have been faster since we looked.
            refuse_other(layout).err().unwrap_or_else(|| {
                let path = CLAIM.into();
                let doing = "create";
                HostError::File {
                    doing,
                    path,
                    source,
                }
                .into()
            })
        })
}

pub(super) fn release() -> Result<(), ClusterError> {
    Ok(remove_file(Path::new(CLAIM))?)
}
