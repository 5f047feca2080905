//! Plain HTTP for the kubelet and Prometheus. Never says anything that is not
//! for everybody on the network, never touches mysqld: it reads what is known.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use prometheus_client::{encoding::text::encode, metrics::gauge::Gauge, registry::Registry};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    time::{sleep, timeout},
};
use wire::{AgentState, Mysqld, Server};

use crate::agent::Agent;

/// Anybody on the network can connect: not too often, and not for long.
const CONNECTIONS_MAX: usize = 64;
const CONNECTION_BOUND: Duration = Duration::from_secs(30);
/// After a failed accept, which must not end the parent of mysqld.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves for ever.
pub(crate) async fn serve(agent: Arc<Agent>, listener: TcpListener) -> Infallible {
    let router = Router::new()
        .route("/startupz", get(|| async { "ok\n" }))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(agent);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "accepting a probe's connection");
                sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let serving = auto::Builder::new(TokioExecutor::new());
            let served = serving.serve_connection(TokioIo::new(stream), service);
            match timeout(CONNECTION_BOUND, served).await {
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(error)) => tracing::debug!(%error, "probe connection ended"),
            }
            drop(place);
        });
    }
}

/// Serves somebody: writes, or reads of a replica.
fn serves(state: &AgentState) -> bool {
    match &state.mysqld {
        Mysqld::Running { server } => {
            let replicating = server
                .replication
                .as_ref()
                .is_some_and(|replication| replication.applier);
            !server.offline && (!server.read_only || replicating)
        }
        Mysqld::Gated { .. } | Mysqld::Starting => false,
    }
}

async fn ready(State(agent): State<Arc<Agent>>) -> (StatusCode, &'static str) {
    if serves(&agent.state()) {
        (StatusCode::OK, "serving\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not serving\n")
    }
}

async fn metrics(State(agent): State<Arc<Agent>>) -> impl IntoResponse {
    let mut text = String::new();
    match encode(&mut text, &registry(&agent)) {
        Ok(()) => (
            [(
                CONTENT_TYPE,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            )],
            text,
        )
            .into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Made from the state at each scrape, so nothing has to be kept in step.
fn registry(agent: &Agent) -> Registry {
    let state = agent.state();
    let mut registry = Registry::with_prefix("katazuke_agent");
    let mut gauge = |name: &str, help: &str, value: i64| {
        let gauge = Gauge::<i64>::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    gauge(
        "uptime_seconds",
        "Since the agent began",
        count(agent.uptime().as_secs()),
    );
    gauge(
        "disk_total_bytes",
        "Size of the data volume",
        count(state.disk.total_bytes),
    );
    gauge(
        "disk_free_bytes",
        "Free space on the data volume",
        count(state.disk.free_bytes),
    );
    gauge(
        "version_seen",
        "Highest version of the record seen",
        count(state.seen.version),
    );
    gauge(
        "mysqld_serving",
        "1 while mysqld serves writes or reads",
        i64::from(serves(&state)),
    );
    let server = match &state.mysqld {
        Mysqld::Running { server } => Some(server),
        Mysqld::Gated { .. } | Mysqld::Starting => None,
    };
    gauge(
        "mysqld_up",
        "1 while mysqld answers",
        i64::from(server.is_some()),
    );
    if let Some(server) = server {
        server_gauges(server, &mut gauge);
    }
    registry
}

fn server_gauges(server: &Server, gauge: &mut impl FnMut(&str, &str, i64)) {
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let executed = u64::try_from(server.executed.count()).unwrap_or(u64::MAX);
    gauge(
        "mysqld_read_only",
        "1 unless open for writes",
        i64::from(server.read_only),
    );
    gauge(
        "mysqld_executed_transactions",
        "Transactions in gtid_executed",
        count(executed),
    );
    gauge(
        "mysqld_waiting_sessions",
        "Zero or not: commits that wait for an acknowledgement",
        i64::from(server.semi_sync.waiting),
    );
    gauge(
        "mysqld_unacknowledged_transactions",
        "Commits that were not acknowledged",
        count(server.semi_sync.no_tx),
    );
    gauge(
        "mysqld_clients",
        "Client connections",
        i64::from(server.clients),
    );
    if let Some(replication) = &server.replication {
        gauge(
            "mysqld_acknowledges",
            "1 while this replica acknowledges",
            i64::from(replication.semi_sync_active),
        );
        if let Some(lag) = replication.lag_seconds {
            gauge("mysqld_lag_seconds", "Behind the source", count(lag));
        }
    }
}
