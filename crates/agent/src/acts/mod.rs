//! What an agent can be told to do, one file per act. Each checks its
//! precondition when it acts and not before, and is done when its effect holds
//! already. Never decides whether an act is wise.

pub(crate) mod app;
pub(crate) mod catch_up;
pub(crate) mod clone;
pub(crate) mod discard;
pub(crate) mod end;
pub(crate) mod fence;
pub(crate) mod follow;
pub(crate) mod initialise;
pub(crate) mod peers;
pub(crate) mod promote;
pub(crate) mod serve;

use std::{io, sync::Arc};

use tokio::sync::MutexGuard;
use wire::{JobKind, Mysqld, Outcome, Refusal, Server, Stamp};

use crate::{
    agent::{Agent, Running},
    lock,
    sql::{
        observe::{Patience, observe},
        session::{Session, SqlError},
    },
    volume::{archive::ArchiveError, record::RecordError},
};

/// Why an act was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActError {
    /// A precondition does not hold.
    #[error("{message}")]
    Refused { refusal: Refusal, message: String },
    /// The server.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The agent's own files.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Anything else of the operating system.
    #[error("{doing}: {source}")]
    Io {
        doing: &'static str,
        source: io::Error,
    },
    /// The effect did not show.
    #[error("{0}")]
    NotReached(String),
}

impl ActError {
    pub(crate) fn refused(refusal: Refusal, message: impl Into<String>) -> Self {
        Self::Refused {
            refusal,
            message: message.into(),
        }
    }

    pub(crate) fn wrong_state(message: impl Into<String>) -> Self {
        Self::refused(Refusal::WrongState, message)
    }

    pub(crate) fn volume_not_ours() -> Self {
        Self::wrong_state("the volume is locked by another process or its record cannot be read")
    }

    pub(crate) fn overtaken(seen: u64) -> Self {
        Self::refused(Refusal::Stale, format!("version {seen} was seen meanwhile"))
    }
}

impl From<ActError> for Outcome {
    fn from(error: ActError) -> Self {
        let message = error.to_string();
        match error {
            ActError::Refused { refusal, .. } => Self::Refused { refusal, message },
            ActError::Sql(_)
            | ActError::Record(_)
            | ActError::Archive(_)
            | ActError::Io { .. }
            | ActError::NotReached(_) => Self::Failed { message },
        }
    }
}

/// The running, answering server of an act, with the connection for orders.
pub(crate) struct Hands<'a> {
    pub(crate) agent: &'a Arc<Agent>,
    pub(crate) running: &'a Running,
    pub(crate) session: MutexGuard<'a, Session>,
}

impl<'a> Hands<'a> {
    /// Refused unless mysqld answers.
    pub(crate) async fn on(agent: &'a Arc<Agent>, running: &'a Running) -> Result<Self, ActError> {
        if !lock(&running.facts).answered {
            return Err(ActError::wrong_state(
                "mysqld has not answered since its start",
            ));
        }
        Ok(Self {
            agent,
            running,
            session: running.orders.lock().await,
        })
    }

    /// For an order: refused if another overtook it while it waited.
    pub(crate) async fn under(
        stamp: Stamp,
        agent: &'a Arc<Agent>,
        running: &'a Running,
    ) -> Result<Self, ActError> {
        let hands = Self::on(agent, running).await?;
        let record = agent.record().ok_or_else(ActError::volume_not_ours)?;
        if stamp.version < record.seen.version {
            return Err(ActError::overtaken(record.seen.version));
        }
        Ok(hands)
    }

    /// Asks the server now, and publishes what it says.
    pub(crate) async fn observe(&mut self) -> Result<Server, SqlError> {
        let begun = self.agent.begin_observation(self.running);
        let datadir = &self.agent.options.datadir;
        let observation = observe(
            &mut self.session,
            Patience::Bounded,
            begun,
            datadir,
            &self.running.binlog,
        )
        .await?;
        let mut server = observation.server.clone();
        self.agent.publish_observation(self.running, observation);
        server.read_only &= lock(&self.running.facts).read_only;
        Ok(server)
    }
}

/// The mysqld that runs.
pub(crate) fn running(agent: &Agent) -> Result<Arc<Running>, ActError> {
    agent
        .running()
        .ok_or_else(|| ActError::wrong_state("mysqld does not run"))
}

/// Refused while mysqld runs or starts.
pub(crate) fn gated(agent: &Agent) -> Result<(), ActError> {
    if agent.running().is_some() || !matches!(agent.state().mysqld, Mysqld::Gated { .. }) {
        return Err(ActError::wrong_state("mysqld runs"));
    }
    Ok(())
}

/// Refused while a job is under way; true if it is one of this kind.
pub(crate) fn under_way(agent: &Agent, kind: JobKind) -> Result<bool, ActError> {
    match agent.state().job {
        None => Ok(false),
        Some(job) if job.kind == kind => Ok(true),
        Some(job) => Err(ActError::wrong_state(format!(
            "{:?} is under way: {}",
            job.kind, job.stage
        ))),
    }
}
