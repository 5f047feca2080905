//! The agent: PID 1 of the mysqld container and mysqld's parent. It holds the
//! start gate, obeys the operator's orders, and says what it sees. It must stay
//! tiny and must not panic: when it ends, so does mysqld. It never decides what
//! a cluster should do, and it never talks to Kubernetes.

mod acts;
mod agent;
mod certificate;
mod gate;
mod mysqld;
mod nudge;
mod options;
mod orders;
mod probes;
mod run;
mod server;
mod sql;
mod terminate;
mod volume;

use std::{
    path::Path,
    process::ExitCode,
    sync::{Mutex, MutexGuard, PoisonError},
};

pub use options::{Acknowledge, Options};

/// Runs the agent until SIGTERM.
pub fn main(options: Options) -> ExitCode {
    // mysql_async asks for the process's provider; set twice is the same one.
    let _same = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "no runtime");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(run::run(options));
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the agent ends");
            ExitCode::FAILURE
        }
    }
}

/// Copies the running program to `destination`, a directory or a file name.
pub fn install(destination: &Path) -> ExitCode {
    match run::install(destination) {
        Ok(target) => {
            tracing::info!(target_file = %target.display(), "installed");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!(%error, destination = %destination.display(), "not installed");
            ExitCode::FAILURE
        }
    }
}

/// JSON lines on standard output; `RUST_LOG` as usual.
pub fn log_to_stdout() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter);
    // Set already by whoever embeds the agent.
    let _set = subscriber.try_init();
}

/// A poisoned lock still holds whole values here: nothing panics between writes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
