//! One fault after another, each measured in the same way: break, wait until
//! writes flow and the cluster is as it should be, and compare what the clients
//! saw. Never goes on from an unsettled cluster: a fault on top of another would
//! be measured as one.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;

use super::DemoError;
use super::score::{Measured, Score, seconds};
use crate::stage::{LogScan, Name, Picture, Stage, Wait};
use crate::terminal::Terminal;
use crate::workload::{History, PROBE, Writer, terms, wall_micros, write_gap};

/// Writes come back within this, or the step has failed.
const WRITES_SECONDS_MAX: u64 = 90;
/// And the whole cluster within this: a re-clone on two cores.
const HEALTHY_SECONDS_MAX: u64 = 300;
/// Half a second of them means that writes flow.
const GOOD_PROBES: usize = 25;
/// So long must nothing change before the next fault.
const SETTLED: Duration = Duration::from_secs(3);

/// What is done to the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL to the primary's mysqld.
    KillMysqld,
    /// The primary's Pod deleted with grace 0.
    ForceDeletePod,
    /// The primary's node dies, with all that is on it.
    CrashNode,
    /// A planned change of the primary.
    SwitchOver {
        /// To whom; the operator's choice if `None`.
        to: Option<String>,
    },
    /// The node that is down boots again.
    StartNode,
}

impl Fault {
    /// What the table calls it.
    pub fn title(&self) -> &'static str {
        match self {
            Self::KillMysqld => "kill -9 the primary's mysqld",
            Self::ForceDeletePod => "force-delete the primary's Pod",
            Self::CrashNode => "crash the primary's node",
            Self::SwitchOver { .. } => "planned switchover",
            Self::StartNode => "bring the node back",
        }
    }

    /// Whether the cluster can be whole again before something else is done.
    fn heals_by_itself(&self) -> bool {
        match self {
            Self::KillMysqld | Self::ForceDeletePod | Self::StartNode | Self::SwitchOver { .. } => {
                true
            }
            Self::CrashNode => false,
        }
    }
}

/// Where the operator's leader was when a node crashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaderWas {
    /// On another node.
    Elsewhere,
    /// On the node that crashed.
    OnThatNode,
}

/// What was there when the fault was made.
struct Before {
    picture: Picture,
    primary: String,
    uid: String,
    at_micros: u64,
}

impl Before {
    /// The record or the health changed since. Kubernetes keeps whole seconds.
    fn has_moved(&self, now: &Picture) -> bool {
        let second = self.at_micros / 1_000_000 * 1_000_000;
        let changed = now.changed_micros("Healthy");
        now.version() > self.picture.version() || changed.is_some_and(|when| when >= second)
    }

    fn request(&self) -> Option<&str> {
        self.picture.handled_request()
    }
}

/// A cluster, its writer, and what was measured so far.
#[derive(Debug)]
pub struct Play<'a> {
    /// The stage.
    pub stage: &'a Stage,
    /// The cluster.
    pub name: Name,
    writer: Option<Writer>,
    /// Errors in logs.
    pub logs: LogScan,
    score: Score,
    first_epoch: Option<u64>,
    node_down: Option<String>,
    requests: u64,
}

impl<'a> Play<'a> {
    pub(super) fn new(stage: &'a Stage, name: Name, writer: Writer, ready_seconds: f64) -> Self {
        let score = Score {
            ready_seconds,
            ..Score::default()
        };
        Self {
            stage,
            name,
            writer: Some(writer),
            logs: LogScan::default(),
            score,
            first_epoch: None,
            node_down: None,
            requests: 0,
        }
    }

