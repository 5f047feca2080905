//! One switch and one cable per host, all inside namespaces: the machine itself
//! gets no interface, no route and no rule. No namespace has a default route,
//! so nothing can leave.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::process::Command;

use crate::host::{bound, feed, run};

use super::ClusterError;
use super::layout::{
    CLIENT_ADDRESS, CLIENT_NAMESPACE, CONTROL_PLANE, CONTROL_PLANE_ADDRESS, NodeNumber,
    SERVICE_RANGE, SWITCH,
};
use super::process::namespaces;

const BRIDGE: &str = "kz-br0";

/// Frames between the two ports of a pair are dropped, and all frames of an
/// isolated port. Elements are added and removed by the faults.
const SWITCH_RULES: &str = "table bridge faults {
    set isolated { type ifname; }
    chain forward {
        type filter hook forward priority 0;
        iifname @isolated drop
        oifname @isolated drop
    }
}
";

/// Packets from the first to the second address are dropped on their way
/// through a host, also between two Pods of one node: Pods are routed.
const HOST_RULES: &str = "table inet faults {
    set cut { type ipv4_addr . ipv4_addr; }
    chain forward {
        type filter hook forward priority -10;
        ip saddr . ip daddr @cut drop
    }
    chain output {
        type filter hook output priority 10;
        ip saddr . ip daddr @cut drop
    }
    chain input {
        type filter hook input priority -10;
        ip saddr . ip daddr @cut drop
    }
}
";

/// Makes the switch and the hosts.
pub(super) fn make(nodes: &[NodeNumber]) -> Result<(), ClusterError> {
    let mut hosts = vec![
        (CONTROL_PLANE.to_owned(), CONTROL_PLANE_ADDRESS),
        (CLIENT_NAMESPACE.to_owned(), CLIENT_ADDRESS),
    ];
    hosts.extend(nodes.iter().map(|node| (node.name(), node.address())));
    let mut names = vec![SWITCH.to_owned()];
    names.extend(hosts.iter().map(|(name, _)| name.clone()));
    let added = names
        .iter()
        .fold(String::new(), |all, name| all + "netns add " + name + "\n");
    feed(bound("ip").args(["-batch", "-"]), &added)?;
    feed(
        bound("ip").args(["-n", SWITCH, "-batch", "-"]),
        &switch(&hosts),
    )?;
    inside(SWITCH, "nft", SWITCH_RULES)?;
    for (name, address) in &hosts {
        feed(
            bound("ip").args(["-n", name, "-batch", "-"]),
            &host(*address, nodes),
        )?;
        inside(name, "nft", HOST_RULES)?;
        inside(name, "sysctl", "net.ipv4.ip_forward = 1\n")?;
    }
    Ok(())
}

fn switch(hosts: &[(String, Ipv4Addr)]) -> String {
    let mut commands =
        format!("link set lo up\nlink add {BRIDGE} type bridge\nlink set {BRIDGE} up\n");
    for (name, _) in hosts {
        let _ = writeln!(
            commands,
            "link add {name} type veth peer name eth0 netns {name}"
        );
        let _ = writeln!(
            commands,
            "link set {name} master {BRIDGE}\nlink set {name} up"
        );
    }
    commands
}

fn host(address: Ipv4Addr, nodes: &[NodeNumber]) -> String {
    let mut commands =
        format!("link set lo up\naddr add {address}/24 dev eth0\nlink set eth0 up\n");
    // Services exist only as rules that rewrite the address, but the kernel
    // asks for a route before it gets to them.
    let _ = writeln!(commands, "route add {SERVICE_RANGE} dev eth0");
    for node in nodes.iter().filter(|node| node.address() != address) {
        let _ = writeln!(
            commands,
            "route add {} via {}",
            node.pod_range(),
            node.address()
        );
    }
    commands
}

fn inside(namespace: &str, program: &str, input: &str) -> Result<(), ClusterError> {
    let arguments: &[&str] = if program == "nft" {
        &["-f", "-"]
    } else {
        &["-q", "-w", "-p", "-"]
    };
    feed(in_namespace(namespace).arg(program).args(arguments), input)?;
    Ok(())
}

/// A command line that continues inside a namespace. Not `ip netns exec`,
/// which mounts a fresh /sys and so hides the cgroups.
fn in_namespace(namespace: &str) -> Command {
    let mut command = bound("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}"));
    command
}

/// Adds or removes an element of one of the fault sets.
pub(super) fn change_set(
    namespace: &str,
    change: Change,
    set: &str,
    element: &str,
) -> Result<(), ClusterError> {
    let (verb, family) = (
        change.verb(),
        if namespace == SWITCH {
            "bridge"
        } else {
            "inet"
        },
    );
    let mut nft = in_namespace(namespace);
    nft.args(["nft", verb, "element", family, "faults", set])
        .arg(format!("{{ {element} }}"));
    match run(&mut nft) {
        Ok(_) => Ok(()),
        // Healing what is whole is no failure: an undo may be repeated.
        Err(_) if change == Change::Remove => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What to do with an element of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Add,
    Remove,
}

impl Change {
    fn verb(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "delete",
        }
    }
}

/// Removes our namespaces; links and rules go with them.
pub(super) fn remove() -> Result<(), ClusterError> {
    for namespace in namespaces() {
        run(Command::new("ip").args(["netns", "delete", &namespace]))?;
    }
    Ok(())
}
