//! What is on a volume: what survives the end of a process, and what of it
//! survives the loss of power. Never decides anything.

use std::collections::BTreeSet;

use gtid::{GtidSet, Interval, Uuid};
use katazuke_core::observed::{OnDisk, Position, Tail, Volume as Said};
use katazuke_core::record::Ordinal;

/// A transaction: who wrote it first, and its number there.
pub(crate) type Tx = (Uuid, u64);

/// Adds one transaction to a set.
pub(crate) fn add(set: &mut GtidSet, tx: Tx) {
    if let Some(interval) = Interval::new(tx.1, tx.1) {
        set.insert_interval(tx.0, None, interval);
    }
}

/// Whether a set holds a transaction.
pub(crate) fn has(set: &GtidSet, tx: Tx) -> bool {
    gtid::Gtid::new(tx.0, None, tx.1).is_some_and(|gtid| set.contains_gtid(&gtid))
}

/// A set of these transactions.
pub(crate) fn set(all: impl IntoIterator<Item = Tx>) -> GtidSet {
    let mut set = GtidSet::new();
    for tx in all {
        add(&mut set, tx);
    }
    set
}

/// One binlog file.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Index of its first transaction in the log.
    pub(crate) first: usize,
    /// A Stop event ends it.
    pub(crate) stopped: bool,
}

/// A received transaction that is not applied yet.
#[derive(Debug, Clone)]
pub(crate) struct Relayed {
    pub(crate) tx: Tx,
    pub(crate) synced: bool,
}

/// A data directory.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    pub(crate) uuid: Uuid,
    /// Came by clone: executed, and in no binlog here (gtid_purged).
    pub(crate) base: GtidSet,
    /// The binlog, fsynced with every transaction.
    pub(crate) log: Vec<Tx>,
    pub(crate) files: Vec<File>,
    /// base and log.
    pub(crate) logged: GtidSet,
    /// Relay logs: what is not applied yet.
    pub(crate) relay: Vec<Relayed>,
    /// The configured source.
    pub(crate) source: Option<Source>,
}

/// Replication's configuration; survives a restart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// Its name: whoever runs there is attached to.
    pub(crate) ordinal: Ordinal,
    /// Who it was when last attached.
    pub(crate) uuid: Option<Uuid>,
    /// Who was ordered: the agent lets go of anybody else, if it is soon.
    pub(crate) wanted: Uuid,
    /// When that was ordered.
    pub(crate) ordered: u64,
}

impl Data {
    pub(crate) fn new(uuid: Uuid, base: GtidSet) -> Data {
        Data {
            uuid,
            logged: base.clone(),
            base,
            log: Vec::new(),
            files: vec![File {
                first: 0,
                stopped: false,
            }],
            relay: Vec::new(),
            source: None,
        }
    }

    pub(crate) fn append(&mut self, tx: Tx) {
        self.log.push(tx);
        add(&mut self.logged, tx);
    }

    pub(crate) fn relayed(&self) -> GtidSet {
        set(self.relay.iter().map(|relayed| relayed.tx))
    }

    /// R: everything.
    pub(crate) fn received(&self) -> GtidSet {
        self.logged.union(&self.relayed())
    }

    /// Place in the binlog behind its first `index` transactions.
    pub(crate) fn place(&self, index: usize) -> Position {
        let file = self.files.iter().rposition(|file| file.first <= index);
        let file = file.unwrap_or(0);
        let first = self.files.get(file).map_or(0, |file| file.first);
        Position {
            file: file as u64 + 1,
            offset: 200 + 100 * (index - first) as u64,
        }
    }

    pub(crate) fn end(&self) -> Position {
        self.place(self.log.len())
    }

    /// GTIDs of the last file.
    pub(crate) fn last_file(&self) -> GtidSet {
        let first = self.files.last().map_or(0, |file| file.first);
        set(self.log.iter().skip(first).copied())
    }

    fn tail(&self) -> Vec<Tail> {
        let from = self.files.len().saturating_sub(2);
        let last_two = self.files.iter().enumerate().skip(from);
        last_two
            .map(|(number, file)| {
                let end = self
                    .files
                    .get(number + 1)
                    .map_or(self.log.len(), |f| f.first);
                Tail {
                    gtids: set(self.log.iter().take(end).skip(file.first).copied()),
                    stopped: file.stopped,
                }
            })
            .collect()
    }

    fn on_disk(&self) -> OnDisk {
        OnDisk {
            uuid: Some(self.uuid),
            binlog: self.logged.clone(),
            relay: self.relayed(),
            tail: self.tail(),
            undo: false,
        }
    }
}

/// What a volume holds.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Empty,
    Data(Box<Data>),
}

/// The agent's own files: fsynced before anything is answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noted {
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    /// (version, epoch).
    pub(crate) self_fenced: Option<(u64, u64)>,
    pub(crate) not_strict: BTreeSet<u64>,
    pub(crate) peers: BTreeSet<Ordinal>,
}

/// One volume.
#[derive(Debug, Clone)]
pub(crate) struct Volume {
    /// The process that holds the lock.
    pub(crate) lock: Option<usize>,
    pub(crate) content: Content,
    pub(crate) noted: Noted,
}

impl Volume {
    pub(crate) fn empty() -> Volume {
        Volume {
            lock: None,
            content: Content::Empty,
            noted: Noted::default(),
        }
    }

    pub(crate) fn data(&self) -> Option<&Data> {
        match &self.content {
            Content::Data(data) => Some(data),
            Content::Empty => None,
        }
    }

    pub(crate) fn data_mut(&mut self) -> Option<&mut Data> {
        match &mut self.content {
            Content::Data(data) => Some(data),
            Content::Empty => None,
        }
    }

    /// As an agent reads it before boot.
    pub(crate) fn said(&self) -> Said {
        match &self.content {
            Content::Empty => Said::Empty,
            Content::Data(data) => Said::Data(data.on_disk()),
        }
    }

    /// Power is lost: a random part of what was not fsynced is gone.
    pub(crate) fn lose_power(&mut self, rng: &mut fastrand::Rng) -> bool {
        let Some(data) = self.data_mut() else {
            return false;
        };
        let synced = data
            .relay
            .iter()
            .take_while(|relayed| relayed.synced)
            .count();
        let kept = rng.usize(synced..=data.relay.len());
        let lost = kept < data.relay.len();
        data.relay.truncate(kept);
        lost
    }
}
