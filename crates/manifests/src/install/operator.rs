//! The operator's Deployment: two replicas, one of which leads. Never more than
//! one away by an eviction.

use super::{OPERATOR_NAMESPACE, OPERATOR_SERVICE_ACCOUNT, in_namespace, labels};
use crate::labels::selector;
use crate::pod::{amounts, port, probe, restricted, strings};
use crate::service::PORT_PROBES;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Affinity, Container, EnvVar, EnvVarSource, ObjectFieldSelector, PodAffinityTerm,
    PodAntiAffinity, PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements,
    SeccompProfile, WeightedPodAffinityTerm,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use wire::layout;

/// A user that owns nothing.
const USER: i64 = 65_532;

pub(super) struct Operator {
    pub(super) deployment: Deployment,
    pub(super) disruption_budget: PodDisruptionBudget,
}

pub(super) fn objects(image: &str) -> Operator {
    Operator {
        deployment: Deployment {
            metadata: in_namespace(OPERATOR_SERVICE_ACCOUNT),
            spec: Some(DeploymentSpec {
                replicas: Some(2),
                selector: selector(labels()),
                template: PodTemplateSpec {
                    metadata: Some(ObjectMeta {
                        labels: Some(labels()),
                        ..ObjectMeta::default()
                    }),
                    spec: Some(pod(image)),
                },
                ..DeploymentSpec::default()
            }),
            status: None,
        },
        disruption_budget: PodDisruptionBudget {
            metadata: in_namespace(OPERATOR_SERVICE_ACCOUNT),
            spec: Some(PodDisruptionBudgetSpec {
                max_unavailable: Some(IntOrString::Int(1)),
                selector: Some(selector(labels())),
                ..PodDisruptionBudgetSpec::default()
            }),
            status: None,
        },
    }
}

fn pod(image: &str) -> PodSpec {
    PodSpec {
        service_account_name: Some(OPERATOR_SERVICE_ACCOUNT.to_owned()),
        // A leader that is told to go gives its lease back at once.
        termination_grace_period_seconds: Some(10),
        enable_service_links: Some(false),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..PodSecurityContext::default()
        }),
        affinity: Some(apart()),
        containers: vec![container(image)],
        ..PodSpec::default()
    }
}

fn container(image: &str) -> Container {
    Container {
        name: "operator".to_owned(),
        image: Some(image.to_owned()),
        args: Some(strings(["operator"])),
        env: Some(vec![
            field("POD_NAME", "metadata.name"),
            field("POD_NAMESPACE", "metadata.namespace"),
            // The init container of every instance copies the agent from it.
            EnvVar {
                name: "KATAZUKE_IMAGE".to_owned(),
                value: Some(image.to_owned()),
                value_from: None,
            },
        ]),
        ports: Some(vec![port(PORT_PROBES, layout::PROBE_PORT)]),
        resources: Some(ResourceRequirements {
            requests: Some(amounts([("cpu", "100m"), ("memory", "64Mi")])),
            limits: Some(amounts([("memory", "512Mi")])),
            claims: None,
        }),
        security_context: Some(restricted()),
        liveness_probe: Some(probe("/livez", 10, 3)),
        readiness_probe: Some(probe("/readyz", 5, 2)),
        ..Container::default()
    }
}

fn field(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: path.to_owned(),
                api_version: None,
            }),
            ..EnvVarSource::default()
        }),
    }
}

/// Not on one node, if there is another.
fn apart() -> Affinity {
    Affinity {
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![
                WeightedPodAffinityTerm {
                    weight: 100,
                    pod_affinity_term: PodAffinityTerm {
                        label_selector: Some(selector(labels())),
                        namespaces: Some(vec![OPERATOR_NAMESPACE.to_owned()]),
                        topology_key: "kubernetes.io/hostname".to_owned(),
                        ..PodAffinityTerm::default()
                    },
                },
            ]),
            required_during_scheduling_ignored_during_execution: None,
        }),
        ..Affinity::default()
    }
}
