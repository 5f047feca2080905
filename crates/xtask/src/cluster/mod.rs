//! A real Kubernetes with several nodes on one machine, to be broken on
//! purpose. Its files, in order of execution:
//!
//! layout (where things are) → claim (one cluster per machine) → host_changes
//! (what to put back) → network → certificates → control_plane → node → client
//! → addons → ready; then faults and audit while it runs; teardown and
//! leftovers at the end. process and cgroup are what they all stand on.
//!
//! It must never touch the host's own interfaces, routes or mounts, and never
//! send a packet off the machine: no namespace has a default route.

mod addons;
mod audit;
mod certificates;
mod cgroup;
mod claim;
mod client;
mod control_plane;
mod error;
mod faults;
mod handle;
mod host_changes;
mod layout;
mod leftovers;
mod network;
mod node;
mod process;
mod ready;
mod teardown;
mod up;

pub use audit::{AuditEvent, AuditLog};
pub use error::ClusterError;
pub use faults::{Cut, Node};
pub use handle::Cluster;
pub use layout::{CLIENT_NAMESPACE, NODES_MAX, STORAGE_CLASS};
pub use leftovers::{Leftovers, Snapshot, leftovers};
pub use teardown::down;
pub use up::{Existing, Options, up};
