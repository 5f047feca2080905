//! The handle to a running cluster, for the command line, tests and the demo.
//! It holds no state of its own: two handles to one cluster are the same.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host::{feed, run};

use super::layout::{API_ON_HOST, CLIENT_NAMESPACE, Layout, NodeNumber};
use super::{AuditLog, ClusterError, Node};
use super::{control_plane, process, ready, up};

/// A cluster that is up.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub(super) layout: Layout,
    pub(super) numbers: Vec<NodeNumber>,
    pub(super) localkube: PathBuf,
}

impl Cluster {
    /// The cluster of this checkout, if it is up.
    pub fn attach() -> Result<Self, ClusterError> {
        let layout = Layout::of_this_checkout();
        let up::Settings { nodes, localkube } = up::settings(&layout)?;
        Ok(Self {
            numbers: NodeNumber::first(nodes)?,
            layout,
            localkube,
        })
    }

    /// For an administrator on this machine.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// Where the API server is reached from this machine.
    pub fn api_url(&self) -> String {
        format!("https://{API_ON_HOST}")
    }

    /// All nodes, running or not.
    pub fn nodes(&self) -> Vec<Node> {
        self.numbers
            .iter()
            .map(|number| Node::new(self, *number))
            .collect()
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Result<Node, ClusterError> {
        let found = self.nodes().into_iter().find(|node| node.name() == name);
        found.ok_or_else(|| ClusterError::UnknownNode {
            name: name.to_owned(),
            names: self
                .nodes()
                .iter()
                .map(Node::name)
                .collect::<Vec<_>>()
                .join(", "),
        })
    }

    /// Name and status of the Ready condition ("True", "False", "Unknown") of
    /// every node, as the API server has them.
    pub fn node_statuses(&self) -> Result<Vec<(String, String)>, ClusterError> {
        ready::block_on(async { ready::list(&ready::client(&self.layout).await?).await })
    }

    /// kubectl, ready to be given arguments.
    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(&self.localkube);
        command.arg("kubectl").env("KUBECONFIG", self.kubeconfig());
        command
    }

    /// Runs kubectl to its end and returns what it printed.
    pub fn kubectl<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String, ClusterError> {
        Ok(run(self.kubectl_command().args(arguments))?)
    }

    /// `kubectl apply` of a manifest.
    pub fn apply(&self, manifest: &str) -> Result<String, ClusterError> {
        Ok(feed(
            self.kubectl_command().args(["apply", "-f", "-"]),
            manifest,
        )?)
    }

    /// A command line to be continued with a program of this machine: it will
    /// reach Services and Pods, and nothing else, from a host that never crashes.
    pub fn on_client_host(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.client_namespace().display()));
        command
    }

    /// Path of the client host's network namespace.
    pub fn client_namespace(&self) -> PathBuf {
        Path::new("/run/netns").join(CLIENT_NAMESPACE)
    }

    /// What was asked of the API server since the cluster came up.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::at(self.layout.audit_log())
    }

    /// The cluster's own logs; Pod logs are below `Node::pod_logs`.
    pub fn logs(&self) -> PathBuf {
        self.layout.logs()
    }

    /// Kills the API server; undone by `api_server_start`.
    pub fn api_server_kill(&self) -> Result<(), ClusterError> {
        process::kill_recorded(&self.layout, control_plane::API_SERVER_PROCESS)
    }

    /// Starts the API server if it does not run, and waits until it answers.
    pub fn api_server_start(&self) -> Result<(), ClusterError> {
        if !process::is_running(&self.layout, control_plane::API_SERVER_PROCESS) {
            control_plane::start_api_server(&self.layout, &self.localkube)?;
        }
        ready::block_on(async {
            let client = ready::client(&self.layout).await?;
            ready::api_server(&self.layout, &client).await
        })
    }

    pub(crate) fn images_folder(&self) -> PathBuf {
        self.layout.images()
    }

    /// Loads an archive into every node that runs; one that is down keeps what
    /// it had.
    pub(crate) fn import_image(&self, archive: &Path) -> Result<(), ClusterError> {
        up::at_once(&self.numbers, |number| {
            let node = Node::new(self, number);
            if !node.is_running() {
                return Ok(());
            }
            let mut ctr = node.enter()?;
            ctr.args([
                "ctr",
                "--address",
                "/run/containerd/containerd.sock",
                "--namespace",
                "k8s.io",
            ]);
            run(ctr.args(["images", "import"]).arg(archive))?;
            Ok(())
        })
    }
}
