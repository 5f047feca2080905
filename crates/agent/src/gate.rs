//! The start gate: the only place that starts mysqld on the data, and the task
//! that stays with it until it has ended. Never starts it twice, never by
//! itself: after an exit the instance is behind the gate again.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use gtid::GtidSet;
use tokio::time::{sleep, timeout};
use wire::{Exit, Mysqld};

use crate::{
    acts::ActError,
    agent::{Agent, Running},
    lock,
    mysqld::{child::Ended, init_file, settings},
    nudge::{FormerSource, Wait, no_source_any_more, nudge},
    sql::{
        accounts::AGENT_USER,
        observe::{self, Patience, observe},
        session::{Login, Session, SqlError, text},
    },
};

/// Between two rounds of questions.
const POLL: Duration = Duration::from_millis(150);
/// Between two attempts to log in.
const KNOCK: Duration = Duration::from_millis(20);
/// Forced settings are read back at every so many rounds.
const ROUNDS_PER_DRIFT: u64 = 32;

/// Starts mysqld. The caller has checked that it may, under this version.
pub(crate) fn open(agent: &Arc<Agent>, version: u64) -> Result<(), ActError> {
    let _gate = lock(&agent.gate);
    let record = agent.record().ok_or_else(ActError::volume_not_ours)?;
    if record.seen.version != version {
        return Err(ActError::overtaken(record.seen.version));
    }
    let login = Login {
        socket: agent.options.socket(),
        user: AGENT_USER.to_owned(),
        password: uuid::Uuid::new_v4().to_string(),
    };
    let statements = init_file::statements(&login.password, &agent.accounts(&record.peers));
    let file = agent.options.run_dir.join("init.sql");
    init_file::write(&file, &statements).map_err(|source| ActError::Io {
        doing: "writing the init file",
        source,
    })?;
    let child = agent
        .children
        .start(&mut settings::server(&agent.options, &file))
        .map_err(|source| ActError::Io {
            doing: "starting mysqld",
            source,
        })?;
    tracing::info!(pid = child.pid(), version, "mysqld started");
    let running = Arc::new(Running::new(child, login, record.peers));
    agent.set_running(Some(Arc::clone(&running)));
    agent.publish(|state| state.mysqld = Mysqld::Starting);
    tokio::spawn(stay_with(Arc::clone(agent), running));
    Ok(())
}

async fn stay_with(agent: Arc<Agent>, running: Arc<Running>) {
    let ended = tokio::select! {
        ended = running.child.wait() => ended,
        () = poll(&agent, &running) => running.child.wait().await,
    };
    close(&agent, &running, ended).await;
}

/// mysqld has ended: behind the gate, with fresh facts from the disk.
async fn close(agent: &Arc<Agent>, running: &Running, ended: Ended) {
    let Ended { code, signal } = ended;
    let (answered, serving) = {
        let facts = lock(&running.facts);
        (facts.answered, facts.serving)
    };
    if let (Some(serving), Some(0)) = (serving, code) {
        // A shutdown answers OK to waiters (fact 5).
        agent.mark_not_strict(serving);
    }
    let failed_starts = if answered {
        0
    } else {
        agent.failed_starts.fetch_add(1, Ordering::Relaxed) + 1
    };
    running.child.log.read_to_end().await;
    let exit = Exit {
        code,
        signal,
        message: running.child.log.last_error(),
        failed_starts,
    };
    tracing::info!(?exit, "mysqld ended");
    let reader = Arc::clone(agent);
    let known = std::mem::take(&mut *lock(&running.binlog));
    if let Err(error) = tokio::task::spawn_blocking(move || reader.refresh_volume(&known)).await {
        tracing::error!(%error, "the volume was not read after mysqld's exit");
    }
    agent.set_running(None);
    agent.publish(|state| {
        state.mysqld = Mysqld::Gated {
            last_exit: Some(exit),
        }
    });
}

/// Knocks until mysqld answers, then asks until the connection ends for good.
async fn poll(agent: &Arc<Agent>, running: &Arc<Running>) {
    loop {
        let mut session = knock(running).await;
        if let Err(error) = first_answer(agent, running).await {
            tracing::warn!(%error, "mysqld answers, but is not ready yet");
            sleep(KNOCK).await;
            continue;
        }
        if let Err(error) = ask(agent, running, &mut session).await {
            tracing::warn!(%error, "the kept connection was lost");
        }
    }
}

