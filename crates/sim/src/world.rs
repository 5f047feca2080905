//! The world: everything that exists, the queue of what happens next, and the
//! clock that jumps from event to event. Never reads a real clock.

use std::collections::BTreeMap;

use gtid::GtidSet;
use katazuke_core::notation;
use katazuke_core::observed::{Agent, Mysqld as Said, Volume as SaidVolume};
use katazuke_core::record::{Acknowledge, Ordinal};

use crate::disk::{Content, Data, Noted, Volume};
use crate::event::Event;
use crate::kube::Api;
use crate::mysqld::{Mysqld, Process, Server};
use crate::operator::Operator;
use crate::tally::Tally;

/// A place in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Instance(Ordinal),
    Operator(usize),
}

/// A machine; each instance has its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) up: bool,
    pub(crate) boots: u64,
}

/// The settings of one world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) replicas: u32,
    pub(crate) acknowledge: Acknowledge,
}

/// Everything.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) rng: fastrand::Rng,
    queue: BTreeMap<(u64, u64), Event>,
    numbers: u64,
    uuids: u64,
    pub(crate) setting: Setting,
    pub(crate) volumes: BTreeMap<(Ordinal, u32), Volume>,
    pub(crate) processes: Vec<Process>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) cuts: BTreeMap<(Place, Place), u64>,
    pub(crate) api: Api,
    pub(crate) operators: [Operator; 2],
    /// Acknowledged by k members.
    pub(crate) acknowledged: GtidSet,
    /// Answered OK without (facts 5 and 6).
    pub(crate) weakly: GtidSet,
    /// Rows that somebody read on an open primary.
    pub(crate) read: GtidSet,
    pub(crate) faults_until: u64,
    pub(crate) writing: bool,
    pub(crate) tally: Tally,
    pub(crate) trace: Option<Vec<String>>,
    pub(crate) hash: u64,
    pub(crate) violation: Option<String>,
    /// Servers that were opened, by their uuid: at which version of the record.
    pub(crate) opened: BTreeMap<gtid::Uuid, u64>,
    pub(crate) disks_lost: u32,
    /// Hashes of the pictures that were judged, if they are counted.
    pub(crate) states: Option<std::collections::BTreeSet<u64>>,
    /// The last pass of whoever leads.
    pub(crate) last: Option<crate::operator::Last>,
}

impl World {
    pub(crate) fn new(seed: u64, setting: Setting, traced: bool) -> World {
        let nodes = vec![Node { up: true, boots: 1 }; setting.replicas as usize];
        let mut world = World {
            now: 0,
            rng: fastrand::Rng::with_seed(seed),
            queue: BTreeMap::new(),
            numbers: 0,
            uuids: 0,
            setting,
            volumes: BTreeMap::new(),
            processes: Vec::new(),
            nodes,
            cuts: BTreeMap::new(),
            api: Api::new(),
            operators: [Operator::new(), Operator::new()],
            acknowledged: GtidSet::new(),
            weakly: GtidSet::new(),
            read: GtidSet::new(),
            faults_until: 0,
            writing: true,
            tally: Tally::default(),
            trace: traced.then(Vec::new),
            hash: 0xcbf2_9ce4_8422_2325,
            violation: None,
            opened: BTreeMap::new(),
            disks_lost: 0,
            states: None,
            last: None,
        };
        for operator in 0..2 {
            world.after(1, Event::Cache(operator));
            world.after(5, Event::Pass(operator));
        }
        for client in 0..3 {
            world.after(100, Event::Write(client));
        }
        world.after(100, Event::Read);
        world
    }

    // Time.

    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn fresh_uuid(&mut self) -> gtid::Uuid {
        self.uuids += 1;
        crate::mysqld::uuid(self.uuids - 1)
    }

