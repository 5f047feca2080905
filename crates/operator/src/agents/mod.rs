//! The agents of one cluster: a standing link to each, a snapshot for each
//! pass, orders. Agents never dial the operator (D3). Never decides what to
//! order; asks before each order whether we still lead.

mod dial;
mod heard;
mod link;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use katazuke_core::Ordinal;
use prometheus_client::metrics::gauge::Gauge;
use rustls::ClientConfig;
use time::OffsetDateTime;
use tokio::sync::Notify;
use wire::{Order, Reply};

use crate::gate::CurrentTerm;
use crate::leader::NotLeading;
use crate::pki::{self, Pair, PkiError};

pub use dial::DialError;
pub use heard::{Fresh, Said};
pub use link::Address;
use link::{Link, Shared};

/// Wakes a cluster's task.
#[derive(Clone, Default)]
pub struct Wake {
    notify: Arc<Notify>,
    /// Something is under way: growth matters too.
    restless: Arc<AtomicBool>,
    connected: Gauge,
}

impl Wake {
    /// With the gauge of connected agents.
    pub fn new(connected: Gauge) -> Self {
        Self {
            connected,
            ..Self::default()
        }
    }

    /// Start a pass now.
    pub fn now(&self) {
        self.notify.notify_one();
    }

    /// Waits for the next wake.
    pub async fn wait(&self) {
        self.notify.notified().await;
    }

    /// Whether growth of GTID sets is to wake the task.
    pub fn set_restless(&self, restless: bool) {
        self.restless.store(restless, Ordering::Relaxed);
    }

    fn is_restless(&self) -> bool {
        self.restless.load(Ordering::Relaxed)
    }

    fn connected(&self) -> Connected {
        self.connected.inc();
        Connected(self.connected.clone())
    }
}

/// Counts a connected stream as long as it lives.
struct Connected(Gauge);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Why an order has no reply.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// We no longer lead.
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    /// There is no link to that instance.
    #[error("there is no link to instance {0}")]
    NoLink(Ordinal),
    /// It took longer than its bound; it may still be done.
    #[error("no answer in {0} ms")]
    Timeout(u128),
    /// The connection failed; it may still be done.
    #[error(transparent)]
    Dial(#[from] DialError),
}

/// The operator's identity towards one cluster.
#[derive(Clone)]
struct Identity {
    authority: Pair,
    tls: Arc<ClientConfig>,
    made: OffsetDateTime,
}

/// The agents of one cluster.
pub struct Agents {
    links: BTreeMap<Ordinal, Link>,
    identity: Option<Identity>,
    wake: Wake,
    term: CurrentTerm,
    /// An instance without a link has been silent since then at least.
    begun: Instant,
}

impl Agents {
    /// No links yet.
    pub fn new(wake: Wake, term: CurrentTerm) -> Self {
        Self {
            links: BTreeMap::new(),
            identity: None,
            wake,
            term,
            begun: Instant::now(),
        }
    }

    /// Links to these, under this authority. A link whose Pod or address changed
    /// is made anew. One whose Pod is gone stays until there is another: a Pod
    /// deleted by force may still run, and its silence has to be counted on.
    pub(crate) fn follow(
        &mut self,
        wanted: BTreeMap<Ordinal, Address>,
        authority: &Pair,
        now: OffsetDateTime,
    ) -> Result<(), PkiError> {
        let tls = self.tls(authority, now)?;
        self.links.retain(|ordinal, link| {
            wanted
                .get(ordinal)
                .is_none_or(|address| address == link.address())
        });
        for (ordinal, address) in wanted {
            self.links
                .entry(ordinal)
                .or_insert_with(|| Link::open(address, tls.clone(), self.wake.clone()));
        }
        Ok(())
    }

    /// The client configuration; a changed authority cuts all links.
    fn tls(
        &mut self,
        authority: &Pair,
        now: OffsetDateTime,
    ) -> Result<Arc<ClientConfig>, PkiError> {
        if let Some(identity) = &self.identity {
            let fresh = now < identity.made + pki::CLIENT_LIFE / 2;
            if identity.authority == *authority && fresh {
                return Ok(identity.tls.clone());
            }
            if identity.authority != *authority {
                self.links.clear();
            }
        }
        let client = pki::operator_client(authority, now)?;
        let tls = dial::tls(&authority.certificate, &client).map_err(|error| PkiError::Read {
            what: "the cluster's certificate authority",
            why: error.to_string(),
        })?;
        // Links keep the configuration that they were made with, which is good
        // for as long as they live; one that breaks later than its certificate
        // would fail for ever, so all are made anew with the new one.
        self.links.clear();
        self.identity = Some(Identity {
            authority: authority.clone(),
            tls: tls.clone(),
            made: now,
        });
        Ok(tls)
    }

    /// What each agent says now. Taken first in a pass, before the record.
    pub fn snapshot(&self, now: Instant) -> BTreeMap<Ordinal, Said> {
        self.links
            .iter()
            .map(|(ordinal, link)| (*ordinal, link.snapshot(now)))
            .collect()
    }

    /// For how long nothing can have been heard from an instance without a link.
    pub(crate) fn milliseconds_without_link(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.begun);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }

    /// When each was last heard to take writes.
    pub(crate) fn serving(&self, of: Ordinal) -> Option<Instant> {
        self.links.get(&of).and_then(Link::serving)
    }

    /// A handle for one order, so that several go out at once.
    pub fn handle(&self, to: Ordinal) -> Option<Handle> {
        let link = self.links.get(&to)?;
        Some(Handle {
            shared: link.shared(),
            term: self.term.clone(),
        })
    }
}

/// Gives one order.
pub struct Handle {
    shared: Arc<Shared>,
    term: CurrentTerm,
}

impl Handle {
    /// Gives the order and waits at most this long.
    pub async fn order(&self, order: &Order, bound: Duration) -> Result<Reply, OrderError> {
        self.term.check()?;
        match tokio::time::timeout(bound, self.shared.order(order)).await {
            Ok(reply) => Ok(reply?),
            Err(_) => Err(OrderError::Timeout(bound.as_millis())),
        }
    }
}
