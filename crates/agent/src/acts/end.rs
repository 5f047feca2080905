//! How mysqld is ended. Never with a SIGTERM while anybody may be waiting for
//! an acknowledgement: a shutdown answers OK to them (fact 5).

use std::{sync::Arc, time::Duration};

use nix::sys::signal::Signal;
use tokio::time::timeout;
use wire::Outcome;

use super::{ActError, Hands, fence, serve};
use crate::agent::{Agent, Running};

/// Bound on becoming read-only before a shutdown.
const SHUT_BOUND: Duration = Duration::from_secs(5);
/// Bound on a clean shutdown.
const SHUTDOWN_BOUND: Duration = Duration::from_secs(30);

/// SIGKILL.
pub(crate) async fn kill(agent: &Arc<Agent>) -> Outcome {
    fence::kill(agent).await;
    Outcome::Done
}

/// A clean shutdown where it can do no harm, else SIGKILL.
pub(crate) async fn stop(agent: &Arc<Agent>) -> Outcome {
    let Some(running) = agent.running() else {
        return Outcome::Done;
    };
    let harmless = timeout(SHUT_BOUND * 3, harmless(agent, &running)).await;
    match harmless {
        Ok(Ok(())) => {
            running.child.signal(Signal::SIGTERM);
            if timeout(SHUTDOWN_BOUND, running.child.wait()).await.is_err() {
                tracing::warn!("the shutdown takes too long: SIGKILL");
                running.child.kill().await;
            }
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "a clean shutdown might answer OK to a waiter: SIGKILL");
            running.child.kill().await;
        }
        Err(_) => {
            tracing::warn!("mysqld does not answer: SIGKILL");
            running.child.kill().await;
        }
    }
    fence::gone(agent).await;
    Outcome::Done
}

/// Read-only by a SET that returned, and nobody waits after it.
async fn harmless(agent: &Arc<Agent>, running: &Running) -> Result<(), ActError> {
    let mut hands = Hands::on(agent, running).await?;
    if !hands.observe().await?.read_only {
        serve::shut(&mut hands, SHUT_BOUND).await?;
    }
    if hands.observe().await?.semi_sync.waiting > 0 {
        return Err(ActError::wrong_state("commits wait for an acknowledgement"));
    }
    Ok(())
}
