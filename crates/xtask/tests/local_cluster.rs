//! The local cluster does what the other tests rely on: it leaves nothing, its
//! faults are what they are called, and each can be undone. Needs root and the
//! machine's one local cluster for itself; says so when it cannot have it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use xtask::cluster::{self, Cluster, ClusterError, Cut, Existing, Options, Snapshot};
use xtask::host::Progress;

/// There is one cluster per machine.
static MACHINE: Mutex<()> = Mutex::new(());

/// The machine, with no cluster on it before and after.
struct Machine {
    before: Snapshot,
    /// Whether there may be a cluster that is ours to remove.
    used: Cell<bool>,
    _turn: MutexGuard<'static, ()>,
}

impl Machine {
    fn take() -> Self {
        let turn = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cluster::leftovers().unwrap();
        assert!(
            found.is_empty(),
            "a local cluster is up; take it down first (cargo xtask cluster down): {found:#?}"
        );
        Self {
            before: Snapshot::take().unwrap(),
            used: Cell::new(false),
            _turn: turn,
        }
    }

    fn up(&self, nodes: u8) -> Cluster {
        let cluster = cluster::up(&Options {
            nodes,
            existing: Existing::Keep,
            progress: Progress::shown(),
        });
        let others = matches!(
            cluster,
            Err(ClusterError::Busy { .. } | ClusterError::Other { .. })
        );
        self.used.set(!others);
        cluster.unwrap()
    }

    fn assert_as_before(&self) {
        let changes = Snapshot::take().unwrap().changes_since(&self.before);
        assert!(
            changes.is_empty(),
            "the cluster left something behind: {changes:#?}"
        );
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A failed test must not fail those after it; its logs stay.
        if self.used.get()
            && let Err(error) = cluster::down()
        {
            eprintln!("could not take the cluster down: {error}");
        }
    }
}

/// A Pod as strict as ours: not root, nothing writable but its volume.
fn pod(name: &str, node: &str) -> String {
    format!(
        r"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 300Mi}}}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 3306}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  nodeSelector: {{kubernetes.io/hostname: {node}}}
  terminationGracePeriodSeconds: 0
  securityContext:
    {{runAsUser: 999, runAsGroup: 999, fsGroup: 999, runAsNonRoot: true, seccompProfile: {{type: RuntimeDefault}}}}
  containers:
  - name: mysqld
    image: {image}
    imagePullPolicy: IfNotPresent
    securityContext: {{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {{drop: [ALL]}}}}
    command: [sh, -ec]
    args:
    - |
      test -d /data/mysql || mysqld --no-defaults --initialize-insecure --datadir=/data/mysql
      exec mysqld --no-defaults --datadir=/data/mysql --socket=/tmp/s --pid-file=/tmp/p --mysqlx=OFF \
        --innodb-redo-log-capacity=8M
    readinessProbe: {{tcpSocket: {{port: 3306}}, periodSeconds: 1}}
    volumeMounts: [{{name: data, mountPath: /data}}, {{name: tmp, mountPath: /tmp}}]
  volumes: [{{name: tmp, emptyDir: {{}}}}, {{name: data, persistentVolumeClaim: {{claimName: {name}}}}}]
",
        image = xtask::image::MYSQL
    )
}

fn run_pod(cluster: &Cluster, name: &str, node: &str) {
    let strict = "pod-security.kubernetes.io/enforce=restricted";
    cluster
        .kubectl(["label", "--overwrite", "namespace", "default", strict])
        .unwrap();
    cluster.apply(&pod(name, node)).unwrap();
    cluster
        .kubectl([
            "wait",
            "--for=condition=Ready",
            "--timeout=60s",
            &format!("pod/{name}"),
        ])
        .unwrap();
}

fn in_pod(cluster: &Cluster, pod: &str, script: &str) -> Result<String, ClusterError> {
    // The command waits by itself: kubectl's own time-out does not end an exec.
    cluster.kubectl(["exec", pod, "--", "timeout", "5", "sh", "-ec", script])
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "waited a minute for {what}"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    started.elapsed()
}

/// Whether a TCP connection from the client host is accepted: the kernel of a
/// frozen node still does that.
fn accepts(cluster: &Cluster, address: &str, port: u16) -> bool {
    on_client_host(cluster, &format!("exec 3<>/dev/tcp/{address}/{port}"))
}

