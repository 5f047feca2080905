//! One cluster, pass by pass: observe → judge → plan → act → report. The agents
//! are looked at first and the record second, so a record is never older than
//! what it is compared with; whatever is to be done is judged again on the
//! record as read live. Remembers nothing that matters: only refusals, links
//! and what was told. Never decides: core does.

mod act;
mod aftermath;
mod error;
mod gap;
mod observe;
mod order;
mod record;
mod report;
mod story;
mod telling;
mod trouble;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::MySQLCluster;
use k8s_openapi::api::core::v1::Pod;
use katazuke_core::observed::Refusal;
use katazuke_core::record::Ordinal;
use katazuke_core::{Action, Judgement, Observed, Plan, Situation, judge, plan};
use kube::{Api, ResourceExt};
use time::OffsetDateTime;
use tracing::Instrument;

use crate::agents::{Address, Agents, Said};
use crate::cache::Key;
use crate::context::{Context, Findings, Shared};
use crate::metrics::{ClusterLabels, ErrorLabels, RoleLabel};
use crate::pki::InstanceName;
use act::{Stage, act};
use error::{PassError, Retry};
use gap::Gap;
use observe::{Sources, observe};

pub use observe::ordinal;
use record::read as read_record;

/// Between passes while all is well; the watches and streams wake it earlier.
const RESYNC: Duration = Duration::from_secs(15);
/// Between passes while anything is under way.
const QUICK: Duration = Duration::from_millis(250);
/// Between passes while nothing has changed for [`STALE`], though not all is well.
const CALM: Duration = Duration::from_secs(1);
/// A sentence that was left unsaid is said by a pass this long after the last.
const SAID: Duration = Duration::from_secs(3);
/// After the API server refused an action; changes wake the task earlier.
const REFUSED: Duration = Duration::from_secs(2);
/// See [`CALM`].
const STALE: Duration = Duration::from_mins(1);
/// Least time between the beginnings of two passes, unless the record was written.
const LEAST: Duration = Duration::from_millis(5);

/// When the next pass begins at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// At once: the record was written.
    Now,
    /// After this time.
    After(Duration),
    /// Never: the resource is gone, or we do not lead.
    Never,
}

/// Runs the passes of one cluster until it is gone or the term ends.
pub async fn run(context: Arc<Context>, key: Key, uid: String, shared: Arc<Shared>) {
    let mut clustering = Clustering::new(context, key, uid, shared);
    loop {
        let begun = Instant::now();
        match clustering.step().await {
            Next::Never => break,
            Next::Now => continue,
            Next::After(time) => {
                tokio::select! {
                    () = tokio::time::sleep(time) => {}
                    () = clustering.shared.wake.wait() => {}
                }
            }
        }
        tokio::time::sleep(LEAST.saturating_sub(begun.elapsed())).await;
    }
}

/// The memory of one cluster's passes.
struct Clustering {
    context: Arc<Context>,
    key: Key,
    uid: String,
    labels: ClusterLabels,
    shared: Arc<Shared>,
    agents: Agents,
    refusals: BTreeMap<Ordinal, Refusal>,
    /// The resource as we last wrote it: the cache may be behind.
    written: Option<Arc<MySQLCluster>>,
    situation: Option<Situation>,
    /// Since when a change of primary is under way.
    hurried: Option<Instant>,
    /// When the status was last written.
    reported: Option<Instant>,
    /// The words of the last pass, and since when they are the same.
    words: (String, Instant),
    former: BTreeMap<Ordinal, story::Former>,
    roles: BTreeMap<String, RoleLabel>,
    gap: Gap,
    passes: u64,
}

/// However the task ends, its metrics go: the resource is gone, the term is
/// over, or a new task begins.
impl Drop for Clustering {
    fn drop(&mut self) {
        self.forget();
    }
}

/// One picture and what core makes of it.
struct Decided {
    observed: Observed,
    judgement: Judgement,
    plan: Plan,
}

impl Clustering {
    fn new(context: Arc<Context>, key: Key, uid: String, shared: Arc<Shared>) -> Self {
        let labels = ClusterLabels {
            namespace: key.namespace.clone(),
            cluster: key.name.clone(),
        };
        Self {
            agents: Agents::new(shared.wake.clone(), context.term.clone()),
            context,
            key,
            uid,
            labels,
            shared,
            refusals: BTreeMap::new(),
            written: None,
            situation: None,
            reported: None,
            words: (String::new(), Instant::now()),
            former: BTreeMap::new(),
            roles: BTreeMap::new(),
            gap: Gap::default(),
            hurried: None,
            passes: 0,
        }
    }

