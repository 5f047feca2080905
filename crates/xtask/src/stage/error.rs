//! What can go wrong on the stage, in sentences that help whoever reads a
//! failed run.

use std::path::PathBuf;

use crate::cluster::ClusterError;
use crate::host::HostError;
use crate::image::ImageError;
use crate::workload::WorkloadError;

/// Something was not possible, or did not happen in time.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The local cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The machine.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The images.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The writer or the reader.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The asynchronous runtime did not start.
    #[error("could not start the runtime")]
    Runtime {
        /// Why.
        source: std::io::Error,
    },
    /// The kubeconfig could not be used.
    #[error("the kubeconfig {path}")]
    Kubeconfig {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Box<kube::config::KubeconfigError>,
    },
    /// The API server refused or could not be reached.
    #[error("{doing}")]
    Api {
        /// What was being done.
        doing: String,
        /// Why.
        source: Box<kube::Error>,
    },
    /// An object is not what it has to be.
    #[error("{what} has no {field}")]
    Lacks {
        /// The object.
        what: String,
        /// What it lacks.
        field: &'static str,
    },
    /// No process of a Pod is what was looked for.
    #[error("no mysqld runs in Pod {pod} on node {node}")]
    NoMysqld {
        /// The Pod.
        pod: String,
        /// Its node.
        node: String,
    },
    /// A signal could not be sent.
    #[error("could not kill process {pid}")]
    Kill {
        /// Which.
        pid: i32,
        /// Why.
        source: nix::errno::Errno,
    },
    /// Something did not happen in time.
    #[error("{what}: not within {seconds} s\n{seen}")]
    InVain {
        /// What was waited for.
        what: String,
        /// How long.
        seconds: u64,
        /// Situation, why, instances, events, and where the logs are.
        seen: String,
    },
}
