//! Tests: every field of a validated cluster shows in some object, and a Pod's
//! mark changes exactly when its instance has to be restarted.

use crate::{
    AppCredentials, Behaviour, InstancePlace, KeyPair, SPEC_HASH, Services, ValidatedCluster,
    app_secret, ca_secret, config_map, disruption_budget, pod, services, tls_secret, validate,
    volume_claim,
};
use api::{
    Acknowledge, MySQLCluster, PodTemplate, Policy, Resources, ServiceTemplate, ServiceType,
    Storage,
};
use k8s_openapi::api::core::v1::{LocalObjectReference, Toleration, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;

const PLACE: InstancePlace = InstancePlace {
    ordinal: 1,
    generation: 0,
};

fn shop() -> ValidatedCluster {
    let text = include_str!("../../../examples/shop.yaml");
    let mut cluster: MySQLCluster = serde_yaml_ng::from_str(text).unwrap();
    cluster.metadata.uid = Some("6f2f4f6a".into());
    validate(&cluster).unwrap()
}

fn everything(cluster: &ValidatedCluster) -> String {
    let pair = KeyPair {
        certificate: "c".into(),
        key: "k".into(),
        trust: "t".into(),
    };
    let app = AppCredentials {
        user: "u".into(),
        password: "p".into(),
        database: "d".into(),
    };
    let Services {
        headless,
        primary,
        replica,
    } = services(cluster);
    serde_json::to_string(&(
        [headless, primary, replica],
        config_map(cluster),
        disruption_budget(cluster),
        [
            ca_secret(cluster, &pair),
            tls_secret(cluster, 1, &pair),
            app_secret(cluster, &app),
        ],
        volume_claim(cluster, PLACE),
        pod(cluster, PLACE, "katazuke:1"),
    ))
    .unwrap()
}

type Change = (&'static str, fn(&mut ValidatedCluster));

fn map(key: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), "x".to_owned())])
}

fn changes() -> Vec<Change> {
    // A new field does not compile here until it is given a change below, or is
    // one of those that no object shows.
    let ValidatedCluster {
        name: _,
        namespace: _,
        uid: _,
        replicas: _,
        image: _,
        storage: Storage {
            size: _,
            storage_class_name: _,
        },
        resources: Resources {
            requests: _,
            limits: _,
        },
        config: _,
        pod_template:
            PodTemplate {
                labels: _,
                annotations: _,
                node_selector: _,
                affinity: _,
                tolerations: _,
                topology_spread_constraints: _,
                image_pull_secrets: _,
                priority_class_name: _,
                runtime_class_name: _,
                run_as_user: _,
                fs_group: _,
            },
        primary_service:
            ServiceTemplate {
                service_type: _,
                annotations: _,
                labels: _,
            },
        replica_service: _,
        acknowledge: _,
        deletion_policy: _,
        // Read by the operator; no object shows it.
        behaviour:
            Behaviour {
                silence_seconds: _,
                offline: _,
                paused: _,
                on_scale_down: _,
                rebuild: _,
                keep_old_volume_seconds: _,
                keep_archive_seconds: _,
            },
    } = shop();
    let mut changes: Vec<Change> = vec![
        ("name", |c| c.name = "other".into()),
        ("namespace", |c| c.namespace = "other".into()),
        ("uid", |c| c.uid = "other".into()),
        ("replicas", |c| c.replicas = 1),
        ("image", |c| c.image = "mysql:8.4".into()),
        ("size", |c| c.storage.size = Quantity("2Gi".into())),
        ("class", |c| {
            c.storage.storage_class_name = Some("fast".into());
        }),
        ("requests", |c| c.resources.requests.clear()),
        ("limits", |c| c.resources.limits.clear()),
        ("config", |c| c.config.clear()),
        ("acknowledge", |c| c.acknowledge = Acknowledge::Fsynced),
        ("deletion policy", |c| c.deletion_policy = Policy::Retain),
    ];
    changes.extend(pod_changes());
    changes.extend(service_changes());
    changes
}

fn pod_changes() -> [Change; 11] {
    [
        ("pod labels", |c| c.pod_template.labels = map("a")),
        ("pod annotations", |c| c.pod_template.annotations = map("a")),
        ("node selector", |c| c.pod_template.node_selector = map("a")),
        ("affinity", |c| {
            c.pod_template.affinity = Some(k8s_openapi::api::core::v1::Affinity::default());
        }),
        ("tolerations", |c| {
            c.pod_template.tolerations = vec![Toleration::default()];
        }),
        ("spread", |c| {
            c.pod_template.topology_spread_constraints = vec![TopologySpreadConstraint::default()];
        }),
        ("pull secrets", |c| {
            c.pod_template.image_pull_secrets = vec![LocalObjectReference { name: "r".into() }];
        }),
        ("priority", |c| {
            c.pod_template.priority_class_name = Some("p".into());
        }),
        ("runtime", |c| {
            c.pod_template.runtime_class_name = Some("r".into());
        }),
        ("user", |c| c.pod_template.run_as_user = 1000),
        ("group", |c| c.pod_template.fs_group = 1000),
    ]
}

