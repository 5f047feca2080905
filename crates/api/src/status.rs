//! What Katazuke reports. Never holds a fact that changes with every write:
//! those live in metrics, so that a cluster at rest causes no writes.

use crate::ha::HaRecord;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the cluster is, as last observed and judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MySQLClusterStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Available, Healthy, Durable, FailoverPossible and others, each with a reason and a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The situation that the cluster is judged to be in, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub situation: Option<String>,
    /// Why it is in this situation and, when nothing is done, what holds the next step back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The name of the instance that takes writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// How many instances are verified and serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_instances: Option<i32>,
    /// The durable record of who is primary, who may acknowledge and what must not be lost. Never edit it by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ha: Option<HaRecord>,
    /// Each instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub instances: Vec<InstanceStatus>,
    /// The last planned change of the primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_switchover: Option<Change>,
    /// The last unplanned change of the primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failover: Option<Change>,
    /// Volumes that are kept though no instance uses them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub retained_volumes: Vec<RetainedVolume>,
    /// What would happen to the data if this resource were deleted now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_deletion: Option<String>,
}

/// One instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// Its name, <cluster>-<ordinal>, which is also its Pod's.
    pub name: String,
    /// Whether it is the primary or a replica; absent while neither is verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Its situation in one word.
    pub situation: String,
    /// The name of its volume claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Transactions that it has and the primary has not. They are never discarded unless it is proved that no client got an OK for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errant_gtids: Option<String>,
    /// What is the matter and what to do about it, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What an instance does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Role {
    /// Takes writes.
    Primary,
    /// Follows the primary.
    Replica,
}

/// A change of the primary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// When the new primary was opened.
    pub at: Time,
    /// The instance that was the primary.
    pub from: String,
    /// The instance that became it.
    pub to: String,
    /// Why the primary changed.
    pub reason: String,
    /// How long no instance took writes, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_gap_milliseconds: Option<u64>,
}

/// A volume that is kept though no instance uses it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetainedVolume {
    /// The name of the volume claim.
    pub name: String,
    /// Why it is kept.
    pub reason: String,
    /// Since when no instance uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// When it will be deleted; absent if only a human deletes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_after: Option<Time>,
}
