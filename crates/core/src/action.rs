//! Everything Katazuke can do to a cluster, one variant each. Performing them
//! is one match in the operator; printing them is a dry run.

use gtid::{GtidSet, Uuid};

use crate::observed::Role;
use crate::record::{Ordinal, Record};

/// One side effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Compare-and-swap the record to this value (R1).
    Record(Box<Record>),
    /// Order an agent; carries the record's version (R2).
    Order {
        /// To whom.
        to: Ordinal,
        /// For which server; `None` where there is no data yet.
        uuid: Option<Uuid>,
        /// What.
        directive: Directive,
    },
    /// Set or remove the role label of a Pod.
    Role {
        /// Which instance.
        of: Ordinal,
        /// `None` removes it.
        role: Option<Role>,
    },
    /// Create the claim, if it is missing, and the Pod of an instance.
    CreateInstance {
        /// Which.
        ordinal: Ordinal,
        /// Volume generation.
        generation: u32,
    },
    /// Delete a Pod, with its uid as precondition.
    DeletePod {
        /// Which instance.
        ordinal: Ordinal,
        /// Precondition.
        uid: String,
        /// Reason, for the event.
        why: String,
    },
}

/// What an agent is ordered to do; the agent's side is `wire::Act`.
#[derive(Debug, Clone, PartialEq)]
pub enum Directive {
    /// New data directory on an empty volume.
    Initialise,
    /// Clone from this instance onto an empty volume.
    Clone {
        /// Donor.
        donor: Ordinal,
        /// Its uuid.
        donor_uuid: Uuid,
    },
    /// Open the gate, read-only.
    Boot,
    /// Open the gate for the recorded primary.
    Resume,
    /// Replicate, ACKs off.
    Follow {
        /// Primary.
        source: Ordinal,
        /// Its uuid.
        source_uuid: Uuid,
        /// Precondition: R is inside.
        within: GtidSet,
    },
    /// ACKs on.
    Admit {
        /// The primary's uuid.
        source_uuid: Uuid,
    },
    /// Receiver stopped, ACKs off.
    Fence,
    /// mysqld killed, never resumes this epoch.
    FenceSelf,
    /// Apply everything received.
    CatchUp,
    /// Become a source with this k, still closed.
    Promote {
        /// Precondition: executed ⊇ this.
        until: GtidSet,
        /// Acknowledgements to wait for.
        k: u32,
    },
    /// Source semi-sync on with k, or off with 0.
    SemiSync {
        /// Acknowledgements to wait for.
        k: u32,
    },
    /// Serve writes.
    Open {
        /// As recorded.
        k: u32,
    },
    /// Serve reads.
    ServeReads,
    /// No clients.
    CloseReads,
    /// super_read_only within a bound.
    Freeze {
        /// The transition.
        id: String,
        /// Bound.
        wait_milliseconds: u64,
    },
    /// Clean shutdown where harmless, else SIGKILL.
    Stop,
    /// Archive the tail, empty the volume.
    Discard {
        /// The deposed record's epoch.
        epoch: u64,
        /// What the tail begins above.
        kept: GtidSet,
    },
    /// Archive and reset relay logs.
    DiscardRelayLogs {
        /// What they begin above.
        kept: GtidSet,
    },
    /// Application account.
    EnsureApp,
}

impl Directive {
    /// The word for it in logs, events, metrics and refusals.
    pub fn name(&self) -> &'static str {
        match self {
            Directive::Initialise => "Initialise",
            Directive::Clone { .. } => "Clone",
            Directive::Boot => "Boot",
            Directive::Resume => "Resume",
            Directive::Follow { .. } => "Follow",
            Directive::Admit { .. } => "Admit",
            Directive::Fence => "Fence",
            Directive::FenceSelf => "FenceSelf",
            Directive::CatchUp => "CatchUp",
            Directive::Promote { .. } => "Promote",
            Directive::SemiSync { .. } => "SemiSync",
            Directive::Open { .. } => "Open",
            Directive::ServeReads => "ServeReads",
            Directive::CloseReads => "CloseReads",
            Directive::Freeze { .. } => "Freeze",
            Directive::Stop => "Stop",
            Directive::Discard { .. } => "Discard",
            Directive::DiscardRelayLogs { .. } => "DiscardRelayLogs",
            Directive::EnsureApp => "EnsureApp",
        }
    }
}
