//! What goes wrong, when, and to whom: drawn from the seed. Every fault ends by
//! itself at the latest when the second phase begins. Never touches the record.

use katazuke_core::observed::Request;
use katazuke_core::record::Ordinal;

use crate::disk::{Content, Noted};
use crate::event::Event;
use crate::world::{Place, World};

/// One fault. `None` for a victim is whoever is the primary then.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    KillMysqld(Option<Ordinal>),
    KillAgent(Option<Ordinal>),
    ForceDelete(Option<Ordinal>),
    Delete(Option<Ordinal>),
    NodeDies(Option<Ordinal>, u64),
    AllNodesDie(u64),
    LoseDisk(Option<Ordinal>, u64),
    Cut(Option<Ordinal>, Ordinal, Way, u64),
    Isolate(Option<Ordinal>, Way, u64),
    CutFromOperators(Option<Ordinal>, Way, u64),
    /// These instances (bits) on one side, the others and the operators on the other.
    Partition(u32, u64),
    Freeze(Option<Ordinal>, u64),
    StallApplier(Ordinal, u64),
    Sigterm(Option<Ordinal>),
    OperatorDies(usize, u64),
    OperatorPauses(usize, u64),
    ApiDown(u64),
    Switchover(Option<Ordinal>),
}

/// Which directions of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    From,
    To,
    Both,
}

impl World {
    /// Draws the faults of the first phase.
    pub(crate) fn plan_faults(&mut self, length: u64) {
        self.faults_until = self.now + length;
        let count = self.between(1, 9);
        let mut at = self.between(0, length / 2);
        if self.rng.u32(0..4) == 0 {
            let at = self.between(0, length / 2);
            self.story(at);
        }
        for _ in 0..count {
            let fault = self.draw();
            self.after(at, Event::Fault(fault));
            at = match self.rng.u32(0..3) {
                0 => at + self.between(0, 300),
                1 => at + self.between(0, 4_000),
                _ => self.between(0, length),
            }
            .min(length - 1);
        }
    }

    /// Rows of faults that chance alone would rarely put together.
    fn story(&mut self, at: u64) {
        let time = self.between(6_000, 30_000);
        let other = Ordinal(self.rng.u32(0..self.setting.replicas));
        let primary = self.api.record.primary_ordinal().unwrap_or(Ordinal(0));
        let row = match self.rng.u32(0..7) {
            // OKs that lie, then a failover because nobody hears of them (fact 5).
            0 => vec![
                (0, Fault::Isolate(None, Way::Both, time)),
                (1_500, Fault::Sigterm(Some(primary))),
                (200, Fault::NodeDies(Some(primary), time)),
            ],
            // A tail that is only in relay logs, on the wrong side.
            1 => vec![
                (0, Fault::StallApplier(other, time + 20_000)),
                (0, Fault::Partition(1 << primary.0 | 1 << other.0, time)),
            ],
            // Acknowledgements get lost, then the primary.
            2 => vec![
                (0, Fault::Isolate(None, Way::To, time)),
                (700, Fault::KillMysqld(Some(primary))),
            ],
            // The primary, then the candidate.
            3 => vec![
                (0, Fault::KillMysqld(None)),
                (120, Fault::KillMysqld(Some(other))),
                (200, Fault::NodeDies(None, time)),
            ],
            // Received, not applied, not fsynced: memory goes, then the only disk that has it.
            4 => self
                .ordinals()
                .filter(|ordinal| *ordinal != primary)
                .map(|ordinal| (0, Fault::StallApplier(ordinal, time)))
                .chain([
                    (900, Fault::NodeDies(Some(other), 400)),
                    (10, Fault::NodeDies(Some(primary), time)),
                ])
                .collect(),
            // From one primary to another and back, and an old acker hears of neither.
            5 => vec![
                (0, Fault::Partition(1 << other.0, 18_000)),
                (300, Fault::KillMysqld(Some(primary))),
                (8_000, Fault::KillMysqld(None)),
            ],
            // A late leader.
            _ => vec![
                (0, Fault::OperatorPauses(0, time)),
                (0, Fault::OperatorPauses(1, time / 2)),
                (100, Fault::KillMysqld(None)),
            ],
        };
        let mut at = at;
        for (wait, fault) in row {
            at += wait;
            self.after(at, Event::Fault(fault));
        }
    }

    fn victim(&mut self) -> Option<Ordinal> {
        let any = Ordinal(self.rng.u32(0..self.setting.replicas));
        (self.rng.u32(0..2) == 0).then_some(any)
    }

