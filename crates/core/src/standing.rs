//! Where an instance that is not the primary stands on its way to being an
//! acker (sections 4 and 8). One classification for the plan and for what is
//! said, so that they cannot disagree. Never proposes to discard anything that
//! is not proved to be unacknowledged (re-3); what is not proved stays (re-4).

use gtid::GtidSet;

use crate::observed::{
    Access, Agent, Instance, Mysqld, Observed, OnDisk, Receiver, Replication, Seen, Server, Volume,
};
use crate::record::{Deposed, Member, Ordinal};

/// An instance's facts must have been the same for this long, and the
/// primary's be younger, before a difference counts as errant: R of X is read
/// first, the primary's set second (re-5).
pub const SETTLED_MILLISECONDS: u64 = 1_000;

/// Failed starts are tried again after this long, and at once with a new Pod.
pub const RESTART_AFTER_MILLISECONDS: u64 = 30_000;

/// Where an instance stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Its Pod does not exist.
    NoPod,
    /// Its Pod does not run, in Kubernetes' words.
    PodTrouble(String),
    /// Its agent does not answer.
    Unreachable(String),
    /// It receives and does not apply, in the server's words.
    ApplierStopped(String),
    /// Something that passes by itself; the sentence says what.
    Busy(String),
    /// Its volume cannot be read.
    VolumeUnreadable(String),
    /// An empty volume (or half a clone): to be cloned.
    ToClone,
    /// Behind the gate and may boot.
    ToBoot,
    /// Behind the gate; it fails to start.
    StartFails(String),
    /// A former primary or a strange server that runs: to be killed.
    ToKill,
    /// Runs, has nothing that the primary has not: to be attached.
    ToFollow,
    /// Runs, and the primary's binlogs do not reach back to what it has: to be cloned anew.
    BeyondBinlogs(String),
    /// Transactions only in its relay logs that nobody acknowledged: to be archived and reset.
    ErrantInRelayLogs(GtidSet),
    /// A tail that is proved to be unacknowledged: to be archived and cloned anew.
    ToDiscard {
        /// Epoch of the deposed record that proves it.
        epoch: u64,
        /// What the tail begins above.
        kept: GtidSet,
        /// The tail.
        errant: GtidSet,
    },
    /// Has what the primary has not, and nothing proves that it may go (re-4).
    ErrantUnproven {
        /// The GTIDs.
        errant: GtidSet,
        /// What the proof lacks.
        why: String,
    },
    /// Attached, on the way to the primary's position.
    CatchingUp,
    /// Attached and complete, not in K: to be recorded.
    Admissible,
    /// In K by record, in another life or with other data: one R5 step.
    Reincarnated,
    /// In K; its ACKs are off: to be switched on.
    ToAdmit,
    /// In K and acknowledging; closed to readers.
    ToServe,
    /// In K, acknowledging, serving reads.
    Acker,
}

/// Classifies an instance other than the primary.
pub fn standing(observed: &Observed, ordinal: Ordinal) -> Standing {
    let Some(instance) = observed.instances.get(&ordinal) else {
        return Standing::NoPod;
    };
    match &instance.agent {
        Seen::Present(agent) => with_agent(observed, ordinal, agent),
        Seen::Absent => without_agent(instance, "it has no agent yet"),
        Seen::Unknown(silence) => without_agent(instance, &silence.why),
    }
}

fn without_agent(instance: &Instance, why: &str) -> Standing {
    match &instance.pod {
        Seen::Absent => Standing::NoPod,
        Seen::Present(pod) => match &pod.trouble {
            Some(trouble) => Standing::PodTrouble(trouble.clone()),
            None => Standing::Unreachable(why.to_owned()),
        },
        Seen::Unknown(silence) => Standing::Unreachable(silence.why.clone()),
    }
}

fn with_agent(observed: &Observed, ordinal: Ordinal, agent: &Agent) -> Standing {
    if let Some(job) = &agent.job {
        return Standing::Busy(job.clone());
    }
    match (&agent.mysqld, &agent.volume) {
        (Mysqld::Starting, _) => Standing::Busy("mysqld is starting".to_owned()),
        (Mysqld::Running(server), _) => running(observed, ordinal, agent, server),
        (Mysqld::Gated { .. }, Volume::Locked) => {
            Standing::Busy("its volume is locked by a predecessor".to_owned())
        }
        (Mysqld::Gated { .. }, Volume::Unreadable(message)) => {
            Standing::VolumeUnreadable(message.clone())
        }
        (
            Mysqld::Gated { .. },
            Volume::Empty | Volume::PartialClone | Volume::PartialInitialise,
        ) => Standing::ToClone,
        (
            Mysqld::Gated {
                failed_starts,
                message,
            },
            Volume::Data(data),
        ) => {
            if *failed_starts > 0 && agent.settled_milliseconds < RESTART_AFTER_MILLISECONDS {
                let message = message
                    .clone()
                    .unwrap_or_else(|| "no ERROR line in its log".to_owned());
                return Standing::StartFails(format!(
                    "mysqld ended {failed_starts} times before it answered: {message}"
                ));
            }
            gated(observed, agent, data)
        }
    }
}

