//! What was performed, taken into memory, metrics and the log: refusals, the
//! write gap, the changes of primary that ended. Never plans.

use std::sync::Arc;
use std::time::Instant;

use api::{Change, MySQLCluster};
use katazuke_core::observed::Refusal;
use katazuke_core::record::{Kind, Ordinal, Record, Step};
use katazuke_core::{Action, Directive, Observed};

use super::act::{Effect, Performed};
use super::{Clustering, Decided, report, story};
use crate::metrics::{ErrorLabels, RefusalLabels};

/// What a pass hands to its report.
#[derive(Default)]
pub(super) struct Reported {
    pub(super) events: Vec<story::Told>,
    pub(super) hindrance: Option<String>,
    pub(super) switchover: Option<Change>,
    pub(super) failover: Option<Change>,
}

pub(super) struct TakenIn {
    pub(super) base: Arc<MySQLCluster>,
    pub(super) recorded: bool,
    /// The API server refused an action.
    pub(super) refused: bool,
    pub(super) told: Reported,
}

impl Clustering {
    /// What was performed, into memory, metrics and the log.
    pub(super) fn take_in(
        &mut self,
        decided: &Decided,
        base: &Arc<MySQLCluster>,
        performed: &[Performed<'_>],
    ) -> TakenIn {
        let observed = &decided.observed;
        let mut taken = TakenIn {
            base: base.clone(),
            recorded: false,
            refused: false,
            told: Reported::default(),
        };
        for one in performed {
            tracing::info!(action = ?one.action, result = ?one.result, "acted");
            if let Some(told) = story::performed(observed, one) {
                if matches!(
                    one.result,
                    Err(_) | Ok(Effect::Refused { .. } | Effect::Failed(_))
                ) {
                    taken
                        .told
                        .hindrance
                        .get_or_insert_with(|| told.happening.note.clone());
                }
                taken.told.events.push(told);
            }
            match (one.action, &one.result) {
                (Action::Record(after), Ok(Effect::Recorded(cluster))) => {
                    taken.recorded = true;
                    taken.base = Arc::new((**cluster).clone());
                    self.written = Some(taken.base.clone());
                    taken
                        .told
                        .events
                        .extend(story::record(observed, &decided.judgement, after));
                    self.change_of_primary(decided, after, &mut taken.told);
                }
                (Action::Order { to, directive, .. }, Ok(effect)) => {
                    self.ordered(observed, *to, directive, effect, one.at);
                }
                (_, Err(error)) => {
                    taken.refused |= error.is_refused_by_api();
                    let labels = ErrorLabels {
                        step: "act",
                        reason: error.reason(),
                    };
                    self.context.metrics.errors.get_or_create(&labels).inc();
                }
                (
                    Action::Record(_)
                    | Action::Role { .. }
                    | Action::CreateInstance { .. }
                    | Action::DeletePod { .. },
                    Ok(_),
                ) => {}
            }
        }
        taken
    }

    pub(super) fn ordered(
        &mut self,
        observed: &Observed,
        to: Ordinal,
        directive: &Directive,
        effect: &Effect,
        at: Instant,
    ) {
        match effect {
            Effect::Refused { gate, message } => {
                self.context
                    .metrics
                    .refusals
                    .get_or_create(&RefusalLabels {
                        namespace: self.labels.namespace.clone(),
                        cluster: self.labels.cluster.clone(),
                        act: directive.name(),
                        gate: gate_name(*gate),
                    })
                    .inc();
                let refusal = Refusal {
                    act: directive.name().to_owned(),
                    version: observed.record.version,
                    message: message.clone(),
                };
                self.refusals.insert(to, refusal);
            }
            Effect::Done | Effect::Started => {
                self.refusals.remove(&to);
                if matches!(directive, Directive::Open { .. }) {
                    self.gap.open(at);
                }
            }
            Effect::Failed(_) | Effect::Applied | Effect::AsWanted | Effect::Recorded(_) => {}
        }
    }

    /// Begin and end of a change of primary, for the write gap.
    pub(super) fn change_of_primary(
        &mut self,
        decided: &Decided,
        after: &Record,
        told: &mut Reported,
    ) {
        let before = &decided.observed.record;
        let leaves = |record: &Record| {
            let kind = record.transition.as_ref().map(|transition| transition.kind);
            matches!(kind, Some(Kind::Failover | Kind::Switchover))
        };
        if !leaves(before) && leaves(after) {
            self.gap.leave();
        }
        let (Some(ended), None) = (&before.transition, &after.transition) else {
            return;
        };
        let gap = self.gap.end();
        if ended.step != Step::Promoting {
            return;
        }
        let name = |of: Option<Ordinal>| of.map(|of| decided.observed.name(of)).unwrap_or_default();
        let latest = after.deposed.iter().max_by_key(|deposed| deposed.epoch);
        let metrics = &self.context.metrics;
        if let Some(gap) = gap {
            metrics
                .write_gap
                .get_or_create(&self.labels)
                .observe(gap.as_secs_f64());
            metrics
                .write_gap_last
                .get_or_create(&self.labels)
                .set(gap.as_secs_f64());
        }
        let mut change = Change {
            at: report::now(),
            from: name(ended.from),
            to: name(after.primary_ordinal()),
            reason: format!("request {}", ended.id),
            write_gap_milliseconds: gap.and_then(|gap| u64::try_from(gap.as_millis()).ok()),
        };
        match ended.kind {
            Kind::Failover => {
                metrics.failovers.get_or_create(&self.labels).inc();
                change.reason = latest.map_or_else(|| ended.id.clone(), |l| l.why.clone());
                told.failover = Some(change);
            }
            Kind::Switchover => {
                metrics.switchovers.get_or_create(&self.labels).inc();
                told.switchover = Some(change);
            }
            Kind::Reconfigure => {}
        }
    }
}

fn gate_name(refusal: wire::Refusal) -> &'static str {
    match refusal {
        wire::Refusal::Stale => "Stale",
        wire::Refusal::NotMe => "NotMe",
        wire::Refusal::WrongState => "WrongState",
        wire::Refusal::Errant => "Errant",
        wire::Refusal::Blocked => "Blocked",
        wire::Refusal::NoSpace => "NoSpace",
        wire::Refusal::Unknown => "Unknown",
    }
}
