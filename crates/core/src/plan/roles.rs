//! The role label, which Services follow. Off first in a demotion, on last in
//! a promotion; a Pod whose role is not verified in this pass has none. The
//! label says what is, it never makes it so.

use crate::action::Action;
use crate::observed::{Access, Observed, Role, Server};
use crate::record::{Ordinal, Step};

/// Labels that differ from what was verified.
pub(super) fn changes(observed: &Observed) -> Vec<Action> {
    observed
        .instances
        .iter()
        .filter_map(|(ordinal, instance)| {
            let has = instance.pod.present()?.role;
            let role = verified(observed, *ordinal);
            (has != role).then_some(Action::Role { of: *ordinal, role })
        })
        .collect()
}

/// The role that an instance has been seen to play.
pub(crate) fn verified(observed: &Observed, ordinal: Ordinal) -> Option<Role> {
    let server = observed.server(ordinal)?;
    let primary = observed.record.primary.as_ref()?;
    let step = observed
        .record
        .transition
        .as_ref()
        .map(|transition| transition.step);
    if primary.ordinal == ordinal {
        let leaving = matches!(step, Some(Step::Fencing | Step::Demoting));
        return (server.uuid == primary.uuid && server.access == Access::Writes && !leaving)
            .then_some(Role::Primary);
    }
    let promoted = observed
        .record
        .transition
        .as_ref()
        .is_some_and(|transition| transition.to == Some(ordinal));
    (serves_reads(observed, server, step) && !(promoted && step == Some(Step::Promoting)))
        .then_some(Role::Replica)
}

/// While the ackers are fenced nobody follows anybody: readers stay where they are.
fn serves_reads(observed: &Observed, server: &Server, step: Option<Step>) -> bool {
    let Some(primary) = &observed.record.primary else {
        return false;
    };
    let Some(replication) = &server.replication else {
        return false;
    };
    let attached = server.follows(primary.uuid).is_some();
    let suspended = matches!(step, Some(Step::Fencing | Step::Demoting))
        && replication.source == Some(primary.uuid);
    server.access == Access::Reads && replication.applier_error.is_none() && (attached || suspended)
}
