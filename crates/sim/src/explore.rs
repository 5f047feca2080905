//! Many seeds, on as many threads as asked for. The result does not depend on
//! how many: every seed is a world of its own.

use crate::run::{End, Outcome, run};
use crate::tally::Tally;

/// What a number of seeds gave.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How many were run.
    pub seeds: u64,
    /// How many of them ended Healthy and quiet.
    pub healthy: u64,
    /// Held by a named situation, with the seed.
    pub held: Vec<(u64, String)>,
    /// Violated, with the seed.
    pub violated: Vec<(u64, String)>,
    /// What happened in all of them.
    pub tally: Tally,
    /// Over the hashes of all of them.
    pub hash: u64,
    /// Different pictures that were judged, where they were counted.
    pub states: std::collections::BTreeSet<u64>,
}

impl Report {
    pub(crate) fn take(&mut self, outcome: Outcome) {
        let Outcome {
            seed,
            end,
            tally,
            hash,
            trace: _,
        } = outcome;
        self.seeds += 1;
        self.tally.add(&tally);
        self.hash ^= hash.rotate_left(u32::try_from(seed % 64).unwrap_or(0));
        match end {
            End::Healthy => self.healthy += 1,
            End::Held(why) => self.held.push((seed, why)),
            End::Violated(why) => self.violated.push((seed, why)),
        }
    }

    pub(crate) fn merge(&mut self, other: Report) {
        self.seeds += other.seeds;
        self.healthy += other.healthy;
        self.held.extend(other.held);
        self.violated.extend(other.violated);
        self.tally.add(&other.tally);
        self.hash ^= other.hash;
        self.states.extend(other.states);
    }
}

/// Runs seeds `first..first + count`.
pub fn explore(first: u64, count: u64, threads: u64) -> Report {
    let threads = threads.max(1);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| scope.spawn(move || some(first, count, (part, threads))))
            .collect();
        for part in parts {
            if let Ok(part) = part.join() {
                report.merge(part);
            }
        }
    });
    report.held.sort();
    report.violated.sort();
    report
}

fn some(first: u64, count: u64, (part, threads): (u64, u64)) -> Report {
    let mut report = Report::default();
    for seed in (first..first + count).filter(|seed| seed % threads == part) {
        report.take(run(seed));
    }
    report
}
