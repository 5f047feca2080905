//! What can happen, one variant each, and the one match that lets it happen.

use gtid::GtidSet;
use katazuke_core::Action;
use katazuke_core::observed::Agent;
use katazuke_core::record::Ordinal;

use crate::agent::Order;
use crate::faults::Fault;
use crate::operator::Basis;
use crate::world::World;

/// What can happen.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Pass(usize),
    /// After the record was written.
    PassAtOnce(usize),
    Cache(usize),
    Send {
        operator: usize,
        life: u64,
        action: Action,
        basis: Basis,
    },
    Act {
        operator: usize,
        action: Action,
        basis: Basis,
    },
    Order(Order),
    Reply {
        operator: usize,
        life: u64,
        pod: String,
        ordinal: Ordinal,
        agent: Box<Agent>,
    },
    Refused {
        operator: usize,
        life: u64,
        ordinal: Ordinal,
        act: &'static str,
        version: u64,
        why: String,
    },
    Frame(usize),
    Poll {
        process: usize,
        run: u64,
        stage: u8,
    },
    Replicate {
        process: usize,
        run: u64,
    },
    Ack {
        process: usize,
        run: u64,
        from: Ordinal,
        upto: usize,
    },
    Booted {
        process: usize,
        run: u64,
    },
    Freezing {
        process: usize,
        run: u64,
    },
    Job {
        process: usize,
        number: u64,
        work: Work,
    },
    Terminating {
        process: usize,
        since: u64,
    },
    PodStarts {
        ordinal: Ordinal,
        uid: String,
    },
    ContainerStarts {
        ordinal: Ordinal,
        uid: String,
    },
    Write(usize),
    Read,
    Fault(Fault),
    NodeReturns(Ordinal),
    KillProcess(usize),
}

/// Long work of an agent.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    Initialise,
    /// From this process's mysqld.
    Clone {
        donor: usize,
        run: u64,
        base: Option<GtidSet>,
        steps: u8,
    },
}

impl World {
    pub(crate) fn happen(&mut self, event: Event) {
        match event {
            Event::Pass(operator) => self.pass(operator),
            Event::PassAtOnce(operator) => self.pass_once(operator),
            Event::Cache(operator) => self.refresh_cache(operator),
            Event::Send {
                operator,
                life,
                action,
                basis,
            } => {
                self.send(operator, life, action, basis);
            }
            Event::Act {
                operator,
                action,
                basis,
            } => {
                self.act(operator, action, basis);
            }
            Event::Order(order) => self.take_order(order),
            Event::Reply {
                operator,
                life,
                pod,
                ordinal,
                agent,
            } => {
                self.hear(operator, life, &pod, ordinal, *agent);
            }
            Event::Refused {
                operator,
                life,
                ordinal,
                act,
                version,
                why,
            } => {
                self.hear_refusal(operator, life, (ordinal, act, version), why);
            }
            Event::Frame(process) => self.frame(process),
            Event::Poll {
                process,
                run,
                stage,
            } => self.poll(process, run, stage),
            Event::Replicate { process, run } => self.replicate(process, run),
            Event::Ack {
                process,
                run,
                from,
                upto,
            } => self.take_ack(process, run, from, upto),
            Event::Booted { process, run } => self.booted(process, run),
            Event::Freezing { process, run } => self.freezing(process, run),
            Event::Job {
                process,
                number,
                work,
            } => self.work(process, number, work),
            Event::Terminating { process, since } => self.terminating(process, since),
            Event::PodStarts { ordinal, uid } => self.pod_starts(ordinal, &uid, true),
            Event::ContainerStarts { ordinal, uid } => self.pod_starts(ordinal, &uid, false),
            Event::Write(client) => self.client_writes(client),
            Event::Read => self.reader_reads(),
            Event::Fault(fault) => self.fault(fault),
            Event::NodeReturns(ordinal) => self.node_returns(ordinal),
            Event::KillProcess(process) => self.end_process(process),
        }
    }
}
