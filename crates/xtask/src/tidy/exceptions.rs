//! Who may break a rule, and why. A ratchet: a limit here may only fall, and an
//! entry that is no longer needed is itself a finding.

use std::path::Path;

use super::Finding;
use super::tree::Tree;

/// A file should be read in one sitting.
pub(super) const LINES_MAX: usize = 500;

/// Files over [`LINES_MAX`]: path, its own limit, why it is one file.
const LONG_FILES: [(&str, usize, &str); 0] = [];

/// Test files that call sleep: path, why.
const SLEEPING_TESTS: [(&str, &str); 5] = [
    (
        "crates/operator/src/supervisor.rs",
        "time is paused in that test",
    ),
    (
        "crates/operator/tests/fake/agent.rs",
        "the heartbeat of a fake agent",
    ),
    (
        "crates/operator/tests/fake/world.rs",
        "the loop of a fake kubelet",
    ),
    (
        "crates/operator/tests/operator_loop.rs",
        "shows that nothing happens for a while",
    ),
    (
        "crates/xtask/tests/local_cluster.rs",
        "kills a program in the middle of its work",
    ),
];

pub(super) fn lines_max(path: &Path) -> usize {
    let own = LONG_FILES
        .iter()
        .find(|(file, _, _)| Path::new(file) == path);
    own.map_or(LINES_MAX, |(_, lines, _)| *lines)
}

pub(super) fn allows_sleep(path: &Path) -> bool {
    SLEEPING_TESTS
        .iter()
        .any(|(file, _)| Path::new(file) == path)
}

/// Entries that nothing needs any more.
pub(super) fn stale(tree: &Tree) -> Vec<Finding> {
    let this = Path::new("crates/xtask/src/tidy/exceptions.rs");
    let long = LONG_FILES.iter().filter(|(file, _, _)| {
        tree.text(Path::new(file))
            .map_or(0, |text| text.lines().count())
            <= LINES_MAX
    });
    let sleeping = SLEEPING_TESTS.iter().filter(|(file, _)| {
        !tree
            .text(Path::new(file))
            .is_ok_and(|text| text.contains(concat!("sleep", "(")))
    });
    let files = long
        .map(|(file, _, _)| file)
        .chain(sleeping.map(|(file, _)| file));
    files
        .map(|file| Finding::new(this, None, format!("{file} needs no exception")))
        .collect()
}
