//! Ownership: what Kubernetes deletes with the cluster. Never on a volume
//! claim that the policy retains.

use crate::labels::Labels;
use crate::validate::ValidatedCluster;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

pub(crate) fn reference(cluster: &ValidatedCluster) -> OwnerReference {
    OwnerReference {
        api_version: format!("{}/{}", api::GROUP, api::VERSION),
        kind: api::KIND.to_owned(),
        name: cluster.name.clone(),
        uid: cluster.uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

/// Metadata of an object that goes when the cluster goes.
pub(crate) fn owned(cluster: &ValidatedCluster, name: String, labels: Labels) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(cluster.namespace.clone()),
        labels: Some(labels),
        owner_references: Some(vec![reference(cluster)]),
        ..ObjectMeta::default()
    }
}