/// Whether mysqld there says something.
fn greets(cluster: &Cluster, address: &str) -> bool {
    on_client_host(
        cluster,
        &format!("exec 3<>/dev/tcp/{address}/3306; [ $(head -c 1 <&3 | wc -c) = 1 ]"),
    )
}

fn on_client_host(cluster: &Cluster, script: &str) -> bool {
    let mut command = cluster.on_client_host();
    command
        .args(["timeout", "2", "bash", "-c", script])
        .stderr(Stdio::null())
        .stdout(Stdio::null());
    command.status().unwrap().success()
}

/// Every process of the cluster, found without the code under test.
fn kill_everything() {
    let mut groups: Vec<_> = std::fs::read_dir("/sys/fs/cgroup/freezer")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("kz-")
        })
        .collect();
    let mut killed = 0;
    while let Some(group) = groups.pop() {
        for pid in std::fs::read_to_string(group.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            killed += i32::from(kill(Pid::from_raw(pid.parse().unwrap()), Signal::SIGKILL).is_ok());
        }
        let below = std::fs::read_dir(&group)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path());
        groups.extend(below.filter(|path| path.is_dir()));
    }
    assert!(
        killed > 10,
        "only {killed} processes were found: this proves nothing"
    );
}

/// With the flags of the build, whose compiled packages are used again.
#[test]
fn the_parts_in_go_pass_their_own_tests() {
    let module = xtask::host::project_root().join("hack/local-cluster");
    for verb in ["vet", "test"] {
        let mut go = Command::new("go");
        go.current_dir(&module).env("CGO_ENABLED", "0");
        go.args([verb, "-trimpath", "-tags", "providerless"]);
        xtask::host::run(go.args(["./forward", "./pause", "./volumes"])).unwrap();
    }
}

#[test]
fn nothing_is_left_after_everything_was_killed() {
    let machine = Machine::take();
    let cluster = machine.up(3);
    run_pod(&cluster, "db", "kz-2");
    assert!(
        !cluster::leftovers().unwrap().is_empty(),
        "what is up must be seen"
    );
    kill_everything();
    cluster::down().unwrap();
    machine.assert_as_before();
}

