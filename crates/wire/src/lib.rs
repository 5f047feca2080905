//! The contract between operator and agent: what an agent says about its
//! instance and what it may be ordered to do. JSON over HTTP/2, mutual TLS.
//!
//! An agent lives for months under newer operators, so: fields are only added,
//! every new field has a default, unknown fields are ignored. Never depends on
//! `core`, whose types must stay free to change; never does I/O.

pub mod layout;
mod order;
mod state;

pub use order::{Act, Endpoint, Order, Outcome, Refusal, Reply, Stamp};
pub use state::{
    AgentState, Archive, BinlogPosition, Disk, Drift, Exit, Frame, Job, JobKind, Mysqld, OnDisk,
    Receiver, Replication, SemiSyncSource, Server, Tail, Undo, Volume,
};

/// `GET`: a stream of JSON lines, one [`Frame`] each; full state first, then
/// every change, and a heartbeat at least each [`HEARTBEAT_MILLISECONDS`].
pub const PATH_WATCH: &str = "/v1/watch";
/// `POST` an [`Order`], answered by a [`Reply`].
pub const PATH_ORDER: &str = "/v1/order";
/// Longest silence on a healthy watch stream.
pub const HEARTBEAT_MILLISECONDS: u64 = 250;
