//! R5: how a member leaves K. Begun by a write of its own (0), then the member
//! is fenced (1), the end of the primary's binlog is read afterwards (2), k′
//! members of K′ hold it (3), and only then K changes (4).
//!
//! What is built is the step for a member that lives again (in another life or
//! with other data): its fresh boot is its fence. A member that is gone stays
//! in K, is named, and makes FailoverPossible False.

use crate::observed::Observed;
use crate::record::{Kind, Member, Ordinal, Record, Step, Transition};
use crate::semisync::holds;
use crate::standing::{Standing, standing};

/// (0).
pub(super) fn begin(observed: &Observed) -> Option<Record> {
    if observed.record.transition.is_some() {
        return None;
    }
    let out = observed
        .record
        .ackers
        .iter()
        .map(|member| member.ordinal)
        .find(|ordinal| standing(observed, *ordinal) == Standing::Reincarnated)?;
    let next = observed.record.next();
    Some(Record {
        transition: Some(Transition {
            id: format!("reconfigure-{}", next.version),
            kind: Kind::Reconfigure,
            step: Step::Removing,
            since: next.version,
            from: None,
            to: None,
            out: vec![out],
        }),
        ..next
    })
}

/// (1) to (4), or giving it up when the member is not there any more.
pub(super) fn finish(observed: &Observed) -> Option<Record> {
    let record = &observed.record;
    let transition = record
        .transition
        .as_ref()
        .filter(|transition| transition.step == Step::Removing)?;
    let out = *transition.out.first()?;
    if standing(observed, out) != Standing::Reincarnated {
        return Some(Record {
            transition: None,
            ..record.next()
        });
    }
    let primary = observed.primary_server()?;
    // (2): the position counts only when it was read after the fence's version.
    if primary.as_of_version < transition.since || !holds(observed, out, primary) {
        return None;
    }
    // (3): one that lives again holds P, too; its old life takes part in no proof
    // any more, and its own step comes next. ACKs need not be on to hold.
    let others = record.ackers.iter().map(|member| member.ordinal);
    let holders = 1 + others
        .filter(|acker| *acker != out && holds(observed, *acker, primary))
        .count();
    // With |K| < k nothing was acknowledged in this epoch; what was before is in the watermark.
    let k = record.k as usize;
    (holders >= k || record.ackers.len() < k)
        .then(|| replaced(observed, out))
        .flatten()
}

/// (4): K∖{old}∪{new}.
fn replaced(observed: &Observed, out: Ordinal) -> Option<Record> {
    let agent = observed.agent(out)?;
    let uuid = agent.server()?.uuid;
    let member = Member {
        ordinal: out,
        uuid,
        incarnation: agent.incarnation.clone(),
    };
    let mut next = observed.record.next();
    next.transition = None;
    next.deposed.retain(|deposed| deposed.uuid != uuid);
    next.ackers.retain(|acker| acker.ordinal != out);
    next.ackers.push(member);
    next.ackers.sort();
    Some(next)
}

/// Whether the primary has to be asked again so that its position is read after the fence.
pub(super) fn needs_position(observed: &Observed) -> bool {
    let Some(transition) = &observed.record.transition else {
        return false;
    };
    transition.step == Step::Removing
        && observed
            .primary_server()
            .is_some_and(|primary| primary.as_of_version < transition.since)
}
