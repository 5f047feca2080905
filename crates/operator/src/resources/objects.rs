//! Services, configuration, budget and claims, one function each, and what is
//! in the way afterwards: a budget that is no longer wanted, leaves of removed
//! instances. Never deletes a claim.

use api::MySQLCluster;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use katazuke_core::record::Ordinal;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use manifests::quantity;
use serde::de::DeserializeOwned;

use super::apply::{apply, kind};
use super::error::ReconcileError;
use super::fetch::Fetched;
use super::{Owned, Valid};
use crate::field_manager::FieldManager;

impl Owned {
    pub(super) async fn services(
        &mut self,
        resource: &MySQLCluster,
        valid: &Valid,
        fetched: &Fetched,
    ) -> Result<(), ReconcileError> {
        let client = self.context.client.clone();
        let manifests::Services {
            headless,
            primary,
            replica,
        } = manifests::services(&valid.cluster);
        let mut failed = Ok(());
        for wanted in [headless, primary, replica] {
            let name = wanted.name_any();
            let live = fetched.services.get(&name).cloned();
            match apply(
                &client,
                &mut self.memory,
                FieldManager::Services,
                &wanted,
                live,
            )
            .await
            {
                Ok(applied) => self.applied(resource, &format!("Service {name}"), &applied),
                Err(error) => failed = Err(error),
            }
        }
        failed
    }

    pub(super) async fn config(
        &mut self,
        resource: &MySQLCluster,
        valid: &Valid,
        fetched: &Fetched,
    ) -> Result<(), ReconcileError> {
        let client = self.context.client.clone();
        let wanted = manifests::config_map(&valid.cluster);
        let name = wanted.name_any();
        let live = fetched.config_maps.get(&name).cloned();
        let applied = apply(
            &client,
            &mut self.memory,
            FieldManager::Config,
            &wanted,
            live,
        )
        .await?;
        self.applied(resource, &format!("ConfigMap {name}"), &applied);
        Ok(())
    }

    pub(super) async fn budget(
        &mut self,
        resource: &MySQLCluster,
        valid: &Valid,
        fetched: &Fetched,
    ) -> Result<(), ReconcileError> {
        let client = self.context.client.clone();
        let Some(wanted) = manifests::disruption_budget(&valid.cluster) else {
            for (name, budget) in &fetched.budgets {
                self.remove::<PodDisruptionBudget>(name, budget.uid())
                    .await?;
            }
            return Ok(());
        };
        let name = wanted.name_any();
        let live = fetched.budgets.get(&name).cloned();
        let applied = apply(
            &client,
            &mut self.memory,
            FieldManager::Disruption,
            &wanted,
            live,
        )
        .await?;
        self.applied(resource, &format!("PodDisruptionBudget {name}"), &applied);
        Ok(())
    }

    /// Labels, owner by policy, and a size that only grows. Claims that belong
    /// to another resource of this name are left alone.
    pub(super) async fn volumes(
        &mut self,
        resource: &MySQLCluster,
        valid: &Valid,
        fetched: &Fetched,
    ) -> Result<(), ReconcileError> {
        let client = self.context.client.clone();
        let mut failed = Ok(());
        for (name, live) in &fetched.claims {
            let ours = live.labels().get(manifests::labels::CLUSTER_UID) == Some(&self.uid);
            let number = |label: &str| live.labels().get(label)?.parse::<u32>().ok();
            let ordinal = number(manifests::labels::ORDINAL);
            let generation = number(manifests::labels::GENERATION);
            let (true, Some(ordinal), Some(generation)) = (ours, ordinal, generation) else {
                continue;
            };
            let mut wanted = valid.claim(Ordinal(ordinal), generation);
            keep_what_is_fixed(&mut wanted, live);
            let live = Some(live.clone());
            match apply(
                &client,
                &mut self.memory,
                FieldManager::Volumes,
                &wanted,
                live,
            )
            .await
            {
                Ok(applied) => self.applied(resource, &format!("claim {name}"), &applied),
                Err(error) => failed = Err(error),
            }
        }
        failed
    }

    /// Leaves of instances that are neither wanted nor there.
    pub(super) async fn tidy(&self, fetched: &Fetched) -> Result<(), ReconcileError> {
        for (name, secret) in &fetched.secrets {
            let ordinal = secret.labels().get(manifests::labels::ORDINAL);
            let ordinal = ordinal.and_then(|ordinal| ordinal.parse().ok());
            let ours = secret
                .owner_references()
                .iter()
                .any(|owner| owner.uid == self.uid);
            if ours && ordinal.is_some_and(|ordinal| !fetched.ordinals.contains(&ordinal)) {
                self.remove::<Secret>(name, secret.uid()).await?;
            }
        }
        Ok(())
    }

    /// Deletes the very object that was seen, if it is ours.
    async fn remove<K>(&self, name: &str, uid: Option<String>) -> Result<(), ReconcileError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let failed = |verb: &'static str, source: kube::Error| ReconcileError::Api {
            verb,
            kind: kind::<K>(),
            name: name.to_owned(),
            source: Box::new(source),
        };
        let api: Api<K> = Api::namespaced(self.context.client.clone(), &self.key.namespace);
        let Some(live) = api
            .get_opt(name)
            .await
            .map_err(|error| failed("read", error))?
        else {
            return Ok(());
        };
        let ours = live
            .owner_references()
            .iter()
            .any(|owner| owner.uid == self.uid);
        if !ours || live.uid() != uid || live.meta().deletion_timestamp.is_some() {
            return Ok(());
        }
        let params = DeleteParams::default().preconditions(Preconditions {
            uid,
            resource_version: live.resource_version(),
        });
        match api.delete(name, &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(failed("delete", error)),
        }
    }
}

/// Kubernetes lets a claim grow and nothing else; a size that somebody enlarged
/// is not taken back.
fn keep_what_is_fixed(wanted: &mut PersistentVolumeClaim, live: &PersistentVolumeClaim) {
    let (Some(wanted), Some(live)) = (&mut wanted.spec, &live.spec) else {
        return;
    };
    wanted.access_modes.clone_from(&live.access_modes);
    if wanted.storage_class_name.is_some() {
        wanted
            .storage_class_name
            .clone_from(&live.storage_class_name);
    }
    let has = live
        .resources
        .as_ref()
        .and_then(|r| r.requests.as_ref()?.get("storage"));
    let wants = wanted
        .resources
        .as_mut()
        .and_then(|r| r.requests.as_mut()?.get_mut("storage"));
    if let (Some(has), Some(wants)) = (has, wants)
        && quantity::nano(has) > quantity::nano(wants)
    {
        wants.clone_from(has);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(size: &str, class: Option<&str>) -> PersistentVolumeClaim {
        serde_json::from_value(json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": size}},
        }}))
        .unwrap()
    }

    #[test]
    fn a_claim_grows_and_is_never_shrunk_or_moved_to_another_class() {
        let kept = |wanted: PersistentVolumeClaim, live| {
            let mut wanted = wanted;
            keep_what_is_fixed(&mut wanted, &live);
            wanted
        };
        assert_eq!(
            kept(claim("2Gi", None), claim("1Gi", Some("fast"))),
            claim("2Gi", None)
        );
        assert_eq!(
            kept(claim("1Gi", None), claim("2Gi", Some("fast"))),
            claim("2Gi", None)
        );
        assert_eq!(
            kept(claim("1Gi", Some("slow")), claim("1Gi", Some("fast"))),
            claim("1Gi", Some("fast"))
        );
    }
}
