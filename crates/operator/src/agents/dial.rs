//! One connection to one agent: TCP to the Pod's address, mutual TLS under the
//! instance's name, HTTP/2, JSON. Never retries and never interprets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use wire::{Order, Reply};

use crate::pki::Pair;

/// TCP, TLS and HTTP/2 together; a Pod on a lost node answers nothing.
const CONNECT: Duration = Duration::from_secs(1);
/// A state is a few kilobytes; a set with very many gaps may be more.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What failed, in the words of what was being done.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Certificate or name.
    #[error("cannot prepare TLS: {0}")]
    Prepare(String),
    /// Nothing answered in time.
    #[error("{0} did not answer in {n} ms", n = CONNECT.as_millis())]
    Timeout(SocketAddr),
    /// TCP or TLS.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Where.
        address: SocketAddr,
        /// How it failed.
        source: std::io::Error,
    },
    /// HTTP.
    #[error("cannot talk to the agent: {0}")]
    Http(#[from] hyper::Error),
    /// Not 200.
    #[error("the agent answered {status}: {text}")]
    Status {
        /// HTTP status.
        status: StatusCode,
        /// Its body.
        text: String,
    },
    /// Not what `wire` says.
    #[error("the agent's answer cannot be read: {0}")]
    Answer(String),
}

/// A connection; dropping the last clone of it closes it.
#[derive(Clone)]
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
    /// Cancelled when the stream on it ended: orders on it are not waited for.
    pub(super) cut: CancellationToken,
    _driver: Arc<AbortOnDropHandle<()>>,
}

/// The operator's side of mutual TLS with the agents of one cluster.
pub(super) fn tls(bundle: &str, client: &Pair) -> Result<Arc<ClientConfig>, DialError> {
    let prepare = |error: &dyn std::fmt::Display| DialError::Prepare(error.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots
            .add(certificate.map_err(|e| prepare(&e))?)
            .map_err(|e| prepare(&e))?;
    }
    let chain = CertificateDer::pem_slice_iter(client.certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| prepare(&e))?;
    let key = PrivateKeyDer::from_pem_slice(client.key.as_bytes()).map_err(|e| prepare(&e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| prepare(&e))?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|e| prepare(&e))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

/// Connects.
pub(super) async fn connect(
    address: SocketAddr,
    name: &str,
    tls: Arc<ClientConfig>,
) -> Result<Connection, DialError> {
    let server = ServerName::try_from(name.to_owned())
        .map_err(|error| DialError::Prepare(format!("{name}: {error}")))?;
    let connecting = async {
        let connect = |source| DialError::Connect { address, source };
        let tcp = TcpStream::connect(address).await.map_err(connect)?;
        tcp.set_nodelay(true).map_err(connect)?;
        let stream = TlsConnector::from(tls)
            .connect(server, tcp)
            .await
            .map_err(connect)?;
        let (sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        let driver = tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "connection to an agent ended");
            }
        });
        Ok(Connection {
            sender,
            authority: name.to_owned(),
            cut: CancellationToken::new(),
            _driver: Arc::new(AbortOnDropHandle::new(driver)),
        })
    };
    tokio::time::timeout(CONNECT, connecting)
        .await
        .unwrap_or(Err(DialError::Timeout(address)))
}

impl Connection {
    /// Begins the stream of frames.
    pub(super) async fn watch(&self) -> Result<Incoming, DialError> {
        let answer = self
            .send(Method::GET, wire::PATH_WATCH, Bytes::new())
            .await?;
        Ok(answer.into_body())
    }

    /// Gives an order and waits for its reply; the caller bounds the time.
    pub(super) async fn order(&self, order: &Order) -> Result<Reply, DialError> {
        let answer = |error: &dyn std::fmt::Display| DialError::Answer(error.to_string());
        let body = serde_json::to_vec(order).map_err(|e| answer(&e))?;
        let response = self
            .send(Method::POST, wire::PATH_ORDER, body.into())
            .await?;
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX)
            .collect()
            .await
            .map_err(|e| answer(&e))?
            .to_bytes();
        serde_json::from_slice(&body).map_err(|e| answer(&e))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, DialError> {
        let request = Request::builder()
            .method(method)
            .uri(format!(
                "https://{}:{}{path}",
                self.authority,
                wire::layout::AGENT_PORT
            ))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| DialError::Prepare(error.to_string()))?;
        let mut sender = self.sender.clone();
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        let status = response.status();
        let text = Limited::new(response.into_body(), 4096)
            .collect()
            .await
            .map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned())
            .unwrap_or_default();
        Err(DialError::Status { status, text })
    }
}
