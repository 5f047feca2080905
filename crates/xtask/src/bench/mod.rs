//! `cargo xtask bench`: the demo's faults, several times each, as medians. A
//! node's crash is measured twice: with the operator's leader elsewhere, and on
//! the node that crashes, where the lease has to run out first.

use crate::demo::{
    AtTheEnd, DemoError, Fault, LeaderWas, Measured, Play, begin, finish, raise_the_curtain,
};
use crate::terminal::{Table, Terminal};

/// How often each fault is measured.
const RUNS: usize = 5;

/// What was measured of one kind of fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The fault.
    pub title: String,
    /// Write gaps in milliseconds.
    pub gaps: Vec<u64>,
    /// Seconds to Healthy, where it can be.
    pub healthy: Vec<f64>,
}

/// The whole bench.
pub fn bench() -> Result<Vec<Row>, DemoError> {
    let mut terminal = Terminal::new();
    let stage = raise_the_curtain(&mut terminal)?;
    let mut play = begin(&stage, &mut terminal)?;
    let played = all(&mut play, &mut terminal);
    let history = play.end(&mut terminal)?;
    played?;
    let score = finish(play, &history, AtTheEnd::Delete, &mut terminal)?;
    println!("{}", score.sentence());
    Ok(rows(&score.steps))
}

fn all(play: &mut Play<'_>, terminal: &mut Terminal) -> Result<(), DemoError> {
    for fault in [
        Fault::KillMysqld,
        Fault::ForceDeletePod,
        Fault::SwitchOver { to: None },
    ] {
        for _ in 0..RUNS {
            play.measure(&fault, terminal)?;
        }
    }
    for wanted in [LeaderWas::Elsewhere, LeaderWas::OnThatNode] {
        for _ in 0..RUNS {
            arrange(play, wanted, terminal)?;
            play.measure(&Fault::CrashNode, terminal)?;
            play.measure(&Fault::StartNode, terminal)?;
        }
    }
    Ok(())
}

/// Moves the primary to where the leader is, or away from it.
fn arrange(
    play: &mut Play<'_>,
    wanted: LeaderWas,
    terminal: &mut Terminal,
) -> Result<(), DemoError> {
    let stage = play.stage;
    let leader = stage.node_of(&stage.leader()?)?;
    let primary = stage.look(&play.name)?;
    let primary = primary
        .as_ref()
        .and_then(|picture| picture.primary())
        .unwrap_or_default();
    let mut fitting = Vec::new();
    for pod in stage.pods(&play.name)? {
        let is_with_leader = stage.node_of(&pod)? == leader;
        if is_with_leader == (wanted == LeaderWas::OnThatNode) {
            fitting.extend(pod.metadata.name);
        }
    }
    if fitting.iter().any(|pod| pod == primary) {
        return Ok(());
    }
    let to = fitting
        .into_iter()
        .next()
        .ok_or_else(|| DemoError::NoInstance {
            cluster: play.name.to_string(),
            wanted: format!("{wanted:?}, the leader being on {leader}"),
        })?;
    play.measure(&Fault::SwitchOver { to: Some(to) }, terminal)
}

fn rows(steps: &[Measured]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for step in steps {
        let title = match step.leader {
            Some(LeaderWas::Elsewhere) => format!("{}, leader elsewhere", step.title),
            Some(LeaderWas::OnThatNode) => format!("{}, leader on it", step.title),
            None => step.title.to_owned(),
        };
        let at = rows
            .iter()
            .position(|row| row.title == title)
            .unwrap_or_else(|| {
                rows.push(Row {
                    title,
                    gaps: Vec::new(),
                    healthy: Vec::new(),
                });
                rows.len() - 1
            });
        rows[at].gaps.push(step.gap_milliseconds);
        rows[at].healthy.extend(step.healthy_seconds);
    }
    rows
}

/// Least, median and most of each.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "fault",
        "runs",
        "write gap",
        "(least – most)",
        "Healthy after",
    ]);
    for row in rows {
        let mut gaps = row.gaps.clone();
        gaps.sort_unstable();
        let mut healthy = row.healthy.clone();
        healthy.sort_by(f64::total_cmp);
        let gap = |at: Option<&u64>| at.map_or("–".to_owned(), |gap| format!("{gap} ms"));
        let range = format!("{} – {}", gap(gaps.first()), gap(gaps.last()));
        let median = healthy.get(healthy.len() / 2);
        table.row([
            row.title.clone(),
            gaps.len().to_string(),
            gap(gaps.get(gaps.len() / 2)),
            range,
            median.map_or("–".to_owned(), |seconds| format!("{seconds:.1} s")),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let rows = [Row {
            title: "x".into(),
            gaps: vec![900, 100, 300],
            healthy: vec![3.0, 1.0, 2.0],
        }];
        let text = table(&rows).to_string();
        assert!(
            text.contains("300 ms") && text.contains("100 ms – 900 ms"),
            "{text}"
        );
        assert!(text.contains("2.0 s"), "{text}");
    }
}
