//! What can go wrong with the cluster. The messages are read by people who did
//! not build it, so each says what to do next where that is known.

use std::path::PathBuf;

use crate::host::HostError;
use crate::image::ImageError;

/// The cluster could not be made, used, broken or removed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The machine did not do its part.
    #[error(transparent)]
    Host(#[from] HostError),
    /// An image could not be made or loaded.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The machine uses cgroup v2.
    #[error(
        "no cgroup v1 hierarchy with a freezer is mounted at /sys/fs/cgroup; the local cluster was only made for that, see docs/decisions"
    )]
    CgroupVersion,
    /// Names and addresses are the same for all clusters, so there can be one.
    #[error(
        "the local cluster of {folder} is running on this machine; take it down there first (cargo xtask cluster down)"
    )]
    Other {
        /// The state folder of the other one.
        folder: PathBuf,
    },
    /// Another command is working on the same cluster.
    #[error("another `cargo xtask cluster` command is at work in {folder}")]
    Busy {
        /// The state folder.
        folder: PathBuf,
    },
    /// There is no cluster to work on.
    #[error("no local cluster is running; start one with `cargo xtask cluster up`")]
    NotUp,
    /// `up` was interrupted or something died.
    #[error(
        "the local cluster is damaged ({what}); `cargo xtask cluster up --fresh` makes a new one"
    )]
    Damaged {
        /// What is missing.
        what: String,
    },
    /// The host port of the API server is in use.
    #[error("{address} is in use by another program")]
    PortTaken {
        /// The loopback address.
        address: &'static str,
    },
    /// Outside of what the addresses allow.
    #[error("a local cluster has 1 to {most} nodes, not {wanted}")]
    NodeCount {
        /// What was asked for.
        wanted: u8,
        /// How many there can be.
        most: u8,
    },
    /// No node has this name.
    #[error("there is no node {name}; there are {names}")]
    UnknownNode {
        /// What was asked for.
        name: String,
        /// What there is.
        names: String,
    },
    /// The node is not running, so it cannot be broken further.
    #[error("node {node} is down; `cargo xtask cluster node {node} start` starts it")]
    NodeDown {
        /// The node.
        node: String,
    },
    /// The node runs already.
    #[error("node {node} is running already")]
    NodeRunning {
        /// The node.
        node: String,
    },
    /// Certificates could not be made.
    #[error("could not make the certificate of {subject}")]
    Certificate {
        /// Whose.
        subject: String,
        /// Why.
        source: rcgen::Error,
    },
    /// A manifest of the cluster's own does not parse: a fault of this project.
    #[error("a built-in manifest is wrong")]
    Manifest(#[from] serde_yaml_ng::Error),
    /// The API server could not be reached or refused.
    #[error("the API server: {doing}")]
    Api {
        /// What was being done.
        doing: &'static str,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The kubeconfig of the cluster could not be used.
    #[error("the kubeconfig {path} is not usable")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// Something took longer than it ever should.
    #[error("waited {seconds} s for {what}; see the logs in {logs}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        seconds: u64,
        /// Where the reason may be found.
        logs: PathBuf,
    },
    /// A line of the audit log is not what the API server writes.
    #[error("a line of the audit log does not parse")]
    Audit(#[from] serde_json::Error),
    /// Something survived its removal.
    #[error("could not remove {what}")]
    Stuck {
        /// What.
        what: String,
    },
}
