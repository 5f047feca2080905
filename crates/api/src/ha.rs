//! The durable record of a cluster's clustering, `status.ha` (docs/clustering,
//! section 2). Plain strings and numbers: what they mean, and every rule about
//! them, is core's. Never written except by compare-and-swap.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::Acknowledge;

/// The durable record. Every change raises version; a change of the primary also raises epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HaRecord {
    /// Rises with every change of this record. Orders to instances carry it, and an instance refuses a lower one than it has seen.
    pub version: u64,
    /// Rises with every change of the primary.
    pub epoch: u64,
    /// The primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<PrimaryRecord>,
    /// How many replicas must acknowledge a transaction before the client gets its OK.
    pub k: u32,
    /// What an acknowledgement is worth, as the servers enforce it at least.
    pub acknowledge: Acknowledge,
    /// The only replicas that may acknowledge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ackers: Vec<Acker>,
    /// Transactions that every future primary must hold.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub watermark: String,
    /// A change that was begun and not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition: Option<TransitionRecord>,
    /// Former primaries that may hold more than was kept of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deposed: Vec<DeposedRecord>,
    /// Which instance makes the first data. Gone when it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<BootstrapRecord>,
    /// The generation of each instance's volume; without an entry it is 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeRecord>,
    /// The last switchover request that was dealt with, done or refused, so that applying it again repeats nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled_request: Option<String>,
}

/// The primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrimaryRecord {
    /// The number in its name.
    pub ordinal: u32,
    /// Its server_uuid.
    pub uuid: String,
    /// Boot of its kernel and of its Pod when it became primary. Information only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub incarnation: String,
}

/// A replica that may acknowledge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Acker {
    /// The number in its name.
    pub ordinal: u32,
    /// Its server_uuid.
    pub uuid: String,
    /// Boot of its kernel and of its Pod when it was admitted. When it changed, what the replica acknowledged before may be gone.
    pub incarnation: String,
}

/// A change that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransitionRecord {
    /// Names this one change; an answer under another id does not count.
    pub id: String,
    /// What kind of change.
    pub kind: TransitionKind,
    /// How far it has come.
    pub step: TransitionStep,
    /// The version of this record that began this step; facts count from there on.
    pub since: u64,
    /// The ordinal of the primary that it leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// The ordinal of the primary that it goes to, once chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// The ordinals that lose the right to acknowledge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out: Vec<u32>,
}

/// What kind of change is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TransitionKind {
    /// The primary failed and another one takes over.
    Failover,
    /// The primary hands over while it lives.
    Switchover,
    /// The set of ackers or their number changes.
    Reconfigure,
}

/// How far a change has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TransitionStep {
    /// Ackers are stopped so that the old primary can acknowledge nothing more.
    Fencing,
    /// The old primary is made read-only.
    Demoting,
    /// The new primary is opened.
    Promoting,
    /// Ackers that leave are fenced.
    Removing,
}

/// A former primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeposedRecord {
    /// Its server_uuid.
    pub uuid: String,
    /// The epoch in which it was the primary.
    pub epoch: u64,
    /// The transactions that its successor had when it took over.
    pub kept: String,
    /// Whether anything beyond that is proved to have been acknowledged to nobody.
    pub strict: bool,
    /// Why it was deposed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Which instance makes the first data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapRecord {
    /// The number in its name.
    pub ordinal: u32,
    /// The uid of its volume claim.
    pub volume: String,
}

/// The generation of an instance's volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRecord {
    /// The number in the instance's name.
    pub ordinal: u32,
    /// Rises each time the instance is made anew on a fresh volume.
    pub generation: u32,
}
