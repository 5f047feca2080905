//! One seed from the beginning to the end: bootstrap, faults, heal, verdict.

use katazuke_core::Situation;
use katazuke_core::record::Acknowledge;

use crate::tally::Tally;
use crate::world::{Setting, World};

/// Bootstrap at most.
const BEGIN: u64 = 60_000;
/// Faults for this long.
const FAULTS: u64 = 60_000;
/// Healthy within.
const RECOVER: u64 = 300_000;
/// And quiet for.
const QUIET: u64 = 12_000;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Healthy and quiet.
    Healthy,
    /// Held by a named situation that the faults of this seed explain.
    Held(String),
    /// An invariant broke, or nothing explains why it is not Healthy.
    Violated(String),
}

/// What a seed gave.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Its end.
    pub end: End,
    /// What happened on the way.
    pub tally: Tally,
    /// Of everything that happened, in order.
    pub hash: u64,
    /// Lines, if asked for.
    pub trace: Vec<String>,
}

/// Runs a seed.
pub fn run(seed: u64) -> Outcome {
    play(seed, false)
}

/// Runs a seed and keeps what happened as lines, plans in the core's notation.
pub fn run_traced(seed: u64) -> Outcome {
    play(seed, true)
}

fn setting(seed: u64) -> Setting {
    let mut rng = fastrand::Rng::with_seed(seed ^ 0x5eed);
    let replicas = match rng.u32(0..100) {
        0..6 => 1,
        6..18 => 2,
        18..72 => 3,
        72..82 => 4,
        _ => 5,
    };
    let acknowledge = match rng.u32(0..4) {
        0 => Acknowledge::Fsynced,
        _ => Acknowledge::Received,
    };
    Setting {
        replicas,
        acknowledge,
    }
}

fn play(seed: u64, traced: bool) -> Outcome {
    let mut world = World::new(seed, setting(seed), traced);
    let early = world.rng.u32(0..8) == 0;
    if early {
        let until = world.between(500, 12_000);
        settle(&mut world, until, 1_000);
    } else if !begin(&mut world) {
        let end = not_begun(&world);
        return outcome(&mut world, seed, end);
    }
    world.plan_faults(FAULTS);
    finish(&mut world, seed, FAULTS)
}

/// Until it is Healthy for the first time.
pub(crate) fn begin(world: &mut World) -> bool {
    settle(world, BEGIN, 1_000)
}

/// Faults for so long, then none, then the verdict.
pub(crate) fn finish(world: &mut World, seed: u64, faults: u64) -> Outcome {
    settle(world, world.now + faults, u64::MAX);
    world.heal();
    if !settle(world, world.now + RECOVER, QUIET) {
        let end = held(world);
        return outcome(world, seed, end);
    }
    world.writing = false;
    settle(world, world.now + 5_000, u64::MAX);
    world.check_end();
    outcome(world, seed, End::Healthy)
}

fn outcome(world: &mut World, seed: u64, end: End) -> Outcome {
    let end = match world.violation.take() {
        Some(why) => End::Violated(why),
        None => end,
    };
    Outcome {
        seed,
        end,
        tally: std::mem::take(&mut world.tally),
        hash: world.hash,
        trace: world.trace.take().unwrap_or_default(),
    }
}

fn not_begun(world: &World) -> End {
    let why = world
        .last
        .as_ref()
        .map(|last| last.why.clone())
        .unwrap_or_default();
    End::Violated(format!("L0 Begins: not Healthy at first: {why}"))
}

/// Runs until it is settled for `quiet`, or `until`.
fn settle(world: &mut World, until: u64, quiet: u64) -> bool {
    let began = world.now;
    while world.violation.is_none() && world.step(until) {
        let since = world.last.as_ref().and_then(|last| last.settled_since);
        let since = since.map(|since| since.max(began));
        let settled = since.is_some_and(|since| world.now.saturating_sub(since) > quiet);
        let healthy = world
            .last
            .as_ref()
            .is_some_and(|last| last.situation == Situation::Healthy);
        if settled && healthy {
            return true;
        }
    }
    false
}

/// Not Healthy in time: does what is said explain it?
fn held(world: &World) -> End {
    let Some(last) = &world.last else {
        return End::Violated("L1 Recovers: no pass at all".to_owned());
    };
    let words = format!("{:?}: {}", last.situation, last.why);
    match explained(world, last.situation) {
        true => End::Held(words),
        false => End::Violated(format!("L1 Recovers: {words}")),
    }
}

/// What stays a human's: said with its name, and only after faults that are
/// beyond what the cluster promises to heal by itself.
fn explained(world: &World, situation: Situation) -> bool {
    let disk_lost = world.disks_lost > 0;
    let weak = !world.weakly.is_empty();
    match situation {
        // A disk is gone, and with it what a proof would need (sections 3 and 6).
        Situation::Blocked | Situation::AckedDataMissing | Situation::Diverged => disk_lost,
        // A tail that somebody may have been told OK for stays (re-4).
        Situation::Degraded
        | Situation::Promoting
        | Situation::Opening
        | Situation::WritesWaiting => world
            .errant_unproven()
            .is_some_and(|why| weak || disk_lost || why.contains("noted that it may")),
        Situation::Deleting
        | Situation::StatusBehind
        | Situation::Paused
        | Situation::Offline
        | Situation::Bootstrapping
        | Situation::FailingOver
        | Situation::SwitchingOver
        | Situation::ApplierBroken
        | Situation::PrimaryUnclear
        | Situation::Resuming
        | Situation::Healthy => false,
    }
}
