//! What long tasks show: what is being done, how long so far, and a table at the
//! end. Never decides anything; a task without a terminal gets plain lines.

mod table;

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

pub use table::Table;

use crate::host::Progress;

/// Without a terminal, a wait says at most this often that it still waits.
const PLAIN_EVERY: Duration = Duration::from_secs(15);

/// Lines with the seconds since the start, and one that changes while waiting.
#[derive(Debug)]
pub struct Terminal {
    progress: Progress,
    rewrites: bool,
    waiting: Option<Instant>,
}

impl Terminal {
    /// Writes to standard error.
    pub fn new() -> Self {
        Self {
            progress: Progress::shown(),
            rewrites: std::io::stderr().is_terminal(),
            waiting: None,
        }
    }

    /// For work that says its own steps.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.progress.seconds()
    }

    /// Says what was reached.
    pub fn say(&mut self, what: &str) {
        self.clear();
        self.progress.step(what);
    }

    /// Says what is being waited for; call it as often as you look.
    pub fn waiting(&mut self, what: &str) {
        let seconds = self.seconds();
        if self.rewrites {
            let line: String = what.chars().take(100).collect();
            eprint!("\r\x1b[K{seconds:7.1} s  … {line}");
            let _ = std::io::stderr().flush();
            self.waiting = Some(Instant::now());
        } else if self.waiting.is_none_or(|last| last.elapsed() > PLAIN_EVERY) {
            if self.waiting.is_some() {
                eprintln!("{seconds:7.1} s  … {what}");
            }
            self.waiting = Some(Instant::now());
        }
    }

    fn clear(&mut self) {
        if self.waiting.take().is_some() && self.rewrites {
            eprint!("\r\x1b[K");
        }
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}
