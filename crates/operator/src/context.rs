//! What every part of the operator is handed: clients, caches, voice, metrics.
//! Holds nothing about any one cluster.

use std::sync::{Arc, Mutex, PoisonError};

use api::MySQLCluster;
use k8s_openapi::api::core::v1::{
    ConfigMap, Node, ObjectReference, PersistentVolumeClaim, Pod, Secret, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use katazuke_core::conditions::Condition;
use kube::{Client, Resource};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Notify, Semaphore};

use crate::agents::Wake;
use crate::cache::{Cache, Key, by_label, by_name};
use crate::events::Voice;
use crate::gate::CurrentTerm;
use crate::metrics::Metrics;
use crate::resources::Valid;

/// Reconciliations of owned objects that may run at once; judging is never limited.
const RECONCILING_MAX: usize = 16;

/// The watches' caches.
pub struct Caches {
    /// The resources.
    pub clusters: Arc<Cache<MySQLCluster>>,
    /// Their Pods.
    pub pods: Arc<Cache<Pod>>,
    /// Their claims.
    pub claims: Arc<Cache<PersistentVolumeClaim>>,
    /// Their Services.
    pub services: Arc<Cache<Service>>,
    /// Their ConfigMaps.
    pub config_maps: Arc<Cache<ConfigMap>>,
    /// Their Secrets.
    pub secrets: Arc<Cache<Secret>>,
    /// Their PodDisruptionBudgets.
    pub budgets: Arc<Cache<PodDisruptionBudget>>,
    /// All nodes: taints only.
    pub nodes: Arc<Cache<Node>>,
}

impl Caches {
    /// All empty.
    pub fn new() -> Self {
        Self {
            clusters: Cache::new(by_name),
            pods: Cache::new(by_label),
            claims: Cache::new(by_label),
            services: Cache::new(by_label),
            config_maps: Cache::new(by_label),
            secrets: Cache::new(by_label),
            budgets: Cache::new(by_label),
            nodes: Cache::new(by_name),
        }
    }

    /// Everything but the nodes, whose absence only means "not out of service".
    pub fn are_synced(&self) -> bool {
        let Self {
            clusters,
            pods,
            claims,
            services,
            config_maps,
            secrets,
            budgets,
            nodes: _,
        } = self;
        clusters.is_synced()
            && pods.is_synced()
            && claims.is_synced()
            && services.is_synced()
            && config_maps.is_synced()
            && secrets.is_synced()
            && budgets.is_synced()
    }

    /// A node by its name.
    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.get(
            &Key {
                namespace: String::new(),
                name: name.to_owned(),
            },
            name,
        )
    }
}

impl Default for Caches {
    fn default() -> Self {
        Self::new()
    }
}

/// Handed to every task.
pub struct Context {
    /// Behind the gate.
    pub client: Client,
    /// What the watches have seen.
    pub caches: Caches,
    /// Catalogue of metrics.
    pub metrics: Arc<Metrics>,
    /// Whether we lead.
    pub term: CurrentTerm,
    /// Tells events.
    pub voice: Voice,
    /// Limits reconciliations of owned objects.
    pub reconciling: Semaphore,
    /// The image that the agent is copied from: our own.
    pub agent_image: String,
}

/// What [`Context::new`] is given.
pub struct Parts {
    /// Behind the gate.
    pub client: Client,
    /// Catalogue of metrics.
    pub metrics: Arc<Metrics>,
    /// Whether we lead.
    pub term: CurrentTerm,
    /// Tells events.
    pub voice: Voice,
    /// The image that the agent is copied from.
    pub agent_image: String,
}

impl Context {
    /// Puts it together.
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts {
            client,
            metrics,
            term,
            voice,
            agent_image,
        } = parts;
        let (caches, reconciling) = (Caches::new(), Semaphore::new(RECONCILING_MAX));
        Arc::new(Self {
            client,
            caches,
            metrics,
            term,
            voice,
            reconciling,
            agent_image,
        })
    }
}

/// What the two tasks of one cluster share: one brings about the owned objects,
/// the other judges and acts. The second never waits for the first.
pub struct Shared {
    /// Wakes the judging task.
    pub wake: Wake,
    /// Wakes the task of owned objects.
    pub resources: Notify,
    findings: Mutex<Findings>,
}

/// What the task of owned objects found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// The generation of the spec that was dealt with.
    pub generation: Option<i64>,
    /// The last spec that was valid.
    pub valid: Option<Arc<Valid>>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// What would happen to the data if the resource were deleted now.
    pub on_deletion: Option<String>,
}

impl Shared {
    /// With the gauge of connected agents.
    pub fn new(connected: Gauge) -> Self {
        Self {
            wake: Wake::new(connected),
            resources: Notify::new(),
            findings: Mutex::default(),
        }
    }

    /// A copy of the findings.
    pub fn findings(&self) -> Findings {
        self.findings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// New findings; the judging task reports them.
    pub fn find(&self, findings: Findings) {
        *self.findings.lock().unwrap_or_else(PoisonError::into_inner) = findings;
        self.wake.now();
    }
}

/// An object as events name it.
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    object.object_ref(&())
}
