//! The machine that the tasks run on: its programs, packages and folders.
//! Nothing here knows what a cluster is.

mod error;
mod folders;
mod go;
mod packages;
mod progress;
mod run;

pub use error::HostError;
pub use folders::{cache_folder, made_once, project_root, this_program};
pub use go::{LocalKube, local_kube};
pub use packages::ensure_packages;
pub use progress::Progress;
pub use run::{
    bound, create_folder, feed, key_of, line_of, read, remove_file, remove_folder, run, sha256,
    succeed, write,
};
