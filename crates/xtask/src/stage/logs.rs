//! Errors in the logs of operators and agents. An ERROR line is a promise that
//! a person should look; one that a test or the demo causes on purpose is on a
//! written list, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Stage, StageError};

/// Part of a line, and why it is expected.
const EXPECTED: [(&str, &str); 0] = [];

/// One line that should not be there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorLine {
    /// Its log.
    pub log: PathBuf,
    /// The line.
    pub text: String,
}

/// What has been found so far. Logs go with their Pods, so scan often.
#[derive(Debug, Default)]
pub struct LogScan {
    read_until: BTreeMap<PathBuf, usize>,
    found: BTreeSet<ErrorLine>,
}

impl LogScan {
    /// Reads what the logs of operators and instances gained.
    pub fn scan(&mut self, stage: &Stage) -> Result<(), StageError> {
        for node in stage.cluster.nodes() {
            for log in logs(&node.pod_logs()) {
                // Gone since it was listed: its Pod was deleted.
                let Ok(text) = std::fs::read_to_string(&log) else {
                    continue;
                };
                self.take(&log, &text);
            }
        }
        Ok(())
    }

    /// Unexpected lines.
    pub fn found(&self) -> &BTreeSet<ErrorLine> {
        &self.found
    }

    fn take(&mut self, log: &Path, text: &str) {
        let from = self.read_until.entry(log.to_path_buf()).or_default();
        let fresh = text.get(*from..).unwrap_or(text);
        for line in fresh.lines().filter(|line| is_unexpected(line)) {
            self.found.insert(ErrorLine {
                log: log.to_path_buf(),
                text: line.to_owned(),
            });
        }
        *from = text.len();
    }
}

/// `<namespace>_<pod>_<uid>/<container>/<n>.log` of operators and instances.
fn logs(folder: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let containers = entries(folder).into_iter().flat_map(|pod| entries(&pod));
    let ours = containers.filter(|path| {
        path.file_name()
            .is_some_and(|name| name == "operator" || name == "mysqld")
    });
    ours.flat_map(|container| entries(&container)).collect()
}

/// What Katazuke writes.
#[derive(Deserialize)]
struct Said {
    level: String,
    #[serde(default)]
    target: String,
}

impl Said {
    /// mysqld's own words, which the agent passes on: it calls every lost
    /// connection an error, and faults are what this is for.
    fn is_of_mysqld(&self) -> bool {
        self.target == "mysqld"
    }
}

fn is_unexpected(line: &str) -> bool {
    // "<time> stdout F <what was written>"
    let said = line.splitn(4, ' ').nth(3).unwrap_or(line);
    let is_error = serde_json::from_str::<Said>(said)
        .is_ok_and(|said| said.level == "ERROR" && !said.is_of_mysqld());
    let is_panic = said.contains("panicked at");
    let is_expected = EXPECTED.iter().any(|(part, _)| said.contains(part));
    (is_error || is_panic) && !is_expected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_panics_of_ours_are_found_and_those_of_mysqld_are_not() {
        let time = "2026-01-01T00:00:00.0Z stdout F";
        assert!(is_unexpected(&format!(
            "{time} {{\"level\":\"ERROR\",\"message\":\"x\"}}"
        )));
        assert!(is_unexpected(&format!(
            "{time} thread 'main' panicked at src/main.rs:1:1:"
        )));
        assert!(!is_unexpected(&format!(
            "{time} {{\"level\":\"WARN\",\"message\":\"ERROR\"}}"
        )));
        let mysqld = "{\"level\":\"ERROR\",\"target\":\"mysqld\",\"message\":\"Repl …\"}";
        assert!(!is_unexpected(&format!("{time} {mysqld}")));
    }

    #[test]
    fn a_log_is_read_once() {
        let mut scan = LogScan::default();
        let line = "t stdout F {\"level\":\"ERROR\"}\n";
        scan.take(Path::new("a"), line);
        scan.take(Path::new("a"), line);
        assert_eq!(scan.found().len(), 1);
    }
}
