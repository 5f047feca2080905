//! Two operators with the real core in them. Each sees old pictures, acts on a
//! record read live, may be paused between deciding and acting, and may die
//! between any two actions. Remembers nothing that matters.

use std::collections::{BTreeMap, BTreeSet};

use katazuke_core::observed::{Agent, Refusal};
use katazuke_core::record::{Ordinal, Record};
use katazuke_core::semisync::may_replicate;
use katazuke_core::{Action, Plan, Situation, judge, notation, plan};

use crate::agent::{Asked, Order};
use crate::event::Event;
use crate::kube::Pod;
use crate::world::World;

const LEASE: u64 = 6_000;

/// What an action rests on.
#[derive(Debug, Clone)]
pub(crate) struct Basis {
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    /// Whose accounts an order leaves open.
    pub(crate) peers: BTreeSet<Ordinal>,
}

/// What one stream said.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) pod: String,
    pub(crate) agent: Agent,
    pub(crate) last: u64,
    pub(crate) changed: u64,
}

/// One operator process.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    /// Changes with every crash.
    pub(crate) life: u64,
    pub(crate) paused_until: u64,
    pub(crate) down_until: u64,
    /// Paused for this long as soon as it has decided something.
    pub(crate) pauses_next: Option<u64>,
    pub(crate) heard: BTreeMap<Ordinal, Heard>,
    pub(crate) began: BTreeMap<Ordinal, (String, u64)>,
    pub(crate) refusals: BTreeMap<Ordinal, Refusal>,
    pub(crate) pods: BTreeMap<Ordinal, Pod>,
    /// Its watches are synced.
    pub(crate) synced: bool,
    record: Record,
    pub(crate) words: String,
}

/// The last pass of whoever leads.
#[derive(Debug, Clone)]
pub(crate) struct Last {
    pub(crate) situation: Situation,
    pub(crate) why: String,
    /// Settled without a break since.
    pub(crate) settled_since: Option<u64>,
}

impl Operator {
    pub(crate) fn new() -> Operator {
        Operator {
            life: 1,
            paused_until: 0,
            down_until: 0,
            pauses_next: None,
            heard: BTreeMap::new(),
            began: BTreeMap::new(),
            refusals: BTreeMap::new(),
            pods: BTreeMap::new(),
            synced: false,
            record: Record::default(),
            words: String::new(),
        }
    }

    pub(crate) fn crash(&mut self, until: u64) {
        *self = Operator {
            life: self.life + 1,
            down_until: until,
            record: self.record.clone(),
            ..Operator::new()
        };
    }
}

/// Noise at rest does not unsettle; growth does.
fn same(a: &Agent, b: &Agent) -> bool {
    let still = |agent: &Agent| Agent {
        unanswered_milliseconds: 0,
        source_silent_milliseconds: None,
        ..agent.clone()
    };
    still(a) == still(b)
}

impl World {
    fn runs(&self, operator: usize) -> bool {
        let operator = &self.operators[operator];
        operator.paused_until <= self.now && operator.down_until <= self.now
    }

    fn api_answers(&self) -> bool {
        self.api.down_until <= self.now
    }

    /// The watch of the API server, which lags.
    pub(crate) fn refresh_cache(&mut self, operator: usize) {
        let next = self.between(20, 300);
        self.after(next, Event::Cache(operator));
        if !self.runs(operator) || !self.api_answers() {
            return;
        }
        let now = self.now;
        let pods = self.api.pods.clone();
        let record = self.api.record.clone();
        let operator = &mut self.operators[operator];
        for (ordinal, pod) in &pods {
            let dialled = operator
                .began
                .get(ordinal)
                .is_some_and(|(uid, _)| *uid == pod.uid);
            if pod.process.is_some() && !dialled {
                operator.began.insert(*ordinal, (pod.uid.clone(), now));
                operator.heard.remove(ordinal);
            }
        }
        operator.pods = pods;
        operator.synced = true;
        operator.record = record;
    }

    pub(crate) fn hear(
        &mut self,
        operator: usize,
        life: u64,
        pod: &str,
        ordinal: Ordinal,
        agent: Agent,
    ) {
        let now = self.now;
        if !self.runs(operator) || self.operators[operator].life != life {
            return;
        }
        let operator = &mut self.operators[operator];
        if operator
            .pods
            .get(&ordinal)
            .is_none_or(|known| known.uid != pod)
        {
            return;
        }
        let changed = match operator.heard.get(&ordinal) {
            Some(former) if former.pod == pod && same(&former.agent, &agent) => former.changed,
            Some(_) | None => now,
        };
        let heard = Heard {
            pod: pod.to_owned(),
            agent,
            last: now,
            changed,
        };
        operator.heard.insert(ordinal, heard);
    }

