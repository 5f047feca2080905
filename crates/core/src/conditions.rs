//! What is said about a cluster: conditions with reasons from a closed list,
//! and a line per instance. Derived from the same picture as the judgement, so
//! that they cannot disagree with it.

use crate::observed::{Access, Observed, Role};
use crate::plan::verified_role;
use crate::primary::{PrimaryView, provable, view};
use crate::record::Ordinal;
use crate::semisync::{attached, k_wanted};
use crate::situation::{Judgement, Situation};
use crate::standing::{Standing, standing};
use crate::steady::shortcoming;

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
pub fn conditions(observed: &Observed, judgement: &Judgement) -> Vec<Condition> {
    vec![
        ready(observed, judgement),
        available(observed, judgement),
        healthy(judgement),
        durable(observed),
        failover_possible(observed),
    ]
}

fn condition(
    kind: &'static str,
    status: bool,
    reason: &'static str,
    message: impl Into<String>,
) -> Condition {
    Condition {
        kind,
        status: Some(status),
        reason,
        message: message.into(),
    }
}

fn serves_writes(observed: &Observed) -> bool {
    observed
        .primary_server()
        .is_some_and(|server| server.access == Access::Writes)
        && attached(observed).len() >= observed.record.k as usize
}

/// kstatus: the spec is in place. Stays True when an instance is lost later;
/// that is `Healthy`'s business.
fn ready(observed: &Observed, judgement: &Judgement) -> Condition {
    let recorded = observed.record.ackers.len() + usize::from(observed.record.primary.is_some());
    let wanted = observed.spec.replicas as usize;
    let outdated = observed
        .instances
        .values()
        .any(|instance| instance.pod.present().is_some_and(|pod| pod.outdated));
    let k = k_wanted(observed.spec.replicas);
    if !serves_writes(observed) {
        return condition("Ready", false, "NotServing", judgement.why.clone());
    }
    if recorded < wanted || observed.record.k != k {
        let why = format!(
            "{recorded} of {wanted} instances are in the cluster; {}",
            judgement.why
        );
        return condition("Ready", false, "InstancesJoining", why);
    }
    match outdated {
        true => condition("Ready", false, "RollingOut", judgement.why.clone()),
        false => condition(
            "Ready",
            true,
            "Serving",
            format!("{wanted} of {wanted} instances are in the cluster"),
        ),
    }
}

fn available(observed: &Observed, judgement: &Judgement) -> Condition {
    match serves_writes(observed) {
        true => condition(
            "Available",
            true,
            "PrimaryServes",
            "the primary takes writes and they are acknowledged",
        ),
        false => condition(
            "Available",
            false,
            reason(judgement.situation),
            judgement.why.clone(),
        ),
    }
}

fn healthy(judgement: &Judgement) -> Condition {
    let healthy = judgement.situation == Situation::Healthy;
    condition(
        "Healthy",
        healthy,
        reason(judgement.situation),
        judgement.why.clone(),
    )
}

fn durable(observed: &Observed) -> Condition {
    let (k, wanted) = (observed.record.k, k_wanted(observed.spec.replicas));
    if let Some(drift) = observed
        .primary_server()
        .and_then(|server| server.drift.first())
    {
        return condition(
            "Durable",
            false,
            "DurabilityDegraded",
            format!("a forced setting was changed: {drift}"),
        );
    }
    match (k >= wanted, wanted) {
        (false, _) => condition(
            "Durable",
            false,
            "TooFewAcknowledgements",
            format!(
                "an acknowledged write is on {} servers, {} are wanted",
                k + 1,
                wanted + 1
            ),
        ),
        (true, 0) => condition(
            "Durable",
            true,
            "SingleInstance",
            "spec.replicas is 1: an acknowledged write is on one volume alone",
        ),
        (true, _) => condition(
            "Durable",
            true,
            "Acknowledged",
            format!("an acknowledged write is on at least {} servers", k + 1),
        ),
    }
}

fn failover_possible(observed: &Observed) -> Condition {
    if observed.spec.replicas == 1 {
        return condition(
            "FailoverPossible",
            false,
            "SingleInstance",
            "spec.replicas is 1: there is nobody to fail over to",
        );
    }
    match provable(observed) {
        Ok(()) => condition(
            "FailoverPossible",
            true,
            "Provable",
            "enough ackers answer to prove what was acknowledged",
        ),
        Err(why) => condition("FailoverPossible", false, "NotProvable", why),
    }
}

