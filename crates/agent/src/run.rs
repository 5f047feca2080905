//! The life of an agent: lock, record, facts, servers, signals. Never starts
//! mysqld on the data: orders do.

use std::{
    convert::Infallible,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    time::sleep,
};
use wire::{Volume, layout};

use crate::{
    acts::discard::prepare,
    agent::Agent,
    certificate::{CertificateError, SubjectPattern},
    mysqld::child::Children,
    options::Options,
    probes, server,
    server::TlsError,
    terminate::terminate,
    volume::{
        durable, incarnation,
        live_binlog::LiveBinlog,
        lock::VolumeLock,
        record::{self, Record},
    },
};

/// Between two attempts at a lock that somebody else holds.
const LOCK_RETRY: Duration = Duration::from_millis(500);
/// Between two looks at the certificates and the disk.
const HOUSEKEEPING: Duration = Duration::from_secs(10);

/// The agent cannot work at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// Directories and signals.
    #[error("{doing}: {source}")]
    Io {
        doing: &'static str,
        source: io::Error,
    },
    /// Our own certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The server's.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Returns after a SIGTERM was dealt with.
pub(crate) async fn run(options: Options) -> Result<(), RunError> {
    let io = |doing| move |source| RunError::Io { doing, source };
    fs::create_dir_all(&options.run_dir).map_err(io("making the run directory"))?;
    let subjects = SubjectPattern::read(&options.tls(layout::TLS_CERT))?;
    let children = Children::reap().map_err(io("listening for exits"))?;
    let incarnation = incarnation::read(&options.run_dir).map_err(io("reading the incarnation"))?;
    let agent = Arc::new(Agent::new(options, children, subjects, incarnation));
    let mut terminations = signal(SignalKind::terminate()).map_err(io("listening for SIGTERM"))?;
    let mut interrupts = signal(SignalKind::interrupt()).map_err(io("listening for SIGINT"))?;
    let bind = agent.options.bind;
    let orders = server::bind(bind, agent.options.agent_port)
        .await
        .map_err(io("binding the agent's port"))?;
    let probes = server::bind(bind, agent.options.probe_port)
        .await
        .map_err(io("binding the probe port"))?;
    tokio::spawn(own_volume(Arc::clone(&agent)));
    tokio::spawn(housekeeping(Arc::clone(&agent)));
    let serving = serve(&agent, orders, probes);
    tokio::pin!(serving);
    tokio::select! {
        never = &mut serving => return Err(failed(never)),
        _ = terminations.recv() => {}
        _ = interrupts.recv() => {}
    }
    // The operator is still heard: it may switch over now.
    tokio::select! {
        never = &mut serving => Err(failed(never)),
        () = terminate(&agent) => Ok(()),
    }
}

fn failed(serving: Result<Infallible, RunError>) -> RunError {
    match serving {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

async fn serve(
    agent: &Arc<Agent>,
    orders: TcpListener,
    probes: TcpListener,
) -> Result<Infallible, RunError> {
    tokio::select! {
        never = server::serve(Arc::clone(agent), orders) => Ok(never?),
        never = probes::serve(Arc::clone(agent), probes) => Ok(never),
    }
}

/// Waits for the volume, then reads it. The lock is kept for ever.
async fn own_volume(agent: Arc<Agent>) {
    let lock = loop {
        match VolumeLock::take(&agent.options.agent_dir) {
            Ok(Some(lock)) => break lock,
            Ok(None) => tracing::warn!("another process holds the volume's lock"),
            Err(error) => {
                tracing::error!(%error, "locking the volume");
                agent.publish(|state| {
                    state.volume = Volume::Unreadable {
                        message: error.to_string(),
                    }
                });
            }
        }
        sleep(LOCK_RETRY).await;
    };
    match Record::read(&agent.options.agent_dir) {
        Ok(record) => {
            clear(&agent.options);
            agent.adopt_record(record);
            agent.refresh_volume(&LiveBinlog::default());
            prepare(&agent);
        }
        Err(error) => {
            tracing::error!(%error, "the record cannot be read, so no order can be taken");
            agent.publish(|state| {
                state.volume = Volume::Unreadable {
                    message: error.to_string(),
                }
            });
        }
    }
    // Until the process ends.
    std::future::pending::<()>().await;
    drop(lock);
}

/// What a former life left half done under names that are not data.
fn clear(options: &Options) {
    for directory in [
        options.pristine(),
        options.incoming(),
        options.agent_dir.join("discarded"),
    ] {
        if let Err(error) = durable::remove_directory(&directory) {
            tracing::warn!(%error, directory = %directory.display(), "not removed");
        }
    }
    // An undo ends when its data is gone; the marker would be taken for one of
    // the data that comes next.
    let gone =
        fs::metadata(&options.datadir).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if gone && let Err(error) = record::remove_undo(&options.agent_dir) {
        tracing::error!(%error, "the marker of an undo that is done was not removed");
    }
}

/// New certificates for mysqld, and the disk.
async fn housekeeping(agent: Arc<Agent>) {
    let mut certificates = server::changed_at(&agent.options);
    loop {
        sleep(HOUSEKEEPING).await;
        agent.refresh_disk();
        let changed_at = server::changed_at(&agent.options);
        if changed_at == certificates {
            continue;
        }
        let Some(running) = agent.running() else {
            certificates = changed_at;
            continue;
        };
        match running
            .orders
            .lock()
            .await
            .run("ALTER INSTANCE RELOAD TLS")
            .await
        {
            Ok(()) => certificates = changed_at,
            Err(error) => tracing::warn!(%error, "mysqld keeps its old certificates"),
        }
    }
}

/// Copies this program to where the mysqld container finds it.
pub(crate) fn install(destination: &Path) -> io::Result<PathBuf> {
    let target = if destination.is_dir() {
        destination.join("katazuke")
    } else {
        destination.to_owned()
    };
    let temporary = target.with_extension("tmp");
    fs::copy(std::env::current_exe()?, &temporary)?;
    fs::rename(&temporary, &target)?;
    Ok(target)
}
