//! The writing clients and the probe. The probe is an open loop: every tick is
//! an attempt of its own, on a new connection if all others are waiting, so that
//! one hanging connection hides neither the end of an outage nor its length.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use tokio::sync::{Semaphore, mpsc, watch};

use super::connect::{CONNECT_TIMEOUT, STATEMENT_TIMEOUT, Session, Target, answer_of, connect};
use super::record::{Answer, Attempt, Line, PROBE, RecordError};
use super::{WorkloadError, wall_micros};

/// One attempt to measure per tick.
const PROBE_EVERY: Duration = Duration::from_millis(20);
/// As many as can wait at once when nothing answers.
const PROBES_AT_ONCE: usize = 80;
/// A writer that cannot connect tries again after this.
const RECONNECT_AFTER: Duration = Duration::from_millis(20);

/// How to write.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct RunArguments {
    /// Where.
    #[command(flatten)]
    pub target: Target,
    /// The record.
    #[arg(long)]
    pub record: PathBuf,
    /// Writing clients, beside the probe.
    #[arg(long, default_value_t = 4)]
    pub clients: u32,
    /// Pause of a client between two writes.
    #[arg(long, default_value_t = 8)]
    pub pause_milliseconds: u64,
    /// Stops by itself after this long, whatever happens to whoever started it.
    #[arg(long, default_value_t = 3600)]
    pub seconds_max: u64,
}

/// What all clients share.
struct Shared {
    target: Target,
    insert: String,
    started: Instant,
    next_id: AtomicU64,
    record: mpsc::UnboundedSender<Attempt>,
    idle: Mutex<Vec<Session>>,
}

/// Until a Service that has just got its endpoint is reached.
const REACHED_SECONDS_MAX: u64 = 30;

/// A connection, as soon as the Service leads somewhere. Many short attempts: a
/// packet that was sent before kube-proxy knew the endpoint is never answered,
/// and what is sent again for the same connection goes the same way.
async fn first_session(target: &Target) -> Result<Session, WorkloadError> {
    let attempts = async {
        loop {
            match connect(target, CONNECT_TIMEOUT).await {
                Ok(session) => return session,
                Err(_) => tokio::time::sleep(PAUSE_BETWEEN_ATTEMPTS).await,
            }
        }
    };
    let bound = Duration::from_secs(REACHED_SECONDS_MAX);
    let reached = tokio::time::timeout(bound, attempts).await;
    reached.map_err(|_| WorkloadError::Silent {
        doing: "connecting",
        address: target.address.to_string(),
        seconds: REACHED_SECONDS_MAX,
    })
}

const PAUSE_BETWEEN_ATTEMPTS: Duration = Duration::from_millis(50);

/// Makes the table that is written to.
pub async fn create_table(target: &Target) -> Result<(), WorkloadError> {
    let address = target.address.to_string();
    let doing = "making the table";
    let mut session = first_session(target).await?;
    let statement = format!(
        "CREATE TABLE IF NOT EXISTS `{}` (id BIGINT UNSIGNED PRIMARY KEY, \
         client INT UNSIGNED NOT NULL, server_uuid CHAR(36) NOT NULL)",
        target.table
    );
    session
        .connection
        .query_drop(statement)
        .await
        .map_err(|source| WorkloadError::Sql {
            doing,
            address: address.clone(),
            source,
        })
}

/// Writes until standard input ends or the time is over.
pub async fn run(arguments: &RunArguments) -> Result<(), WorkloadError> {
    create_table(&arguments.target).await?;
    let (sender, receiver) = mpsc::unbounded_channel();
    let recording = tokio::task::spawn_blocking({
        let path = arguments.record.clone();
        move || keep_record(&path, receiver)
    });
    let shared = Arc::new(Shared {
        target: arguments.target.clone(),
        insert: format!(
            "INSERT INTO `{}` (id, client, server_uuid) VALUES (?, ?, @@server_uuid)",
            arguments.target.table
        ),
        started: Instant::now(),
        next_id: AtomicU64::new(1),
        record: sender,
        idle: Mutex::new(Vec::new()),
    });
    let (stop, stopped) = watch::channel(false);
    let mut clients = tokio::task::JoinSet::new();
    let pause = Duration::from_millis(arguments.pause_milliseconds);
    for client in 1..=arguments.clients {
        clients.spawn(write_for_ever(
            Arc::clone(&shared),
            client,
            pause,
            stopped.clone(),
        ));
    }
    clients.spawn(probe_for_ever(Arc::clone(&shared), stopped));
    wait_for_the_end(Duration::from_secs(arguments.seconds_max)).await;
    let _ = stop.send(true);
    clients.join_all().await;
    // The last sender: the record ends when it is gone.
    drop(shared);
    match recording.await {
        Ok(result) => result,
        Err(source) => Err(WorkloadError::File {
            path: arguments.record.clone(),
            source: std::io::Error::other(source),
        }),
    }
}