/// The closed list of reasons is the list of situations.
pub fn reason(situation: Situation) -> &'static str {
    match situation {
        Situation::Deleting => "Deleting",
        Situation::StatusBehind => "StatusBehind",
        Situation::Paused => "Paused",
        Situation::Offline => "Offline",
        Situation::Bootstrapping => "Bootstrapping",
        Situation::FailingOver => "FailingOver",
        Situation::SwitchingOver => "SwitchingOver",
        Situation::Promoting => "Promoting",
        Situation::Diverged => "Diverged",
        Situation::AckedDataMissing => "AckedDataMissing",
        Situation::ApplierBroken => "ApplierBroken",
        Situation::Blocked => "Blocked",
        Situation::PrimaryUnclear => "PrimaryUnclear",
        Situation::Resuming => "Resuming",
        Situation::Opening => "Opening",
        Situation::WritesWaiting => "WritesWaiting",
        Situation::Degraded => "Degraded",
        Situation::Healthy => "Healthy",
    }
}

/// A line per instance, in order.
pub fn instances(observed: &Observed) -> Vec<InstanceReport> {
    observed
        .instances
        .keys()
        .map(|ordinal| report(observed, *ordinal))
        .collect()
}

fn report(observed: &Observed, ordinal: Ordinal) -> InstanceReport {
    let role = verified_role(observed, ordinal);
    if let Some(primary) = observed
        .record
        .primary
        .as_ref()
        .filter(|primary| primary.ordinal == ordinal)
    {
        let (situation, message) = primary_line(&view(observed, primary), role);
        return InstanceReport {
            ordinal,
            role,
            situation,
            errant_gtids: None,
            message,
        };
    }
    let standing = standing(observed, ordinal);
    let errant_gtids = match &standing {
        Standing::ErrantInRelayLogs(errant)
        | Standing::ErrantUnproven { errant, .. }
        | Standing::ToDiscard { errant, .. } => Some(errant.to_string()),
        Standing::NoPod
        | Standing::PodTrouble(_)
        | Standing::Unreachable(_)
        | Standing::ApplierStopped(_)
        | Standing::Busy(_)
        | Standing::VolumeUnreadable(_)
        | Standing::ToClone
        | Standing::ToBoot
        | Standing::StartFails(_)
        | Standing::ToKill
        | Standing::ToFollow
        | Standing::BeyondBinlogs(_)
        | Standing::CatchingUp
        | Standing::Admissible
        | Standing::Reincarnated
        | Standing::ToAdmit
        | Standing::ToServe
        | Standing::Acker => None,
    };
    let message = shortcoming(&standing).unwrap_or_default();
    InstanceReport {
        ordinal,
        role,
        situation: word(&standing),
        errant_gtids,
        message,
    }
}

fn primary_line(view: &PrimaryView, role: Option<Role>) -> (&'static str, String) {
    match view {
        PrimaryView::Answers if role == Some(Role::Primary) => ("Primary", String::new()),
        PrimaryView::Answers => (
            "PrimaryClosed",
            "it runs and takes no traffic yet".to_owned(),
        ),
        PrimaryView::Starting => ("Starting", "mysqld is starting".to_owned()),
        PrimaryView::Down { .. } => (
            "Gated",
            "mysqld has ended and waits for an order".to_owned(),
        ),
        PrimaryView::Stuck { .. } => ("Stuck", "mysqld does not answer its agent".to_owned()),
        PrimaryView::Silent { why, .. } => ("Unreachable", why.clone()),
        PrimaryView::DataGone => (
            "DataGone",
            "its volume does not hold the recorded server's data".to_owned(),
        ),
    }
}

fn word(standing: &Standing) -> &'static str {
    match standing {
        Standing::NoPod => "NoPod",
        Standing::PodTrouble(_) => "PodTrouble",
        Standing::Unreachable(_) => "Unreachable",
        Standing::ApplierStopped(_) => "ApplierStopped",
        Standing::Busy(_) => "Busy",
        Standing::VolumeUnreadable(_) => "VolumeUnreadable",
        Standing::ToClone => "Empty",
        Standing::ToBoot => "Gated",
        Standing::StartFails(_) => "StartFails",
        Standing::ToKill => "OldPrimaryAlive",
        Standing::ToFollow => "Detached",
        Standing::BeyondBinlogs(_) => "BeyondBinlogs",
        Standing::ErrantInRelayLogs(_) | Standing::ToDiscard { .. } => "Errant",
        Standing::ErrantUnproven { .. } => "ErrantUnproven",
        Standing::CatchingUp => "CatchingUp",
        Standing::Admissible => "Replica",
        Standing::Reincarnated => "Reincarnated",
        Standing::ToAdmit | Standing::ToServe => "Joining",
        Standing::Acker => "Acker",
    }
}
