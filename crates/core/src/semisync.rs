//! The acker set K: who can acknowledge, who is attached, who is proved to be
//! stopped. Never counts what was not seen.

use gtid::GtidSet;

use crate::observed::{Access, Mysqld, Observed, Position, Receiver, Seen, Server};
use crate::record::{Acknowledge, Member, Ordinal, Record};

/// k for a number of instances: floor(N/2) (section 3).
pub fn k_wanted(replicas: u32) -> u32 {
    replicas / 2
}

/// How large K must be before k may be raised: with exactly k ackers the loss
/// of one would stop writes at once, so one more where there can be one.
pub fn ackers_before_raising(replicas: u32) -> usize {
    let k = k_wanted(replicas);
    let wanted = if k <= 1 {
        k
    } else {
        (k + 1).min(replicas.saturating_sub(1))
    };
    wanted as usize
}

/// How many members of K must be fenced so that no commit can be acknowledged
/// any more: |K|−k+1; nothing can have been acknowledged with |K| < k; with
/// k = 0 nothing is ever provable (fo-2).
pub fn fenced_needed(record: &Record) -> Option<usize> {
    let k = record.k as usize;
    match (k, record.ackers.len()) {
        (0, _) => None,
        (k, ackers) if ackers < k => Some(0),
        (k, ackers) => Some(ackers - k + 1),
    }
}

/// A member that is proved to be stopped, with R read after the stop.
#[derive(Debug, Clone, PartialEq)]
pub struct FencedMember {
    /// Who.
    pub member: Member,
    /// R.
    pub received: GtidSet,
    /// What it has applied of it.
    pub executed: GtidSet,
    /// mysqld's version; `None` while it is behind the gate.
    pub version: Option<(u16, u16, u16)>,
    /// Why its applier does not run on, if so.
    pub applier_error: Option<String>,
}

/// Proof that so few members of K can still acknowledge that no commit can be
/// (fo-2). There is no other way to get one.
#[derive(Debug, Clone, PartialEq)]
pub struct Fenced {
    members: Vec<FencedMember>,
}

/// Why there is no such proof (yet).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfenced {
    /// |K|−k+1; `None`: never, since k = 0.
    pub needed: Option<usize>,
    /// How many are fenced.
    pub fenced: usize,
    /// Who is missing and why.
    pub missing: Vec<(Ordinal, String)>,
}

impl Fenced {
    /// The proof, if the members of K seen fenced since version `since` are enough.
    pub fn proven_by(observed: &Observed, since: u64) -> Result<Fenced, Unfenced> {
        let mut members = Vec::new();
        let mut missing = Vec::new();
        for member in &observed.record.ackers {
            match fenced_member(observed, member, since) {
                Ok(fenced) => members.push(fenced),
                Err(why) => missing.push((member.ordinal, why)),
            }
        }
        // With |K| < k one fenced member is needed all the same: somebody has to be elected.
        let needed = fenced_needed(&observed.record).map(|needed| needed.max(1));
        match needed {
            Some(needed) if members.len() >= needed => Ok(Fenced { members }),
            Some(_) | None => Err(Unfenced {
                needed,
                fenced: members.len(),
                missing,
            }),
        }
    }

    /// The fenced members, in the order of the record.
    pub fn members(&self) -> &[FencedMember] {
        &self.members
    }
}

/// Fenced, R read after it, incarnation unchanged (or `Fsynced`); else why not.
pub fn fenced_member(
    observed: &Observed,
    member: &Member,
    since: u64,
) -> Result<FencedMember, String> {
    let agent = reachable_life(observed, member)?;
    if agent.seen_version < since {
        return Err(format!("it has not confirmed version {since} yet"));
    }
    match &agent.mysqld {
        Mysqld::Starting => Err("its mysqld is starting".to_owned()),
        Mysqld::Running(server) => running_fenced(server, member, since),
        Mysqld::Gated { .. } => match agent.gated_data() {
            Some(data) if data.uuid == Some(member.uuid) => Ok(FencedMember {
                member: member.clone(),
                received: data.binlog.union(&data.relay),
                executed: data.binlog.clone(),
                version: None,
                applier_error: None,
            }),
            Some(_) | None => Err("its volume does not hold the recorded server's data".to_owned()),
        },
    }
}

fn running_fenced(server: &Server, member: &Member, since: u64) -> Result<FencedMember, String> {
    if server.uuid != member.uuid {
        return Err(format!(
            "its server is {}, recorded is {}",
            server.uuid, member.uuid
        ));
    }
    if server.as_of_version < since {
        return Err("its received set has not been read after the fence yet".to_owned());
    }
    let replication = server.replication.as_ref();
    if replication.is_some_and(|r| r.receiver != Receiver::No || r.semi_sync_enabled) {
        return Err("its receiver is not confirmed to be stopped".to_owned());
    }
    Ok(FencedMember {
        member: member.clone(),
        received: server.received(),
        executed: server.executed.clone(),
        version: Some(server.version),
        applier_error: replication.and_then(|r| r.applier_error.clone()),
    })
}

