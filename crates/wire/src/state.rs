//! What an agent says about its instance. Facts only; what they mean is judged
//! by the operator's core.

use gtid::{GtidSet, Uuid};
use serde::{Deserialize, Serialize};

use crate::order::Stamp;

/// One line of the watch stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Full state, when it changed; `None` is a heartbeat.
    #[serde(default)]
    pub state: Option<Box<AgentState>>,
    /// Milliseconds since the kept connection last answered; 0 without a mysqld.
    #[serde(default)]
    pub unanswered_milliseconds: u64,
    /// Milliseconds, on the agent's monotonic clock, since the receiver last
    /// heard from its source (heartbeat count or position moved). `None` when
    /// this instance follows nobody.
    #[serde(default)]
    pub source_silent_milliseconds: Option<u64>,
}

/// Everything an agent knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// Pod name.
    pub instance: String,
    /// Version of the agent's program.
    pub agent_version: String,
    /// Uid of the cluster it serves.
    pub cluster_uid: String,
    /// Kernel boot id and a token in memory: changes with reboot, node loss or a new Pod.
    pub incarnation: String,
    /// Grows with every change, within one life of the agent's program: a state
    /// with a lower one is older.
    #[serde(default)]
    pub sequence: u64,
    /// Highest version seen, persisted.
    pub seen: Stamp,
    /// The version at which this agent fenced itself; it never resumes an epoch at or below.
    #[serde(default)]
    pub self_fenced: Option<Stamp>,
    /// Epochs in which this server may have answered OK without `k` acknowledgements.
    #[serde(default)]
    pub not_strict: Vec<u64>,
    /// The data volume.
    pub volume: Volume,
    /// The mysqld process.
    pub mysqld: Mysqld,
    /// SIGTERM was received: the Pod is being deleted.
    #[serde(default)]
    pub terminating: bool,
    /// A long piece of work under way.
    #[serde(default)]
    pub job: Option<Job>,
    /// How the last long piece of work failed, until one succeeds.
    #[serde(default)]
    pub job_failure: Option<String>,
    /// Space on the data volume.
    #[serde(default)]
    pub disk: Disk,
    /// Tails that were archived on this volume.
    #[serde(default)]
    pub archives: Vec<Archive>,
}

/// The data volume, as read without a running mysqld.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Volume {
    /// Another process holds the volume's lock; nothing was read.
    Locked,
    /// No data.
    Empty,
    /// Half an initialisation or half a clone: never joins, is started again.
    Partial {
        /// What was under way.
        what: JobKind,
    },
    /// A data directory.
    Data {
        /// What is on it. Read before boot; refreshed after each exit of mysqld.
        on_disk: OnDisk,
    },
    /// Could not be read: never taken for empty.
    Unreadable {
        /// A sentence.
        message: String,
    },
}

/// Facts read from the files of a data directory, before boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnDisk {
    /// From auto.cnf; `None` after an undone tail, before the next boot.
    pub uuid: Option<Uuid>,
    /// GTIDs of the binlogs: the last file's Previous_gtids, and the GTIDs of the last two files.
    pub binlog: GtidSet,
    /// GTIDs in the relay logs, including what was applied already.
    pub relay: GtidSet,
    /// The last two binlog files, oldest first.
    pub tail: Vec<Tail>,
    /// An undo was begun and is not finished.
    #[serde(default)]
    pub undo: Option<Undo>,
}

/// One of the last binlog files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// File name.
    pub file: String,
    /// GTIDs that begin in this file, in order of the file.
    pub gtids: GtidSet,
    /// In-use flag: 1 after a crash, 0 after a clean end or a finished recovery (fact 4).
    pub in_use: bool,
    /// The file holds a Stop event: a clean shutdown, which may have answered OK (fact 5).
    pub stopped: bool,
    /// Encrypted or not parsable: proves nothing.
    pub unparsable: bool,
}

/// The durable marker of an undo under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The server whose tail is undone.
    pub uuid: Uuid,
    /// Epoch of the deposed record.
    pub epoch: u64,
    /// What stays.
    pub kept: GtidSet,
}

/// The mysqld process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Mysqld {
    /// Not running: behind the start gate.
    Gated {
        /// How it last ended, if it ran under this agent.
        #[serde(default)]
        last_exit: Option<Exit>,
    },
    /// Started, not yet answering.
    Starting,
    /// Answers on the kept connection.
    Running {
        /// What it said last.
        server: Box<Server>,
    },
}

