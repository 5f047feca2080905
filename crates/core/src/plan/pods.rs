//! Pods: made where they are missing, restarted one at a time where they are
//! outdated. A Pod is never made before its predecessor is proved to be gone;
//! nothing is deleted that was not seen.

use super::Steps;
use crate::action::{Action, Directive};
use crate::observed::{Mysqld, Observed, Pod, Seen};
use crate::record::Ordinal;
use crate::standing::{Standing, standing};

/// Instances without a Pod get one, unless the agent of a Pod that was deleted
/// by force still answers: its predecessor's containers have not ended.
pub(super) fn missing(observed: &Observed) -> Vec<Action> {
    (0..observed.spec.replicas)
        .map(Ordinal)
        .filter(|ordinal| {
            observed.instances.get(ordinal).is_some_and(|instance| {
                instance.pod.is_absent() && instance.agent.present().is_none()
            })
        })
        .map(|ordinal| Action::CreateInstance {
            ordinal,
            generation: observed.record.generation(ordinal),
        })
        .collect()
}

/// `spec.offline`: every mysqld is stopped, every Pod goes; volumes stay.
pub(super) fn offline(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    for (ordinal, instance) in &observed.instances {
        let Seen::Present(pod) = &instance.pod else {
            continue;
        };
        let running = observed
            .agent(*ordinal)
            .is_some_and(|agent| !matches!(agent.mysqld, Mysqld::Gated { .. }));
        if running {
            steps.order(observed, *ordinal, Directive::Stop);
        } else if !pod.deleting {
            steps.push(delete(*ordinal, pod, "spec.offline is true"));
        }
    }
    steps
}

fn delete(ordinal: Ordinal, pod: &Pod, why: &str) -> Action {
    Action::DeletePod {
        ordinal,
        uid: pod.uid.clone(),
        why: why.to_owned(),
    }
}

/// One outdated Pod, replicas first; the primary only after it has handed over.
pub(super) fn restarts(observed: &Observed) -> Steps {
    let mut steps = repairs(observed);
    if outdated(observed).any(|(ordinal, pod)| is_ill(observed, ordinal, pod)) {
        return steps;
    }
    let primary = observed.record.primary_ordinal();
    let alone = observed.spec.replicas == 1;
    let next = outdated(observed).find(|(ordinal, _)| Some(*ordinal) != primary || alone);
    if let Some((ordinal, pod)) = next
        && others_are_well(observed, ordinal)
    {
        steps.push(delete(ordinal, pod, "its spec changed"));
    }
    steps
}

/// What is not well anyway is restarted at once, whatever the situation: the
/// change may be its repair.
pub(super) fn repairs(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    for (ordinal, instance) in &observed.instances {
        let Some(pod) = instance
            .pod
            .present()
            .filter(|pod| pod.ended && !pod.deleting)
        else {
            continue;
        };
        steps.push(delete(*ordinal, pod, "its containers have ended"));
    }
    let ill = outdated(observed).find(|(ordinal, pod)| is_ill(observed, *ordinal, pod));
    if let Some((ordinal, pod)) = ill {
        steps.push(delete(ordinal, pod, "its spec changed and it was not well"));
    }
    steps
}

fn outdated(observed: &Observed) -> impl Iterator<Item = (Ordinal, &Pod)> {
    observed.instances.iter().filter_map(|(ordinal, instance)| {
        Some((
            *ordinal,
            instance
                .pod
                .present()
                .filter(|pod| pod.outdated && !pod.deleting)?,
        ))
    })
}

fn is_ill(observed: &Observed, ordinal: Ordinal, pod: &Pod) -> bool {
    let fails_to_start = observed.agent(ordinal).is_some_and(
        |agent| matches!(agent.mysqld, Mysqld::Gated { failed_starts, .. } if failed_starts > 0),
    );
    let fails_to_work = observed
        .agent(ordinal)
        .is_some_and(|agent| agent.job_failure.is_some());
    fails_to_start || fails_to_work || (pod.trouble.is_some() && observed.agent(ordinal).is_none())
}

fn others_are_well(observed: &Observed, except: Ordinal) -> bool {
    let primary = observed.record.primary_ordinal();
    (0..observed.spec.replicas)
        .map(Ordinal)
        .filter(|ordinal| *ordinal != except && Some(*ordinal) != primary)
        .all(|ordinal| standing(observed, ordinal) == Standing::Acker)
        && observed.record.transition.is_none()
}

/// Every outdated Pod but the primary's was restarted and all are well: the primary hands over next.
pub(super) fn primary_is_last_outdated(observed: &Observed) -> bool {
    let Some(primary) = observed.record.primary_ordinal() else {
        return false;
    };
    let outdated: Vec<Ordinal> = outdated(observed).map(|(ordinal, _)| ordinal).collect();
    outdated == [primary] && observed.spec.replicas > 1 && others_are_well(observed, primary)
}
