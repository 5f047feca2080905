//! The operator: a thin shell around core. It observes, hands the picture to
//! core, performs what core planned, and reports. Deliberately absent: a MySQL
//! connection (the agents have one), a decision (core has them all), a memory
//! that matters (the record is in the status).

pub mod agents;
pub mod cache;
pub mod clustering;
pub mod context;
pub mod events;
pub mod field_manager;
pub mod gate;
pub mod health;
pub mod labels;
pub mod leader;
pub mod merge;
pub mod metrics;
pub mod pki;
pub mod resources;
mod run;
pub mod supervisor;

pub use run::{Options, RunError, main, run, run_over};
