//! The pure core: what situation is a cluster in, and what is the next safe
//! step? Values in, values out. Deliberately absent: async, clocks, randomness,
//! clients, files, hash maps. The same core runs in the operator, the simulator
//! and the checkers, so a decision can be replayed from what was observed.
//!
//! Order of reading, which is the order of a pass: [`observed`] (what was seen)
//! → [`situation`] (judge) → [`plan`] (the switchboard) → [`action`] (everything
//! Katazuke can do) → [`conditions`] (what is said about it). Rules in
//! parentheses (fo-2, R5, re-3) are those of docs/clustering.md.

pub mod action;
pub mod conditions;
pub mod election;
pub mod notation;
pub mod observed;
pub mod plan;
pub mod primary;
pub mod record;
pub mod semisync;
pub mod situation;
pub mod standing;
mod steady;

pub use action::{Action, Directive};
pub use observed::{Instance, Observed, Seen};
pub use plan::{Plan, plan};
pub use record::{Member, Ordinal, Record};
pub use situation::{Judgement, Situation, judge};
