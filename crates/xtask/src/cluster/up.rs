//! Brings the cluster up: the page to read first. Everything slow is made once
//! and kept in the cache; what is left takes seconds. A cluster is never
//! half there: its settings are written last, and what an interrupted run left
//! is removed before the next begins.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::{
    HostError, LocalKube, Progress, ensure_packages, local_kube, read, remove_folder, write,
};
use crate::image::{Golden, golden};

use super::claim::{self, Exclusive, Owner};
use super::layout::{API_ON_HOST, CLIENT_NAMESPACE, CONTROL_PLANE, Layout, NodeNumber};
use super::{Cluster, ClusterError};
use super::{
    addons, certificates, cgroup, client, control_plane, host_changes, network, node, process,
    ready, teardown,
};

/// What to bring up.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many nodes.
    pub nodes: u8,
    /// What to do with a cluster that runs already.
    pub existing: Existing,
    /// Where to say what is being done.
    pub progress: Progress,
}

/// What to do with a cluster that runs already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Use it as it is.
    Keep,
    /// Take it down first.
    Replace,
}

/// What must be known about a running cluster, by whoever comes later.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) nodes: u8,
    pub(super) localkube: PathBuf,
}

/// Without these there is no cluster; the others are killed on purpose.
const VITAL: [&str; 2] = ["etcd", "forward"];

/// Brings a cluster up, or finds the one that is.
pub fn up(options: &Options) -> Result<Cluster, ClusterError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(HostError::NotRoot.into());
    }
    let layout = Layout::of_this_checkout();
    let nodes = NodeNumber::first(options.nodes)?;
    let progress = options.progress;
    claim::refuse_other(&layout)?;
    let _exclusive = Exclusive::take(&layout)?;
    if options.existing == Existing::Keep
        && let Some(cluster) = running(&layout)?
    {
        progress.step("the cluster is up already");
        return Ok(cluster);
    }
    cgroup::hierarchies()?;
    teardown::remove_all(&layout)?;
    ensure_packages(&progress)?;
    let programs = local_kube(&progress)?;
    let images = golden(&programs, &progress)?;
    make(&layout, &nodes, &programs, &images, progress)?;
    let settings = Settings {
        nodes: options.nodes,
        localkube: programs.localkube,
    };
    write(&layout.settings(), serde_json::to_string_pretty(&settings)?)?;
    Cluster::attach()
}

/// The cluster that is up, or nothing, or why the one that is there is no use.
fn running(layout: &Layout) -> Result<Option<Cluster>, ClusterError> {
    if claim::owner(layout) != Owner::Ours || !layout.settings().exists() {
        return Ok(None);
    }
    match VITAL.iter().find(|name| !process::is_running(layout, name)) {
        Some(dead) => Err(ClusterError::Damaged {
            what: format!("{dead} is not running"),
        }),
        None => Cluster::attach().map(Some),
    }
}

fn make(
    layout: &Layout,
    nodes: &[NodeNumber],
    programs: &LocalKube,
    images: &Golden,
    progress: Progress,
) -> Result<(), ClusterError> {
    TcpListener::bind(API_ON_HOST).map_err(|_| ClusterError::PortTaken {
        address: API_ON_HOST,
    })?;
    remove_folder(&layout.logs())?;
    claim::claim(layout, host_changes::look()?)?;
    host_changes::make_mount_points()?;
    for host in [CONTROL_PLANE, CLIENT_NAMESPACE] {
        cgroup::make_for_host(host)?;
    }
    network::make(nodes)?;
    certificates::make(layout, nodes)?;
    progress.step("network and certificates made");
    control_plane::start_first(layout, &programs.localkube)?;
    boot_all(layout, nodes, programs, images)?;
    progress.step("API server and nodes started");
    wait(layout, nodes, &programs.localkube, progress)
}

fn boot_all(
    layout: &Layout,
    nodes: &[NodeNumber],
    programs: &LocalKube,
    images: &Golden,
) -> Result<(), ClusterError> {
    at_once(nodes, |number| {
        node::prepare(layout, number, images)?;
        node::boot(layout, number, &programs.localkube)
    })
}

/// Does the same to all nodes at once; the first failure is returned.
pub(super) fn at_once<F>(nodes: &[NodeNumber], work: F) -> Result<(), ClusterError>
where
    F: Fn(NodeNumber) -> Result<(), ClusterError> + Sync,
{
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = nodes
            .iter()
            .map(|node| scope.spawn(move || work(*node)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

fn wait(
    layout: &Layout,
    nodes: &[NodeNumber],
    localkube: &Path,
    progress: Progress,
) -> Result<(), ClusterError> {
    ready::block_on(async {
        let api = ready::client(layout).await?;
        ready::api_server(layout, &api).await?;
        progress.step("API server ready");
        control_plane::start_rest(layout, localkube)?;
        if let Some(first) = nodes.first() {
            client::start(layout, localkube, *first)?;
        }
        addons::create(&api).await?;
        ready::nodes(layout, &api, nodes).await?;
        progress.step(&format!("{} nodes ready", nodes.len()));
        Ok(())
    })
}

pub(super) fn settings(layout: &Layout) -> Result<Settings, ClusterError> {
    if claim::owner(layout) != Owner::Ours || !layout.settings().exists() {
        claim::refuse_other(layout)?;
        return Err(ClusterError::NotUp);
    }
    Ok(serde_json::from_str(&read(&layout.settings())?)?)
}
