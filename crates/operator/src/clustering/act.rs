//! act: performs what was planned. One match over everything Katazuke can do
//! to a cluster, no wildcard. Never decides, never retries: what did not work
//! is seen and planned again by the next pass.

use std::time::Instant;

use api::MySQLCluster;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use katazuke_core::observed::Role;
use katazuke_core::record::{Ordinal, Record};
use katazuke_core::{Action, Directive, Observed};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use manifests::labels;
use serde_json::json;
use wire::{Outcome, Refusal};

use super::error::ActError;
use super::observe::write_role;
use super::order::{self, Cluster};
use super::record;
use crate::agents::{Agents, OrderError};
use crate::context::Context;
use crate::field_manager::FieldManager;
use crate::merge::merge_patch;
use crate::metrics::OrderLabels;
use crate::resources::Valid;

/// What the actions of one pass rest on.
pub(super) struct Stage<'a> {
    /// Clients and metrics.
    pub context: &'a Context,
    /// The resource as read live.
    pub live: &'a MySQLCluster,
    /// The picture that was planned on.
    pub observed: &'a Observed,
    /// The agents.
    pub agents: &'a Agents,
    /// The last valid spec.
    pub valid: Option<&'a Valid>,
}

/// What became of one action.
pub(super) struct Performed<'a> {
    /// Which.
    pub action: &'a Action,
    /// What became of it.
    pub result: Result<Effect, ActError>,
    /// When it was answered.
    pub at: Instant,
}

/// The effect of an action that was answered.
pub(super) enum Effect {
    /// The record was written; this is the resource now.
    Recorded(Box<MySQLCluster>),
    /// The order was done.
    Done,
    /// The order was accepted.
    Started,
    /// The agent refused.
    Refused {
        /// Which precondition.
        gate: Refusal,
        /// Its sentence.
        message: String,
    },
    /// The agent tried and failed.
    Failed(String),
    /// The API server did it.
    Applied,
    /// It was there already: the watch is behind.
    AsWanted,
}

/// In the log; the record itself is in the action.
impl std::fmt::Debug for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Recorded(cluster) => write!(f, "Recorded({:?})", cluster.resource_version()),
            Self::Done => f.write_str("Done"),
            Self::Started => f.write_str("Started"),
            Self::Refused { gate, message } => write!(f, "Refused({gate:?}: {message})"),
            Self::Failed(message) => write!(f, "Failed({message})"),
            Self::Applied => f.write_str("Applied"),
            Self::AsWanted => f.write_str("AsWanted"),
        }
    }
}

/// Performs all actions at once; they are independent of each other.
pub(super) async fn act<'a>(stage: &Stage<'_>, actions: &'a [Action]) -> Vec<Performed<'a>> {
    join_all(actions.iter().map(|action| async move {
        let result = perform(stage, action).await;
        Performed {
            action,
            result,
            at: Instant::now(),
        }
    }))
    .await
}

async fn perform(stage: &Stage<'_>, action: &Action) -> Result<Effect, ActError> {
    match action {
        Action::Record(record) => write_record(stage, record).await,
        Action::Order {
            to,
            uuid,
            directive,
        } => give(stage, *to, *uuid, directive).await,
        Action::Role { of, role } => {
            let effect = set_role(stage, *of, *role).await?;
            if let Some(role) = role {
                remember_role(stage, *of, *role).await?;
            }
            Ok(effect)
        }
        Action::CreateInstance {
            ordinal,
            generation,
        } => create(stage, *ordinal, *generation).await,
        Action::DeletePod {
            ordinal,
            uid,
            why: _,
        } => delete(stage, *ordinal, uid).await,
    }
}

