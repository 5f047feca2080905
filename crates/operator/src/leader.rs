//! One leader among the operator's replicas: a Lease, six seconds long. Time is
//! our own monotonic clock only: a holder counts from before it asked, a
//! standby from when it saw the Lease change, so clocks of nodes may differ. A
//! leader that lost the Lease stops at once: every write and every order asks
//! [`Term::check`] first. What it left behind is harmless by R1 and R2.
//! Never decides anything about a cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

/// Length of the Lease.
const LEASE_SECONDS: i32 = 6;
/// How often the holder renews and a standby looks.
const RENEW: Duration = Duration::from_millis(1500);
/// A request that takes longer is given up: the next one may do better.
const REQUEST: Duration = Duration::from_secs(2);
/// The holder stops this much before others may take over.
const MARGIN: Duration = Duration::from_secs(1);

/// Whether we lead, asked before every side effect.
#[derive(Debug, Clone)]
pub struct Term {
    began: Instant,
    /// Milliseconds after `began` until which the Lease is ours.
    until: Arc<AtomicU64>,
    ended: CancellationToken,
}

/// Somebody else may lead by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this operator no longer holds the lease")]
pub struct NotLeading;

impl Term {
    /// A term that has not begun: nothing may be written.
    pub fn none() -> Self {
        Self {
            began: Instant::now(),
            until: Arc::default(),
            ended: CancellationToken::new(),
        }
    }

    /// A term without end, for tests and for one-replica development.
    pub fn unlimited() -> Self {
        let term = Self::none();
        term.until.store(u64::MAX, Ordering::SeqCst);
        term
    }

    /// Refuses once the Lease may be another's. Looks at the clock too: a
    /// process that was stopped for a while finds out here.
    pub fn check(&self) -> Result<(), NotLeading> {
        let held = millis(self.began.elapsed()) < self.until.load(Ordering::SeqCst);
        if held && !self.ended.is_cancelled() {
            Ok(())
        } else {
            Err(NotLeading)
        }
    }

    /// Ends when the term does.
    pub fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    fn extend(&self, asked: Instant) {
        let held =
            Duration::from_secs(u64::from(LEASE_SECONDS.unsigned_abs())).saturating_sub(MARGIN);
        let until = asked.duration_since(self.began) + held;
        self.until.store(millis(until), Ordering::SeqCst);
    }

    fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
        self.ended.cancel();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Takes part in the election.
pub struct Elector {
    api: Api<Lease>,
    name: String,
    identity: String,
    /// The Lease as a standby last saw it change, and when.
    seen: Option<(String, Instant)>,
}

/// What a look at the Lease came to.
enum Look {
    Ours,
    Others(String),
}

impl Elector {
    /// `identity` must be unique among the replicas and lives.
    pub fn new(client: Client, namespace: &str, name: &str, identity: String) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity,
            seen: None,
        }
    }

    /// Waits until we lead; `None` when asked to stop first.
    pub async fn acquire(&mut self, stop: &CancellationToken) -> Option<Term> {
        loop {
            let asked = Instant::now();
            match tokio::time::timeout(REQUEST, self.look()).await {
                Ok(Ok(Look::Ours)) => {
                    let term = Term {
                        began: asked,
                        ..Term::none()
                    };
                    term.extend(asked);
                    tracing::info!(identity = self.identity, "leading");
                    return Some(term);
                }
                Ok(Ok(Look::Others(holder))) => tracing::debug!(holder, "standing by"),
                Ok(Err(error)) => tracing::warn!(%error, "cannot read or take the lease"),
                Err(_) => tracing::warn!("the lease did not answer in time"),
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(RENEW) => {}
            }
        }
    }

    /// Renews until the Lease is lost or `stop`; then the term has ended.
    pub async fn hold(&mut self, term: &Term, stop: &CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(RENEW) => {}
            }
            let asked = Instant::now();
            match tokio::time::timeout(REQUEST, self.look()).await {
                Ok(Ok(Look::Ours)) => {
                    if term.check().is_err() {
                        tracing::warn!("the lease was renewed too late; the term has ended");
                        break;
                    }
                    term.extend(asked);
                }
                Ok(Ok(Look::Others(holder))) => {
                    tracing::warn!(holder, "the lease is another's");
                    break;
                }
                Ok(Err(error)) => tracing::warn!(%error, "cannot renew the lease"),
                Err(_) => tracing::warn!("the lease did not answer in time"),
            }
            if term.check().is_err() {
                tracing::warn!("the lease ran out");
                break;
            }
        }
        term.end();
    }

    /// Gives the Lease back, so that the standby need not wait. Call only after
    /// everything that acted in this term has ended.
    pub async fn release(&mut self) {
        let given = async {
            let mut lease = self.api.get(&self.name).await?;
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() != Some(&self.identity) {
                return Ok(());
            }
            spec.holder_identity = None;
            self.api
                .replace(&self.name, &PostParams::default(), &lease)
                .await
                .map(|_| ())
        };
        match tokio::time::timeout(REQUEST, given).await {
            Ok(Ok(())) => tracing::info!("gave the lease back"),
            Ok(Err(error)) => {
                let error: kube::Error = error;
                tracing::warn!(%error, "could not give the lease back");
            }
            Err(_) => tracing::warn!("could not give the lease back in time"),
        }
    }

    /// Takes or renews the Lease where that is allowed.
    async fn look(&mut self) -> Result<Look, kube::Error> {
        let Some(mut lease) = self.api.get_opt(&self.name).await? else {
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.name.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(self.spec(0)),
            };
            return Self::won(self.api.create(&PostParams::default(), &lease).await);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let ours = holder == self.identity;
        if !ours && !holder.is_empty() && !self.ran_out(&lease, &spec) {
            return Ok(Look::Others(holder));
        }
        let changes = spec.lease_transitions.unwrap_or(0) + i32::from(!ours);
        let acquired = spec.acquire_time.filter(|_| ours);
        lease.spec = Some(LeaseSpec {
            acquire_time: acquired.or(Some(now())),
            ..self.spec(changes)
        });
        Self::won(
            self.api
                .replace(&self.name, &PostParams::default(), &lease)
                .await,
        )
    }

    /// A conflict means that somebody was quicker; the next look tells.
    fn won(answer: Result<Lease, kube::Error>) -> Result<Look, kube::Error> {
        match answer {
            Ok(_) => Ok(Look::Ours),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Ok(Look::Others("somebody who was quicker".to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// The Lease has not changed for its whole length, by our clock.
    fn ran_out(&mut self, lease: &Lease, spec: &LeaseSpec) -> bool {
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        match &self.seen {
            Some((seen, since)) if *seen == version => {
                let length = spec.lease_duration_seconds.unwrap_or(LEASE_SECONDS);
                since.elapsed() >= Duration::from_secs(u64::from(length.unsigned_abs()))
            }
            Some(_) | None => {
                self.seen = Some((version, Instant::now()));
                false
            }
        }
    }

    fn spec(&self, changes: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            acquire_time: Some(now()),
            renew_time: Some(now()),
            lease_transitions: Some(changes),
            ..LeaseSpec::default()
        }
    }
}

/// For humans who read the Lease; nothing is decided by it.
fn now() -> MicroTime {
    MicroTime(k8s_openapi::jiff::Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_that_never_began_or_has_ended_allows_nothing() {
        assert_eq!(Term::none().check(), Err(NotLeading));
        let term = Term::unlimited();
        assert_eq!(term.check(), Ok(()));
        term.end();
        assert_eq!(term.check(), Err(NotLeading));
    }

    #[test]
    fn a_term_ends_before_others_may_take_over_even_if_nobody_says_so() {
        let asked = Instant::now();
        let Some(earlier) = asked.checked_sub(Duration::from_secs(5)) else {
            return;
        };
        let term = Term {
            began: earlier,
            ..Term::none()
        };
        term.extend(earlier);
        assert_eq!(term.check(), Err(NotLeading));
        term.extend(asked);
        assert_eq!(term.check(), Ok(()));
    }
}
