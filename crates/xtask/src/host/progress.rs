//! One line per step with the seconds since the start: bringing a cluster up
//! the first time takes minutes, and silence would look like a hang.

use std::time::Instant;

/// Prints what is being done, or nothing.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    started: Instant,
    shown: bool,
}

impl Progress {
    /// Prints to standard error.
    pub fn shown() -> Self {
        Self {
            started: Instant::now(),
            shown: true,
        }
    }

    /// Prints nothing.
    pub fn silent() -> Self {
        Self {
            started: Instant::now(),
            shown: false,
        }
    }

    /// Says what was reached.
    pub fn step(&self, what: &str) {
        if self.shown {
            eprintln!("{:7.1} s  {what}", self.seconds());
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