/// How mysqld ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code, when it exited.
    #[serde(default)]
    pub code: Option<i32>,
    /// Signal, when it was killed.
    #[serde(default)]
    pub signal: Option<i32>,
    /// The last ERROR line of its log, if any.
    #[serde(default)]
    pub message: Option<String>,
    /// Exits in a row before it ever answered: a broken my.cnf, a damaged volume.
    #[serde(default)]
    pub failed_starts: u32,
}

/// What a running server says (only @@variables, SHOW STATUS, SHOW REPLICA STATUS).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// Highest version seen when the poll that read these facts *began*: facts
    /// with `as_of.version >= v` were read after the order of version v was obeyed.
    #[serde(default)]
    pub as_of: Stamp,
    /// @@server_uuid.
    pub uuid: Uuid,
    /// @@version.
    pub version: String,
    /// @@gtid_executed.
    pub executed: GtidSet,
    /// True when a SET super_read_only=1 has returned, or the boot set it; not the variable (fact 9).
    pub read_only: bool,
    /// @@offline_mode.
    pub offline: bool,
    /// End of the binlog, past the waiters (fact 24).
    pub binlog_end: BinlogPosition,
    /// GTIDs of the last binlog file, waiters included; read after `executed`.
    pub last_binlog_gtids: GtidSet,
    /// Source side of semi-sync.
    pub semi_sync: SemiSyncSource,
    /// Replica side, when a source is configured.
    #[serde(default)]
    pub replication: Option<Replication>,
    /// Forced settings whose value at run time is another one.
    #[serde(default)]
    pub drift: Vec<Drift>,
    /// Client connections, without system and agent.
    #[serde(default)]
    pub clients: u32,
    /// The application's account was made or updated from the mounted Secret.
    #[serde(default)]
    pub app_ready: bool,
}

/// A place in the binlog of the server that wrote it. Ordered.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BinlogPosition {
    /// Number of the file (`binlog.000012` is 12).
    pub file: u64,
    /// Offset in bytes.
    pub offset: u64,
}

/// Source side of semi-sync.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemiSyncSource {
    /// rpl_semi_sync_source_enabled.
    pub enabled: bool,
    /// rpl_semi_sync_source_wait_for_replica_count.
    pub k: u32,
    /// Sessions waiting; zero or not is meaningful, the number is not.
    pub waiting: u32,
    /// Rpl_semi_sync_source_no_tx: commits that were not acknowledged.
    pub no_tx: u64,
}

/// State of the receiver thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receiver {
    /// Attached.
    Yes,
    /// Trying; *not* stopped.
    Connecting,
    /// Stopped, confirmed.
    No,
}

/// Replica side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replication {
    /// Uuid of the source, once it was attached.
    #[serde(default)]
    pub source: Option<Uuid>,
    /// Configured host.
    pub host: String,
    /// Receiver thread.
    pub receiver: Receiver,
    /// Applier (coordinator) runs.
    pub applier: bool,
    /// Retrieved_Gtid_Set. R is executed ∪ this, always both.
    pub retrieved: GtidSet,
    /// How far in the source's binlog it has received.
    pub position: BinlogPosition,
    /// rpl_semi_sync_replica_enabled.
    pub semi_sync_enabled: bool,
    /// Rpl_semi_sync_replica_status.
    pub semi_sync_active: bool,
    /// Seconds behind, as far as the server knows.
    #[serde(default)]
    pub lag_seconds: Option<u64>,
    /// Last receiver error.
    #[serde(default)]
    pub receiver_error: Option<String>,
    /// Last applier error.
    #[serde(default)]
    pub applier_error: Option<String>,
}

/// A forced setting that is not as forced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// Variable.
    pub name: String,
    /// Forced value.
    pub want: String,
    /// Value at run time.
    pub have: String,
}

/// Kind of a long piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobKind {
    /// A new data directory.
    Initialise,
    /// Clone from a donor.
    Clone,
    /// Waiting for the applier.
    CatchUp,
    /// Archive and empty the volume.
    Discard,
}

/// A long piece of work under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Which.
    pub kind: JobKind,
    /// Stage, in words, changes as it makes progress.
    pub stage: String,
    /// Percent, where known.
    #[serde(default)]
    pub percent: Option<u8>,
}

/// Space on the data volume, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Size.
    pub total_bytes: u64,
    /// Free.
    pub free_bytes: u64,
}

/// An archived tail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archive {
    /// File or directory name, below the agent's archive directory.
    pub name: String,
    /// The server that wrote it.
    pub uuid: Uuid,
    /// Epoch of the deposed record.
    pub epoch: u64,
    /// What is in it.
    pub gtids: GtidSet,
    /// Size.
    pub bytes: u64,
}
