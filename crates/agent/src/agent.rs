//! What the parts of the agent share: the published state, the record, the
//! running mysqld. Never waits for a server here, so that the state can always
//! be published and mysqld can always be killed.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{Notify, watch};
use wire::{AgentState, Disk, Frame, Job, JobKind, Mysqld, Stamp, Volume};

use crate::{
    certificate::SubjectPattern,
    lock,
    mysqld::child::{Child, Children},
    options::Options,
    sql::{
        accounts::Account,
        observe::{Begun, Observation, Pulse},
        session::{Login, Session},
    },
    volume::{
        archive, incarnation,
        live_binlog::LiveBinlog,
        on_disk,
        record::{Record, RecordError},
    },
};

/// One agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) options: Options,
    pub(crate) children: Children,
    subjects: SubjectPattern,
    board: watch::Sender<AgentState>,
    /// `None` until the volume is locked and its record was read.
    record: Mutex<Option<Record>>,
    running: Mutex<Option<Arc<Running>>>,
    /// One order at a time, so that a version is checked when its act begins.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Held from the last check before a start of mysqld until it is known to run.
    pub(crate) gate: Mutex<()>,
    /// Held while a pristine data directory is made; true when there is one.
    pub(crate) pristine: tokio::sync::Mutex<bool>,
    pub(crate) failed_starts: AtomicU32,
    /// Highest version of which an order was obeyed.
    obeyed: Mutex<Stamp>,
    started: Instant,
}

/// A mysqld that was started.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) login: Login,
    /// The second kept connection, for orders.
    pub(crate) orders: tokio::sync::Mutex<Session>,
    /// Wakes the poll.
    pub(crate) poke: Notify,
    pub(crate) binlog: Mutex<LiveBinlog>,
    pub(crate) facts: Mutex<Facts>,
    /// Held by whoever switches its semi-sync as a source.
    pub(crate) source_switch: tokio::sync::Mutex<()>,
    observations: AtomicU64,
}

/// What the agent knows of a running mysqld without asking it.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// It has answered once.
    pub(crate) answered: bool,
    /// The boot set super_read_only, or the SET has returned (fact 9).
    pub(crate) read_only: bool,
    /// Opened in this epoch, waiting for k acknowledgements.
    pub(crate) serving: Option<Serving>,
    /// The peers whose accounts are open on this server.
    pub(crate) peers: Option<Vec<String>>,
    /// The application's account was seen to work.
    pub(crate) app_ready: bool,
    pub(crate) drift: Vec<wire::Drift>,
    no_tx: u64,
    published: u64,
    last_answer: Option<Instant>,
    source_pulse: Option<Pulse>,
    source_heard: Option<Instant>,
}

/// An open primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Serving {
    pub(crate) epoch: u64,
    pub(crate) k: u32,
}

