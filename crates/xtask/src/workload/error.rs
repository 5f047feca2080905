//! What can go wrong with the writer itself. A write that fails is not an error
//! of the writer; it is what the writer is for.

use std::path::PathBuf;

use super::record::RecordError;
use crate::host::HostError;

/// The writer or the reader could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The asynchronous runtime did not start.
    #[error("could not start the runtime")]
    Runtime {
        /// Why.
        source: std::io::Error,
    },
    /// The record could not be written or read.
    #[error("the record {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The record does not parse.
    #[error("the record of the writes")]
    Record(#[from] RecordError),
    /// The server refused or went away while the table was made or read.
    #[error("{doing} on {address}")]
    Sql {
        /// What was being done.
        doing: &'static str,
        /// Where.
        address: String,
        /// Why.
        source: mysql_async::Error,
    },
    /// The server did not answer.
    #[error("{doing} on {address}: no answer within {seconds} s")]
    Silent {
        /// What was being done.
        doing: &'static str,
        /// Where.
        address: String,
        /// How long it was given.
        seconds: u64,
    },
    /// A program of the machine.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The tests' own program has not been built.
    #[error("{path} is missing; build it with `cargo build --package xtask`")]
    NoProgram {
        /// Where it should be.
        path: PathBuf,
    },
    /// The writing process ended before it was told to.
    #[error("the writer ended early ({status}); its messages are in {log}")]
    EndedEarly {
        /// How.
        status: std::process::ExitStatus,
        /// Its standard error.
        log: PathBuf,
    },
    /// It did not stop when told to.
    #[error("the writer did not stop within {seconds} s and was killed; see {log}")]
    DidNotStop {
        /// How long it was given.
        seconds: u64,
        /// Its standard error.
        log: PathBuf,
    },
}