async fn knock(running: &Running) -> Session {
    loop {
        match Session::open(running.login.clone()).await {
            Ok(session) => return session,
            Err(error) => tracing::debug!(%error, "mysqld does not answer yet"),
        }
        sleep(KNOCK).await;
    }
}

/// Once per boot, before anything is said about the server.
async fn first_answer(agent: &Arc<Agent>, running: &Running) -> Result<(), SqlError> {
    if lock(&running.facts).answered {
        return Ok(());
    }
    let mut session = running.orders.lock().await;
    session.run("DO 1").await?;
    if agent.record().is_some_and(|record| record.cloned) {
        // The donor's replication settings came along; its relay logs did not.
        session.run("RESET REPLICA ALL").await?;
        // Not answered unless this is on disk: the next boot would reset relay
        // logs that were acknowledged.
        let amended = agent.amend_record(|record| record.cloned = false);
        amended.map_err(|error| SqlError::Answer {
            statement: "RESET REPLICA ALL".to_owned(),
            what: error.to_string(),
        })?;
    }
    remember_unlogged(agent, &mut session).await?;
    drop(session);
    let file = agent.options.run_dir.join("init.sql");
    if let Err(error) = std::fs::remove_file(&file) {
        tracing::debug!(%error, "the init file was not removed");
    }
    lock(&running.facts).answered = true;
    agent.forget_failed_starts();
    Ok(())
}

/// gtid_purged is what is executed and in no binlog: the files do not tell of
/// it when this server is behind the gate again.
async fn remember_unlogged(agent: &Agent, session: &mut Session) -> Result<(), SqlError> {
    let statement = "SELECT @@global.gtid_purged AS purged";
    let rows = session.rows(statement).await?;
    let purged = rows
        .first()
        .and_then(|row| text(row, "purged"))
        .unwrap_or_default();
    let purged: GtidSet = purged
        .parse()
        .map_err(|error: gtid::ParseError| SqlError::Answer {
            statement: statement.to_owned(),
            what: error.to_string(),
        })?;
    let known = agent
        .record()
        .is_some_and(|record| record.unlogged.contains(&purged));
    if known {
        return Ok(());
    }
    let remembered = agent.amend_record(|record| record.unlogged = record.unlogged.union(&purged));
    remembered.map(drop).map_err(|error| SqlError::Answer {
        statement: statement.to_owned(),
        what: error.to_string(),
    })
}

async fn ask(agent: &Agent, running: &Arc<Running>, session: &mut Session) -> Result<(), SqlError> {
    let mut wait = Wait::default();
    let mut former = FormerSource::default();
    for round in 0_u64.. {
        let begun = agent.begin_observation(running);
        let datadir = &agent.options.datadir;
        let observed = observe(session, Patience::Endless, begun, datadir, &running.binlog).await;
        let observation = match observed {
            Ok(observation) => observation,
            Err(error @ SqlError::Binlog(_)) => {
                // No reason to let go of the connection; the facts get old.
                tracing::warn!(%error, "the last binlog was not read");
                sleep(POLL).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let serving = lock(&running.facts).serving;
        if wait.is_stuck(&observation.server, serving, observation.ackers) {
            nudge(running);
        }
        if former.is_due(&observation.server) {
            no_source_any_more(running);
        }
        agent.publish_observation(running, observation);
        if round % ROUNDS_PER_DRIFT == 0 {
            read_back(agent, running).await;
        }
        // Whether poked or not, the next round begins.
        let _poked = timeout(POLL, running.poke.notified()).await;
    }
    Ok(())
}

/// Forced settings, on the other connection unless an order is using it.
async fn read_back(agent: &Agent, running: &Running) {
    let Ok(mut session) = running.orders.try_lock() else {
        return;
    };
    match observe::drift(&mut session, &settings::forced(&agent.options)).await {
        Ok(drift) => lock(&running.facts).drift = drift,
        Err(error) => tracing::warn!(%error, "forced settings were not read back"),
    }
}
