//! What the cluster cannot help changing on the machine, written down before
//! it is changed and put back at the end: kernel settings that the kubelet
//! writes, and empty folders that are mount points inside the nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::host::{create_folder, read, run, write};

use super::ClusterError;

/// The kubelet sets these, see its setupKernelTunables. Others that it or
/// kube-proxy set belong to a network namespace and vanish with it.
const KERNEL_SETTINGS: [&str; 6] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];

const NETNS: &str = "/run/netns";

/// Well-known paths over which each node mounts its own folder.
pub(super) const MOUNT_POINTS: [&str; 6] = [
    NETNS,
    "/run/containerd",
    "/var/lib/kubelet",
    "/var/lib/cni",
    "/var/log/pods",
    "/var/log/containers",
];

/// The machine before a cluster changes it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Before {
    kernel_settings: BTreeMap<String, String>,
    missing_folders: Vec<PathBuf>,
    netns_was_a_mount: bool,
}

/// Looks; changes nothing.
pub(super) fn look() -> Result<Before, ClusterError> {
    let settings = KERNEL_SETTINGS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), setting(name)?)));
    let folders = MOUNT_POINTS.iter().map(PathBuf::from);
    Ok(Before {
        kernel_settings: settings.collect(),
        missing_folders: folders.filter(|path| !path.exists()).collect(),
        netns_was_a_mount: is_mount(Path::new(NETNS))?,
    })
}

/// Makes the mount points that are missing.
pub(super) fn make_mount_points() -> Result<(), ClusterError> {
    for folder in MOUNT_POINTS {
        create_folder(Path::new(folder))?;
    }
    Ok(())
}

/// Makes the machine what it was.
pub(super) fn restore(before: Before) -> Result<(), ClusterError> {
    let Before {
        kernel_settings,
        missing_folders,
        netns_was_a_mount,
    } = before;
    for (name, value) in kernel_settings {
        if setting(&name).as_ref() != Some(&value) {
            write(&Path::new("/proc/sys").join(&name), &value)?;
        }
    }
    // `ip netns add` mounts the folder on itself. Somebody else's namespace in it stays.
    let netns = Path::new(NETNS);
    let is_empty = std::fs::read_dir(netns).is_ok_and(|mut entries| entries.next().is_none());
    if !netns_was_a_mount && is_empty && is_mount(netns)? {
        run(Command::new("umount").arg(netns))?;
    }
    for folder in missing_folders {
        // Not empty means that somebody uses it by now.
        let _ = std::fs::remove_dir(folder);
    }
    Ok(())
}

fn setting(name: &str) -> Option<String> {
    std::fs::read_to_string(Path::new("/proc/sys").join(name))
        .ok()
        .map(|value| value.trim().to_owned())
}

fn is_mount(path: &Path) -> Result<bool, ClusterError> {
    let mounts = read(Path::new("/proc/self/mounts"))?;
    let path = path.to_string_lossy();
    Ok(mounts
        .lines()
        .any(|line| line.split(' ').nth(1) == Some(path.as_ref())))
}
