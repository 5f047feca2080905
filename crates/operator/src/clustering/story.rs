//! What happened in a pass, as events: derived from the record before and
//! after, from what was performed, and from the lines of the instances. Pure;
//! never looks at anything but these.

use std::collections::BTreeMap;

use katazuke_core::conditions::InstanceReport;
use katazuke_core::record::{Kind, Ordinal, Record, Step, Transition};
use katazuke_core::{Action, Directive, Judgement, Observed, Situation};

use super::act::{Effect, Performed};
use crate::events::{Happening, Reason};

/// About the cluster, or about one instance too.
#[derive(Debug, PartialEq)]
pub(super) struct Told {
    /// The instance whose Pod is to carry it too.
    pub instance: Option<Ordinal>,
    /// What.
    pub happening: Happening,
}

fn cluster(reason: Reason, note: impl Into<String>) -> Told {
    Told {
        instance: None,
        happening: Happening::new(reason, note),
    }
}

fn instance(of: Ordinal, reason: Reason, note: impl Into<String>) -> Told {
    Told {
        instance: Some(of),
        happening: Happening::new(reason, note),
    }
}

/// A situation that was not held in the pass before.
pub(super) fn situation(former: Option<Situation>, judgement: &Judgement) -> Option<Told> {
    if former == Some(judgement.situation) {
        return None;
    }
    let reason = match judgement.situation {
        Situation::StatusBehind => Reason::StatusBehind,
        Situation::Diverged => Reason::Diverged,
        Situation::AckedDataMissing => Reason::AckedDataMissing,
        Situation::ApplierBroken => Reason::ApplierBroken,
        Situation::Blocked => Reason::Blocked,
        Situation::PrimaryUnclear => Reason::PrimarySuspected,
        Situation::WritesWaiting => Reason::WritesWaiting,
        Situation::Degraded => Reason::ClusterDegraded,
        Situation::Healthy => Reason::ClusterHealthy,
        Situation::Deleting
        | Situation::Paused
        | Situation::Offline
        | Situation::Bootstrapping
        | Situation::FailingOver
        | Situation::SwitchingOver
        | Situation::Promoting
        | Situation::Resuming
        | Situation::Opening => return None,
    };
    Some(cluster(reason, judgement.why.clone()))
}

/// A change of the record that was written in this pass.
pub(super) fn record(observed: &Observed, judgement: &Judgement, after: &Record) -> Vec<Told> {
    let before = &observed.record;
    let mut told = transition(observed, judgement, before.transition.as_ref(), after);
    let (from, to) = (before.primary_ordinal(), after.primary_ordinal());
    match (&before.primary, &after.primary) {
        (None, Some(primary)) => told.push(cluster(
            Reason::ClusterBootstrapped,
            format!("{} is the first primary", observed.name(primary.ordinal)),
        )),
        (Some(old), Some(new)) if old.uuid != new.uuid => told.push(instance(
            new.ordinal,
            Reason::PrimaryElected,
            format!(
                "{} is the primary after {} (epoch {})",
                named(observed, to),
                named(observed, from),
                after.epoch
            ),
        )),
        (Some(_), Some(_) | None) | (None, None) => {}
    }
    if after.handled_request != before.handled_request && from == to && after.transition.is_none() {
        let id = after.handled_request.clone().unwrap_or_default();
        told.push(cluster(
            Reason::SwitchoverRefused,
            format!(
                "request {id} was not carried out: {}",
                refused(observed, judgement)
            ),
        ));
    }
    told.extend(ackers(observed, before, after));
    told
}

fn transition(
    observed: &Observed,
    judgement: &Judgement,
    before: Option<&Transition>,
    after: &Record,
) -> Vec<Told> {
    let told = match (before, &after.transition) {
        (None, Some(begun)) => began(observed, judgement, begun),
        (
            Some(was),
            Some(Transition {
                step: Step::Promoting,
                kind: Kind::Failover,
                ..
            }),
        ) if was.step != Step::Promoting => {
            let kept = &after.watermark;
            let note = format!("no commit can be acknowledged any more; kept is {kept}");
            Some(cluster(Reason::AckersFenced, note))
        }
        (Some(ended), None) => over(observed, judgement, ended, after),
        (Some(_), Some(_)) | (None, None) => None,
    };
    told.into_iter().collect()
}

