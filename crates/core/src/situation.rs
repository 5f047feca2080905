//! judge: what situation is this cluster in? Named situations in written
//! priority order. Never decides what to do, never reads Pod readiness as a
//! proof of anything.

use crate::election::{Election, elect};
use crate::observed::{Access, Mode, Mysqld, Observed, Volume};
use crate::primary::{PrimaryView, Suspicion, not_heard_yet, provable, resumable, suspicion, view};
use crate::record::{Member, Step, Transition};
use crate::semisync::{Fenced, Unfenced, attached, everything_held, k_wanted};
use crate::standing::{Standing, standing};
use crate::steady;

/// Nouns; the first that holds is the one. Shared by code, status, events, metrics and docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Situation {
    /// The resource is being deleted.
    Deleting,
    /// Agents know a newer record than the status holds (R4).
    StatusBehind,
    /// `spec.paused`.
    Paused,
    /// `spec.offline`.
    Offline,
    /// Nothing recorded yet; Pods and volumes are being made, the first instance is being initialised.
    Bootstrapping,
    /// fo-1 to fo-4.
    FailingOver,
    /// so-2, so-3.
    SwitchingOver,
    /// fo-6, so-5: the new primary is recorded and is being opened.
    Promoting,
    /// The R of the fenced are not a chain (fo-3).
    Diverged,
    /// U does not hold the watermark (fo-3).
    AckedDataMissing,
    /// No candidate's applier gets to U (fo-4).
    ApplierBroken,
    /// The primary is lost and no candidate is provable (fo-2).
    Blocked,
    /// The primary is silent for a while that proves nothing yet, or only towards the operator.
    PrimaryUnclear,
    /// The recorded primary is being started again (re-1).
    Resuming,
    /// The primary runs and is not open yet (sections 3 and 9).
    Opening,
    /// The primary serves; writes wait because fewer than k ackers are attached.
    WritesWaiting,
    /// The primary serves; an instance is not what it should be.
    Degraded,
    /// All as wanted.
    Healthy,
}

/// What was judged, and the sentence for `status.why`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The situation.
    pub situation: Situation,
    /// Facts in one sentence: names, values, which gate holds.
    pub why: String,
}

/// Judges. The order of the checks is the priority.
pub fn judge(observed: &Observed) -> Judgement {
    let checks: [fn(&Observed) -> Option<Judgement>; 6] = [
        mode_deleting,
        status_behind,
        mode_held,
        bootstrapping,
        transition,
        lost_primary,
    ];
    checks
        .iter()
        .find_map(|check| check(observed))
        .unwrap_or_else(|| serving(observed))
}

fn judged(situation: Situation, why: impl Into<String>) -> Judgement {
    Judgement {
        situation,
        why: why.into(),
    }
}

fn mode_deleting(observed: &Observed) -> Option<Judgement> {
    (observed.spec.mode == Mode::Deleting).then(|| {
        judged(
            Situation::Deleting,
            "the resource is being deleted; its Pods stop by themselves",
        )
    })
}

/// R4: never act on a record that is older than what the agents know.
fn status_behind(observed: &Observed) -> Option<Judgement> {
    let record = &observed.record;
    for (ordinal, instance) in &observed.instances {
        let Some(agent) = instance.agent.present() else {
            continue;
        };
        if agent.seen_version > record.version {
            return Some(judged(
                Situation::StatusBehind,
                format!(
                    "{} has seen version {} of the record and status.ha holds version {}: status was lost or restored from an older copy. \
                     Nothing is done. Restore status.ha of the resource from a newer copy",
                    observed.name(*ordinal),
                    agent.seen_version,
                    record.version
                ),
            ));
        }
        if record.version == 0 && matches!(agent.volume, Volume::Data(_)) {
            return Some(judged(
                Situation::StatusBehind,
                format!(
                    "the volume of {} holds data and status.ha is empty: the resource was created again over kept volumes, or its status was lost. \
                     Nothing is done. Give the cluster another name, remove the kept PersistentVolumeClaims, or restore status.ha",
                    observed.name(*ordinal)
                ),
            ));
        }
    }
    None
}

fn mode_held(observed: &Observed) -> Option<Judgement> {
    match observed.spec.mode {
        Mode::Paused => {
            // A pause hides nothing: what would be judged without it is said.
            let mut running = observed.clone();
            running.spec.mode = Mode::Run;
            let would_be = judge(&running);
            let why = format!(
                "spec.paused is true: nothing is done until it is false; seen is {:?}: {}",
                would_be.situation, would_be.why
            );
            Some(judged(Situation::Paused, why))
        }
        Mode::Offline => Some(judged(
            Situation::Offline,
            "spec.offline is true: instances are stopped, volumes are kept",
        )),
        Mode::Run | Mode::Deleting => None,
    }
}

