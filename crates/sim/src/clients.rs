//! Writers and readers. A writer remembers what was answered OK; a reader
//! remembers what it saw on an open primary. Both go where the label points,
//! or stay on an old connection.

use katazuke_core::observed::Role;
use katazuke_core::record::Ordinal;

use crate::event::Event;
use crate::mysqld::Writer;
use crate::world::World;

impl World {
    /// A process that takes writes: by the label, or by a connection kept from before.
    fn somebody_open(&mut self) -> Option<usize> {
        let by_label: Vec<usize> = self
            .api
            .pods
            .values()
            .filter(|pod| pod.role == Some(Role::Primary))
            .filter_map(|pod| pod.process)
            .collect();
        let kept: Vec<usize> = (0..self.processes.len())
            .filter(|id| {
                self.process(*id).is_some_and(|process| {
                    self.node_up(process.ordinal)
                        && process
                            .server()
                            .is_some_and(|server| !server.read_only && !server.offline)
                })
            })
            .collect();
        let from = if self.rng.u32(0..4) == 0 {
            &kept
        } else {
            &by_label
        };
        if from.is_empty() {
            return None;
        }
        let index = self.rng.usize(0..from.len());
        from.get(index).copied()
    }

    pub(crate) fn client_writes(&mut self, client: usize) {
        let next = self.between(60, 400);
        self.after(next, Event::Write(client));
        if !self.writing {
            return;
        }
        let Some(id) = self.somebody_open() else {
            return;
        };
        if self.frozen(id) {
            return;
        }
        let Some((server, data)) = self.server_and_data(id) else {
            return;
        };
        if server.read_only || server.offline || server.freezing.is_some() {
            return;
        }
        if server.waiting.len() >= 8 {
            self.tally.count("commits that waited long");
            return;
        }
        server.write(data, Writer::Client);
        self.release(id);
    }

    pub(crate) fn reader_reads(&mut self) {
        let next = self.between(50, 300);
        self.after(next, Event::Read);
        let Some(id) = self.somebody_open() else {
            return;
        };
        if self.frozen(id) {
            return;
        }
        let Some((server, data)) = self.server_and_data(id) else {
            return;
        };
        if !server.offline && !server.read_only {
            let rows = server.executed(data);
            self.read = self.read.union(&rows);
        }
    }

    pub(crate) fn ordinals(&self) -> impl Iterator<Item = Ordinal> + use<> {
        (0..self.setting.replicas).map(Ordinal)
    }
}
