//! The Pod of one instance. Passes the restricted security profile, mounts
//! secrets as files, and never carries the role label.

use crate::hash::{Compared, SPEC_HASH};
use crate::labels::{self, Component};
use crate::service::{PORT_AGENT, PORT_MYSQL, PORT_PROBES};
use crate::validate::ValidatedCluster;
use crate::{config_map, names, owner, server_id};
use api::{Acknowledge, PodTemplate};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, Container, ContainerPort, EmptyDirVolumeSource, HTTPGetAction,
    KeyToPath, Pod, PodAffinityTerm, PodAntiAffinity, PodSecurityContext, PodSpec, Probe,
    ResourceRequirements, SeccompProfile, SecurityContext, Volume, VolumeMount,
    WeightedPodAffinityTerm,
};
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, PersistentVolumeClaimVolumeSource, SecretVolumeSource,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;
use wire::layout;

/// Time for a switchover and a clean shutdown when a Pod is deleted.
const GRACE_SECONDS: i64 = 60;
/// Readable by the group that mysqld runs as, and by nobody else.
const SECRET_MODE: i32 = 0o440;

/// Which instance, and on which generation of its volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstancePlace {
    /// The number in its name.
    pub ordinal: u32,
    /// The generation of its volume.
    pub generation: u32,
}

/// The Pod of an instance; `agent_image` is the operator's own image.
pub fn pod(cluster: &ValidatedCluster, place: InstancePlace, agent_image: &str) -> Pod {
    let PodTemplate {
        labels,
        annotations,
        ..
    } = &cluster.pod_template;
    let own = labels::of_instance(cluster, Component::Instance, place.ordinal);
    let labels = labels::with(labels, own);
    let spec = spec(cluster, place, agent_image);
    let compared = Compared {
        labels: &labels,
        annotations,
        my_cnf: &config_map::my_cnf(cluster),
        spec: spec.clone(),
    };
    let mut annotations = annotations.clone();
    annotations.extend(compared.hash().map(|hash| (SPEC_HASH.to_owned(), hash)));
    let name = names::instance(&cluster.name, place.ordinal);
    let mut metadata = owner::owned(cluster, name, labels);
    metadata.annotations = Some(annotations);
    Pod {
        metadata,
        spec: Some(spec),
        status: None,
    }
}

fn spec(cluster: &ValidatedCluster, place: InstancePlace, agent_image: &str) -> PodSpec {
    let PodTemplate {
        labels: _,
        annotations: _,
        node_selector,
        affinity,
        tolerations,
        topology_spread_constraints,
        image_pull_secrets,
        priority_class_name,
        runtime_class_name,
        run_as_user,
        fs_group,
    } = cluster.pod_template.clone();
    PodSpec {
        hostname: Some(names::instance(&cluster.name, place.ordinal)),
        subdomain: Some(names::headless(&cluster.name)),
        restart_policy: Some("Always".to_owned()),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(pod_security(run_as_user, fs_group)),
        init_containers: Some(vec![agent(agent_image)]),
        containers: vec![mysqld(cluster, place)],
        volumes: Some(volumes(cluster, place)),
        node_selector: (!node_selector.is_empty()).then_some(node_selector),
        affinity: Some(affinity.unwrap_or_else(|| apart(cluster))),
        tolerations: some(tolerations),
        topology_spread_constraints: some(topology_spread_constraints),
        image_pull_secrets: some(image_pull_secrets),
        priority_class_name,
        runtime_class_name,
        ..PodSpec::default()
    }
}

fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

fn pod_security(run_as_user: i64, fs_group: i64) -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(run_as_user),
        run_as_group: Some(fs_group),
        fs_group: Some(fs_group),
        // Changing the owner of every file of a large volume takes long.
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..PodSecurityContext::default()
    }
}

pub(crate) fn restricted() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            add: None,
            drop: Some(vec!["ALL".to_owned()]),
        }),
        read_only_root_filesystem: Some(true),
        ..SecurityContext::default()
    }
}

/// Copies the agent into the Pod and ends.
fn agent(image: &str) -> Container {
    Container {
        name: "agent".to_owned(),
        image: Some(image.to_owned()),
        args: Some(strings(["agent", "install", layout::AGENT_BIN])),
        resources: Some(ResourceRequirements {
            requests: Some(amounts([("cpu", "10m"), ("memory", "16Mi")])),
            limits: Some(amounts([("cpu", "1"), ("memory", "64Mi")])),
            claims: None,
        }),
        security_context: Some(restricted()),
        volume_mounts: Some(vec![mount("bin", layout::BIN_DIR)]),
        ..Container::default()
    }
}

