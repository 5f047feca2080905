//! The agent's side of an order: the version is checked and persisted first
//! (R2), the precondition at the moment of acting, then the act is done. Says
//! what the real agent says; never decides.

use std::collections::BTreeSet;

use gtid::{GtidSet, Uuid};
use katazuke_core::Directive;
use katazuke_core::observed::{Mysqld as Said, Receiver};
use katazuke_core::record::Ordinal;

use crate::disk::Content;
use crate::event::{Event, Work};
use crate::mysqld::{self, Freezing, Job, Mysqld, Process, Then};
use crate::world::{Place, World};

/// Who asked, for the answer.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) operator: usize,
    pub(crate) life: u64,
    pub(crate) ordinal: Ordinal,
    pub(crate) act: &'static str,
    pub(crate) version: u64,
}

/// An order on its way.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) asked: Asked,
    pub(crate) process: usize,
    pub(crate) uuid: Option<Uuid>,
    pub(crate) epoch: u64,
    /// Whose replication accounts are open (section 14).
    pub(crate) peers: BTreeSet<Ordinal>,
    pub(crate) directive: Directive,
    /// Waited for its turn since.
    pub(crate) since: u64,
}

/// What became of it.
pub(crate) enum Outcome {
    Done,
    Refused(String),
    /// Tried and failed; nothing is remembered of it.
    Failed,
    /// Answered later.
    Later,
}

impl World {
    pub(crate) fn take_order(&mut self, order: Order) {
        let id = order.process;
        let operator = Place::Operator(order.asked.operator);
        if self.process(id).is_none()
            || !self.linked(operator, Place::Instance(order.asked.ordinal))
        {
            return;
        }
        let jumps = matches!(order.directive, Directive::Fence | Directive::FenceSelf);
        let busy = self
            .process(id)
            .and_then(Process::server)
            .is_some_and(|s| s.freezing.is_some());
        if busy && !jumps {
            if self.now - order.since < 60_000 {
                self.after(100, Event::Order(order));
            }
            return;
        }
        let (words, version) = (order.directive.name(), order.asked.version);
        if let Err(why) = self.admit(&order) {
            self.say(|| {
                format!(
                    "shop-{} refuses {words} v={version}: {why}",
                    order.asked.ordinal
                )
            });
            self.refuse(&order.asked, why);
            return;
        }
        let outcome = self.obey(&order);
        match outcome {
            Outcome::Done => {
                self.say(|| format!("shop-{} did {words} v={version}", order.asked.ordinal));
                self.obeyed(id, version);
                self.answer(&order.asked, id);
            }
            Outcome::Refused(why) => {
                self.tally.count("orders refused");
                self.say(|| {
                    format!(
                        "shop-{} refuses {words} v={version}: {why}",
                        order.asked.ordinal
                    )
                });
                self.refuse(&order.asked, why);
            }
            Outcome::Failed | Outcome::Later => {}
        }
    }

    /// R2, on disk when it returns.
    fn admit(&mut self, order: &Order) -> Result<(), String> {
        let id = order.process;
        if !self.owns_volume(id) {
            return Err("the volume is locked by another process".to_owned());
        }
        let version = order.asked.version;
        let seen = self.volume_of(id).map_or(0, |volume| volume.noted.version);
        if version < seen {
            self.tally.count("late orders refused");
            return Err(format!("version {seen} was seen"));
        }
        let ours = self.data_of(id).map(|data| data.uuid);
        if ours != order.uuid {
            return Err("meant for another server".to_owned());
        }
        if let Some(volume) = self.volume_of_mut(id)
            && version > seen
        {
            volume.noted.version = version;
            volume.noted.epoch = order.epoch;
        }
        if let Some(volume) = self.volume_of_mut(id) {
            volume.noted.peers.clone_from(&order.peers);
        }
        Ok(())
    }

    pub(crate) fn refuse(&mut self, asked: &Asked, why: String) {
        if !self.linked(
            Place::Instance(asked.ordinal),
            Place::Operator(asked.operator),
        ) {
            return;
        }
        let delay = self.delay();
        let Asked {
            operator,
            life,
            ordinal,
            act,
            version,
        } = *asked;
        self.after(
            delay,
            Event::Refused {
                operator,
                life,
                ordinal,
                act,
                version,
                why,
            },
        );
    }

