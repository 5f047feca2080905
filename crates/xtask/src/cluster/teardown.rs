//! Takes the cluster down, whatever state it is in: it goes by what exists on
//! the machine, and only then by what was written down. Logs stay until the
//! next `up`. It never kills by a program's name.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::host::{remove_file, remove_folder, run};

use super::claim::{self, Exclusive};
use super::layout::Layout;
use super::{ClusterError, cgroup, host_changes, network, process};

const LOOP_SECONDS_MAX: u64 = 20;

/// Takes the cluster of this checkout down; nothing running is fine.
pub fn down() -> Result<(), ClusterError> {
    let layout = Layout::of_this_checkout();
    claim::refuse_other(&layout)?;
    let _exclusive = Exclusive::take(&layout)?;
    remove_all(&layout)
}

/// Removes all that there is of a cluster.
pub(super) fn remove_all(layout: &Layout) -> Result<(), ClusterError> {
    kill_everything(layout)?;
    release_loop_devices(layout)?;
    for group in cgroup::ours()? {
        cgroup::remove(&group)?;
    }
    network::remove()?;
    if let Some(before) = claim::before() {
        host_changes::restore(before)?;
    }
    remove_file(&layout.settings())?;
    remove_file(&layout.kubeconfig())?;
    let folders = [
        layout.nodes(),
        layout.control_plane(),
        layout.certificates(),
        layout.images(),
        layout.processes(),
    ];
    for folder in folders.iter().chain([&layout.state.join("config")]) {
        remove_folder(folder)?;
    }
    claim::release()
}

/// By cgroup first: that finds Pods as well, and what no record knows of.
fn kill_everything(layout: &Layout) -> Result<(), ClusterError> {
    let groups = cgroup::ours()?;
    let mut hosts: Vec<String> = groups
        .iter()
        .filter_map(|group| Some(group.file_name()?.to_string_lossy().into_owned()))
        .collect();
    hosts.sort();
    hosts.dedup();
    std::thread::scope(|scope| {
        let threads: Vec<_> = hosts
            .iter()
            .map(|host| scope.spawn(|| cgroup::kill_all(host)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    for name in process::records(layout) {
        process::kill_recorded(layout, &name)?;
    }
    process::kill_in_our_namespaces()
}

/// The kernel frees a loop device when the last mount of it goes, which is
/// shortly after the last process of its node.
fn release_loop_devices(layout: &Layout) -> Result<(), ClusterError> {
    let deadline = Instant::now() + Duration::from_secs(LOOP_SECONDS_MAX);
    while let Some(device) = loop_devices(&layout.nodes())?.first() {
        if Instant::now() > deadline {
            return Err(ClusterError::Stuck {
                what: format!("loop device {device}"),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Loop devices on files below a folder.
pub(super) fn loop_devices(folder: &Path) -> Result<Vec<String>, ClusterError> {
    let list = run(Command::new("losetup").args([
        "--list",
        "--noheadings",
        "--raw",
        "--output",
        "NAME,BACK-FILE",
    ]))?;
    let lines = list.lines().filter_map(|line| line.split_once(' '));
    let ours = lines.filter(|(_, file)| Path::new(file).starts_with(folder));
    Ok(ours.map(|(device, _)| device.to_owned()).collect())
}
