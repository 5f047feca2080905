//! What an open cluster still lacks. Only words; what is done about it is the
//! plan's.

use crate::observed::{Observed, Pod};
use crate::record::Ordinal;
use crate::semisync::{ackers_before_raising, k_wanted};
use crate::standing::{Standing, standing};

/// The first thing that is not as wanted, as a sentence; `None`: Healthy.
pub(crate) fn first_shortcoming(observed: &Observed) -> Option<String> {
    let primary = observed.record.primary_ordinal()?;
    if let Some(why) = crate::plan::switchover_hindrance(observed) {
        return Some(why);
    }
    if let Some(drift) = observed
        .primary_server()
        .and_then(|server| server.drift.first())
    {
        return Some(format!(
            "a forced setting of {} was changed: {drift}",
            observed.name(primary)
        ));
    }
    for ordinal in (0..observed.spec.replicas)
        .map(Ordinal)
        .filter(|ordinal| *ordinal != primary)
    {
        if let Some(why) = shortcoming(&standing(observed, ordinal)) {
            return Some(format!("{}: {why}", observed.name(ordinal)));
        }
    }
    if let Some(extra) = observed
        .instances
        .keys()
        .find(|ordinal| ordinal.0 >= observed.spec.replicas)
    {
        return Some(format!(
            "{} is more than spec.replicas={} asks for; scaling down is not built yet, so it is kept: set spec.replicas back",
            observed.name(*extra),
            observed.spec.replicas
        ));
    }
    if observed.spec.acknowledge != observed.record.acknowledge {
        return Some(format!(
            "spec.durability.acknowledge asks for {:?}; changing it from {:?} is not built yet: set it back",
            observed.spec.acknowledge, observed.record.acknowledge
        ));
    }
    let k = k_wanted(observed.spec.replicas);
    if observed.record.k != k {
        return Some(format!(
            "ackers that a commit waits for: {}, wanted are {k} as soon as {} are recorded",
            observed.record.k,
            ackers_before_raising(observed.spec.replicas)
        ));
    }
    unlabelled(observed).or_else(|| outdated(observed))
}

/// Clients reach what the labels say.
fn unlabelled(observed: &Observed) -> Option<String> {
    if observed
        .primary_server()
        .is_some_and(|server| !server.app_ready)
    {
        return Some("the application's account is to be made".to_owned());
    }
    let primary = observed.record.primary_ordinal()?;
    let version = observed.record.version;
    if observed
        .agent(primary)
        .is_some_and(|agent| agent.seen_version < version)
    {
        return Some(format!(
            "{} is to hear of version {version} of the record",
            observed.name(primary)
        ));
    }
    let ordinal = crate::plan::wrongly_labelled(observed)?;
    Some(format!(
        "the role label of {} is to be set",
        observed.name(ordinal)
    ))
}

fn outdated(observed: &Observed) -> Option<String> {
    let is_outdated = |pod: &Pod| pod.outdated;
    let (ordinal, _) = observed
        .instances
        .iter()
        .find(|(_, instance)| instance.pod.present().is_some_and(is_outdated))?;
    Some(format!(
        "{} runs with an older spec and is to be restarted",
        observed.name(*ordinal)
    ))
}

/// What is wrong with a standing; `None`: nothing.
pub(crate) fn shortcoming(standing: &Standing) -> Option<String> {
    match standing {
        Standing::Acker => None,
        Standing::NoPod => Some("its Pod does not exist".to_owned()),
        Standing::PodTrouble(trouble) => Some(trouble.clone()),
        Standing::Unreachable(why) => Some(format!("not reachable: {why}")),
        Standing::ApplierStopped(error) => Some(format!(
            "its applier stopped: {error}. It still acknowledges; mend on this instance what the error names"
        )),
        Standing::Busy(what) => Some(what.clone()),
        Standing::VolumeUnreadable(why) => Some(format!("its volume cannot be read: {why}")),
        Standing::ToClone => Some("its volume is empty and is to be cloned".to_owned()),
        Standing::ToBoot => Some("it is to be started".to_owned()),
        Standing::StartFails(why) => Some(why.clone()),
        Standing::ToKill => {
            Some("a server that is not the primary runs on and is to be stopped".to_owned())
        }
        Standing::ToFollow => Some("it is to be attached to the primary".to_owned()),
        Standing::BeyondBinlogs(error) => Some(format!(
            "the primary has not kept the binlogs that it would need ({error}); it is cloned anew on a new volume"
        )),
        Standing::ErrantInRelayLogs(errant) => Some(format!(
            "its relay logs hold {errant}, which nobody acknowledged; they are archived and reset"
        )),
        Standing::ToDiscard { errant, .. } => Some(format!(
            "its tail {errant} is proved to be unacknowledged; it is archived and the instance is cloned anew"
        )),
        Standing::ErrantUnproven { errant, why } => Some(format!(
            "it holds {errant}, which the primary has not, and it is not proved that this may go: {why}. Its volume is kept and it stays out of the cluster"
        )),
        Standing::CatchingUp => Some("it catches up with the primary".to_owned()),
        Standing::Admissible => Some("it is to be recorded as an acker".to_owned()),
        Standing::Reincarnated => {
            Some("it restarted and is to be recorded anew as an acker".to_owned())
        }
        Standing::ToAdmit => Some("its acknowledgements are to be switched on".to_owned()),
        Standing::ToServe => Some("it is to be opened for reads".to_owned()),
    }
}