fn named(observed: &Observed, of: Option<Ordinal>) -> String {
    of.map_or_else(|| "none".to_owned(), |of| observed.name(of))
}

fn began(observed: &Observed, judgement: &Judgement, begun: &Transition) -> Option<Told> {
    let (id, from) = (&begun.id, named(observed, begun.from));
    match begun.kind {
        Kind::Failover => {
            let note = format!("{from} is left: {}", judgement.why);
            Some(cluster(Reason::FailoverStarted, note))
        }
        Kind::Switchover => {
            let to = named(observed, begun.to);
            let note = format!("request {id}: from {from} to {to}");
            Some(cluster(Reason::SwitchoverStarted, note))
        }
        Kind::Reconfigure => None,
    }
}

/// Who blocked the freeze, where somebody did; else what was judged.
fn refused(observed: &Observed, judgement: &Judgement) -> String {
    let primary = observed.record.primary_ordinal();
    let refusal = primary.and_then(|of| observed.instances.get(&of)?.refusal.as_ref());
    match (refusal, &observed.request) {
        (Some(refusal), _) => refusal.message.clone(),
        (None, Some(request)) if request.to.is_some() && request.to == primary => {
            "that instance is the primary already".to_owned()
        }
        (None, Some(request))
            if request
                .to
                .is_some_and(|to| !observed.instances.contains_key(&to)) =>
        {
            format!(
                "there is no such instance; there are {}",
                observed.names(observed.instances.keys().copied())
            )
        }
        (None, Some(_) | None) => judgement.why.clone(),
    }
}

fn over(
    observed: &Observed,
    judgement: &Judgement,
    ended: &Transition,
    after: &Record,
) -> Option<Told> {
    let (id, from) = (&ended.id, named(observed, ended.from));
    let (primary, epoch) = (named(observed, after.primary_ordinal()), after.epoch);
    let (reason, note) = match (ended.kind, ended.step) {
        (Kind::Failover, Step::Promoting) => (
            Reason::FailoverCompleted,
            format!("from {from} to {primary} (epoch {epoch})"),
        ),
        (Kind::Switchover, Step::Promoting) => (
            Reason::SwitchoverCompleted,
            format!("request {id}: from {from} to {primary} (epoch {epoch})"),
        ),
        (Kind::Failover | Kind::Switchover, Step::Fencing | Step::Demoting | Step::Removing) => (
            Reason::TransitionAborted,
            format!(
                "{id} was undone, {primary} stays the primary: {}",
                refused(observed, judgement)
            ),
        ),
        (Kind::Reconfigure, Step::Fencing | Step::Demoting | Step::Removing | Step::Promoting) => {
            return None;
        }
    };
    Some(cluster(reason, note))
}

fn ackers(observed: &Observed, before: &Record, after: &Record) -> Vec<Told> {
    let mut told = Vec::new();
    for acker in after
        .ackers
        .iter()
        .filter(|acker| !before.ackers.contains(acker))
    {
        told.push(instance(
            acker.ordinal,
            Reason::InstanceRejoined,
            format!("{} may acknowledge", observed.name(acker.ordinal)),
        ));
    }
    let changed_primary = before.primary_ordinal() != after.primary_ordinal();
    for acker in before
        .ackers
        .iter()
        .filter(|acker| after.acker(acker.ordinal).is_none())
    {
        if !changed_primary {
            told.push(instance(
                acker.ordinal,
                Reason::AckerRemoved,
                format!("{} may no longer acknowledge", observed.name(acker.ordinal)),
            ));
        }
    }
    told
}

/// What was performed.
pub(super) fn performed(observed: &Observed, performed: &Performed<'_>) -> Option<Told> {
    let (of, text, reason) = match performed.action {
        Action::Record(_) => return None,
        Action::Order {
            to,
            uuid: _,
            directive,
        } => (*to, directive.name(), ordered(directive)),
        Action::Role { of, role: _ } => (*of, "setting the role label", None),
        Action::CreateInstance { ordinal, .. } => (
            *ordinal,
            "creating the instance",
            Some((Reason::InstanceCreated, "its Pod was created".to_owned())),
        ),
        Action::DeletePod { ordinal, why, .. } => (
            *ordinal,
            "deleting the Pod",
            Some((
                Reason::InstanceDeleted,
                format!("its Pod was deleted: {why}"),
            )),
        ),
    };
    let name = observed.name(of);
    match &performed.result {
        Ok(Effect::Done | Effect::Started | Effect::Applied) => {
            reason.map(|(reason, note)| instance(of, reason, format!("{name}: {note}")))
        }
        Ok(Effect::Recorded(_) | Effect::AsWanted) => None,
        Ok(Effect::Refused { gate, message }) => Some(instance(
            of,
            Reason::OrderRefused,
            format!("{name} refused {text} ({gate:?}): {message}"),
        )),
        Ok(Effect::Failed(message)) => Some(instance(
            of,
            Reason::ActionFailed,
            format!("{name}: {text} failed: {message}"),
        )),
        Err(error) => Some(instance(
            of,
            Reason::ActionFailed,
            format!("{name}: {text}: {error}"),
        )),
    }
}

