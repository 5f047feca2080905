//! What happened, counted: each `always` needs a `sometimes` beside it. A run
//! in which nothing happened proves nothing.

use std::collections::BTreeMap;

/// What must be seen at least once over a default run.
pub const WANTED: [&str; 30] = [
    "acknowledged writes",
    "commits that waited long",
    "failovers",
    "failovers aborted",
    "switchovers",
    "switchovers undone",
    "resumed in place",
    "cold starts",
    "rejoined by re-clone (Discard)",
    "relay logs discarded",
    "new volume generations",
    "clones done",
    "clones broken",
    "ackers replaced (R5)",
    "ackers admitted",
    "blocked",
    "writes waiting",
    "errant, unproven",
    "late orders refused",
    "orders refused",
    "late actions of a paused operator",
    "record conflicts",
    "answers lost",
    "OKs without acknowledgement",
    "mysqld killed",
    "power lost",
    "unsynced relay logs lost",
    "disks lost",
    "Pods force-deleted",
    "volume locked by a predecessor",
];

/// Counts by name, in order of the names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    counts: BTreeMap<String, u64>,
}

impl Tally {
    /// One more.
    pub(crate) fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    /// How often.
    pub fn of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Everything of another run.
    pub fn add(&mut self, other: &Tally) {
        for (what, count) in &other.counts {
            *self.counts.entry(what.clone()).or_default() += count;
        }
    }

    /// What was wanted and never seen.
    pub fn missing(&self) -> Vec<&'static str> {
        WANTED
            .into_iter()
            .filter(|what| self.of(what) == 0)
            .collect()
    }

    /// A line each.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.counts
            .iter()
            .map(|(what, count)| format!("{count:>9}  {what}"))
    }
}