    /// Breaks it, waits, measures.
    pub fn measure(&mut self, fault: &Fault, terminal: &mut Terminal) -> Result<(), DemoError> {
        let before = self.settled(terminal)?;
        self.first_epoch.get_or_insert(before.epoch());
        let primary = self.primary_of(&before)?;
        let pod: Pod = self.stage.get(&self.name.namespace, &primary)?;
        let at = wall_micros();
        terminal.say(&format!("{} ({primary})", fault.title()));
        let leader = self.break_it(fault, &primary)?;
        let before = Before {
            uid: pod.metadata.uid.unwrap_or_default(),
            primary: primary.clone(),
            picture: before,
            at_micros: at,
        };
        self.wait_for_effect(fault, &before, terminal)?;
        self.wait_for_flow_after(at, WRITES_SECONDS_MAX, terminal)?;
        let healthy = self.wait_for_whole(fault, at, terminal)?;
        let gap = self.gap(fault, at)?;
        let after = self.look()?;
        let now = after.primary().unwrap_or_default().to_owned();
        terminal.say(&format!(
            "  writes were away for {:.2} s; primary {primary} → {now}; {}",
            seconds(gap),
            healthy.map_or(
                "Degraded until the node is back".to_owned(),
                |seconds| format!("Healthy after {seconds:.1} s")
            ),
        ));
        self.logs.scan(self.stage)?;
        self.score.steps.push(Measured {
            title: fault.title(),
            leader,
            gap_milliseconds: gap,
            healthy_seconds: healthy,
            from: primary,
            to: now,
            since_micros: at,
            until_micros: wall_micros(),
            lost: 0,
        });
        Ok(())
    }

    fn break_it(&mut self, fault: &Fault, primary: &str) -> Result<Option<LeaderWas>, DemoError> {
        let namespace = &self.name.namespace;
        match fault {
            Fault::KillMysqld => self.stage.kill_mysqld(namespace, primary)?,
            Fault::ForceDeletePod => self.stage.force_delete(namespace, primary)?,
            Fault::CrashNode => return self.crash_node(primary).map(Some),
            Fault::SwitchOver { to } => {
                self.requests += 1;
                // Unique, as the operator remembers the last one.
                let id = format!("demo-{}-{}", self.requests, wall_micros());
                self.stage.switch_over(&self.name, &id, to.as_deref())?;
            }
            Fault::StartNode => {
                let name = self.node_down.take().ok_or(DemoError::NoNodeDown)?;
                self.stage.cluster.node(&name)?.start()?;
            }
        }
        Ok(None)
    }

    fn crash_node(&mut self, primary: &str) -> Result<LeaderWas, DemoError> {
        let pod = self.stage.get(&self.name.namespace, primary)?;
        let node = self.stage.node_of(&pod)?;
        let leader = self.stage.node_of(&self.stage.leader()?)?;
        self.stage.cluster.node(&node)?.crash()?;
        let was = if leader == node {
            LeaderWas::OnThatNode
        } else {
            LeaderWas::Elsewhere
        };
        self.node_down = Some(node);
        Ok(was)
    }

    /// That the fault has had its effect; else an old "Healthy" would be
    /// believed.
    fn wait_for_effect(
        &mut self,
        fault: &Fault,
        before: &Before,
        terminal: &mut Terminal,
    ) -> Result<(), DemoError> {
        let what = format!("the effect of: {}", fault.title());
        let wait = Wait {
            what: &what,
            seconds_max: WRITES_SECONDS_MAX,
        };
        let name = self.name.clone();
        self.stage.wait(&wait, terminal, &name, |stage| {
            let Some(picture) = stage.look(&name)? else {
                return Ok(None);
            };
            let is_seen = match fault {
                Fault::KillMysqld | Fault::StartNode => before.has_moved(&picture),
                Fault::ForceDeletePod => {
                    let pods = stage.pods(&name)?;
                    let pod = pods
                        .iter()
                        .find(|pod| pod.metadata.name.as_ref() == Some(&before.primary));
                    let uid = pod.and_then(|pod| pod.metadata.uid.as_ref());
                    uid.is_some_and(|uid| *uid != before.uid) && before.has_moved(&picture)
                }
                Fault::CrashNode => picture.epoch() > before.picture.epoch(),
                Fault::SwitchOver { .. } => picture.handled_request() != before.request(),
            };
            Ok(is_seen.then_some(()))
        })?;
        Ok(())
    }

    /// Writes, and all that can be well while a node is down.
    fn wait_for_whole(
        &mut self,
        fault: &Fault,
        at: u64,
        terminal: &mut Terminal,
    ) -> Result<Option<f64>, DemoError> {
        let is_node_down = self.node_down.is_some();
        let wanted = if is_node_down { "Available" } else { "Healthy" };
        let what = format!("{} to be {wanted}", self.name);
        let wait = Wait {
            what: &what,
            seconds_max: HEALTHY_SECONDS_MAX,
        };
        self.stage
            .wait_until(&wait, terminal, &self.name, |picture| picture.is(wanted))?;
        let micros = wall_micros() - at;
        let is_whole = fault.heals_by_itself() && !is_node_down;
        Ok(is_whole.then(|| Duration::from_micros(micros).as_secs_f64()))
    }

