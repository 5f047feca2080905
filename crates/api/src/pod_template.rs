//! What a user may add to the Pods. Never a field that could weaken the
//! restricted Pod security profile or replace what the agent needs.

use k8s_openapi::api::core::v1::{
    Affinity, LocalObjectReference, Toleration, TopologySpreadConstraint,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What to add to the Pods. A change rolls one instance at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplate {
    /// Labels for the Pods. Those of Katazuke and app.kubernetes.io are taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations for the Pods. Those of Katazuke are taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Where the Pods may or should run. Without it, the instances of one cluster avoid sharing a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Taints of nodes that the Pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How the Pods are spread, for example over zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Secrets with which the image is pulled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// The priority class of the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// The runtime class of the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    /// The user id that mysqld runs as; not 0.
    #[serde(default = "mysql_id")]
    pub run_as_user: i64,
    /// The group id that mysqld runs as and that owns the volume; not 0.
    #[serde(default = "mysql_id")]
    pub fs_group: i64,
}

/// Of user and group mysql in the usual images.
const fn mysql_id() -> i64 {
    999
}

impl Default for PodTemplate {
    fn default() -> Self {
        Self {
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            node_selector: BTreeMap::new(),
            affinity: None,
            tolerations: Vec::new(),
            topology_spread_constraints: Vec::new(),
            image_pull_secrets: Vec::new(),
            priority_class_name: None,
            runtime_class_name: None,
            run_as_user: mysql_id(),
            fs_group: mysql_id(),
        }
    }
}
