//! Server-side apply of one object: only where what we own differs, never by
//! force first. A field that another manager holds is yielded or taken by the
//! written table (`field_manager`). Remembers what was yielded, so that a fight
//! is reported and not fought.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::NamespaceResourceScope;
use kube::api::{Patch, PatchParams};
use kube::core::response::Status;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::compare::{has, take_out};
use super::error::ReconcileError;
use crate::field_manager::{FieldManager, OnConflict};
use crate::labels;

/// After this time a yielded field is asked for once more.
const ASK_AGAIN: Duration = Duration::from_mins(10);
/// A watch that is not behind by more than this shows what we wrote.
const WATCH_DELAY: Duration = Duration::from_secs(5);

/// A field that another manager holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    /// Kind and name of the object.
    pub object: String,
    /// The fields.
    pub fields: Vec<String>,
    /// The other managers.
    pub managers: Vec<String>,
    /// Whether we took the fields back.
    pub taken: bool,
}

#[derive(Clone)]
struct Yielded {
    digest: String,
    conflict: Conflict,
    since: Instant,
}

#[derive(Clone)]
struct Written {
    digest: String,
    version: String,
    at: Instant,
}

/// What was applied before, by kind and name.
#[derive(Default)]
pub(super) struct Memory {
    yielded: BTreeMap<String, Yielded>,
    written: BTreeMap<String, Written>,
}

impl Memory {
    /// Conflicts that stand.
    pub(super) fn conflicts(&self) -> impl Iterator<Item = &Conflict> {
        self.yielded.values().map(|yielded| &yielded.conflict)
    }

    /// The cache is behind our own write of the very same.
    fn is_on_its_way(&self, object: &str, digest: &str, live: Option<&str>) -> bool {
        self.written.get(object).is_some_and(|written| {
            let number = |version: &str| version.parse::<u64>().unwrap_or(0);
            let behind = live.is_none_or(|live| number(live) < number(&written.version));
            written.digest == digest && behind && written.at.elapsed() < WATCH_DELAY
        })
    }
}

/// What applying came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Applied {
    /// Nothing was written.
    AsWanted,
    /// It was missing.
    Created,
    /// It differed.
    Changed,
    /// Fields were yielded or taken.
    Conflict(Conflict),
}

/// Applies one object if what we own of it differs.
pub(super) async fn apply<K>(
    client: &Client,
    memory: &mut Memory,
    manager: FieldManager,
    wanted: &K,
    live: Option<Arc<K>>,
) -> Result<Applied, ReconcileError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug,
{
    let kind: &'static str = kind::<K>();
    let name = wanted.name_any();
    let object = format!("{kind} {name}");
    if let Some(owner) = live.as_deref().and_then(|live| foreign(live, wanted)) {
        return Err(ReconcileError::Foreign { kind, name, owner });
    }
    let mut value = value(wanted);
    let digest = digest(&value);
    mark(&mut value, &digest);
    let yielded = memory
        .yielded
        .get(&object)
        .filter(|yielded| yielded.digest == digest);
    let stands = yielded
        .filter(|yielded| yielded.since.elapsed() < ASK_AGAIN)
        .cloned();
    if let Some(stands) = &stands {
        take_out_all(&mut value, &stands.conflict);
    }
    let live_value = live
        .as_deref()
        .map(|live| serde_json::to_value(live).unwrap_or_default());
    let version = live.as_deref().and_then(ResourceExt::resource_version);
    let as_wanted = live_value.as_ref().is_some_and(|live| has(live, &value));
    if as_wanted || memory.is_on_its_way(&object, &digest, version.as_deref()) {
        if stands.is_none() {
            memory.yielded.remove(&object);
        }
        return Ok(Applied::AsWanted);
    }
    let api: Api<K> = Api::namespaced(client.clone(), &wanted.namespace().unwrap_or_default());
    let one = One {
        api,
        kind,
        name,
        object,
        digest,
        manager,
    };
    let outcome = one.apply(memory, value).await?;
    Ok(match outcome {
        Some(conflict) => Applied::Conflict(conflict),
        None if live.is_none() => Applied::Created,
        None => Applied::Changed,
    })
}

/// One object on its way.
struct One<K> {
    api: Api<K>,
    kind: &'static str,
    name: String,
    object: String,
    digest: String,
    manager: FieldManager,
}