fn bootstrapping(observed: &Observed) -> Option<Judgement> {
    if observed.record.primary.is_some() {
        return None;
    }
    let why = match &observed.record.bootstrap {
        Some(bootstrap) => {
            let agent = observed.agent(bootstrap.instance);
            let failure = agent.and_then(|agent| agent.job_failure.as_deref());
            let failure =
                failure.map_or(String::new(), |failure| format!("; it failed: {failure}"));
            format!(
                "{} is being initialised{failure}",
                observed.name(bootstrap.instance)
            )
        }
        None => format!(
            "waiting for all {} agents to say that their volumes are empty",
            observed.spec.replicas
        ),
    };
    Some(judged(
        Situation::Bootstrapping,
        format!("{why}{}", troubles(observed)),
    ))
}

/// What keeps instances from becoming ackers that does not pass by itself:
/// troubles of their Pods, and what a human has to decide. Empty when nothing.
fn hindrances(observed: &Observed) -> String {
    let mut hindrances = troubles(observed);
    for ordinal in observed.instances.keys().copied() {
        if Some(ordinal) == observed.record.primary_ordinal() {
            continue;
        }
        let standing = standing(observed, ordinal);
        let stays = matches!(
            standing,
            Standing::ErrantUnproven { .. } | Standing::VolumeUnreadable(_)
        );
        if let Some(why) = steady::shortcoming(&standing).filter(|_| stays) {
            hindrances = format!("{hindrances}; {}: {why}", observed.name(ordinal));
        }
    }
    hindrances
}

/// What Kubernetes says of Pods that do not run; empty when nothing.
pub(crate) fn troubles(observed: &Observed) -> String {
    let troubles: Vec<String> = observed
        .instances
        .iter()
        .filter_map(|(ordinal, instance)| {
            let trouble = instance.pod.present()?.trouble.as_ref()?;
            Some(format!("{}: {trouble}", observed.name(*ordinal)))
        })
        .collect();
    match troubles.is_empty() {
        true => String::new(),
        false => format!("; {}", troubles.join("; ")),
    }
}

fn transition(observed: &Observed) -> Option<Judgement> {
    let transition = observed.record.transition.as_ref()?;
    match transition.step {
        Step::Fencing => Some(fencing(observed, transition)),
        Step::Demoting => Some(demoting(observed, transition)),
        Step::Promoting => promoting(observed),
        // R5 goes on beside whatever else is true of the primary.
        Step::Removing => None,
    }
}

fn fencing(observed: &Observed, transition: &Transition) -> Judgement {
    let fenced = match Fenced::proven_by(observed, transition.since) {
        Ok(fenced) => fenced,
        Err(unfenced) => return unproven(observed, &unfenced),
    };
    match elect(observed, &fenced) {
        Election::Elected(candidate) => judged(
            Situation::FailingOver,
            format!(
                "{} holds everything that can have been acknowledged and is being recorded as primary",
                observed.name(candidate.member.member.ordinal)
            ),
        ),
        Election::Applying(ordinal) => judged(
            Situation::FailingOver,
            format!("{} applies what it has received", observed.name(ordinal)),
        ),
        Election::Boot(ordinal) => judged(
            Situation::FailingOver,
            format!(
                "{} is the candidate and has to be started",
                observed.name(ordinal)
            ),
        ),
        Election::Diverged(why) => judged(Situation::Diverged, why),
        Election::AckedDataMissing(why) => judged(Situation::AckedDataMissing, why),
        Election::ApplierBroken(why) => judged(Situation::ApplierBroken, why),
        Election::Nobody(why) => judged(Situation::Blocked, why),
    }
}

fn unproven(observed: &Observed, unfenced: &Unfenced) -> Judgement {
    let missing: Vec<String> = unfenced
        .missing
        .iter()
        .map(|(ordinal, why)| format!("{}: {why}", observed.name(*ordinal)))
        .collect();
    let needed = unfenced
        .needed
        .map_or("more than there are".to_owned(), |needed| {
            needed.to_string()
        });
    let why = format!(
        "fenced ackers: {needed} needed, {} so far: {}",
        unfenced.fenced,
        missing.join("; ")
    );
    let asked = observed
        .record
        .ackers
        .iter()
        .filter(|m| observed.agent(m.ordinal).is_some())
        .count();
    let can_come =
        unfenced.needed.is_some_and(|needed| asked >= needed) && provable(observed).is_ok();
    match can_come {
        true => judged(Situation::FailingOver, why),
        false => judged(Situation::Blocked, why),
    }
}

fn demoting(observed: &Observed, transition: &Transition) -> Judgement {
    let to = transition
        .to
        .map_or("a replica".to_owned(), |to| observed.name(to));
    let from = transition
        .from
        .map_or("the primary".to_owned(), |from| observed.name(from));
    judged(
        Situation::SwitchingOver,
        format!("{from} hands over to {to} (request {})", transition.id),
    )
}