/// R1: only over the very resource that was read.
async fn write_record(stage: &Stage<'_>, record: &Record) -> Result<Effect, ActError> {
    let api = clusters(stage);
    let name = stage.live.name_any();
    let stored = stage
        .live
        .status
        .as_ref()
        .and_then(|status| status.ha.as_ref());
    let from = serde_json::to_value(stored).unwrap_or_default();
    let to = serde_json::to_value(record::write(record)).unwrap_or_default();
    let Some(patch) = merge_patch(&from, &to) else {
        return Ok(Effect::Applied);
    };
    let patch = json!({
        "metadata": {"resourceVersion": stage.live.resource_version()},
        "status": {"ha": patch},
    });
    let params = PatchParams {
        field_manager: Some(FieldManager::Status.name().to_owned()),
        ..PatchParams::default()
    };
    match api.patch_status(&name, &params, &Patch::Merge(patch)).await {
        Ok(cluster) => Ok(Effect::Recorded(Box::new(cluster))),
        Err(kube::Error::Api(status)) if status.code == 409 => Err(ActError::RecordConflict),
        Err(error) => Err(ActError::WriteRecord(error)),
    }
}

async fn give(
    stage: &Stage<'_>,
    to: Ordinal,
    uuid: Option<gtid::Uuid>,
    directive: &Directive,
) -> Result<Effect, ActError> {
    let cluster = Cluster {
        name: &stage.observed.cluster,
        namespace: &stage.live.namespace().unwrap_or_default(),
        uid: stage.live.metadata.uid.as_deref().unwrap_or_default(),
    };
    let order = order::order(&cluster, stage.observed, to, uuid, directive);
    let handle = stage.agents.handle(to).ok_or(OrderError::NoLink(to))?;
    let asked = Instant::now();
    let reply = handle.order(&order, order::bound(directive)).await;
    let metrics = &stage.context.metrics;
    metrics.order.observe(asked.elapsed().as_secs_f64());
    let (outcome, result) = match reply {
        Ok(reply) => match reply.outcome {
            Outcome::Done => ("done", Ok(Effect::Done)),
            Outcome::Started => ("started", Ok(Effect::Started)),
            Outcome::Refused { refusal, message } => (
                "refused",
                Ok(Effect::Refused {
                    gate: refusal,
                    message,
                }),
            ),
            Outcome::Failed { message } => ("failed", Ok(Effect::Failed(message))),
        },
        Err(error) => ("unreachable", Err(ActError::Order(error))),
    };
    metrics
        .orders
        .get_or_create(&OrderLabels {
            act: directive.name(),
            outcome,
        })
        .inc();
    result
}

/// The role label is a safety field: taken if another manager holds it.
async fn set_role(stage: &Stage<'_>, of: Ordinal, role: Option<Role>) -> Result<Effect, ActError> {
    let api: Api<Pod> = namespaced(stage);
    let name = stage.observed.name(of);
    let pod = stage
        .observed
        .instances
        .get(&of)
        .and_then(|instance| instance.pod.present());
    let Some(pod) = pod else {
        return Err(ActError::AnotherPod);
    };
    let wanted = role.map(write_role);
    let labels = wanted.map_or(json!({}), |wanted| json!({ labels::ROLE: wanted }));
    let patch = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "uid": pod.uid, "labels": labels},
    });
    let params = PatchParams::apply(FieldManager::Routing.name());
    let applied = match api.patch(&name, &params, &Patch::Apply(&patch)).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            tracing::warn!(
                pod = name,
                conflict = status.message,
                "taking the role label back"
            );
            api.patch(&name, &params.clone().force(), &Patch::Apply(&patch))
                .await
        }
        answer => answer,
    };
    let applied = applied.map_err(ActError::SetRole)?;
    if applied.labels().get(labels::ROLE).map(String::as_str) == wanted {
        return Ok(Effect::Applied);
    }
    // Somebody else owns a label that must not be there.
    let patch = json!({"metadata": {"uid": pod.uid, "labels": {labels::ROLE: wanted}}});
    let params = PatchParams {
        field_manager: params.field_manager,
        ..PatchParams::default()
    };
    api.patch(&name, &params, &Patch::Merge(&patch))
        .await
        .map_err(ActError::SetRole)?;
    Ok(Effect::Applied)
}

