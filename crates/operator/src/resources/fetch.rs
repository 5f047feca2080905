//! What is there of one cluster's owned objects, from the caches at one moment.
//! Never asks the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::cache::Key;
use crate::clustering::ordinal;
use crate::context::Caches;

/// The owned objects by name.
pub(super) struct Fetched {
    /// Secrets.
    pub secrets: BTreeMap<String, Arc<Secret>>,
    /// Services.
    pub services: BTreeMap<String, Arc<Service>>,
    /// ConfigMaps.
    pub config_maps: BTreeMap<String, Arc<ConfigMap>>,
    /// PodDisruptionBudgets.
    pub budgets: BTreeMap<String, Arc<PodDisruptionBudget>>,
    /// Claims.
    pub claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    /// Instances that are wanted or have a Pod.
    pub ordinals: BTreeSet<u32>,
}

impl Fetched {
    /// Looks.
    pub(super) fn of(caches: &Caches, key: &Key, replicas: u32) -> Self {
        let mut ordinals: BTreeSet<u32> = (0..replicas).collect();
        let pods = caches.pods.of(key);
        ordinals.extend(
            pods.keys()
                .filter_map(|pod| Some(ordinal(&key.name, pod)?.0)),
        );
        Self {
            secrets: caches.secrets.of(key),
            services: caches.services.of(key),
            config_maps: caches.config_maps.of(key),
            budgets: caches.budgets.of(key),
            claims: caches.claims.of(key),
            ordinals,
        }
    }

    /// A Secret.
    pub(super) fn secret(&self, name: &str) -> Option<Arc<Secret>> {
        self.secrets.get(name).cloned()
    }
}
