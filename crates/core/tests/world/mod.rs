//! The kind world: what it holds is an [`Observed`], changed by carrying out
//! plans and by a tick that replicates, boots and ages.

mod physics;

use gtid::{GtidSet, Uuid};
use katazuke_core::observed::{
    Access, Agent, Claim, Instance, Mysqld, Observed, Pod, Request, Seen, Server, Silence,
};
use katazuke_core::{Action, Directive, Ordinal, Plan, Situation, judge, notation, plan};
use physics::{gate, next_gtid, obey, tick_agent};

pub(crate) struct World {
    pub(crate) seen: Observed,
    acknowledged: GtidSet,
    down: Vec<(Ordinal, Agent)>,
    uuids: u32,
    trace: Vec<String>,
}

fn uuid_number(number: u32) -> Uuid {
    format!("00000000-0000-0000-0000-{number:012x}")
        .parse()
        .unwrap()
}

impl World {
    pub(crate) fn new(replicas: u32) -> World {
        let mut seen = notation::observed(&format!("spec: replicas={replicas}")).unwrap();
        for ordinal in (0..replicas).map(Ordinal) {
            let claim = Claim {
                uid: format!("claim-{ordinal}"),
                generation: 0,
            };
            let instance = Instance {
                pod: Seen::Absent,
                claim: Seen::Present(claim),
                agent: Seen::Absent,
                refusal: None,
            };
            seen.instances.insert(ordinal, instance);
        }
        World {
            seen,
            acknowledged: GtidSet::new(),
            down: Vec::new(),
            uuids: 0,
            trace: Vec::new(),
        }
    }

    pub(crate) fn healthy(replicas: u32) -> World {
        let mut world = World::new(replicas);
        world.run_until_healthy();
        world
    }

    pub(crate) fn primary(&self) -> u32 {
        self.seen.record.primary_ordinal().unwrap().0
    }

    pub(crate) fn serves(&self) -> bool {
        let attached = katazuke_core::semisync::attached(&self.seen).len();
        self.seen
            .primary_server()
            .is_some_and(|server| server.access == Access::Writes)
            && attached >= self.seen.record.k as usize
            && self.seen.record.transition.is_none()
    }

    /// Healthy, and quiet for a while afterwards; nothing acknowledged is missing.
    pub(crate) fn run_until_healthy(&mut self) {
        self.run_until(|world| {
            judge(&world.seen).situation == Situation::Healthy && world.seen.request_is_done()
        });
        for _ in 0..5 {
            self.tick();
            let judgement = judge(&self.seen);
            let next = plan(&self.seen, &judgement);
            assert_eq!(
                next,
                Plan::Settled,
                "not quiet: {}\n{}",
                judgement.why,
                self.trace.join("\n")
            );
        }
        let server = self.seen.primary_server().unwrap();
        let lost = self.acknowledged.subtract(&server.executed);
        assert!(lost.is_empty(), "lost {lost}\n{}", self.trace.join("\n"));
        let executed = server.executed.clone();
        for instance in self.seen.instances.values() {
            let server = instance.agent.present().and_then(Agent::server).unwrap();
            assert_eq!(server.executed, executed, "{}", self.trace.join("\n"));
        }
    }

    pub(crate) fn run_until(&mut self, done: impl Fn(&World) -> bool) {
        for _ in 0..200 {
            if done(self) {
                return;
            }
            self.pass();
        }
        panic!(
            "no end in 200 passes: {:?}\n{}",
            judge(&self.seen),
            self.trace.join("\n")
        );
    }

    pub(crate) fn run(&mut self, passes: u32) {
        for _ in 0..passes {
            self.pass();
        }
    }

    fn pass(&mut self) {
        self.tick();
        let judgement = judge(&self.seen);
        let next = plan(&self.seen, &judgement);
        let line = format!(
            "{:?}: {}\n{}",
            judgement.situation,
            judgement.why,
            notation::plan(&next)
        );
        if self.trace.last() != Some(&line) {
            self.trace.push(line);
        }
        if let Plan::Do(actions) = next {
            for action in actions {
                self.act(action);
            }
        }
    }

    // Faults and wishes.

    pub(crate) fn write(&mut self, count: u64) {
        let serves = self.serves();
        let ordinal = Ordinal(self.primary());
        for _ in 0..count {
            let server = self.server(ordinal);
            let gtid = next_gtid(server);
            server.executed.insert(gtid.clone());
            server.binlog_end.offset += 100;
            if serves {
                self.acknowledged.insert(gtid);
            }
        }
        self.tick();
    }

    pub(crate) fn write_unacknowledged(&mut self, ordinal: u32, count: u64) {
        let server = self.server(Ordinal(ordinal));
        for _ in 0..count {
            let gtid = next_gtid(server);
            server.last_binlog.insert(gtid.clone());
            server.executed.insert(gtid);
        }
    }

    pub(crate) fn kill_mysqld(&mut self, ordinal: u32) {
        gate(self.agent(Ordinal(ordinal)));
    }

