//! Orders that are carried out by statements on a server that answers. Each
//! checks its precondition when it acts. Never deletes a relay log by accident.

use gtid::{GtidSet, Uuid};
use katazuke_core::Directive;
use katazuke_core::observed::Receiver;
use katazuke_core::record::Ordinal;

use crate::agent::{Order, Outcome};
use crate::disk::{Data, Source};
use crate::mysqld::{self, Then, Writer};
use crate::world::World;

impl World {
    pub(crate) fn by_statements(&mut self, order: &Order) -> Outcome {
        let id = order.process;
        match &order.directive {
            Directive::Follow {
                source,
                source_uuid,
                within,
            } => self.follow(id, *source, *source_uuid, within),
            Directive::Admit { source_uuid } => self.admit_acker(id, *source_uuid),
            Directive::Promote { until, k } => self.promote(id, until, *k),
            Directive::SemiSync { k } => self.semi_sync(id, *k),
            Directive::Open { k } => self.open(order, *k),
            Directive::Freeze {
                wait_milliseconds, ..
            } => self.shut(id, Then::Answer(order.asked.clone()), *wait_milliseconds),
            Directive::DiscardRelayLogs { kept } => self.discard_relay_logs(id, kept),
            Directive::CatchUp => {
                if let Some((server, data)) = self.server_and_data(id) {
                    server.applier = data.source.is_some();
                }
                Outcome::Done
            }
            Directive::ServeReads | Directive::CloseReads => {
                let serve = matches!(order.directive, Directive::ServeReads);
                let Some((server, data)) = self.server_and_data(id) else {
                    return Outcome::Failed;
                };
                if serve && !(data.source.is_some() && server.applier && server.read_only) {
                    return Outcome::Refused("not replicating".to_owned());
                }
                server.offline = !serve;
                Outcome::Done
            }
            Directive::EnsureApp => self.ensure_app(id),
            Directive::Initialise
            | Directive::Clone { .. }
            | Directive::Boot
            | Directive::Resume
            | Directive::Fence
            | Directive::FenceSelf
            | Directive::Stop
            | Directive::Discard { .. } => Outcome::Failed,
        }
    }

    fn ensure_app(&mut self, id: usize) -> Outcome {
        let Some((server, data)) = self.server_and_data(id) else {
            return Outcome::Failed;
        };
        if server.read_only {
            return Outcome::Refused("not open".to_owned());
        }
        let waits = server
            .waiting
            .iter()
            .any(|waiting| waiting.writer == Writer::Account);
        if !waits && !server.app_ready {
            server.write(data, Writer::Account);
        }
        self.release(id);
        Outcome::Done
    }

    fn follow(&mut self, id: usize, source: Ordinal, uuid: Uuid, within: &GtidSet) -> Outcome {
        let now = self.now;
        let Some((server, data)) = self.server_and_data(id) else {
            return Outcome::Failed;
        };
        if !server.read_only || data.uuid == uuid {
            return Outcome::Refused("open for writes, or itself".to_owned());
        }
        let errant = server.received(data).subtract(within);
        if !errant.is_empty() {
            return Outcome::Refused(format!("not covered: {}", World::set_words(&errant)));
        }
        let same = data
            .source
            .is_some_and(|s| s.ordinal == source && s.uuid == Some(uuid));
        if same && server.receiver == Receiver::Yes && server.applier && !server.acks_on {
            return Outcome::Done;
        }
        server.acks_on = false;
        server.connection = None;
        server.receiver = Receiver::Connecting;
        server.receiver_error = None;
        server.applier = true;
        server.heard = now;
        let moved = data.source.is_none_or(|former| former.ordinal != source);
        let known = data
            .source
            .and_then(|former| former.uuid)
            .filter(|_| !moved);
        data.source = Some(Source {
            ordinal: source,
            uuid: known,
            wanted: uuid,
            ordered: now,
        });
        if moved {
            server.position = katazuke_core::observed::Position::default();
        }
        self.connect(id);
        Outcome::Done
    }

