//! The project's tasks as a library, so that tests and the demo drive the same
//! code as `cargo xtask`. The product never depends on it.

pub mod cluster;
pub mod host;
pub mod image;
pub mod tidy;
pub mod workload;
