//! The control plane: processes in one namespace, each of which can be killed
//! and started again by itself. They are always stopped with SIGKILL; the API
//! server takes half a minute to end in peace.

use std::ffi::OsString;
use std::path::Path;

use crate::host::write;

use super::ClusterError;
use super::certificates::{
    ADMIN, API_SERVER, CA, CONTROLLERS, DNS, PROVISIONER, SCHEDULER, SERVICE_ACCOUNTS,
};
use super::layout::{
    API_ON_HOST, CONTROL_PLANE, CONTROL_PLANE_ADDRESS, Layout, POD_RANGE, SERVICE_RANGE,
};
use super::process::{self, Network, Start};

const ETCD: &str = "http://127.0.0.1:2379";
/// Also the name of the process's record.
pub(super) const API_SERVER_PROCESS: &str = API_SERVER;

/// A node is called NotReady after this. Shorter, and a restart of the API
/// server on a loaded machine would already look like the loss of all nodes.
const NODE_GRACE_SECONDS: u8 = 20;
/// Pods of a node that is NotReady are evicted after this.
const TOLERATION_SECONDS: u8 = 30;

/// Who did what, without bodies: enough to count writes, small enough to keep.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

/// The way into the cluster must work before anything can be waited for.
pub(super) fn start_first(layout: &Layout, localkube: &Path) -> Result<(), ClusterError> {
    write(&layout.config("audit-policy.yaml"), AUDIT_POLICY)?;
    start(layout, localkube, "etcd", etcd(layout))?;
    start_api_server(layout, localkube)?;
    let forward = words(&[
        "-listen",
        API_ON_HOST,
        "-netns",
        &format!("/run/netns/{CONTROL_PLANE}"),
        "-to",
        &format!("{CONTROL_PLANE_ADDRESS}:6443"),
    ]);
    start_in(layout, localkube, "forward", forward, Network::OfTheMachine)
}

/// These end when the API server does not answer, so they come after it.
pub(super) fn start_rest(layout: &Layout, localkube: &Path) -> Result<(), ClusterError> {
    write(&layout.config("Corefile"), corefile(layout))?;
    start(
        layout,
        localkube,
        "kube-controller-manager",
        controller_manager(layout),
    )?;
    start(layout, localkube, "kube-scheduler", scheduler(layout))?;
    start(layout, localkube, "volume-provisioner", provisioner(layout))?;
    start(
        layout,
        localkube,
        "coredns",
        vec!["-conf".into(), layout.config("Corefile").into()],
    )
}

pub(super) fn start_api_server(layout: &Layout, localkube: &Path) -> Result<(), ClusterError> {
    start(layout, localkube, API_SERVER_PROCESS, api_server(layout))
}

fn start(
    layout: &Layout,
    localkube: &Path,
    name: &str,
    arguments: Vec<OsString>,
) -> Result<(), ClusterError> {
    start_in(layout, localkube, name, arguments, Network::OfItsHost)
}

fn start_in(
    layout: &Layout,
    localkube: &Path,
    name: &str,
    arguments: Vec<OsString>,
    network: Network,
) -> Result<(), ClusterError> {
    let mut command = vec![localkube.into(), name.into()];
    command.extend(arguments);
    process::start(
        layout,
        &Start {
            name,
            host: CONTROL_PLANE,
            network,
            command,
        },
    )
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn flag(name: &str, value: impl AsRef<Path>) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value.as_ref());
    flag
}

fn etcd(layout: &Layout) -> Vec<OsString> {
    vec![
        flag("data-dir", layout.control_plane().join("etcd")),
        flag("listen-client-urls", ETCD),
        flag("advertise-client-urls", ETCD),
        flag("listen-peer-urls", "http://127.0.0.1:2380"),
        flag("log-level", "warn"),
        // The control plane's disk never loses power here.
        "--unsafe-no-fsync".into(),
    ]
}

fn api_server(layout: &Layout) -> Vec<OsString> {
    let toleration = TOLERATION_SECONDS.to_string();
    vec![
        flag("etcd-servers", ETCD),
        flag("advertise-address", CONTROL_PLANE_ADDRESS.to_string()),
        flag("client-ca-file", layout.certificate(CA)),
        flag("tls-cert-file", layout.certificate(API_SERVER)),
        flag("tls-private-key-file", layout.key(API_SERVER)),
        flag(
            "service-account-key-file",
            layout.certificate(SERVICE_ACCOUNTS),
        ),
        flag(
            "service-account-signing-key-file",
            layout.key(SERVICE_ACCOUNTS),
        ),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        flag("service-cluster-ip-range", SERVICE_RANGE),
        flag("authorization-mode", "Node,RBAC"),
        flag("enable-admission-plugins", "NodeRestriction"),
        "--allow-privileged".into(),
        // There is no kube-proxy beside the API server: it dials Pods, not Services.
        flag("enable-aggregator-routing", "true"),
        flag("kubelet-preferred-address-types", "InternalIP"),
        flag("kubelet-client-certificate", layout.certificate(ADMIN)),
        flag("kubelet-client-key", layout.key(ADMIN)),
        flag("default-not-ready-toleration-seconds", &toleration),
        flag("default-unreachable-toleration-seconds", &toleration),
        flag("audit-policy-file", layout.config("audit-policy.yaml")),
        flag("audit-log-path", layout.audit_log()),
        flag("audit-log-format", "json"),
        // Megabytes; a test that counts writes must not meet a rotated log.
        flag("audit-log-maxsize", "4096"),
    ]
}

fn controller_manager(layout: &Layout) -> Vec<OsString> {
    vec![
        flag("kubeconfig", layout.kubeconfig_of(CONTROLLERS)),
        flag(
            "service-account-private-key-file",
            layout.key(SERVICE_ACCOUNTS),
        ),
        flag("root-ca-file", layout.certificate(CA)),
        flag("cluster-signing-cert-file", layout.certificate(CA)),
        flag("cluster-signing-key-file", layout.key(CA)),
        flag("cluster-cidr", POD_RANGE),
        flag("leader-elect", "false"),
        flag("kube-api-qps", "200"),
        flag("kube-api-burst", "400"),
        flag("node-monitor-period", "2s"),
        flag(
            "node-monitor-grace-period",
            format!("{NODE_GRACE_SECONDS}s"),
        ),
    ]
}

fn scheduler(layout: &Layout) -> Vec<OsString> {
    vec![
        flag("kubeconfig", layout.kubeconfig_of(SCHEDULER)),
        flag("leader-elect", "false"),
    ]
}

fn provisioner(layout: &Layout) -> Vec<OsString> {
    vec![
        flag("kubeconfig", layout.kubeconfig_of(PROVISIONER)),
        flag("nodes", layout.nodes()),
    ]
}

/// Short times to live: after a failover a name must not point to the past.
fn corefile(layout: &Layout) -> String {
    format!(
        ".:53 {{
    errors
    health {CONTROL_PLANE_ADDRESS}:8080
    ready {CONTROL_PLANE_ADDRESS}:8181
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {}
        pods insecure
        ttl 5
    }}
    prometheus {CONTROL_PLANE_ADDRESS}:9153
    cache 5
    loadbalance
}}
",
        layout.kubeconfig_of(DNS).display()
    )
}
