//! What was heard from one agent, and since when: turns frames into facts with
//! durations. Silence is counted on our own monotonic clock. Never judges what
//! the facts mean; the one thing it knows is which changes are noise at rest.

use std::time::{Duration, Instant};

use wire::{AgentState, BinlogPosition, Disk, Frame, Mysqld, Replication, Server, Volume};

/// A stream without a frame for this long counts as silent (four heartbeats).
pub(crate) const SILENT: Duration = Duration::from_millis(4 * wire::HEARTBEAT_MILLISECONDS);
/// A frame that tells of a silence this long wakes the cluster even at rest.
const SUSPICIOUS_MILLISECONDS: u64 = 1000;

/// What the last frames said.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    state: Option<AgentState>,
    /// The newest state of this stream; a lower one is older.
    sequence: u64,
    unanswered_milliseconds: u64,
    source_silent_milliseconds: Option<u64>,
    /// When the last frame came.
    last: Option<Instant>,
    /// Since when the facts are the same.
    changed: Instant,
    /// Since when we try.
    began: Instant,
    /// When it last said that it takes writes.
    serving: Option<Instant>,
    /// Why there is no stream; `None` while there is one.
    broken: Option<String>,
}

/// How much a frame matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing, or only what grows while a cluster works.
    Noise,
    /// GTID sets and positions: matters while anything is under way.
    Growth,
    /// Anything else.
    Significant,
}

/// A snapshot for one pass.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// The agent answers.
    Fresh(Box<Fresh>),
    /// It does not.
    Silent {
        /// For how long.
        milliseconds: u64,
        /// What was tried and how it failed.
        why: String,
    },
}

/// What an agent that answers says.
#[derive(Debug, Clone, PartialEq)]
pub struct Fresh {
    /// Its state.
    pub state: AgentState,
    /// For how long that has been the same.
    pub settled_milliseconds: u64,
    /// Since its kept connection to mysqld answered.
    pub unanswered_milliseconds: u64,
    /// Since its receiver heard from the source.
    pub source_silent_milliseconds: Option<u64>,
}

impl Heard {
    /// Nothing yet.
    pub(super) fn nothing(now: Instant) -> Self {
        Self {
            state: None,
            sequence: 0,
            unanswered_milliseconds: 0,
            source_silent_milliseconds: None,
            last: None,
            changed: now,
            began: now,
            serving: None,
            broken: Some("not connected yet".to_owned()),
        }
    }

    /// A frame came.
    pub(super) fn frame(&mut self, frame: Frame, now: Instant) -> Change {
        let returned = self.broken.take().is_some();
        self.last = Some(now);
        let suspicious = crossed(self.unanswered_milliseconds, frame.unanswered_milliseconds)
            || crossed(
                self.source_silent_milliseconds.unwrap_or(0),
                frame.source_silent_milliseconds.unwrap_or(0),
            );
        self.unanswered_milliseconds = frame.unanswered_milliseconds;
        self.source_silent_milliseconds = frame.source_silent_milliseconds;
        let change = frame
            .state
            .map_or(Change::Noise, |state| self.state(*state, now));
        self.note_serving(now);
        if returned || suspicious {
            Change::Significant
        } else {
            change
        }
    }

    /// A state came, by frame or as answer to an order of the same stream; the
    /// two overtake each other.
    pub(super) fn state(&mut self, state: AgentState, now: Instant) -> Change {
        if state.sequence < self.sequence {
            return Change::Noise;
        }
        self.sequence = state.sequence;
        let change = match &self.state {
            None => Change::Significant,
            Some(former) => compare(former, &state),
        };
        if change != Change::Noise {
            self.changed = now;
        }
        self.state = Some(state);
        change
    }

    /// When it was last heard to take writes: the begin of a write gap.
    pub(super) fn serving(&self) -> Option<Instant> {
        self.serving
    }

    fn note_serving(&mut self, now: Instant) {
        let Some(Mysqld::Running { server }) = self.state.as_ref().map(|state| &state.mysqld)
        else {
            return;
        };
        if !server.read_only && !server.offline {
            let answered = now.checked_sub(Duration::from_millis(self.unanswered_milliseconds));
            self.serving = self.serving.max(answered);
        }
    }

    /// The stream ended or could not be made.
    pub(super) fn broke(&mut self, why: String) -> Change {
        // The next stream may be that of another life, which counts from zero.
        self.sequence = 0;
        let first = self.broken.is_none();
        self.broken = Some(why);
        if first {
            Change::Significant
        } else {
            Change::Noise
        }
    }

