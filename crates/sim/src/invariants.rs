//! The invariants of section 16, numbered. Checked where they could break, and
//! the cheap ones after every event. A violation ends the run.
//!
//! I1 no acknowledged write is missing on a server that is opened or serves at the end;
//! I2 at most one server acknowledges what is not kept already: the recorded primary;
//! I3 no row read on an open primary vanishes;
//! I4 nothing that was answered OK is discarded by an order;
//! I5 every acknowledged write is in the watermark or on ≥ k members of K;
//! I6 versions rise by one, epochs and watermark never fall;
//! I7 the record is never stronger than the servers (R3);
//! I8 a primary is opened only when ≥ k members hold everything that it has (section 9).

use gtid::{GtidSet, Uuid};
use katazuke_core::record::{Member, Ordinal, Record};

use crate::disk::{Tx, has};
use crate::mysqld::Process;
use crate::world::World;

impl World {
    /// A client (or the agent) is told OK.
    pub(crate) fn answered_ok(&mut self, _id: usize, uuid: Uuid, tx: Tx, proved: bool) {
        let primary = self.api.record.primary.as_ref().map(|primary| primary.uuid);
        // Acknowledged before the fences and told late: it was counted and is kept (fo-3).
        let kept = has(&self.api.record.watermark, tx);
        if proved && primary != Some(uuid) && !kept {
            let why = format!("{uuid} acknowledged {}, recorded is {primary:?}", tx.1);
            self.violate("I2 OneAcknowledges", why);
        }
        self.note_ok(tx, proved);
        if proved {
            self.check_held(tx);
        }
    }

    /// A server becomes writable.
    pub(crate) fn check_open(&mut self, id: usize, version: u64) {
        let Some((server, data)) = self.server_and_data(id) else {
            return;
        };
        let (executed, uuid) = (server.executed(data), data.uuid);
        let lost = self.acknowledged.subtract(&executed);
        let vanished = self.read.subtract(&executed);
        self.say(|| format!("{uuid} is opened with {}", World::set_words(&executed)));
        self.opened.insert(uuid, version);
        self.check_held_at_opening(&executed);
        if !lost.is_empty() {
            self.violate(
                "I1 NoAcknowledgedLost",
                format!("{} opened without {lost}", World::set_words(&executed)),
            );
        }
        if !vanished.is_empty() {
            self.violate(
                "I3 NoRowVanishes",
                format!("{} opened without {vanished}", World::set_words(&executed)),
            );
        }
    }

    fn check_held_at_opening(&mut self, executed: &GtidSet) {
        let record = self.api.record.clone();
        let holds = |member: &&Member| {
            let data = self.named(member.ordinal).and_then(|id| {
                let process = self.process(id)?;
                let data = self.data_of(id)?;
                let same = process.incarnation == member.incarnation && data.uuid == member.uuid;
                same.then_some(data)
            });
            // One that was hurt meanwhile counts: it held it when that was decided.
            data.is_none_or(|data| data.received().contains(executed))
        };
        let holders = record.ackers.iter().filter(holds).count();
        if holders < record.k as usize {
            let why = format!(
                "{holders} hold {}, k={}",
                World::set_words(executed),
                record.k
            );
            self.violate("I8 HeldBeforeOpen", why);
        }
    }

    /// An order destroys what is above `kept`.
    pub(crate) fn destroyed(&mut self, id: usize, received: &GtidSet, kept: &GtidSet) {
        let told = self.acknowledged.union(&self.weakly);
        let mut elsewhere = GtidSet::new();
        for (number, process) in self.processes.iter().enumerate() {
            if number != id
                && process.alive
                && let Some(data) = self.data_of(number)
            {
                elsewhere = elsewhere.union(&data.received());
            }
        }
        for (key, volume) in &self.volumes {
            let own = self
                .processes
                .get(id)
                .is_some_and(|p| (p.ordinal, p.generation) == *key);
            if !own && let Some(data) = volume.data() {
                elsewhere = elsewhere.union(&data.received());
            }
        }
        let lost = received.intersect(&told).subtract(&elsewhere);
        if !lost.is_empty() {
            self.violate(
                "I4 NoneDiscarded",
                format!("{lost} was answered OK; kept {kept}"),
            );
        }
    }

    fn member_holds(&self, member: &Member, tx: Tx) -> bool {
        let Some(id) = self.named(member.ordinal) else {
            return true;
        };
        let Some(process) = self.process(id) else {
            return true;
        };
        // Hurt by a fault since: it proves nothing any more, and core must know that.
        if process.incarnation != member.incarnation {
            return true;
        }
        match self.data_of(id) {
            Some(data) if data.uuid == member.uuid => {
                has(&data.logged, tx) || data.relay.iter().any(|relayed| relayed.tx == tx)
            }
            Some(_) | None => true,
        }
    }

    fn check_held(&mut self, tx: Tx) {
        let record = self.api.record.clone();
        if record.k == 0 || has(&record.watermark, tx) {
            return;
        }
        let holders = record
            .ackers
            .iter()
            .filter(|member| self.member_holds(member, tx))
            .count();
        if holders < record.k as usize {
            let why = format!("{holders} members hold {}:{}, k={}", tx.0, tx.1, record.k);
            self.violate("I5 HeldByK", why);
        }
    }

