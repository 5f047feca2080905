//! How long no instance took writes at a change of the primary. Measured on
//! our own monotonic clock, from the last word of the old primary's agent that
//! it took writes (a frame each 250 ms, less the age of its server's last
//! answer) to the moment when the order to open the new one was answered. So
//! it is at most a heartbeat too long. Never estimated: a change that was begun
//! under another leader has no gap.

use std::time::{Duration, Instant};

/// Watches one cluster.
#[derive(Debug, Default)]
pub(super) struct Gap {
    /// The last word of any recorded primary that it takes writes.
    serving: Option<Instant>,
    /// Where the gap under way began.
    began: Option<Instant>,
    /// Its length, once closed.
    length: Option<Duration>,
}

impl Gap {
    /// The recorded primary was last heard to take writes then.
    pub(super) fn serving(&mut self, at: Option<Instant>) {
        self.serving = self.serving.max(at);
    }

    /// A transition that leaves the primary is recorded.
    pub(super) fn leave(&mut self) {
        self.began = self.serving;
        self.length = None;
    }

    /// The new primary was opened; only the first opening of a transition counts.
    pub(super) fn open(&mut self, at: Instant) {
        if self.length.is_none() {
            self.length = self.began.map(|began| at.saturating_duration_since(began));
        }
    }

    /// The transition ended.
    pub(super) fn end(&mut self) -> Option<Duration> {
        self.began = None;
        self.length.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_runs_from_the_last_word_of_the_old_primary_to_the_first_opening() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut gap = Gap::default();
        gap.serving(Some(at(0)));
        gap.serving(Some(at(100)));
        gap.serving(None);
        gap.leave();
        gap.serving(Some(at(900)));
        gap.open(at(1100));
        gap.open(at(5000));
        assert_eq!(gap.end(), Some(Duration::from_secs(1)));
        assert_eq!(gap.end(), None);
    }

    #[test]
    fn without_a_begin_there_is_no_gap() {
        let mut gap = Gap::default();
        gap.leave();
        gap.open(Instant::now());
        assert_eq!(gap.end(), None);
    }
}
