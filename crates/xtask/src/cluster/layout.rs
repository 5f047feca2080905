//! Names, addresses and files of the cluster, in one place: nothing else spells
//! out a path or an IP address.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use crate::host::project_root;

use super::ClusterError;

/// The default StorageClass.
pub const STORAGE_CLASS: &str = "local";
/// A host that is not a node: programs run here reach Services and Pods while
/// nodes crash.
pub const CLIENT_NAMESPACE: &str = "kz-client";
/// Addresses .11 and up are the nodes'; more than this makes no sense on one machine.
pub const NODES_MAX: u8 = 9;

/// Every network namespace, cgroup and link of ours begins with this.
pub(super) const PREFIX: &str = "kz-";
pub(super) const SWITCH: &str = "kz-sw";
pub(super) const CONTROL_PLANE: &str = "kz-cp";
pub(super) const CLIENT_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 9);
pub(super) const CONTROL_PLANE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 10);
pub(super) const POD_RANGE: &str = "10.244.0.0/16";
pub(super) const SERVICE_RANGE: &str = "10.96.0.0/16";
pub(super) const API_SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
pub(super) const DNS_SERVICE_ADDRESS: &str = "10.96.0.10";
/// Where the API server is reached from the host, on loopback only.
pub(super) const API_ON_HOST: &str = "127.0.0.1:26443";
/// Says on the machine whose cluster is running; gone after a reboot, as the
/// cluster is.
pub(super) const CLAIM: &str = "/run/katazuke-local-cluster";

/// One node's number, from which its names and addresses follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeNumber(u8);

impl NodeNumber {
    pub(super) fn first(count: u8) -> Result<Vec<Self>, ClusterError> {
        if (1..=NODES_MAX).contains(&count) {
            Ok((1..=count).map(Self).collect())
        } else {
            Err(ClusterError::NodeCount {
                wanted: count,
                most: NODES_MAX,
            })
        }
    }

    pub(super) fn name(self) -> String {
        format!("{PREFIX}{}", self.0)
    }

    pub(super) fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 10, 0, 10 + self.0)
    }

    pub(super) fn pod_range(self) -> String {
        format!("10.244.{}.0/24", self.0)
    }
}

/// The files of one cluster, below its state folder.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) state: PathBuf,
}

impl Layout {
    pub(super) fn of_this_checkout() -> Self {
        let chosen = std::env::var_os("KATAZUKE_LOCAL_CLUSTER").filter(|value| !value.is_empty());
        let folder = chosen.map_or_else(|| project_root().join(".local-cluster"), PathBuf::from);
        // Programs that run elsewhere are given these paths.
        Self {
            state: std::path::absolute(&folder).unwrap_or(folder),
        }
    }

    pub(super) fn settings(&self) -> PathBuf {
        self.state.join("cluster.json")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.state.join("lock")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }

    pub(super) fn log(&self, process: &str) -> PathBuf {
        self.logs().join(format!("{process}.log"))
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.json")
    }

    pub(super) fn processes(&self) -> PathBuf {
        self.state.join("processes")
    }

    pub(super) fn certificates(&self) -> PathBuf {
        self.state.join("certificates")
    }

    pub(super) fn certificate(&self, name: &str) -> PathBuf {
        self.certificates().join(format!("{name}.crt"))
    }

    pub(super) fn key(&self, name: &str) -> PathBuf {
        self.certificates().join(format!("{name}.key"))
    }

    pub(super) fn config(&self, name: &str) -> PathBuf {
        self.state.join("config").join(name)
    }

    /// For people and tests on the host.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.state.join("kubeconfig")
    }

    /// For a program of the cluster itself.
    pub(super) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.config(&format!("{user}.kubeconfig"))
    }

    pub(super) fn control_plane(&self) -> PathBuf {
        self.state.join("control-plane")
    }

    pub(super) fn images(&self) -> PathBuf {
        self.state.join("images")
    }

    pub(super) fn nodes(&self) -> PathBuf {
        self.state.join("nodes")
    }

    pub(super) fn node(&self, node: NodeNumber) -> PathBuf {
        self.nodes().join(node.name())
    }
}
