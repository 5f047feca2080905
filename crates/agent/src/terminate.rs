//! SIGTERM (clustering.md, section 13): the operator gets time to switch over,
//! then mysqld is ended without lying to anybody who waits.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use wire::{Mysqld, Server};

use crate::{acts::end, agent::Agent};

/// Time for a switchover.
const SWITCHOVER: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(50);

/// Returns when mysqld has ended.
pub(crate) async fn terminate(agent: &Arc<Agent>) {
    tracing::info!("SIGTERM");
    agent.publish(|state| state.terminating = true);
    let deadline = Instant::now() + SWITCHOVER;
    while needed(agent) && Instant::now() < deadline {
        sleep(STEP).await;
    }
    end::stop(agent).await;
}

/// An open primary, or one that was frozen and still hands over its last
/// transactions. Replicas and whoever follows another can go at once.
fn needed(agent: &Agent) -> bool {
    match agent.state().mysqld {
        Mysqld::Running { server } => {
            let Server {
                replication,
                offline,
                ..
            } = *server;
            replication.is_none() && !offline
        }
        Mysqld::Gated { .. } | Mysqld::Starting => false,
    }
}
