//! The role label, which Services follow. A Pod whose role is not verified in
//! this pass has none; the label says what is, it never makes it so.
//!
//! One exception, measured: kube-proxy applies a change at once, but the next
//! one only a second later (minSyncPeriod). Were the label taken off first and
//! put on last, every hand-over would cost that second. So a primary whose agent
//! answers keeps the label while nobody can log in to it (offline, or without a
//! mysqld), until it serves again or the next primary has its own.

use crate::action::Action;
use crate::observed::{Access, Instance, Observed, Role, Seen, Server};
use crate::record::{Ordinal, Step, Transition};

/// Labels that differ from what was verified.
pub(super) fn changes(observed: &Observed) -> Vec<Action> {
    observed
        .instances
        .iter()
        .filter_map(|(ordinal, instance)| {
            let has = instance.pod.present()?.role;
            let role = wanted(observed, *ordinal, instance, has);
            (has != role).then_some(Action::Role { of: *ordinal, role })
        })
        .collect()
}

/// The first instance whose label is another one than it should be.
pub(crate) fn first_wrong(observed: &Observed) -> Option<Ordinal> {
    changes(observed)
        .into_iter()
        .find_map(|action| match action {
            Action::Role { of, .. } => Some(of),
            Action::Record(_)
            | Action::Order { .. }
            | Action::CreateInstance { .. }
            | Action::DeletePod { .. } => None,
        })
}

/// Not heard is not refuted: while only the operator is cut off from an
/// instance its label stays, so that its clients stay. A label that the record
/// contradicts goes all the same.
fn wanted(
    observed: &Observed,
    ordinal: Ordinal,
    instance: &Instance,
    has: Option<Role>,
) -> Option<Role> {
    let Seen::Unknown(silence) = &instance.agent else {
        let keeps = match has {
            Some(Role::Primary) => holds_the_place(observed, ordinal),
            Some(Role::Replica) => is_being_promoted(observed, ordinal),
            None => false,
        };
        return if keeps {
            has
        } else {
            verified(observed, ordinal)
        };
    };
    let is_primary = observed.record.primary_ordinal() == Some(ordinal);
    match has {
        Some(Role::Primary) => (is_primary && !is_left(observed)).then_some(Role::Primary),
        Some(Role::Replica) => {
            let brief = silence.milliseconds < observed.spec.silence_milliseconds;
            (!is_primary && brief).then_some(Role::Replica)
        }
        None => None,
    }
}

/// Whether an instance that has the primary's label keeps it although it does
/// not serve now: the recorded primary, and the former one until the next has it.
fn holds_the_place(observed: &Observed, ordinal: Ordinal) -> bool {
    let record = &observed.record;
    let Some(primary) = record.primary_ordinal() else {
        return false;
    };
    if primary == ordinal {
        return true;
    }
    let next = observed.instances.get(&primary);
    let next_has_it = next
        .and_then(|next| next.pod.present())
        .is_some_and(|pod| pod.role == Some(Role::Primary));
    let promoting = |t: &Transition| t.step == Step::Promoting && t.from == Some(ordinal);
    let closed = observed
        .server(ordinal)
        .is_none_or(|server| server.access == Access::Closed);
    record.transition.as_ref().is_some_and(promoting) && !next_has_it && closed
}

/// One change from replica to primary instead of two: readers that meet it
/// meanwhile are refused, since it is offline, and take another replica.
fn is_being_promoted(observed: &Observed, ordinal: Ordinal) -> bool {
    let record = &observed.record;
    record.primary_ordinal() == Some(ordinal)
        && record
            .transition
            .as_ref()
            .is_some_and(|transition| transition.step == Step::Promoting)
        && verified(observed, ordinal).is_none()
}

/// Whether the record says that its primary is being left.
fn is_left(observed: &Observed) -> bool {
    let step = observed
        .record
        .transition
        .as_ref()
        .map(|transition| transition.step);
    matches!(step, Some(Step::Fencing | Step::Demoting))
}

/// The role that an instance has been seen to play.
pub(crate) fn verified(observed: &Observed, ordinal: Ordinal) -> Option<Role> {
    let server = observed.server(ordinal)?;
    let primary = observed.record.primary.as_ref()?;
    if primary.ordinal == ordinal {
        let serves = server.uuid == primary.uuid && server.access == Access::Writes;
        return (serves && !is_left(observed)).then_some(Role::Primary);
    }
    serves_reads(observed, ordinal, server).then_some(Role::Replica)
}

/// While a primary is left and the next one is opened nobody follows anybody:
/// the readers of an acker stay where they are.
fn serves_reads(observed: &Observed, ordinal: Ordinal, server: &Server) -> bool {
    let Some(primary) = &observed.record.primary else {
        return false;
    };
    let Some(replication) = &server.replication else {
        return false;
    };
    let between = observed
        .record
        .transition
        .as_ref()
        .is_some_and(|transition| match transition.step {
            Step::Fencing | Step::Demoting => replication.source == Some(primary.uuid),
            Step::Promoting => observed.record.acker(ordinal).is_some(),
            Step::Removing => false,
        });
    let attached = server.follows(primary.uuid).is_some();
    server.access == Access::Reads && replication.applier_error.is_none() && (attached || between)
}
