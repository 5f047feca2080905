//! What the recorded primary is told: start again, become a source, open. It
//! is never opened before k ackers hold everything that it has (section 9).

use super::{Steps, join};
use crate::action::{Action, Directive};
use crate::observed::{Access, Mysqld, Observed, Server};
use crate::record::{Kind, Record, Step, Transition};
use crate::semisync::{
    ackers_before_raising, attached, everything_held, holds, k_wanted, somebody_knocks,
};
use crate::standing::{RESTART_AFTER_MILLISECONDS, Standing, standing};

/// re-1.
pub(super) fn resume(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    let Some(primary) = &observed.record.primary else {
        return steps;
    };
    let Some(agent) = observed.agent(primary.ordinal) else {
        return steps;
    };
    match &agent.mysqld {
        Mysqld::Gated { failed_starts, .. }
            if *failed_starts > 0 && agent.settled_milliseconds < RESTART_AFTER_MILLISECONDS => {}
        Mysqld::Gated { .. } if agent.job.is_none() => {
            steps.order(observed, primary.ordinal, Directive::Resume);
            steps.extend(boot_members(observed));
        }
        Mysqld::Gated { .. } | Mysqld::Starting | Mysqld::Running(_) => {
            steps.extend(boot_members(observed));
        }
    }
    steps.extend(super::pods::restarts(observed));
    steps
}

/// Section 11: the others boot beside it, receivers stopped.
fn boot_members(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    for member in &observed.record.ackers {
        let Some(agent) = observed.agent(member.ordinal) else {
            continue;
        };
        let idle = agent.job.is_none()
            && agent
                .gated_data()
                .is_some_and(|data| !data.undo && data.uuid == Some(member.uuid));
        if idle
            && matches!(
                agent.mysqld,
                Mysqld::Gated {
                    failed_starts: 0,
                    ..
                }
            )
        {
            steps.order(observed, member.ordinal, Directive::Boot);
        }
    }
    steps
}

/// fo-6 and so-5.
pub(super) fn promote(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    let record = &observed.record;
    let (Some(primary), Some(server)) = (&record.primary, observed.primary_server()) else {
        return steps;
    };
    let since = record
        .transition
        .as_ref()
        .map_or(0, |transition| transition.since);
    let opened = server.access == Access::Writes;
    let promoted = server.replication.is_none() && server.semi_sync.is_some();
    // R5 goes by its own transition: whoever lives again waits for the end of this one.
    let lives_again = |member: &crate::record::Member| {
        standing(observed, member.ordinal) == Standing::Reincarnated
    };
    let others_wait = promoted && record.ackers.iter().any(lives_again);
    if server.as_of_version >= since && (opened || others_wait) {
        steps.record(Some(Record {
            transition: None,
            ..record.next()
        }));
        return steps;
    }
    let is_source =
        server.replication.is_none() && server.semi_sync == (record.k > 0).then_some(record.k);
    if !(is_source && server.as_of_version >= since) {
        let promote = Directive::Promote {
            until: record.watermark.clone(),
            k: record.k,
        };
        steps.order(observed, primary.ordinal, promote);
        // Whoever has nothing more than it may attach meanwhile: its binlog is
        // the same before and after. ACKs need a source that asks for them.
        let others = join::others(observed).others.into_iter();
        steps.others.extend(others.filter(is_attachment));
        return steps;
    }
    steps.record(join::admit(observed));
    steps.extend(join::others(observed));
    if attached(observed).len() >= record.k as usize && everything_held(observed, server) {
        steps.order(observed, primary.ordinal, Directive::Open { k: record.k });
    } else if somebody_knocks(observed) {
        steps.order(
            observed,
            primary.ordinal,
            Directive::SemiSync { k: record.k },
        );
    }
    steps
}

fn is_attachment(action: &Action) -> bool {
    match action {
        Action::Order { directive, .. } => matches!(directive, Directive::Follow { .. }),
        Action::Record(_)
        | Action::Role { .. }
        | Action::CreateInstance { .. }
        | Action::DeletePod { .. } => false,
    }
}