impl Agent {
    pub(crate) fn new(
        options: Options,
        children: Children,
        subjects: SubjectPattern,
        incarnation: String,
    ) -> Self {
        let state = AgentState {
            instance: options.instance.clone(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster_uid: options.cluster_uid.clone(),
            incarnation,
            sequence: 0,
            seen: Stamp::default(),
            self_fenced: None,
            not_strict: Vec::new(),
            volume: Volume::Locked,
            mysqld: Mysqld::Gated { last_exit: None },
            terminating: false,
            job: None,
            job_failure: None,
            disk: Disk::default(),
            archives: Vec::new(),
        };
        Self {
            options,
            children,
            subjects,
            board: watch::Sender::new(state),
            record: Mutex::new(None),
            running: Mutex::new(None),
            turn: tokio::sync::Mutex::new(()),
            gate: Mutex::default(),
            pristine: tokio::sync::Mutex::new(false),
            failed_starts: AtomicU32::new(0),
            obeyed: Mutex::default(),
            started: Instant::now(),
        }
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn state(&self) -> AgentState {
        self.board.borrow().clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<AgentState> {
        self.board.subscribe()
    }

    /// Changes the state; watchers hear of it only if it changed.
    pub(crate) fn publish(&self, change: impl FnOnce(&mut AgentState)) {
        self.board.send_if_modified(|state| {
            let before = state.clone();
            change(state);
            let changed = *state != before;
            if changed {
                state.sequence = before.sequence + 1;
            }
            changed
        });
    }

    /// The frame of this moment, without the state.
    pub(crate) fn heartbeat(&self) -> Frame {
        let mut frame = Frame {
            state: None,
            unanswered_milliseconds: 0,
            source_silent_milliseconds: None,
        };
        if let Some(running) = self.running() {
            let facts = lock(&running.facts);
            frame.unanswered_milliseconds = facts.last_answer.map_or(0, milliseconds_since);
            frame.source_silent_milliseconds = facts.source_heard.map(milliseconds_since);
        }
        frame
    }

    /// The record, once the volume is ours.
    pub(crate) fn record(&self) -> Option<Record> {
        lock(&self.record).clone()
    }

    pub(crate) fn adopt_record(&self, record: Record) {
        *lock(&self.record) = Some(record);
        self.publish_record();
    }

    /// Changes the record; on disk when it returns. `Ok(None)` without a volume.
    pub(crate) fn amend_record<T>(
        &self,
        change: impl FnOnce(&mut Record) -> T,
    ) -> Result<Option<T>, RecordError> {
        let mut record = lock(&self.record);
        let Some(present) = record.as_ref() else {
            return Ok(None);
        };
        let mut amended = present.clone();
        let result = change(&mut amended);
        if amended != *present {
            amended.write(&self.options.agent_dir)?;
            *record = Some(amended);
        }
        drop(record);
        self.publish_record();
        Ok(Some(result))
    }

    fn publish_record(&self) {
        let Some(record) = self.record() else { return };
        self.publish(|state| {
            state.seen = record.seen;
            state.self_fenced = record.self_fenced;
            state.not_strict = record.not_strict;
        });
    }

    /// An OK may have been given in this epoch without acknowledgement (fo-5).
    pub(crate) fn mark_not_strict(&self, serving: Serving) {
        let marked = self.amend_record(|record| {
            for epoch in [serving.epoch, record.seen.epoch] {
                if !record.not_strict.contains(&epoch) {
                    record.not_strict.push(epoch);
                    tracing::warn!(epoch, "this epoch is not strict");
                }
            }
        });
        if let Err(error) = marked {
            tracing::error!(%error, epoch = serving.epoch, "the mark of an epoch that is not strict was not written");
        }
    }

    pub(crate) fn running(&self) -> Option<Arc<Running>> {
        lock(&self.running).clone()
    }

    pub(crate) fn set_running(&self, running: Option<Arc<Running>>) {
        *lock(&self.running) = running;
    }

    /// Accounts of the peers on the persisted list, without our own.
    pub(crate) fn accounts(&self, peers: &[String]) -> Vec<Account> {
        peers
            .iter()
            .map(|peer| Account::new(peer, &self.subjects))
            .collect()
    }

    /// Reads the volume's facts anew. Blocks: the files are read here.
    pub(crate) fn refresh_volume(&self, known: &LiveBinlog) {
        let Options {
            datadir, agent_dir, ..
        } = &self.options;
        let unlogged = self
            .record()
            .map(|record| record.unlogged)
            .unwrap_or_default();
        let volume = on_disk::volume(datadir, agent_dir, known, &unlogged);
        let archives = archive::list(&self.options.archive());
        let disk = disk(&self.options.agent_dir);
        self.publish(|state| {
            state.volume = volume;
            state.archives = archives;
            state.disk = disk;
        });
    }

    pub(crate) fn refresh_disk(&self) {
        let disk = disk(&self.options.agent_dir);
        self.publish(|state| state.disk = disk);
    }

    /// Before anything that destroys relay logs or data.
    pub(crate) fn renew_incarnation(&self) -> std::io::Result<()> {
        let incarnation = incarnation::renew(&self.options.run_dir)?;
        self.publish(|state| state.incarnation = incarnation);
        Ok(())
    }

    pub(crate) fn begin_job(&self, kind: JobKind, stage: &str) {
        let job = Job {
            kind,
            stage: stage.to_owned(),
            percent: None,
        };
        // An earlier failure is told until one succeeds: a job that fails again
        // and again would else never be seen to fail.
        self.publish(|state| state.job = Some(job));
    }

    pub(crate) fn job_stage(&self, stage: &str, percent: Option<u8>) {
        self.publish(|state| {
            if let Some(job) = &mut state.job {
                stage.clone_into(&mut job.stage);
                job.percent = percent;
            }
        });
    }

    pub(crate) fn end_job(&self, failure: Option<String>) {
        self.publish(|state| {
            state.job = None;
            state.job_failure = failure;
        });
    }

    /// Publishes what a running server said, unless something newer was
    /// published or the server has ended since.
    pub(crate) fn publish_observation(&self, running: &Running, observation: Observation) {
        let Observation {
            number,
            mut server,
            ackers: _,
            source_pulse,
        } = observation;
        let mut facts = lock(&running.facts);
        let now = Instant::now();
        facts.last_answer = Some(now);
        if number <= facts.published {
            return;
        }
        facts.published = number;
        facts.hear(source_pulse, now);
        let doubtful = facts.serving.filter(|serving| {
            serving.k > 0 && (server.semi_sync.no_tx > facts.no_tx || !server.semi_sync.enabled)
        });
        facts.no_tx = server.semi_sync.no_tx;
        server.read_only &= facts.read_only;
        server.app_ready = facts.app_ready;
        server.drift.clone_from(&facts.drift);
        // Under the lock, so that rounds are published in their order.
        if running.child.ended().is_none() {
            self.publish(|state| {
                state.mysqld = Mysqld::Running {
                    server: Box::new(server),
                }
            });
        }
        drop(facts);
        if let Some(serving) = doubtful {
            self.mark_not_strict(serving);
        }
    }

    /// Taken before a round of questions begins, so that rounds can be ordered.
    pub(crate) fn begin_observation(&self, running: &Running) -> Begun {
        let as_of = *lock(&self.obeyed);
        Begun {
            number: running.observations.fetch_add(1, Ordering::SeqCst) + 1,
            as_of,
        }
    }

    /// From now on, what is read was read after this order.
    pub(crate) fn obeyed(&self, stamp: Stamp) {
        let mut obeyed = lock(&self.obeyed);
        *obeyed = stamp.max(*obeyed);
    }

    pub(crate) fn forget_failed_starts(&self) {
        self.failed_starts.store(0, Ordering::Relaxed);
    }
}

impl Facts {
    /// Only an attached receiver can have heard something; one that knocks has
    /// counters that change, too.
    fn hear(&mut self, pulse: Option<Pulse>, now: Instant) {
        match (&self.source_pulse, &pulse) {
            (Some(_), None) => self.source_heard = None,
            (None, Some(_)) => self.source_heard = Some(now),
            (Some(before), Some(after)) if after.attached && before.beat != after.beat => {
                self.source_heard = Some(now);
            }
            (None, None) | (Some(_), Some(_)) => return,
        }
        self.source_pulse = pulse;
    }
}

impl Running {
    pub(crate) fn new(child: Child, login: Login, peers: Vec<String>) -> Self {
        Self {
            child,
            orders: tokio::sync::Mutex::new(Session::closed(login.clone())),
            login,
            poke: Notify::new(),
            binlog: Mutex::default(),
            facts: Mutex::new(Facts {
                read_only: true,
                peers: Some(peers),
                ..Facts::default()
            }),
            source_switch: tokio::sync::Mutex::new(()),
            observations: AtomicU64::new(0),
        }
    }
}

fn milliseconds_since(instant: Instant) -> u64 {
    u64::try_from(instant.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn disk(path: &Path) -> Disk {
    match nix::sys::statvfs::statvfs(path) {
        Ok(stat) => Disk {
            total_bytes: stat.blocks() * stat.fragment_size(),
            free_bytes: stat.blocks_available() * stat.fragment_size(),
        },
        Err(_) => Disk::default(),
    }
}