fn service_changes() -> [Change; 6] {
    [
        ("primary type", |c| {
            c.primary_service.service_type = ServiceType::LoadBalancer;
        }),
        ("primary annotations", |c| {
            c.primary_service.annotations = map("a");
        }),
        ("primary labels", |c| c.primary_service.labels = map("a")),
        ("replica type", |c| {
            c.replica_service.service_type = ServiceType::NodePort;
        }),
        ("replica annotations", |c| {
            c.replica_service.annotations = map("a");
        }),
        ("replica labels", |c| c.replica_service.labels = map("a")),
    ]
}

#[test]
fn every_field_of_a_validated_cluster_shows_in_an_object() {
    for (field, change) in changes() {
        let mut changed = shop();
        change(&mut changed);
        assert_ne!(changed, shop(), "{field}: the change changes nothing");
        assert_ne!(
            everything(&changed),
            everything(&shop()),
            "{field} is forgotten"
        );
    }
}

fn mark(cluster: &ValidatedCluster, place: InstancePlace, agent: &str) -> String {
    pod(cluster, place, agent).metadata.annotations.unwrap()[SPEC_HASH].clone()
}

#[test]
fn the_mark_changes_when_and_only_when_the_instance_has_to_be_restarted() {
    let marked = |cluster: &ValidatedCluster| mark(cluster, PLACE, "katazuke:1");
    let silent = [
        "replicas",
        "size",
        "class",
        "deletion policy",
        "primary type",
        "primary annotations",
        "primary labels",
        "replica type",
        "replica annotations",
        "replica labels",
    ];
    for (field, change) in changes() {
        let mut changed = shop();
        change(&mut changed);
        let same = marked(&changed) == marked(&shop());
        assert_eq!(same, silent.contains(&field), "{field}");
    }
}

#[test]
fn a_new_operator_image_does_not_roll_the_databases() {
    assert_eq!(
        mark(&shop(), PLACE, "katazuke:1"),
        mark(&shop(), PLACE, "katazuke:2")
    );
}

#[test]
fn an_amount_written_otherwise_is_the_same_pod() {
    let mut other = shop();
    other
        .resources
        .limits
        .insert("memory".into(), Quantity("786432Ki".into()));
    other
        .resources
        .requests
        .insert("cpu".into(), Quantity("0.1".into()));
    assert_eq!(
        mark(&other, PLACE, "katazuke:1"),
        mark(&shop(), PLACE, "katazuke:1")
    );
    other
        .resources
        .limits
        .insert("memory".into(), Quantity("769Mi".into()));
    assert_ne!(
        mark(&other, PLACE, "katazuke:1"),
        mark(&shop(), PLACE, "katazuke:1")
    );
}

#[test]
fn every_instance_and_generation_has_a_mark_of_its_own() {
    let place = |ordinal, generation| InstancePlace {
        ordinal,
        generation,
    };
    let marks: std::collections::BTreeSet<String> = [place(0, 0), place(1, 0), place(0, 1)]
        .into_iter()
        .map(|place| mark(&shop(), place, "katazuke:1"))
        .collect();
    assert_eq!(marks.len(), 3);
}

#[test]
fn no_pod_carries_a_role_and_no_user_label_replaces_one_of_ours() {
    let mut cluster = shop();
    cluster.pod_template.labels = map(crate::labels::CLUSTER);
    let labels = pod(&cluster, PLACE, "katazuke:1").metadata.labels.unwrap();
    assert_eq!(labels[crate::labels::CLUSTER], "shop");
    assert!(!labels.contains_key(crate::labels::ROLE));
}

#[test]
fn retained_volumes_have_no_owner() {
    let mut cluster = shop();
    assert!(
        volume_claim(&cluster, PLACE)
            .metadata
            .owner_references
            .is_some()
    );
    cluster.deletion_policy = Policy::Retain;
    assert_eq!(
        volume_claim(&cluster, PLACE).metadata.owner_references,
        None
    );
}

#[test]
fn a_default_gives_way_to_the_user_in_any_spelling() {
    let my_cnf = |key: &str| {
        let mut cluster = shop();
        cluster.config = BTreeMap::from([(key.to_owned(), "60".to_owned())]);
        config_map(&cluster).data.unwrap()["my.cnf"].clone()
    };
    for key in [
        "replica_net_timeout",
        "replica-net-timeout",
        "loose_replica-net-timeout",
    ] {
        let file = my_cnf(key);
        assert!(!file.contains("replica_net_timeout = 10\n"), "{file}");
        assert!(file.contains(&format!("{key} = 60\n")), "{file}");
    }
    assert!(my_cnf("max_connections").contains("replica_net_timeout = 10\n"));
}