    /// What a pass may rest on.
    pub(super) fn snapshot(&self, now: Instant) -> Said {
        let silence = now.saturating_duration_since(self.last.unwrap_or(self.began));
        let silent = |why: &str| Said::Silent {
            milliseconds: millis(silence),
            why: why.to_owned(),
        };
        match (&self.state, &self.broken) {
            (_, Some(why)) => silent(why),
            (None, None) => silent("its stream has not said anything yet"),
            (Some(_), None) if silence > SILENT => silent("its stream went silent"),
            (Some(state), None) => Said::Fresh(Box::new(Fresh {
                state: state.clone(),
                settled_milliseconds: millis(now.saturating_duration_since(self.changed)),
                unanswered_milliseconds: self.unanswered_milliseconds,
                source_silent_milliseconds: self.source_silent_milliseconds,
            })),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn crossed(before: u64, after: u64) -> bool {
    (before < SUSPICIOUS_MILLISECONDS) != (after < SUSPICIOUS_MILLISECONDS)
}

fn compare(former: &AgentState, state: &AgentState) -> Change {
    let (former, state) = (without_load(former), without_load(state));
    if former == state {
        Change::Noise
    } else if without_growth(&former) == without_growth(&state) {
        Change::Growth
    } else {
        Change::Significant
    }
}

/// Without what moves with load alone and is never judged.
fn without_load(state: &AgentState) -> AgentState {
    let mut state = AgentState {
        disk: Disk::default(),
        sequence: 0,
        ..state.clone()
    };
    if let Mysqld::Running { server } = &mut state.mysqld {
        server.clients = 0;
        server.semi_sync.waiting = server.semi_sync.waiting.min(1);
        if let Some(replication) = &mut server.replication {
            replication.lag_seconds = None;
        }
    }
    state
}

/// Without what grows with every transaction.
fn without_growth(state: &AgentState) -> AgentState {
    let mut state = state.clone();
    if let Mysqld::Running { server } = &mut state.mysqld {
        let still = Server {
            executed: gtid::GtidSet::default(),
            last_binlog_gtids: gtid::GtidSet::default(),
            binlog_end: BinlogPosition::default(),
            replication: server.replication.take().map(|replication| Replication {
                retrieved: gtid::GtidSet::default(),
                position: BinlogPosition::default(),
                ..replication
            }),
            ..(**server).clone()
        };
        **server = still;
        server.semi_sync.waiting = 0;
        if let Volume::Data { on_disk } = &mut state.volume {
            on_disk.binlog = gtid::GtidSet::default();
            on_disk.relay = gtid::GtidSet::default();
            on_disk.tail.clear();
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(sequence: u64, version: u64) -> AgentState {
        let state = serde_json::json!({
            "instance": "shop-0", "agent_version": "1", "cluster_uid": "c",
            "incarnation": "i", "sequence": sequence,
            "seen": {"epoch": 1, "version": version},
            "volume": {"kind": "Empty"}, "mysqld": {"kind": "Gated"},
        });
        serde_json::from_value(state).unwrap()
    }

    fn frame(state: AgentState) -> Frame {
        Frame {
            state: Some(Box::new(state)),
            unanswered_milliseconds: 0,
            source_silent_milliseconds: None,
        }
    }

    fn version(heard: &Heard) -> Option<u64> {
        heard.state.as_ref().map(|state| state.seen.version)
    }

    #[test]
    fn an_older_reply_does_not_overwrite_a_newer_frame_of_the_same_stream() {
        let now = Instant::now();
        let mut heard = Heard::nothing(now);
        heard.frame(frame(state(7, 7)), now);
        assert_eq!(heard.state(state(6, 6), now), Change::Noise);
        assert_eq!(version(&heard), Some(7));
        assert_eq!(heard.state(state(8, 8), now), Change::Significant);
        assert_eq!(heard.frame(frame(state(7, 7)), now), Change::Noise);
        assert_eq!(version(&heard), Some(8));
        // The number alone is no change.
        assert_eq!(heard.state(state(9, 8), now), Change::Noise);
    }

    #[test]
    fn a_new_stream_counts_from_its_own_beginning() {
        let now = Instant::now();
        let mut heard = Heard::nothing(now);
        heard.frame(frame(state(7, 7)), now);
        heard.broke("gone".to_owned());
        heard.frame(frame(state(2, 5)), now);
        assert_eq!(version(&heard), Some(5));
        assert_eq!(heard.state(state(1, 4), now), Change::Noise);
        assert_eq!(version(&heard), Some(5));
    }
}