/// Steps that are worth an event when they are done.
fn ordered(directive: &Directive) -> Option<(Reason, String)> {
    match directive {
        Directive::Promote { k, .. } => Some((
            Reason::PrimaryPromoted,
            format!("is a source, {k} acknowledgements per commit"),
        )),
        Directive::Open { .. } => Some((Reason::PrimaryOpened, "takes writes".to_owned())),
        Directive::FenceSelf => Some((
            Reason::PrimaryFenced,
            "its mysqld is dead and stays so in this epoch".to_owned(),
        )),
        Directive::Clone { .. } => Some((Reason::InstanceCloning, "a clone was begun".to_owned())),
        Directive::Discard { epoch, .. } => Some((
            Reason::TailArchived,
            format!(
                "transactions of epoch {epoch} that nobody got an OK for are archived and undone"
            ),
        )),
        Directive::DiscardRelayLogs { .. } => Some((
            Reason::TailArchived,
            "relay logs are archived and reset".to_owned(),
        )),
        Directive::Initialise
        | Directive::Boot
        | Directive::Resume
        | Directive::Follow { .. }
        | Directive::Admit { .. }
        | Directive::Fence
        | Directive::CatchUp
        | Directive::SemiSync { .. }
        | Directive::ServeReads
        | Directive::CloseReads
        | Directive::Freeze { .. }
        | Directive::Stop
        | Directive::EnsureApp => None,
    }
}

/// What an instance was like in the pass before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Former {
    situation: &'static str,
    cloning: bool,
    failure: Option<String>,
    trouble: Option<String>,
}

/// Changes of instances since the pass before.
pub(super) fn instances(
    observed: &Observed,
    reports: &[InstanceReport],
    former: &mut BTreeMap<Ordinal, Former>,
) -> Vec<Told> {
    let mut told = Vec::new();
    let mut now = BTreeMap::new();
    for report in reports {
        let of = report.ordinal;
        let name = observed.name(of);
        let agent = observed.agent(of);
        let pod = observed
            .instances
            .get(&of)
            .and_then(|instance| instance.pod.present());
        let state = Former {
            situation: report.situation,
            cloning: agent
                .and_then(|agent| agent.job.as_deref())
                .is_some_and(|job| job.starts_with("Clone")),
            failure: agent.and_then(|agent| agent.job_failure.clone()),
            trouble: pod.and_then(|pod| pod.trouble.clone()),
        };
        let was = former.get(&of).cloned().unwrap_or_default();
        if state.situation == "ErrantUnproven" && was.situation != "ErrantUnproven" {
            let gtids = report.errant_gtids.clone().unwrap_or_default();
            told.push(instance(
                of,
                Reason::ErrantUnproven,
                format!("{name} has {gtids}: {}", report.message),
            ));
        }
        if was.cloning && !state.cloning && agent.is_some() && state.failure.is_none() {
            told.push(instance(
                of,
                Reason::InstanceCloned,
                format!("{name} was cloned"),
            ));
        }
        if let Some(failure) = state
            .failure
            .as_ref()
            .filter(|_| state.failure != was.failure)
        {
            told.push(instance(
                of,
                Reason::JobFailed,
                format!("{name}: {failure}"),
            ));
        }
        if let Some(trouble) = state
            .trouble
            .as_ref()
            .filter(|_| state.trouble != was.trouble)
        {
            told.push(instance(
                of,
                Reason::InstanceTrouble,
                format!("{name}: {trouble}"),
            ));
        }
        now.insert(of, state);
    }
    *former = now;
    told
}
