//! What goes on by itself: boots, receivers, appliers, acknowledgements,
//! rounds of questions, freezes, clones, Pods that end.

use katazuke_core::observed::{Mysqld as Said, Receiver};
use katazuke_core::record::{Acknowledge, Ordinal};

use crate::agent::Asked;
use crate::disk::add;
use crate::event::Event;
use crate::mysqld::{self, Connection, Freezing, Mysqld, Process, Server, Then, Writer};
use crate::world::{Place, World};

/// A receiver gives a silent connection up after this long (replica_net_timeout).
const NET_TIMEOUT: u64 = 8_000;

impl World {
    pub(crate) fn booted(&mut self, id: usize, run: u64) {
        let now = self.now;
        let Some(process) = self.process(id) else {
            return;
        };
        if !matches!(process.mysqld, Mysqld::Starting { run: starting } if starting == run) {
            return;
        }
        let Some(data) = self
            .volume_of_mut(id)
            .and_then(crate::disk::Volume::data_mut)
        else {
            return;
        };
        let mut server = Server::boot(run, data, now);
        if let Some(volume) = self.volume_of(id) {
            server.peers.clone_from(&volume.noted.peers);
        }
        if let Some(process) = self.process_mut(id) {
            let ordinal = process.ordinal;
            process.mysqld = Mysqld::Running(Box::new(server));
            process.said = Process::gated();
            process.answered = now;
            process.asking = None;
            self.say(|| format!("shop-{ordinal} runs"));
        }
        self.after(
            10,
            Event::Poll {
                process: id,
                run,
                stage: 0,
            },
        );
        self.after(20, Event::Replicate { process: id, run });
    }

    /// A round of questions in three moments; nothing is read while it is stopped.
    pub(crate) fn poll(&mut self, id: usize, run: u64, stage: u8) {
        if self.running(id, run).is_none() {
            return;
        }
        if self.frozen(id) {
            self.after(
                50,
                Event::Poll {
                    process: id,
                    run,
                    stage,
                },
            );
            return;
        }
        let next = match stage {
            0 => (self.between(1, 12), 1),
            1 => (self.between(1, 12), 2),
            _ => (self.between(100, 170), 0),
        };
        self.ask(id, stage);
        self.after(
            next.0,
            Event::Poll {
                process: id,
                run,
                stage: next.1,
            },
        );
    }

    fn ask(&mut self, id: usize, stage: u8) {
        let now = self.now;
        let Some(process) = self.process_mut(id) else {
            return;
        };
        let (obeyed, asking) = (process.obeyed, process.asking.take());
        if stage == 0 {
            process.round += 1;
        }
        let round = process.round;
        let Some((server, data)) = self.server_and_data(id) else {
            return;
        };
        let asking = match (stage, asking) {
            (0, _) => Some((round, mysqld::ask_variables(server, data, obeyed))),
            (1, Some((round, mut told))) => {
                mysqld::ask_replica(&mut told, server, data);
                Some((round, told))
            }
            (_, Some((round, mut told))) => {
                mysqld::ask_binlog(&mut told, data);
                Some((round, told))
            }
            (_, None) => None,
        };
        let Some(process) = self.process_mut(id) else {
            return;
        };
        process.answered = now;
        match (stage, asking) {
            (2, Some((round, told))) if round > process.published => {
                process.published = round;
                process.said = Said::Running(told);
            }
            (2, _) => {}
            (_, asking) => process.asking = asking,
        }
    }

    /// Receiver and applier, one small step.
    pub(crate) fn replicate(&mut self, id: usize, run: u64) {
        if self.running(id, run).is_none() {
            return;
        }
        let follows = self.data_of(id).is_some_and(|data| data.source.is_some());
        let next = if follows { self.between(15, 90) } else { 150 };
        self.after(next, Event::Replicate { process: id, run });
        if self.frozen(id) {
            return;
        }
        self.connect(id);
        self.receive(id);
        let (now, count) = (self.now, self.rng.usize(1..8));
        let Some((server, data)) = self.server_and_data(id) else {
            return;
        };
        if server.applier && server.stalled_until <= now {
            mysqld::Server::apply(data, count);
        }
    }

    /// Whether the replication account of an instance is open at a server.
    pub(crate) fn open_to(&self, at: usize, ordinal: Ordinal) -> bool {
        let server = self.process(at).and_then(Process::server);
        server.is_some_and(|server| server.peers.contains(&ordinal))
    }

