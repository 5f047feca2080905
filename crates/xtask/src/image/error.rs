//! What can go wrong while an image is made or loaded.

use std::path::PathBuf;

use crate::cluster::ClusterError;
use crate::host::HostError;

/// An image could not be made or loaded.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The machine did not do its part.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The archive file could not be written.
    #[error("could not write the image archive {path}")]
    Archive {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// apt knows no mirror to take MySQL from.
    #[error("apt on this machine has no Debian mirror configured, and MySQL is taken from there")]
    NoMirror,
    /// Debian moved on: tests are written for one series.
    #[error("Debian's mysqld is `{found}`, but the tests are written for MySQL {wanted}")]
    MysqlVersion {
        /// Output of `mysqld --version`.
        found: String,
        /// The series wanted.
        wanted: &'static str,
    },
    /// There is no binary to make an image of.
    #[error("{path} is missing; build it with `cargo build --package katazuke`")]
    NoBinary {
        /// Where it should be.
        path: PathBuf,
    },
    /// The containerd that imports the images did not start.
    #[error("containerd did not start within {seconds} s; its log is {log}")]
    Containerd {
        /// How long it was waited for.
        seconds: u64,
        /// Where it says why.
        log: PathBuf,
    },
    /// Loading into a node failed.
    #[error("could not load {image} into the cluster")]
    Load {
        /// The image's name.
        image: &'static str,
        /// Why.
        #[source]
        source: Box<ClusterError>,
    },
}
