//! What a user asks for. Every doc comment is what `kubectl explain` prints.
//! Never holds a field that Katazuke does not act on: a promise that is not
//! built yet is refused by a rule.

#![allow(
    clippy::duplicated_attributes,
    reason = "two printer columns may have the same type or priority"
)]

use crate::pod_template::PodTemplate;
use crate::status::MySQLClusterStatus;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the cluster shall be.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "mysql.katazuke.dev",
    version = "v1alpha1",
    kind = "MySQLCluster",
    plural = "mysqlclusters",
    singular = "mysqlcluster",
    shortname = "myc",
    category = "all",
    namespaced,
    status = "MySQLClusterStatus",
    derive = "PartialEq",
    doc = "A MySQL primary and its replicas, with loss-less semi-synchronous replication and automatic failover.",
    printcolumn(
        name = "Situation",
        type_ = "string",
        json_path = ".status.situation",
        description = "The situation that the cluster is judged to be in"
    ),
    printcolumn(
        name = "Primary",
        type_ = "string",
        json_path = ".status.primary",
        description = "The instance that takes writes"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the cluster is what the spec asks for"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.why",
        description = "Why it is in this situation, and what holds the next step back",
        priority = 1
    ),
    printcolumn(
        name = "Epoch",
        type_ = "integer",
        json_path = ".status.ha.epoch",
        description = "Rises with every change of the primary",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MySQLClusterSpec {
    /// How many instances to run, the primary included: 1 to 9. With 1 there is no copy and no failover; 3 is usual; an even count works but tolerates no more failures than the odd count below it. It can be raised; not built yet: lowering it.
    #[serde(default = "replicas")]
    pub replicas: i32,
    /// The image of mysqld, 8.4 or 9.7. Any image with mysqld and its clone and semi-sync plugins will do, such as mysql:9.7. A change rolls one instance at a time, the primary last.
    pub image: String,
    /// The volume of each instance.
    pub storage: Storage,
    /// CPU and memory of each mysqld container. Without a memory limit the instance competes for the node's memory.
    #[serde(default)]
    pub resources: Resources,
    /// Settings of mysqld, as in the [mysqld] section of my.cnf, such as max_connections: "500". Settings on which durability or failover rests are refused in every spelling.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// What to add to the Pods.
    #[serde(default)]
    pub pod_template: PodTemplate,
    /// The Service in front of the primary, <name>-primary.
    #[serde(default)]
    pub primary_service: ServiceTemplate,
    /// The Service in front of the replicas, <name>-replica.
    #[serde(default)]
    pub replica_service: ServiceTemplate,
    /// What an OK to a client is worth.
    #[serde(default)]
    pub durability: Durability,
    /// What happens to data when something is deleted.
    #[serde(default)]
    pub deletion: Deletion,
    /// How an instance that cannot go on with its data is made anew.
    #[serde(default)]
    pub rebuild: Rebuild,
    /// What a primary that has just started does with reads while not everything it holds is on enough replicas. Not built yet: Available is to let them through after 30 seconds, with a condition that says so; today reads wait for as long as it takes.
    #[serde(default)]
    pub reads: Reads,
    /// When the primary is taken for failed.
    #[serde(default)]
    pub failover: Failover,
    /// Stop every instance cleanly and keep the data. Set it to false to start them again.
    #[serde(default)]
    pub offline: bool,
    /// Do nothing, but keep observing and reporting. No failover happens while it is set.
    #[serde(default)]
    pub paused: bool,
}

const fn replicas() -> i32 {
    3
}

/// The volume of each instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Size of one volume, such as 20Gi. It can grow but not shrink; growing needs a storage class that expands volumes.
    pub size: Quantity,
    /// The storage class; without it, the default class of the Kubernetes cluster at the time a volume is made. It cannot be changed. The volumes must honour fsync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

/// CPU and memory of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// What is set aside for the container on its node, such as cpu: "1", memory: 2Gi.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, Quantity>,
    /// What the container may use at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Quantity>,
}