    /// From now on what is read was read after this order; the answer carries it.
    pub(crate) fn obeyed(&mut self, id: usize, version: u64) {
        if let Some(process) = self.process_mut(id) {
            process.obeyed = process.obeyed.max(version);
        }
        self.look(id);
    }

    /// A whole look at the server, in one moment.
    pub(crate) fn look(&mut self, id: usize) {
        if self.frozen(id) {
            return;
        }
        let now = self.now;
        let Some(obeyed) = self.process(id).map(|process| process.obeyed) else {
            return;
        };
        let Some((server, data)) = self.server_and_data(id) else {
            return;
        };
        let told = mysqld::ask(server, data, obeyed);
        let Some(process) = self.process_mut(id) else {
            return;
        };
        process.round += 1;
        process.published = process.round;
        process.said = Said::Running(told);
        process.answered = now;
    }

    pub(crate) fn answer(&mut self, asked: &Asked, id: usize) {
        let Some(agent) = self.agent_says(id) else {
            return;
        };
        if !self.linked(
            Place::Instance(asked.ordinal),
            Place::Operator(asked.operator),
        ) {
            self.tally.count("answers lost");
            return;
        }
        let pod = self
            .process(id)
            .map(|process| process.pod.clone())
            .unwrap_or_default();
        let delay = self.delay();
        let Asked {
            operator,
            life,
            ordinal,
            ..
        } = *asked;
        self.after(
            delay,
            Event::Reply {
                operator,
                life,
                pod,
                ordinal,
                agent: Box::new(agent),
            },
        );
    }

    fn obey(&mut self, order: &Order) -> Outcome {
        let id = order.process;
        match &order.directive {
            Directive::Initialise => self.begin_job(id, "Initialise", Work::Initialise),
            Directive::Clone { donor, donor_uuid } => self.begin_clone(id, *donor, *donor_uuid),
            Directive::Boot => self.boot(id),
            Directive::Resume => self.resume(order),
            Directive::FenceSelf => {
                let stamp = (order.asked.version, order.epoch);
                if let Some(volume) = self.volume_of_mut(id) {
                    volume.noted.self_fenced = volume.noted.self_fenced.max(Some(stamp));
                }
                self.end_mysqld(id);
                Outcome::Done
            }
            Directive::Stop => self.shut(id, Then::Shutdown(Some(order.asked.clone())), 5_000),
            Directive::Discard { epoch: _, kept } => self.discard(id, kept),
            Directive::Fence => self.fence(order),
            Directive::Follow { .. }
            | Directive::Admit { .. }
            | Directive::CatchUp
            | Directive::Promote { .. }
            | Directive::SemiSync { .. }
            | Directive::Open { .. }
            | Directive::ServeReads
            | Directive::CloseReads
            | Directive::Freeze { .. }
            | Directive::DiscardRelayLogs { .. }
            | Directive::EnsureApp => {
                if self.process(id).and_then(Process::server).is_none() {
                    return Outcome::Refused("mysqld does not run".to_owned());
                }
                if self.frozen(id) {
                    return Outcome::Failed;
                }
                if !matches!(order.directive, Directive::Freeze { .. })
                    && let Some((server, _)) = self.server_and_data(id)
                {
                    server.peers.clone_from(&order.peers);
                }
                self.by_statements(order)
            }
        }
    }

    fn idle(&self, id: usize) -> Result<(), Outcome> {
        let Some(process) = self.process(id) else {
            return Err(Outcome::Failed);
        };
        match (&process.mysqld, &process.job) {
            (Mysqld::Gated, None) => Ok(()),
            (Mysqld::Gated, Some(job)) => {
                Err(Outcome::Refused(format!("{} is under way", job.name)))
            }
            (Mysqld::Starting { .. } | Mysqld::Running(_), _) => {
                Err(Outcome::Refused("mysqld runs".to_owned()))
            }
        }
    }

    fn begin_job(&mut self, id: usize, name: &'static str, work: Work) -> Outcome {
        if let Err(outcome) = self.idle(id) {
            return outcome;
        }
        if self.has_data(id) {
            return Outcome::Refused("the volume holds data".to_owned());
        }
        self.add_job(id, name, work);
        Outcome::Done
    }