    /// A receiver that tries: attached to whoever runs under that name now.
    pub(crate) fn connect(&mut self, id: usize) {
        let Some((ordinal, server)) = self
            .process(id)
            .and_then(|p| Some((p.ordinal, p.server()?)))
        else {
            return;
        };
        if server.receiver != Receiver::Connecting {
            return;
        }
        let acknowledges = server.acks_on;
        let Some(source) = self.data_of(id).and_then(|data| data.source) else {
            return;
        };
        let Some(at) = self.named(source.ordinal).filter(|at| *at != id) else {
            return;
        };
        let (here, there) = (Place::Instance(ordinal), Place::Instance(source.ordinal));
        if !self.linked(here, there)
            || !self.linked(there, here)
            || self.frozen(at)
            || !self.open_to(at, ordinal)
        {
            return;
        }
        let Some(run) = self
            .process(at)
            .and_then(Process::server)
            .map(|server| server.run)
        else {
            return;
        };
        let Some((uuid, base)) = self.data_of(at).map(|data| (data.uuid, data.base.clone())) else {
            return;
        };
        let now = self.now;
        let Some((server, data)) = self.server_and_data(id) else {
            return;
        };
        let lacks = base.subtract(&server.received(data));
        if !lacks.is_empty() {
            server.receiver = Receiver::No;
            let lacks = World::set_words(&lacks);
            server.receiver_error = Some(format!("13114 the source has purged {lacks}"));
            self.tally.count("purged at the source");
            return;
        }
        server.heard = now;
        if let Some(source) = &mut data.source {
            if source.uuid != Some(uuid) {
                server.position = katazuke_core::observed::Position::default();
            }
            source.uuid = Some(uuid);
        }
        if uuid != source.wanted && now - source.ordered < 1_500 {
            server.receiver = Receiver::No;
            return;
        }
        server.receiver = Receiver::Yes;
        server.connection = Some(Connection {
            process: at,
            run,
            acknowledges,
            next: 0,
        });
    }

    /// The connection, while data can come over it; a dead one is let go.
    fn line(&mut self, id: usize) -> Option<Connection> {
        let server = self.process(id)?.server()?;
        let ordinal = self.process(id)?.ordinal;
        let (connection, heard) = (server.connection.clone()?, server.heard);
        let source = self.processes.get(connection.process)?.ordinal;
        // A locked account's dump thread is killed (fact 22).
        let alive = self.running(connection.process, connection.run).is_some()
            && self.open_to(connection.process, ordinal);
        let arrives = self.linked(Place::Instance(source), Place::Instance(ordinal));
        let silent = !arrives || self.frozen(connection.process);
        if (silent && self.now - heard > NET_TIMEOUT) || (!silent && !alive) {
            self.lose_source(id);
        }
        (alive && !silent).then_some(connection)
    }

    fn receive(&mut self, id: usize) {
        let Some(connection) = self.line(id) else {
            return;
        };
        let count = match self.rng.u32(0..10) {
            0 => 0,
            1..4 => 1,
            _ => 50,
        };
        let Some(log) = self.data_of(connection.process) else {
            return;
        };
        let batch: Vec<_> = log
            .log
            .iter()
            .skip(connection.next)
            .take(count)
            .copied()
            .collect();
        let next = connection.next + batch.len();
        let position = if next == log.log.len() {
            log.end()
        } else {
            log.place(next)
        };
        let synced = self.setting.acknowledge == Acknowledge::Fsynced;
        let now = self.now;
        let Some((server, data)) = self.server_and_data(id) else {
            return;
        };
        server.heard = now;
        for tx in batch {
            if !crate::disk::has(&server.retrieved, tx) && !crate::disk::has(&data.logged, tx) {
                server.receive(data, tx, synced);
            }
        }
        if count > 0 {
            server.position = position;
        }
        if let Some(connection) = &mut server.connection {
            connection.next = next;
        }
        self.acknowledge(id, &connection, next);
        if !synced {
            self.sync_lazily(id);
        }
    }

    fn acknowledge(&mut self, id: usize, connection: &Connection, upto: usize) {
        let Some(from) = self.process(id).map(|process| process.ordinal) else {
            return;
        };
        let Some(source) = self.processes.get(connection.process) else {
            return;
        };
        let linked = self.linked(Place::Instance(from), Place::Instance(source.ordinal));
        if connection.acknowledges && upto > connection.next && linked {
            let delay = self.between(1, 30);
            let (process, run) = (connection.process, connection.run);
            let ack = Event::Ack {
                process,
                run,
                from,
                upto,
            };
            self.after(delay, ack);
        }
    }

