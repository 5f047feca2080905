//! Discard and DiscardRelayLogs: a tail is kept in the archive and leaves the
//! data. The order of undoing is that of clustering.md, section 1; each step is
//! on disk before the next, and the marker says where to go on.

use std::sync::Arc;

use gtid::GtidSet;
use wire::{JobKind, OnDisk, Outcome, Refusal, Undo, Volume};

use super::{
    ActError, Hands, fence::stop_receiver, gated, initialise::pristine, promote::stop_applier,
    under_way,
};
use crate::{
    agent::Agent,
    volume::{
        archive::{Logs, keep},
        durable,
        live_binlog::LiveBinlog,
        record,
    },
};

/// Name that the old data directory has while it is removed.
const DISCARDED: &str = "discarded";

/// Afterwards the volume is empty.
pub(crate) async fn discard(
    agent: &Arc<Agent>,
    epoch: u64,
    kept: &GtidSet,
) -> Result<Outcome, ActError> {
    gated(agent)?;
    if under_way(agent, JobKind::Discard)? {
        return Ok(Outcome::Started);
    }
    let on_disk = match agent.state().volume {
        Volume::Data { on_disk } => on_disk,
        Volume::Empty | Volume::Partial { .. } => return Ok(Outcome::Done),
        Volume::Unreadable { message } => return Err(ActError::wrong_state(message)),
        Volume::Locked => return Err(ActError::volume_not_ours()),
    };
    let worker = Arc::clone(agent);
    let kept = kept.clone();
    let done = tokio::task::spawn_blocking(move || {
        let done = empty(&worker, &on_disk, epoch, &kept);
        worker.refresh_volume(&LiveBinlog::default());
        done
    });
    match done.await {
        Ok(done) => done?,
        Err(error) => return Err(ActError::NotReached(error.to_string())),
    }
    prepare(agent);
    Ok(Outcome::Done)
}

fn empty(agent: &Agent, on_disk: &OnDisk, epoch: u64, kept: &GtidSet) -> Result<(), ActError> {
    let io = |doing| move |source| ActError::Io { doing, source };
    let (datadir, agent_dir) = (&agent.options.datadir, &agent.options.agent_dir);
    // An undo under way is gone on with as it was begun.
    let undo = match (&on_disk.undo, on_disk.uuid) {
        (Some(undo), _) => undo.clone(),
        (None, Some(uuid)) => Undo {
            uuid,
            epoch,
            kept: kept.clone(),
        },
        (None, None) => {
            return Err(ActError::wrong_state(
                "the data directory has no uuid and no undo was begun",
            ));
        }
    };
    record::write_undo(agent_dir, &undo)?;
    let tail = on_disk.binlog.union(&on_disk.relay).subtract(&undo.kept);
    keep(
        datadir,
        &agent.options.archive(),
        on_disk,
        (undo.uuid, undo.epoch, &tail),
        Logs::All,
    )?;
    agent
        .renew_incarnation()
        .map_err(io("renewing the incarnation"))?;
    durable::remove_file(&datadir.join("auto.cnf")).map_err(io("removing auto.cnf"))?;
    let discarded = agent_dir.join(DISCARDED);
    durable::remove_directory(&discarded).map_err(io("removing what was discarded before"))?;
    durable::rename(datadir, &discarded).map_err(io("setting the data aside"))?;
    agent.amend_record(|record| record.unlogged = GtidSet::default())?;
    record::remove_undo(agent_dir)?;
    durable::remove_directory(&discarded).map_err(io("removing the discarded data"))
}

/// Makes a pristine directory in the background, for an empty volume.
pub(crate) fn prepare(agent: &Arc<Agent>) {
    if agent.state().volume != Volume::Empty {
        return;
    }
    let agent = Arc::clone(agent);
    tokio::spawn(async move {
        if let Err(error) = pristine(&agent).await {
            // Said again, with the order that needs it.
            tracing::warn!(%error, "no data directory was made ahead of need");
        }
    });
}

/// The tail is only in relay logs: nothing of it was applied.
pub(crate) async fn discard_relay_logs(
    hands: &mut Hands<'_>,
    kept: &GtidSet,
) -> Result<Outcome, ActError> {
    let server = hands.observe().await?;
    let Some(replication) = &server.replication else {
        return Ok(Outcome::Done);
    };
    let applied = server.executed.subtract(kept);
    if !applied.is_empty() {
        return Err(ActError::refused(
            Refusal::Errant,
            format!("applied already: {applied}"),
        ));
    }
    if replication.retrieved.subtract(kept).is_empty() {
        return Ok(Outcome::Done);
    }
    stop_receiver(hands).await?;
    stop_applier(hands).await?;
    let stopped = hands.observe().await?;
    let applied = stopped.executed.subtract(kept);
    if !applied.is_empty() {
        return Err(ActError::refused(
            Refusal::Errant,
            format!("applied meanwhile: {applied}"),
        ));
    }
    let tail = stopped
        .replication
        .map(|replication| replication.retrieved)
        .unwrap_or_default()
        .subtract(kept);
    let seen = hands.agent.state().seen;
    let on_disk = OnDisk {
        uuid: Some(server.uuid),
        binlog: GtidSet::default(),
        relay: tail.clone(),
        tail: Vec::new(),
        undo: None,
    };
    let options = &hands.agent.options;
    keep(
        &options.datadir,
        &options.archive(),
        &on_disk,
        (server.uuid, seen.epoch, &tail),
        Logs::Relay,
    )?;
    hands
        .agent
        .renew_incarnation()
        .map_err(|source| ActError::Io {
            doing: "renewing the incarnation",
            source,
        })?;
    hands.session.run("RESET REPLICA ALL").await?;
    hands.observe().await?;
    Ok(Outcome::Done)
}