    pub(crate) fn after(&mut self, milliseconds: u64, event: Event) {
        let number = self.number();
        self.queue.insert((self.now + milliseconds, number), event);
    }

    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        self.rng.u64(from..=to)
    }

    /// One event; `false` when there is none before `until`.
    pub(crate) fn step(&mut self, until: u64) -> bool {
        let Some(entry) = self.queue.first_entry() else {
            return false;
        };
        if entry.key().0 > until {
            self.now = until;
            return false;
        }
        let ((at, number), event) = entry.remove_entry();
        self.now = at;
        self.stir(at ^ (number << 20));
        self.happen(event);
        self.always();
        true
    }

    pub(crate) fn stir(&mut self, value: u64) {
        self.hash = (self.hash ^ value).wrapping_mul(0x0000_0100_0000_01b3);
    }

    // Words.

    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            let line = line();
            trace.push(format!("{:>4}.{:03}  {line}", now / 1000, now % 1000));
        }
    }

    pub(crate) fn violate(&mut self, invariant: &str, why: String) {
        if self.violation.is_none() {
            self.violation = Some(format!("{invariant}: {why}"));
            self.say(move || format!("VIOLATED {invariant}: {why}"));
        }
    }

    pub(crate) fn set_words(set: &GtidSet) -> String {
        notation::set(set)
    }

    // The network.

    pub(crate) fn linked(&self, from: Place, to: Place) -> bool {
        let cut = self
            .cuts
            .get(&(from, to))
            .is_some_and(|until| *until > self.now);
        let up = [from, to].into_iter().all(|place| match place {
            Place::Instance(ordinal) => self.node_up(ordinal),
            Place::Operator(_) => true,
        });
        !cut && up
    }

    pub(crate) fn node_up(&self, ordinal: Ordinal) -> bool {
        self.nodes
            .get(ordinal.0 as usize)
            .is_some_and(|node| node.up)
    }

    /// A message's time on its way: short, sometimes not.
    pub(crate) fn delay(&mut self) -> u64 {
        match self.rng.u32(0..100) {
            0..90 => self.between(1, 6),
            90..98 => self.between(10, 200),
            _ => self.between(200, 1500),
        }
    }

    // Who is where.

    pub(crate) fn process(&self, id: usize) -> Option<&Process> {
        self.processes.get(id).filter(|process| process.alive)
    }

    pub(crate) fn process_mut(&mut self, id: usize) -> Option<&mut Process> {
        self.processes.get_mut(id).filter(|process| process.alive)
    }

    /// The process that the name of an instance leads to.
    pub(crate) fn named(&self, ordinal: Ordinal) -> Option<usize> {
        let process = self.api.pods.get(&ordinal)?.process?;
        self.process(process).map(|_| process)
    }

    pub(crate) fn owns_volume(&self, id: usize) -> bool {
        let Some(process) = self.process(id) else {
            return false;
        };
        self.volumes
            .get(&(process.ordinal, process.generation))
            .is_some_and(|volume| volume.lock == Some(id))
    }

    pub(crate) fn volume_of(&self, id: usize) -> Option<&Volume> {
        let process = self.processes.get(id)?;
        self.volumes.get(&(process.ordinal, process.generation))
    }

    pub(crate) fn volume_of_mut(&mut self, id: usize) -> Option<&mut Volume> {
        let process = self.processes.get(id)?;
        self.volumes.get_mut(&(process.ordinal, process.generation))
    }

    pub(crate) fn data_of(&self, id: usize) -> Option<&Data> {
        self.volume_of(id)?.data()
    }

    /// The running mysqld of a process and the data under it.
    pub(crate) fn server_and_data(&mut self, id: usize) -> Option<(&mut Server, &mut Data)> {
        let process = self.processes.get_mut(id).filter(|process| process.alive)?;
        let key = (process.ordinal, process.generation);
        let server = process.server_mut()?;
        let data = self.volumes.get_mut(&key)?.data_mut()?;
        Some((server, data))
    }

    pub(crate) fn running(&self, id: usize, run: u64) -> Option<&Server> {
        self.process(id)?
            .server()
            .filter(|server| server.run == run)
    }

    pub(crate) fn frozen(&self, id: usize) -> bool {
        let server = self.process(id).and_then(Process::server);
        server.is_some_and(|server| server.frozen_until > self.now)
    }

    // Processes.

    /// A container of this Pod starts: `fresh` when its memory volume is new.
    pub(crate) fn start_process(
        &mut self,
        ordinal: Ordinal,
        pod: &str,
        generation: u32,
        incarnation: String,
    ) -> usize {
        let id = self.processes.len();
        self.volumes
            .entry((ordinal, generation))
            .or_insert_with(Volume::empty);
        self.processes.push(Process {
            ordinal,
            generation,
            pod: pod.to_owned(),
            incarnation,
            alive: true,
            terminating: false,
            job: None,
            job_failure: None,
            obeyed: 0,
            mysqld: Mysqld::Gated,
            said: Process::gated(),
            volume: SaidVolume::Locked,
            round: 0,
            published: 0,
            asking: None,
            answered: self.now,
            arrives: [0; 2],
        });
        self.try_lock(id);
        self.after(20, Event::Frame(id));
        id
    }

    /// An agent takes the volume's lock before it reads anything.
    pub(crate) fn try_lock(&mut self, id: usize) {
        let Some(volume) = self.volume_of_mut(id) else {
            return;
        };
        if volume.lock.is_none() {
            volume.lock = Some(id);
            let said = volume.said();
            if let Some(process) = self.process_mut(id) {
                process.volume = said;
            }
        } else if volume.lock != Some(id) {
            self.tally.count("volume locked by a predecessor");
        }
    }

    /// mysqld is gone; what it had written is in the page cache still.
    pub(crate) fn end_mysqld(&mut self, id: usize) {
        let said = self.volume_of(id).map(Volume::said);
        let Some(process) = self.process_mut(id) else {
            return;
        };
        process.mysqld = Mysqld::Gated;
        process.said = Process::gated();
        process.asking = None;
        if let Some(said) = said {
            process.volume = said;
        }
    }

    /// The whole container is gone.
    pub(crate) fn end_process(&mut self, id: usize) {
        self.end_mysqld(id);
        if let Some(process) = self.process_mut(id) {
            process.alive = false;
        }
        if let Some(volume) = self.volume_of_mut(id)
            && volume.lock == Some(id)
        {
            volume.lock = None;
        }
    }

    /// What the agent of a process says now.
    pub(crate) fn agent_says(&self, id: usize) -> Option<Agent> {
        let process = self.process(id)?;
        let noted = match self.owns_volume(id) {
            true => self
                .volume_of(id)
                .map(|volume| volume.noted.clone())
                .unwrap_or_default(),
            false => Noted::default(),
        };
        let server = process.server();
        let follows = self.data_of(id).is_some_and(|data| data.source.is_some());
        let unanswered = match server {
            Some(_) => self.now - process.answered,
            None => 0,
        };
        Some(Agent {
            incarnation: process.incarnation.clone(),
            seen_version: noted.version,
            self_fenced: noted.self_fenced.map(|(version, _)| version),
            not_strict: noted.not_strict,
            volume: process.volume.clone(),
            mysqld: match (&process.mysqld, &process.said) {
                (Mysqld::Starting { .. }, _) | (Mysqld::Running(_), Said::Gated { .. }) => {
                    Said::Starting
                }
                (Mysqld::Gated | Mysqld::Running(_), said) => said.clone(),
            },
            terminating: process.terminating,
            job: process.job.as_ref().map(|job| job.name.to_owned()),
            job_failure: process.job_failure.clone(),
            settled_milliseconds: 0,
            unanswered_milliseconds: unanswered,
            source_silent_milliseconds: server
                .filter(|_| follows)
                .map(|server| self.now.saturating_sub(server.heard)),
        })
    }

    /// Sent to both operators every quarter of a second, as long as the agent lives.
    pub(crate) fn frame(&mut self, id: usize) {
        if self.process(id).is_none() {
            return;
        }
        self.try_lock_again(id);
        self.tell(id);
        let next = self.between(120, 250);
        self.after(next, Event::Frame(id));
    }

    fn try_lock_again(&mut self, id: usize) {
        if !self.owns_volume(id) {
            self.try_lock(id);
        }
    }

    /// A frame on its way to whoever listens.
    pub(crate) fn tell(&mut self, id: usize) {
        let Some(agent) = self.agent_says(id) else {
            return;
        };
        let Some(process) = self.process(id) else {
            return;
        };
        let (ordinal, pod) = (process.ordinal, process.pod.clone());
        for operator in 0..2 {
            if !self.linked(Place::Instance(ordinal), Place::Operator(operator)) {
                continue;
            }
            let life = self.operators[operator].life;
            let delay = match self.rng.u32(0..12) {
                0 => self.between(50, 700),
                _ => self.between(1, 8),
            };
            let now = self.now;
            let Some(process) = self.process_mut(id) else {
                return;
            };
            process.arrives[operator] = process.arrives[operator].max(now + delay);
            let delay = process.arrives[operator] - now;
            let agent = Box::new(agent.clone());
            self.after(
                delay,
                Event::Reply {
                    operator,
                    life,
                    pod: pod.clone(),
                    ordinal,
                    agent,
                },
            );
        }
    }

    pub(crate) fn has_data(&self, id: usize) -> bool {
        self.volume_of(id)
            .is_some_and(|volume| matches!(volume.content, Content::Data(_)))
    }
}
