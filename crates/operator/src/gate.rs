//! The one way to the API server: counts every write by verb and kind, and
//! refuses every write while we do not lead. So a forgotten check elsewhere
//! cannot write in another's term. Reads and the lease itself pass.

use std::sync::{Arc, RwLock};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use crate::leader::{NotLeading, Term};
use crate::metrics::{Metrics, WriteLabels};

/// The term that all clients of this process write in.
#[derive(Clone)]
pub struct CurrentTerm(Arc<RwLock<Term>>);

impl CurrentTerm {
    /// Begins with none: a standby writes nothing.
    pub fn new(term: Term) -> Self {
        Self(Arc::new(RwLock::new(term)))
    }

    /// A new term has begun.
    pub fn set(&self, term: Term) {
        *self
            .0
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = term;
    }

    /// Refuses once the lease may be another's.
    pub fn check(&self) -> Result<(), NotLeading> {
        self.0
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .check()
    }
}

/// Puts the gate in front of a client.
#[derive(Clone)]
pub struct Gate {
    /// Whether we lead.
    pub term: CurrentTerm,
    /// Where writes are counted.
    pub metrics: Arc<Metrics>,
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Gated {
            inner,
            gate: self.clone(),
        }
    }
}

/// A client's service behind the gate.
#[derive(Clone)]
pub struct Gated<S> {
    inner: S,
    gate: Gate,
}

impl<S, B> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Response = http::Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Send + 'static,
{
    type Response = http::Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let resource = resource(request.uri().path());
        if request.method() != Method::GET {
            if resource != "leases"
                && let Err(refused) = self.gate.term.check()
            {
                return Box::pin(async move { Err(refused.into()) });
            }
            self.gate
                .metrics
                .api_writes
                .get_or_create(&WriteLabels {
                    verb: request.method().as_str().to_owned(),
                    resource: resource.to_owned(),
                })
                .inc();
        }
        let answer = self.inner.call(request);
        Box::pin(async move { answer.await.map_err(Into::into) })
    }
}

/// `pods` in `/api/v1/namespaces/db/pods/shop-0/status`.
fn resource(path: &str) -> &str {
    let mut parts = path.trim_start_matches('/').split('/');
    let skip = if parts.next() == Some("api") { 1 } else { 2 };
    let mut rest = parts.skip(skip);
    match (rest.next(), rest.next(), rest.next()) {
        (Some("namespaces"), Some(_), Some(resource)) | (Some(resource), _, _) => resource,
        (None, _, _) => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::resource;

    #[test]
    fn the_kind_of_a_write_is_read_from_its_path() {
        assert_eq!(resource("/api/v1/namespaces/db/pods/shop-0"), "pods");
        assert_eq!(
            resource("/apis/mysql.katazuke.dev/v1alpha1/namespaces/db/mysqlclusters/shop/status"),
            "mysqlclusters"
        );
        assert_eq!(
            resource("/apis/coordination.k8s.io/v1/namespaces/ops/leases"),
            "leases"
        );
        assert_eq!(resource("/api/v1/namespaces/db"), "namespaces");
        assert_eq!(resource("/"), "unknown");
    }
}