    /// One pass with its span, its metrics and its errors.
    async fn step(&mut self) -> Next {
        self.passes += 1;
        let span = tracing::info_span!(
            "pass",
            pass = self.passes,
            cluster = %self.key,
            situation = tracing::field::Empty,
            epoch = tracing::field::Empty,
            version = tracing::field::Empty,
        );
        let begun = Instant::now();
        let result = self.pass().instrument(span.clone()).await;
        self.context
            .metrics
            .pass
            .observe(begun.elapsed().as_secs_f64());
        let error = match result {
            Ok(next) => return next,
            Err(error) => error,
        };
        let labels = ErrorLabels {
            step: "clustering",
            reason: error.reason(),
        };
        self.context.metrics.errors.get_or_create(&labels).inc();
        span.in_scope(|| {
            if error.needs_human() {
                tracing::error!(%error, "the pass failed");
            } else {
                tracing::warn!(%error, "the pass failed");
            }
        });
        match error.retry() {
            Retry::After(time) => Next::After(time),
            Retry::Never => Next::Never,
        }
    }

    async fn pass(&mut self) -> Result<Next, PassError> {
        let Some(cached) = self.latest() else {
            return Ok(Next::Never);
        };
        self.context.term.check()?;
        self.follow_agents(&cached)?;
        let said = self.agents.snapshot(Instant::now());
        let findings = self.shared.findings();
        let mut base = cached;
        let mut decided = self.decide(&base, &said, &findings)?;
        if let Plan::Do(_) | Plan::NeedsHuman(_) = decided.plan {
            let Some(live) = self.read_live().await? else {
                return Ok(Next::Never);
            };
            base = Arc::new(live);
            decided = self.decide(&base, &said, &findings)?;
        }
        self.note(&decided);
        let valid = findings.valid.as_deref();
        let actions = actions(&decided.plan, valid.is_some());
        let stage = Stage {
            context: &self.context,
            live: &base,
            observed: &decided.observed,
            agents: &self.agents,
            valid,
        };
        let performed = act(&stage, &actions).await;
        let taken = self.take_in(&decided, &base, &performed);
        let next = match (taken.recorded, taken.refused) {
            (true, _) => Next::Now,
            (false, true) => Next::After(REFUSED),
            (false, false) => self.pause(&decided),
        };
        self.report(&decided, &findings, taken).await?;
        Ok(next)
    }

    /// The resource: from the cache, or as we wrote it where that is newer.
    fn latest(&mut self) -> Option<Arc<MySQLCluster>> {
        let cached = self.context.caches.clusters.get(&self.key, &self.key.name);
        let cached = cached.filter(|cluster| cluster.metadata.uid.as_deref() == Some(&self.uid))?;
        let version = |cluster: &MySQLCluster| cluster.resource_version()?.parse::<u64>().ok();
        match &self.written {
            Some(written) if version(written) > version(&cached) => Some(written.clone()),
            Some(_) | None => {
                self.written = None;
                Some(cached)
            }
        }
    }

    /// A quorum read; `None` when the resource is gone or another one.
    async fn read_live(&self) -> Result<Option<MySQLCluster>, PassError> {
        let api: Api<MySQLCluster> =
            Api::namespaced(self.context.client.clone(), &self.key.namespace);
        let live = api
            .get_opt(&self.key.name)
            .await
            .map_err(PassError::ReadCluster)?;
        Ok(live.filter(|live| live.metadata.uid.as_deref() == Some(&self.uid)))
    }

    /// Links to the agents of all Pods that have an address.
    fn follow_agents(&mut self, cluster: &MySQLCluster) -> Result<(), PassError> {
        let primary = read_record(
            cluster
                .status
                .as_ref()
                .and_then(|status| status.ha.as_ref()),
        )?
        .primary_ordinal();
        self.gap
            .serving(primary.and_then(|primary| self.agents.serving(primary)));
        let Some(authority) = crate::resources::authority(&self.context.caches, &self.key) else {
            return Ok(());
        };
        let mut wanted = BTreeMap::new();
        for (name, pod) in self.context.caches.pods.of(&self.key) {
            let Some(of) = ordinal(&self.key.name, &name) else {
                continue;
            };
            if let Some(address) = self.address(&pod, &name) {
                wanted.insert(of, address);
            }
        }
        let followed = self
            .agents
            .follow(wanted, &authority, OffsetDateTime::now_utc());
        if let Err(error) = followed {
            // The links that stand go on; the task of owned objects reports it.
            tracing::warn!(%error, "cannot dial the agents");
        }
        Ok(())
    }

