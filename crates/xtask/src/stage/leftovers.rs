//! What a deleted cluster left behind: every kind that the API server knows, in
//! every namespace, by label, owner and name; volumes by their claim; and
//! processes. It only looks.

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, PartialObjectMeta};
use kube::discovery::{Discovery, verbs};

use super::faults::mysqld_processes;
use super::{Name, Stage, StageError};

/// Something that is there and should not be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// What it is.
    pub kind: String,
    /// `namespace/name`, or a process.
    pub what: String,
    /// Why it is taken for one.
    pub because: String,
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} {} ({})", self.kind, self.what, self.because)
    }
}

/// They tell what happened and expire by themselves.
const TOLD_AND_EXPIRING: &str = "Event";

impl Stage {
    /// Everything that belongs to the cluster `name` with this uid, except the
    /// claims and volumes that its policy retains when `retained` says so.
    pub fn leftovers(
        &self,
        name: &Name,
        uid: &str,
        retained: bool,
    ) -> Result<Vec<Leftover>, StageError> {
        let mut found = Vec::new();
        for kind in self.kinds()? {
            let is_kept = retained && kind.kind == "PersistentVolumeClaim";
            if kind.kind != TOLD_AND_EXPIRING && !is_kept {
                found.extend(self.of_kind(&kind, name, uid)?);
            }
        }
        if !retained {
            found.extend(self.volumes(name)?);
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// Every mysqld that runs in a Pod that is not there any more.
    pub fn stray_mysqlds(&self) -> Result<Vec<Leftover>, StageError> {
        let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::all(self.client());
        let list = async { pods.list_metadata(&ListParams::default()).await };
        let pods = self.ask("list Pods", list)?;
        let uids: Vec<_> = pods
            .items
            .into_iter()
            .filter_map(|pod| pod.metadata.uid)
            .collect();
        let strays = mysqld_processes()
            .into_iter()
            .filter(|(pod, _)| !uids.contains(pod));
        let leftover = |(pod, pid)| Leftover {
            kind: "process".to_owned(),
            what: format!("mysqld {pid}"),
            because: format!("its Pod {pod} is gone"),
        };
        Ok(strays.map(leftover).collect())
    }

    fn kinds(&self) -> Result<Vec<ApiResource>, StageError> {
        let discovery = self.ask("ask for all kinds", Discovery::new(self.client()).run())?;
        let resources = discovery
            .groups()
            .flat_map(kube::discovery::ApiGroup::recommended_resources);
        let listed = resources.filter(|(_, can)| can.supports_operation(verbs::LIST));
        Ok(listed.map(|(resource, _)| resource).collect())
    }

    fn of_kind(
        &self,
        kind: &ApiResource,
        name: &Name,
        uid: &str,
    ) -> Result<Vec<Leftover>, StageError> {
        let objects: Api<DynamicObject> = Api::all_with(self.client(), kind);
        let list = async { objects.list_metadata(&ListParams::default()).await };
        let list = self.ask(format!("list every {}", kind.kind), list)?;
        let leftover = |object: PartialObjectMeta<DynamicObject>| {
            let because = reason(&object, name, uid)?;
            let namespace = object.metadata.namespace.unwrap_or_default();
            let what = format!("{namespace}/{}", object.metadata.name.unwrap_or_default());
            Some(Leftover {
                kind: kind.kind.clone(),
                what,
                because,
            })
        };
        Ok(list.items.into_iter().filter_map(leftover).collect())
    }

    fn volumes(&self, name: &Name) -> Result<Vec<Leftover>, StageError> {
        let volumes: Api<PersistentVolume> = Api::all(self.client());
        let list = async { volumes.list(&ListParams::default()).await };
        let list = self.ask("list volumes", list)?;
        let leftover = |volume: PersistentVolume| {
            let claim = volume.spec?.claim_ref?;
            let (namespace, claim) = (claim.namespace?, claim.name?);
            let is_ours = namespace == name.namespace && is_named_after(&claim, &name.name);
            is_ours.then(|| Leftover {
                kind: "PersistentVolume".to_owned(),
                what: volume.metadata.name.unwrap_or_default(),
                because: format!("was claimed by {namespace}/{claim}"),
            })
        };
        Ok(list.items.into_iter().filter_map(leftover).collect())
    }
}

fn reason(object: &PartialObjectMeta<DynamicObject>, name: &Name, uid: &str) -> Option<String> {
    let metadata = &object.metadata;
    let owners = metadata.owner_references.iter().flatten();
    if owners.into_iter().any(|owner| owner.uid == uid) {
        return Some("owned by it".to_owned());
    }
    let labels = metadata.labels.iter().flatten();
    if let Some((label, _)) = labels.into_iter().find(|(_, value)| *value == uid) {
        return Some(format!("labelled {label}"));
    }
    let own = metadata.name.as_deref().unwrap_or_default();
    let is_near = metadata.namespace.as_deref() == Some(&name.namespace);
    (is_near && is_named_after(own, &name.name)).then(|| "named after it".to_owned())
}

/// `shop`, `shop-0`, `data-shop-0-0`; not `shopping`.
fn is_named_after(object: &str, cluster: &str) -> bool {
    let bare = object.strip_prefix("data-").unwrap_or(object);
    bare.strip_prefix(cluster)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_alike_are_not_ours() {
        for ours in ["shop", "shop-0", "shop-primary", "data-shop-0-1", "shop.17"] {
            assert!(is_named_after(ours, "shop"), "{ours}");
        }
        for other in ["shopping", "data-shopping-0-0", "workshop", "my-shop"] {
            assert!(!is_named_after(other, "shop"), "{other}");
        }
    }
}
