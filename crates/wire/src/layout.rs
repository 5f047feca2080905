//! Paths, ports and names that the Pod (built by `manifests`) and the agent in
//! it must agree on. Never holds a value that a user may choose.

/// Mount point of the data volume.
pub const VOLUME: &str = "/var/lib/mysql";
/// mysqld's datadir, inside the data volume.
pub const DATADIR: &str = "/var/lib/mysql/data";
/// The agent's own files on the data volume: lock, persisted versions, marker, archive.
pub const AGENT_DIR: &str = "/var/lib/mysql/katazuke";
/// Memory-backed directory: socket, incarnation token, init file. Gone with the Pod or a reboot.
pub const RUN_DIR: &str = "/run/katazuke";
/// Where the init container copies the agent to.
pub const BIN_DIR: &str = "/katazuke/bin";
/// The agent's program inside the mysqld container.
pub const AGENT_BIN: &str = "/katazuke/bin/katazuke";
/// Mounted ConfigMap; holds [`MY_CNF_FILE`].
pub const CONFIG_DIR: &str = "/etc/katazuke/mysql";
/// Name of the my.cnf key in the ConfigMap.
pub const MY_CNF_FILE: &str = "my.cnf";
/// Mounted TLS Secret of the instance: [`TLS_CA`], [`TLS_CERT`], [`TLS_KEY`].
pub const TLS_DIR: &str = "/etc/katazuke/tls";
/// Trust bundle.
pub const TLS_CA: &str = "ca.crt";
/// The instance's leaf certificate.
pub const TLS_CERT: &str = "tls.crt";
/// The instance's private key.
pub const TLS_KEY: &str = "tls.key";
/// Mounted application Secret: files `user`, `password`, `database`.
pub const APP_DIR: &str = "/etc/katazuke/app";
/// Writable temporary directory.
pub const TMP_DIR: &str = "/tmp";

/// MySQL clients and replication.
pub const MYSQL_PORT: u16 = 3306;
/// The agent's HTTP/2 server, mutual TLS, operator and peer agents only.
pub const AGENT_PORT: u16 = 8443;
/// Plain HTTP for the kubelet and Prometheus: `/startupz`, `/livez`, `/readyz`, `/metrics`.
pub const PROBE_PORT: u16 = 8080;

/// mysqld's basename of binlog files (forced: renaming would orphan them).
pub const BINLOG_BASENAME: &str = "binlog";
/// mysqld's basename of relay log files.
pub const RELAY_LOG_BASENAME: &str = "relay";

/// Common name in the operator's client certificate; agents take orders from nobody else.
pub const OPERATOR_COMMON_NAME: &str = "katazuke-operator";
/// Organisation in the leaf certificate of an instance. The common name is the
/// instance's name `<cluster>-<ordinal>`; the replication account of an
/// instance is bound to this subject.
pub const INSTANCE_ORGANISATION: &str = "katazuke-instance";

/// Arguments of `katazuke agent run`, without the leading dashes.
pub mod args {
    /// Pod name `<cluster>-<ordinal>`.
    pub const INSTANCE: &str = "instance";
    /// Uid of the MySQLCluster resource.
    pub const CLUSTER_UID: &str = "cluster-uid";
    /// mysqld's server_id.
    pub const SERVER_ID: &str = "server-id";
    /// Name by which other instances reach this one (a DNS name in Kubernetes).
    pub const ADVERTISE: &str = "advertise";
    /// `Received` or `Fsynced`.
    pub const ACKNOWLEDGE: &str = "acknowledge";
}