/// What to add to a Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceTemplate {
    /// Where the Service can be reached from: ClusterIP from inside the Kubernetes cluster, NodePort on every node, LoadBalancer from outside.
    #[serde(rename = "type", default)]
    pub service_type: ServiceType,
    /// Annotations for the Service, such as those that a load balancer reads. Annotations of others are left alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels for the Service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Where a Service can be reached from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceType {
    /// From inside the Kubernetes cluster.
    #[default]
    ClusterIP,
    /// On a port of every node.
    NodePort,
    /// From outside, through the cloud's load balancer.
    LoadBalancer,
}

/// What an OK to a client is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Durability {
    /// What a replica must have done with a transaction before the client gets its OK. Received: it has it, so it survives any process crash and the loss of any one node. Fsynced: it is on the replica's disk, so it also survives a power loss of all nodes with the loss of the primary's disk; writes get several times slower. Not built yet: changing it later.
    #[serde(default)]
    pub acknowledge: Acknowledge,
    /// What to do when too few replicas can acknowledge. Block: commits wait until enough are back. Continue: commits go on unprotected (not built yet).
    #[serde(default)]
    pub when_short: WhenShort,
}

/// What a replica must have done before it acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Acknowledge {
    /// Received the transaction.
    #[default]
    Received,
    /// Received it and flushed it to disk.
    Fsynced,
}

/// What to do when too few replicas can acknowledge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenShort {
    /// Commits wait.
    #[default]
    Block,
    /// Commits go on unprotected.
    Continue,
}

/// What happens to data when something is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// The volumes when this resource is deleted. Retain: they stay. Delete: they are deleted with it. Not built yet: the adoption of retained volumes by a cluster of the same name; to use their data, load it into a cluster of another name.
    #[serde(default)]
    pub policy: Policy,
    /// The volume of an instance that is removed because replicas was lowered. Not built yet: lowering replicas, and with it Delete.
    #[serde(default)]
    pub on_scale_down: OnScaleDown,
}

/// What happens to the volumes of a deleted cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Policy {
    /// They stay.
    #[default]
    Retain,
    /// They are deleted with the resource.
    Delete,
}

/// What happens to the volume of a removed instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnScaleDown {
    /// It stays.
    #[default]
    Retain,
    /// It is deleted. Not built yet.
    Delete,
}

/// How an instance is made anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rebuild {
    /// Auto: an instance whose data is proved to hold nothing that an OK was given for is made anew from another one. Manual: it waits for a human.
    #[serde(default)]
    pub policy: RebuildPolicy,
    /// How long the volume that was replaced is kept: a number and s, m, h or d, such as 24h. Not built yet: it is not applied, and old volumes are kept for ever.
    #[serde(default = "keep_old_volume_for")]
    pub keep_old_volume_for: String,
    /// How long transactions that were undone, and archived before, are kept: a number and s, m, h or d, such as 30d. Not built yet: it is not applied, and archives are kept for ever.
    #[serde(default = "keep_archive_for")]
    pub keep_archive_for: String,
}

fn keep_old_volume_for() -> String {
    "24h".to_owned()
}

fn keep_archive_for() -> String {
    "30d".to_owned()
}

impl Default for Rebuild {
    fn default() -> Self {
        Self {
            policy: RebuildPolicy::Auto,
            keep_old_volume_for: keep_old_volume_for(),
            keep_archive_for: keep_archive_for(),
        }
    }
}

/// Who decides that an instance is made anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RebuildPolicy {
    /// Katazuke, when nothing acknowledged can be lost by it.
    #[default]
    Auto,
    /// A human.
    Manual,
}

/// What a primary that has just started does with reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Reads {
    /// Lets them through after 30 seconds. Not built yet.
    #[default]
    Available,
    /// Holds them back until everything is on enough replicas.
    Strict,
}

/// When the primary is taken for failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failover {
    /// How many seconds its replicas must have heard nothing from the primary before it is suspected: 1 to 300. A primary whose mysqld is seen to exit is not waited for.
    #[serde(default = "silence_seconds")]
    pub silence_seconds: i32,
}

const fn silence_seconds() -> i32 {
    5
}

impl Default for Failover {
    fn default() -> Self {
        Self {
            silence_seconds: silence_seconds(),
        }
    }
}
