//! What the agent is told on its command line. Never read from the environment
//! and never from the volume: a volume may come from another cluster.

use std::{net::IpAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use wire::layout;

/// When a replica acknowledges (clustering.md, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Acknowledge {
    /// Once the events are written: `sync_relay_log=10000`.
    #[value(name = "Received")]
    Received,
    /// Once they are fsynced: `sync_relay_log=1`.
    #[value(name = "Fsynced")]
    Fsynced,
}

impl Acknowledge {
    pub(crate) const fn sync_relay_log(self) -> u32 {
        match self {
            Self::Received => 10_000,
            Self::Fsynced => 1,
        }
    }
}

/// Arguments of `agent run`. Paths and ports default to what the Pod has.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Instance name `<cluster>-<ordinal>`.
    #[arg(long)]
    pub instance: String,
    /// Uid of the MySQLCluster.
    #[arg(long)]
    pub cluster_uid: String,
    /// mysqld's server_id, unique per instance and volume generation.
    #[arg(long)]
    pub server_id: u32,
    /// Name by which other instances reach this one.
    #[arg(long)]
    pub advertise: String,
    /// When a replica acknowledges.
    #[arg(long, value_enum)]
    pub acknowledge: Acknowledge,
    /// mysqld's data directory. Must not be a mount point: it is renamed.
    #[arg(long, default_value = layout::DATADIR)]
    pub datadir: PathBuf,
    /// The agent's own directory, on the same file system as the data directory.
    #[arg(long, default_value = layout::AGENT_DIR)]
    pub agent_dir: PathBuf,
    /// Memory-backed directory.
    #[arg(long, default_value = layout::RUN_DIR)]
    pub run_dir: PathBuf,
    /// Directory with my.cnf.
    #[arg(long, default_value = layout::CONFIG_DIR)]
    pub config_dir: PathBuf,
    /// Directory with the certificates.
    #[arg(long, default_value = layout::TLS_DIR)]
    pub tls_dir: PathBuf,
    /// Directory with the application's credentials.
    #[arg(long, default_value = layout::APP_DIR)]
    pub app_dir: PathBuf,
    /// mysqld's temporary directory.
    #[arg(long, default_value = layout::TMP_DIR)]
    pub tmp_dir: PathBuf,
    /// Port of mysqld.
    #[arg(long, default_value_t = layout::MYSQL_PORT)]
    pub mysql_port: u16,
    /// Port for orders and the watch stream.
    #[arg(long, default_value_t = layout::AGENT_PORT)]
    pub agent_port: u16,
    /// Port for probes and metrics.
    #[arg(long, default_value_t = layout::PROBE_PORT)]
    pub probe_port: u16,
    /// Address that the agent's ports are bound to; all of them by default.
    #[arg(long)]
    pub bind: Option<IpAddr>,
    /// The mysqld program.
    #[arg(long, default_value = "mysqld")]
    pub mysqld: PathBuf,
}

impl Options {
    pub(crate) fn socket(&self) -> PathBuf {
        self.run_dir.join("mysqld.sock")
    }

    pub(crate) fn tls(&self, file: &str) -> PathBuf {
        self.tls_dir.join(file)
    }

    /// An initialised data directory that holds nothing, made ahead of need.
    pub(crate) fn pristine(&self) -> PathBuf {
        self.agent_dir.join("pristine")
    }

    /// Where a clone is received, until it is complete.
    pub(crate) fn incoming(&self) -> PathBuf {
        self.agent_dir.join("incoming")
    }

    pub(crate) fn archive(&self) -> PathBuf {
        self.agent_dir.join("archive")
    }
}