    fn time(&mut self) -> u64 {
        match self.rng.u32(0..3) {
            0 => self.between(100, 3_000),
            1 => self.between(3_000, 15_000),
            _ => self.between(15_000, 40_000),
        }
    }

    fn way(&mut self) -> Way {
        match self.rng.u32(0..4) {
            0 => Way::From,
            1 => Way::To,
            _ => Way::Both,
        }
    }

    fn draw(&mut self) -> Fault {
        let any = Ordinal(self.rng.u32(0..self.setting.replicas));
        let (victim, time, way) = (self.victim(), self.time(), self.way());
        let operator = self.rng.usize(0..2);
        match self.rng.u32(0..100) {
            0..14 => Fault::KillMysqld(victim),
            14..18 => Fault::KillAgent(victim),
            18..25 => Fault::ForceDelete(victim),
            25..31 => Fault::Delete(victim),
            31..41 => Fault::NodeDies(victim, time),
            41..44 => Fault::AllNodesDie(time),
            44..47 => Fault::LoseDisk(victim, time),
            47..49 => Fault::Partition(self.rng.u32(1..1 << self.setting.replicas), time),
            49..56 => Fault::Cut(victim, any, way, time),
            56..64 => Fault::Isolate(victim, way, time),
            64..69 => Fault::CutFromOperators(victim, way, time),
            69..75 => Fault::Freeze(victim, time),
            75..79 => Fault::StallApplier(any, time),
            79..82 => Fault::Sigterm(victim),
            82..87 => Fault::OperatorDies(operator, time.min(9_000)),
            87..91 => Fault::OperatorPauses(operator, time),
            91..93 => Fault::ApiDown(time.min(12_000)),
            _ if self.setting.replicas == 1 => Fault::KillMysqld(victim),
            _ => Fault::Switchover(victim.filter(|_| time % 2 == 0)),
        }
    }

    fn whom(&mut self, victim: Option<Ordinal>) -> Ordinal {
        victim
            .or_else(|| self.api.record.primary_ordinal())
            .unwrap_or(Ordinal(0))
    }

    pub(crate) fn fault(&mut self, fault: Fault) {
        self.say(|| format!("FAULT {fault:?}"));
        match fault {
            Fault::KillMysqld(victim) => {
                let victim = self.whom(victim);
                if let Some(id) = self.named(victim) {
                    self.tally.count("mysqld killed");
                    self.end_mysqld(id);
                }
            }
            Fault::KillAgent(victim) => self.kill_agent(victim),
            Fault::ForceDelete(victim) => {
                let victim = self.whom(victim);
                self.force_delete(victim);
            }
            Fault::Delete(victim) => {
                let victim = self.whom(victim);
                self.delete_pod(victim);
            }
            Fault::NodeDies(victim, time) => {
                let victim = self.whom(victim);
                self.node_dies(victim, time);
            }
            Fault::AllNodesDie(time) => self.all_nodes_die(time),
            Fault::LoseDisk(victim, time) => self.lose_disk(victim, time),
            Fault::Cut(from, to, way, time) => {
                let from = self.whom(from);
                self.cut(Place::Instance(from), Place::Instance(to), way, time);
            }
            Fault::Isolate(victim, way, time) => self.isolate(victim, way, time),
            Fault::CutFromOperators(victim, way, time) => {
                self.cut_from_operators(victim, way, time);
            }
            Fault::Partition(side, time) => self.partition(side, time),
            Fault::Freeze(victim, time) => self.freeze(victim, time),
            Fault::StallApplier(victim, time) => {
                let until = self.now + time;
                if let Some((server, _)) =
                    self.named(victim).and_then(|id| self.server_and_data(id))
                {
                    server.stalled_until = until;
                }
            }
            Fault::Sigterm(victim) => {
                let victim = self.whom(victim);
                if let Some(id) = self.named(victim).filter(|id| !self.frozen(*id)) {
                    self.shut_down(id);
                }
            }
            Fault::OperatorDies(..)
            | Fault::OperatorPauses(..)
            | Fault::ApiDown(_)
            | Fault::Switchover(_) => self.fault_above(fault),
        }
    }

