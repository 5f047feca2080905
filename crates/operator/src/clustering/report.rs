//! report: the status as it should read now, written only where it differs.
//! Nothing that ticks is in it, so a cluster at rest causes no writes. Never
//! writes `ha`: that is done by act alone, by compare-and-swap.

use api::{Change, InstanceStatus, MySQLCluster, MySQLClusterStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as KubeCondition, Time};
use k8s_openapi::jiff::Timestamp;
use katazuke_core::conditions::{self, Condition, InstanceReport};
use katazuke_core::observed::{Access, Role};
use katazuke_core::{Judgement, Observed, Plan};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::error::PassError;
use crate::context::Findings;
use crate::field_manager::FieldManager;
use crate::merge::merge_patch;

/// What is reported.
pub(super) struct Report<'a> {
    /// The picture.
    pub observed: &'a Observed,
    /// What was judged.
    pub judgement: &'a Judgement,
    /// What was planned.
    pub plan: &'a Plan,
    /// What the task of owned objects found.
    pub findings: &'a Findings,
    /// A planned change of primary that ended in this pass.
    pub switchover: Option<Change>,
    /// An unplanned one.
    pub failover: Option<Change>,
    /// Refusals and failures of this pass, in one sentence; they explain why
    /// nothing moves.
    pub hindrance: Option<String>,
}

/// The status that should be, given the one that is.
pub(super) fn status(
    report: &Report<'_>,
    former: &MySQLClusterStatus,
    now: &Time,
) -> MySQLClusterStatus {
    let Report {
        observed,
        judgement,
        plan,
        findings,
        switchover,
        failover,
        hindrance,
    } = report;
    let instances = conditions::instances(observed);
    let serving = instances
        .iter()
        .filter(|instance| instance.role.is_some())
        .count();
    let mut all = conditions::conditions(observed, judgement);
    unready(&mut all, &findings.conditions);
    all.extend(findings.conditions.iter().cloned());
    let observed_generation = findings.generation.or(former.observed_generation);
    MySQLClusterStatus {
        observed_generation,
        conditions: all
            .iter()
            .map(|condition| timed(condition, &former.conditions, observed_generation, now))
            .collect(),
        situation: Some(format!("{:?}", judgement.situation)),
        why: Some(why(judgement, plan, hindrance.as_deref())),
        primary: serving_primary(observed),
        ready_instances: i32::try_from(serving).ok(),
        ha: former.ha.clone(),
        instances: instances
            .iter()
            .map(|instance| line(observed, instance))
            .collect(),
        last_switchover: switchover
            .clone()
            .or_else(|| former.last_switchover.clone()),
        last_failover: failover.clone().or_else(|| former.last_failover.clone()),
        retained_volumes: former.retained_volumes.clone(),
        on_deletion: findings
            .on_deletion
            .clone()
            .or_else(|| former.on_deletion.clone()),
    }
}

/// Writes it if it differs from what `base` has; the resource as it is then.
pub(super) async fn write(
    client: &Client,
    base: &MySQLCluster,
    wanted: &MySQLClusterStatus,
) -> Result<Option<MySQLCluster>, PassError> {
    let empty = MySQLClusterStatus::default();
    let from = serde_json::to_value(base.status.as_ref().unwrap_or(&empty)).unwrap_or_default();
    let to = serde_json::to_value(wanted).unwrap_or_default();
    let Some(patch) = merge_patch(&from, &to) else {
        return Ok(None);
    };
    let patch = json!({
        "metadata": {"resourceVersion": base.resource_version()},
        "status": patch,
    });
    let api: Api<MySQLCluster> =
        Api::namespaced(client.clone(), &base.namespace().unwrap_or_default());
    let params = PatchParams {
        field_manager: Some(FieldManager::Status.name().to_owned()),
        ..PatchParams::default()
    };
    match api
        .patch_status(&base.name_any(), &params, &Patch::Merge(patch))
        .await
    {
        Ok(cluster) => Ok(Some(cluster)),
        // Changed meanwhile, or gone: the watch says so and the next pass reports.
        Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(None),
        Err(error) => Err(PassError::WriteStatus(error)),
    }
}

/// Nothing differs but sentences, which may count milliseconds.
pub(super) fn only_words_differ(former: &MySQLClusterStatus, wanted: &MySQLClusterStatus) -> bool {
    let without_words = |status: &MySQLClusterStatus| {
        let mut status = status.clone();
        status.why = None;
        for condition in &mut status.conditions {
            condition.message.clear();
        }
        for instance in &mut status.instances {
            instance.message = None;
        }
        status
    };
    without_words(former) == without_words(wanted)
}

