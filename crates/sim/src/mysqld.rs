//! The agent's process and the mysqld under it: what is in memory, and how a
//! commit waits (AFTER_SYNC). Facts are those of docs, measured on MySQL 9.7.

use std::collections::BTreeSet;

use gtid::{GtidSet, Uuid};
use katazuke_core::observed::{
    Access, Mysqld as Said, Position, Receiver, Replication, Server as Told, Volume as SaidVolume,
};
use katazuke_core::record::Ordinal;

use crate::disk::{Data, Tx, add};

/// Who waits for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    Client,
    /// The agent's own EnsureApp.
    Account,
}

/// A commit that waits for acknowledgements: in the binlog, not in the engine.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) tx: Tx,
    /// Its index in the log.
    pub(crate) index: usize,
    pub(crate) acks: BTreeSet<Ordinal>,
    pub(crate) writer: Writer,
}

/// An attached receiver's connection.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    /// The source's process and which of its mysqlds.
    pub(crate) process: usize,
    pub(crate) run: u64,
    /// Declared itself semi-sync when it attached.
    pub(crate) acknowledges: bool,
    /// Next index of the source's log.
    pub(crate) next: usize,
}

/// super_read_only is being set.
#[derive(Debug, Clone)]
pub(crate) struct Freezing {
    pub(crate) until: u64,
    pub(crate) then: Then,
}

/// What comes after it.
#[derive(Debug, Clone)]
pub(crate) enum Then {
    /// so-3: the order is answered.
    Answer(crate::agent::Asked),
    /// A clean shutdown; at the bound SIGKILL.
    Shutdown(Option<crate::agent::Asked>),
}

/// A running mysqld.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are mysqld's own switches, each read by its name"
)]
pub(crate) struct Server {
    pub(crate) run: u64,
    pub(crate) read_only: bool,
    pub(crate) offline: bool,
    /// Source side.
    pub(crate) k: Option<u32>,
    pub(crate) waiting: Vec<Waiting>,
    /// Replica side.
    pub(crate) receiver: Receiver,
    pub(crate) receiver_error: Option<String>,
    pub(crate) applier: bool,
    pub(crate) acks_on: bool,
    pub(crate) connection: Option<Connection>,
    pub(crate) retrieved: GtidSet,
    pub(crate) position: Position,
    /// When the receiver last heard something.
    pub(crate) heard: u64,
    /// SIGSTOP until.
    pub(crate) frozen_until: u64,
    /// The applier holds until.
    pub(crate) stalled_until: u64,
    /// Opened in this epoch.
    pub(crate) serving: Option<u64>,
    pub(crate) freezing: Option<Freezing>,
    pub(crate) app_ready: bool,
    /// Replication accounts that are not locked.
    pub(crate) peers: BTreeSet<Ordinal>,
}

impl Server {
    /// A boot: recovery has committed what is in the binlog; read-only, offline, receivers stopped.
    pub(crate) fn boot(run: u64, data: &mut Data, now: u64) -> Server {
        data.files.push(crate::disk::File {
            first: data.log.len(),
            stopped: false,
        });
        Server {
            run,
            read_only: true,
            offline: true,
            k: None,
            waiting: Vec::new(),
            receiver: Receiver::No,
            receiver_error: None,
            applier: false,
            acks_on: false,
            connection: None,
            retrieved: data.relayed(),
            position: Position::default(),
            heard: now,
            frozen_until: 0,
            stalled_until: 0,
            serving: None,
            freezing: None,
            app_ready: false,
            peers: BTreeSet::new(),
        }
    }

    /// gtid_executed: not the waiters.
    pub(crate) fn executed(&self, data: &Data) -> GtidSet {
        if self.waiting.is_empty() {
            return data.logged.clone();
        }
        data.logged.subtract(&crate::disk::set(
            self.waiting.iter().map(|waiting| waiting.tx),
        ))
    }

    pub(crate) fn received(&self, data: &Data) -> GtidSet {
        self.executed(data).union(&self.retrieved)
    }

    pub(crate) fn access(&self) -> Access {
        match (self.read_only, self.offline) {
            (true, true) => Access::Closed,
            (true, false) => Access::Reads,
            (false, false) => Access::Writes,
            (false, true) => Access::Opening,
        }
    }

    /// Commits that have enough acknowledgements, in order; with their count.
    pub(crate) fn release(&mut self) -> Vec<Waiting> {
        let needed = self.k.unwrap_or(0) as usize;
        let ready = self
            .waiting
            .iter()
            .take_while(|waiting| waiting.acks.len() >= needed)
            .count();
        self.waiting.drain(..ready).collect()
    }

    /// The next transaction that this server writes.
    pub(crate) fn next_tx(data: &Data) -> Tx {
        let own = data.logged.only(data.uuid).count();
        (data.uuid, u64::try_from(own).unwrap_or(u64::MAX) + 1)
    }

