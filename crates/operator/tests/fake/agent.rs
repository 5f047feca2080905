//! An agent with a model of one mysqld behind it, over real TLS. Knows the
//! orders that a single instance needs on its way to serving.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame as Part, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use wire::{Act, AgentState, Frame, Mysqld, Order, Outcome, Refusal, Reply, Volume};

const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

#[derive(Clone)]
pub(crate) struct FakeAgent {
    pub(crate) state: Arc<Mutex<AgentState>>,
    pub(crate) orders: Arc<Mutex<Vec<Order>>>,
    stopped: CancellationToken,
}

/// PEM texts of its Secret.
pub(crate) struct Certificates {
    pub(crate) trust: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl FakeAgent {
    pub(crate) fn new(instance: &str, cluster_uid: &str) -> Self {
        let state = serde_json::from_value(json!({
            "instance": instance, "agent_version": "test", "cluster_uid": cluster_uid,
            "incarnation": "life-1", "seen": {"version": 0, "epoch": 0},
            "volume": {"kind": "Empty"}, "mysqld": {"kind": "Gated"},
        }))
        .unwrap();
        Self {
            state: Arc::new(Mutex::new(state)),
            orders: Arc::default(),
            stopped: CancellationToken::new(),
        }
    }

    /// Its process is killed.
    pub(crate) fn stop(&self) {
        self.stopped.cancel();
    }

    /// Serves until it is stopped.
    pub(crate) async fn run(self, address: SocketAddr, certificates: Certificates) {
        let stopped = self.stopped.clone();
        stopped
            .run_until_cancelled(self.serve(address, certificates))
            .await;
    }

    async fn serve(self, address: SocketAddr, certificates: Certificates) {
        let acceptor = TlsAcceptor::from(Arc::new(tls(&certificates)));
        let listener = TcpListener::bind(address).await.unwrap();
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let Ok(stream) = acceptor.accept(tcp).await else {
                continue;
            };
            let this = self.clone();
            let service = service_fn(move |request| {
                let this = this.clone();
                async move { Ok::<_, Infallible>(this.answer(request).await) }
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let connection = server.serve_connection(TokioIo::new(stream), service);
            let stopped = self.stopped.clone();
            tokio::spawn(async move { stopped.run_until_cancelled(connection).await });
        }
    }

    async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        if request.uri().path() == wire::PATH_WATCH {
            let frames = futures::stream::unfold((self, None), |(this, former)| async move {
                if former.is_some() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                let state = this.state.lock().unwrap().clone();
                let changed = former.as_ref() != Some(&state);
                let frame = Frame {
                    state: changed.then(|| Box::new(state.clone())),
                    unanswered_milliseconds: 0,
                    source_silent_milliseconds: None,
                };
                let line = format!("{}\n", serde_json::to_string(&frame).unwrap());
                Some((Ok(Part::data(Bytes::from(line))), (this, Some(state))))
            });
            return Response::new(StreamBody::new(frames).boxed_unsync());
        }
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let order: Order = serde_json::from_slice(&body).unwrap();
        let reply = self.obey(&order);
        let body = Bytes::from(serde_json::to_vec(&reply).unwrap());
        Response::new(Full::new(body).boxed_unsync())
    }

    fn obey(&self, order: &Order) -> Reply {
        let mut state = self.state.lock().unwrap();
        self.orders.lock().unwrap().push(order.clone());
        if order.stamp.version < state.seen.version {
            let message = "a newer version was seen".to_owned();
            let outcome = Outcome::Refused {
                refusal: Refusal::Stale,
                message,
            };
            return Reply {
                outcome,
                state: state.clone(),
            };
        }
        state.seen = order.stamp;
        let mut outcome = Outcome::Done;
        match &order.act {
            Act::Initialise => {
                outcome = Outcome::Started;
                state.volume = serde_json::from_value::<Volume>(json!({
                    "kind": "Data", "on_disk": {"uuid": UUID, "binlog": "", "relay": "", "tail": []},
                }))
                .unwrap();
            }
            Act::Boot | Act::Resume => {
                state.mysqld = serde_json::from_value(json!({"kind": "Running", "server": {
                    "uuid": UUID, "version": "9.7.4", "executed": format!("{UUID}:1-3"),
                    "read_only": true, "offline": true, "binlog_end": {"file": 1, "offset": 4},
                    "last_binlog_gtids": format!("{UUID}:1-3"),
                    "semi_sync": {"enabled": false, "k": 0, "waiting": 0, "no_tx": 0},
                }}))
                .unwrap();
            }
            Act::SemiSync { k } | Act::Promote { k, .. } => {
                let (enabled, k) = (*k > 0, *k);
                server(&mut state, |server| {
                    server.semi_sync.enabled = enabled;
                    server.semi_sync.k = k;
                });
            }
            Act::Open { .. } => server(&mut state, |server| {
                server.read_only = false;
                server.offline = false;
            }),
            Act::EnsureApp => server(&mut state, |server| server.app_ready = true),
            act @ (Act::Clone { .. }
            | Act::Follow { .. }
            | Act::Admit { .. }
            | Act::Fence
            | Act::FenceSelf
            | Act::CatchUp
            | Act::ServeReads
            | Act::CloseReads
            | Act::Freeze { .. }
            | Act::Thaw { .. }
            | Act::Kill
            | Act::Stop
            | Act::Discard { .. }
            | Act::DiscardRelayLogs { .. }
            | Act::Peers) => {
                outcome = Outcome::Failed {
                    message: format!("{act:?} is not modelled"),
                }
            }
        }
        let stamp = state.seen;
        server(&mut state, |server| server.as_of = stamp);
        Reply {
            outcome,
            state: state.clone(),
        }
    }

    pub(crate) fn grow(&self, to: u64) {
        let mut state = self.state.lock().unwrap();
        server(&mut state, |server| {
            server.executed = format!("{UUID}:1-{to}").parse().unwrap();
            server.binlog_end.offset = to;
        });
    }
}

fn server(state: &mut AgentState, change: impl FnOnce(&mut wire::Server)) {
    if let Mysqld::Running { server } = &mut state.mysqld {
        change(server);
    }
}

fn tls(certificates: &Certificates) -> rustls::ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(certificates.trust.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let chain = CertificateDer::pem_slice_iter(certificates.certificate.as_bytes());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            chain.map(Result::unwrap).collect(),
            PrivateKeyDer::from_pem_slice(certificates.key.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}
