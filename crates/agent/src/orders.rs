//! The switchboard of orders. Every order passes the same checks: this cluster,
//! this server, a version not below the highest seen (R2), which is on disk
//! before anything is done or answered.

use std::{sync::Arc, time::Duration};

use gtid::Uuid;
use tokio::time::timeout;
use wire::{Act, Mysqld, Order, Outcome, Refusal, Reply, Volume};

use crate::{
    acts::{
        ActError, Hands, app, catch_up, clone, discard, end, fence, follow, gated, initialise,
        peers, promote, running, serve,
    },
    agent::Agent,
    gate,
};

/// An order that comes while another is under way waits this long for its turn.
const TURN_BOUND: Duration = Duration::from_mins(1);

/// A look at the server after an order.
const LOOK_BOUND: Duration = Duration::from_secs(1);

/// Takes an order, answers with what became of it.
pub(crate) async fn take(agent: &Arc<Agent>, order: Order) -> Reply {
    let stamp = order.stamp;
    let outcome = match in_turn(agent, &order).await {
        Ok(outcome) => outcome,
        Err(error) => Outcome::from(error),
    };
    let act = name(&order.act);
    match &outcome {
        Outcome::Done | Outcome::Started => {
            tracing::info!(
                act,
                version = stamp.version,
                epoch = stamp.epoch,
                ?outcome,
                "order"
            );
        }
        Outcome::Refused { .. } | Outcome::Failed { .. } => {
            tracing::warn!(
                act,
                version = stamp.version,
                epoch = stamp.epoch,
                ?outcome,
                "order"
            );
        }
    }
    if matches!(outcome, Outcome::Done | Outcome::Started) {
        agent.obeyed(stamp);
        look(agent).await;
    }
    Reply {
        outcome,
        state: agent.state(),
    }
}

/// The answer carries what the server says after the act.
async fn look(agent: &Arc<Agent>) {
    let Some(running) = agent.running() else {
        return;
    };
    let looked = timeout(LOOK_BOUND, async {
        let mut hands = Hands::on(agent, &running).await?;
        hands.observe().await.map_err(ActError::from)
    });
    match looked.await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the server was not asked after the order"),
        Err(_) => tracing::warn!("the server did not answer after the order"),
    }
    running.poke.notify_one();
}

/// Ending mysqld does not wait behind an order that may be stuck in it.
async fn in_turn(agent: &Arc<Agent>, order: &Order) -> Result<Outcome, ActError> {
    match &order.act {
        Act::FenceSelf => {
            admit(agent, order)?;
            fence::fence_self(agent, order.stamp).await
        }
        Act::Kill => {
            admit(agent, order)?;
            Ok(end::kill(agent).await)
        }
        Act::Fence => {
            // Its own bound ends what it finds stuck.
            admit(agent, order)?;
            fence::fence(agent, order.stamp).await
        }
        Act::Initialise
        | Act::Clone { .. }
        | Act::Boot
        | Act::Resume
        | Act::Follow { .. }
        | Act::Admit { .. }
        | Act::CatchUp
        | Act::Promote { .. }
        | Act::SemiSync { .. }
        | Act::Open { .. }
        | Act::ServeReads
        | Act::CloseReads
        | Act::Freeze { .. }
        | Act::Thaw { .. }
        | Act::Stop
        | Act::Discard { .. }
        | Act::DiscardRelayLogs { .. }
        | Act::EnsureApp
        | Act::Peers => {
            let Ok(_turn) = timeout(TURN_BOUND, agent.turn.lock()).await else {
                return Err(ActError::wrong_state(
                    "another order has been under way for a minute",
                ));
            };
            admit(agent, order)?;
            obey(agent, order).await
        }
    }
}

/// R2, on disk when it returns.
fn admit(agent: &Agent, order: &Order) -> Result<(), ActError> {
    if order.cluster_uid != agent.options.cluster_uid {
        let message = format!("this agent serves cluster {}", agent.options.cluster_uid);
        return Err(ActError::refused(Refusal::NotMe, message));
    }
    let checked = agent.amend_record(|record| {
        if order.stamp.version < record.seen.version {
            let message = format!("version {} was seen", record.seen.version);
            return Err(ActError::refused(Refusal::Stale, message));
        }
        meant_for(agent, order.uuid)?;
        if order.stamp.version > record.seen.version {
            record.seen = order.stamp;
        }
        record.peers.clone_from(&order.peers);
        Ok(())
    })?;
    checked.unwrap_or_else(|| Err(ActError::volume_not_ours()))
}

fn meant_for(agent: &Agent, uuid: Option<Uuid>) -> Result<(), ActError> {
    let state = agent.state();
    let ours = match (state.mysqld, state.volume) {
        (Mysqld::Running { server }, _) => Some(server.uuid),
        (Mysqld::Gated { .. } | Mysqld::Starting, Volume::Data { on_disk }) => {
            // Between the removal of auto.cnf and the end of an undo.
            on_disk.uuid.or(on_disk.undo.map(|undo| undo.uuid))
        }
        (
            Mysqld::Gated { .. } | Mysqld::Starting,
            Volume::Locked | Volume::Empty | Volume::Partial { .. } | Volume::Unreadable { .. },
        ) => None,
    };
    if uuid == ours {
        return Ok(());
    }
    let show = |uuid: Option<Uuid>| uuid.map_or("nobody".to_owned(), |uuid| uuid.to_string());
    let message = format!("meant for {}, this is {}", show(uuid), show(ours));
    Err(ActError::refused(Refusal::NotMe, message))
}

