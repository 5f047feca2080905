//! `cargo xtask test`: everything that must hold, in the order in which a fault
//! is cheapest to find. A prerequisite that is missing is a failure with a
//! sentence; nothing is skipped silently, and nothing is tried twice.

mod run;
mod steps;
mod tier;

use std::time::Instant;

pub use run::{Ended, Limits};
pub use tier::Tier;

use crate::cluster;
use crate::terminal::{Table, Terminal};
use run::Background;
use steps::{Step, steps_of};

/// Whoever waits for this has something else to do by then.
const MINUTES_MAX: u64 = 90;

/// One line of the closing table.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The tier it belongs to.
    pub tier: Tier,
    /// What was run.
    pub title: &'static str,
    /// How it ended.
    pub ended: Ended,
    /// How long it took.
    pub seconds: f64,
}

/// Runs the tiers, all of them if none is named.
pub fn run_tiers(wanted: &[Tier]) -> Vec<Line> {
    let tiers = if wanted.is_empty() {
        Tier::ALL.to_vec()
    } else {
        wanted.to_vec()
    };
    let mut terminal = Terminal::new();
    let limits = Limits::minutes(MINUTES_MAX);
    // Ten minutes of Go, of which Rust needs nothing until the cluster is up.
    let kubernetes = tiers
        .iter()
        .any(|tier| tier.needs_kubernetes())
        .then(Background::build);
    let mut lines = Vec::new();
    for tier in Tier::ALL.into_iter().filter(|tier| tiers.contains(tier)) {
        for step in steps_of(tier) {
            lines.push(take(
                tier,
                &step,
                &limits,
                kubernetes.as_ref(),
                &mut terminal,
            ));
        }
    }
    if let Some(kubernetes) = kubernetes {
        kubernetes.join();
        if let Err(error) = cluster::down() {
            terminal.say(&format!(
                "the local Kubernetes could not be taken down: {error}"
            ));
        }
    }
    lines
}

fn take(
    tier: Tier,
    step: &Step,
    limits: &Limits,
    kubernetes: Option<&Background>,
    terminal: &mut Terminal,
) -> Line {
    let began = Instant::now();
    terminal.say(&format!("──── {tier}: {}", step.title));
    let ready = if tier.needs_kubernetes() {
        kubernetes.map_or(Ok(()), Background::wait)
    } else {
        Ok(())
    };
    let ended = ready.map_or_else(Ended::Failed, |()| step.run(limits));
    let seconds = began.elapsed().as_secs_f64();
    terminal.say(&format!(
        "──── {tier}: {}: {ended} ({seconds:.0} s)",
        step.title
    ));
    Line {
        tier,
        title: step.title,
        ended,
        seconds,
    }
}

/// Whether all of it held.
pub fn all_passed(lines: &[Line]) -> bool {
    !lines.is_empty() && lines.iter().all(|line| line.ended == Ended::Passed)
}

/// The closing table.
pub fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(&["tier", "what", "seconds", "result"]);
    for Line {
        tier,
        title,
        ended,
        seconds,
    } in lines
    {
        table.row([
            tier.to_string(),
            (*title).to_owned(),
            format!("{seconds:.0}"),
            ended.word().to_owned(),
        ]);
    }
    let total: f64 = lines.iter().map(|line| line.seconds).sum();
    let result = if all_passed(lines) {
        "passed"
    } else {
        "FAILED"
    };
    table.row([
        "all".to_owned(),
        String::new(),
        format!("{total:.0}"),
        result.to_owned(),
    ]);
    table
}

#[cfg(test)]
mod closing {
    use super::*;

    fn line(ended: Ended) -> Line {
        Line {
            tier: Tier::Pure,
            title: "x",
            ended,
            seconds: 1.0,
        }
    }

    #[test]
    fn nothing_run_is_not_a_pass() {
        assert!(!all_passed(&[]));
        assert!(all_passed(&[line(Ended::Passed)]));
        let failed = Ended::Failed("no mysqld".to_owned());
        assert!(!all_passed(&[line(Ended::Passed), line(failed)]));
    }
}
