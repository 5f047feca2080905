//! Orders. Each carries the version that it rests on (R2) and its own
//! precondition, which the agent checks at the moment of acting.

use gtid::{GtidSet, Uuid};
use serde::{Deserialize, Serialize};

use crate::state::AgentState;

/// The record's label and version; only `version` is ever compared (R2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// Highest version of `status.ha` seen.
    pub version: u64,
    /// The epoch that belongs to it; a label.
    pub epoch: u64,
}

/// Where another instance is reached by this one's mysqld.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Instance name `<cluster>-<ordinal>`.
    pub instance: String,
    /// DNS name or address; the certificate must carry it.
    pub host: String,
    /// TCP port of mysqld.
    pub port: u16,
    /// The server's uuid; the agent refuses to follow another one.
    pub uuid: Uuid,
}

/// One order to one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Uid of the MySQLCluster; an agent of another cluster refuses.
    pub cluster_uid: String,
    /// Uuid of the server that the order is meant for; `None` only where there is no data yet.
    #[serde(default)]
    pub uuid: Option<Uuid>,
    /// The committed version that the order rests on. The agent fsyncs the
    /// highest one it has seen before it answers and refuses anything lower.
    pub stamp: Stamp,
    /// Accounts of these instances may replicate from this server; all other
    /// replication accounts are locked. Persisted by the agent (section 14).
    pub peers: Vec<String>,
    /// What to do.
    pub act: Act,
}

/// Everything an agent can be told to do to an instance. Every act is
/// idempotent: where its effect already holds, the answer is [`Outcome::Done`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Act {
    /// Create a new, empty data directory (in a temporary directory, renamed).
    /// Only on a volume that is empty or holds half an initialisation. Answers
    /// `Started`; afterwards the instance stands behind the gate.
    Initialise,
    /// Fill the volume from `donor` with the clone plugin. Only on a volume
    /// that is empty or holds half a clone, or after [`Act::Discard`]. Answers
    /// `Started`; afterwards the instance stands behind the gate.
    Clone {
        /// From whom.
        donor: Endpoint,
    },
    /// Open the gate: start mysqld read-only, offline, receivers stopped.
    Boot,
    /// Boot as the recorded primary of this epoch; no difference for mysqld,
    /// but refused when this agent acknowledged a self-fence at or after it.
    Resume,
    /// Replicate from `source`, with the replica's semi-sync OFF. Re-points
    /// without losing relay logs (fact 11).
    Follow {
        /// The primary.
        source: Endpoint,
        /// Refused when this server's executed ∪ received is not inside.
        within: GtidSet,
    },
    /// Switch the replica's semi-sync ON (receiver restarted): from now on this
    /// instance acknowledges. Only after the record lists it as an acker.
    Admit {
        /// Refused when the receiver is attached to another server.
        source: Uuid,
    },
    /// Stop the receiver and confirm "No", semi-sync OFF. The answer's state
    /// has R read after it. A gated or dead mysqld is fenced as it is.
    Fence,
    /// For the dead or living primary that is being deposed: SIGKILL mysqld if
    /// it runs (offline_mode first), persist "never resume this epoch".
    FenceSelf,
    /// Run the applier until everything received is applied; non-system
    /// sessions are killed when there is no progress. Answers `Started`.
    CatchUp,
    /// Become a source: executed ⊇ `until`, coordinator killed, RESET REPLICA
    /// ALL, source semi-sync ON with `k` (OFF when 0). Still read-only, offline.
    Promote {
        /// U of fo-3, or G of so-3.
        until: GtidSet,
        /// Acknowledgements to wait for.
        k: u32,
    },
    /// Set the source's semi-sync to ON with `k`, or OFF with 0, on a primary
    /// that stays. Raising and lowering follow R3.
    SemiSync {
        /// Acknowledgements to wait for.
        k: u32,
    },
    /// Serve writes: super_read_only, read_only and offline_mode off. Refused
    /// unless semi-sync is on with `k` (or `k` is 0) and no fence is persisted.
    Open {
        /// As recorded.
        k: u32,
    },
    /// Serve reads as a replica: offline_mode off; refused unless replicating.
    ServeReads,
    /// offline_mode on: no clients.
    CloseReads,
    /// so-3: super_read_only within the bound, else undone; client sessions
    /// killed; answers with the state after it, `Refused` if somebody blocks.
    Freeze {
        /// Id of the transition.
        id: String,
        /// Bound on waiting for running transactions.
        wait_milliseconds: u64,
    },
    /// Undo a freeze after the transition ended without a change of primary.
    Thaw {
        /// As recorded.
        k: u32,
    },
    /// SIGKILL mysqld; the instance is behind the gate afterwards.
    Kill,
    /// Clean shutdown of mysqld where it can do no harm (no waiters), else SIGKILL.
    Stop,
    /// Archive the tail raw (fsynced) under (uuid, epoch), write the undo
    /// marker, remove auto.cnf and the data; afterwards the volume is empty and
    /// the next order is a clone. Refused while mysqld runs, or without space.
    Discard {
        /// Epoch of the record that proves the tail unacknowledged.
        epoch: u64,
        /// What stays: the deposed record's `kept` ∪ the primary's set.
        kept: GtidSet,
    },
    /// E only in relay logs: archive them, RESET REPLICA ALL.
    DiscardRelayLogs {
        /// As in [`Act::Discard`].
        kept: GtidSet,
    },
    /// Create or update the application's account and database from the
    /// mounted Secret. Binlogged; only on an open primary.
    EnsureApp,
    /// Keep only these peers' replication accounts unlocked (see `Order::peers`).
    Peers,
}

/// Answer to an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What became of it.
    pub outcome: Outcome,
    /// The instance's state after it.
    pub state: AgentState,
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Outcome {
    /// The effect holds.
    Done,
    /// Accepted; `state.job` tells how it goes.
    Started,
    /// Not done, nothing changed (except the persisted version, unless stale).
    Refused {
        /// Which precondition failed.
        refusal: Refusal,
        /// A sentence with names and values.
        message: String,
    },
    /// Tried and failed; may be repeated.
    Failed {
        /// A sentence: what was being done, what the server said.
        message: String,
    },
}

/// Why an agent refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The order's version is below the highest seen (R2).
    Stale,
    /// Meant for another cluster or another server.
    NotMe,
    /// The volume or mysqld is not in the state that the act needs.
    WrongState,
    /// The server has transactions that the order does not cover.
    Errant,
    /// Somebody blocks (freeze), named in the message.
    Blocked,
    /// Not enough space for the archive.
    NoSpace,
    /// An act this agent does not know.
    Unknown,
}
