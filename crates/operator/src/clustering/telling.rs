//! A pass told to the world: status, events, metrics of roles. Never decides
//! what to tell: story and report do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::MySQLCluster;
use katazuke_core::record::Kind;
use katazuke_core::{Observed, Plan, conditions};

use super::aftermath::{Reported, TakenIn};
use super::error::PassError;
use super::{Clustering, Decided, report, story};
use crate::context::{Findings, reference};
use crate::metrics::{RoleLabel, RoleLabels};

/// Sentences that change alone are written no oftener than this.
const WORDS: Duration = Duration::from_secs(2);

impl Clustering {
    pub(super) async fn report(
        &mut self,
        decided: &Decided,
        findings: &Findings,
        taken: TakenIn,
    ) -> Result<(), PassError> {
        let TakenIn {
            base,
            recorded,
            refused: _,
            mut told,
        } = taken;
        let Decided {
            observed,
            judgement,
            plan,
        } = decided;
        let reports = conditions::instances(observed);
        told.events
            .extend(story::situation(self.situation, judgement));
        told.events
            .extend(story::instances(observed, &reports, &mut self.former));
        self.situation = Some(judgement.situation);
        self.export_roles(observed, &reports);
        self.tell(&base, observed, &told.events);
        // The next pass follows at once, on the new record: it reports.
        if recorded && told.switchover.is_none() && told.failover.is_none() {
            return Ok(());
        }
        if self.is_hurried(observed, plan, &told) {
            return Ok(());
        }
        let report = report::Report {
            observed,
            judgement,
            plan,
            findings,
            switchover: told.switchover,
            failover: told.failover,
            hindrance: told.hindrance,
        };
        let former = base.status.clone().unwrap_or_default();
        let wanted = report::status(&report, &former, &report::now());
        let soon = self.reported.is_some_and(|at| at.elapsed() < WORDS);
        if soon && report::only_words_differ(&former, &wanted) {
            return Ok(());
        }
        if let Some(written) = report::write(&self.context.client, &base, &wanted).await? {
            self.written = Some(Arc::new(written));
            self.reported = Some(Instant::now());
        }
        Ok(())
    }

    /// Clients wait while the primary changes: its next step goes before the
    /// status, for as long as a change takes when all goes well. Events and the
    /// record tell of it meanwhile.
    fn is_hurried(&mut self, observed: &Observed, plan: &Plan, told: &Reported) -> bool {
        let changes = observed
            .record
            .transition
            .as_ref()
            .is_some_and(|transition| matches!(transition.kind, Kind::Failover | Kind::Switchover));
        let ended = told.switchover.is_some() || told.failover.is_some();
        if !changes || ended || !matches!(plan, Plan::Do(_)) {
            if !changes {
                self.hurried = None;
            }
            return false;
        }
        self.hurried.get_or_insert_with(Instant::now).elapsed() < WORDS
    }

    fn tell(&self, base: &MySQLCluster, observed: &Observed, events: &[story::Told]) {
        let cluster = reference(base);
        for told in events {
            tracing::info!(
                reason = told.happening.reason.name(),
                note = told.happening.note,
                "told"
            );
            self.context.voice.tell(&cluster, told.happening.clone());
            let pod = told
                .instance
                .and_then(|of| self.context.caches.pods.get(&self.key, &observed.name(of)));
            if let Some(pod) = pod {
                self.context
                    .voice
                    .tell(&reference(&*pod), told.happening.clone());
            }
        }
    }

    fn export_roles(&mut self, observed: &Observed, reports: &[conditions::InstanceReport]) {
        let labels = |instance: &str, role: RoleLabel| RoleLabels {
            namespace: self.labels.namespace.clone(),
            cluster: self.labels.cluster.clone(),
            instance: instance.to_owned(),
            role,
        };
        let now: BTreeMap<String, RoleLabel> = reports
            .iter()
            .filter_map(|report| {
                let role = match report.role? {
                    katazuke_core::observed::Role::Primary => RoleLabel::Primary,
                    katazuke_core::observed::Role::Replica => RoleLabel::Replica,
                };
                Some((observed.name(report.ordinal), role))
            })
            .collect();
        let metrics = &self.context.metrics;
        for (instance, role) in &self.roles {
            if now.get(instance) != Some(role) {
                metrics.role.remove(&labels(instance, *role));
            }
        }
        for (instance, role) in &now {
            metrics.role.get_or_create(&labels(instance, *role)).set(1);
        }
        let ready = i64::try_from(now.len()).unwrap_or(i64::MAX);
        metrics
            .instances_ready
            .get_or_create(&self.labels)
            .set(ready);
        self.roles = now;
    }

    /// Metrics of a cluster that is no longer ours to watch.
    pub(super) fn forget(&mut self) {
        self.export_roles_none();
        self.context.metrics.forget(&self.labels, self.situation);
    }

    fn export_roles_none(&mut self) {
        for (instance, role) in std::mem::take(&mut self.roles) {
            self.context.metrics.role.remove(&RoleLabels {
                namespace: self.labels.namespace.clone(),
                cluster: self.labels.cluster.clone(),
                instance,
                role,
            });
        }
    }
}
