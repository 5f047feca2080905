//! One volume, one agent. Never unlocks: the lock ends when the last process
//! that inherited it has ended, so an orphaned mysqld keeps it.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::Path,
};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// Proof that no other agent and no other mysqld works on this volume.
#[derive(Debug)]
pub(crate) struct VolumeLock {
    _file: File,
}

impl VolumeLock {
    /// `None` when somebody else holds it.
    pub(crate) fn take(agent_dir: &Path) -> io::Result<Option<Self>> {
        fs::create_dir_all(agent_dir)?;
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(agent_dir.join("lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Children inherit the descriptor, hence the lock.
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(Some(Self { _file: file }))
    }
}