    pub(crate) fn hear_refusal(
        &mut self,
        operator: usize,
        life: u64,
        order: (Ordinal, &'static str, u64),
        why: String,
    ) {
        let (ordinal, act, version) = order;
        if self.runs(operator) && self.operators[operator].life == life {
            let refusal = Refusal {
                act: act.to_owned(),
                version,
                message: why,
            };
            self.operators[operator].refusals.insert(ordinal, refusal);
        }
    }

    fn leads(&mut self, operator: usize) -> bool {
        let (holder, renewed) = self.api.lease;
        let expired = self.now.saturating_sub(renewed) > LEASE || renewed == 0;
        if holder == operator || expired {
            self.api.lease = (operator, self.now);
            return true;
        }
        false
    }

    pub(crate) fn pass(&mut self, operator: usize) {
        let next = self.between(150, 300);
        self.after(next, Event::Pass(operator));
        self.pass_once(operator);
    }

    pub(crate) fn pass_once(&mut self, operator: usize) {
        if !self.runs(operator) || !self.api_answers() || !self.leads(operator) {
            return;
        }
        let cached = self.operators[operator].record.clone();
        let observed = self.observe(operator, cached);
        let judgement = judge(&observed);
        let first = plan(&observed, &judgement);
        let (observed, judgement, planned) = match first {
            Plan::Do(_) => {
                let observed = self.observe(operator, self.api.record.clone());
                let judgement = judge(&observed);
                let planned = plan(&observed, &judgement);
                (observed, judgement, planned)
            }
            Plan::Settled | Plan::Wait(_) | Plan::NeedsHuman(_) => (observed, judgement, first),
        };
        self.count_state(&observed, &judgement);
        self.note(operator, &observed, &judgement, &planned);
        self.stir(observed.record.version);
        let Plan::Do(actions) = planned else { return };
        if let Some(time) = self.operators[operator].pauses_next.take() {
            self.operators[operator].paused_until = self.now + time;
        }
        let life = self.operators[operator].life;
        for action in actions {
            let delay = self.between(0, 8);
            let basis = Basis {
                version: observed.record.version,
                epoch: observed.record.epoch,
                peers: match &action {
                    Action::Order { to, .. } => may_replicate(&observed, *to).into_iter().collect(),
                    Action::Record(_)
                    | Action::Role { .. }
                    | Action::CreateInstance { .. }
                    | Action::DeletePod { .. } => BTreeSet::new(),
                },
            };
            self.after(
                delay,
                Event::Send {
                    operator,
                    life,
                    action,
                    basis,
                },
            );
        }
    }

    fn count_state(
        &mut self,
        observed: &katazuke_core::Observed,
        judgement: &katazuke_core::Judgement,
    ) {
        use std::hash::{Hash, Hasher};
        let Some(states) = &mut self.states else {
            return;
        };
        let record = Record {
            version: 0,
            ..observed.record.clone()
        };
        let lines = katazuke_core::conditions::instances(observed);
        let mut hasher = std::hash::DefaultHasher::new();
        format!("{record:?} {:?} {lines:?}", judgement.situation).hash(&mut hasher);
        states.insert(hasher.finish());
    }

    fn note(
        &mut self,
        operator: usize,
        observed: &katazuke_core::Observed,
        judgement: &katazuke_core::Judgement,
        planned: &Plan,
    ) {
        let settled = *planned == Plan::Settled;
        let since = self.last.as_ref().and_then(|last| last.settled_since);
        let changed = self
            .last
            .as_ref()
            .is_none_or(|last| last.situation != judgement.situation);
        if changed {
            self.tally.count(match judgement.situation {
                Situation::Blocked => "blocked",
                Situation::WritesWaiting => "writes waiting",
                Situation::AckedDataMissing => "acknowledged data missing (named)",
                Situation::Diverged => "diverged",
                Situation::PrimaryUnclear => "primary unclear",
                Situation::Resuming => "resumed in place",
                Situation::Deleting
                | Situation::StatusBehind
                | Situation::Paused
                | Situation::Offline
                | Situation::Bootstrapping
                | Situation::FailingOver
                | Situation::SwitchingOver
                | Situation::Promoting
                | Situation::ApplierBroken
                | Situation::Opening
                | Situation::Degraded
                | Situation::Healthy => "other changes of situation",
            });
        }
        if judgement.why.contains("not proved that this may go") && changed {
            self.tally.count("errant, unproven");
        }
        self.last = Some(Last {
            situation: judgement.situation,
            why: judgement.why.clone(),
            settled_since: settled.then(|| since.unwrap_or(self.now)),
        });
        if self.trace.is_some() {
            let instances: Vec<String> = katazuke_core::conditions::instances(observed)
                .into_iter()
                .map(|line| {
                    format!(
                        "shop-{} {}: {}\n",
                        line.ordinal, line.situation, line.message
                    )
                })
                .collect();
            let words = format!(
                "{:?}: {}\n{}{}",
                judgement.situation,
                judgement.why,
                instances.concat(),
                notation::plan(planned)
            );
            if self.operators[operator].words != words {
                let lines = words.trim_end().replace('\n', "\n            ");
                self.say(|| format!("operator {operator} {lines}"));
                self.operators[operator].words = words;
            }
        }
    }

    /// Decided, and now to be done; in between anything may have happened.
    pub(crate) fn send(&mut self, operator: usize, life: u64, action: Action, basis: Basis) {
        let (now, mind) = (self.now, &self.operators[operator]);
        if mind.life != life {
            return;
        }
        if mind.paused_until > now {
            self.tally.count("late actions of a paused operator");
            let wait = self.operators[operator].paused_until - now + self.between(0, 40);
            self.after(
                wait,
                Event::Send {
                    operator,
                    life,
                    action,
                    basis,
                },
            );
            return;
        }
        let delay = match self.rng.u32(0..100) {
            0 => self.between(1_000, 15_000),
            _ => self.delay(),
        };
        if self.rng.u32(0..50) == 0 {
            let again = delay + self.between(1, 4_000);
            let action = action.clone();
            self.after(
                again,
                Event::Act {
                    operator,
                    action,
                    basis: basis.clone(),
                },
            );
        }
        self.after(
            delay,
            Event::Act {
                operator,
                action,
                basis,
            },
        );
    }

    /// It arrives.
    pub(crate) fn act(&mut self, operator: usize, action: Action, basis: Basis) {
        let Basis {
            version,
            epoch,
            peers,
        } = basis;
        match action {
            Action::Record(record) => self.write_record(operator, version, *record),
            Action::Order {
                to,
                uuid,
                directive,
            } => {
                let pod = self.operators[operator].pods.get(&to);
                let Some(process) = pod.and_then(|pod| pod.process) else {
                    return;
                };
                let asked = Asked {
                    operator,
                    life: self.operators[operator].life,
                    ordinal: to,
                    act: directive.name(),
                    version,
                };
                let since = self.now;
                self.take_order(Order {
                    asked,
                    process,
                    uuid,
                    epoch,
                    peers,
                    directive,
                    since,
                });
            }
            Action::Role { of, role } => {
                let known = self.operators[operator]
                    .pods
                    .get(&of)
                    .map(|pod| pod.uid.clone());
                if self.api_answers()
                    && let Some(pod) = self.api.pods.get_mut(&of)
                    && Some(&pod.uid) == known.as_ref()
                {
                    pod.role = role;
                }
            }
            Action::CreateInstance {
                ordinal,
                generation,
            } => {
                if self.api_answers() {
                    self.create_pod(ordinal, generation);
                }
            }
            Action::DeletePod { ordinal, uid, .. } => {
                let same = self
                    .api
                    .pods
                    .get(&ordinal)
                    .is_some_and(|pod| pod.uid == uid);
                if same && self.api_answers() {
                    self.delete_pod(ordinal);
                }
            }
        }
    }

    /// R1.
    fn write_record(&mut self, operator: usize, over: u64, record: Record) {
        if !self.api_answers() {
            return;
        }
        if self.api.record.version != over {
            self.tally.count("record conflicts");
            return;
        }
        self.check_record(&record);
        self.api.record = record;
        if self.rng.u32(0..20) == 0 {
            self.tally.count("answers lost");
            return;
        }
        let delay = self.between(2, 30);
        self.operators[operator].record = self.api.record.clone();
        self.after(delay, Event::PassAtOnce(operator));
    }
}
