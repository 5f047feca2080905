//! The durable truth of a cluster's clustering, `status.ha` (section 2). Every
//! change is a new value with a higher version, written by compare-and-swap
//! (R1). Nothing here is ever stronger than what the servers enforce (R3).

use gtid::{GtidSet, Uuid};
use serde::{Deserialize, Serialize};

/// An instance's number: `<cluster>-<ordinal>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ordinal(pub u32);

impl std::fmt::Display for Ordinal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// `Received` or `Fsynced` (section 3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acknowledge {
    /// An ACK says that the relay log was written: proof as long as the incarnation lives.
    #[default]
    Received,
    /// An ACK says that the relay log was fsynced: proof as long as the disk lives.
    Fsynced,
}

/// A server in one life of its memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    /// Which instance.
    pub ordinal: Ordinal,
    /// Which data.
    pub uuid: Uuid,
    /// Which life: changes with reboot, node loss or a new Pod.
    pub incarnation: String,
}

/// What a transition is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// The primary is lost (section 6).
    Failover,
    /// The primary hands over (section 7).
    Switchover,
    /// The acker set changes (R5).
    Reconfigure,
}

/// How far a transition has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// fo-1 to fo-4: the ackers are stopped, the candidate is chosen.
    Fencing,
    /// so-2, so-3: the primary is frozen.
    Demoting,
    /// fo-6, so-5: the new primary is recorded and is being opened.
    Promoting,
    /// R5: members leave.
    Removing,
}

/// A step that was begun and has to be finished or undone, whoever leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// Names it in orders, events and logs; the request's id for a switchover.
    pub id: String,
    /// What for.
    pub kind: Kind,
    /// How far.
    pub step: Step,
    /// The version that began this step: facts count from there on.
    pub since: u64,
    /// The primary that is left.
    pub from: Option<Ordinal>,
    /// The primary to be.
    pub to: Option<Ordinal>,
    /// Members that leave the acker set.
    pub out: Vec<Ordinal>,
}

/// A server that was primary and may hold what nobody else has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deposed {
    /// Its uuid; never elected while this record is open.
    pub uuid: Uuid,
    /// The epoch that it lost.
    pub epoch: u64,
    /// U of fo-3 or G of so-3: what of it was kept.
    pub kept: GtidSet,
    /// Whether everything it answered OK is in `kept` (fo-5).
    pub strict: bool,
    /// Why it was deposed.
    pub why: String,
}

/// Which volume is being initialised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// The instance.
    pub instance: Ordinal,
    /// Uid of its claim.
    pub volume: String,
}

/// The volume generation of an instance that was rebuilt; 0 where none is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// The instance.
    pub ordinal: Ordinal,
    /// Number in `data-<cluster>-<ordinal>-<generation>`.
    pub generation: u32,
}

/// `status.ha`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Raised by every change (R1). 0: nothing was ever recorded.
    pub version: u64,
    /// Raised by a change of primary, an abort, and the CAS that leaves k = 0.
    pub epoch: u64,
    /// Who may be written to.
    pub primary: Option<Member>,
    /// Acknowledgements that a commit waits for.
    pub k: u32,
    /// What an acknowledgement proves.
    pub acknowledge: Acknowledge,
    /// K: only these can acknowledge.
    pub ackers: Vec<Member>,
    /// Every acknowledged write up to the last change of primary is in here.
    pub watermark: GtidSet,
    /// What is under way.
    pub transition: Option<Transition>,
    /// Former primaries, until verified.
    pub deposed: Vec<Deposed>,
    /// Initialisation under way.
    pub bootstrap: Option<Bootstrap>,
    /// Rebuilt instances.
    pub generations: Vec<Generation>,
    /// The last switchover request that was dealt with (done or refused), so
    /// that a re-applied annotation repeats nothing.
    pub handled_request: Option<String>,
}

impl Record {
    /// The next version of this record (R1).
    #[must_use]
    pub fn next(&self) -> Record {
        Record {
            version: self.version + 1,
            ..self.clone()
        }
    }

    /// The acker with this ordinal.
    pub fn acker(&self, ordinal: Ordinal) -> Option<&Member> {
        self.ackers.iter().find(|member| member.ordinal == ordinal)
    }

    /// The recorded primary's ordinal.
    pub fn primary_ordinal(&self) -> Option<Ordinal> {
        self.primary.as_ref().map(|primary| primary.ordinal)
    }

    /// The latest open record of a deposed server.
    pub fn deposed(&self, uuid: Uuid) -> Option<&Deposed> {
        self.deposed
            .iter()
            .filter(|deposed| deposed.uuid == uuid)
            .max_by_key(|deposed| deposed.epoch)
    }

    /// The volume generation of an instance.
    pub fn generation(&self, ordinal: Ordinal) -> u32 {
        self.generations
            .iter()
            .find(|entry| entry.ordinal == ordinal)
            .map_or(0, |entry| entry.generation)
    }
}
