//! What is said about a cluster: conditions with reasons from a closed list,
//! and a line per instance. Derived from the same picture as the judgement, so
//! that they cannot disagree with it.

use crate::observed::{Observed, Role};
use crate::record::Ordinal;
use crate::situation::Judgement;

/// A Kubernetes condition, without times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `Ready`, `Available`, `Healthy`, `Durable`, `FailoverPossible`, …
    pub kind: &'static str,
    /// `None` is Unknown.
    pub status: Option<bool>,
    /// One word of a closed list.
    pub reason: &'static str,
    /// A sentence with names and values.
    pub message: String,
}

/// One instance, for `status.instances`. Nothing that ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceReport {
    /// Which.
    pub ordinal: Ordinal,
    /// Its verified role.
    pub role: Option<Role>,
    /// `Primary`, `Acker`, `Replica`, `Cloning`, `Gated`, `Unreachable`, `ErrantUnproven`, …
    pub situation: &'static str,
    /// Errant GTIDs, if any are known.
    pub errant_gtids: Option<String>,
    /// What it waits for, or what is wrong.
    pub message: String,
}

/// All conditions, always the same kinds in the same order.
pub fn conditions(_observed: &Observed, _judgement: &Judgement) -> Vec<Condition> {
    Vec::new()
}

/// A line per instance, in order.
pub fn instances(_observed: &Observed) -> Vec<InstanceReport> {
    Vec::new()
}