    pub(crate) fn add_job(&mut self, id: usize, name: &'static str, work: Work) {
        let number = self.number();
        let time = self.between(400, 1500);
        if let Some(process) = self.process_mut(id) {
            process.job = Some(Job { name, number });
            process.job_failure = None;
        }
        self.after(
            time,
            Event::Job {
                process: id,
                number,
                work,
            },
        );
    }

    fn begin_clone(&mut self, id: usize, donor: Ordinal, donor_uuid: Uuid) -> Outcome {
        let Some(from) = self.named(donor) else {
            return Outcome::Failed;
        };
        let is_donor = self
            .data_of(from)
            .is_some_and(|data| data.uuid == donor_uuid);
        let run = self
            .process(from)
            .and_then(Process::server)
            .map(|server| server.run);
        let open = self
            .process(id)
            .is_some_and(|process| self.open_to(from, process.ordinal));
        let Some(run) = run.filter(|_| is_donor && open) else {
            return Outcome::Failed;
        };
        let steps = u8::try_from(self.between(2, 6)).unwrap_or(2);
        let work = Work::Clone {
            donor: from,
            run,
            base: None,
            steps,
        };
        self.begin_job(id, "Clone", work)
    }

    fn boot(&mut self, id: usize) -> Outcome {
        let starts = self.process(id).map(|process| &process.mysqld);
        if matches!(starts, Some(Mysqld::Running(_) | Mysqld::Starting { .. })) {
            return Outcome::Done;
        }
        if let Err(outcome) = self.idle(id) {
            return outcome;
        }
        if self.process(id).is_some_and(|process| process.terminating) {
            return Outcome::Refused("the Pod is being deleted".to_owned());
        }
        if !self.has_data(id) {
            return Outcome::Refused("no data".to_owned());
        }
        let (run, time) = (self.number(), self.between(600, 2500));
        if let Some(process) = self.process_mut(id) {
            process.mysqld = Mysqld::Starting { run };
        }
        self.after(time, Event::Booted { process: id, run });
        Outcome::Done
    }

    pub(crate) fn fenced_itself(&self, id: usize, epoch: u64) -> bool {
        let fence = self
            .volume_of(id)
            .and_then(|volume| volume.noted.self_fenced);
        fence.is_some_and(|(_, fenced)| fenced >= epoch)
    }

    fn resume(&mut self, order: &Order) -> Outcome {
        if self.fenced_itself(order.process, order.epoch) {
            return Outcome::Refused("fenced itself".to_owned());
        }
        self.boot(order.process)
    }

    fn fence(&mut self, order: &Order) -> Outcome {
        let id = order.process;
        if self.frozen(id) {
            // Its own bound: SIGKILL, a fresh boot acknowledges nothing.
            self.end_mysqld(id);
            return Outcome::Done;
        }
        let Some((server, _)) = self.server_and_data(id) else {
            return Outcome::Done;
        };
        server.receiver = Receiver::No;
        server.connection = None;
        server.acks_on = false;
        Outcome::Done
    }

    /// Archive, then nothing is left; the incarnation is renewed first.
    fn discard(&mut self, id: usize, kept: &GtidSet) -> Outcome {
        if let Err(outcome) = self.idle(id) {
            return outcome;
        }
        let Some(data) = self.data_of(id) else {
            return Outcome::Done;
        };
        let received = data.received();
        self.destroyed(id, &received, kept);
        self.renew_incarnation(id);
        if let Some(volume) = self.volume_of_mut(id) {
            volume.content = Content::Empty;
        }
        self.tally.count("rejoined by re-clone (Discard)");
        self.end_mysqld(id);
        Outcome::Done
    }

    pub(crate) fn renew_incarnation(&mut self, id: usize) {
        let number = self.number();
        if let Some(process) = self.process_mut(id) {
            process.incarnation = format!("r{number}");
        }
    }

    /// super_read_only within a bound; what comes then is up to the caller.
    pub(crate) fn shut(&mut self, id: usize, then: Then, bound: u64) -> Outcome {
        let now = self.now;
        let frozen = self.frozen(id);
        let Some((server, _)) = self.server_and_data(id) else {
            self.end_mysqld(id);
            return Outcome::Done;
        };
        let run = server.run;
        let until = if frozen { now } else { now + bound };
        server.freezing = Some(Freezing { until, then });
        self.after(1, Event::Freezing { process: id, run });
        Outcome::Later
    }
}
