//! How the recorded primary looks, and whether it may be given up (fo-0).
//! Three sides are kept apart: operator ↔ agent, acker ↔ primary, and what the
//! agent says of its own child.

use crate::observed::{Agent, Mysqld, Observed, Seen, Volume};
use crate::record::{Member, Ordinal};
use crate::semisync::{fenced_needed, reachable_life};

/// How the recorded primary looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrimaryView {
    /// mysqld answers on the kept connection.
    Answers,
    /// mysqld is being started.
    Starting,
    /// mysqld is gone, says its agent; `clean`: by a shutdown that may have
    /// answered OK to waiters (fact 5), so only it can go on.
    Down {
        /// A Stop event stands at the end of its binlog.
        clean: bool,
    },
    /// mysqld lives and does not answer.
    Stuck {
        /// For how long.
        milliseconds: u64,
    },
    /// Its agent does not answer.
    Silent {
        /// For how long.
        milliseconds: u64,
        /// Why, in words.
        why: String,
    },
    /// Its agent answers, but the recorded server's data is not on the volume.
    DataGone,
}

/// Looks at the recorded primary.
pub fn view(observed: &Observed, primary: &Member) -> PrimaryView {
    let agent = match observed
        .instances
        .get(&primary.ordinal)
        .map(|instance| &instance.agent)
    {
        Some(Seen::Present(agent)) => agent,
        Some(Seen::Unknown(silence)) => {
            return PrimaryView::Silent {
                milliseconds: silence.milliseconds,
                why: silence.why.clone(),
            };
        }
        Some(Seen::Absent) | None => {
            return PrimaryView::Silent {
                milliseconds: 0,
                why: "it has no Pod".to_owned(),
            };
        }
    };
    match &agent.mysqld {
        Mysqld::Running(server) if server.uuid != primary.uuid => PrimaryView::DataGone,
        Mysqld::Running(_)
            if agent.unanswered_milliseconds >= observed.spec.silence_milliseconds =>
        {
            PrimaryView::Stuck {
                milliseconds: agent.unanswered_milliseconds,
            }
        }
        Mysqld::Running(_) => PrimaryView::Answers,
        Mysqld::Starting => PrimaryView::Starting,
        Mysqld::Gated { .. } => gated(agent, primary),
    }
}

fn gated(agent: &Agent, primary: &Member) -> PrimaryView {
    match &agent.volume {
        Volume::Data(data) if data.uuid == Some(primary.uuid) => PrimaryView::Down {
            clean: data.tail.last().is_some_and(|tail| tail.stopped),
        },
        Volume::Locked => PrimaryView::Silent {
            milliseconds: 0,
            why: "its volume is locked by a predecessor".to_owned(),
        },
        Volume::Unreadable(message) => PrimaryView::Silent {
            milliseconds: 0,
            why: message.clone(),
        },
        Volume::Data(_) | Volume::Empty | Volume::PartialInitialise | Volume::PartialClone => {
            PrimaryView::DataGone
        }
    }
}

/// What fo-0 says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspicion {
    /// It answers, or is being started.
    None,
    /// It does not, but this proves nothing yet; the sentence says what is waited for.
    Unclear(String),
    /// It is lost; the sentence says how that is known.
    Lost(String),
}

/// fo-0. A message is not a fence: this only decides whether to begin.
pub fn suspicion(observed: &Observed, primary: &Member) -> Suspicion {
    let name = observed.name(primary.ordinal);
    let bound = observed.spec.silence_milliseconds;
    match view(observed, primary) {
        PrimaryView::Answers | PrimaryView::Starting => Suspicion::None,
        PrimaryView::Down { .. } => Suspicion::Lost(format!(
            "the agent of {name} says that its mysqld has ended"
        )),
        PrimaryView::DataGone => Suspicion::Lost(format!(
            "the volume of {name} does not hold server {} any more",
            primary.uuid
        )),
        // Sentences go into the status: nothing in them may tick.
        PrimaryView::Stuck { .. } => confirm(
            observed,
            &format!("mysqld of {name} does not answer its agent"),
        ),
        // The ackers' own clocks say enough where the operator's begins anew with
        // every Pod: one that never gets an address is silent for 0 ms for ever.
        PrimaryView::Silent { milliseconds, why }
            if milliseconds < bound && !enough_say_silent(observed) =>
        {
            Suspicion::Unclear(format!(
                "the agent of {name} does not answer ({why}); {bound} ms of silence make it suspect"
            ))
        }
        PrimaryView::Silent { why, .. } => confirm(
            observed,
            &format!("the agent of {name} does not answer ({why})"),
        ),
    }
}

/// The second side: do the ackers hear the primary?
fn confirm(observed: &Observed, first: &str) -> Suspicion {
    let silent: Vec<Ordinal> = observed
        .record
        .ackers
        .iter()
        .filter(|member| acker_hears_nothing(observed, member))
        .map(|member| member.ordinal)
        .collect();
    let needed = fenced_needed(&observed.record).unwrap_or(observed.record.ackers.len());
    if silent.len() >= needed {
        let seconds = observed.spec.silence_milliseconds / 1000;
        return Suspicion::Lost(format!(
            "{first} and {} heard nothing from it for {seconds} s",
            ackers_in_words(observed, &silent)
        ));
    }
    Suspicion::Unclear(format!(
        "{first}, but its ackers still hear it: only the operator is cut off, so nothing is done"
    ))
}

