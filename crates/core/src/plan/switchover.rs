//! so-1 to so-4: a planned hand-over. The primary is frozen after the record
//! says so, and made writable again only after a record that ended it.

use super::{Steps, failover};
use crate::action::Directive;
use crate::observed::{Access, Observed, Server};
use crate::primary::{PrimaryView, provable, view};
use crate::record::{Deposed, Kind, Ordinal, Record, Step, Transition};
use crate::semisync::{Fenced, FencedMember, is_attached};

/// A user's request may wait this long for running transactions.
const FREEZE_MILLISECONDS: u64 = 5_000;
/// A primary whose Pod is being deleted has little time.
const FREEZE_HURRIED_MILLISECONDS: u64 = 1_000;
/// so-1: a candidate further behind would make clients wait that long. A request
/// can wait for it to catch up,
const LAG_SECONDS_MAX: u64 = 1;
/// a primary whose Pod is being deleted cannot.
const LAG_HURRIED_SECONDS_MAX: u64 = 10;

/// Why a switchover is wanted.
struct Wish {
    id: String,
    to: Option<Ordinal>,
}

fn wish(observed: &Observed) -> Option<Wish> {
    observed.record.primary.as_ref()?;
    if is_leaving(observed) {
        return Some(Wish {
            id: format!("leaving-{}", observed.record.version + 1),
            to: None,
        });
    }
    if let Some(request) = &observed.request
        && observed.record.handled_request.as_ref() != Some(&request.id)
    {
        return Some(Wish {
            id: request.id.clone(),
            to: request.to,
        });
    }
    super::pods::primary_is_last_outdated(observed).then(|| Wish {
        id: format!("rollout-{}", observed.record.version + 1),
        to: None,
    })
}

/// so-1 and so-2. A request for the present primary is done already; one for an
/// instance that there is not can never be.
pub(super) fn begin(observed: &Observed) -> Option<Record> {
    let wish = wish(observed)?;
    let from = observed.record.primary_ordinal()?;
    let server = observed.primary_server()?;
    if observed.record.transition.is_some() {
        return None;
    }
    let nobody = |to: Ordinal| !observed.instances.contains_key(&to);
    if wish.to == Some(from) || wish.to.is_some_and(nobody) {
        return Some(Record {
            handled_request: Some(wish.id),
            ..observed.record.next()
        });
    }
    if server.access != Access::Writes {
        return None;
    }
    let to = candidate(observed, &wish).ok()?;
    let next = observed.record.next();
    Some(Record {
        transition: Some(Transition {
            id: wish.id,
            kind: Kind::Switchover,
            step: Step::Demoting,
            since: next.version,
            from: Some(from),
            to: Some(to),
            out: Vec::new(),
        }),
        ..next
    })
}

/// Why a wished switchover does not begin; `None`: none is wished, or nothing hinders it.
pub(crate) fn hindrance(observed: &Observed) -> Option<String> {
    let wish = wish(observed)?;
    if wish.to.is_some() && wish.to == observed.record.primary_ordinal() {
        return None;
    }
    candidate(observed, &wish)
        .err()
        .map(|why| format!("switchover {} waits: {why}", wish.id))
}

/// so-1.
fn candidate(observed: &Observed, wish: &Wish) -> Result<Ordinal, String> {
    provable(observed)?;
    let mut refusals = Vec::new();
    let mut fit: Vec<Ordinal> = Vec::new();
    for member in &observed.record.ackers {
        if wish.to.is_some_and(|to| to != member.ordinal) {
            continue;
        }
        match fitness(observed, member.ordinal) {
            Ok(()) if is_attached(observed, member) => fit.push(member.ordinal),
            Ok(()) => refusals.push(format!("{} is not attached", observed.name(member.ordinal))),
            Err(why) => refusals.push(format!("{} {why}", observed.name(member.ordinal))),
        }
    }
    // The lowest version (a newer one does not replicate to an older one), then
    // the one that has applied most: clients wait until it has everything.
    fit.sort_by_key(|ordinal| {
        observed
            .server(*ordinal)
            .map(|server| (server.version, std::cmp::Reverse(server.executed.count())))
    });
    match (fit.first(), wish.to) {
        (Some(ordinal), _) => Ok(*ordinal),
        (None, Some(to)) if refusals.is_empty() => {
            Err(format!("{} is not an acker", observed.name(to)))
        }
        (None, None) if refusals.is_empty() => Err("there is no acker".to_owned()),
        (None, _) => Err(refusals.join("; ")),
    }
}

