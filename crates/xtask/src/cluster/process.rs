//! Starting and killing the cluster's processes. A pid is only ever killed
//! together with the start time that was seen with it, so that a number which
//! the kernel gave to somebody else is left alone.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::host::{create_folder, read, remove_file, run, write};

use super::ClusterError;
use super::cgroup;
use super::layout::{Layout, PREFIX};

const NAMESPACES: &str = "/run/netns";

/// Joins the groups named before `--`, then becomes the rest. The process is in
/// its group before it can do anything, so it is found there even if the
/// program that started it is killed at once.
const JOIN_AND_BECOME: &str =
    r#"while [ "$1" != -- ]; do echo $$ > "$1" || exit 1; shift; done; shift; exec "$@""#;

/// Starts in the background and prints the pid. The shell in between ends at
/// once, so the process belongs to init and never becomes a zombie of ours.
const IN_BACKGROUND: &str =
    r#"log=$1; shift; setsid sh -c "$@" >> "$log" 2>&1 < /dev/null & echo $!"#;

/// What to start and where.
pub(super) struct Start<'a> {
    /// Also the name of its record and log.
    pub(super) name: &'a str,
    /// Its host: cgroup of that name, and network namespace unless `on_host`.
    pub(super) host: &'a str,
    /// Whether it stays in the machine's own network namespace.
    pub(super) network: Network,
    pub(super) command: Vec<OsString>,
}

/// Which network a process sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    OfItsHost,
    OfTheMachine,
}

/// A process that cannot be confused with a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pid: i32,
    started: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    command: String,
    /// Absent while it is being started.
    process: Option<Identity>,
}

fn record_of(layout: &Layout, name: &str) -> PathBuf {
    layout.processes().join(format!("{name}.json"))
}

/// Writes down the intent, starts, writes down what was started.
pub(super) fn start(layout: &Layout, what: &Start) -> Result<(), ClusterError> {
    create_folder(&layout.logs())?;
    let shown = what
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    let mut record = Record {
        command: shown,
        process: None,
    };
    save(layout, what.name, &record)?;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", IN_BACKGROUND, "sh"])
        .arg(layout.log(what.name));
    shell
        .args([JOIN_AND_BECOME, "sh"])
        .args(cgroup::joins(what.host)?)
        .arg("--");
    if what.network == Network::OfItsHost {
        shell
            .arg("nsenter")
            .arg(format!("--net={NAMESPACES}/{}", what.host));
    }
    let pid = run(shell.args(&what.command))?
        .trim()
        .parse()
        .unwrap_or_default();
    record.process = identity_of(pid);
    save(layout, what.name, &record)
}

fn save(layout: &Layout, name: &str, record: &Record) -> Result<(), ClusterError> {
    Ok(write(
        &record_of(layout, name),
        serde_json::to_string_pretty(record)?,
    )?)
}

/// Whether the recorded process still runs.
pub(super) fn is_running(layout: &Layout, name: &str) -> bool {
    recorded(layout, name).is_some_and(|recorded| identity_of(recorded.pid) == Some(recorded))
}

fn recorded(layout: &Layout, name: &str) -> Option<Identity> {
    let text = std::fs::read_to_string(record_of(layout, name)).ok()?;
    serde_json::from_str::<Record>(&text).ok()?.process
}

fn identity_of(pid: i32) -> Option<Identity> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name and may hold anything; the state
    // is the first after it, the start time the twentieth.
    let after_name = stat.rsplit_once(')')?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let dead = matches!(fields.first(), Some(&"Z" | &"X"));
    let started = fields.get(19)?.parse().ok()?;
    (!dead).then_some(Identity { pid, started })
}

/// Kills the recorded process and waits until it is gone.
pub(super) fn kill_recorded(layout: &Layout, name: &str) -> Result<(), ClusterError> {
    if let Some(recorded) = recorded(layout, name) {
        kill_one(recorded)?;
    }
    Ok(remove_file(&record_of(layout, name))?)
}

fn kill_one(process: Identity) -> Result<(), ClusterError> {
    for _ in 0..3000 {
        if identity_of(process.pid) != Some(process) {
            return Ok(());
        }
        let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Err(ClusterError::Stuck {
        what: format!("process {}", process.pid),
    })
}

/// Names of all records.
pub(super) fn records(layout: &Layout) -> Vec<String> {
    let entries = std::fs::read_dir(layout.processes())
        .into_iter()
        .flatten()
        .flatten();
    let names =
        entries.filter_map(|entry| Some(entry.path().file_stem()?.to_string_lossy().into_owned()));
    names.collect()
}

/// Kills whatever runs in one of our network namespaces, records or not.
pub(super) fn kill_in_our_namespaces() -> Result<(), ClusterError> {
    for process in in_our_namespaces() {
        kill_one(process)?;
    }
    Ok(())
}

/// Processes in our network namespaces: also those that a test started there.
pub(super) fn in_our_namespaces() -> Vec<Identity> {
    let ours: Vec<u64> = namespaces()
        .iter()
        .filter_map(|name| inode(&Path::new(NAMESPACES).join(name)))
        .collect();
    let is_ours = |pid: &i32| {
        inode(Path::new(&format!("/proc/{pid}/ns/net"))).is_some_and(|net| ours.contains(&net))
    };
    all_pids()
        .into_iter()
        .filter(is_ours)
        .filter_map(identity_of)
        .collect()
}

/// Our named network namespaces that exist.
pub(super) fn namespaces() -> Vec<String> {
    let entries = std::fs::read_dir(NAMESPACES)
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut ours: Vec<String> = names.filter(|name| name.starts_with(PREFIX)).collect();
    ours.sort();
    ours
}

fn inode(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|file| file.ino())
}

pub(super) fn all_pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Process 1 of a node, seen from the host: the one in the node's own group
/// that is number 1 in its PID namespace.
pub(super) fn init_of(node: &str) -> Option<Pid> {
    cgroup::processes(&cgroup::own_group(node))
        .into_iter()
        .find(|pid| {
            let status = read(Path::new(&format!("/proc/{pid}/status"))).unwrap_or_default();
            let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            numbers.is_some_and(|numbers| {
                let numbers: Vec<&str> = numbers.split_whitespace().collect();
                numbers.len() == 2 && numbers.last() == Some(&"1")
            })
        })
}
