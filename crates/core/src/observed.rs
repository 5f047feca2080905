//! What was seen of a cluster in one pass. Parsed at the border; times are
//! durations already, so that nothing here needs a clock. What could not be
//! seen is [`Seen::Unknown`], never absent.

use std::collections::{BTreeMap, BTreeSet};

use gtid::{GtidSet, Uuid};

use crate::record::{Acknowledge, Ordinal, Record};

/// Present, absent, or not seen. Nothing destructive may rest on `Unknown`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<T> {
    /// It is there.
    Present(T),
    /// It is proved not to be there.
    Absent,
    /// It could not be asked.
    Unknown(Silence),
}

/// How long and why nothing was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// Since the last word.
    pub milliseconds: u64,
    /// What was tried and how it failed.
    pub why: String,
}

impl<T> Seen<T> {
    /// The value, where there is one.
    pub fn present(&self) -> Option<&T> {
        match self {
            Seen::Present(value) => Some(value),
            Seen::Absent | Seen::Unknown(_) => None,
        }
    }

    /// True only where it is proved absent.
    pub fn is_absent(&self) -> bool {
        matches!(self, Seen::Absent)
    }
}

/// One pass's picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The cluster's name, for names in sentences.
    pub cluster: String,
    /// What the user wants, validated.
    pub spec: Spec,
    /// `status.ha`, read live.
    pub record: Record,
    /// Every instance that is wanted or exists.
    pub instances: BTreeMap<Ordinal, Instance>,
    /// A planned switchover that was asked for.
    pub request: Option<Request>,
}

/// The part of the spec that clustering depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Instances wanted.
    pub replicas: u32,
    /// Level of durability wanted.
    pub acknowledge: Acknowledge,
    /// Silence after which the primary is suspect.
    pub silence_milliseconds: u64,
    /// Rebuild without asking.
    pub rebuild: Rebuild,
    /// Whether to act at all.
    pub mode: Mode,
}

/// `spec.rebuild.policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuild {
    /// Proved-unneeded data may be archived and cloned anew.
    Auto,
    /// A human decides.
    Manual,
}

/// Whether and how to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Normal.
    Run,
    /// `spec.paused`: observe and report, act on nothing.
    Paused,
    /// `spec.offline`: stop all instances, keep the volumes.
    Offline,
    /// The resource is being deleted.
    Deleting,
}

/// A request by annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Repeating the same id repeats nothing.
    pub id: String,
    /// The wanted primary; `None`: the best replica.
    pub to: Option<Ordinal>,
}

/// One instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Its Pod.
    pub pod: Seen<Pod>,
    /// Its volume claim of the current generation.
    pub claim: Seen<Claim>,
    /// What its agent says.
    pub agent: Seen<Agent>,
    /// The last order that its agent refused at the record's version.
    pub refusal: Option<Refusal>,
}

/// A refused order; memory only, asked again after a restart of the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Name of the act.
    pub act: String,
    /// Version that the order carried.
    pub version: u64,
    /// The agent's sentence.
    pub message: String,
}

/// A Pod, as far as clustering cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// For preconditions.
    pub uid: String,
    /// It is being deleted.
    pub deleting: bool,
    /// All its containers have ended and will not start again, or its node is declared out of service.
    pub ended: bool,
    /// The role label that it has now.
    pub role: Option<Role>,
    /// It was built from another spec than the one wanted now.
    pub outdated: bool,
    /// Why it does not run, in the kubelet's or scheduler's words with names.
    pub trouble: Option<String>,
    /// Reason word of that trouble (`ImagePullBackOff`, `Unschedulable`, …).
    pub trouble_reason: Option<String>,
}

/// The role label of a Pod; Services follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Takes writes.
    Primary,
    /// Takes reads.
    Replica,
}

/// A volume claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Identifies the volume in `bootstrap`.
    pub uid: String,
    /// Number in its name.
    pub generation: u32,
}

/// What an agent says.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its life.
    pub incarnation: String,
    /// Highest version that it has persisted.
    pub seen_version: u64,
    /// Version at which it fenced itself.
    pub self_fenced: Option<u64>,
    /// Epochs in which it may have answered OK without k acknowledgements.
    pub not_strict: BTreeSet<u64>,
    /// The volume.
    pub volume: Volume,
    /// The process.
    pub mysqld: Mysqld,
    /// Its Pod got SIGTERM.
    pub terminating: bool,
    /// Long work under way, in words.
    pub job: Option<String>,
    /// How the last long work failed.
    pub job_failure: Option<String>,
    /// For how long these facts have been the same.
    pub settled_milliseconds: u64,
    /// Since its kept connection to mysqld last answered.
    pub unanswered_milliseconds: u64,
    /// Since its receiver last heard from the source; `None`: it follows nobody.
    pub source_silent_milliseconds: Option<u64>,
}

/// The data volume as its agent reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Volume {
    /// Locked by a predecessor: nothing known.
    Locked,
    /// No data.
    Empty,
    /// Half an initialisation.
    PartialInitialise,
    /// Half a clone, or an undo that has to go on with a clone.
    PartialClone,
    /// Data.
    Data(OnDisk),
    /// Not readable, in words.
    Unreadable(String),
}

/// Facts read from the files before boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDisk {
    /// From auto.cnf.
    pub uuid: Option<Uuid>,
    /// In the binlogs.
    pub binlog: GtidSet,
    /// In the relay logs.
    pub relay: GtidSet,
    /// The last two binlog files, oldest first.
    pub tail: Vec<Tail>,
    /// An undo was begun.
    pub undo: bool,
}