impl<K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug> One<K> {
    async fn apply(
        &self,
        memory: &mut Memory,
        mut value: Value,
    ) -> Result<Option<Conflict>, ReconcileError> {
        let params = PatchParams::apply(self.manager.name());
        let status = match self
            .api
            .patch(&self.name, &params, &Patch::Apply(&value))
            .await
        {
            Ok(applied) => {
                self.remember(memory, &applied);
                return Ok(None);
            }
            Err(kube::Error::Api(status)) if status.code == 409 => status,
            Err(error) => return Err(self.refused(error)),
        };
        let conflict = conflict(&self.object, &status);
        if conflict.fields.is_empty() {
            return Err(self.refused(kube::Error::Api(status)));
        }
        let (taken, yielded): (Vec<String>, Vec<String>) = conflict
            .fields
            .iter()
            .cloned()
            .partition(|field| self.manager.on_conflict(field) == OnConflict::Take);
        // Only what is left in the value can be taken by force.
        let params = if taken.is_empty() {
            params
        } else {
            params.force()
        };
        let conflict = Conflict {
            taken: yielded.is_empty(),
            fields: if yielded.is_empty() { taken } else { yielded },
            ..conflict
        };
        if !conflict.taken {
            take_out_all(&mut value, &conflict);
            let entry = Yielded {
                digest: self.digest.clone(),
                conflict: conflict.clone(),
                since: Instant::now(),
            };
            memory.yielded.insert(self.object.clone(), entry);
        }
        let applied = self
            .api
            .patch(&self.name, &params, &Patch::Apply(&value))
            .await;
        self.remember(memory, &applied.map_err(|error| self.refused(error))?);
        Ok(Some(conflict))
    }

    fn remember(&self, memory: &mut Memory, applied: &K) {
        memory.written.insert(
            self.object.clone(),
            Written {
                digest: self.digest.clone(),
                version: applied.resource_version().unwrap_or_default(),
                at: Instant::now(),
            },
        );
    }

    fn refused(&self, error: kube::Error) -> ReconcileError {
        let source = Box::new(error);
        ReconcileError::Api {
            verb: "apply",
            kind: self.kind,
            name: self.name.clone(),
            source,
        }
    }
}

/// `Service`, for names that live as long as the program.
pub(super) fn kind<K: Resource<DynamicType = ()>>() -> &'static str {
    match K::kind(&()) {
        std::borrow::Cow::Borrowed(kind) => kind,
        std::borrow::Cow::Owned(_) => "object",
    }
}

/// A field that is not there any more is in nobody's way.
fn take_out_all(value: &mut Value, conflict: &Conflict) {
    for field in &conflict.fields {
        let _was_there = take_out(value, field);
    }
}

/// Another controller owns the object of that name.
fn foreign<K: ResourceExt>(live: &K, wanted: &K) -> Option<String> {
    let ours = wanted
        .owner_references()
        .first()
        .map(|owner| owner.uid.as_str());
    let controller = live
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true))?;
    let other = ours.is_some_and(|ours| ours != controller.uid);
    other.then(|| format!("{} {}", controller.kind, controller.name))
}

/// As it goes over the wire, with its type.
fn value<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    value["apiVersion"] = json!(K::api_version(&()));
    value["kind"] = json!(K::kind(&()));
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
    }
    value
}

/// With its type and the mark of what was applied.
pub(super) fn marked<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    let mut value = value(object);
    let digest = digest(&value);
    mark(&mut value, &digest);
    value
}

fn digest(value: &Value) -> String {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    let hash = Sha256::digest(bytes);
    let short = hash
        .iter()
        .take(8)
        .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    format!("{short:016x}")
}

fn mark(value: &mut Value, digest: &str) {
    value["metadata"]["annotations"][labels::APPLIED] = json!(digest);
}

/// Fields and managers, as the API server names them.
fn conflict(object: &str, status: &Status) -> Conflict {
    let causes = status
        .details
        .as_ref()
        .map(|details| details.causes.as_slice());
    let causes = causes.unwrap_or_default().iter();
    let causes: Vec<_> = causes
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .collect();
    let quoted = |message: &str| message.split('"').nth(1).map(str::to_owned);
    let mut managers: Vec<String> = causes
        .iter()
        .filter_map(|cause| quoted(&cause.message))
        .collect();
    managers.sort();
    managers.dedup();
    Conflict {
        object: object.to_owned(),
        fields: causes.iter().map(|cause| cause.field.clone()).collect(),
        managers,
        taken: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_names_fields_and_managers() {
        let status: Status = serde_json::from_value(json!({
            "status": "Failure", "code": 409, "reason": "Conflict", "message": "Apply failed",
            "details": {"causes": [
                {"reason": "FieldManagerConflict", "message": "conflict with \"argocd\" using v1", "field": ".spec.type"},
                {"reason": "FieldManagerConflict", "message": "conflict with \"argocd\" using v1", "field": ".metadata.labels.a"},
            ]},
        }))
        .unwrap();
        assert_eq!(
            conflict("Service shop", &status),
            Conflict {
                object: "Service shop".into(),
                fields: vec![".spec.type".into(), ".metadata.labels.a".into()],
                managers: vec!["argocd".into()],
                taken: false,
            }
        );
    }
}
