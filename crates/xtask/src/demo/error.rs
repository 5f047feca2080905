//! Why a demo or a bench ended early, or what did not hold.

use crate::cluster::ClusterError;
use crate::host::HostError;
use crate::image::ImageError;
use crate::stage::{ErrorLine, Leftover, StageError};
use crate::workload::{Verdict, WorkloadError};

/// It could not go on, or a promise was broken.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The stage.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The local cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The images.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The machine.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The writer.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// There is no primary to break.
    #[error("{cluster} names no primary: {sentence}")]
    NoPrimary {
        /// Which.
        cluster: String,
        /// Situation and why.
        sentence: String,
    },
    /// There is no other instance to go to.
    #[error("{cluster} has no instance that would do: {wanted}")]
    NoInstance {
        /// Which.
        cluster: String,
        /// What was looked for.
        wanted: String,
    },
    /// No node is down.
    #[error("no node is down")]
    NoNodeDown,
    /// No probe was answered on both sides of the fault.
    #[error("no good write on both sides of the step \"{step}\"")]
    NoGap {
        /// The step.
        step: String,
    },
    /// The one thing that must never happen.
    #[error(
        "acknowledged writes: {acknowledged}, of which lost: {}; rows that nobody wrote: {}; see {record}",
        numbers(.verdict.lost.iter()), numbers(.verdict.unexpected.iter()), acknowledged = .verdict.acknowledged
    )]
    Broken {
        /// What was found.
        verdict: Box<Verdict>,
        /// The record.
        record: String,
    },
    /// Two servers acknowledged writes at once.
    #[error(
        "acknowledgements changed the server {terms} times, the primary changed {changes} times: two acknowledged at once"
    )]
    TwoPrimaries {
        /// Certain terms of acknowledging servers.
        terms: usize,
        /// Changes of primary that were seen.
        changes: u64,
    },
    /// Something that should be gone.
    #[error("left behind:\n{}", lines(.found))]
    LeftBehind {
        /// What.
        found: Vec<Leftover>,
    },
    /// Lines that a person should look at.
    #[error("unexpected errors in the logs:\n{}", errors(.found))]
    Errors {
        /// Which.
        found: Vec<ErrorLine>,
    },
    /// The local cluster did not go without a trace.
    #[error("the local cluster left behind: {}", .found.join(", "))]
    Machine {
        /// What.
        found: Vec<String>,
    },
}

const SHOWN: usize = 20;

fn numbers<'a>(all: impl ExactSizeIterator<Item = &'a u64>) -> String {
    let count = all.len();
    let shown: Vec<String> = all.take(SHOWN).map(ToString::to_string).collect();
    if count == 0 {
        "0".to_owned()
    } else {
        format!("{count} ({})", shown.join(", "))
    }
}

fn lines(found: &[Leftover]) -> String {
    found
        .iter()
        .map(|leftover| format!("    {leftover}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn errors(found: &[ErrorLine]) -> String {
    let shown = found.iter().take(SHOWN);
    let lines = shown.map(|line| format!("    {}: {}", line.log.display(), line.text));
    lines.collect::<Vec<_>>().join("\n")
}
