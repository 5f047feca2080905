//! The other instances on their way to being ackers (sections 4, 8, 10): one
//! order each, by their standing. Never removes anything that is not proved
//! unneeded, never below k holders.

use super::Steps;
use super::primary::{a_clone_runs, donor};
use crate::action::{Action, Directive};
use crate::observed::{Access, Observed, Rebuild, Seen};
use crate::record::{Generation, Member, Ordinal, Record};
use crate::semisync::attached;
use crate::standing::{Standing, standing};

/// Orders for every instance but the primary.
pub(super) fn others(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    let Some(primary) = observed.record.primary_ordinal() else {
        return steps;
    };
    let mut clone_free = !a_clone_runs(observed);
    for ordinal in observed
        .instances
        .keys()
        .copied()
        .filter(|ordinal| *ordinal != primary)
    {
        if ordinal.0 >= observed.spec.replicas || is_leaving(observed, ordinal) {
            continue;
        }
        if let Some(action) = on_old_generation(observed, ordinal) {
            steps.push(action);
            continue;
        }
        let standing = standing(observed, ordinal);
        if standing == Standing::ToClone {
            if !std::mem::take(&mut clone_free) {
                continue;
            }
            clone(observed, ordinal, &mut steps);
        } else {
            one(observed, ordinal, standing, &mut steps);
        }
    }
    steps
}

fn is_leaving(observed: &Observed, ordinal: Ordinal) -> bool {
    observed
        .agent(ordinal)
        .is_some_and(|agent| agent.terminating)
}

fn clone(observed: &Observed, ordinal: Ordinal, steps: &mut Steps) {
    let Some(donor) = donor(observed) else {
        if waits_in_vain(observed, ordinal) {
            stop_primary(observed, steps);
        }
        return;
    };
    let Some(donor_uuid) = observed.server(donor).map(|server| server.uuid) else {
        return;
    };
    steps.order(observed, ordinal, Directive::Clone { donor, donor_uuid });
    if Some(donor) == observed.record.primary_ordinal() {
        // Any order carries the list of accounts that are open (section 14).
        let k = super::primary::k_enforced(observed);
        steps.order(observed, donor, Directive::SemiSync { k });
    }
}

/// Section 3: commits wait, nobody is left who could acknowledge them, and a
/// clone from a donor with waiters hangs (fact 16).
fn waits_in_vain(observed: &Observed, joiner: Ordinal) -> bool {
    let long = observed.spec.silence_milliseconds;
    let settled = observed
        .agent(joiner)
        .is_some_and(|agent| agent.settled_milliseconds >= long);
    let gone = |ordinal: Ordinal| match observed.instances.get(&ordinal).map(|i| &i.agent) {
        Some(Seen::Unknown(silence)) => silence.milliseconds >= long,
        Some(Seen::Present(_) | Seen::Absent) | None => {
            standing(observed, ordinal) == Standing::ToClone
        }
    };
    settled
        && observed
            .primary_server()
            .is_some_and(|server| server.waiters)
        && observed
            .record
            .ackers
            .iter()
            .all(|member| gone(member.ordinal))
}

/// The waiters of a primary that is killed are committed by its next boot, and
/// held by k ackers before anybody sees them (section 9).
fn stop_primary(observed: &Observed, steps: &mut Steps) {
    if let Some(primary) = observed.record.primary_ordinal() {
        steps.order(observed, primary, Directive::Stop);
    }
}

fn one(observed: &Observed, ordinal: Ordinal, standing: Standing, steps: &mut Steps) {
    let (Some(primary), Some(server)) = (&observed.record.primary, observed.primary_server())
    else {
        return;
    };
    match standing {
        Standing::ToBoot => steps.order(observed, ordinal, Directive::Boot),
        Standing::ToKill => steps.order(observed, ordinal, Directive::FenceSelf),
        Standing::ToFollow => {
            let within = server.written();
            let follow = Directive::Follow {
                source: primary.ordinal,
                source_uuid: primary.uuid,
                within,
            };
            steps.order(observed, ordinal, follow);
        }
        Standing::ErrantInRelayLogs(_) => {
            steps.order(
                observed,
                ordinal,
                Directive::DiscardRelayLogs {
                    kept: server.written(),
                },
            );
        }
        Standing::BeyondBinlogs(_) => new_generation(observed, ordinal, steps),
        Standing::ToDiscard { epoch, kept, .. } => rebuild(observed, ordinal, epoch, kept, steps),
        Standing::ToAdmit => steps.order(
            observed,
            ordinal,
            Directive::Admit {
                source_uuid: primary.uuid,
            },
        ),
        Standing::ToServe => steps.order(observed, ordinal, Directive::ServeReads),
        Standing::ErrantUnproven { .. } => close(observed, ordinal, steps),
        Standing::NoPod
        | Standing::PodTrouble(_)
        | Standing::Unreachable(_)
        | Standing::ApplierStopped(_)
        | Standing::Busy(_)
        | Standing::VolumeUnreadable(_)
        | Standing::StartFails(_)
        | Standing::ToClone
        | Standing::CatchingUp
        | Standing::Admissible
        | Standing::Reincarnated
        | Standing::Acker => {}
    }
}

/// re-4: offline and read-only, nothing else.
fn close(observed: &Observed, ordinal: Ordinal, steps: &mut Steps) {
    if observed
        .server(ordinal)
        .is_some_and(|server| server.access == Access::Reads)
    {
        steps.order(observed, ordinal, Directive::CloseReads);
    }
}

