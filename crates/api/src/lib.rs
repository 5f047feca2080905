//! The custom resources of Katazuke: types, defaults, and the rules by which an
//! API server refuses a wrong one with a sentence that says what to write.
//!
//! Deliberately lenient where the rules are strict: a resource that an older
//! version let in must still be readable, or nobody would be told about any
//! other. What is built on is checked again by `manifests::validate`.
//! Never holds a client, and never depends on how clusters are run.

mod crd;
mod forced;
mod ha;
mod pod_template;
mod rules;
mod spec;
mod status;

pub use crd::crd;
pub use forced::{FORCED_SETTINGS, Forced, forced};
pub use ha::{
    Acker, BootstrapRecord, DeposedRecord, HaRecord, PrimaryRecord, TransitionKind,
    TransitionRecord, TransitionStep, VolumeRecord,
};
pub use pod_template::PodTemplate;
pub use spec::{
    Acknowledge, Deletion, Durability, Failover, MySQLCluster, MySQLClusterSpec, OnScaleDown,
    Policy, Reads, Rebuild, RebuildPolicy, Resources, ServiceTemplate, ServiceType, Storage,
    WhenShort,
};
pub use status::{Change, InstanceStatus, MySQLClusterStatus, RetainedVolume, Role};

/// The API group.
pub const GROUP: &str = "mysql.katazuke.dev";
/// The version that is stored and served.
pub const VERSION: &str = "v1alpha1";
/// The kind of the cluster resource.
pub const KIND: &str = "MySQLCluster";