fn fitness(observed: &Observed, ordinal: Ordinal) -> Result<(), String> {
    let instance = observed.instances.get(&ordinal);
    if instance
        .and_then(|i| i.pod.present())
        .is_some_and(|pod| pod.deleting || pod.outdated)
        || observed
            .agent(ordinal)
            .is_some_and(|agent| agent.terminating)
    {
        return Err("is about to restart".to_owned());
    }
    let replication = observed
        .server(ordinal)
        .and_then(|server| server.replication.as_ref());
    match replication {
        None => Err("does not replicate".to_owned()),
        Some(r) if !r.applier => Err("does not apply".to_owned()),
        // Without the number: it ticks.
        Some(r) if r.lag_seconds.is_some_and(|lag| lag > lag_max(observed)) => {
            Err(format!("is more than {} s behind", lag_max(observed)))
        }
        Some(_) => Ok(()),
    }
}

fn lag_max(observed: &Observed) -> u64 {
    match is_leaving(observed) {
        true => LAG_HURRIED_SECONDS_MAX,
        false => LAG_SECONDS_MAX,
    }
}

/// The primary's Pod is being deleted.
fn is_leaving(observed: &Observed) -> bool {
    let Some(primary) = observed.record.primary_ordinal() else {
        return false;
    };
    let pod = observed
        .instances
        .get(&primary)
        .and_then(|instance| instance.pod.present());
    observed
        .agent(primary)
        .is_some_and(|agent| agent.terminating)
        || pod.is_some_and(|pod| pod.deleting)
}

/// so-3 and so-4.
pub(super) fn plan(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    let record = &observed.record;
    let (Some(transition), Some(primary)) = (&record.transition, &record.primary) else {
        return steps;
    };
    match view(observed, primary) {
        PrimaryView::Down { clean: false } => {
            steps.record(failover::begin(observed));
            return steps;
        }
        PrimaryView::Down { clean: true }
        | PrimaryView::DataGone
        | PrimaryView::Silent { .. }
        | PrimaryView::Stuck { .. } => {
            match frozen_set_is_fenced(observed, transition) {
                Some((chosen, ackers)) => {
                    steps.record(hand_over(observed, transition, &chosen, &ackers, false));
                }
                None => steps.record(lost_meanwhile(observed)),
            }
            return steps;
        }
        PrimaryView::Answers | PrimaryView::Starting => {}
    }
    let Some(server) = observed.primary_server() else {
        return steps;
    };
    if refused(observed, transition, primary.ordinal) {
        steps.record(Some(undo(observed, transition)));
        return steps;
    }
    match frozen(server, transition) {
        false => steps.order(observed, primary.ordinal, freeze(observed, transition)),
        true => collect(observed, transition, server, &mut steps),
    }
    steps
}

/// Without a confirmed freeze the loss of the primary is a failover like any other.
fn lost_meanwhile(observed: &Observed) -> Option<Record> {
    let primary = observed.record.primary.as_ref()?;
    match crate::primary::suspicion(observed, primary) {
        crate::primary::Suspicion::Lost(_) => failover::begin(observed),
        crate::primary::Suspicion::None | crate::primary::Suspicion::Unclear(_) => None,
    }
}

fn freeze(observed: &Observed, transition: &Transition) -> Directive {
    let hurried = transition
        .from
        .and_then(|from| observed.agent(from))
        .is_some_and(|agent| agent.terminating);
    Directive::Freeze {
        id: transition.id.clone(),
        wait_milliseconds: if hurried {
            FREEZE_HURRIED_MILLISECONDS
        } else {
            FREEZE_MILLISECONDS
        },
    }
}

/// Read-only as confirmed after the record said so, and nobody waits.
fn frozen(server: &Server, transition: &Transition) -> bool {
    server.as_of_version >= transition.since
        && matches!(server.access, Access::Closed | Access::Reads)
        && !server.waiters
}

fn refused(observed: &Observed, transition: &Transition, primary: Ordinal) -> bool {
    let refusal = observed
        .instances
        .get(&primary)
        .and_then(|instance| instance.refusal.as_ref());
    refusal.is_some_and(|refusal| refusal.act == "Freeze" && refusal.version >= transition.since)
}

