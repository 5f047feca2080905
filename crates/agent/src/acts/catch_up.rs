//! CatchUp: everything received is applied. Measured by progress, not by time;
//! kills clients only when there has been none for a while (fo-4).

use std::{sync::Arc, time::Duration};

use gtid::GtidSet;
use tokio::time::{Instant, sleep};
use wire::{JobKind, Outcome, Server};

use super::{ActError, Hands, running};
use crate::{agent::Agent, sql::accounts::kill_clients};

/// A short queue is applied before the order is answered.
const AT_ONCE: Duration = Duration::from_millis(300);
const STEP: Duration = Duration::from_millis(10);
/// Without progress for this long, somebody holds a lock.
const STALLED: Duration = Duration::from_secs(3);

/// How far the applier is.
enum Progress {
    Applied,
    Behind(GtidSet),
}

/// Answers Done when there is (nearly) nothing to apply, else Started.
pub(crate) async fn catch_up(agent: &Arc<Agent>) -> Result<Outcome, ActError> {
    let running = running(agent)?;
    let mut hands = Hands::on(agent, &running).await?;
    let deadline = Instant::now() + AT_ONCE;
    loop {
        match step(&mut hands).await? {
            Progress::Applied => return Ok(Outcome::Done),
            Progress::Behind(_) if Instant::now() < deadline => sleep(STEP).await,
            Progress::Behind(_) => break,
        }
    }
    drop(hands);
    agent.begin_job(JobKind::CatchUp, "applying");
    let agent = Arc::clone(agent);
    tokio::spawn(async move {
        let failure = until_applied(&agent)
            .await
            .err()
            .map(|error| error.to_string());
        agent.end_job(failure);
    });
    Ok(Outcome::Started)
}

async fn step(hands: &mut Hands<'_>) -> Result<Progress, ActError> {
    let server = hands.observe().await?;
    let Server {
        executed,
        replication,
        ..
    } = server;
    let Some(replication) = replication else {
        return Ok(Progress::Applied);
    };
    let missing = replication.retrieved.subtract(&executed);
    if missing.is_empty() {
        return Ok(Progress::Applied);
    }
    if !replication.applier {
        if let Some(error) = replication.applier_error {
            return Err(ActError::NotReached(format!(
                "the applier is broken: {error}"
            )));
        }
        hands.session.run("START REPLICA SQL_THREAD").await?;
    }
    Ok(Progress::Behind(missing))
}

async fn until_applied(agent: &Arc<Agent>) -> Result<(), ActError> {
    let mut before = GtidSet::default();
    let mut moved = Instant::now();
    loop {
        let running = running(agent)?;
        let mut hands = Hands::on(agent, &running).await?;
        let missing = match step(&mut hands).await? {
            Progress::Applied => return Ok(()),
            Progress::Behind(missing) => missing,
        };
        if missing != before {
            agent.job_stage(&format!("{} transactions to apply", missing.count()), None);
            before = missing;
            moved = Instant::now();
        } else if moved.elapsed() > STALLED {
            tracing::warn!("the applier makes no progress: client sessions are ended");
            kill_clients(&mut hands.session).await?;
            moved = Instant::now();
        }
        drop(hands);
        sleep(STEP).await;
    }
}
