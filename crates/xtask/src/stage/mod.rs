//! A local Kubernetes with Katazuke on it: what the demo, the bench and the
//! tests of the cluster tier stand on. It does what a user with kubectl could
//! do, breaks what a user could not, and looks. Everything waits with a
//! deadline, and a wait that ends in vain tells what was seen.
//!
//! client (the API server) → install → picture (what a MySQLCluster says) →
//! wait → faults → agreement (what the servers hold) → leftovers, logs and
//! explain (what there is to find).

mod agreement;
mod client;
mod error;
mod explain;
mod faults;
mod install;
mod leftovers;
mod logs;
mod picture;
mod wait;

pub use agreement::{Agreement, Copy};
pub use client::Stage;
pub use error::StageError;
pub use faults::mysqld_processes;
pub use leftovers::Leftover;
pub use logs::{ErrorLine, LogScan};
pub use picture::Picture;
pub use wait::Wait;

/// Which MySQLCluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Name {
    /// `namespace/name`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}/{}", self.namespace, self.name)
    }
}