    fn address(&self, pod: &Pod, name: &str) -> Option<Address> {
        let ip: IpAddr = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        let ours = pod
            .owner_references()
            .iter()
            .any(|owner| owner.uid == self.uid);
        let names = InstanceName {
            instance: name,
            cluster: &self.key.name,
            namespace: &self.key.namespace,
        };
        ours.then(|| Address {
            pod_uid: pod.uid().unwrap_or_default(),
            socket: SocketAddr::new(ip, wire::layout::AGENT_PORT),
            server_name: names.server_name(),
        })
    }

    fn decide(
        &self,
        cluster: &MySQLCluster,
        said: &BTreeMap<Ordinal, Said>,
        findings: &Findings,
    ) -> Result<Decided, PassError> {
        let caches = &self.context.caches;
        let record = read_record(
            cluster
                .status
                .as_ref()
                .and_then(|status| status.ha.as_ref()),
        )?;
        let generations = record.clone();
        let observed = observe(&Sources {
            cluster,
            record,
            said,
            milliseconds_without_link: self.agents.milliseconds_without_link(Instant::now()),
            pods: caches.pods.is_synced().then(|| caches.pods.of(&self.key)),
            claims: caches
                .claims
                .is_synced()
                .then(|| caches.claims.of(&self.key)),
            node: &|name| caches.node(name),
            spec_hash: &|of| {
                let valid = findings.valid.as_ref()?;
                valid.spec_hash(of, generations.generation(of))
            },
            refusals: &self.refusals,
        });
        let judgement = judge(&observed);
        let plan = plan(&observed, &judgement);
        Ok(Decided {
            observed,
            judgement,
            plan,
        })
    }

    /// Span, metrics and the event of a new situation.
    fn note(&mut self, decided: &Decided) {
        let Decided {
            observed,
            judgement,
            plan,
        } = decided;
        let span = tracing::Span::current();
        span.record("situation", tracing::field::debug(judgement.situation));
        span.record("epoch", observed.record.epoch);
        span.record("version", observed.record.version);
        let words = format!("{judgement:?} {plan:?}");
        if words != self.words.0 {
            tracing::info!(why = judgement.why, plan = ?plan, "judged");
            self.words = (words, Instant::now());
        }
        let metrics = &self.context.metrics;
        metrics.set_situation(&self.labels, self.situation, judgement.situation);
        let epoch = i64::try_from(observed.record.epoch).unwrap_or(i64::MAX);
        metrics.epoch.get_or_create(&self.labels).set(epoch);
        self.shared.wake.set_restless(restless(observed, judgement));
    }

    fn pause(&self, decided: &Decided) -> Next {
        Next::After(if !restless(&decided.observed, &decided.judgement) {
            match self.reported.is_some_and(|at| at.elapsed() < SAID) {
                true => SAID,
                false => RESYNC,
            }
        } else if self.words.1.elapsed() > STALE {
            CALM
        } else {
            QUICK
        })
    }
}

/// While this holds, every change of an agent wakes the task, and a quick timer too.
fn restless(observed: &Observed, judgement: &Judgement) -> bool {
    let settled = matches!(
        judgement.situation,
        Situation::Healthy | Situation::Paused | Situation::Offline | Situation::Deleting
    );
    !settled || observed.record.transition.is_some()
}

/// What can be performed: no Pod without a spec that was valid once. That there
/// is none is said by the task of owned objects.
fn actions(plan: &Plan, has_valid_spec: bool) -> Vec<Action> {
    let planned = match plan {
        Plan::Do(actions) => actions.as_slice(),
        Plan::Settled | Plan::Wait(_) | Plan::NeedsHuman(_) => &[],
    };
    let creates = |action: &Action| matches!(action, Action::CreateInstance { .. });
    planned
        .iter()
        .filter(|action| has_valid_spec || !creates(action))
        .cloned()
        .collect()
}
