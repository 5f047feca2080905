//! One cluster per machine, one command per cluster. A claim must never be
//! stolen while the folder that it names still exists.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::host::{HostError, create_folder, remove_file};

use super::ClusterError;
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

pub(super) fn owner(layout: &Layout) -> Owner {
    match std::fs::read_to_string(CLAIM) {
        Err(_) => Owner::Nobody,
        Ok(folder) if Path::new(folder.trim()) == layout.state => Owner::Ours,
        Ok(folder) if Path::new(folder.trim()).exists() => Owner::Other(folder.trim().into()),
        Ok(_) => Owner::Abandoned,
    }
}

/// Refuses if the machine runs somebody else's cluster.
pub(super) fn refuse_other(layout: &Layout) -> Result<(), ClusterError> {
    match owner(layout) {
        Owner::Nobody | Owner::Ours | Owner::Abandoned => Ok(()),
        Owner::Other(folder) => Err(ClusterError::Other { folder }),
    }
}

/// Written before anything else is made, so that whatever is found later has an owner.
pub(super) fn claim(layout: &Layout) -> Result<(), ClusterError> {
    let created = OpenOptions::new().write(true).create_new(true).open(CLAIM);
    match created {
        Ok(mut file) => file
            .write_all(layout.state.as_os_str().as_encoded_bytes())
            .map_err(|source| {
                HostError::File {
                    doing: "write",
                    path: CLAIM.into(),
                    source,
                }
                .into()
            }),
        Err(_) if owner(layout) == Owner::Ours => Ok(()),
        Err(source) => {
            refuse_other(layout)?;
            Err(HostError::File {
                doing: "create",
                path: CLAIM.into(),
                source,
            }
            .into())
        }
    }
}

pub(super) fn release() -> Result<(), ClusterError> {
    Ok(remove_file(Path::new(CLAIM))?)
}
