//! How many instances may be evicted at once. None for a single instance: it
//! would block every drain for ever. Counted from below: for Pods without a
//! workload that can be scaled the disruption controller cannot evaluate
//! maxUnavailable and allows nothing (Kubernetes documentation, "Specifying a
//! Disruption Budget", arbitrary controllers).

use crate::labels::{self, Component};
use crate::validate::ValidatedCluster;
use crate::{names, owner};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The budget, if there is more than one instance.
pub fn disruption_budget(cluster: &ValidatedCluster) -> Option<PodDisruptionBudget> {
    if cluster.replicas < 2 {
        return None;
    }
    let all_but_one = i32::try_from(cluster.replicas - 1).unwrap_or(i32::MAX);
    let labels = labels::own(cluster, Component::Disruption);
    Some(PodDisruptionBudget {
        metadata: owner::owned(cluster, names::disruption_budget(&cluster.name), labels),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(all_but_one)),
            selector: Some(labels::selector(labels::instances(cluster))),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    })
}