#[test]
fn nothing_is_left_after_up_was_killed_in_the_middle() {
    let machine = Machine::take();
    let mut killed_in_the_middle = 0;
    for milliseconds in [150, 600, 2000] {
        machine.used.set(true);
        let mut up = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(["cluster", "up"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        up.kill().unwrap();
        up.wait().unwrap();
        killed_in_the_middle += i32::from(!cluster::leftovers().unwrap().is_empty());
        cluster::down().unwrap();
        machine.assert_as_before();
    }
    assert!(
        killed_in_the_middle > 0,
        "no kill hit a half-made cluster: this proves nothing"
    );
}

#[test]
fn faults_are_what_they_are_called_and_can_be_undone() {
    let machine = Machine::take();
    let cluster = machine.up(3);
    run_pod(&cluster, "db", "kz-2");
    a_second_up_keeps_the_cluster(&machine, &cluster);
    the_client_host_reaches_services_and_pods_until_cut(&cluster);
    a_frozen_node_is_silent_until_thawed(&cluster);
    the_api_server_comes_back_and_logs_who_wrote(&cluster);
    a_volume_grows(&cluster);
    a_power_loss_loses_what_was_not_synced(&cluster);
    a_crash_closes_no_connection(&cluster);
    a_partitioned_node_is_lost_until_healed(&cluster);
    cluster::down().unwrap();
    machine.assert_as_before();
}

fn a_second_up_keeps_the_cluster(machine: &Machine, cluster: &Cluster) {
    let uid = [
        "get",
        "namespace",
        "default",
        "--output=jsonpath={.metadata.uid}",
    ];
    let before = cluster.kubectl(uid).unwrap();
    assert_eq!(machine.up(3).kubectl(uid).unwrap(), before);
}

fn address_of(cluster: &Cluster, kind: &str, path: &str) -> String {
    cluster
        .kubectl(["get", kind, "db", &format!("--output=jsonpath={{{path}}}")])
        .unwrap()
}

fn the_client_host_reaches_services_and_pods_until_cut(cluster: &Cluster) {
    let pod = address_of(cluster, "pod", ".status.podIP");
    let service = address_of(cluster, "service", ".spec.clusterIP");
    eventually("the Service to be reachable", || greets(cluster, &service));
    assert!(greets(cluster, &pod));
    let cut = Cut {
        from: "10.10.0.9".parse().unwrap(),
        to: pod.parse().unwrap(),
    };
    cluster.cut(cut).unwrap();
    assert!(
        !greets(cluster, &service),
        "a cut link must cut the Service as well"
    );
    cluster.mend(cut).unwrap();
    cluster.mend(cut).unwrap();
    assert!(greets(cluster, &service));
}

fn a_frozen_node_is_silent_until_thawed(cluster: &Cluster) {
    let (node, pod) = (
        cluster.node("kz-2").unwrap(),
        address_of(cluster, "pod", ".status.podIP"),
    );
    node.freeze().unwrap();
    assert!(accepts(cluster, &pod, 3306), "its kernel is alive");
    assert!(!greets(cluster, &pod), "its processes are not");
    node.thaw().unwrap();
    assert!(greets(cluster, &pod));
}

fn the_api_server_comes_back_and_logs_who_wrote(cluster: &Cluster) {
    cluster.api_server_kill().unwrap();
    cluster
        .kubectl(["get", "nodes", "--request-timeout=2s"])
        .unwrap_err();
    cluster.api_server_start().unwrap();
    let log = cluster.audit_log();
    let position = log.position().unwrap();
    cluster.kubectl(["label", "pod", "db", "seen=yes"]).unwrap();
    let ours = |event: &cluster::AuditEvent| event.is_write() && event.user.username == "admin";
    eventually("the write to be logged", || {
        log.since(position).unwrap().iter().any(ours)
    });
    assert!(
        cluster
            .node_statuses()
            .unwrap()
            .iter()
            .all(|(_, ready)| ready == "True")
    );
}

fn a_volume_grows(cluster: &Cluster) {
    let size = || {
        in_pod(
            cluster,
            "db",
            "df --output=size --block-size=1M /data | tail -1",
        )
        .unwrap()
    };
    let before: u32 = size().trim().parse().unwrap();
    cluster
        .kubectl([
            "patch",
            "pvc",
            "db",
            "--patch",
            r#"{"spec": {"resources": {"requests": {"storage": "600Mi"}}}}"#,
        ])
        .unwrap();
    eventually("the volume to grow", || {
        size().trim().parse::<u32>().unwrap() > before + 200
    });
}

fn a_power_loss_loses_what_was_not_synced(cluster: &Cluster) {
    in_pod(
        cluster,
        "db",
        "echo kept > /data/synced; sync /data/synced; echo lost > /data/unsynced",
    )
    .unwrap();
    let node = cluster.node("kz-2").unwrap();
    node.power_loss().unwrap();
    assert!(!node.is_running());
    node.start().unwrap();
    // The kubelet of a node that was gone for a moment still reports the old
    // Pod for some seconds; the files tell.
    eventually("the Pod to run again", || {
        in_pod(cluster, "db", "ls /data")
            .is_ok_and(|files| files.contains("\nsynced\n") && !files.contains("unsynced"))
    });
    assert_eq!(in_pod(cluster, "db", "cat /data/synced").unwrap(), "kept\n");
    eventually("mysqld to recover", || {
        greets(cluster, &address_of(cluster, "pod", ".status.podIP"))
    });
}

fn a_crash_closes_no_connection(cluster: &Cluster) {
    let node = cluster.node("kz-1").unwrap();
    let script = format!(
        "exec 3<>/dev/tcp/{}/10250; echo open; timeout 3 cat <&3 >/dev/null",
        node.address()
    );
    let mut command = cluster.on_client_host();
    let mut connection = command
        .args(["bash", "-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut open = [0; 5];
    std::io::Read::read_exact(connection.stdout.as_mut().unwrap(), &mut open).unwrap();
    node.crash().unwrap();
    let status = connection.wait().unwrap();
    assert_eq!(
        status.code(),
        Some(124),
        "the dead node closed its connection"
    );
    node.start().unwrap();
    node.wait_ready().unwrap();
}

fn a_partitioned_node_is_lost_until_healed(cluster: &Cluster) {
    let node = cluster.node("kz-3").unwrap();
    node.partition().unwrap();
    assert!(!accepts(cluster, &node.address().to_string(), 10250));
    node.wait_lost().unwrap();
    assert!(Path::new(&node.pod_logs()).exists());
    node.heal().unwrap();
    node.wait_ready().unwrap();
}
