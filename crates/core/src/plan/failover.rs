//! fo-1 to fo-5: fence the ackers, elect, record. The old primary is not asked
//! for anything; what it still holds is section 8's business.

use super::Steps;
use crate::action::Directive;
use crate::election::{Candidate, Election, elect};
use crate::observed::{Mysqld, Observed};
use crate::primary::{PrimaryView, Suspicion, provable, resumable, suspicion, view};
use crate::record::{Deposed, Kind, Member, Record, Step, Transition};
use crate::semisync::{Fenced, fenced_member, reachable_life};

pub(super) fn plan(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    match &observed.record.transition {
        Some(transition) if transition.step == Step::Fencing => {
            match Fenced::proven_by(observed, transition.since) {
                Ok(fenced) if all_reachable_fenced(observed, transition) => {
                    go_on(observed, &fenced, &mut steps);
                }
                Ok(_) | Err(_) => fence(observed, transition, &mut steps),
            }
        }
        Some(_) | None => steps.record(begin(observed)),
    }
    steps
}

/// fo-1. Also where a switchover or a promotion met the loss of its primary.
pub(super) fn begin(observed: &Observed) -> Option<Record> {
    let from = observed.record.primary_ordinal()?;
    let next = observed.record.next();
    let id = format!("failover-{}", next.version);
    Some(Record {
        transition: Some(Transition {
            id,
            kind: Kind::Failover,
            step: Step::Fencing,
            since: next.version,
            from: Some(from),
            to: None,
            out: Vec::new(),
        }),
        epoch: next.epoch,
        ..next
    })
}

/// More R is better than less: wait for every acker that can be fenced, not only
/// for as many as the proof needs. An agent bounds its own fence.
fn all_reachable_fenced(observed: &Observed, transition: &Transition) -> bool {
    observed
        .record
        .ackers
        .iter()
        .filter(|member| can_be_fenced(observed, member))
        .all(|member| fenced_member(observed, member, transition.since).is_ok())
}

/// Not one in another life, without readable data, or in a start that takes long.
fn can_be_fenced(observed: &Observed, member: &Member) -> bool {
    let Ok(agent) = reachable_life(observed, member) else {
        return false;
    };
    match &agent.mysqld {
        Mysqld::Running(_) => true,
        Mysqld::Starting => agent.settled_milliseconds < observed.spec.silence_milliseconds,
        Mysqld::Gated { .. } => agent.gated_data().is_some(),
    }
}

fn fence(observed: &Observed, transition: &Transition, steps: &mut Steps) {
    for member in &observed.record.ackers {
        let Some(agent) = observed.agent(member.ordinal) else {
            continue;
        };
        if matches!(agent.mysqld, Mysqld::Starting) {
            continue;
        }
        if fenced_member(observed, member, transition.since).is_err() {
            steps.order(observed, member.ordinal, Directive::Fence);
        }
    }
    if let Some(primary) = &observed.record.primary
        && observed
            .agent(primary.ordinal)
            .is_some_and(|agent| agent.self_fenced.is_none_or(|at| at < transition.since))
    {
        steps.order(observed, primary.ordinal, Directive::FenceSelf);
    }
}

fn go_on(observed: &Observed, fenced: &Fenced, steps: &mut Steps) {
    match elect(observed, fenced) {
        Election::Elected(candidate) => steps.record(record(observed, &candidate)),
        Election::Applying(ordinal) => {
            if observed
                .agent(ordinal)
                .is_some_and(|agent| agent.job.is_none())
            {
                steps.order(observed, ordinal, Directive::CatchUp);
            }
        }
        Election::Boot(ordinal) => steps.order(observed, ordinal, Directive::Boot),
        Election::Diverged(_)
        | Election::AckedDataMissing(_)
        | Election::ApplierBroken(_)
        | Election::Nobody(_) => {}
    }
}

/// fo-5: the point of no return, one write.
fn record(observed: &Observed, candidate: &Candidate) -> Option<Record> {
    let old = observed.record.primary.as_ref()?;
    let next = observed.record.next();
    let deposed = Deposed {
        uuid: old.uuid,
        epoch: next.epoch,
        kept: candidate.everything.clone(),
        strict: next.k >= 1,
        why: format!("failover of epoch {}", next.epoch),
    };
    let to = candidate.member.member.clone();
    Some(Record {
        epoch: next.epoch + 1,
        transition: Some(Transition {
            id: next
                .transition
                .as_ref()
                .map_or_else(String::new, |t| t.id.clone()),
            kind: Kind::Failover,
            step: Step::Promoting,
            since: next.version,
            from: Some(old.ordinal),
            to: Some(to.ordinal),
            out: Vec::new(),
        }),
        primary: Some(to),
        ackers: candidate
            .ackers
            .iter()
            .map(|fenced| fenced.member.clone())
            .collect(),
        watermark: candidate.everything.clone(),
        deposed: next.deposed.iter().cloned().chain([deposed]).collect(),
        ..next
    })
}

/// The old primary answers, or it would be started again where it is: only then,
/// or the next pass would begin the same failover once more.
fn may_abort(observed: &Observed, primary: &Member) -> bool {
    let alive = suspicion(observed, primary) == Suspicion::None;
    let clean = view(observed, primary) == PrimaryView::Down { clean: true };
    let resumes = clean || provable(observed).is_err();
    alive || (resumes && resumable(observed, primary).is_ok())
}

/// No proof, no failover, no time-out that turns it into one. Before fo-5 the
/// old primary may go on, if its agent answers (abort); otherwise the ackers
/// that answer stay fenced.
pub(super) fn blocked(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    let Some(primary) = &observed.record.primary else {
        return steps;
    };
    let Some(transition) = &observed.record.transition else {
        return steps;
    };
    if transition.step != Step::Fencing {
        return steps;
    }
    if may_abort(observed, primary) {
        let next = observed.record.next();
        steps.record(Some(Record {
            transition: None,
            epoch: next.epoch + 1,
            ..next
        }));
    } else {
        fence(observed, transition, &mut steps);
    }
    steps
}
