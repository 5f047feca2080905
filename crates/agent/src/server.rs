//! The agent's HTTP/2 server: orders and the watch stream, over mutual TLS.
//! Never serves anybody but the operator, never anything without a certificate.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::stream;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_rustls::TlsAcceptor;
use wire::{AgentState, Frame, Order, Outcome, Refusal, Reply, layout};

use crate::{agent::Agent, certificate, lock, options::Options, orders};

const HANDSHAKE_BOUND: Duration = Duration::from_secs(5);
/// Below wire's bound, for the way there takes time too.
const HEARTBEAT: Duration = Duration::from_millis(wire::HEARTBEAT_MILLISECONDS * 4 / 5);

/// The server's certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// A file.
    #[error("reading {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// PEM.
    #[error("{path}: {source}")]
    Pem {
        path: PathBuf,
        source: rustls::pki_types::pem::Error,
    },
    /// The trust bundle.
    #[error("the trust bundle: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// Key and certificate.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

/// Binds to the given address, or to all of them, IPv6 where there is any.
pub(crate) async fn bind(address: Option<IpAddr>, port: u16) -> io::Result<TcpListener> {
    if let Some(address) = address {
        return TcpListener::bind(SocketAddr::new(address, port)).await;
    }
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
    }
}

/// The certificates in use, read again when a file has changed.
struct Tls {
    options: Options,
    current: Mutex<(Vec<Option<SystemTime>>, Arc<ServerConfig>)>,
}

impl Tls {
    fn read(options: &Options) -> Result<Self, TlsError> {
        let current = Mutex::new((changed_at(options), config(options)?));
        Ok(Self {
            options: options.clone(),
            current,
        })
    }

    /// Keeps the old ones while the new ones cannot be used.
    fn acceptor(&self) -> TlsAcceptor {
        let mut current = lock(&self.current);
        let changed_at = changed_at(&self.options);
        if current.0 != changed_at {
            match config(&self.options) {
                Ok(config) => *current = (changed_at, config),
                Err(error) => tracing::error!(%error, "the new certificates are not used"),
            }
        }
        TlsAcceptor::from(Arc::clone(&current.1))
    }
}

pub(crate) fn changed_at(options: &Options) -> Vec<Option<SystemTime>> {
    [layout::TLS_CA, layout::TLS_CERT, layout::TLS_KEY]
        .iter()
        .map(|file| {
            std::fs::metadata(options.tls(file))
                .and_then(|meta| meta.modified())
                .ok()
        })
        .collect()
}

fn config(options: &Options) -> Result<Arc<ServerConfig>, TlsError> {
    let certificates = |file| -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let path = options.tls(file);
        let pem = std::fs::read(&path).map_err(|source| TlsError::Read {
            path: path.clone(),
            source,
        })?;
        CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<_, _>>()
            .map_err(|source| TlsError::Pem { path, source })
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(layout::TLS_CA)? {
        roots.add(certificate)?;
    }
    let path = options.tls(layout::TLS_KEY);
    let key =
        PrivateKeyDer::from_pem_file(&path).map_err(|source| TlsError::Pem { path, source })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates(layout::TLS_CERT)?, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Serves for ever.
pub(crate) async fn serve(
    agent: Arc<Agent>,
    listener: TcpListener,
) -> Result<Infallible, TlsError> {
    let tls = Arc::new(Tls::read(&agent.options)?);
    let router = Router::new()
        .route(wire::PATH_ORDER, post(take_order))
        .route(wire::PATH_WATCH, get(watch_state))
        .with_state(Arc::clone(&agent));
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let acceptor = tls.acceptor();
                let router = router.clone();
                tokio::spawn(async move {
                    if let Err(error) = connection(stream, acceptor, router).await {
                        tracing::debug!(%peer, %error, "connection ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a connection");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, router: Router) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let stream = timeout(HANDSHAKE_BOUND, acceptor.accept(stream))
        .await
        .map_err(io::Error::other)??;
    let certificates = stream.get_ref().1.peer_certificates();
    let caller = certificates.and_then(|chain| certificate::common_name(chain.first()?));
    if caller.as_deref() != Some(layout::OPERATOR_COMMON_NAME) {
        return Err(io::Error::other(format!("not the operator: {caller:?}")));
    }
    auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
        .map_err(io::Error::other)
}

async fn take_order(State(agent): State<Arc<Agent>>, body: Bytes) -> Json<Reply> {
    match serde_json::from_slice::<Order>(&body) {
        Ok(order) => {
            // A task of its own: a caller that goes away does not cut an act in two.
            let worker = Arc::clone(&agent);
            match tokio::spawn(async move { orders::take(&worker, order).await }).await {
                Ok(reply) => Json(reply),
                Err(error) => Json(Reply {
                    outcome: Outcome::Failed {
                        message: error.to_string(),
                    },
                    state: agent.state(),
                }),
            }
        }
        Err(error) => Json(Reply {
            outcome: Outcome::Refused {
                refusal: Refusal::Unknown,
                message: error.to_string(),
            },
            state: agent.state(),
        }),
    }
}

struct Watch {
    agent: Arc<Agent>,
    states: watch::Receiver<AgentState>,
    next: Instant,
}

async fn watch_state(State(agent): State<Arc<Agent>>) -> Response {
    let mut states = agent.subscribe();
    states.mark_changed();
    let watch = Watch {
        agent,
        states,
        next: Instant::now(),
    };
    let lines = stream::unfold(watch, |mut watch| async {
        let line = next_line(&mut watch).await?;
        Some((Ok::<_, Infallible>(line), watch))
    });
    (
        [(CONTENT_TYPE, "application/jsonl")],
        Body::from_stream(lines),
    )
        .into_response()
}

/// The next change, or a heartbeat.
async fn next_line(watch: &mut Watch) -> Option<Bytes> {
    let changed = match timeout_at(watch.next, watch.states.changed()).await {
        Ok(Ok(())) => true,
        Ok(Err(_)) => return None,
        Err(_) => watch.states.has_changed().unwrap_or(false),
    };
    watch.next = Instant::now() + HEARTBEAT;
    let mut frame: Frame = watch.agent.heartbeat();
    if changed {
        frame.state = Some(Box::new(watch.states.borrow_and_update().clone()));
    }
    let mut line = serde_json::to_vec(&frame).ok()?;
    line.push(b'\n');
    Some(line.into())
}
