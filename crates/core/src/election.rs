//! Who becomes primary (fo-3, fo-4). Chooses among fenced members only; never
//! looks at Pod readiness, at roles or at "Pod 0".

use gtid::GtidSet;

use crate::observed::Observed;
use crate::record::Ordinal;
use crate::semisync::{Fenced, FencedMember};

/// The result of an election.
#[derive(Debug, Clone, PartialEq)]
pub enum Election {
    /// This member holds everything and has applied it.
    Elected(Candidate),
    /// This member holds everything; its applier is on the way.
    Applying(Ordinal),
    /// This member holds everything and is behind the gate.
    Boot(Ordinal),
    /// Two members hold what the other has not (fo-3).
    Diverged(String),
    /// What was acknowledged before this epoch is not here (fo-3).
    AckedDataMissing(String),
    /// Every member that holds everything has a broken applier (fo-4).
    ApplierBroken(String),
    /// Nobody can be elected, in words.
    Nobody(String),
}

/// The member that becomes primary, and U.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Who.
    pub member: FencedMember,
    /// U: everything that can have been acknowledged.
    pub everything: GtidSet,
    /// The other fenced members with R = U: K′.
    pub ackers: Vec<FencedMember>,
}

/// Elects among the fenced.
pub fn elect(observed: &Observed, fenced: &Fenced) -> Election {
    let eligible: Vec<&FencedMember> = fenced
        .members()
        .iter()
        .filter(|m| observed.record.deposed(m.member.uuid).is_none())
        .collect();
    let Some(everything) = maximum(&eligible) else {
        return match eligible.is_empty() {
            true => {
                Election::Nobody("no acker without an open deposed record is fenced".to_owned())
            }
            false => Election::Diverged(describe(observed, &eligible)),
        };
    };
    if !everything.contains(&observed.record.watermark) {
        let missing = observed.record.watermark.subtract(&everything);
        return Election::AckedDataMissing(format!(
            "the fenced members lack {missing}, which was acknowledged before epoch {}",
            observed.record.epoch
        ));
    }
    let mut holders: Vec<&FencedMember> = eligible
        .into_iter()
        .filter(|m| m.received == everything)
        .collect();
    holders.sort_by(|a, b| {
        (
            a.version.is_none(),
            a.version,
            b.executed.count(),
            a.member.ordinal,
        )
            .cmp(&(
                b.version.is_none(),
                b.version,
                a.executed.count(),
                b.member.ordinal,
            ))
    });
    choose(observed, fenced, &holders, everything)
}

/// The maximum of a chain of sets; `None` if they are not one (or none).
fn maximum(members: &[&FencedMember]) -> Option<GtidSet> {
    let mut maximum: Option<&GtidSet> = None;
    for member in members {
        maximum = match maximum {
            None => Some(&member.received),
            Some(so_far) if member.received.contains(so_far) => Some(&member.received),
            Some(so_far) if so_far.contains(&member.received) => Some(so_far),
            Some(_) => return None,
        };
    }
    maximum.cloned()
}

fn choose(
    observed: &Observed,
    fenced: &Fenced,
    holders: &[&FencedMember],
    everything: GtidSet,
) -> Election {
    let mut broken = Vec::new();
    for holder in holders {
        let ordinal = holder.member.ordinal;
        if holder.executed.contains(&everything) && holder.version.is_some() {
            let ackers = fenced
                .members()
                .iter()
                .filter(|m| m.member.ordinal != ordinal && m.received == everything)
                .cloned()
                .collect();
            return Election::Elected(Candidate {
                member: (*holder).clone(),
                everything,
                ackers,
            });
        }
        if holder.version.is_none() {
            return Election::Boot(ordinal);
        }
        match &holder.applier_error {
            None => return Election::Applying(ordinal),
            Some(error) => broken.push(format!("{}: {error}", observed.name(ordinal))),
        }
    }
    Election::ApplierBroken(broken.join("; "))
}

fn describe(observed: &Observed, members: &[&FencedMember]) -> String {
    members
        .iter()
        .map(|m| format!("{} has {}", observed.name(m.member.ordinal), m.received))
        .collect::<Vec<_>>()
        .join("; ")
}