/// The agent as the first process, and mysqld as its child.
fn mysqld(cluster: &ValidatedCluster, place: InstancePlace) -> Container {
    let api::Resources { requests, limits } = cluster.resources.clone();
    Container {
        name: "mysqld".to_owned(),
        image: Some(cluster.image.clone()),
        command: Some(strings([layout::AGENT_BIN])),
        args: Some(arguments(cluster, place)),
        ports: Some(vec![
            port(PORT_MYSQL, layout::MYSQL_PORT),
            port(PORT_AGENT, layout::AGENT_PORT),
            port(PORT_PROBES, layout::PROBE_PORT),
        ]),
        resources: Some(ResourceRequirements {
            requests: (!requests.is_empty()).then_some(requests),
            limits: (!limits.is_empty()).then_some(limits),
            claims: None,
        }),
        security_context: Some(restricted()),
        startup_probe: Some(probe("/startupz", 1, 60)),
        liveness_probe: Some(probe("/livez", 10, 6)),
        readiness_probe: Some(probe("/readyz", 1, 2)),
        volume_mounts: Some(vec![
            mount("data", layout::VOLUME),
            mount("run", layout::RUN_DIR),
            mount("tmp", layout::TMP_DIR),
            read_only(mount("bin", layout::BIN_DIR)),
            read_only(mount("config", layout::CONFIG_DIR)),
            read_only(mount("tls", layout::TLS_DIR)),
            read_only(mount("app", layout::APP_DIR)),
        ]),
        ..Container::default()
    }
}

fn arguments(cluster: &ValidatedCluster, place: InstancePlace) -> Vec<String> {
    let InstancePlace {
        ordinal,
        generation,
    } = place;
    let named = [
        (
            layout::args::INSTANCE,
            names::instance(&cluster.name, ordinal),
        ),
        (layout::args::CLUSTER_UID, cluster.uid.clone()),
        (
            layout::args::SERVER_ID,
            server_id::server_id(&cluster.uid, ordinal, generation).to_string(),
        ),
        (
            layout::args::ADVERTISE,
            names::advertised(&cluster.namespace, &cluster.name, ordinal),
        ),
        (
            layout::args::ACKNOWLEDGE,
            acknowledge(cluster.acknowledge).to_owned(),
        ),
    ];
    let named = named
        .into_iter()
        .map(|(name, value)| format!("--{name}={value}"));
    strings(["agent", "run"]).into_iter().chain(named).collect()
}

const fn acknowledge(acknowledge: Acknowledge) -> &'static str {
    match acknowledge {
        Acknowledge::Received => "Received",
        Acknowledge::Fsynced => "Fsynced",
    }
}

fn volumes(cluster: &ValidatedCluster, place: InstancePlace) -> Vec<Volume> {
    let InstancePlace {
        ordinal,
        generation,
    } = place;
    let named = |name: &str| Volume {
        name: name.to_owned(),
        ..Volume::default()
    };
    vec![
        Volume {
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: names::volume_claim(&cluster.name, ordinal, generation),
                read_only: None,
            }),
            ..named("data")
        },
        Volume {
            empty_dir: Some(empty_dir(Some("Memory"), Some("64Mi"))),
            ..named("run")
        },
        Volume {
            empty_dir: Some(empty_dir(None, None)),
            ..named("tmp")
        },
        Volume {
            empty_dir: Some(empty_dir(None, None)),
            ..named("bin")
        },
        Volume {
            config_map: Some(ConfigMapVolumeSource {
                name: names::config_map(&cluster.name),
                ..ConfigMapVolumeSource::default()
            }),
            ..named("config")
        },
        Volume {
            secret: Some(secret(names::tls_secret(&cluster.name, ordinal), None)),
            ..named("tls")
        },
        Volume {
            secret: Some(secret(
                names::app_secret(&cluster.name),
                Some(["user", "password", "database"]),
            )),
            ..named("app")
        },
    ]
}

fn empty_dir(medium: Option<&str>, size: Option<&str>) -> EmptyDirVolumeSource {
    EmptyDirVolumeSource {
        medium: medium.map(str::to_owned),
        size_limit: size.map(|size| Quantity(size.to_owned())),
    }
}

fn secret(name: String, only: Option<[&str; 3]>) -> SecretVolumeSource {
    let item = |key: &str| KeyToPath {
        key: key.to_owned(),
        path: key.to_owned(),
        mode: None,
    };
    SecretVolumeSource {
        secret_name: Some(name),
        default_mode: Some(SECRET_MODE),
        items: only.map(|keys| keys.map(item).to_vec()),
        optional: None,
    }
}

/// On nodes of their own if there are enough, and in zones of their own.
fn apart(cluster: &ValidatedCluster) -> Affinity {
    let term = |key: &str, weight: i32| WeightedPodAffinityTerm {
        weight,
        pod_affinity_term: PodAffinityTerm {
            label_selector: Some(labels::selector(labels::instances(cluster))),
            topology_key: key.to_owned(),
            ..PodAffinityTerm::default()
        },
    };
    Affinity {
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![
                term("kubernetes.io/hostname", 100),
                term("topology.kubernetes.io/zone", 50),
            ]),
            required_during_scheduling_ignored_during_execution: None,
        }),
        ..Affinity::default()
    }
}

pub(crate) fn probe(path: &str, period_seconds: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(PORT_PROBES.to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        failure_threshold: Some(failures),
        timeout_seconds: Some(2),
        ..Probe::default()
    }
}

pub(crate) fn port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}

fn read_only(mount: VolumeMount) -> VolumeMount {
    VolumeMount {
        read_only: Some(true),
        ..mount
    }
}

pub(crate) fn amounts<const N: usize>(amounts: [(&str, &str); N]) -> BTreeMap<String, Quantity> {
    amounts
        .into_iter()
        .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
        .collect()
}

pub(crate) fn strings<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}
