//! judge: what situation is this cluster in? Named situations in written
//! priority order. Never decides what to do, never reads Pod readiness as a
//! proof of anything.

use crate::observed::Observed;

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

/// Judges.
pub fn judge(_observed: &Observed) -> Judgement {
    Judgement { situation: Situation::Bootstrapping, why: String::new() }
}