    /// A statement reaches the binlog and waits; with k = 0 it is released at once.
    pub(crate) fn write(&mut self, data: &mut Data, writer: Writer) -> Tx {
        let tx = Server::next_tx(data);
        data.append(tx);
        self.waiting.push(Waiting {
            tx,
            index: data.log.len(),
            acks: BTreeSet::new(),
            writer,
        });
        tx
    }

    /// Applies up to `count` transactions, in order.
    pub(crate) fn apply(data: &mut Data, count: usize) {
        let count = count.min(data.relay.len());
        let applied: Vec<Tx> = data
            .relay
            .drain(..count)
            .map(|relayed| relayed.tx)
            .collect();
        for tx in applied {
            if !crate::disk::has(&data.logged, tx) {
                data.append(tx);
            }
        }
    }

    /// Writes one received transaction into the relay log.
    pub(crate) fn receive(&mut self, data: &mut Data, tx: Tx, synced: bool) {
        data.relay.push(crate::disk::Relayed { tx, synced });
        add(&mut self.retrieved, tx);
    }
}

/// mysqld of one agent.
#[derive(Debug, Clone)]
pub(crate) enum Mysqld {
    Gated,
    Starting { run: u64 },
    Running(Box<Server>),
}

/// Long work.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) number: u64,
}

/// One container: the agent and its mysqld.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) ordinal: Ordinal,
    pub(crate) generation: u32,
    pub(crate) pod: String,
    pub(crate) incarnation: String,
    pub(crate) alive: bool,
    pub(crate) terminating: bool,
    pub(crate) job: Option<Job>,
    pub(crate) job_failure: Option<String>,
    /// Highest version of an order that was obeyed by this agent.
    pub(crate) obeyed: u64,
    pub(crate) mysqld: Mysqld,
    /// What is published.
    pub(crate) said: Said,
    pub(crate) volume: SaidVolume,
    /// Rounds of questions, so that an older one is not published after a newer.
    pub(crate) round: u64,
    pub(crate) published: u64,
    pub(crate) asking: Option<(u64, Told)>,
    /// When the kept connection last answered.
    pub(crate) answered: u64,
    /// When the last frame to each operator arrives: streams keep their order.
    pub(crate) arrives: [u64; 2],
}

impl Process {
    pub(crate) fn server(&self) -> Option<&Server> {
        match &self.mysqld {
            Mysqld::Running(server) => Some(server),
            Mysqld::Gated | Mysqld::Starting { .. } => None,
        }
    }

    pub(crate) fn server_mut(&mut self) -> Option<&mut Server> {
        match &mut self.mysqld {
            Mysqld::Running(server) => Some(server),
            Mysqld::Gated | Mysqld::Starting { .. } => None,
        }
    }

    pub(crate) fn gated() -> Said {
        Said::Gated {
            failed_starts: 0,
            message: None,
        }
    }
}

/// First part of a round of questions: variables.
pub(crate) fn ask_variables(server: &Server, data: &Data, as_of: u64) -> Told {
    Told {
        as_of_version: as_of,
        uuid: data.uuid,
        version: (9, 7, 4),
        executed: server.executed(data),
        last_binlog: GtidSet::new(),
        binlog_end: Position::default(),
        access: server.access(),
        semi_sync: server.k,
        waiters: !server.waiting.is_empty(),
        replication: None,
        drift: Vec::new(),
        app_ready: server.app_ready,
    }
}

/// Second part: SHOW REPLICA STATUS, in another moment.
pub(crate) fn ask_replica(told: &mut Told, server: &Server, data: &Data) {
    told.replication = data.source.map(|source| Replication {
        source: source.uuid,
        receiver: server.receiver,
        applier: server.applier,
        retrieved: server.retrieved.clone(),
        position: server.position,
        semi_sync_enabled: server.acks_on,
        semi_sync_active: server.connection.as_ref().is_some_and(|c| c.acknowledges),
        lag_seconds: Some(0),
        receiver_error: server.receiver_error.clone(),
        applier_error: None,
    });
}

/// Third part: the binlog, last, so that a waiter is in one or the other.
pub(crate) fn ask_binlog(told: &mut Told, data: &Data) {
    told.binlog_end = data.end();
    told.last_binlog = data.last_file();
}

/// All three in one moment.
pub(crate) fn ask(server: &Server, data: &Data, as_of: u64) -> Told {
    let mut told = ask_variables(server, data, as_of);
    ask_replica(&mut told, server, data);
    ask_binlog(&mut told, data);
    told
}

/// A uuid that prints short, for the first six.
pub(crate) fn uuid(number: u64) -> Uuid {
    match u8::try_from(number) {
        Ok(small) if small < 6 => Uuid::from_bytes([0xaa + 0x11 * small; 16]),
        Ok(_) | Err(_) => {
            let mut bytes = [0xee; 16];
            bytes[8..].copy_from_slice(&number.to_be_bytes());
            bytes[0] = 0xf0;
            Uuid::from_bytes(bytes)
        }
    }
}
