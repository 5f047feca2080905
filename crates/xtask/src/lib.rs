//! The project's tasks as a library, so that tests and the demo drive the same
//! code as `cargo xtask`. The product never depends on it.

pub mod bench;
pub mod cluster;
pub mod demo;
pub mod generate;
pub mod host;
pub mod image;
pub mod stage;
pub mod terminal;
pub mod tests;
pub mod tidy;
pub mod workload;
