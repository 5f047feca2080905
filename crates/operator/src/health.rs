//! Plain HTTP for the kubelet and Prometheus: `/livez`, `/readyz`, `/metrics`.
//! Ready means that the caches are synced: a standby is ready too. Never
//! serves anything about a cluster but numbers.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::context::Context;

/// Takes the port; the task that serves it.
pub async fn serve(
    address: SocketAddr,
    context: Arc<Context>,
) -> Result<impl Future<Output = ()>, std::io::Error> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let router = Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(context);
    Ok(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::warn!(%error, "metrics and probes are no longer served");
        }
    })
}

async fn ready(State(context): State<Arc<Context>>) -> impl IntoResponse {
    if context.caches.are_synced() {
        (StatusCode::OK, "ok")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the caches are not synced yet",
        )
    }
}

async fn metrics(State(context): State<Arc<Context>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], context.metrics.text())
}
