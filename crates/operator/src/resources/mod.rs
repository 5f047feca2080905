//! The objects that a cluster owns beside its Pods: Secrets, Services,
//! ConfigMap, PodDisruptionBudget, and the labels, owner and size of its
//! claims. fetch → validate → apply → report. Never touches a Pod, never
//! decides anything about data, and nothing here can hold a failover back: it
//! runs beside the passes.

mod apply;
mod compare;
mod error;
mod fetch;
mod objects;
mod report;
mod secrets;

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::MySQLCluster;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use katazuke_core::record::Ordinal;
use kube::{Resource, ResourceExt};
use manifests::{InstancePlace, ValidatedCluster, validate};
use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;

use crate::cache::Key;
use crate::context::{Caches, Context, Findings, Shared, reference};
use crate::events::{Happening, Reason};
use crate::metrics::ErrorLabels;
use crate::pki::{Pair, Renewal};
use apply::{Applied, Memory};
use error::ReconcileError;
pub(crate) use error::{namespace_ends, words};
use fetch::Fetched;

/// Between looks while nothing changes: certificates grow old.
const RESYNC: Duration = Duration::from_mins(1);

/// A spec that was valid: what Pods and claims are built from.
#[derive(Debug, PartialEq)]
pub struct Valid {
    cluster: ValidatedCluster,
    agent_image: String,
}

impl Valid {
    /// The claim of an instance.
    pub fn claim(&self, ordinal: Ordinal, generation: u32) -> PersistentVolumeClaim {
        manifests::volume_claim(&self.cluster, place(ordinal, generation))
    }

    /// The Pod of an instance.
    pub fn pod(&self, ordinal: Ordinal, generation: u32) -> Pod {
        manifests::pod(&self.cluster, place(ordinal, generation), &self.agent_image)
    }

    /// What an up-to-date Pod is marked with.
    pub fn spec_hash(&self, ordinal: Ordinal, generation: u32) -> Option<String> {
        self.pod(ordinal, generation)
            .annotations()
            .get(manifests::SPEC_HASH)
            .cloned()
    }
}

fn place(ordinal: Ordinal, generation: u32) -> InstancePlace {
    InstancePlace {
        ordinal: ordinal.0,
        generation,
    }
}

/// The cluster's authority, as far as the cache knows it.
pub fn authority(caches: &Caches, key: &Key) -> Option<Pair> {
    secrets::cached_authority(caches, key)
}

/// An object as it goes over the wire, with its type and the mark of what was applied.
pub fn wire_value<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    apply::marked(object)
}