async fn wait_for_the_end(longest: Duration) {
    let (ended, end) = tokio::sync::oneshot::channel();
    // A thread, as reading standard input cannot be cancelled.
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = ended.send(());
    });
    let _ = tokio::time::timeout(longest, end).await;
}

fn keep_record(
    path: &Path,
    mut attempts: mpsc::UnboundedReceiver<Attempt>,
) -> Result<(), WorkloadError> {
    let failed = |source| WorkloadError::File {
        path: path.to_path_buf(),
        source,
    };
    let file = std::fs::File::create(path).map_err(failed)?;
    let mut file = std::io::BufWriter::new(file);
    let write = |file: &mut std::io::BufWriter<_>, line: &Line| {
        let text = serde_json::to_string(line).map_err(RecordError::from)?;
        writeln!(file, "{text}").map_err(failed)
    };
    write(
        &mut file,
        &Line::Begin {
            wall_micros: wall_micros(),
        },
    )?;
    let mut made = 0;
    while let Some(attempt) = attempts.blocking_recv() {
        made += 1;
        write(&mut file, &Line::Attempt(attempt))?;
        if attempts.is_empty() {
            file.flush().map_err(failed)?;
        }
    }
    write(&mut file, &Line::End { attempts: made })?;
    file.flush().map_err(failed)
}

async fn write_for_ever(
    shared: Arc<Shared>,
    client: u32,
    pause: Duration,
    stopped: watch::Receiver<bool>,
) {
    let mut session = None;
    while !*stopped.borrow() {
        let connected = match session.take() {
            Some(session) => Ok(session),
            None => connect(&shared.target, CONNECT_TIMEOUT).await,
        };
        match connected {
            Ok(connected) => {
                session = shared.insert(client, connected).await;
                tokio::time::sleep(pause).await;
            }
            Err(_) => tokio::time::sleep(RECONNECT_AFTER).await,
        }
    }
}

async fn probe_for_ever(shared: Arc<Shared>, stopped: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(PROBES_AT_ONCE));
    let mut ticks = tokio::time::interval(PROBE_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut probes = tokio::task::JoinSet::new();
    while !*stopped.borrow() {
        ticks.tick().await;
        while probes.try_join_next().is_some() {}
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let shared = Arc::clone(&shared);
            probes.spawn(async move {
                shared.probe().await;
                drop(place);
            });
        }
    }
    probes.join_all().await;
}

impl Shared {
    /// One probe: on the connection that worked last, or a new one.
    async fn probe(&self) {
        let idle = self.idle().pop();
        let started = self.now_micros();
        let connected = match idle {
            Some(session) => Ok(session),
            None => connect(&self.target, CONNECT_TIMEOUT).await,
        };
        match connected {
            Ok(session) => {
                let session = self.insert(PROBE, session).await;
                self.idle().extend(session);
            }
            Err(why) => self.note(PROBE, self.take_id(), started, Answer::Failed { why }),
        }
    }

    /// One write; returns the connection if it can be used again.
    async fn insert(&self, client: u32, mut session: Session) -> Option<Session> {
        let id = self.take_id();
        let started = self.now_micros();
        let writing = session.connection.exec_drop(&self.insert, (id, client));
        match tokio::time::timeout(STATEMENT_TIMEOUT, writing).await {
            Ok(Ok(())) => {
                let server = session.server.clone();
                self.note(client, id, started, Answer::Acknowledged { server });
                Some(session)
            }
            Ok(Err(error)) => {
                self.note(client, id, started, answer_of(&error));
                None
            }
            Err(_) => {
                let why = format!("no answer within {} ms", STATEMENT_TIMEOUT.as_millis());
                self.note(client, id, started, Answer::Unknown { why });
                None
            }
        }
    }

    fn note(&self, client: u32, id: u64, started_micros: u64, answer: Answer) {
        let ended_micros = self.now_micros();
        // Fails only when the record could not be written, which run reports.
        let _ = self.record.send(Attempt {
            id,
            client,
            started_micros,
            ended_micros,
            answer,
        });
    }

    fn take_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn now_micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
