//! Somebody who kills the leading operator again and again while the demo runs.
//! Whatever it was doing, another has to go on from what is recorded.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::stage::{Stage, StageError};

/// Pauses between two kills. Longer than the lease (6 s), so that somebody
/// leads at times, and of many lengths, so that every step is met.
const PAUSES_MILLISECONDS: [u64; 7] = [9_000, 7_300, 11_700, 8_100, 10_400, 7_900, 12_600];

/// At work until [`Nuisance::stop`].
pub(super) struct Nuisance {
    stop: Sender<()>,
    thread: JoinHandle<Result<u32, StageError>>,
}

impl Nuisance {
    /// Begins.
    pub(super) fn start() -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || until(&stopped));
        Self { stop, thread }
    }

    /// How many operators it killed.
    pub(super) fn stop(self) -> Result<u32, StageError> {
        // It has ended by itself where nobody listens.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or(Ok(0))
    }
}

fn until(stopped: &Receiver<()>) -> Result<u32, StageError> {
    let stage = Stage::on(Cluster::attach()?)?;
    let mut killed = 0;
    for pause in PAUSES_MILLISECONDS.into_iter().cycle() {
        match stopped.recv_timeout(Duration::from_millis(pause)) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(killed),
            Err(RecvTimeoutError::Timeout) => {}
        }
        // Between two leaders there is nobody to kill.
        if stage.kill_operator().is_ok() {
            killed += 1;
        }
    }
    Ok(killed)
}
