//! plan: the switchboard. Total, pure, one safe step per pass.

use crate::action::Action;
use crate::observed::Observed;
use crate::situation::Judgement;

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

/// Plans.
pub fn plan(_observed: &Observed, _judgement: &Judgement) -> Plan {
    Plan::Settled
}
