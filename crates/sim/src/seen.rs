//! From what an operator heard to the core's picture, as the real one does it:
//! what could not be seen is unknown, durations are counted on its own clock.

use katazuke_core::conditions;
use katazuke_core::observed::{
    Agent, Claim, Instance, Mode, Observed, Pod as SeenPod, Rebuild, Seen, Silence, Spec,
};
use katazuke_core::record::{Ordinal, Record};

use crate::world::World;

const SILENCE: u64 = 5_000;
const STREAM_SILENT: u64 = 1_000;

impl World {
    /// What is said of an instance that holds what nobody can prove unneeded.
    pub(crate) fn errant_unproven(&self) -> Option<String> {
        let observed = self.observe(self.api.lease.0, self.api.record.clone());
        conditions::instances(&observed)
            .into_iter()
            .find(|line| line.situation == "ErrantUnproven")
            .map(|line| line.message)
    }

    pub(crate) fn observe(&self, operator: usize, record: Record) -> Observed {
        let mut ordinals: std::collections::BTreeSet<Ordinal> =
            (0..self.setting.replicas).map(Ordinal).collect();
        ordinals.extend(self.operators[operator].pods.keys());
        let instances = ordinals
            .into_iter()
            .map(|ordinal| (ordinal, self.observe_instance(operator, ordinal, &record)))
            .collect();
        Observed {
            cluster: "shop".to_owned(),
            spec: Spec {
                replicas: self.setting.replicas,
                acknowledge: self.setting.acknowledge,
                silence_milliseconds: SILENCE,
                rebuild: Rebuild::Auto,
                mode: Mode::Run,
            },
            record,
            instances,
            request: self.api.request.clone(),
        }
    }

    fn observe_instance(&self, operator: usize, ordinal: Ordinal, record: &Record) -> Instance {
        let mind = &self.operators[operator];
        let wanted = record.generation(ordinal);
        let pod = match mind.pods.get(&ordinal) {
            None if mind.synced => Seen::Absent,
            None => Seen::Unknown(Silence {
                milliseconds: 0,
                why: "the watch is not synced yet".to_owned(),
            }),
            Some(pod) => Seen::Present(SeenPod {
                uid: pod.uid.clone(),
                deleting: pod.deleting,
                ended: false,
                role: pod.role,
                outdated: pod.generation != wanted,
                trouble: None,
                trouble_reason: None,
            }),
        };
        let claim = match self.api.claims.contains(&(ordinal, wanted)) {
            true => Seen::Present(Claim {
                uid: format!("c{ordinal}-{wanted}"),
                generation: wanted,
            }),
            false => Seen::Absent,
        };
        let refusal = mind
            .refusals
            .get(&ordinal)
            .filter(|r| r.version == record.version)
            .cloned();
        Instance {
            pod,
            claim,
            agent: self.observe_agent(operator, ordinal),
            refusal,
        }
    }

    fn observe_agent(&self, operator: usize, ordinal: Ordinal) -> Seen<Agent> {
        let mind = &self.operators[operator];
        let silent = |milliseconds: u64, why: &str| {
            Seen::Unknown(Silence {
                milliseconds,
                why: why.to_owned(),
            })
        };
        let Some(pod) = mind.pods.get(&ordinal).filter(|pod| pod.process.is_some()) else {
            return silent(0, "its Pod has no address to dial");
        };
        let began = mind
            .began
            .get(&ordinal)
            .map_or(self.now, |(_, began)| *began);
        match mind
            .heard
            .get(&ordinal)
            .filter(|heard| heard.pod == pod.uid)
        {
            None => silent(self.now - began, "not connected yet"),
            Some(heard) if self.now - heard.last > STREAM_SILENT => {
                silent(self.now - heard.last, "its stream went silent")
            }
            Some(heard) => Seen::Present(Agent {
                settled_milliseconds: self.now - heard.changed,
                ..heard.agent.clone()
            }),
        }
    }
}
