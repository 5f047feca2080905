//! Running a step to its end, or to the end of our patience. Ends only what it
//! started.

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::host::{Progress, ensure_packages, line_of, local_kube};

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// All of it held.
    Passed,
    /// Something did not, or was missing; in a sentence.
    Failed(String),
}

impl Ended {
    /// For a table.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Passed => to.write_str("passed"),
            Self::Failed(why) => write!(to, "FAILED: {why}"),
        }
    }
}

/// When the whole run ends.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    deadline: Instant,
}

impl Limits {
    /// From now.
    pub fn minutes(minutes: u64) -> Self {
        Self {
            deadline: Instant::now() + Duration::from_secs(60 * minutes),
        }
    }

    /// Runs a program with our input and output.
    pub fn run(&self, command: &mut Command, minutes_max: u64) -> Ended {
        let line = line_of(command);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ended::Failed(format!("could not start `{line}`: {error}")),
        };
        let own = Instant::now() + Duration::from_secs(60 * minutes_max);
        let deadline = own.min(self.deadline);
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ended::Passed,
                Ok(Some(status)) => return Ended::Failed(format!("`{line}`: {status}")),
                Ok(None) if Instant::now() > deadline => {
                    end_with_children(&mut child);
                    return Ended::Failed(format!("`{line}` took too long and was ended"));
                }
                Ok(None) => std::thread::sleep(LOOK_EVERY),
                Err(error) => return Ended::Failed(format!("`{line}`: {error}")),
            }
        }
    }
}

/// The child and what it started: cargo does not end its tests with itself.
fn end_with_children(child: &mut Child) {
    let parents = parents();
    let root = i32::try_from(child.id()).unwrap_or(i32::MAX);
    for pid in descendants(root, &parents) {
        // It may have ended by itself meanwhile.
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn parents() -> BTreeMap<i32, i32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    pids.filter_map(|pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // "pid (name) state parent": a name may hold spaces and parentheses.
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?;
        Some((pid, parent.parse().ok()?))
    })
    .collect()
}

fn descendants(root: i32, parents: &BTreeMap<i32, i32>) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| **of == parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.split_off(1)
}

/// The Go build beside the Rust build.
pub(super) struct Background {
    thread: JoinHandle<()>,
    result: Arc<Mutex<Option<Result<(), String>>>>,
}

impl Background {
    pub(super) fn build() -> Self {
        let result = Arc::new(Mutex::new(None));
        let to = Arc::clone(&result);
        let thread = std::thread::spawn(move || {
            let progress = Progress::shown();
            let packages = ensure_packages(&progress);
            let built = packages.and_then(|()| local_kube(&progress).map(drop));
            let built = built.map_err(|error| error.to_string());
            *to.lock().unwrap_or_else(PoisonError::into_inner) = Some(built);
        });
        Self { thread, result }
    }

    /// Waits until it is built, or tells why it is not.
    pub(super) fn wait(&self) -> Result<(), String> {
        loop {
            let built = self
                .result
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            match built {
                Some(result) => return result,
                None if self.thread.is_finished() => {
                    return Err("the Go build broke off".to_owned());
                }
                None => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// Waits for the thread itself, so that no build outlives the run.
    pub(super) fn join(self) {
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_are_found() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 1), (5, 9)]);
        assert_eq!(descendants(1, &parents), [2, 4, 3]);
    }

    #[test]
    fn a_program_that_fails_and_one_that_is_not_there_fail() {
        let limits = Limits::minutes(1);
        assert_eq!(limits.run(&mut Command::new("true"), 1), Ended::Passed);
        assert!(matches!(
            limits.run(&mut Command::new("false"), 1),
            Ended::Failed(_)
        ));
        assert!(matches!(
            limits.run(&mut Command::new("/no/such"), 1),
            Ended::Failed(_)
        ));
    }
}
