//! A node: network, mount and PID namespaces around containerd, the kubelet,
//! kube-proxy and the volume service. All use their well-known paths, because
//! each node has its own folders mounted there. A node never sees another's.

use std::ffi::OsString;
use std::path::Path;

use crate::host::{create_folder, write};
use crate::image::{Golden, PAUSE};

use super::ClusterError;
use super::certificates::{CA, PROXY};
use super::cgroup;
use super::layout::{DNS_SERVICE_ADDRESS, Layout, NodeNumber, POD_RANGE};
use super::process::{self, Network, Start};

const INIT: &str = include_str!("node-init.sh");
const CONTAINERD_ROOT: &str = "containerd-root";

/// Writes a new node's files: as of now it has the images and an empty disk.
pub(super) fn prepare(
    layout: &Layout,
    node: NodeNumber,
    golden: &Golden,
) -> Result<(), ClusterError> {
    let folder = layout.node(node);
    // The provisioner takes this folder for "the node exists".
    create_folder(&folder.join("volumes"))?;
    golden.seed(&folder.join(CONTAINERD_ROOT))?;
    write(&folder.join("init.sh"), INIT)?;
    write(&folder.join("network/10-local.conflist"), network(node))?;
    write(&folder.join("containerd.toml"), containerd(&folder))?;
    write(&folder.join("kubelet.yaml"), kubelet(layout, node, &folder))?;
    write(
        &folder.join("kube-proxy.yaml"),
        kube_proxy(layout, &node.name(), "0.0.0.0"),
    )
    .map_err(ClusterError::from)
}

/// Boots the node, the first time or after a crash.
pub(super) fn boot(
    layout: &Layout,
    node: NodeNumber,
    localkube: &Path,
) -> Result<(), ClusterError> {
    let (name, folder) = (node.name(), layout.node(node));
    cgroup::make_for_node(&name)?;
    let variable = |name: &str, value: &Path| {
        let mut word = OsString::from(format!("{name}="));
        word.push(value);
        word
    };
    let mut command: Vec<OsString> = vec!["env".into()];
    command.extend([
        variable("NODE", Path::new(&name)),
        variable("FOLDER", &folder),
        variable("LOCALKUBE", localkube),
        variable("ADDRESS", Path::new(&node.address().to_string())),
        variable("KUBECONFIG_FILE", &layout.kubeconfig_of(&name)),
        variable("PROXY_CONFIG", &folder.join("kube-proxy.yaml")),
    ]);
    let isolation = [
        "unshare",
        "--mount",
        "--pid",
        "--uts",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "bash",
    ];
    command.extend(isolation.map(OsString::from));
    command.push(folder.join("init.sh").into());
    process::start(
        layout,
        &Start {
            name: &name,
            host: &name,
            network: Network::OfItsHost,
            command,
        },
    )
}

/// `ptp` and not a bridge: then every packet between Pods is routed, so that
/// Services work within a node and faults can cut two Pods of one node.
fn network(node: NodeNumber) -> String {
    serde_json::json!({
        "cniVersion": "1.0.0",
        "name": "local",
        "plugins": [{
            "type": "ptp",
            "ipMasq": false,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": node.pod_range()}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    })
    .to_string()
}

fn containerd(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "version = 2
root = '{folder}/{CONTAINERD_ROOT}'
state = '{folder}/containerd-state'
[grpc]
  address = '/run/containerd/containerd.sock'
[plugins.'io.containerd.grpc.v1.cri']
  sandbox_image = '{PAUSE}'
  # Without CAP_SYS_RESOURCE a score cannot be lowered.
  restrict_oom_score_adj = true
  [plugins.'io.containerd.grpc.v1.cri'.cni]
    bin_dir = '/usr/lib/cni'
    conf_dir = '{folder}/network'
  [plugins.'io.containerd.grpc.v1.cri'.containerd]
    snapshotter = 'overlayfs'
  [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
      SystemdCgroup = false
"
    )
}

/// Heartbeats every 5 s fit the grace of 20 s; volumes grow within seconds
/// because Pods are looked at every 5 s instead of every minute. Images are
/// never collected: they could not be pulled again.
fn kubelet(layout: &Layout, node: NodeNumber, folder: &Path) -> String {
    let (name, folder) = (node.name(), folder.display());
    let certificate = |path: std::path::PathBuf| path.display().to_string();
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /{name}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
volumePluginDir: {folder}/volume-plugins
authentication: {{anonymous: {{enabled: false}}, x509: {{clientCAFile: {ca}}}, webhook: {{enabled: true}}}}
authorization: {{mode: Webhook}}
tlsCertFile: {crt}
tlsPrivateKeyFile: {key}
clusterDNS: ['{DNS_SERVICE_ADDRESS}']
clusterDomain: cluster.local
resolvConf: ''
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}}
imageGCHighThresholdPercent: 100
nodeLeaseDurationSeconds: 20
syncFrequency: 5s
maxPods: 250
",
        ca = certificate(layout.certificate(CA)),
        crt = certificate(layout.certificate(&name)),
        key = certificate(layout.key(&name)),
    )
}

/// kube-proxy's configuration, for nodes and for the client host.
pub(super) fn kube_proxy(layout: &Layout, as_node: &str, bind_address: &str) -> String {
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
bindAddress: {bind_address}
clusterCIDR: {POD_RANGE}
hostnameOverride: {as_node}
clientConnection: {{kubeconfig: {}}}
# The limit belongs to the machine, not to the namespace.
conntrack: {{maxPerCore: 0}}
",
        layout.kubeconfig_of(PROXY).display()
    )
}
