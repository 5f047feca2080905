//! Who may use this server: Open, Freeze, Thaw, ServeReads, CloseReads. Never
//! says "frozen" before the SET has returned (fact 9), never opens a server
//! that fenced itself.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use wire::{Outcome, Refusal, Server, Stamp};

use super::{ActError, Hands, promote::set_semi_sync};
use crate::{
    agent::Serving,
    lock,
    sql::{
        accounts::{CLIENTS, kill_clients},
        session::text,
    },
};

const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// What the server may take beyond the bound that it was given itself.
const GRACE: Duration = Duration::from_secs(2);

/// Serves writes.
pub(crate) async fn open(hands: &mut Hands<'_>, stamp: Stamp, k: u32) -> Result<Outcome, ActError> {
    let state = hands.agent.state();
    if let Some(fence) = state.self_fenced.filter(|fence| fence.epoch >= stamp.epoch) {
        return Err(ActError::wrong_state(format!(
            "fenced itself in epoch {}",
            fence.epoch
        )));
    }
    if state.terminating {
        return Err(ActError::wrong_state("the Pod is being deleted"));
    }
    let server = hands.observe().await?;
    if server.replication.is_some() {
        return Err(ActError::wrong_state("still configured as a replica"));
    }
    if k > 0 && !(server.semi_sync.enabled && server.semi_sync.k == k) {
        return Err(ActError::wrong_state(format!(
            "semi-sync is not on with k={k}: {:?}",
            server.semi_sync
        )));
    }
    {
        let mut facts = lock(&hands.running.facts);
        facts.serving = Some(Serving {
            epoch: stamp.epoch,
            k,
        });
        facts.read_only = false;
    }
    // Both: with super_read_only in the configuration, lifting it leaves read_only on.
    hands.session.run("SET GLOBAL super_read_only=OFF").await?;
    hands.session.run("SET GLOBAL read_only=OFF").await?;
    hands.session.run("SET GLOBAL offline_mode=OFF").await?;
    hands.observe().await?;
    Ok(Outcome::Done)
}

/// k of a primary that stays; waits for it in this epoch from now on.
pub(crate) async fn semi_sync(
    hands: &mut Hands<'_>,
    stamp: Stamp,
    k: u32,
) -> Result<Outcome, ActError> {
    if k == 0 {
        // Before it is off: whoever serves without acknowledgements is not judged by them.
        if let Some(serving) = lock(&hands.running.facts).serving.as_mut() {
            *serving = Serving {
                epoch: stamp.epoch,
                k,
            };
        }
    }
    let outcome = set_semi_sync(hands, k).await?;
    if let Some(serving) = lock(&hands.running.facts).serving.as_mut() {
        *serving = Serving {
            epoch: stamp.epoch,
            k,
        };
    }
    Ok(outcome)
}

/// Undoes a freeze; the same conditions as for opening.
pub(crate) async fn thaw(hands: &mut Hands<'_>, stamp: Stamp, k: u32) -> Result<Outcome, ActError> {
    open(hands, stamp, k).await
}

/// super_read_only within the bound, else as before.
pub(crate) async fn freeze(hands: &mut Hands<'_>, bound: Duration) -> Result<Outcome, ActError> {
    let server = hands.observe().await?;
    if !server.read_only {
        // Under load there is always somebody who waits, briefly: the bound tells
        // them from those who wait in vain (fact 23).
        shut(hands, bound).await?;
    }
    lock(&hands.running.facts).serving = None;
    // Nobody logs in any more while the Service still leads here.
    hands.session.run("SET GLOBAL offline_mode=ON").await?;
    kill_clients(&mut hands.session).await?;
    hands.observe().await?;
    Ok(Outcome::Done)
}

/// The server gives up by itself at the bound, and is as before (fact 23).
pub(crate) async fn shut(hands: &mut Hands<'_>, bound: Duration) -> Result<(), ActError> {
    let seconds = bound.as_millis().div_ceil(1000).max(1);
    let bounded = format!("SET SESSION lock_wait_timeout={seconds}");
    hands.session.run(&bounded).await?;
    let shut = hands
        .session
        .run_within("SET GLOBAL super_read_only=ON", bound + GRACE)
        .await;
    let restored = hands.session.run("SET SESSION lock_wait_timeout=5").await;
    match shut {
        Ok(()) => {
            lock(&hands.running.facts).read_only = true;
            Ok(restored?)
        }
        Err(error) if error.code() == Some(LOCK_WAIT_TIMEOUT) => Err(blocked(&format!(
            "after {seconds} s: {}",
            blockers(hands).await
        ))),
        Err(error) => Err(error.into()),
    }
}

fn blocked(who: &str) -> ActError {
    ActError::refused(Refusal::Blocked, who)
}

/// The oldest transactions, for a human.
async fn blockers(hands: &mut Hands<'_>) -> String {
    let statement = "SELECT CONCAT('session ', trx_mysql_thread_id, ' since ', trx_started) AS who \
         FROM information_schema.innodb_trx ORDER BY trx_started LIMIT 3";
    match hands.session.rows(statement).await {
        Ok(rows) => {
            let who: Vec<String> = rows.iter().filter_map(|row| text(row, "who")).collect();
            if who.is_empty() {
                "no transaction; a global lock".to_owned()
            } else {
                who.join(", ")
            }
        }
        Err(error) => error.to_string(),
    }
}

/// Serves reads as a replica.
pub(crate) async fn serve_reads(hands: &mut Hands<'_>) -> Result<Outcome, ActError> {
    let server = hands.observe().await?;
    let Server {
        replication,
        read_only,
        ..
    } = server;
    if !replication.is_some_and(|replication| replication.applier) || !read_only {
        return Err(ActError::wrong_state("not replicating"));
    }
    hands.session.run("SET GLOBAL offline_mode=OFF").await?;
    hands.observe().await?;
    Ok(Outcome::Done)
}

/// No clients.
pub(crate) async fn close_reads(hands: &mut Hands<'_>) -> Result<Outcome, ActError> {
    hands.session.run("SET GLOBAL offline_mode=ON").await?;
    let deadline = Instant::now() + GRACE;
    loop {
        let rows = hands
            .session
            .rows(&format!("SELECT COUNT(*) AS clients {CLIENTS}"))
            .await?;
        let none = rows
            .first()
            .and_then(|row| text(row, "clients"))
            .is_some_and(|count| count == "0");
        // Those with CONNECTION_ADMIN stay; they are an administrator's.
        if none || Instant::now() >= deadline {
            hands.observe().await?;
            return Ok(Outcome::Done);
        }
        sleep(Duration::from_millis(10)).await;
    }
}
