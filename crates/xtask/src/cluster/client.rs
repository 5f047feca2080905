//! The client host: programs that run here reach Services and Pods, and go on
//! doing so while nodes crash. It is not a node; no Pod ever runs on it.

use std::path::Path;

use crate::host::write;

use super::ClusterError;
use super::layout::{CLIENT_ADDRESS, CLIENT_NAMESPACE, Layout, NodeNumber};
use super::node;
use super::process::{self, Network, Start};

/// Starts its kube-proxy.
pub(super) fn start(
    layout: &Layout,
    localkube: &Path,
    first: NodeNumber,
) -> Result<(), ClusterError> {
    // kube-proxy waits half a minute for the Node of its name before it works
    // without one. So it takes a real node's name and its own address; the one
    // effect is that Services with a Local policy count that node's Pods as near.
    let config = layout.config("client-kube-proxy.yaml");
    write(
        &config,
        node::kube_proxy(layout, &first.name(), &CLIENT_ADDRESS.to_string()),
    )?;
    let mut flag = std::ffi::OsString::from("--config=");
    flag.push(&config);
    let command = vec![localkube.into(), "kube-proxy".into(), flag];
    process::start(
        layout,
        &Start {
            name: CLIENT_NAMESPACE,
            host: CLIENT_NAMESPACE,
            network: Network::OfItsHost,
            command,
        },
    )
}
