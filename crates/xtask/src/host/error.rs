//! What can go wrong on the machine itself. Every variant names the thing that
//! was asked for, because its message is all that a user sees.

use std::path::PathBuf;

/// A program, file or package of the machine did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The program could not even be started.
    #[error("could not start `{command}`")]
    Start {
        /// The command line.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// The program ran and reported failure.
    #[error("`{command}` failed ({status}): {output}")]
    Failed {
        /// The command line.
        command: String,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// The end of what it printed.
        output: String,
    },
    /// A file operation failed.
    #[error("could not {doing} {path}")]
    File {
        /// A verb: "read", "write", ...
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Only root can make namespaces, mounts and loop devices.
    #[error(
        "the local cluster makes namespaces, mounts and loop devices and therefore needs root; run it with sudo"
    )]
    NotRoot,
    /// Programs are missing and this user cannot install them.
    #[error(
        "missing: {programs}; install with `apt-get install --no-install-recommends {packages}`"
    )]
    MissingPrograms {
        /// What is not there.
        programs: String,
        /// The Debian packages that have it.
        packages: String,
    },
    /// Go builds the local Kubernetes from its module cache.
    #[error(
        "Go {wanted} or newer is needed to build the local Kubernetes (found: {found}); see https://go.dev/doc/install"
    )]
    Go {
        /// From go.mod.
        wanted: String,
        /// `go version`, or why there is none.
        found: String,
    },
}
