//! Debian packages that the local cluster runs on. Installs only what is
//! missing, and only as root; anybody else is told the exact command.

use std::process::Command;

use super::{HostError, Progress, run, succeed};

/// A program and the Debian package that has it.
const PROGRAMS: [(&str, &str); 17] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("/usr/lib/cni/ptp", "containernetworking-plugins"),
    ("nft", "nftables"),
    ("mkfs.xfs", "xfsprogs"),
    ("xfs_io", "xfsprogs"),
    ("mmdebstrap", "mmdebstrap"),
    ("ip", "iproute2"),
    ("losetup", "mount"),
    ("findmnt", "util-linux"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("unshare", "util-linux"),
    ("sha256sum", "coreutils"),
    ("strip", "binutils"),
    ("sysctl", "procps"),
];

/// Makes sure that all programs are there.
pub fn ensure_packages(progress: &Progress) -> Result<(), HostError> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.sort_unstable();
    packages.dedup();
    let can_install = nix::unistd::geteuid().is_root() && is_there("apt-get");
    if !can_install {
        let programs: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
        return Err(HostError::MissingPrograms {
            programs: programs.join(", "),
            packages: packages.join(" "),
        });
    }
    progress.step(&format!("installing {} with apt-get", packages.join(", ")));
    install(&packages)
}

fn missing() -> Vec<(&'static str, &'static str)> {
    PROGRAMS
        .into_iter()
        .filter(|(program, _)| !is_there(program))
        .collect()
}

fn is_there(program: &str) -> bool {
    succeed(Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program]))
}

fn install(packages: &[&str]) -> Result<(), HostError> {
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive");
    install
        .args(["install", "--yes", "--quiet", "--no-install-recommends"])
        .args(packages);
    if run(&mut install).is_ok() {
        return Ok(());
    }
    // The lists may be missing or older than what the mirror has.
    run(Command::new("apt-get").args(["update", "--quiet"]))?;
    run(&mut install).map(drop)
}