/// The claim keeps the last role, for whoever finds a retained volume.
async fn remember_role(stage: &Stage<'_>, of: Ordinal, role: Role) -> Result<(), ActError> {
    let claim = stage
        .observed
        .instances
        .get(&of)
        .and_then(|instance| instance.claim.present());
    let Some(claim) = claim else { return Ok(()) };
    let name = manifests::names::volume_claim(&stage.observed.cluster, of.0, claim.generation);
    let api: Api<PersistentVolumeClaim> = namespaced(stage);
    let patch = json!({
        "metadata": {"uid": claim.uid, "labels": {labels::ROLE: write_role(role)}},
    });
    let params = PatchParams {
        field_manager: Some(FieldManager::Routing.name().to_owned()),
        ..PatchParams::default()
    };
    match api.patch(&name, &params, &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(ActError::SetRole(error)),
    }
}

/// The claim where it is missing, then the Pod. Both names are fixed, so that
/// the API server itself refuses a second one.
async fn create(stage: &Stage<'_>, ordinal: Ordinal, generation: u32) -> Result<Effect, ActError> {
    let valid = stage.valid.ok_or(ActError::NoValidSpec)?;
    let params = PostParams {
        field_manager: Some(FieldManager::Pods.name().to_owned()),
        ..PostParams::default()
    };
    ensure_claim(stage, valid, ordinal, generation).await?;
    let pod = valid.pod(ordinal, generation);
    let api: Api<Pod> = namespaced(stage);
    match api.create(&params, &pod).await {
        Ok(_) => Ok(Effect::Applied),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(Effect::AsWanted),
        Err(source) => Err(ActError::Create {
            what: format!("Pod {}", pod.name_any()),
            source,
        }),
    }
}

/// Applied, so that the same manager may change it later; one that exists is
/// left as it is, whoever made it: it may hold data.
async fn ensure_claim(
    stage: &Stage<'_>,
    valid: &Valid,
    ordinal: Ordinal,
    generation: u32,
) -> Result<(), ActError> {
    let claim = valid.claim(ordinal, generation);
    let name = claim.name_any();
    let failed = |source| ActError::Create {
        what: format!("claim {name}"),
        source,
    };
    let api: Api<PersistentVolumeClaim> = namespaced(stage);
    if api.get_opt(&name).await.map_err(failed)?.is_some() {
        return Ok(());
    }
    let params = PatchParams::apply(FieldManager::Volumes.name());
    let claim = crate::resources::wire_value(&claim);
    api.patch(&name, &params, &Patch::Apply(&claim))
        .await
        .map_err(failed)?;
    Ok(())
}

/// Only the very Pod that was observed, as it is now.
async fn delete(stage: &Stage<'_>, ordinal: Ordinal, uid: &str) -> Result<Effect, ActError> {
    let api: Api<Pod> = namespaced(stage);
    let name = stage.observed.name(ordinal);
    let Some(pod) = api.get_opt(&name).await.map_err(ActError::Delete)? else {
        return Ok(Effect::Applied);
    };
    if pod.uid().as_deref() != Some(uid) {
        return Err(ActError::AnotherPod);
    }
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: pod.uid(),
        resource_version: pod.resource_version(),
    });
    match api.delete(&name, &params).await {
        Ok(_) => Ok(Effect::Applied),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Effect::Applied),
        Err(error) => Err(ActError::Delete(error)),
    }
}

fn clusters(stage: &Stage<'_>) -> Api<MySQLCluster> {
    let namespace = stage.live.namespace().unwrap_or_default();
    Api::namespaced(stage.context.client.clone(), &namespace)
}

fn namespaced<K>(stage: &Stage<'_>) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let namespace = stage.live.namespace().unwrap_or_default();
    Api::namespaced(stage.context.client.clone(), &namespace)
}
