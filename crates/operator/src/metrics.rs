//! The catalogue of metrics. Nothing that a user typed becomes a label, apart
//! from the names of clusters and namespaces. Never decides anything.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use katazuke_core::Situation;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// One cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ClusterLabels {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub cluster: String,
}

/// One cluster in one situation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SituationLabels {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub cluster: String,
    /// The judge's word.
    pub situation: String,
}

/// One instance in one role.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RoleLabels {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub cluster: String,
    /// `<cluster>-<ordinal>`.
    pub instance: String,
    /// `Primary` or `Replica`.
    pub role: RoleLabel,
}

/// Role of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum RoleLabel {
    /// Takes writes.
    Primary,
    /// Takes reads.
    Replica,
}

/// Kinds of planned and unplanned change of the primary.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WriteLabels {
    /// HTTP method.
    pub verb: String,
    /// Kind of object.
    pub resource: String,
}

/// An order to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OrderLabels {
    /// Which act.
    pub act: &'static str,
    /// `done`, `started`, `refused`, `failed`, or `unreachable`.
    pub outcome: &'static str,
}

/// A refused order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RefusalLabels {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub cluster: String,
    /// Which act.
    pub act: &'static str,
    /// Which precondition held it back.
    pub gate: &'static str,
}

/// Errors of a step, by the variant's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ErrorLabels {
    /// `clustering` or `resources`.
    pub step: &'static str,
    /// Variant of the step's error.
    pub reason: &'static str,
}

type Seconds = Gauge<f64, AtomicU64>;

/// Everything that is measured.
pub struct Metrics {
    registry: Registry,
    /// 1 for the situation that holds, absent for all others.
    pub situation: Family<SituationLabels, Gauge>,
    /// 1 for the role that an instance serves in.
    pub role: Family<RoleLabels, Gauge>,
    /// Rises with every change of the primary.
    pub epoch: Family<ClusterLabels, Gauge>,
    /// Instances that are verified and serve.
    pub instances_ready: Family<ClusterLabels, Gauge>,
    /// Failovers that were completed.
    pub failovers: Family<ClusterLabels, Counter>,
    /// Switchovers that were completed.
    pub switchovers: Family<ClusterLabels, Counter>,
    /// How long no instance took writes at a change of the primary.
    pub write_gap: Family<ClusterLabels, Histogram>,
    /// The last one of these.
    pub write_gap_last: Family<ClusterLabels, Seconds>,
    /// Writes to the API server.
    pub api_writes: Family<WriteLabels, Counter>,
    /// How long a pass took.
    pub pass: Histogram,
    /// How long a reconciliation of owned objects took.
    pub reconcile: Histogram,
    /// From order to answer.
    pub order: Histogram,
    /// Orders by what became of them.
    pub orders: Family<OrderLabels, Counter>,
    /// Orders that an agent refused.
    pub refusals: Family<RefusalLabels, Counter>,
    /// Passes that failed, by step.
    pub errors: Family<ErrorLabels, Counter>,
    /// Tasks of clusters that panicked and were started again.
    pub panics: Counter,
    /// 1 while this replica leads.
    pub leading: Gauge,
    /// Agents whose stream is connected.
    pub agents_connected: Gauge,
}

