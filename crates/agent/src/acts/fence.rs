//! Fence and FenceSelf: this instance acknowledges nothing more. Never takes
//! "Connecting" for stopped; a receiver that does not stop is ended with its
//! mysqld, since a fresh boot cannot acknowledge and keeps the relay logs.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use wire::{Outcome, Receiver, Refusal, Stamp};

use super::{ActError, Hands};
use crate::{
    agent::{Agent, Running},
    lock,
};

/// STOP REPLICA IO_THREAD takes 4 to 25 ms (fact 14), but 2.0 s while the
/// receiver is knocking at a frozen source, where its first signal is lost.
const STOP_BOUND: Duration = Duration::from_secs(5);
/// The whole fence; longer is a stuck server.
const FENCE_BOUND: Duration = Duration::from_secs(7);
const STEP: Duration = Duration::from_millis(5);
/// offline_mode on a server that is to be killed: 1 ms, or it hangs (fact 10).
const OFFLINE_BOUND: Duration = Duration::from_millis(200);

/// Stops the receiver and confirms "No".
pub(crate) async fn stop_receiver(hands: &mut Hands<'_>) -> Result<(), ActError> {
    hands
        .session
        .run_within("STOP REPLICA IO_THREAD", STOP_BOUND)
        .await?;
    let deadline = Instant::now() + STOP_BOUND;
    loop {
        let server = hands.observe().await?;
        match server.replication.map(|replication| replication.receiver) {
            None | Some(Receiver::No) => return Ok(()),
            Some(Receiver::Yes | Receiver::Connecting) => {}
        }
        if Instant::now() >= deadline {
            return Err(ActError::NotReached("the receiver did not stop".to_owned()));
        }
        sleep(STEP).await;
    }
}

/// A gated or dead mysqld is fenced as it is.
pub(crate) async fn fence(agent: &Arc<Agent>, stamp: Stamp) -> Result<Outcome, ActError> {
    let Some(running) = agent.running() else {
        return Ok(Outcome::Done);
    };
    if !lock(&running.facts).answered {
        // A boot without receivers; nothing can be acknowledged.
        return Ok(Outcome::Done);
    }
    let fenced = tokio::time::timeout(FENCE_BOUND, fence_running(agent, &running, stamp)).await;
    let why = match fenced {
        Ok(Ok(())) => return Ok(Outcome::Done),
        Ok(Err(
            error @ ActError::Refused {
                refusal: Refusal::Stale,
                ..
            },
        )) => return Err(error),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the connection for orders is stuck".to_owned(),
    };
    tracing::warn!(%why, "the receiver cannot be stopped: SIGKILL, a fresh boot acknowledges nothing");
    running.child.kill().await;
    Ok(Outcome::Done)
}

async fn fence_running(
    agent: &Arc<Agent>,
    running: &Running,
    stamp: Stamp,
) -> Result<(), ActError> {
    let mut hands = Hands::under(stamp, agent, running).await?;
    let server = hands.observe().await?;
    if server.replication.is_none() {
        return Ok(());
    }
    stop_receiver(&mut hands).await?;
    hands
        .session
        .run("SET GLOBAL rpl_semi_sync_replica_enabled=OFF")
        .await?;
    // R, read after the fence.
    hands.observe().await?;
    Ok(())
}

/// Persisted first, then mysqld is killed; never waits for the server.
pub(crate) async fn fence_self(agent: &Arc<Agent>, stamp: Stamp) -> Result<Outcome, ActError> {
    agent.amend_record(|record| {
        record.self_fenced = record.self_fenced.max(Some(stamp));
    })?;
    kill(agent).await;
    Ok(Outcome::Done)
}

/// offline_mode where it goes quickly, then SIGKILL, then reaped.
pub(crate) async fn kill(agent: &Arc<Agent>) {
    // A start that was checked under an older version is seen below.
    drop(lock(&agent.gate));
    let Some(running) = agent.running() else {
        return;
    };
    if let Ok(mut session) = running.orders.try_lock()
        && let Err(error) = session
            .run_within("SET GLOBAL offline_mode=ON", OFFLINE_BOUND)
            .await
    {
        tracing::info!(%error, "offline_mode before SIGKILL");
    }
    running.child.kill().await;
    gone(agent).await;
}

/// Until the exit is in the state: the answer's state must show it.
pub(crate) async fn gone(agent: &Arc<Agent>) {
    for _step in 0..1000 {
        if agent.running().is_none() {
            return;
        }
        sleep(STEP).await;
    }
    tracing::error!("mysqld was reaped, and its exit was not taken note of");
}
