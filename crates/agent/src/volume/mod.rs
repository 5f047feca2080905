//! The data volume: its lock, the agent's own files, and facts read from
//! mysqld's files while mysqld does not run. Never starts a process, never asks
//! a server.

pub(crate) mod archive;
pub(crate) mod binlog;
pub(crate) mod durable;
pub(crate) mod incarnation;
pub(crate) mod live_binlog;
pub(crate) mod lock;
pub(crate) mod on_disk;
pub(crate) mod record;