/// re-2 and re-3, before boot.
fn gated(observed: &Observed, agent: &Agent, data: &OnDisk) -> Standing {
    let Some(primary) = observed.primary_server() else {
        return Standing::Busy(
            "waiting for the primary to be seen before it is compared with it".to_owned(),
        );
    };
    let deposed = data.uuid.and_then(|uuid| observed.record.deposed(uuid));
    let known = known(primary, deposed);
    let errant = data.binlog.union(&data.relay).subtract(&known);
    if errant.is_empty() && !data.undo {
        return Standing::ToBoot;
    }
    if agent.settled_milliseconds < SETTLED_MILLISECONDS {
        return Standing::Busy("comparing it with the primary".to_owned());
    }
    if data.binlog.intersect(&errant).is_empty() && !data.undo {
        // Only in relay logs: reset after a boot that applies nothing.
        return Standing::ToBoot;
    }
    match proved_unacknowledged(observed, &errant, agent, Some(data)) {
        Ok(epoch) => Standing::ToDiscard {
            epoch,
            kept: known,
            errant,
        },
        Err(why) => Standing::ErrantUnproven { errant, why },
    }
}

fn known(primary: &Server, deposed: Option<&Deposed>) -> GtidSet {
    let written = primary.written();
    match deposed {
        Some(deposed) => written.union(&deposed.kept),
        None => written,
    }
}

/// re-3: is every GTID of the tail proved to be unacknowledged? Also on a
/// replica that received the tail of a server that was deposed.
fn proved_unacknowledged(
    observed: &Observed,
    errant: &GtidSet,
    agent: &Agent,
    data: Option<&OnDisk>,
) -> Result<u64, String> {
    let mut epoch = 0;
    for uuid in errant.uuids() {
        let deposed = strict_record(observed, uuid)?;
        if !errant.only(uuid).intersect(&deposed.kept).is_empty() {
            return Err(format!(
                "{} was kept when server {uuid} was deposed",
                errant.only(uuid).intersect(&deposed.kept)
            ));
        }
        epoch = epoch.max(deposed.epoch);
        let own = agent.uuid() == Some(uuid);
        if agent.not_strict.contains(&deposed.epoch) {
            return Err(format!(
                "its agent noted that it may have answered OK without acknowledgements in epoch {}",
                deposed.epoch
            ));
        }
        match data {
            Some(data) if own => never_stopped_after(data, &errant.only(uuid))?,
            Some(_) | None if own => {}
            Some(_) | None => nobody_noted(observed, deposed.epoch)?,
        }
    }
    Ok(epoch)
}

fn strict_record(observed: &Observed, uuid: gtid::Uuid) -> Result<&Deposed, String> {
    let Some(deposed) = observed.record.deposed(uuid) else {
        return Err(format!(
            "no deposed record of server {uuid} says what was acknowledged"
        ));
    };
    if !deposed.strict {
        return Err(format!(
            "epoch {} of server {uuid} was not strict: it may have answered OK without acknowledgements",
            deposed.epoch
        ));
    }
    Ok(deposed)
}

