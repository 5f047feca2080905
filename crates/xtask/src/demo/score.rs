//! What was measured, and how it is shown. Pure.

use super::step::LeaderWas;
use crate::terminal::Table;
use crate::workload::{History, Term, Verdict};

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What was done.
    pub title: &'static str,
    /// For a node's crash.
    pub leader: Option<LeaderWas>,
    /// How long no write was acknowledged.
    pub gap_milliseconds: u64,
    /// Until everything was as wanted; `None` if it could not be.
    pub healthy_seconds: Option<f64>,
    /// The primary before.
    pub from: String,
    /// The primary after.
    pub to: String,
    /// Begin of the step, on the wall clock.
    pub since_micros: u64,
    /// End of the step, on the wall clock.
    pub until_micros: u64,
    /// Acknowledged in this step and not there at the end.
    pub lost: usize,
}

/// The whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score {
    /// From `kubectl apply` to Healthy.
    pub ready_seconds: f64,
    /// The steps.
    pub steps: Vec<Measured>,
    /// Who acknowledged, one after another.
    pub terms: Vec<Term>,
    /// The writer's record compared with what is there; `None` until compared.
    pub verdict: Option<Verdict>,
}

impl Score {
    /// Takes the verdict in and says which step lost what.
    pub(super) fn judge(&mut self, history: &History, verdict: Verdict) {
        for attempt in &history.attempts {
            if !attempt.is_acknowledged() || !verdict.lost.contains(&attempt.id) {
                continue;
            }
            let at = history.on_the_wall(attempt.ended_micros);
            // The step before which it was promised, or the last.
            if let Some(step) = self
                .steps
                .iter_mut()
                .rev()
                .find(|step| step.since_micros <= at)
            {
                step.lost += 1;
            }
        }
        self.verdict = Some(verdict);
    }

    /// The closing table.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&[
            "step",
            "write gap",
            "Healthy after",
            "lost writes",
            "primary",
        ]);
        let ready = format!("{:.1} s", self.ready_seconds);
        table.row(["apply examples/shop.yaml", "–", &ready, "–", "–"]);
        for step in &self.steps {
            let title = match step.leader {
                Some(LeaderWas::OnThatNode) => format!("{} (with the leader)", step.title),
                Some(LeaderWas::Elsewhere) | None => step.title.to_owned(),
            };
            let healthy = step.healthy_seconds;
            table.row([
                title,
                format!("{:.2} s", seconds(step.gap_milliseconds)),
                healthy.map_or("–".to_owned(), |seconds| format!("{seconds:.1} s")),
                step.lost.to_string(),
                format!("{} → {}", step.from, step.to),
            ]);
        }
        table
    }

    /// One sentence about all writes.
    pub fn sentence(&self) -> String {
        let Some(verdict) = &self.verdict else {
            return "writes were not compared".to_owned();
        };
        format!(
            "{} writes tried, {} acknowledged, {} lost; {} got no answer, of which {} are there; \
             acknowledged by {} servers, one after another",
            verdict.attempted,
            verdict.acknowledged,
            verdict.lost.len(),
            verdict.unknown,
            verdict.recovered,
            self.terms.len(),
        )
    }
}

/// Milliseconds as seconds.
pub(super) fn seconds(milliseconds: u64) -> f64 {
    std::time::Duration::from_millis(milliseconds).as_secs_f64()
}
