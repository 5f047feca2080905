//! Wiring: client, watches, election, supervisor, metrics. Both replicas keep
//! their caches warm; only the leader has links to agents and writes.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use api::MySQLCluster;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::client::ClientBuilder;
use kube::runtime::watcher;
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cache::{Cache, Key, keep};
use crate::context::{Context, Parts};
use crate::events::Voice;
use crate::gate::{CurrentTerm, Gate};
use crate::leader::{Elector, Term};
use crate::metrics::Metrics;
use crate::supervisor::{self, Touches};
use crate::{health, labels};

/// Name of the Lease.
const LEASE: &str = "katazuke-operator";
/// What is left running when the process ends is not waited for longer.
const SHUTDOWN: Duration = Duration::from_secs(2);
/// How often the caches are looked at before the first term.
const SYNC: Duration = Duration::from_millis(50);

/// How to run.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The operator's own namespace, in which its Lease lives.
    #[arg(long, env = "POD_NAMESPACE")]
    pub namespace: String,
    /// A name that no other running replica has: the Pod's.
    #[arg(long, env = "POD_NAME")]
    pub identity: String,
    /// The operator's own image: the agent is copied from it into the Pods.
    #[arg(long = "image", env = "KATAZUKE_IMAGE")]
    pub agent_image: String,
    /// Serve the clusters of one namespace only; without it, of all.
    #[arg(long, env = "KATAZUKE_WATCH_NAMESPACE")]
    pub watch_namespace: Option<String>,
    /// Address of `/metrics`, `/livez` and `/readyz`.
    #[arg(long, env = "KATAZUKE_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
}

/// Why it ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No way to the API server is configured.
    #[error("cannot find out how to reach the API server: {0}")]
    Configure(String),
    /// The client could not be made.
    #[error("cannot make a client: {0}")]
    Client(#[source] kube::Error),
    /// The port could not be taken.
    #[error("cannot serve metrics on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// How it failed.
        source: std::io::Error,
    },
}

/// The whole process: runs until SIGTERM or SIGINT.
pub fn main(options: Options) -> ExitCode {
    // Two libraries bring TLS; both shall use this one. Set already by an embedder: fine.
    let _set = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "cannot start");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(async {
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(stop.clone()));
        run(options, stop).await
    });
    runtime.shutdown_timeout(SHUTDOWN);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "ended");
            ExitCode::FAILURE
        }
    }
}

async fn stop_on_signal(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        tracing::warn!("cannot listen for signals");
        return;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("asked to stop");
    stop.cancel();
}

/// Runs until `stop`.
pub async fn run(options: Options, stop: CancellationToken) -> Result<(), RunError> {
    let config = Config::infer()
        .await
        .map_err(|error| RunError::Configure(error.to_string()))?;
    let metrics = Metrics::new();
    let term = CurrentTerm::new(Term::none());
    let gate = Gate {
        term: term.clone(),
        metrics: metrics.clone(),
    };
    let client = ClientBuilder::try_from(config)
        .map_err(RunError::Client)?
        .with_layer(&gate)
        .build();
    run_over(client, options, stop, metrics, term).await
}

/// Runs over a client that is behind the gate of `term` already.
pub async fn run_over(
    client: Client,
    options: Options,
    stop: CancellationToken,
    metrics: Arc<Metrics>,
    term: CurrentTerm,
) -> Result<(), RunError> {
    let mut aside = JoinSet::new();
    let (voice, publisher) = Voice::new(client.clone(), options.identity.clone());
    aside.spawn(publisher);
    let context = Context::new(Parts {
        client: client.clone(),
        metrics,
        term,
        voice,
        agent_image: options.agent_image.clone(),
    });
    let served = health::serve(options.listen, context.clone());
    aside.spawn(served.await.map_err(|source| RunError::Listen {
        address: options.listen,
        source,
    })?);
    let touches = Touches::default();
    watch(
        &context,
        options.watch_namespace.as_deref(),
        &touches,
        &mut aside,
    );
    let mut elector = Elector::new(client, &options.namespace, LEASE, options.identity);
    while !synced(&context, &stop).await {
        tracing::warn!("the caches are not synced yet");
    }
    while let Some(term) = elector.acquire(&stop).await {
        lead(&context, &touches, &mut elector, term, &stop).await;
        if stop.is_cancelled() {
            elector.release().await;
            break;
        }
    }
    tracing::info!("stopped");
    Ok(())
}

/// One term, from its begin to its end.
async fn lead(
    context: &Arc<Context>,
    touches: &Touches,
    elector: &mut Elector,
    term: Term,
    stop: &CancellationToken,
) {
    context.term.set(term.clone());
    context.metrics.leading.set(1);
    let clusters = supervisor::run(context.clone(), touches.clone(), term.ended());
    let held = elector.hold(&term, stop);
    tokio::join!(clusters, held);
    context.term.set(Term::none());
    context.metrics.leading.set(0);
}

/// True once all caches are synced, or when asked to stop.
async fn synced(context: &Context, stop: &CancellationToken) -> bool {
    for _ in 0..600 {
        if context.caches.are_synced() || stop.is_cancelled() {
            return true;
        }
        tokio::time::sleep(SYNC).await;
    }
    false
}

fn watch(
    context: &Arc<Context>,
    namespace: Option<&str>,
    touches: &Touches,
    tasks: &mut JoinSet<()>,
) {
    let managed = || watcher::Config::default().labels(labels::MANAGED);
    let caches = &context.caches;
    let mut watches = Watches {
        client: context.client.clone(),
        namespace,
        touches,
        tasks,
    };
    watches.add(
        &caches.clusters,
        watcher::Config::default(),
        |_: &mut MySQLCluster| {},
    );
    watches.add(&caches.pods, managed(), |pod: &mut Pod| {
        pod.spec = pod.spec.take().map(slim);
    });
    watches.add(&caches.claims, managed(), |_| {});
    watches.add(&caches.services, managed(), |_| {});
    watches.add(&caches.config_maps, managed(), |_| {});
    watches.add(&caches.secrets, managed(), |_| {});
    watches.add(&caches.budgets, managed(), |_| {});
    let nodes = keep(
        Api::<Node>::all(context.client.clone()),
        watcher::Config::default(),
        caches.nodes.clone(),
        |node: &mut Node| {
            node.status = None;
            node.annotations_mut().clear();
        },
        |_: Key| {},
    );
    tasks.spawn(nodes);
}

/// Of a Pod's spec only the node and the claims are read.
fn slim(spec: k8s_openapi::api::core::v1::PodSpec) -> k8s_openapi::api::core::v1::PodSpec {
    k8s_openapi::api::core::v1::PodSpec {
        node_name: spec.node_name,
        volumes: spec.volumes.map(|mut volumes| {
            volumes.retain(|volume| volume.persistent_volume_claim.is_some());
            volumes
        }),
        ..k8s_openapi::api::core::v1::PodSpec::default()
    }
}

struct Watches<'a> {
    client: Client,
    namespace: Option<&'a str>,
    touches: &'a Touches,
    tasks: &'a mut JoinSet<()>,
}

impl Watches<'_> {
    fn add<K>(&mut self, cache: &Arc<Cache<K>>, config: watcher::Config, strip: fn(&mut K))
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        let client = self.client.clone();
        let api = match self.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        let touches = self.touches.clone();
        let touched = move |key| touches.touch(key);
        self.tasks
            .spawn(keep(api, config, cache.clone(), strip, touched));
    }
}