/// Brings the owned objects about until the resource is gone.
pub async fn run(context: Arc<Context>, key: Key, uid: String, shared: Arc<Shared>) {
    let mut owned = Owned {
        context,
        key,
        uid,
        memory: Memory::default(),
        findings: Findings::default(),
    };
    loop {
        let Some(pause) = owned.look(&shared).await else {
            return;
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.resources.notified() => {}
        }
        // Changes come in crowds.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

struct Owned {
    context: Arc<Context>,
    key: Key,
    uid: String,
    memory: Memory,
    findings: Findings,
}

impl Owned {
    /// One reconciliation; the pause until the next, `None` when the resource is gone.
    async fn look(&mut self, shared: &Shared) -> Option<Duration> {
        let cluster = self.context.caches.clusters.get(&self.key, &self.key.name);
        let cluster =
            cluster.filter(|cluster| cluster.metadata.uid.as_deref() == Some(&self.uid))?;
        if cluster.metadata.deletion_timestamp.is_some() {
            return Some(RESYNC);
        }
        let context = self.context.clone();
        let Ok(_permit) = context.reconciling.acquire().await else {
            return None;
        };
        let begun = Instant::now();
        let (valid, refused) = self.validate(&cluster);
        let errors = match &valid {
            Some(valid) => self.reconcile(&cluster, valid).await,
            None => Vec::new(),
        };
        context
            .metrics
            .reconcile
            .observe(begun.elapsed().as_secs_f64());
        if errors.iter().any(ReconcileError::is_namespace_ending) {
            tracing::info!(cluster = %self.key, "the namespace is being deleted");
            return Some(RESYNC);
        }
        for error in &errors {
            tracing::warn!(cluster = %self.key, %error, "cannot bring about an owned object");
            let labels = ErrorLabels {
                step: "resources",
                reason: error.reason(),
            };
            context.metrics.errors.get_or_create(&labels).inc();
        }
        let pause = errors
            .iter()
            .map(ReconcileError::retry)
            .min()
            .unwrap_or(RESYNC);
        let findings = Findings {
            generation: cluster.metadata.generation,
            conditions: report::conditions(&refused, &errors, self.memory.conflicts()),
            on_deletion: valid.as_deref().map(|valid| self.on_deletion(valid)),
            valid,
        };
        self.tell(&cluster, &findings);
        if findings != self.findings {
            self.findings = findings.clone();
            shared.find(findings);
        }
        Some(pause)
    }

    /// The spec as it is if it is valid, else the last one that was.
    fn validate(&self, cluster: &MySQLCluster) -> (Option<Arc<Valid>>, Vec<String>) {
        match validate(cluster) {
            Ok(cluster) => {
                let agent_image = self.context.agent_image.clone();
                (
                    Some(Arc::new(Valid {
                        cluster,
                        agent_image,
                    })),
                    Vec::new(),
                )
            }
            Err(invalid) => {
                let sentences = invalid.iter().map(ToString::to_string).collect();
                (self.findings.valid.clone(), sentences)
            }
        }
    }

    /// Everything, each by itself: one failure holds nothing else back.
    async fn reconcile(&mut self, resource: &MySQLCluster, valid: &Valid) -> Vec<ReconcileError> {
        let mut errors = Vec::new();
        if !self.context.caches.are_synced() {
            return errors;
        }
        let fetched = Fetched::of(&self.context.caches, &self.key, valid.cluster.replicas);
        let mut keep = |result: Result<(), ReconcileError>| errors.extend(result.err());
        keep(self.certificates(resource, valid, &fetched).await);
        let client = self.context.client.clone();
        let application = fetched.secret(&manifests::names::app_secret(&self.key.name));
        keep(secrets::application(&client, &valid.cluster, application).await);
        keep(self.services(resource, valid, &fetched).await);
        keep(self.config(resource, valid, &fetched).await);
        keep(self.budget(resource, valid, &fetched).await);
        keep(self.volumes(resource, valid, &fetched).await);
        keep(self.tidy(&fetched).await);
        errors
    }

    async fn certificates(
        &mut self,
        resource: &MySQLCluster,
        valid: &Valid,
        fetched: &Fetched,
    ) -> Result<(), ReconcileError> {
        let client = self.context.client.clone();
        let now = OffsetDateTime::now_utc();
        let stored = fetched.secret(&manifests::names::ca_secret(&self.key.name));
        let authority = &secrets::authority(&client, &valid.cluster, stored, now).await?;
        for ordinal in fetched.ordinals.iter().copied() {
            let cached = fetched.secret(&manifests::names::tls_secret(&self.key.name, ordinal));
            let place = secrets::Place {
                ordinal,
                authority,
                now,
            };
            let made =
                secrets::leaf(&client, &mut self.memory, &valid.cluster, place, cached).await?;
            if let Some(Renewal::Due | Renewal::OtherAuthority) = &made {
                let note = format!("the certificate of {}-{ordinal} was renewed", self.key.name);
                let happening = Happening::new(Reason::CertificateRenewed, note);
                self.context.voice.tell(&reference(resource), happening);
            }
        }
        Ok(())
    }

    /// Says what is worth an event: refused specs, failures, conflicts.
    fn tell(&self, resource: &MySQLCluster, findings: &Findings) {
        for condition in &findings.conditions {
            let former = self
                .findings
                .conditions
                .iter()
                .find(|c| c.kind == condition.kind);
            if former == Some(condition) {
                continue;
            }
            if let Some(reason) = report::event(condition) {
                let happening = Happening::new(reason, condition.message.clone());
                self.context.voice.tell(&reference(resource), happening);
            }
        }
    }

    /// An event for what applying did.
    fn applied(&self, resource: &MySQLCluster, object: &str, applied: &Applied) {
        let happening = match applied {
            Applied::AsWanted | Applied::Changed => return,
            Applied::Created => {
                Happening::new(Reason::ObjectCreated, format!("{object} was created"))
            }
            Applied::Conflict(conflict) => {
                let reason = if conflict.taken {
                    Reason::FieldTaken
                } else {
                    Reason::FieldConflict
                };
                Happening::new(reason, report::sentence(conflict))
            }
        };
        self.context.voice.tell(&reference(resource), happening);
    }

    fn on_deletion(&self, valid: &Valid) -> String {
        let claims = self.context.caches.claims.of(&self.key);
        let names: Vec<&str> = claims.keys().map(String::as_str).collect();
        let volumes = if names.is_empty() {
            "no volumes yet".to_owned()
        } else {
            names.join(", ")
        };
        match valid.cluster.deletion_policy {
            api::Policy::Retain => format!("the data stays: {volumes}"),
            api::Policy::Delete => format!("the data is deleted: {volumes}"),
        }
    }
}