    pub(crate) fn lose_node(&mut self, ordinal: u32) {
        let ordinal = Ordinal(ordinal);
        let mut agent = self.agent(ordinal).clone();
        gate(&mut agent);
        agent.incarnation = "2".to_owned();
        self.down.push((ordinal, agent));
        self.instance(ordinal).agent = Seen::Unknown(Silence {
            milliseconds: 0,
            why: "no answer".to_owned(),
        });
    }

    pub(crate) fn return_node(&mut self, ordinal: u32) {
        let index = self
            .down
            .iter()
            .position(|(down, _)| down.0 == ordinal)
            .unwrap();
        let (ordinal, agent) = self.down.remove(index);
        self.instance(ordinal).agent = Seen::Present(agent);
    }

    pub(crate) fn leave(&mut self, ordinal: u32) {
        self.agent(Ordinal(ordinal)).terminating = true;
    }

    pub(crate) fn replace_pod(&mut self, ordinal: u32) {
        let agent = self.agent(Ordinal(ordinal));
        gate(agent);
        agent.terminating = false;
        agent.incarnation = "2".to_owned();
    }

    pub(crate) fn request(&mut self, id: &str, to: Option<u32>) {
        self.seen.request = Some(Request {
            id: id.to_owned(),
            to: to.map(Ordinal),
        });
    }

    // Physics.

    fn instance(&mut self, ordinal: Ordinal) -> &mut Instance {
        self.seen.instances.get_mut(&ordinal).unwrap()
    }

    fn agent(&mut self, ordinal: Ordinal) -> &mut Agent {
        match &mut self.instance(ordinal).agent {
            Seen::Present(agent) => agent,
            Seen::Absent | Seen::Unknown(_) => panic!("shop-{ordinal} has no agent"),
        }
    }

    fn server(&mut self, ordinal: Ordinal) -> &mut Server {
        match &mut self.agent(ordinal).mysqld {
            Mysqld::Running(server) => server,
            Mysqld::Gated { .. } | Mysqld::Starting => panic!("shop-{ordinal} does not run"),
        }
    }

    /// A second passes: what is attached receives and applies, silences grow.
    fn tick(&mut self) {
        let sources: Vec<Server> = self
            .seen
            .instances
            .values()
            .filter_map(|i| i.agent.present().and_then(Agent::server).cloned())
            .collect();
        for instance in self.seen.instances.values_mut() {
            match &mut instance.agent {
                Seen::Unknown(silence) => silence.milliseconds += 1_000,
                Seen::Absent => {}
                Seen::Present(agent) => tick_agent(agent, &sources),
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Record(record) => {
                assert_eq!(record.version, self.seen.record.version + 1);
                self.seen.record = *record;
            }
            Action::Role { of, role } => {
                if let Seen::Present(pod) = &mut self.instance(of).pod {
                    pod.role = role;
                }
            }
            Action::CreateInstance {
                ordinal,
                generation,
            } => self.create(ordinal, generation),
            Action::DeletePod { ordinal, .. } => {
                self.instance(ordinal).pod = Seen::Absent;
                self.instance(ordinal).agent = Seen::Absent;
            }
            Action::Order { to, directive, .. } => self.order(to, directive),
        }
    }

    fn create(&mut self, ordinal: Ordinal, generation: u32) {
        let instance = self.instance(ordinal);
        instance.claim = Seen::Present(Claim {
            uid: format!("claim-{ordinal}-{generation}"),
            generation,
        });
        instance.pod = Seen::Present(Pod {
            uid: format!("pod-{ordinal}"),
            deleting: false,
            ended: false,
            role: None,
            outdated: false,
            trouble: None,
            trouble_reason: None,
        });
        let template = notation::observed("shop-0: empty").unwrap();
        let Some(Seen::Present(mut agent)) =
            template.instances.into_values().next().map(|i| i.agent)
        else {
            panic!("the notation makes an agent")
        };
        agent.settled_milliseconds = 0;
        instance.agent = Seen::Present(agent);
    }

    fn order(&mut self, to: Ordinal, directive: Directive) {
        let version = self.seen.record.version;
        let donor = match &directive {
            Directive::Clone { donor, .. } => Some(self.server(*donor).executed.clone()),
            _ => None,
        };
        self.uuids += 1;
        let fresh = uuid_number(self.uuids);
        let Seen::Present(agent) = &mut self.instance(to).agent else {
            return;
        };
        assert!(
            agent.seen_version <= version,
            "a stale order reached shop-{to}"
        );
        agent.seen_version = version;
        obey(agent, directive, version, fresh, donor);
    }
}

trait Requested {
    fn request_is_done(&self) -> bool;
}

impl Requested for Observed {
    fn request_is_done(&self) -> bool {
        self.request
            .as_ref()
            .is_none_or(|request| self.record.handled_request.as_ref() == Some(&request.id))
    }
}