    /// The kernel writes the page cache back now and then.
    fn sync_lazily(&mut self, id: usize) {
        if self.rng.u32(0..200) > 0 {
            return;
        }
        if let Some((_, data)) = self.server_and_data(id) {
            for relayed in &mut data.relay {
                relayed.synced = true;
            }
        }
    }

    fn lose_source(&mut self, id: usize) {
        if let Some((server, _)) = self.server_and_data(id) {
            server.connection = None;
            server.receiver = Receiver::Connecting;
        }
    }

    pub(crate) fn take_ack(&mut self, id: usize, run: u64, from: Ordinal, upto: usize) {
        if self.running(id, run).is_none() {
            return;
        }
        let Some(source) = self.process(id).map(|process| process.ordinal) else {
            return;
        };
        if !self.linked(Place::Instance(from), Place::Instance(source)) {
            return;
        }
        if let Some((server, _)) = self.server_and_data(id) {
            for waiting in &mut server.waiting {
                if waiting.index <= upto {
                    waiting.acks.insert(from);
                }
            }
        }
        if !self.frozen(id) {
            self.release(id);
        }
    }

    /// Commits that need not wait any longer: engine, then OK.
    pub(crate) fn release(&mut self, id: usize) {
        let Some((server, data)) = self.server_and_data(id) else {
            return;
        };
        let (uuid, k) = (data.uuid, server.k.unwrap_or(0) as usize);
        let released = server.release();
        if released.is_empty() {
            return;
        }
        for waiting in &released {
            if waiting.writer == Writer::Account
                && let Some((server, _)) = self.server_and_data(id)
            {
                server.app_ready = true;
            }
        }
        for waiting in released {
            let proved = waiting.acks.len() >= k && k > 0;
            self.answered_ok(id, uuid, waiting.tx, proved);
        }
    }

    /// super_read_only waits for the commits before it, and gives up at its bound (fact 23).
    pub(crate) fn freezing(&mut self, id: usize, run: u64) {
        let (now, frozen) = (self.now, self.frozen(id));
        if self.running(id, run).is_none() {
            return;
        }
        let Some((server, _)) = self.server_and_data(id) else {
            return;
        };
        let Some(Freezing { until, then }) = server.freezing.clone() else {
            return;
        };
        let may = !frozen && server.waiting.is_empty();
        if !may && now < until {
            self.after(20, Event::Freezing { process: id, run });
            return;
        }
        server.freezing = None;
        if may {
            server.read_only = true;
        }
        match then {
            Then::Answer(asked) => self.frozen_answer(id, &asked, may),
            Then::Shutdown(asked) => {
                match may {
                    true => self.shut_down(id),
                    false => self.end_mysqld(id),
                }
                if let Some(asked) = asked {
                    self.obeyed(id, asked.version);
                    self.answer(&asked, id);
                }
            }
        }
    }

    fn frozen_answer(&mut self, id: usize, asked: &Asked, may: bool) {
        if !may {
            self.tally.count("orders refused");
            self.say(|| format!("shop-{} does not freeze: commits wait", asked.ordinal));
            self.refuse(asked, "commits wait".to_owned());
            return;
        }
        if let Some((server, _)) = self.server_and_data(id) {
            server.serving = None;
        }
        self.say(|| format!("shop-{} is frozen", asked.ordinal));
        self.obeyed(id, asked.version);
        self.answer(asked, id);
    }

    /// SIGTERM: waiters are answered OK (fact 5), a Stop event is written, exit 0.
    pub(crate) fn shut_down(&mut self, id: usize) {
        let Some((server, data)) = self.server_and_data(id) else {
            return;
        };
        let (uuid, serving) = (data.uuid, server.serving);
        let waiting: Vec<_> = server.waiting.drain(..).collect();
        if let Some(file) = data.files.last_mut() {
            file.stopped = true;
        }
        for waiting in waiting {
            self.answered_ok(id, uuid, waiting.tx, false);
        }
        if let (Some(epoch), Some(volume)) = (serving, self.volume_of_mut(id)) {
            volume.noted.not_strict.insert(epoch);
            volume.noted.not_strict.insert(volume.noted.epoch);
        }
        self.end_mysqld(id);
    }

    /// A row somebody was told: by k acknowledgements, or without.
    pub(crate) fn note_ok(&mut self, tx: crate::disk::Tx, proved: bool) {
        if proved {
            self.tally.count("acknowledged writes");
            add(&mut self.acknowledged, tx);
        } else {
            self.tally.count("OKs without acknowledgement");
            add(&mut self.weakly, tx);
        }
    }
}