/// One act, performed.
async fn obey(agent: &Arc<Agent>, order: &Order) -> Result<Outcome, ActError> {
    match &order.act {
        Act::Initialise => initialise::initialise(agent),
        Act::Clone { donor } => clone::clone(agent, donor),
        Act::Boot => boot(agent, order.stamp.version),
        Act::Resume => resume(agent, order),
        Act::Fence => fence::fence(agent, order.stamp).await,
        Act::FenceSelf => fence::fence_self(agent, order.stamp).await,
        Act::CatchUp => catch_up::catch_up(agent).await,
        Act::Kill => Ok(end::kill(agent).await),
        Act::Stop => Ok(end::stop(agent).await),
        Act::Discard { epoch, kept } => discard::discard(agent, *epoch, kept).await,
        Act::Peers if agent.running().is_none() => Ok(Outcome::Done),
        Act::Follow { .. }
        | Act::Admit { .. }
        | Act::Promote { .. }
        | Act::SemiSync { .. }
        | Act::Open { .. }
        | Act::ServeReads
        | Act::CloseReads
        | Act::Freeze { .. }
        | Act::Thaw { .. }
        | Act::DiscardRelayLogs { .. }
        | Act::EnsureApp
        | Act::Peers => by_statements(agent, order).await,
    }
}

/// Acts on a server that answers.
async fn by_statements(agent: &Arc<Agent>, order: &Order) -> Result<Outcome, ActError> {
    let running = running(agent)?;
    let hands = &mut Hands::under(order.stamp, agent, &running).await?;
    let stamp = order.stamp;
    if let Act::Freeze {
        wait_milliseconds, ..
    } = &order.act
    {
        // Account statements can wait for an acknowledgement; a freeze must not.
        return serve::freeze(hands, Duration::from_millis(*wait_milliseconds)).await;
    }
    peers::apply(hands).await?;
    match &order.act {
        Act::Follow { source, within } => follow::follow(hands, source, within).await,
        Act::Admit { source } => follow::admit(hands, *source).await,
        Act::Promote { until, k } => promote::promote(hands, until, *k).await,
        Act::SemiSync { k } => serve::semi_sync(hands, stamp, *k).await,
        Act::Open { k } => serve::open(hands, stamp, *k).await,
        Act::Thaw { k } => serve::thaw(hands, stamp, *k).await,
        Act::ServeReads => serve::serve_reads(hands).await,
        Act::CloseReads => serve::close_reads(hands).await,
        Act::DiscardRelayLogs { kept } => discard::discard_relay_logs(hands, kept).await,
        Act::EnsureApp => app::ensure(hands).await,
        Act::Peers => {
            hands.observe().await?;
            Ok(Outcome::Done)
        }
        Act::Freeze { .. }
        | Act::Initialise
        | Act::Clone { .. }
        | Act::Boot
        | Act::Resume
        | Act::Fence
        | Act::FenceSelf
        | Act::CatchUp
        | Act::Kill
        | Act::Stop
        | Act::Discard { .. } => Err(ActError::refused(
            Refusal::Unknown,
            "not an act by statements",
        )),
    }
}

fn boot(agent: &Arc<Agent>, version: u64) -> Result<Outcome, ActError> {
    if agent.running().is_some() {
        return Ok(Outcome::Done);
    }
    gated(agent)?;
    let state = agent.state();
    if let Some(job) = state.job {
        return Err(ActError::wrong_state(format!(
            "{:?} is under way: {}",
            job.kind, job.stage
        )));
    }
    if state.terminating {
        return Err(ActError::wrong_state("the Pod is being deleted"));
    }
    match state.volume {
        Volume::Data { on_disk } => match on_disk.undo {
            None => gate::open(agent, version)?,
            Some(undo) => {
                let message = format!("an undo of {} is not finished", undo.uuid);
                return Err(ActError::wrong_state(message));
            }
        },
        Volume::Empty | Volume::Partial { .. } => return Err(ActError::wrong_state("no data")),
        Volume::Unreadable { message } => return Err(ActError::wrong_state(message)),
        Volume::Locked => return Err(ActError::volume_not_ours()),
    }
    Ok(Outcome::Done)
}

fn resume(agent: &Arc<Agent>, order: &Order) -> Result<Outcome, ActError> {
    let fence = agent.state().self_fenced;
    if let Some(fence) = fence.filter(|fence| fence.epoch >= order.stamp.epoch) {
        return Err(ActError::wrong_state(format!(
            "fenced itself in epoch {}",
            fence.epoch
        )));
    }
    boot(agent, order.stamp.version)
}

/// The act's name, for the log.
fn name(act: &Act) -> &'static str {
    match act {
        Act::Initialise => "Initialise",
        Act::Clone { .. } => "Clone",
        Act::Boot => "Boot",
        Act::Resume => "Resume",
        Act::Follow { .. } => "Follow",
        Act::Admit { .. } => "Admit",
        Act::Fence => "Fence",
        Act::FenceSelf => "FenceSelf",
        Act::CatchUp => "CatchUp",
        Act::Promote { .. } => "Promote",
        Act::SemiSync { .. } => "SemiSync",
        Act::Open { .. } => "Open",
        Act::ServeReads => "ServeReads",
        Act::CloseReads => "CloseReads",
        Act::Freeze { .. } => "Freeze",
        Act::Thaw { .. } => "Thaw",
        Act::Kill => "Kill",
        Act::Stop => "Stop",
        Act::Discard { .. } => "Discard",
        Act::DiscardRelayLogs { .. } => "DiscardRelayLogs",
        Act::EnsureApp => "EnsureApp",
        Act::Peers => "Peers",
    }
}
