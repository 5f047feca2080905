//! The unkind world: the real core (judge and plan) against a model of MySQL,
//! Kubernetes and the network as plain values, driven by a seed. Two phases:
//! faults, in which only safety is asked for; then none, in which the cluster
//! must become Healthy and quiet, or say which named situation holds it.
//!
//! Deliberately absent: clocks, async, clients; threads only to run several
//! worlds beside each other. The same seed gives the same trace, to the letter.

mod agent;
mod clients;
mod disk;
mod event;
mod explore;
mod faults;
mod invariants;
mod jobs;
mod kube;
mod kubelet;
mod mysqld;
mod operator;
mod pairs;
mod physics;
mod run;
mod seen;
mod statements;
mod tally;
mod world;

pub use explore::{Report, explore};
pub use pairs::exhaust;
pub use run::{End, Outcome, run, run_traced};
pub use tally::{Tally, WANTED};
