//! Waiting for the cluster, with an end: each wait names what it waits for and
//! fails after a time that is far beyond what was ever measured.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use super::ClusterError;
use super::layout::{Layout, NodeNumber};

const SECONDS_MAX: u64 = 120;
const PAUSE: Duration = Duration::from_millis(100);

/// Runs one piece of asynchronous work; the rest of the orchestration waits
/// for processes and files, for which threads are simpler.
pub(super) fn block_on<T>(
    work: impl Future<Output = Result<T, ClusterError>> + Send,
) -> Result<T, ClusterError>
where
    T: Send,
{
    // A thread of its own, so that asynchronous tests may call us as well.
    std::thread::scope(|scope| {
        let handle = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            match runtime {
                Ok(runtime) => runtime.block_on(work),
                Err(error) => Err(ClusterError::Stuck {
                    what: format!("the asynchronous runtime ({error})"),
                }),
            }
        });
        handle
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A client of the API server, through the host's loopback.
pub(super) async fn client(layout: &Layout) -> Result<Client, ClusterError> {
    let path = layout.kubeconfig();
    let unusable = |source| ClusterError::Kubeconfig {
        path: path.clone(),
        source,
    };
    let file = Kubeconfig::read_from(&path).map_err(unusable)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(unusable)?;
    config.read_timeout = Some(Duration::from_secs(10));
    Client::try_from(config).map_err(|source| ClusterError::Api {
        doing: "connect",
        source: Box::new(source),
    })
}

/// Waits until the API server says that it is ready.
pub(super) async fn api_server(layout: &Layout, client: &Client) -> Result<(), ClusterError> {
    until(layout, "the API server to be ready", || async {
        let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
            return false;
        };
        client
            .request_text(request)
            .await
            .is_ok_and(|text| text == "ok")
    })
    .await
}

/// Waits until all nodes are Ready and Pods can be made.
pub(super) async fn nodes(
    layout: &Layout,
    client: &Client,
    nodes: &[NodeNumber],
) -> Result<(), ClusterError> {
    for node in nodes {
        node_is(layout, client, &node.name(), "True").await?;
    }
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    until(layout, "the default ServiceAccount", || async {
        accounts.get("default").await.is_ok()
    })
    .await
}

/// Waits until the Ready condition of a node has this status.
pub(super) async fn node_is(
    layout: &Layout,
    client: &Client,
    name: &str,
    wanted: &str,
) -> Result<(), ClusterError> {
    let nodes: Api<Node> = Api::all(client.clone());
    until(
        layout,
        &format!("node {name} to have Ready={wanted}"),
        || async {
            nodes
                .get(name)
                .await
                .is_ok_and(|node| ready_status(&node) == wanted)
        },
    )
    .await
}

/// Name and Ready status of all nodes.
pub(super) async fn list(client: &Client) -> Result<Vec<(String, String)>, ClusterError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let list = nodes.list(&ListParams::default()).await;
    let list = list.map_err(|source| ClusterError::Api {
        doing: "list nodes",
        source: Box::new(source),
    })?;
    Ok(list
        .into_iter()
        .map(|node| {
            (
                node.metadata.name.clone().unwrap_or_default(),
                ready_status(&node),
            )
        })
        .collect())
}

fn ready_status(node: &Node) -> String {
    let conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    ready
        .next()
        .map(|condition| condition.status.clone())
        .unwrap_or_default()
}

async fn until<F, R>(layout: &Layout, what: &str, mut is_so: F) -> Result<(), ClusterError>
where
    F: FnMut() -> R,
    R: Future<Output = bool>,
{
    let deadline = Instant::now() + Duration::from_secs(SECONDS_MAX);
    while !is_so().await {
        if Instant::now() > deadline {
            return Err(ClusterError::Timeout {
                what: what.to_owned(),
                seconds: SECONDS_MAX,
                logs: layout.logs(),
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
