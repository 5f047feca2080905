//! Initialise: a new, empty data directory. Made ahead of need under another
//! name, synced as a whole, and renamed: half of one is never a data directory.

use std::{fs, sync::Arc};

use wire::{JobKind, Outcome, Volume};

use super::{ActError, gated, under_way};
use crate::{
    agent::Agent,
    mysqld::settings,
    volume::{durable, live_binlog::LiveBinlog, on_disk::write_uuid},
};

/// Answers Started, or Done where the data is there already and new.
pub(crate) fn initialise(agent: &Arc<Agent>) -> Result<Outcome, ActError> {
    gated(agent)?;
    if under_way(agent, JobKind::Initialise)? {
        return Ok(Outcome::Started);
    }
    empty(agent)?;
    agent.begin_job(JobKind::Initialise, "making a data directory");
    let agent = Arc::clone(agent);
    tokio::spawn(async move {
        let failure = take_into_use(&agent)
            .await
            .err()
            .map(|error| error.to_string());
        agent.refresh_volume(&LiveBinlog::default());
        agent.end_job(failure);
    });
    Ok(Outcome::Started)
}

/// Refused unless the volume is empty.
pub(crate) fn empty(agent: &Agent) -> Result<(), ActError> {
    match agent.state().volume {
        Volume::Empty | Volume::Partial { .. } => Ok(()),
        Volume::Data { .. } => Err(ActError::wrong_state("the volume holds data")),
        Volume::Unreadable { message } => Err(ActError::wrong_state(message)),
        Volume::Locked => Err(ActError::volume_not_ours()),
    }
}

async fn take_into_use(agent: &Agent) -> Result<(), ActError> {
    pristine(agent).await?;
    let mut made = agent.pristine.lock().await;
    *made = false;
    let pristine = agent.options.pristine();
    place(agent, &pristine)
}

/// Gives a complete directory an identity and the name of the data directory.
pub(crate) fn place(agent: &Agent, from: &std::path::Path) -> Result<(), ActError> {
    let io = |doing| move |source| ActError::Io { doing, source };
    write_uuid(from).map_err(io("writing auto.cnf"))?;
    durable::sync_tree(from).map_err(io("syncing the new data directory"))?;
    // An empty directory may stand there, made by an image or a human.
    match fs::remove_dir(&agent.options.datadir) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(source) => return Err(io("removing the empty data directory")(source)),
    }
    durable::rename(from, &agent.options.datadir).map_err(io("renaming the new data directory"))
}

/// Makes sure that there is a pristine directory. It holds nothing and is
/// nobody's data, so it needs no order: it is made while the operator decides,
/// because it takes seconds and every empty volume needs one.
pub(crate) async fn pristine(agent: &Agent) -> Result<(), ActError> {
    let mut made = agent.pristine.lock().await;
    if *made {
        return Ok(());
    }
    let io = |doing| move |source| ActError::Io { doing, source };
    let directory = agent.options.pristine();
    durable::remove_directory(&directory).map_err(io("removing half a data directory"))?;
    fs::create_dir_all(&agent.options.agent_dir).map_err(io("making the agent's directory"))?;
    let started = std::time::Instant::now();
    let mut command = settings::initialise(&agent.options, &directory);
    let child = agent
        .children
        .start(&mut command)
        .map_err(io("starting mysqld --initialize-insecure"))?;
    let ended = child.wait().await;
    if ended.code != Some(0) {
        child.log.read_to_end().await;
        let why = child
            .log
            .last_error()
            .unwrap_or_else(|| "no ERROR in its log".to_owned());
        return Err(ActError::NotReached(format!(
            "mysqld --initialize-insecure: {ended:?}, {why}"
        )));
    }
    tracing::info!(
        milliseconds = started.elapsed().as_millis(),
        "an empty data directory was made"
    );
    *made = true;
    Ok(())
}
