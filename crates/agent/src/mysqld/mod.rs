//! The mysqld process: how it is started, what it is given, what it logs, how
//! it ends. Never decides whether it may run: that is the start gate's.

pub(crate) mod child;
pub(crate) mod init_file;
pub(crate) mod log;
pub(crate) mod settings;