/// The agent of a member, if it answers and its incarnation still proves what it acknowledged.
pub fn reachable_life<'a>(
    observed: &'a Observed,
    member: &Member,
) -> Result<&'a crate::observed::Agent, String> {
    let agent = match observed
        .instances
        .get(&member.ordinal)
        .map(|instance| &instance.agent)
    {
        Some(Seen::Present(agent)) => agent,
        Some(Seen::Unknown(silence)) => {
            return Err(format!("its agent does not answer ({})", silence.why));
        }
        Some(Seen::Absent) | None => return Err("it has no Pod".to_owned()),
    };
    let data_is_gone = match (&agent.mysqld, agent.uuid()) {
        (Mysqld::Starting, _) => false,
        (Mysqld::Gated { .. } | Mysqld::Running(_), uuid) => uuid != Some(member.uuid),
    };
    if data_is_gone {
        return Err("its volume does not hold the recorded server's data".to_owned());
    }
    if observed.record.acknowledge == Acknowledge::Received
        && agent.incarnation != member.incarnation
    {
        return Err("it restarted and lost its memory; with `Received` that proves nothing about what it acknowledged".to_owned());
    }
    Ok(agent)
}

/// Whether this member acknowledges now, as its own agent says (section 4).
pub fn is_attached(observed: &Observed, member: &Member) -> bool {
    let Some(primary) = &observed.record.primary else {
        return false;
    };
    let Some(agent) = observed.agent(member.ordinal) else {
        return false;
    };
    let Some(server) = agent.server() else {
        return false;
    };
    agent.incarnation == member.incarnation
        && server.uuid == member.uuid
        && server
            .follows(primary.uuid)
            .is_some_and(|r| r.semi_sync_enabled && r.semi_sync_active)
}

/// The attached ackers.
pub fn attached(observed: &Observed) -> Vec<Ordinal> {
    observed
        .record
        .ackers
        .iter()
        .filter(|member| is_attached(observed, member))
        .map(|member| member.ordinal)
        .collect()
}

/// Whether a server has received everything up to the end of the primary's binlog.
pub fn holds(observed: &Observed, ordinal: Ordinal, primary: &Server) -> bool {
    let Some(server) = observed.server(ordinal) else {
        return false;
    };
    // An end that was not read is no bar.
    let end_is_known = primary.binlog_end != Position::default();
    server
        .follows(primary.uuid)
        .is_some_and(|r| end_is_known && r.position >= primary.binlog_end)
        || (server.follows(primary.uuid).is_some()
            && server.received().contains(&primary.written()))
}

/// Whether everything that a primary has is held by at least k attached ackers (section 9).
pub fn everything_held(observed: &Observed, primary: &Server) -> bool {
    let holders = attached(observed)
        .into_iter()
        .filter(|ordinal| holds(observed, *ordinal, primary))
        .count();
    holders >= observed.record.k as usize
}

/// Whose replication accounts are open on an instance (section 14). On the
/// primary only those of K, and of instances that are seen to be unable to
/// acknowledge: a member of an older K that was never fenced and reconnects by
/// itself must not acknowledge to a primary that does not count it (R3).
pub fn may_replicate(observed: &Observed, from: Ordinal) -> Vec<Ordinal> {
    let is_primary = observed.record.primary_ordinal() == Some(from);
    let harmless = |ordinal: Ordinal| match observed.agent(ordinal).map(|agent| &agent.mysqld) {
        None => false,
        Some(Mysqld::Gated { .. } | Mysqld::Starting) => true,
        Some(Mysqld::Running(server)) => server
            .replication
            .as_ref()
            .is_none_or(|replication| !replication.semi_sync_enabled),
    };
    observed
        .instances
        .keys()
        .copied()
        .filter(|ordinal| *ordinal != from)
        .filter(|ordinal| {
            !is_primary || observed.record.acker(*ordinal).is_some() || harmless(*ordinal)
        })
        .collect()
}

/// Whether a receiver that may replicate knocks at the primary, whose list may
/// be older than what is seen now.
pub(crate) fn somebody_knocks(observed: &Observed) -> bool {
    let knocks = |server: &Server| {
        server
            .replication
            .as_ref()
            .is_some_and(|replication| replication.receiver == Receiver::Connecting)
    };
    observed.record.primary_ordinal().is_some_and(|primary| {
        may_replicate(observed, primary)
            .into_iter()
            .any(|ordinal| observed.server(ordinal).is_some_and(knocks))
    })
}

/// Whether a primary takes writes.
pub fn serves_writes(server: &Server) -> bool {
    server.access == Access::Writes
}
