//! A writer that knows exactly what it was promised, and the checkers that hold
//! the cluster to it. The writer runs as a process of its own inside the client
//! namespace, so that it sees Services as any program on another machine would.
//!
//! record (what is written down) → writer (who writes it) → check (what it
//! proves) and gap (how long writes were away); process and read are how the
//! demo and the tests use them. Never retries a write under the same id: an
//! answer that did not come is unknown, and stays so.

mod check;
mod connect;
mod error;
mod gap;
mod process;
mod read;
mod record;
mod writer;

pub use check::{Term, Verdict, terms};
pub use connect::{Login, PASSWORD_VARIABLE, Target};
pub use error::WorkloadError;
pub use gap::{Gap, write_gap};
pub use process::{Writer, program, read_through};
pub use read::{ReadArguments, Reading, read};
pub use record::{Answer, Attempt, History, Line, PROBE, RecordError};
pub use writer::{RunArguments, create_table, run};

/// What the hidden command `cargo xtask workload` can do.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Write until standard input ends or the time is over.
    Run(RunArguments),
    /// Read everything back from one server.
    Read(ReadArguments),
}

/// Runs inside the client namespace, for [`Writer`] and [`read_through`].
pub fn execute(command: Command) -> Result<(), WorkloadError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|source| WorkloadError::Runtime { source })?;
    let result = match command {
        Command::Run(arguments) => runtime.block_on(run(&arguments)),
        Command::Read(arguments) => runtime.block_on(async {
            let reading = read(&arguments).await?;
            let text = serde_json::to_string(&reading).map_err(RecordError::from)?;
            println!("{text}");
            Ok(())
        }),
    };
    // Connections to a dead server would hold the process for minutes.
    runtime.shutdown_background();
    result
}

/// Microseconds since 1970 by the wall clock, the time line that the writer's
/// record and whoever breaks things have in common.
pub fn wall_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}
