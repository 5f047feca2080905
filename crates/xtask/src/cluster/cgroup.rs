//! cgroups of the cluster: the sure way to find and to stop every process of a
//! node. Only groups that begin with our prefix are ever touched.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::host::{HostError, create_folder, read, write};

use super::ClusterError;
use super::layout::PREFIX;

const FREEZER: &str = "/sys/fs/cgroup/freezer";
const DEATH_SECONDS_MAX: u64 = 30;

/// The v1 hierarchies of this machine.
pub(super) fn hierarchies() -> Result<Vec<PathBuf>, ClusterError> {
    let found = mounted("cgroup")?;
    if found.iter().any(|path| path == Path::new(FREEZER)) {
        Ok(found)
    } else {
        Err(ClusterError::CgroupVersion)
    }
}

fn mounted(kind: &str) -> Result<Vec<PathBuf>, ClusterError> {
    let mounts = read(Path::new("/proc/self/mounts"))?;
    let fields = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let ours = fields.filter(|fields| fields.get(2) == Some(&kind));
    Ok(ours
        .filter_map(|fields| fields.get(1).map(PathBuf::from))
        .collect())
}

/// The group of processes that are not Pods: the node's own, or a host's.
pub(super) fn own_group(name: &str) -> String {
    format!("{name}/own")
}

/// Makes the groups of a node in every hierarchy: the kubelet wants to find
/// its root there. Those of a crash go first: a machine that boots has none,
/// and the kubelet would try for seconds to make sense of each.
pub(super) fn make_for_node(name: &str) -> Result<(), ClusterError> {
    for group in ours()?.iter().filter(|group| group.ends_with(name)) {
        remove(group)?;
    }
    for hierarchy in hierarchies()? {
        let group = hierarchy.join(name);
        create_folder(&group)?;
        if hierarchy.ends_with("cpuset") {
            // A cpuset without CPUs takes no process, and children start empty.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                write(&group.join(file), read(&hierarchy.join(file))?.trim())?;
            }
            write(&group.join("cgroup.clone_children"), "1")?;
        }
        create_folder(&hierarchy.join(own_group(name)))?;
    }
    Ok(())
}

/// Makes the group of a host that has no Pods; one hierarchy is enough.
pub(super) fn make_for_host(name: &str) -> Result<(), ClusterError> {
    Ok(create_folder(&Path::new(FREEZER).join(own_group(name)))?)
}

/// The files through which a process joins its group.
pub(super) fn joins(name: &str) -> Result<Vec<PathBuf>, ClusterError> {
    let groups = hierarchies()?
        .into_iter()
        .map(|hierarchy| hierarchy.join(own_group(name)).join("cgroup.procs"));
    Ok(groups.filter(|file| file.exists()).collect())
}

/// All processes of a node or host, Pods included.
pub(super) fn processes(name: &str) -> Vec<Pid> {
    let mut found = Vec::new();
    collect(&Path::new(FREEZER).join(name), &mut found);
    found
}

fn collect(group: &Path, found: &mut Vec<Pid>) {
    // A group that vanishes meanwhile has no processes.
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    found.extend(
        text.lines()
            .filter_map(|line| line.parse().ok())
            .map(Pid::from_raw),
    );
    for child in children(group) {
        collect(&child, found);
    }
}

fn children(group: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

/// Stops every process of a node where it stands.
pub(super) fn freeze(name: &str) -> Result<(), ClusterError> {
    let group = Path::new(FREEZER).join(name);
    write(&group.join("freezer.state"), "FROZEN")?;
    let deadline = Instant::now() + Duration::from_secs(DEATH_SECONDS_MAX);
    while read(&group.join("freezer.state"))?.trim() != "FROZEN" {
        if Instant::now() > deadline {
            return Err(ClusterError::Stuck {
                what: format!("the last running process of {name}"),
            });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Lets them go on.
pub(super) fn thaw(name: &str) -> Result<(), ClusterError> {
    Ok(write(
        &Path::new(FREEZER).join(name).join("freezer.state"),
        "THAWED",
    )?)
}

/// Kills everything in the group at one moment: frozen processes can neither
/// fork nor act on the death of another.
pub(super) fn kill_all(name: &str) -> Result<(), ClusterError> {
    if !Path::new(FREEZER).join(name).exists() {
        return Ok(());
    }
    freeze(name)?;
    for pid in processes(name) {
        // It may have been dying before the freeze.
        let _ = kill(pid, Signal::SIGKILL);
    }
    thaw(name)?;
    let deadline = Instant::now() + Duration::from_secs(DEATH_SECONDS_MAX);
    while !processes(name).is_empty() {
        if Instant::now() > deadline {
            return Err(ClusterError::Stuck {
                what: format!("the processes of {name}"),
            });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Our groups, whatever made them: runc makes some in the v2 hierarchy that
/// is mounted beside the others, without being asked.
pub(super) fn ours() -> Result<Vec<PathBuf>, ClusterError> {
    let mut mounted_all = mounted("cgroup")?;
    mounted_all.extend(mounted("cgroup2")?);
    let all = mounted_all
        .into_iter()
        .flat_map(|hierarchy| children(&hierarchy));
    Ok(all
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
        })
        .collect())
}

/// Removes a group with all below it; it must have no processes.
pub(super) fn remove(group: &Path) -> Result<(), ClusterError> {
    for child in children(group) {
        remove(&child)?;
    }
    // The kernel may need a moment after the last process: then it says EBUSY.
    let deadline = Instant::now() + Duration::from_secs(DEATH_SECONDS_MAX);
    while let Err(source) = std::fs::remove_dir(group) {
        if source.kind() == std::io::ErrorKind::NotFound {
            break;
        }
        if Instant::now() > deadline {
            return Err(HostError::File {
                doing: "remove",
                path: group.into(),
                source,
            }
            .into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
