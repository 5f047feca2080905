//! Promote and SemiSync: from replica to source. Never forgets a source before
//! everything received from it is applied, and never uses a bare STOP REPLICA
//! (60 s with a torn transaction, fact 13).

use std::time::Duration;

use gtid::GtidSet;
use tokio::time::{Instant, sleep};
use wire::{Outcome, Receiver, Refusal, Server};

use super::{ActError, Hands, fence::stop_receiver};
use crate::sql::{accounts::kill, session::text};

const STOP_BOUND: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(5);
const COORDINATOR: &str = "SELECT processlist_id AS id FROM performance_schema.threads \
     WHERE name='thread/sql/replica_sql' AND processlist_id IS NOT NULL";

/// Still read-only and offline afterwards.
pub(crate) async fn promote(
    hands: &mut Hands<'_>,
    until: &GtidSet,
    k: u32,
) -> Result<Outcome, ActError> {
    let server = hands.observe().await?;
    if !server.read_only {
        return Err(ActError::wrong_state("open for writes already"));
    }
    if !server.executed.contains(until) {
        let missing = until.subtract(&server.executed);
        return Err(ActError::wrong_state(format!("not applied yet: {missing}")));
    }
    if server.replication.is_some() {
        leave_source(hands, server).await?;
    }
    set_semi_sync(hands, k).await
}

async fn leave_source(hands: &mut Hands<'_>, mut server: Server) -> Result<(), ActError> {
    let stopped = server
        .replication
        .as_ref()
        .is_none_or(|replication| replication.receiver == Receiver::No);
    if !stopped {
        stop_receiver(hands).await?;
        // Again, with nothing coming in any more.
        server = hands.observe().await?;
    }
    let Some(replication) = &server.replication else {
        return Ok(());
    };
    let unapplied = replication.retrieved.subtract(&server.executed);
    if !unapplied.is_empty() {
        return Err(ActError::wrong_state(format!(
            "received and not applied: {unapplied}"
        )));
    }
    stop_applier(hands).await?;
    hands.session.run("RESET REPLICA ALL").await?;
    Ok(())
}

/// KILL of the coordinator, until Replica_SQL_Running says No.
pub(crate) async fn stop_applier(hands: &mut Hands<'_>) -> Result<(), ActError> {
    let deadline = Instant::now() + STOP_BOUND;
    loop {
        let server = hands.observe().await?;
        if !server
            .replication
            .is_some_and(|replication| replication.applier)
        {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(ActError::NotReached("the applier did not stop".to_owned()));
        }
        let threads = hands.session.rows(COORDINATOR).await?;
        for id in threads.iter().filter_map(|row| text(row, "id")) {
            kill(&mut hands.session, &id).await?;
        }
        sleep(STEP).await;
    }
}

/// On a primary that stays, or as the last step of a promotion.
pub(crate) async fn set_semi_sync(hands: &mut Hands<'_>, k: u32) -> Result<Outcome, ActError> {
    let _switch = hands.running.source_switch.lock().await;
    if k == 0 {
        hands
            .session
            .run("SET GLOBAL rpl_semi_sync_source_enabled=OFF")
            .await?;
    } else {
        let count = format!("SET GLOBAL rpl_semi_sync_source_wait_for_replica_count={k}");
        hands.session.run(&count).await?;
        hands
            .session
            .run("SET GLOBAL rpl_semi_sync_source_enabled=ON")
            .await?;
    }
    let server = hands.observe().await?;
    let as_ordered = server.semi_sync.enabled == (k > 0) && (k == 0 || server.semi_sync.k == k);
    if as_ordered {
        return Ok(Outcome::Done);
    }
    Err(ActError::refused(
        Refusal::WrongState,
        format!("semi-sync is {:?}", server.semi_sync),
    ))
}
