//! plan: the switchboard. Total, pure, one safe step per pass. What could not
//! be seen is never taken for gone; a promotion needs the proof that the acker
//! set is fenced, as a type ([`crate::semisync::Fenced`]).

mod bootstrap;
mod failover;
mod join;
mod pods;
mod primary;
mod reconfigure;
mod roles;
mod switchover;

use crate::action::{Action, Directive};
use crate::observed::Observed;
use crate::record::{Ordinal, Record};
use crate::situation::{Judgement, Situation};

pub(crate) use roles::{first_wrong as wrongly_labelled, verified as verified_role};
pub(crate) use switchover::hindrance as switchover_hindrance;

/// What to do in this pass.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// All is as wanted: no writes.
    Settled,
    /// These side effects, independent of each other. A plan that changes the
    /// record holds no order (orders carry only committed versions, R2).
    Do(Vec<Action>),
    /// Nothing can be done before something changes; the sentence names the gate.
    Wait(String),
    /// Nothing will be done before a human decides; the sentence says what to do.
    NeedsHuman(String),
}

/// The switchboard.
pub fn plan(observed: &Observed, judgement: &Judgement) -> Plan {
    let steps = match judgement.situation {
        Situation::Deleting | Situation::Paused => return Plan::Wait(judgement.why.clone()),
        Situation::StatusBehind => return Plan::NeedsHuman(judgement.why.clone()),
        Situation::Offline => pods::offline(observed),
        Situation::Bootstrapping => bootstrap::plan(observed),
        Situation::FailingOver => failover::plan(observed),
        Situation::SwitchingOver => switchover::plan(observed),
        Situation::Promoting => primary::promote(observed),
        // Before fo-5 the old primary may go on, whatever keeps the failover from going on.
        Situation::Blocked
        | Situation::Diverged
        | Situation::AckedDataMissing
        | Situation::ApplierBroken => failover::blocked(observed),
        Situation::PrimaryUnclear => Steps::default(),
        Situation::Resuming => primary::resume(observed),
        Situation::Opening
        | Situation::WritesWaiting
        | Situation::Degraded
        | Situation::Healthy => serving(observed),
    };
    let mut actions = steps.finish();
    if judgement.situation != Situation::Offline {
        actions.extend(pods::missing(observed));
    }
    actions.extend(roles::changes(observed));
    match (actions.is_empty(), judgement.situation) {
        (false, _) => Plan::Do(actions),
        (true, Situation::Diverged | Situation::AckedDataMissing | Situation::ApplierBroken) => {
            Plan::NeedsHuman(judgement.why.clone())
        }
        (true, Situation::Healthy | Situation::Offline) => Plan::Settled,
        (
            true,
            Situation::Deleting
            | Situation::StatusBehind
            | Situation::Paused
            | Situation::Bootstrapping
            | Situation::FailingOver
            | Situation::SwitchingOver
            | Situation::Promoting
            | Situation::Blocked
            | Situation::PrimaryUnclear
            | Situation::Resuming
            | Situation::Opening
            | Situation::WritesWaiting
            | Situation::Degraded,
        ) => Plan::Wait(judgement.why.clone()),
    }
}

/// The primary runs: open it, attach the others, follow the spec. The first
/// change of the record wins; orders wait for it.
fn serving(observed: &Observed) -> Steps {
    let mut steps = Steps::default();
    steps.record(
        reconfigure::finish(observed)
            .or_else(|| switchover::begin(observed))
            .or_else(|| reconfigure::begin(observed))
            .or_else(|| join::admit(observed))
            .or_else(|| primary::raise_k(observed))
            .or_else(|| join::close_deposed(observed)),
    );
    steps.extend(primary::serve(observed));
    steps.extend(join::others(observed));
    steps.extend(pods::restarts(observed));
    steps
}

/// Actions of a pass under collection.
#[derive(Debug, Default)]
struct Steps {
    record: Option<Record>,
    others: Vec<Action>,
}

impl Steps {
    fn record(&mut self, record: Option<Record>) {
        if self.record.is_none() {
            self.record = record;
        }
    }

    fn order(&mut self, observed: &Observed, to: Ordinal, directive: Directive) {
        let uuid = observed.agent(to).and_then(crate::observed::Agent::uuid);
        self.others.push(Action::Order {
            to,
            uuid,
            directive,
        });
    }

    /// A Pod is deleted once, for the first reason that is found.
    fn push(&mut self, action: Action) {
        let twice = matches!(&action, Action::DeletePod { ordinal, .. } if self.deletes(*ordinal));
        if !twice {
            self.others.push(action);
        }
    }

    fn deletes(&self, of: Ordinal) -> bool {
        self.others
            .iter()
            .any(|action| matches!(action, Action::DeletePod { ordinal, .. } if *ordinal == of))
    }

    fn extend(&mut self, more: Steps) {
        self.record(more.record);
        for action in more.others {
            self.push(action);
        }
    }

    /// R2: where the record changes, orders wait for the committed version.
    fn finish(self) -> Vec<Action> {
        let Steps { record, mut others } = self;
        if let Some(record) = record {
            others.retain(|action| !matches!(action, Action::Order { .. }));
            others.insert(0, Action::Record(Box::new(record)));
        }
        others
    }
}
