//! A cluster in a few lines of text, parsed and printed: for scenario files,
//! bug reports and the simulator's trace. Never used to decide anything.
//!
//! ```text
//! spec: replicas=3 silence=5s
//! record: v=7 e=2 primary=0/a k=1 ackers=1/b,2/c watermark=a:1-10
//! shop-0: running a executed=a:1-12 writes k=1 end=2:500 role=primary
//! shop-1: running b executed=a:1-12 reads from=a acks pos=2:500 role=replica
//! shop-2: silent=6s
//! ```
//! A single hex digit stands for the uuid made of that digit. What is not
//! written has the value of an instance at rest: its agent has seen the
//! record's version, its facts are as old as that, its Pod runs.

mod parse;
mod print;
mod words;

pub use parse::{ParseError, observed};
pub use print::{plan, set};