    /// Nothing moves for a while.
    fn settled(&mut self, terminal: &mut Terminal) -> Result<Picture, DemoError> {
        let what = format!("{} to be settled", self.name);
        let wait = Wait {
            what: &what,
            seconds_max: HEALTHY_SECONDS_MAX,
        };
        let wanted = if self.node_down.is_some() {
            "Available"
        } else {
            "Healthy"
        };
        let mut since: Option<(u64, Instant)> = None;
        let picture = self
            .stage
            .wait_until(&wait, terminal, &self.name, |picture| {
                if !picture.is(wanted) {
                    since = None;
                    return false;
                }
                match since {
                    Some((version, from)) if version == picture.version() => {
                        from.elapsed() > SETTLED
                    }
                    Some(_) | None => {
                        since = Some((picture.version(), Instant::now()));
                        false
                    }
                }
            })?;
        Ok(picture)
    }

    pub(super) fn wait_for_flow(
        &mut self,
        seconds_max: u64,
        terminal: &mut Terminal,
    ) -> Result<(), DemoError> {
        self.wait_for_flow_after(wall_micros(), seconds_max, terminal)
    }

    /// A good probe that began after the fault, and a second of them.
    fn wait_for_flow_after(
        &mut self,
        at: u64,
        seconds_max: u64,
        terminal: &mut Terminal,
    ) -> Result<(), DemoError> {
        let Some(writer) = self.writer.as_mut() else {
            return Ok(());
        };
        let wait = Wait {
            what: "writes to flow",
            seconds_max,
        };
        let name = self.name.clone();
        self.stage.wait(&wait, terminal, &name, |_| {
            let history = writer.history()?;
            // In the order of their answers: the last ones are enough.
            let recent = history.attempts.iter().rev();
            let recent =
                recent.take_while(|attempt| history.on_the_wall(attempt.ended_micros) > at);
            let good = recent.filter(|attempt| {
                let began = history.on_the_wall(attempt.started_micros);
                attempt.client == PROBE && began > at && attempt.is_acknowledged()
            });
            Ok((good.count() > GOOD_PROBES).then_some(()))
        })?;
        Ok(())
    }

    fn gap(&mut self, fault: &Fault, at: u64) -> Result<u64, DemoError> {
        let Some(writer) = self.writer.as_mut() else {
            return Ok(0);
        };
        let gap = write_gap(writer.history()?, at, wall_micros());
        let no_gap = || DemoError::NoGap {
            step: fault.title().to_owned(),
        };
        Ok(gap.ok_or_else(no_gap)?.milliseconds())
    }

    fn look(&self) -> Result<Picture, DemoError> {
        let picture = self.stage.look(&self.name)?;
        picture.ok_or_else(|| DemoError::NoPrimary {
            cluster: self.name.to_string(),
            sentence: "it does not exist".to_owned(),
        })
    }

    fn primary_of(&self, picture: &Picture) -> Result<String, DemoError> {
        let primary = picture.primary().map(str::to_owned);
        primary.ok_or_else(|| DemoError::NoPrimary {
            cluster: self.name.to_string(),
            sentence: picture.sentence(),
        })
    }

    /// Stops the writer; checks that no two servers acknowledged at once.
    pub fn end(&mut self, terminal: &mut Terminal) -> Result<History, DemoError> {
        let Some(writer) = self.writer.take() else {
            return Ok(History::default());
        };
        let history = writer.stop()?;
        terminal.say(&format!(
            "stopped the writer after {} writes",
            history.attempts.len()
        ));
        self.score.terms = terms(&history);
        let changes = self.look()?.epoch() - self.first_epoch.unwrap_or_default();
        if self.first_epoch.is_some() && self.score.terms.len() as u64 > changes + 1 {
            let terms = self.score.terms.len();
            return Err(DemoError::TwoPrimaries { terms, changes });
        }
        Ok(history)
    }

    pub(super) fn score_mut(&mut self) -> &mut Score {
        &mut self.score
    }

    /// What was measured.
    pub fn into_score(self) -> Score {
        self.score
    }
}