    fn admit_acker(&mut self, id: usize, uuid: Uuid) -> Outcome {
        let Some((server, data)) = self.server_and_data(id) else {
            return Outcome::Failed;
        };
        let attached = data.source.is_some_and(|source| source.uuid == Some(uuid));
        if !attached || server.receiver != Receiver::Yes {
            return Outcome::Refused("not attached to it".to_owned());
        }
        if server.acks_on && server.connection.as_ref().is_some_and(|c| c.acknowledges) {
            return Outcome::Done;
        }
        server.acks_on = true;
        server.connection = None;
        server.receiver = Receiver::Connecting;
        self.connect(id);
        Outcome::Done
    }

    fn promote(&mut self, id: usize, until: &GtidSet, k: u32) -> Outcome {
        let Some((server, data)) = self.server_and_data(id) else {
            return Outcome::Failed;
        };
        if !server.read_only {
            return Outcome::Refused("open for writes already".to_owned());
        }
        if !server.executed(data).contains(until) {
            return Outcome::Refused("not applied yet".to_owned());
        }
        if data.source.is_some() {
            if server.receiver != Receiver::No {
                return Outcome::Refused("the receiver is not stopped".to_owned());
            }
            if !data.relay.is_empty() {
                return Outcome::Refused("received and not applied".to_owned());
            }
            reset_replica(server, data);
        }
        self.semi_sync(id, k)
    }

    fn semi_sync(&mut self, id: usize, k: u32) -> Outcome {
        let Some((server, _)) = self.server_and_data(id) else {
            return Outcome::Failed;
        };
        server.k = (k > 0).then_some(k);
        let noted = self.volume_of(id).map_or(0, |volume| volume.noted.epoch);
        if let Some((server, _)) = self.server_and_data(id)
            && server.serving.is_some()
        {
            server.serving = Some(noted);
        }
        self.release(id);
        Outcome::Done
    }

    fn open(&mut self, order: &Order, k: u32) -> Outcome {
        let id = order.process;
        if self.fenced_itself(id, order.epoch) {
            return Outcome::Refused("fenced itself".to_owned());
        }
        if self.process(id).is_some_and(|process| process.terminating) {
            return Outcome::Refused("the Pod is being deleted".to_owned());
        }
        let Some((server, data)) = self.server_and_data(id) else {
            return Outcome::Failed;
        };
        if data.source.is_some() || server.k != (k > 0).then_some(k) {
            return Outcome::Refused("a replica still, or semi-sync is not as ordered".to_owned());
        }
        let first = server.read_only;
        server.serving = Some(order.epoch);
        server.read_only = false;
        server.offline = false;
        if first {
            self.check_open(id, order.asked.version);
        }
        Outcome::Done
    }

    fn discard_relay_logs(&mut self, id: usize, kept: &GtidSet) -> Outcome {
        let Some((server, data)) = self.server_and_data(id) else {
            return Outcome::Failed;
        };
        if !server.executed(data).subtract(kept).is_empty() {
            return Outcome::Refused("applied already".to_owned());
        }
        let relayed = data.relayed();
        if data.source.is_none() || server.retrieved.subtract(kept).is_empty() {
            return Outcome::Done;
        }
        reset_replica(server, data);
        self.destroyed(id, &relayed, kept);
        self.renew_incarnation(id);
        self.tally.count("relay logs discarded");
        Outcome::Done
    }
}

/// RESET REPLICA ALL.
fn reset_replica(server: &mut mysqld::Server, data: &mut Data) {
    server.receiver = Receiver::No;
    server.connection = None;
    server.applier = false;
    server.acks_on = false;
    server.position = katazuke_core::observed::Position::default();
    server.retrieved = GtidSet::new();
    data.relay.clear();
    data.source = None;
}