/// The mark of a deposed server is with its own agent: all have to be asked.
fn nobody_noted(observed: &Observed, epoch: u64) -> Result<(), String> {
    for ordinal in (0..observed.spec.replicas).map(Ordinal) {
        match observed.agent(ordinal) {
            None => {
                return Err(format!(
                    "the agent of {} has to be asked what it noted of epoch {epoch}",
                    observed.name(ordinal)
                ));
            }
            Some(agent) if agent.not_strict.contains(&epoch) => {
                return Err(format!(
                    "the agent of {} noted that it may have answered OK without acknowledgements in epoch {epoch}",
                    observed.name(ordinal)
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A clean shutdown answers OK to whoever waits (fact 5).
fn never_stopped_after(data: &OnDisk, errant: &GtidSet) -> Result<(), String> {
    let in_tail = data
        .tail
        .iter()
        .fold(GtidSet::new(), |all, file| all.union(&file.gtids));
    let in_binlog = errant.intersect(&data.binlog);
    if !in_tail.contains(&in_binlog) {
        return Err("they reach back beyond its last two binlog files".to_owned());
    }
    let first = data
        .tail
        .iter()
        .position(|file| !file.gtids.intersect(&in_binlog).is_empty());
    let stopped = first.is_some_and(|first| data.tail.iter().skip(first).any(|file| file.stopped));
    match stopped {
        true => Err(
            "a clean shutdown follows them, which may have answered OK to waiting clients"
                .to_owned(),
        ),
        false => Ok(()),
    }
}

fn running(observed: &Observed, ordinal: Ordinal, agent: &Agent, server: &Server) -> Standing {
    let Some(primary) = &observed.record.primary else {
        return Standing::Busy("waiting for a primary to be recorded".to_owned());
    };
    if matches!(server.access, Access::Writes | Access::Opening) {
        return Standing::ToKill;
    }
    let Some(source) = observed.primary_server() else {
        return Standing::Busy("waiting for the primary to be seen".to_owned());
    };
    match server
        .replication
        .as_ref()
        .filter(|r| r.source == Some(primary.uuid) && r.receiver != Receiver::No)
    {
        Some(replication) => following(observed, ordinal, agent, server, source, replication),
        None => detached(observed, agent, server, source),
    }
}

/// re-5: after every boot, before it is attached.
fn detached(observed: &Observed, agent: &Agent, server: &Server, source: &Server) -> Standing {
    let errant = server.received().subtract(&source.written());
    if errant.is_empty() {
        return match purged_at_source(server) {
            Some(error) => Standing::BeyondBinlogs(error),
            None => Standing::ToFollow,
        };
    }
    if agent.settled_milliseconds < SETTLED_MILLISECONDS {
        return Standing::Busy("comparing it with the primary".to_owned());
    }
    if errant.intersect(&server.executed).is_empty() {
        return Standing::ErrantInRelayLogs(errant);
    }
    // Proved or not is decided again before its next boot, with its files read.
    match proved_unacknowledged(observed, &errant, agent, None) {
        Ok(_) => Standing::ToKill,
        Err(why) => Standing::ErrantUnproven { errant, why },
    }
}

/// ER_SERVER_SOURCE_FATAL_ERROR_READING_BINLOG: attaching again changes nothing.
fn purged_at_source(server: &Server) -> Option<String> {
    let error = server.replication.as_ref()?.receiver_error.as_ref()?;
    (error.starts_with("13114") && error.contains("purged")).then(|| error.clone())
}

fn following(
    observed: &Observed,
    ordinal: Ordinal,
    agent: &Agent,
    server: &Server,
    source: &Server,
    replication: &Replication,
) -> Standing {
    if let Some(error) = &replication.applier_error {
        return Standing::ApplierStopped(error.clone());
    }
    if replication.semi_sync_enabled && observed.record.acker(ordinal).is_none() {
        // A member of an older K: attached anew, with its ACKs off (R3).
        return detached(observed, agent, server, source);
    }
    if replication.receiver == Receiver::Connecting {
        let error = replication
            .receiver_error
            .as_deref()
            .unwrap_or("no answer yet");
        return Standing::Busy(format!("its receiver connects to the primary: {error}"));
    }
    if !replication.applier {
        return Standing::ToFollow;
    }
    // What the primary itself wrote may be newer than the primary's last word;
    // anything else that the primary has not is errant.
    let foreign = server.executed.subtract(&source.written());
    let errant = foreign.subtract(&foreign.only(source.uuid));
    if !errant.is_empty() {
        return Standing::ErrantUnproven {
            errant,
            why: "it was written on a replica".to_owned(),
        };
    }
    let me = Member {
        ordinal,
        uuid: server.uuid,
        incarnation: agent.incarnation.clone(),
    };
    match observed.record.acker(ordinal) {
        Some(member) if *member != me => Standing::Reincarnated,
        Some(_) if !(replication.semi_sync_enabled && replication.semi_sync_active) => {
            Standing::ToAdmit
        }
        Some(_) if server.access == Access::Closed => Standing::ToServe,
        Some(_) => Standing::Acker,
        None if source.written().contains(&server.received())
            || replication.position >= source.binlog_end =>
        {
            Standing::Admissible
        }
        None => Standing::CatchingUp,
    }
}
