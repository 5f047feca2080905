//! Breaking the cluster on purpose, and undoing it. Every fault has its undo,
//! and an undo may be repeated: crash, power loss → start; freeze → thaw;
//! partition → heal; cut → mend; API server kill → start (in handle.rs).

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;

use crate::host::run;

use super::layout::{CLIENT_NAMESPACE, CONTROL_PLANE, NodeNumber, SWITCH};
use super::network::{Change, change_set};
use super::{Cluster, ClusterError};
use super::{cgroup, node, process, ready};

/// One direction of a broken link, between Pods or hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Packets from here ...
    pub from: Ipv4Addr,
    /// ... to here are dropped.
    pub to: Ipv4Addr,
}

/// A node of a running cluster.
#[derive(Debug, Clone)]
pub struct Node {
    cluster: Cluster,
    number: NodeNumber,
}

impl Node {
    pub(super) fn new(cluster: &Cluster, number: NodeNumber) -> Self {
        Self {
            cluster: cluster.clone(),
            number,
        }
    }

    /// Its name in Kubernetes and on this machine.
    pub fn name(&self) -> String {
        self.number.name()
    }

    /// Its address in the cluster.
    pub fn address(&self) -> Ipv4Addr {
        self.number.address()
    }

    /// The logs of its Pods, as `<namespace>_<pod>_<uid>/<container>/<n>.log`.
    pub fn pod_logs(&self) -> PathBuf {
        self.cluster.layout.node(self.number).join("pod-logs")
    }

    /// Whether it has not crashed; a frozen node runs.
    pub fn is_running(&self) -> bool {
        process::init_of(&self.name()).is_some()
    }

    /// A command line to be continued with a program to run on the node.
    pub fn enter(&self) -> Result<Command, ClusterError> {
        let init = process::init_of(&self.name())
            .ok_or_else(|| ClusterError::NodeDown { node: self.name() })?;
        let mut command = Command::new("nsenter");
        // The PID namespace too: the node's /proc knows no process of ours.
        command
            .args(["--mount", "--net", "--uts", "--pid", "--target"])
            .arg(init.to_string());
        Ok(command)
    }

    /// Everything on the node dies at one moment, and nobody hears of it: no
    /// connection is closed. What was written to a volume stays.
    pub fn crash(&self) -> Result<(), ClusterError> {
        self.unplug()?;
        cgroup::kill_all(&self.name())
    }

    /// A crash that also loses what was not synced to a volume.
    pub fn power_loss(&self) -> Result<(), ClusterError> {
        let volumes = self.volumes()?;
        self.unplug()?;
        // Frozen, no process can see its disk fail before it dies.
        cgroup::freeze(&self.name())?;
        // Not even the file system's own log is written out.
        let shut_down = volumes
            .iter()
            .try_for_each(|volume| -> Result<(), ClusterError> {
                run(self
                    .enter()?
                    .args(["xfs_io", "-x", "-c", "shutdown", volume]))?;
                Ok(())
            });
        // Half a fault would be neither the one nor the other: it dies anyway.
        cgroup::kill_all(&self.name()).and(shut_down)
    }

    /// Boots a node that crashed.
    pub fn start(&self) -> Result<(), ClusterError> {
        if self.is_running() {
            return Err(ClusterError::NodeRunning { node: self.name() });
        }
        self.plug_in()?;
        node::boot(&self.cluster.layout, self.number, &self.cluster.localkube)
    }

    /// Every process of the node stops; connections stay open and silent.
    pub fn freeze(&self) -> Result<(), ClusterError> {
        cgroup::freeze(&self.name())
    }

    /// They go on as if nothing had been.
    pub fn thaw(&self) -> Result<(), ClusterError> {
        cgroup::thaw(&self.name())
    }

    /// The node runs but reaches nobody, and nobody reaches it.
    pub fn partition(&self) -> Result<(), ClusterError> {
        change_set(SWITCH, Change::Add, "isolated", &self.name())
    }

    /// It is reachable again.
    pub fn heal(&self) -> Result<(), ClusterError> {
        change_set(SWITCH, Change::Remove, "isolated", &self.name())
    }

    /// Waits until the API server calls it Ready.
    pub fn wait_ready(&self) -> Result<(), ClusterError> {
        self.wait_for("True")
    }

    /// Waits until the API server has noticed that it is silent.
    pub fn wait_lost(&self) -> Result<(), ClusterError> {
        self.wait_for("Unknown")
    }

    fn wait_for(&self, status: &str) -> Result<(), ClusterError> {
        let layout = &self.cluster.layout;
        ready::block_on(async {
            let client = ready::client(layout).await?;
            ready::node_is(layout, &client, &self.name(), status).await
        })
    }

    /// Mounted volumes, each once: by the path where the kubelet mounted it
    /// first. (It shows up below our own folder as well, and in each Pod.)
    fn volumes(&self) -> Result<Vec<String>, ClusterError> {
        let mounts = run(self
            .enter()?
            .args(["findmnt", "-nro", "TARGET", "-t", "xfs"]))?;
        Ok(mounts
            .lines()
            .filter(|path| path.starts_with("/var/lib/kubelet/") && path.ends_with("/globalmount"))
            .map(str::to_owned)
            .collect())
    }

    /// A dead machine sends no RST: its cable goes before its processes.
    fn unplug(&self) -> Result<(), ClusterError> {
        self.cable("down")
    }

    fn plug_in(&self) -> Result<(), ClusterError> {
        self.cable("up")
    }

    fn cable(&self, state: &str) -> Result<(), ClusterError> {
        run(Command::new("ip").args(["-n", SWITCH, "link", "set", &self.name(), state]))?;
        Ok(())
    }
}

impl Cluster {
    /// Breaks one direction of a link; undone by `mend`.
    pub fn cut(&self, cut: Cut) -> Result<(), ClusterError> {
        self.change_cut(Change::Add, cut)
    }

    /// Undoes `cut`.
    pub fn mend(&self, cut: Cut) -> Result<(), ClusterError> {
        self.change_cut(Change::Remove, cut)
    }

    fn change_cut(&self, change: Change, cut: Cut) -> Result<(), ClusterError> {
        let element = format!("{} . {}", cut.from, cut.to);
        let nodes = self.numbers.iter().map(|number| number.name());
        let hosts = nodes.chain([CONTROL_PLANE.to_owned(), CLIENT_NAMESPACE.to_owned()]);
        hosts
            .into_iter()
            .try_for_each(|host| change_set(&host, change, "cut", &element))
    }
}