    /// A record is about to be written over the present one.
    pub(crate) fn check_record(&mut self, next: &Record) {
        let now = self.api.record.clone();
        if next.version != now.version + 1 || next.epoch < now.epoch {
            self.violate(
                "I6 Monotone",
                format!("version {} epoch {}", next.version, next.epoch),
            );
        }
        if !next.watermark.contains(&now.watermark) {
            self.violate(
                "I6 Monotone",
                format!("watermark {} after {}", next.watermark, now.watermark),
            );
        }
        self.count_change(&now, next);
        let words = katazuke_core::notation::plan(&katazuke_core::Plan::Do(vec![
            katazuke_core::Action::Record(Box::new(next.clone())),
        ]));
        self.say(|| format!("WRITTEN {}", words.trim_end()));
        let moved = now.primary != next.primary || now.ackers != next.ackers || now.k != next.k;
        if !moved || next.k == 0 {
            return;
        }
        let open = self.acknowledged.subtract(&next.watermark);
        self.check_all_held(next, &open);
    }

    fn check_all_held(&mut self, next: &Record, open: &GtidSet) {
        let before = std::mem::replace(&mut self.api.record, next.clone());
        let all: Vec<Tx> = open
            .intervals()
            .flat_map(|(uuid, _, interval)| {
                (interval.first()..=interval.last()).map(move |number| (uuid, number))
            })
            .collect();
        for tx in all {
            self.check_held(tx);
        }
        self.api.record = before;
    }

    fn count_change(&mut self, now: &Record, next: &Record) {
        use katazuke_core::record::{Kind, Step};
        let what = match (&now.transition, &next.transition) {
            (Some(before), after) if before.step == Step::Fencing => match after {
                None => "failovers aborted",
                Some(after) if after.step == Step::Promoting => "failovers",
                Some(_) => "other changes of the record",
            },
            (Some(before), after) if before.step == Step::Demoting => match after {
                None => "switchovers undone",
                Some(after) if after.step == Step::Promoting => "switchovers",
                Some(_) => "switchovers that became failovers",
            },
            (Some(before), None)
                if before.kind == Kind::Reconfigure && now.ackers != next.ackers =>
            {
                "ackers replaced (R5)"
            }
            (_, _) if next.ackers.len() > now.ackers.len() => "ackers admitted",
            (_, _) => "other changes of the record",
        };
        self.tally.count(what);
    }

    /// After every event: R3 between the record and the recorded primary's servers.
    pub(crate) fn always(&mut self) {
        let (Some(primary), k) = (&self.api.record.primary, self.api.record.k) else {
            return;
        };
        let open = (0..self.processes.len()).find(|id| {
            let server = self.process(*id).and_then(Process::server);
            server.is_some_and(|server| !server.read_only)
                && self
                    .data_of(*id)
                    .is_some_and(|data| data.uuid == primary.uuid)
        });
        let Some(open) = open.filter(|_| k > 0) else {
            return;
        };
        let enforced = self
            .process(open)
            .and_then(Process::server)
            .and_then(|server| server.k);
        if enforced.unwrap_or(0) < k {
            let why = format!("it is open with k={enforced:?}, recorded is {k}");
            self.violate("I7 NeverStronger", why);
        }
        if let Some(who) = self.stranger(open) {
            let why = format!("shop-{who} acknowledges and is not recorded");
            self.violate("I7 NeverStronger", why);
        }
    }

    /// Somebody whose acknowledgements count at this server, and who is no member.
    fn stranger(&self, open: usize) -> Option<Ordinal> {
        let run = self.process(open)?.server()?.run;
        let counts = |process: &&Process| {
            let connection = process
                .server()
                .and_then(|server| server.connection.as_ref());
            process.alive
                && connection.is_some_and(|c| c.acknowledges && c.process == open && c.run == run)
        };
        let stranger = self.processes.iter().filter(counts).find(|process| {
            let data = self
                .volumes
                .get(&(process.ordinal, process.generation))
                .and_then(crate::disk::Volume::data);
            let member = self.api.record.acker(process.ordinal);
            self.open_to(open, process.ordinal)
                && member.map(|member| member.uuid) != data.map(|data| data.uuid)
        });
        stranger.map(|process| process.ordinal)
    }

    /// The cluster is Healthy, writers have stopped: everything is everywhere.
    pub(crate) fn check_end(&mut self) {
        let wanted = self.acknowledged.union(&self.read);
        for ordinal in self.ordinals() {
            let Some((server, data)) = self.named(ordinal).and_then(|id| self.server_and_data(id))
            else {
                self.violate(
                    "I1 NoAcknowledgedLost",
                    format!("shop-{ordinal} does not run at the end"),
                );
                return;
            };
            let lacks = wanted.subtract(&server.executed(data));
            if !lacks.is_empty() {
                self.violate(
                    "I1 NoAcknowledgedLost",
                    format!("shop-{ordinal} lacks {lacks} at the end"),
                );
            }
        }
    }
}
