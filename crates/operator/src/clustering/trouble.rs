//! Why a Pod does not run, in the kubelet's or the scheduler's own words, with
//! names. Looks at the Pod alone; never decides what follows from it.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, PersistentVolumeClaim, Pod};

/// Reasons of a waiting container that pass by themselves.
const PASSING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// What is the matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// One word: `ImagePullBackOff`, `Unschedulable`, …
    pub reason: String,
    /// A sentence.
    pub sentence: String,
}

impl Trouble {
    /// The scheduler says that a claim is not bound, but not which and why.
    pub(super) fn with_claims<'a>(
        mut self,
        pod: &Pod,
        claims: impl Iterator<Item = &'a PersistentVolumeClaim>,
    ) -> Self {
        let sentence = self.sentence.to_lowercase();
        if !["persistentvolumeclaim", "storageclass"]
            .iter()
            .any(|word| sentence.contains(word))
        {
            return self;
        }
        let volumes = pod
            .spec
            .iter()
            .flat_map(|spec| spec.volumes.iter().flatten());
        let used: Vec<&str> = volumes
            .filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
            .collect();
        for claim in claims {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            let phase = claim
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref());
            if phase != Some("Bound") && used.contains(&name) {
                let class = claim
                    .spec
                    .as_ref()
                    .and_then(|spec| spec.storage_class_name.as_deref());
                let class = class.map_or("without a storage class".to_owned(), |class| {
                    format!("of storage class {class}")
                });
                self.sentence = format!("{}; claim {name} {class} is not bound", self.sentence);
            }
        }
        self
    }
}

/// The first trouble, in the order in which a Pod starts: scheduling, init
/// containers, containers.
pub(super) fn of(pod: &Pod) -> Option<Trouble> {
    let status = pod.status.as_ref()?;
    scheduling(pod).or_else(|| {
        let init = status.init_container_statuses.iter().flatten();
        let main = status.container_statuses.iter().flatten();
        init.chain(main).find_map(container)
    })
}

fn scheduling(pod: &Pod) -> Option<Trouble> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions
        .iter()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    let reason = condition
        .reason
        .clone()
        .unwrap_or_else(|| "Unschedulable".to_owned());
    let words = condition.message.clone().unwrap_or_else(|| reason.clone());
    Some(Trouble {
        sentence: format!("not scheduled: {words}"),
        reason,
    })
}

fn container(status: &ContainerStatus) -> Option<Trouble> {
    let ContainerState {
        waiting,
        terminated,
        running: _,
    } = status.state.as_ref()?;
    if let Some(waiting) = waiting {
        let reason = waiting
            .reason
            .clone()
            .filter(|r| !PASSING.contains(&r.as_str()))?;
        let words = waiting.message.clone().unwrap_or_else(|| reason.clone());
        let ended = status
            .last_state
            .as_ref()
            .and_then(|last| last.terminated.as_ref());
        let ended = ended.map(|last| format!(" (it last ended with code {})", last.exit_code));
        return Some(Trouble {
            sentence: format!(
                "container {}: {words}{}",
                status.name,
                ended.unwrap_or_default()
            ),
            reason,
        });
    }
    let terminated = terminated
        .as_ref()
        .filter(|terminated| terminated.exit_code != 0)?;
    let reason = terminated
        .reason
        .clone()
        .unwrap_or_else(|| "Error".to_owned());
    Some(Trouble {
        sentence: format!(
            "container {} ended with code {} ({reason})",
            status.name, terminated.exit_code
        ),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "shop-0"}, "status": status})).unwrap()
    }

    fn said(status: &serde_json::Value) -> Option<(String, String)> {
        of(&pod(status)).map(|trouble| (trouble.reason, trouble.sentence))
    }

    #[test]
    fn a_pod_that_starts_or_runs_is_in_no_trouble() {
        assert_eq!(said(&json!({})), None);
        assert_eq!(
            said(
                &json!({"containerStatuses": [status(&json!({"waiting": {"reason": "ContainerCreating"}}))]})
            ),
            None
        );
        assert_eq!(
            said(&json!({"containerStatuses": [status(&json!({"running": {}}))]})),
            None
        );
        assert_eq!(
            said(&json!({"containerStatuses": [status(&json!({"terminated": {"exitCode": 0}}))]})),
            None
        );
    }

    #[test]
    fn the_scheduler_is_quoted() {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient memory."});
        assert_eq!(
            said(&json!({"conditions": [condition]})),
            Some((
                "Unschedulable".into(),
                "not scheduled: 0/3 nodes are available: 3 Insufficient memory.".into()
            ))
        );
    }

    #[test]
    fn a_claim_that_is_not_bound_is_named_with_its_class() {
        let condition = json!({"type": "PodScheduled", "status": "False", "message": "pod has unbound immediate PersistentVolumeClaims. not found"});
        let mut pod = pod(&json!({"conditions": [condition]}));
        pod.spec = serde_json::from_value(json!({"containers": [], "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-shop-0-0"}}]})).unwrap();
        let claim = |name: &str| -> PersistentVolumeClaim {
            serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}})).unwrap()
        };
        let claims = [claim("data-shop-0-0"), claim("data-shop-1-0")];
        let trouble = of(&pod).unwrap().with_claims(&pod, claims.iter());
        assert_eq!(
            trouble.sentence,
            "not scheduled: pod has unbound immediate PersistentVolumeClaims. not found; \
             claim data-shop-0-0 of storage class fast is not bound"
        );
    }

    #[test]
    fn the_kubelet_is_quoted_with_the_container_and_its_last_end() {
        assert_eq!(
            said(
                &json!({"initContainerStatuses": [status(&json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"mysql:nope\""}}))]})
            ),
            Some((
                "ImagePullBackOff".into(),
                "container mysqld: Back-off pulling image \"mysql:nope\"".into()
            ))
        );
        let mut crashing =
            status(&json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}));
        crashing["lastState"] = json!({"terminated": {"exitCode": 1}});
        assert_eq!(
            said(&json!({"containerStatuses": [crashing]})),
            Some((
                "CrashLoopBackOff".into(),
                "container mysqld: back-off 10s (it last ended with code 1)".into()
            ))
        );
    }

    fn status(state: &serde_json::Value) -> serde_json::Value {
        json!({"name": "mysqld", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
    }
}