/// `Ready` must not be true while the spec is not brought about.
fn unready(all: &mut [Condition], found: &[Condition]) {
    let Some(bad) = found
        .iter()
        .find(|c| c.kind == "Reconciled" && c.status == Some(false))
    else {
        return;
    };
    for ready in all
        .iter_mut()
        .filter(|c| c.kind == "Ready" && c.status == Some(true))
    {
        ready.status = Some(false);
        ready.reason = bad.reason;
        ready.message.clone_from(&bad.message);
    }
}

fn why(judgement: &Judgement, plan: &Plan, hindrance: Option<&str>) -> String {
    let mut why = judgement.why.clone();
    let gate = match plan {
        Plan::Wait(gate) | Plan::NeedsHuman(gate) => Some(gate.as_str()),
        Plan::Settled | Plan::Do(_) => hindrance,
    };
    if let Some(gate) = gate.filter(|gate| *gate != why) {
        if !why.is_empty() {
            why.push_str(" · ");
        }
        why.push_str(gate);
    }
    why
}

/// The name of the instance that takes writes.
fn serving_primary(observed: &Observed) -> Option<String> {
    let primary = observed.record.primary_ordinal()?;
    let server = observed.primary_server()?;
    (server.access == Access::Writes).then(|| observed.name(primary))
}

fn line(observed: &Observed, instance: &InstanceReport) -> InstanceStatus {
    let InstanceReport {
        ordinal,
        role,
        situation,
        errant_gtids,
        message,
    } = instance;
    let name = observed.name(*ordinal);
    InstanceStatus {
        role: role.map(|role| match role {
            Role::Primary => api::Role::Primary,
            Role::Replica => api::Role::Replica,
        }),
        situation: (*situation).to_owned(),
        volume: Some(format!(
            "data-{name}-{}",
            observed.record.generation(*ordinal)
        )),
        errant_gtids: errant_gtids.clone(),
        message: Some(message.clone()).filter(|message| !message.is_empty()),
        name,
    }
}

/// The time of the last transition is kept while the status stays.
fn timed(
    condition: &Condition,
    former: &[KubeCondition],
    generation: Option<i64>,
    now: &Time,
) -> KubeCondition {
    let status = match condition.status {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let since = former
        .iter()
        .find(|former| former.type_ == condition.kind && former.status == status)
        .map_or_else(|| now.clone(), |former| former.last_transition_time.clone());
    KubeCondition {
        type_: condition.kind.to_owned(),
        status: status.to_owned(),
        reason: condition.reason.to_owned(),
        message: condition.message.clone(),
        last_transition_time: since,
        observed_generation: generation,
    }
}

/// Now, to the second, as Kubernetes stores it: a status that is compared with
/// the stored one must not differ by fractions.
pub(super) fn now() -> Time {
    let seconds = Timestamp::now().as_second();
    Time(Timestamp::from_second(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(status: Option<bool>) -> Condition {
        Condition {
            kind: "Ready",
            status,
            reason: "R",
            message: "m".into(),
        }
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let early = Time(Timestamp::from_second(100).unwrap());
        let late = Time(Timestamp::from_second(200).unwrap());
        let first = timed(&condition(Some(true)), &[], Some(1), &early);
        assert_eq!(first.last_transition_time, early);
        let same = timed(
            &condition(Some(true)),
            std::slice::from_ref(&first),
            Some(1),
            &late,
        );
        assert_eq!(same, first);
        let other = timed(&condition(None), &[first], Some(1), &late);
        assert_eq!(
            (other.last_transition_time, other.status.as_str()),
            (late, "Unknown")
        );
    }

    #[test]
    fn a_sentence_alone_is_told_from_a_change() {
        let status = |why: &str, situation: &str| MySQLClusterStatus {
            why: Some(why.into()),
            situation: Some(situation.into()),
            ..MySQLClusterStatus::default()
        };
        let former = status("silent for 250 ms", "PrimaryUnclear");
        assert!(only_words_differ(
            &former,
            &status("silent for 500 ms", "PrimaryUnclear")
        ));
        assert!(!only_words_differ(
            &former,
            &status("silent for 500 ms", "FailingOver")
        ));
    }

    #[test]
    fn ready_is_false_while_the_spec_is_not_brought_about() {
        let mut all = [condition(Some(true))];
        let bad = Condition {
            kind: "Reconciled",
            status: Some(false),
            reason: "SpecRefused",
            message: "x".into(),
        };
        unready(&mut all, &[bad]);
        assert_eq!((all[0].status, all[0].reason), (Some(false), "SpecRefused"));
    }
}