/// Section 10: in place with ≥ k holders besides it, else beside the primary
/// onto a new volume generation, the old one kept.
fn rebuild(
    observed: &Observed,
    ordinal: Ordinal,
    epoch: u64,
    kept: gtid::GtidSet,
    steps: &mut Steps,
) {
    if observed.spec.rebuild == Rebuild::Manual {
        return;
    }
    let k = observed.record.k as usize;
    if attached(observed)
        .into_iter()
        .filter(|acker| *acker != ordinal)
        .count()
        >= k
    {
        steps.order(observed, ordinal, Directive::Discard { epoch, kept });
        return;
    }
    if !others_come(observed, ordinal) {
        new_generation(observed, ordinal, steps);
    }
}

/// Whether there will be k holders with those that are on their way: then a
/// volume is not given up for want of one.
fn others_come(observed: &Observed, except: Ordinal) -> bool {
    let primary = observed.record.primary_ordinal();
    let others = observed.instances.keys().copied();
    others
        .filter(|ordinal| *ordinal != except && Some(*ordinal) != primary)
        .filter(|ordinal| ordinal.0 < observed.spec.replicas)
        .filter(|ordinal| match standing(observed, *ordinal) {
            Standing::ToBoot
            | Standing::ToFollow
            | Standing::CatchingUp
            | Standing::Admissible
            | Standing::Reincarnated
            | Standing::ToAdmit
            | Standing::ToServe
            | Standing::Acker => true,
            Standing::NoPod
            | Standing::PodTrouble(_)
            | Standing::Unreachable(_)
            | Standing::ApplierStopped(_)
            | Standing::Busy(_)
            | Standing::VolumeUnreadable(_)
            | Standing::ToClone
            | Standing::StartFails(_)
            | Standing::ToKill
            | Standing::ErrantInRelayLogs(_)
            | Standing::BeyondBinlogs(_)
            | Standing::ToDiscard { .. }
            | Standing::ErrantUnproven { .. } => false,
        })
        .count()
        >= observed.record.k as usize
}

/// Beside the primary onto a new volume, the old one kept: needs no other holder.
fn new_generation(observed: &Observed, ordinal: Ordinal, steps: &mut Steps) {
    if observed.spec.rebuild == Rebuild::Manual {
        return;
    }
    let claim = observed
        .instances
        .get(&ordinal)
        .and_then(|instance| instance.claim.present());
    if claim.is_none_or(|claim| claim.generation < observed.record.generation(ordinal)) {
        return; // the new generation is recorded already
    }
    let next = observed.record.next();
    let generation = next.generation(ordinal) + 1;
    let others = next
        .generations
        .iter()
        .copied()
        .filter(|entry| entry.ordinal != ordinal);
    let generations = others
        .chain([Generation {
            ordinal,
            generation,
        }])
        .collect();
    steps.record(Some(Record {
        generations,
        ..next
    }));
}

/// A Pod that still uses an older volume generation than the record names.
fn on_old_generation(observed: &Observed, ordinal: Ordinal) -> Option<Action> {
    let instance = observed.instances.get(&ordinal)?;
    let pod = instance.pod.present().filter(|pod| !pod.deleting)?;
    let wanted = observed.record.generation(ordinal);
    // The claim of the wanted generation is made together with its Pod.
    let old = match &instance.claim {
        Seen::Present(claim) => claim.generation < wanted,
        Seen::Absent => wanted > 0 && pod.outdated,
        Seen::Unknown(_) => false,
    };
    old.then(|| Action::DeletePod {
        ordinal,
        uid: pod.uid.clone(),
        why: format!("it is rebuilt on volume generation {wanted}; the old volume is kept"),
    })
}

/// Section 4: record K ∪ {r} first, then enable its ACKs. A deposed server that
/// came through section 8 has its record closed in the same write.
pub(super) fn admit(observed: &Observed) -> Option<Record> {
    let record = &observed.record;
    if record
        .transition
        .as_ref()
        .is_some_and(|transition| !transition.out.is_empty())
    {
        return None;
    }
    let ordinal = (0..observed.spec.replicas)
        .map(Ordinal)
        .filter(|ordinal| {
            Some(*ordinal) != record.primary_ordinal() && !is_leaving(observed, *ordinal)
        })
        .find(|ordinal| standing(observed, *ordinal) == Standing::Admissible)?;
    let agent = observed.agent(ordinal)?;
    let server = agent.server()?;
    let brings_to_k = record.ackers.len() + 1 == record.k as usize;
    if brings_to_k && !crate::semisync::holds(observed, ordinal, observed.primary_server()?) {
        return None;
    }
    let member = Member {
        ordinal,
        uuid: server.uuid,
        incarnation: agent.incarnation.clone(),
    };
    let mut next = record.next();
    next.deposed.retain(|deposed| deposed.uuid != member.uuid);
    next.ackers.push(member);
    next.ackers.sort();
    Some(next)
}

/// A deposed record whose server was verified, or whose instance serves again
/// with other data, has done its work: when every instance is an acker or the
/// primary, nobody can come back with what it describes.
pub(super) fn close_deposed(observed: &Observed) -> Option<Record> {
    let record = &observed.record;
    if record.deposed.is_empty() || record.transition.is_some() {
        return None;
    }
    let all_verified = (0..observed.spec.replicas)
        .map(Ordinal)
        .filter(|ordinal| Some(*ordinal) != record.primary_ordinal())
        .all(|ordinal| standing(observed, ordinal) == Standing::Acker);
    all_verified.then(|| crate::record::Record {
        deposed: Vec::new(),
        ..record.next()
    })
}