fn promoting(observed: &Observed) -> Option<Judgement> {
    let primary = observed.record.primary.as_ref()?;
    let name = observed.name(primary.ordinal);
    match view(observed, primary) {
        PrimaryView::Answers | PrimaryView::Starting => Some(judged(
            Situation::Promoting,
            format!(
                "{name} is the primary of epoch {} and is opened with ackers attached: {} needed, {} so far{}",
                observed.record.epoch,
                observed.record.k,
                attached(observed).len(),
                hindrances(observed)
            ),
        )),
        // The new primary is lost as well: judged like any other.
        PrimaryView::Down { .. }
        | PrimaryView::Stuck { .. }
        | PrimaryView::Silent { .. }
        | PrimaryView::DataGone => None,
    }
}

fn lost_primary(observed: &Observed) -> Option<Judgement> {
    let primary = observed.record.primary.as_ref()?;
    let name = observed.name(primary.ordinal);
    let lost = match suspicion(observed, primary) {
        Suspicion::None => return starting(observed, primary),
        Suspicion::Unclear(why) => {
            return Some(judged(
                Situation::PrimaryUnclear,
                format!("{why}{}", troubles(observed)),
            ));
        }
        Suspicion::Lost(why) => why,
    };
    let clean = view(observed, primary) == PrimaryView::Down { clean: true };
    let provable = provable(observed);
    if let (false, Err(_), Some(ordinal)) = (clean, &provable, not_heard_yet(observed)) {
        let name = observed.name(ordinal);
        let why = format!(
            "{lost}; the agent of acker {name} has not been heard yet, which proves nothing"
        );
        return Some(judged(Situation::PrimaryUnclear, why));
    }
    let resumable = resumable(observed, primary);
    Some(match (clean, provable, resumable) {
        (true, _, Ok(())) => judged(
            Situation::Resuming,
            format!(
                "{name} was shut down cleanly and may have answered OK to waiting clients: only it can go on{}",
                start_trouble(observed, primary)
            ),
        ),
        (false, Ok(()), _) => judged(Situation::FailingOver, lost),
        (false, Err(why), Ok(())) => judged(
            Situation::Resuming,
            format!(
                "{name} is started again where it is, since no other can be proved to hold everything ({why}){}",
                start_trouble(observed, primary)
            ),
        ),
        (true, Ok(()), Err(why)) => judged(
            Situation::Blocked,
            format!("{lost}; {why}{}", troubles(observed)),
        ),
        (true | false, Err(why), Err(why_not)) => judged(
            Situation::Blocked,
            format!(
                "{lost}; no failover: {why}; no restart: {why_not}{}",
                troubles(observed)
            ),
        ),
    })
}

fn starting(observed: &Observed, primary: &Member) -> Option<Judgement> {
    (view(observed, primary) == PrimaryView::Starting).then(|| {
        judged(
            Situation::Resuming,
            format!("mysqld of {} is starting", observed.name(primary.ordinal)),
        )
    })
}

/// How starts failed; empty when none did.
pub(crate) fn start_trouble(observed: &Observed, member: &Member) -> String {
    let Some(agent) = observed.agent(member.ordinal) else {
        return String::new();
    };
    match &agent.mysqld {
        Mysqld::Gated {
            failed_starts,
            message,
        } if *failed_starts > 0 => format!(
            "; its mysqld ended {failed_starts} times before it answered: {}",
            message.as_deref().unwrap_or("no ERROR line in its log")
        ),
        Mysqld::Gated { .. } | Mysqld::Starting | Mysqld::Running(_) => String::new(),
    }
}

fn serving(observed: &Observed) -> Judgement {
    let (Some(primary), Some(server)) = (&observed.record.primary, observed.primary_server())
    else {
        return judged(
            Situation::PrimaryUnclear,
            "the recorded primary was not seen",
        );
    };
    let name = observed.name(primary.ordinal);
    let attached = attached(observed).len();
    let k = observed.record.k;
    if server.access != Access::Writes {
        let wanted = k_wanted(observed.spec.replicas);
        let why = match (
            k > 0 || wanted == 0,
            attached >= k as usize,
            everything_held(observed, server),
        ) {
            (false, _, _) => format!(
                "{name} is opened when a commit waits for ackers: {wanted} wanted, {k} recorded, {attached} attached"
            ),
            (true, false, _) => {
                format!("{name} is opened with ackers attached: {k} needed, {attached} so far")
            }
            (true, true, false) => {
                format!(
                    "{name} is opened when everything it has is held by enough ackers: {k} needed"
                )
            }
            (true, true, true) => format!("{name} is being opened"),
        };
        return judged(Situation::Opening, format!("{why}{}", hindrances(observed)));
    }
    if attached < k as usize {
        return judged(
            Situation::WritesWaiting,
            format!(
                "{name} serves, but commits wait for ackers: {k} needed, {attached} attached{}",
                hindrances(observed)
            ),
        );
    }
    match steady::first_shortcoming(observed) {
        Some(why) => judged(Situation::Degraded, why),
        None => judged(
            Situation::Healthy,
            format!(
                "{name} is primary of epoch {}, attached ackers: {attached}, a commit waits for {k}",
                observed.record.epoch
            ),
        ),
    }
}