/// The primary stays: recorded first, opened again by `primary::serve` afterwards.
fn undo(observed: &Observed, transition: &Transition) -> Record {
    let next = observed.record.next();
    let asked = observed
        .request
        .as_ref()
        .is_some_and(|request| request.id == transition.id);
    let handled_request = if asked {
        Some(transition.id.clone())
    } else {
        next.handled_request.clone()
    };
    Record {
        transition: None,
        epoch: next.epoch + 1,
        handled_request,
        ..next
    }
}

/// The candidate reaches G, then the receivers are stopped.
fn collect(observed: &Observed, transition: &Transition, server: &Server, steps: &mut Steps) {
    let Some(to) = transition.to else { return };
    let reached = observed
        .server(to)
        .is_some_and(|candidate| candidate.executed.contains(&server.executed));
    let gets_there = observed
        .server(to)
        .is_some_and(|candidate| approaches(candidate, server));
    if provable(observed).is_err() || !(reached || gets_there) {
        // Clients wait for as long as the primary is frozen: rather not now.
        steps.record(Some(undo(observed, transition)));
        return;
    }
    if !reached {
        return;
    }
    match frozen_set_is_fenced(observed, transition) {
        Some((chosen, ackers)) if chosen.received == server.executed => {
            steps.record(hand_over(observed, transition, &chosen, &ackers, true));
        }
        Some(_) | None => {
            for member in &observed.record.ackers {
                let complete = observed
                    .server(member.ordinal)
                    .is_some_and(|s| s.received().contains(&server.executed));
                let fenced =
                    crate::semisync::fenced_member(observed, member, transition.since).is_ok();
                // One that receives nothing more is fenced as it is.
                let comes = observed
                    .server(member.ordinal)
                    .is_some_and(|other| other.follows(server.uuid).is_some());
                if (complete || !comes) && !fenced && observed.agent(member.ordinal).is_some() {
                    steps.order(observed, member.ordinal, Directive::Fence);
                }
            }
        }
    }
}

/// The candidate is attached and applies: it will reach what the primary has.
fn approaches(candidate: &Server, primary: &Server) -> bool {
    candidate
        .follows(primary.uuid)
        .is_some_and(|r| r.applier && r.applier_error.is_none())
}

/// |K|−k+1 receivers are stopped, the candidate's among them and with R = executed.
fn frozen_set_is_fenced(
    observed: &Observed,
    transition: &Transition,
) -> Option<(FencedMember, Vec<FencedMember>)> {
    let fenced = Fenced::proven_by(observed, transition.since).ok()?;
    let chosen = fenced
        .members()
        .iter()
        .find(|m| Some(m.member.ordinal) == transition.to)?
        .clone();
    if !chosen.executed.contains(&chosen.received)
        || !chosen.received.contains(&observed.record.watermark)
    {
        return None;
    }
    if fenced
        .members()
        .iter()
        .any(|m| !chosen.received.contains(&m.received))
    {
        return None;
    }
    let ackers = fenced
        .members()
        .iter()
        .filter(|m| m.member.ordinal != chosen.member.ordinal && m.received == chosen.received)
        .cloned()
        .collect();
    Some((chosen, ackers))
}

/// so-4. `strict`: the old primary confirmed that it froze with exactly G.
fn hand_over(
    observed: &Observed,
    transition: &Transition,
    chosen: &FencedMember,
    ackers: &[FencedMember],
    strict: bool,
) -> Option<Record> {
    let old = observed.record.primary.as_ref()?;
    let next = observed.record.next();
    let deposed = Deposed {
        uuid: old.uuid,
        epoch: next.epoch,
        kept: chosen.received.clone(),
        strict: strict && next.k >= 1,
        why: format!("switchover {}", transition.id),
    };
    let asked = observed
        .request
        .as_ref()
        .is_some_and(|request| request.id == transition.id);
    Some(Record {
        epoch: next.epoch + 1,
        primary: Some(chosen.member.clone()),
        ackers: ackers.iter().map(|fenced| fenced.member.clone()).collect(),
        watermark: chosen.received.clone(),
        transition: Some(Transition {
            step: Step::Promoting,
            since: next.version,
            to: Some(chosen.member.ordinal),
            ..transition.clone()
        }),
        deposed: next.deposed.iter().cloned().chain([deposed]).collect(),
        handled_request: if asked {
            Some(transition.id.clone())
        } else {
            next.handled_request.clone()
        },
        ..next
    })
}