/// One of the last binlog files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// Its GTIDs.
    pub gtids: GtidSet,
    /// It holds a Stop event, or proves nothing because it cannot be parsed.
    pub stopped: bool,
}

/// The mysqld process.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a handful of values per pass, nearly all of them Running"
)]
pub enum Mysqld {
    /// Behind the gate.
    Gated {
        /// Starts in a row that ended before it answered, and the last error.
        failed_starts: u32,
        /// Last ERROR line.
        message: Option<String>,
    },
    /// Starting.
    Starting,
    /// Answering.
    Running(Server),
}

/// What a running server said.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// The agent's highest version when these facts were read.
    pub as_of_version: u64,
    /// @@server_uuid.
    pub uuid: Uuid,
    /// @@version, as numbers.
    pub version: (u16, u16, u16),
    /// gtid_executed.
    pub executed: GtidSet,
    /// GTIDs of the last binlog file, waiters included.
    pub last_binlog: GtidSet,
    /// End of the binlog.
    pub binlog_end: Position,
    /// Confirmed super_read_only (fact 9).
    pub access: Access,
    /// Source side: `None` when off, else k.
    pub semi_sync: Option<u32>,
    /// Sessions wait for an ACK.
    pub waiters: bool,
    /// Replica side.
    pub replication: Option<Replication>,
    /// Forced settings that are not as forced, in words.
    pub drift: Vec<String>,
    /// The application's account exists.
    pub app_ready: bool,
}

/// Whom a server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// offline_mode, read-only.
    Closed,
    /// Online, read-only.
    Reads,
    /// Online, writable.
    Writes,
    /// Writable but offline: between the two statements of opening.
    Opening,
}

/// A place in a binlog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Number of the file.
    pub file: u64,
    /// Offset.
    pub offset: u64,
}

/// The receiver thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    /// Attached.
    Yes,
    /// Trying: not stopped.
    Connecting,
    /// Stopped, confirmed.
    No,
}

/// Replica side.
#[derive(Debug, Clone, PartialEq)]
pub struct Replication {
    /// Uuid of the source.
    pub source: Option<Uuid>,
    /// Receiver.
    pub receiver: Receiver,
    /// Applier runs.
    pub applier: bool,
    /// Retrieved_Gtid_Set.
    pub retrieved: GtidSet,
    /// Received up to here.
    pub position: Position,
    /// ACKs are switched on.
    pub semi_sync_enabled: bool,
    /// ACKs are being sent.
    pub semi_sync_active: bool,
    /// Lag.
    pub lag_seconds: Option<u64>,
    /// Last errors, receiver's or applier's.
    pub receiver_error: Option<String>,
    /// Applier's last error.
    pub applier_error: Option<String>,
}

impl Agent {
    /// The running server.
    pub fn server(&self) -> Option<&Server> {
        match &self.mysqld {
            Mysqld::Running(server) => Some(server),
            Mysqld::Gated { .. } | Mysqld::Starting => None,
        }
    }

    /// The files, while no mysqld changes them.
    pub fn gated_data(&self) -> Option<&OnDisk> {
        match (&self.mysqld, &self.volume) {
            (Mysqld::Gated { .. }, Volume::Data(data)) => Some(data),
            (Mysqld::Gated { .. } | Mysqld::Starting | Mysqld::Running(_), _) => None,
        }
    }

    /// R: everything this server has, executed or received, always both (section 1).
    pub fn received(&self) -> Option<GtidSet> {
        if let Some(server) = self.server() {
            return Some(server.received());
        }
        self.gated_data().map(|data| data.binlog.union(&data.relay))
    }

    /// The uuid of its data.
    pub fn uuid(&self) -> Option<Uuid> {
        self.server()
            .map(|server| server.uuid)
            .or_else(|| self.gated_data().and_then(|data| data.uuid))
    }
}

impl Server {
    /// executed ∪ retrieved.
    pub fn received(&self) -> GtidSet {
        match &self.replication {
            Some(replication) => self.executed.union(&replication.retrieved),
            None => self.executed.clone(),
        }
    }

    /// Everything a replica may legitimately have: executed and the waiters, which are only in the last file.
    pub fn written(&self) -> GtidSet {
        self.executed.union(&self.last_binlog)
    }

    /// Attached to this source by a running receiver.
    pub fn follows(&self, source: Uuid) -> Option<&Replication> {
        self.replication
            .as_ref()
            .filter(|r| r.source == Some(source) && r.receiver == Receiver::Yes)
    }
}

impl Observed {
    /// The agent of an instance, where it answers.
    pub fn agent(&self, ordinal: Ordinal) -> Option<&Agent> {
        self.instances
            .get(&ordinal)
            .and_then(|instance| instance.agent.present())
    }

    /// The running server of an instance.
    pub fn server(&self, ordinal: Ordinal) -> Option<&Server> {
        self.agent(ordinal).and_then(Agent::server)
    }

    /// The recorded primary's running server, if it is the recorded one.
    pub fn primary_server(&self) -> Option<&Server> {
        let primary = self.record.primary.as_ref()?;
        self.server(primary.ordinal)
            .filter(|server| server.uuid == primary.uuid)
    }

    /// `<cluster>-<ordinal>`.
    pub fn name(&self, ordinal: Ordinal) -> String {
        format!("{}-{ordinal}", self.cluster)
    }

    /// Names in one sentence: `shop-1, shop-2`.
    pub fn names(&self, ordinals: impl IntoIterator<Item = Ordinal>) -> String {
        ordinals
            .into_iter()
            .map(|ordinal| self.name(ordinal))
            .collect::<Vec<_>>()
            .join(", ")
    }
}
