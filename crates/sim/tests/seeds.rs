//! The seeds that once failed, a handful of new ones, and the proof that a seed
//! always gives the same run.

use sim::{End, run, run_traced};

fn kept() -> Vec<u64> {
    include_str!("../seeds.txt")
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect()
}

#[test]
fn every_seed_that_once_failed_ends_well() {
    for seed in kept().into_iter().chain(0..20) {
        let outcome = run(seed);
        assert!(
            !matches!(outcome.end, End::Violated(_)),
            "seed {seed}: {:?}; see cargo xtask sim --seed {seed}",
            outcome.end
        );
    }
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    for seed in 0..5 {
        assert_eq!(run(seed).hash, run_traced(seed).hash, "seed {seed}");
    }
}