const QUICK: [f64; 10] = [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
const GAPS: [f64; 12] = [
    0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0,
];

impl Metrics {
    /// Registers the catalogue.
    pub fn new() -> Arc<Self> {
        let mut metrics = Self {
            registry: Registry::with_prefix("katazuke"),
            situation: Family::default(),
            role: Family::default(),
            epoch: Family::default(),
            instances_ready: Family::default(),
            failovers: Family::default(),
            switchovers: Family::default(),
            write_gap: Family::new_with_constructor(|| Histogram::new(GAPS)),
            write_gap_last: Family::default(),
            api_writes: Family::default(),
            pass: Histogram::new(QUICK),
            reconcile: Histogram::new(QUICK),
            order: Histogram::new(QUICK),
            orders: Family::default(),
            refusals: Family::default(),
            errors: Family::default(),
            panics: Counter::default(),
            leading: Gauge::default(),
            agents_connected: Gauge::default(),
        };
        metrics.register_clusters();
        metrics.register_operator();
        Arc::new(metrics)
    }

    fn register_clusters(&mut self) {
        let r = &mut self.registry;
        r.register(
            "cluster_situation",
            "1 for the situation that a cluster is judged to be in",
            self.situation.clone(),
        );
        r.register(
            "cluster_role",
            "1 for the role that an instance is verified to serve in",
            self.role.clone(),
        );
        r.register(
            "cluster_epoch",
            "Rises with every change of the primary",
            self.epoch.clone(),
        );
        r.register(
            "cluster_instances_ready",
            "Instances that are verified and serve",
            self.instances_ready.clone(),
        );
        r.register(
            "cluster_failovers",
            "Unplanned changes of the primary that were completed",
            self.failovers.clone(),
        );
        r.register(
            "cluster_switchovers",
            "Planned changes of the primary that were completed",
            self.switchovers.clone(),
        );
        r.register_with_unit(
            "cluster_write_gap",
            "Time without a writable primary at a change of the primary",
            Unit::Seconds,
            self.write_gap.clone(),
        );
        r.register_with_unit(
            "cluster_write_gap_last",
            "The last time without a writable primary",
            Unit::Seconds,
            self.write_gap_last.clone(),
        );
        r.register(
            "cluster_refusals",
            "Orders that an agent refused, by act and gate",
            self.refusals.clone(),
        );
    }

    fn register_operator(&mut self) {
        let r = &mut self.registry;
        r.register(
            "api_writes",
            "Writes to the API server",
            self.api_writes.clone(),
        );
        r.register_with_unit(
            "pass_duration",
            "Duration of a pass over one cluster",
            Unit::Seconds,
            self.pass.clone(),
        );
        r.register_with_unit(
            "reconcile_duration",
            "Duration of a reconciliation of owned objects",
            Unit::Seconds,
            self.reconcile.clone(),
        );
        r.register_with_unit(
            "order_duration",
            "From an order to an agent to its answer",
            Unit::Seconds,
            self.order.clone(),
        );
        r.register("orders", "Orders to agents by outcome", self.orders.clone());
        r.register("errors", "Steps that failed", self.errors.clone());
        r.register(
            "panics",
            "Tasks of clusters that panicked and were started again",
            self.panics.clone(),
        );
        r.register(
            "leading",
            "1 while this replica leads",
            self.leading.clone(),
        );
        r.register(
            "agents_connected",
            "Agents whose stream is connected",
            self.agents_connected.clone(),
        );
    }

    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(error) => format!("# cannot encode: {error}\n"),
        }
    }

    /// Says which situation holds, and forgets the former one.
    pub fn set_situation(
        &self,
        cluster: &ClusterLabels,
        former: Option<Situation>,
        now: Situation,
    ) {
        let labels = |situation: Situation| SituationLabels {
            namespace: cluster.namespace.clone(),
            cluster: cluster.cluster.clone(),
            situation: format!("{situation:?}"),
        };
        if let Some(former) = former.filter(|former| *former != now) {
            self.situation.remove(&labels(former));
        }
        self.situation.get_or_create(&labels(now)).set(1);
    }

    /// Forgets a cluster that is gone.
    pub fn forget(&self, cluster: &ClusterLabels, situation: Option<Situation>) {
        if let Some(situation) = situation {
            self.situation.remove(&SituationLabels {
                namespace: cluster.namespace.clone(),
                cluster: cluster.cluster.clone(),
                situation: format!("{situation:?}"),
            });
        }
        self.epoch.remove(cluster);
        self.instances_ready.remove(cluster);
        self.write_gap_last.remove(cluster);
        self.write_gap.remove(cluster);
        self.failovers.remove(cluster);
        self.switchovers.remove(cluster);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_situation_of_a_cluster_is_exported() {
        let metrics = Metrics::new();
        let shop = ClusterLabels {
            namespace: "db".into(),
            cluster: "shop".into(),
        };
        metrics.set_situation(&shop, None, Situation::Bootstrapping);
        metrics.set_situation(&shop, Some(Situation::Bootstrapping), Situation::Healthy);
        let text = metrics.text();
        assert!(
            text.contains(
                r#"katazuke_cluster_situation{namespace="db",cluster="shop",situation="Healthy"} 1"#
            ),
            "{text}"
        );
        assert!(!text.contains("Bootstrapping"));
        metrics.forget(&shop, Some(Situation::Healthy));
        assert!(!metrics.text().contains("shop"));
    }
}
