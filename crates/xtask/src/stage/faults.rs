//! Breaking one MySQLCluster. Faults of whole nodes are the local cluster's.

use std::collections::BTreeMap;
use std::path::Path;

use api::MySQLCluster;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use manifests::OPERATOR_NAMESPACE;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Name, Stage, StageError};

/// The operator's process.
const PROGRAM: &str = "katazuke";
/// The operator's Lease.
const LEASE: &str = "katazuke-operator";
/// The request for a planned change of the primary.
const SWITCHOVER: &str = "mysql.katazuke.dev/switchover";

impl Stage {
    /// SIGKILL to the mysqld of a Pod, from outside.
    pub fn kill_mysqld(&self, namespace: &str, pod: &str) -> Result<(), StageError> {
        let found: Pod = self.get(namespace, pod)?;
        let node = self.node_of(&found)?;
        let uid = found.metadata.uid.unwrap_or_default();
        let pid = mysqld_processes()
            .remove(&uid)
            .ok_or_else(|| StageError::NoMysqld {
                pod: pod.to_owned(),
                node,
            })?;
        kill_hard(pid)
    }

    /// SIGKILL to the operator that leads: it lets go of nothing. Its Pod goes
    /// as well, so that the kubelet's back-off does not spare it the next time.
    pub fn kill_operator(&self) -> Result<(), StageError> {
        let pod = self.leader()?;
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if let Some(pid) = processes(PROGRAM).remove(&uid) {
            kill_hard(pid)?;
        }
        let name = pod.metadata.name.unwrap_or_default();
        self.force_delete(OPERATOR_NAMESPACE, &name)
    }

    /// Deletes a Pod without any grace: its object is gone at once, whatever
    /// its processes do.
    pub fn force_delete(&self, namespace: &str, pod: &str) -> Result<(), StageError> {
        let found: Pod = self.get(namespace, pod)?;
        let only_this = Preconditions {
            uid: found.metadata.uid,
            ..Preconditions::default()
        };
        let parameters = DeleteParams {
            preconditions: Some(only_this),
            ..DeleteParams::default()
        }
        .grace_period(0);
        let pods = self.api::<Pod>(namespace);
        self.ask(format!("delete Pod {pod}"), pods.delete(pod, &parameters))
            .map(drop)
    }

    /// Asks for a planned change of the primary.
    pub fn switch_over(&self, name: &Name, id: &str, to: Option<&str>) -> Result<(), StageError> {
        let request = to.map_or_else(|| id.to_owned(), |to| format!("{id} to={to}"));
        let patch = serde_json::json!({"metadata": {"annotations": {SWITCHOVER: request}}});
        let clusters = self.api::<MySQLCluster>(&name.namespace);
        let parameters = PatchParams::default();
        let patch = Patch::Merge(patch);
        self.ask(
            "ask for a switchover",
            clusters.patch(&name.name, &parameters, &patch),
        )
        .map(drop)
    }

    /// The node that a Pod runs on.
    pub fn node_of(&self, pod: &Pod) -> Result<String, StageError> {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        node.ok_or(StageError::Lacks {
            what: format!("Pod {name}"),
            field: "node",
        })
    }

    /// The Pod of the operator that leads, and its node.
    pub fn leader(&self) -> Result<Pod, StageError> {
        let lease: Lease = self.get(OPERATOR_NAMESPACE, LEASE)?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity);
        let holder = holder.ok_or_else(|| StageError::Lacks {
            what: format!("Lease {LEASE}"),
            field: "holder",
        })?;
        // The identity begins with the Pod's name.
        let pod = holder.split(['/', '_']).next().unwrap_or(&holder);
        self.get(OPERATOR_NAMESPACE, pod)
    }
}

fn kill_hard(pid: i32) -> Result<(), StageError> {
    kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(|source| StageError::Kill { pid, source })
}

/// Every mysqld that runs in a Pod on this machine, by the uid of its Pod.
pub fn mysqld_processes() -> BTreeMap<String, i32> {
    processes("mysqld")
}

/// Every process of this name that runs in a Pod on this machine, by the uid of its Pod.
fn processes(program: &str) -> BTreeMap<String, i32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    pids.filter_map(|pid: i32| Some((pod_of(pid, program)?, pid)))
        .collect()
}

fn pod_of(pid: i32, program: &str) -> Option<String> {
    let folder = Path::new("/proc").join(pid.to_string());
    let name = std::fs::read_to_string(folder.join("comm")).ok()?;
    let groups = std::fs::read_to_string(folder.join("cgroup")).ok()?;
    (name.trim() == program).then(|| pod_uid(&groups)).flatten()
}

/// The uid in `…/kubepods/burstable/pod<uid>/…`.
fn pod_uid(groups: &str) -> Option<String> {
    let in_pods = &groups[groups.find("/kubepods")?..];
    let (_, rest) = in_pods.split_once("/pod")?;
    Some(
        rest.chars()
            .take_while(|c| c.is_ascii_hexdigit() || *c == '-')
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_known_by_its_cgroup() {
        let groups = "4:memory:/kz-1/kubepods/burstable/pod0a-1b/cafe\n3:cpu:/other\n";
        assert_eq!(pod_uid(groups).as_deref(), Some("0a-1b"));
        assert_eq!(pod_uid("4:memory:/user.slice\n"), None);
    }
}
