//! What there is on the machine that a cluster could leave behind. It only
//! looks. A test takes a snapshot before and after; the two must be equal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host::{read, run};

use super::layout::{API_ON_HOST, CLAIM, Layout};
use super::{ClusterError, cgroup, host_changes, process};

/// Counters and the like: they change by themselves.
const VOLATILE_SETTINGS: [&str; 11] = [
    "kernel/random/",
    "kernel/ns_last_pid",
    "kernel/pty/nr",
    "kernel/perf_event_max_sample_rate",
    "fs/dentry-state",
    "fs/file-nr",
    "fs/inode-nr",
    "fs/inode-state",
    "fs/aio-nr",
    "fs/quota/",
    "net/netfilter/nf_conntrack_count",
];

/// One line per thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    lines: BTreeSet<String>,
}

/// What is there of a cluster now: empty when none is up.
pub type Leftovers = Vec<String>;

/// Things that exist only because of a local cluster.
pub fn leftovers() -> Result<Leftovers, ClusterError> {
    let layout = Layout::of_this_checkout();
    let mut lines = BTreeSet::new();
    add(&mut lines, "network namespace", process::namespaces());
    add(
        &mut lines,
        "cgroup",
        cgroup::ours()?.iter().map(|path| path.display()),
    );
    add(&mut lines, "process", processes(&layout));
    add(
        &mut lines,
        "claim",
        Path::new(CLAIM).exists().then_some(CLAIM),
    );
    add(
        &mut lines,
        "listening",
        std::net::TcpListener::bind(API_ON_HOST)
            .is_err()
            .then_some(API_ON_HOST),
    );
    let state = layout.state.display().to_string();
    let below_state = |lines: Vec<String>| {
        lines
            .into_iter()
            .filter(|line| line.contains(&state))
            .collect::<Vec<_>>()
    };
    add(&mut lines, "mount", below_state(mounts()?));
    add(&mut lines, "loop device", below_state(loop_devices()?));
    Ok(lines.into_iter().collect())
}

impl Snapshot {
    /// Looks at the whole machine, except for other people's processes.
    pub fn take() -> Result<Self, ClusterError> {
        let mut lines: BTreeSet<String> = leftovers()?.into_iter().collect();
        add(&mut lines, "mount", mounts()?);
        add(&mut lines, "loop device", loop_devices()?);
        add(&mut lines, "network namespace", directory("/run/netns"));
        add(&mut lines, "link", directory("/sys/class/net"));
        add(&mut lines, "routes", [read(Path::new("/proc/net/route"))?]);
        let tables = run(Command::new("nft").args(["list", "tables"]))?;
        add(&mut lines, "nft", tables.lines());
        add(
            &mut lines,
            "folder",
            host_changes::MOUNT_POINTS
                .iter()
                .filter(|path| Path::new(path).exists()),
        );
        let mut settings = Vec::new();
        for folder in ["kernel", "vm", "fs", "net"] {
            collect_settings(&Path::new("/proc/sys").join(folder), &mut settings);
        }
        add(&mut lines, "kernel setting", settings);
        Ok(Self { lines })
    }

    /// Lines that came (`+`) or went (`-`) since an earlier snapshot.
    pub fn changes_since(&self, earlier: &Self) -> Vec<String> {
        let came = self
            .lines
            .difference(&earlier.lines)
            .map(|line| format!("+ {line}"));
        let went = earlier
            .lines
            .difference(&self.lines)
            .map(|line| format!("- {line}"));
        came.chain(went).collect()
    }
}

fn add<T: std::fmt::Display>(
    lines: &mut BTreeSet<String>,
    kind: &str,
    things: impl IntoIterator<Item = T>,
) {
    lines.extend(things.into_iter().map(|thing| format!("{kind}: {thing}")));
}

/// Processes in our namespaces, and any that was started with a path of ours.
fn processes(layout: &Layout) -> Vec<String> {
    let state = layout.state.display().to_string();
    let in_groups = process::all_pids().into_iter().filter_map(|pid| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .ok()?
            .replace('\0', " ");
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let is_ours = command.contains(&state) || groups.contains(":/kz-");
        is_ours.then(|| format!("{pid} {command}"))
    });
    let in_namespaces = process::in_our_namespaces()
        .into_iter()
        .map(|process| format!("{process:?}"));
    in_groups.chain(in_namespaces).collect()
}

/// Without the fields that number mounts.
fn mounts() -> Result<Vec<String>, ClusterError> {
    Ok(read(Path::new("/proc/self/mounts"))?
        .lines()
        .map(str::to_owned)
        .collect())
}

fn loop_devices() -> Result<Vec<String>, ClusterError> {
    let list = run(Command::new("losetup").args([
        "--list",
        "--noheadings",
        "--raw",
        "--output",
        "NAME,BACK-FILE",
    ]))?;
    Ok(list.lines().map(str::to_owned).collect())
}

fn directory(path: &str) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn collect_settings(path: &Path, found: &mut Vec<String>) {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    for entry in entries {
        let path: PathBuf = entry.path();
        let name = path
            .strip_prefix("/proc/sys")
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        if VOLATILE_SETTINGS
            .iter()
            .any(|volatile| name.starts_with(volatile))
        {
            continue;
        }
        if path.is_dir() {
            collect_settings(&path, found);
        } else if let Ok(value) = std::fs::read_to_string(&path) {
            found.push(format!("{name} = {}", value.trim()));
        }
    }
}