/// A primary that stays: semi-sync as recorded, opened when it may be, the application's account.
pub(super) fn serve(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    let record = &observed.record;
    let (Some(primary), Some(server)) = (&record.primary, observed.primary_server()) else {
        return steps;
    };
    let wanted = k_enforced(observed);
    if server.replication.is_some() {
        // A primary that was recorded by fo-5 or so-4 and restarted before it was promoted.
        let promote = Directive::Promote {
            until: record.watermark.clone(),
            k: wanted,
        };
        steps.order(observed, primary.ordinal, promote);
        return steps;
    }
    let ask_again = super::reconfigure::needs_position(observed);
    // Any order carries the list of those who may replicate (section 14).
    let opens = server.access != Access::Writes && may_open(observed, server);
    // An open primary that has not heard of the newest version would note what
    // makes an epoch not strict under the wrong one.
    let behind = observed
        .agent(primary.ordinal)
        .is_some_and(|agent| agent.seen_version < record.version);
    let unaware = behind && server.access == Access::Writes;
    let refresh = !opens && (somebody_knocks(observed) || unaware);
    if ask_again || refresh || server.semi_sync != (wanted > 0).then_some(wanted) {
        steps.order(observed, primary.ordinal, Directive::SemiSync { k: wanted });
    } else if server.access != Access::Writes {
        if opens {
            steps.order(observed, primary.ordinal, Directive::Open { k: record.k });
        }
    } else if !server.app_ready && attached(observed).len() >= record.k as usize {
        steps.order(observed, primary.ordinal, Directive::EnsureApp);
    }
    steps
}

fn may_open(observed: &Observed, server: &Server) -> bool {
    let record = &observed.record;
    // A cluster that is being grown keeps the k that it has; one that was never
    // open waits for its first k.
    (record.k > 0 || k_wanted(observed.spec.replicas) == 0)
        && attached(observed).len() >= record.k as usize
        && everything_held(observed, server)
        && record
            .transition
            .as_ref()
            .is_none_or(|transition| transition.step == Step::Removing)
}

/// R3: k is raised at the server first, the record is never stronger. R2: the
/// order that raises and one that does not never carry the same version, or a
/// late one could undo it after it was recorded; so raising is recorded as begun.
pub(super) fn k_enforced(observed: &Observed) -> u32 {
    match is_raising(&observed.record) {
        Some(_) => k_wanted(observed.spec.replicas).max(observed.record.k),
        None => observed.record.k,
    }
}

/// The version that began to raise k.
fn is_raising(record: &Record) -> Option<u64> {
    let transition = record.transition.as_ref()?;
    let raising = transition.kind == Kind::Reconfigure && transition.out.is_empty();
    raising.then_some(transition.since)
}

/// R3 and R5 (3): begun when enough ackers are attached; recorded when the
/// server waits for k and k ackers hold everything; given up when they are gone.
/// Leaving k = 0 begins a new epoch, which is provable from its first write.
pub(super) fn raise_k(observed: &Observed) -> Option<Record> {
    let server = observed.primary_server()?;
    let wanted = k_wanted(observed.spec.replicas);
    let record = &observed.record;
    let attached = attached(observed);
    let ready = wanted > record.k
        && record.ackers.len() >= ackers_before_raising(observed.spec.replicas)
        && attached.len() >= wanted as usize;
    match (is_raising(record), &record.transition, ready) {
        (None, None, true) => Some(begin_to_raise(record)),
        (None, Some(_) | None, _) => None,
        (Some(_), _, false) => Some(Record {
            transition: None,
            ..record.next()
        }),
        (Some(since), _, true) => {
            let enforced = server.semi_sync == Some(wanted) && server.as_of_version >= since;
            let holding = |ordinal: &crate::record::Ordinal| holds(observed, *ordinal, server);
            let holders = attached.iter().filter(|ordinal| holding(ordinal)).count();
            (enforced && holders >= wanted as usize).then(|| Record {
                k: wanted,
                epoch: record.epoch + u64::from(record.k == 0),
                transition: None,
                ..record.next()
            })
        }
    }
}

fn begin_to_raise(record: &Record) -> Record {
    let next = record.next();
    Record {
        transition: Some(Transition {
            id: format!("raise-{}", next.version),
            kind: Kind::Reconfigure,
            step: Step::Removing,
            since: next.version,
            from: None,
            to: None,
            out: Vec::new(),
        }),
        ..next
    }
}

/// Whether somebody is being cloned from this instance now.
pub(super) fn a_clone_runs(observed: &Observed) -> bool {
    observed.instances.values().any(|instance| {
        instance.agent.present().is_some_and(|agent| {
            agent
                .job
                .as_ref()
                .is_some_and(|job| job.starts_with("Clone"))
        })
    })
}

/// An instance that is whole and idle enough to be cloned from: a replica if possible (section 10).
pub(super) fn donor(observed: &Observed) -> Option<crate::record::Ordinal> {
    let primary = observed.record.primary_ordinal()?;
    let replica = observed
        .record
        .ackers
        .iter()
        .map(|member| member.ordinal)
        .find(|ordinal| {
            matches!(
                standing(observed, *ordinal),
                Standing::Acker | Standing::ToServe
            )
        });
    replica.or_else(|| {
        observed
            .primary_server()
            .filter(|server| !server.waiters)
            .map(|_| primary)
    })
}
