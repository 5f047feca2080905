//! How long writes were away: from the last good probe before to the first good
//! one after, as a client sees it. Pure.

use super::record::{History, PROBE};

/// The longest time without a good probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// Last good answer before it, on the wall clock.
    pub from_micros: u64,
    /// First good answer after it, on the wall clock.
    pub until_micros: u64,
}

impl Gap {
    /// Its length.
    pub fn milliseconds(&self) -> u64 {
        (self.until_micros - self.from_micros) / 1000
    }
}

/// The longest interval between two good probes that touches the time from
/// `since` to `until` on the wall clock. `None`: no probe has been answered on
/// both sides, so nothing is known.
pub fn write_gap(history: &History, since_micros: u64, until_micros: u64) -> Option<Gap> {
    let probes = history
        .acknowledged()
        .filter(|(attempt, _)| attempt.client == PROBE);
    let mut good: Vec<u64> = probes
        .map(|(attempt, _)| history.on_the_wall(attempt.ended_micros))
        .collect();
    good.sort_unstable();
    let gaps = good.windows(2).map(|pair| Gap {
        from_micros: pair[0],
        until_micros: pair[1],
    });
    let near = gaps.filter(|gap| gap.until_micros > since_micros && gap.from_micros < until_micros);
    near.max_by_key(|gap| gap.until_micros - gap.from_micros)
}

#[cfg(test)]
mod tests {
    use super::super::record::{Answer, Attempt};
    use super::*;

    fn probes(good: &[u64]) -> History {
        let attempt = |at: &u64| Attempt {
            id: *at,
            client: PROBE,
            started_micros: at - 1,
            ended_micros: *at,
            answer: Answer::Acknowledged { server: "a".into() },
        };
        let mut history = History::of(good.iter().map(attempt).collect());
        history.wall_micros = Some(1000);
        history
    }

    #[test]
    fn the_gap_is_between_the_last_good_probe_and_the_next() {
        let gap = write_gap(&probes(&[10, 20, 30, 90, 100]), 1035, 2000);
        assert_eq!(
            gap,
            Some(Gap {
                from_micros: 1030,
                until_micros: 1090
            })
        );
    }

    #[test]
    fn a_gap_before_the_fault_is_not_its_gap() {
        let gap = write_gap(&probes(&[10, 60, 70, 90, 100]), 1065, 2000);
        assert_eq!(
            gap,
            Some(Gap {
                from_micros: 1070,
                until_micros: 1090
            })
        );
    }

    #[test]
    fn without_a_good_probe_after_the_fault_nothing_is_known() {
        assert_eq!(write_gap(&probes(&[10, 20]), 1030, 2000), None);
    }

    #[test]
    fn refused_writes_and_other_clients_do_not_end_a_gap() {
        let mut history = probes(&[10, 90]);
        let mut other = history.attempts[0].clone();
        (other.client, other.ended_micros) = (1, 50);
        let mut refused = history.attempts[0].clone();
        (refused.ended_micros, refused.answer) = (60, Answer::Failed { why: String::new() });
        history.attempts.extend([other, refused]);
        assert_eq!(
            write_gap(&history, 1020, 2000).map(|gap| gap.until_micros),
            Some(1090)
        );
    }
}
