//! Kubelets and nodes: containers start, end, and lose their memory with the
//! node. Never decides when.

use katazuke_core::record::Ordinal;

use crate::event::Event;
use crate::kube::Pod;
use crate::world::World;

impl World {
    /// The API server accepts a Pod; its kubelet starts it in a while.
    pub(crate) fn create_pod(&mut self, ordinal: Ordinal, generation: u32) {
        if self.api.pods.contains_key(&ordinal) {
            return;
        }
        if self.api.claims.insert((ordinal, generation)) && generation > 0 {
            self.tally.count("new volume generations");
        }
        let uid = format!("p{}", self.number());
        let pod = Pod {
            uid: uid.clone(),
            generation,
            role: None,
            deleting: false,
            process: None,
        };
        self.api.pods.insert(ordinal, pod);
        let time = self.between(500, 2500);
        self.after(time, Event::PodStarts { ordinal, uid });
    }

    /// `new`: a new Pod with new memory; else the same container again.
    pub(crate) fn pod_starts(&mut self, ordinal: Ordinal, uid: &str, new: bool) {
        let Some(pod) = self.api.pods.get(&ordinal).filter(|pod| pod.uid == uid) else {
            return;
        };
        if pod.deleting && self.node_up(ordinal) {
            self.api.pods.remove(&ordinal);
            return;
        }
        if pod
            .process
            .is_some_and(|process| self.process(process).is_some())
        {
            return;
        }
        let generation = pod.generation;
        let former = pod.process.and_then(|process| self.processes.get(process));
        let token = former
            .map(|process| process.incarnation.clone())
            .filter(|_| !new);
        if !self.node_up(ordinal) {
            let (uid, time) = (uid.to_owned(), 500);
            self.after(time, Event::PodStarts { ordinal, uid });
            return;
        }
        let incarnation = match token {
            Some(token) => token,
            None => format!("i{}", self.number()),
        };
        let process = self.start_process(ordinal, uid, generation, incarnation);
        if let Some(pod) = self.api.pods.get_mut(&ordinal) {
            pod.process = Some(process);
        }
        self.say(|| format!("shop-{ordinal} has a container (Pod {uid})"));
    }

    /// A graceful deletion: SIGTERM to the container.
    pub(crate) fn delete_pod(&mut self, ordinal: Ordinal) {
        let now = self.now;
        let Some(pod) = self.api.pods.get_mut(&ordinal).filter(|pod| !pod.deleting) else {
            return;
        };
        pod.deleting = true;
        let process = pod.process;
        self.say(|| format!("Pod of shop-{ordinal} is being deleted"));
        match process.filter(|process| self.process(*process).is_some()) {
            Some(process) => self.after(
                50,
                Event::Terminating {
                    process,
                    since: now,
                },
            ),
            None if self.node_up(ordinal) => {
                self.api.pods.remove(&ordinal);
            }
            None => {}
        }
    }

    /// The agent has ended by itself: the object goes.
    pub(crate) fn pod_ends(&mut self, id: usize) {
        let Some(process) = self.process(id) else {
            return;
        };
        let (ordinal, uid) = (process.ordinal, process.pod.clone());
        self.end_process(id);
        if self
            .api
            .pods
            .get(&ordinal)
            .is_some_and(|pod| pod.uid == uid)
        {
            self.api.pods.remove(&ordinal);
        }
        self.say(|| format!("Pod {uid} of shop-{ordinal} is gone"));
    }

    /// The object is gone at once; the process is not.
    pub(crate) fn force_delete(&mut self, ordinal: Ordinal) {
        let Some(pod) = self.api.pods.remove(&ordinal) else {
            return;
        };
        self.tally.count("Pods force-deleted");
        self.say(|| format!("Pod of shop-{ordinal} is force-deleted"));
        if let Some(process) = pod.process {
            let time = self.between(0, 6_000);
            match self.rng.bool() {
                true => self.after(time, Event::KillProcess(process)),
                false => self.after(
                    50,
                    Event::Terminating {
                        process,
                        since: self.now,
                    },
                ),
            }
        }
    }

    /// Power: everything in memory is gone, and what was not fsynced.
    pub(crate) fn node_dies(&mut self, ordinal: Ordinal, for_milliseconds: u64) {
        if !self.node_up(ordinal) {
            return;
        }
        self.say(|| format!("the node of shop-{ordinal} loses power"));
        self.tally.count("power lost");
        for id in 0..self.processes.len() {
            if self
                .process(id)
                .is_some_and(|process| process.ordinal == ordinal)
            {
                self.end_process(id);
            }
        }
        let keys: Vec<_> = self
            .volumes
            .keys()
            .copied()
            .filter(|key| key.0 == ordinal)
            .collect();
        for key in keys {
            if let Some(volume) = self.volumes.get_mut(&key)
                && volume.lose_power(&mut self.rng)
            {
                self.tally.count("unsynced relay logs lost");
            }
        }
        if let Some(node) = self.nodes.get_mut(ordinal.0 as usize) {
            node.up = false;
            node.boots += 1;
        }
        self.after(for_milliseconds, Event::NodeReturns(ordinal));
    }

    pub(crate) fn node_returns(&mut self, ordinal: Ordinal) {
        if let Some(node) = self.nodes.get_mut(ordinal.0 as usize) {
            node.up = true;
        }
        self.say(|| format!("the node of shop-{ordinal} is back"));
        let Some(pod) = self.api.pods.get(&ordinal) else {
            return;
        };
        let uid = pod.uid.clone();
        let time = self.between(300, 2000);
        self.after(time, Event::PodStarts { ordinal, uid });
    }
}
