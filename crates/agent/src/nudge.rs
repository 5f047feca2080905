//! Ends waits that nobody else would end. An acker that received a transaction
//! while it did not acknowledge (before its admission, or when the connection
//! broke between the two) is not sent it again, so it never acknowledges it;
//! only the acknowledgement of a later transaction covers it. When every client
//! waits there is no later one: the agent of the open primary writes one.
//!
//! Never lowers what a commit waits for: the new transaction needs its own
//! acknowledgements, and brings nobody an OK that is not covered by them.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use wire::{BinlogPosition, Server};

use crate::{
    agent::{Running, Serving},
    sql::session::{Session, SqlError},
};

/// So long must there have been waiters, ackers and no new transaction.
const STUCK: Duration = Duration::from_millis(700);
const BOUND: Duration = Duration::from_secs(5);
/// A hand-over is over by then.
const HAND_OVER: Duration = Duration::from_millis(1500);
/// Binlogged like any transaction, and changes nothing.
const NUDGE: &str = "FLUSH OPTIMIZER_COSTS";
const OFF: &str = "SET GLOBAL rpl_semi_sync_source_enabled=OFF";

/// What was seen of a wait.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    seen: Option<(BinlogPosition, Instant)>,
}

impl Wait {
    /// True when it is time for a nudge.
    pub(crate) fn is_stuck(
        &mut self,
        server: &Server,
        serving: Option<Serving>,
        ackers: u32,
    ) -> bool {
        let waits = server.semi_sync.waiting > 0
            && serving.is_some_and(|serving| serving.k > 0 && ackers >= serving.k);
        if !waits {
            self.seen = None;
            return false;
        }
        match &self.seen {
            Some((end, since)) if *end == server.binlog_end => {
                let stuck = since.elapsed() >= STUCK;
                if stuck {
                    self.seen = None;
                }
                stuck
            }
            Some(_) | None => {
                self.seen = Some((server.binlog_end.clone(), Instant::now()));
                false
            }
        }
    }
}

/// A server that follows another and still waits for acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct FormerSource {
    since: Option<Instant>,
}

impl FormerSource {
    /// True when the orders of a hand-over have had their time: every SET GLOBAL
    /// waits while semi-sync is switched off.
    pub(crate) fn is_due(&mut self, server: &Server) -> bool {
        if server.replication.is_none() || !server.semi_sync.enabled {
            self.since = None;
            return false;
        }
        self.since.get_or_insert_with(Instant::now).elapsed() >= HAND_OVER
    }
}

/// A former source that follows another: its applier's commits would wait for
/// acknowledgements that nobody gives. Switching off takes up to a second (the
/// server stops a thread that looks up once a second), so nobody who waits for
/// an order waits for it, and it is done again until it is seen to be off.
/// Switching off answers OK to waiters (fact 6); a server that follows is
/// read-only, so there is nobody to lie to.
pub(crate) fn no_source_any_more(running: &Arc<Running>) {
    let running = Arc::clone(running);
    tokio::spawn(async move {
        // Somebody is at it, or a promotion is: the next observation tells.
        let Ok(_switch) = running.source_switch.try_lock() else {
            return;
        };
        if let Err(error) = switch_off(&running).await {
            tracing::warn!(%error, "a former source still waits for acknowledgements");
        }
    });
}

/// Only while it is seen to follow, with the switch held: a promotion that came
/// first has forgotten its source before it switches on.
async fn switch_off(running: &Running) -> Result<(), SqlError> {
    let mut session = Session::open(running.login.clone()).await?;
    if session.rows("SHOW REPLICA STATUS").await?.is_empty() {
        return Ok(());
    }
    let off = session.run_within(OFF, BOUND).await;
    if let Err(error @ SqlError::Unanswered { .. }) = &off {
        // It may still come, after a promotion has switched on: nobody would
        // wait for an acknowledgement.
        tracing::error!(%error, "semi-sync may be switched off later: SIGKILL");
        running.child.kill().await;
    }
    off
}

/// On a connection of its own: it may wait itself.
pub(crate) fn nudge(running: &Arc<Running>) {
    let login = running.login.clone();
    tokio::spawn(async move {
        let nudged: Result<(), SqlError> = async {
            let mut session = Session::open(login).await?;
            session.run_within(NUDGE, BOUND).await
        }
        .await;
        match nudged {
            Ok(()) => {
                tracing::info!(
                    "a transaction was written so that waiting commits are acknowledged"
                );
            }
            Err(error) => tracing::warn!(%error, "commits wait although ackers are attached"),
        }
    });
}