fn ackers_in_words(observed: &Observed, silent: &[Ordinal]) -> String {
    match silent.is_empty() {
        true => "no acker".to_owned(),
        false => observed.names(silent.iter().copied()),
    }
}

/// fo-0 by the words of ackers that answer, none of it by what was not seen.
fn enough_say_silent(observed: &Observed) -> bool {
    let bound = observed.spec.silence_milliseconds;
    let say = observed.record.ackers.iter().filter(|member| {
        observed
            .agent(member.ordinal)
            .and_then(|agent| agent.source_silent_milliseconds)
            .is_some_and(|silent| silent >= bound)
    });
    let needed = fenced_needed(&observed.record).unwrap_or(observed.record.ackers.len());
    !observed.record.ackers.is_empty() && say.count() >= needed.max(1)
}

fn acker_hears_nothing(observed: &Observed, member: &Member) -> bool {
    match observed.agent(member.ordinal) {
        None => true,
        Some(agent) => match agent.source_silent_milliseconds {
            Some(silent) => silent >= observed.spec.silence_milliseconds,
            // Behind the gate, or following nobody: it hears nothing.
            None => true,
        },
    }
}

/// Whether a failover could be proved now (fo-2, before the fences are asked for).
pub fn provable(observed: &Observed) -> Result<(), String> {
    let record = &observed.record;
    let Some(needed) = fenced_needed(record) else {
        return Err(
            "k is 0 in this epoch: acknowledged writes may be on the primary alone".to_owned(),
        );
    };
    let mut missing = Vec::new();
    for member in &record.ackers {
        if let Err(why) = reachable_life(observed, member) {
            missing.push(format!("{}: {why}", observed.name(member.ordinal)));
        }
    }
    let reachable = record.ackers.len() - missing.len();
    if record.ackers.is_empty() {
        return Err("no acker is recorded in this epoch".to_owned());
    }
    match reachable >= needed.max(1) {
        true => watermark_reached(observed),
        false => Err(format!(
            "of {} recorded ackers {needed} must answer and {reachable} can be asked: {}",
            record.ackers.len(),
            missing.join("; ")
        )),
    }
}

/// fo-3, foreseen: what the ackers have does not grow while the primary is gone.
fn watermark_reached(observed: &Observed) -> Result<(), String> {
    let mut all = gtid::GtidSet::new();
    for member in &observed.record.ackers {
        let Ok(agent) = reachable_life(observed, member) else {
            continue;
        };
        match agent.received() {
            Some(received) => all = all.union(&received),
            // Starting: not known yet.
            None => return Ok(()),
        }
    }
    let missing = observed.record.watermark.subtract(&all);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "the ackers that can be asked lack {missing}, which was acknowledged before"
        )),
    }
}

/// An acker that may still answer: an operator that has just begun to lead has
/// heard from nobody yet, and unknown is not absent.
pub fn not_heard_yet(observed: &Observed) -> Option<Ordinal> {
    let bound = observed.spec.silence_milliseconds;
    let ackers = observed
        .record
        .ackers
        .iter()
        .filter(|_| observed.record.k > 0);
    ackers.map(|member| member.ordinal).find(|ordinal| {
        let agent = observed
            .instances
            .get(ordinal)
            .map(|instance| &instance.agent);
        matches!(agent, Some(Seen::Unknown(silence)) if silence.milliseconds < bound)
    })
}

/// Whether the recorded primary may start again where it is (re-1); else why not.
pub fn resumable(observed: &Observed, primary: &Member) -> Result<(), String> {
    let name = observed.name(primary.ordinal);
    let Some(data) = observed.agent(primary.ordinal).and_then(Agent::gated_data) else {
        return Err(format!("{name} does not stand behind its gate with data"));
    };
    if data.uuid != Some(primary.uuid) {
        return Err(format!(
            "the volume of {name} does not hold server {}",
            primary.uuid
        ));
    }
    if !data.binlog.contains(&observed.record.watermark) {
        let missing = observed.record.watermark.subtract(&data.binlog);
        return Err(format!(
            "the binlog of {name} lacks {missing}, which was acknowledged"
        ));
    }
    for (ordinal, instance) in &observed.instances {
        let Some(received) = instance.agent.present().and_then(Agent::received) else {
            continue;
        };
        if *ordinal == primary.ordinal {
            continue;
        }
        // A member's R counts as a whole. Anybody else may hold a tail of its own
        // (a deposed server): of that, only what the primary itself wrote counts.
        let counts = match observed.record.acker(*ordinal) {
            Some(_) => received,
            None => received.only(primary.uuid),
        };
        if !data.binlog.contains(&counts) {
            let more = counts.subtract(&data.binlog);
            return Err(format!(
                "{} has {more}, which the binlog of {name} lacks",
                observed.name(*ordinal)
            ));
        }
    }
    Ok(())
}