    /// At the operators and the API server.
    fn fault_above(&mut self, fault: Fault) {
        let now = self.now;
        match fault {
            Fault::OperatorDies(operator, time) => {
                self.tally.count("operators killed");
                self.operators[operator].crash(now + time);
            }
            Fault::OperatorPauses(operator, time) => {
                self.operators[operator].pauses_next = Some(time);
            }
            Fault::ApiDown(time) => self.api.down_until = now + time,
            Fault::Switchover(to) => {
                let id = format!("r{}", self.number());
                self.api.request = Some(Request { id, to });
            }
            Fault::KillMysqld(_)
            | Fault::KillAgent(_)
            | Fault::ForceDelete(_)
            | Fault::Delete(_)
            | Fault::NodeDies(..)
            | Fault::AllNodesDie(_)
            | Fault::LoseDisk(..)
            | Fault::Cut(..)
            | Fault::Isolate(..)
            | Fault::CutFromOperators(..)
            | Fault::Partition(..)
            | Fault::Freeze(..)
            | Fault::StallApplier(..)
            | Fault::Sigterm(_) => {}
        }
    }

    fn partition(&mut self, side: u32, time: u64) {
        let (here, there): (Vec<Ordinal>, Vec<Ordinal>) = self
            .ordinals()
            .partition(|ordinal| side >> ordinal.0 & 1 == 1);
        for one in here {
            self.cut_from_operators(Some(one), Way::Both, time);
            for other in &there {
                let (one, other) = (Place::Instance(one), Place::Instance(*other));
                self.cut(one, other, Way::Both, time);
            }
        }
    }

    fn isolate(&mut self, victim: Option<Ordinal>, way: Way, time: u64) {
        let victim = self.whom(victim);
        for other in self.ordinals().filter(|other| *other != victim) {
            self.cut(Place::Instance(victim), Place::Instance(other), way, time);
        }
        if self.rng.bool() {
            self.cut_from_operators(Some(victim), way, time);
        }
    }

    fn cut_from_operators(&mut self, victim: Option<Ordinal>, way: Way, time: u64) {
        let victim = Place::Instance(self.whom(victim));
        for operator in 0..2 {
            self.cut(victim, Place::Operator(operator), way, time);
        }
    }

    fn cut(&mut self, a: Place, b: Place, way: Way, time: u64) {
        let until = (self.now + time).min(self.faults_until);
        if matches!(way, Way::From | Way::Both) {
            self.cuts.insert((a, b), until);
        }
        if matches!(way, Way::To | Way::Both) {
            self.cuts.insert((b, a), until);
        }
    }

    fn freeze(&mut self, victim: Option<Ordinal>, time: u64) {
        let victim = self.whom(victim);
        let until = (self.now + time).min(self.faults_until);
        if let Some((server, _)) = self.named(victim).and_then(|id| self.server_and_data(id)) {
            server.frozen_until = until;
            self.tally.count("mysqld stopped (SIGSTOP)");
        }
    }

    /// PID 1 dies: so does everything in the container; its memory volume stays.
    fn kill_agent(&mut self, victim: Option<Ordinal>) {
        let victim = self.whom(victim);
        let Some(id) = self.named(victim) else { return };
        self.tally.count("agents killed");
        self.end_process(id);
        let Some(pod) = self.api.pods.get(&victim) else {
            return;
        };
        let uid = pod.uid.clone();
        let time = self.between(300, 3_000);
        self.after(
            time,
            Event::ContainerStarts {
                ordinal: victim,
                uid,
            },
        );
    }

    fn all_nodes_die(&mut self, time: u64) {
        self.tally.count("cold starts");
        for ordinal in self.ordinals() {
            let time = self.between(200, time.max(300));
            self.node_dies(ordinal, time);
        }
    }

    fn lose_disk(&mut self, victim: Option<Ordinal>, time: u64) {
        let victim = self.whom(victim);
        if self.disks_lost > 0 || !self.node_up(victim) {
            return;
        }
        self.node_dies(victim, time);
        self.disks_lost += 1;
        self.tally.count("disks lost");
        for (key, volume) in &mut self.volumes {
            if key.0 == victim {
                volume.content = Content::Empty;
                volume.noted = Noted::default();
            }
        }
    }

    /// The second phase: whatever still is wrong ends.
    pub(crate) fn heal(&mut self) {
        self.say(|| "HEALED".to_owned());
        self.cuts.clear();
        self.api.down_until = 0;
        for operator in &mut self.operators {
            operator.pauses_next = None;
            operator.paused_until = operator.paused_until.min(self.now);
            operator.down_until = operator.down_until.min(self.now);
        }
        for ordinal in self.ordinals() {
            if !self.node_up(ordinal) {
                let time = self.between(0, 2_000);
                self.after(time, Event::NodeReturns(ordinal));
            }
        }
        for process in &mut self.processes {
            if let Some(server) = process.server_mut() {
                server.frozen_until = 0;
                server.stalled_until = 0;
            }
        }
    }
}
