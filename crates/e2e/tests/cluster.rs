//! Katazuke on a real cluster, with what users and the world do to it. Each test
//! is one story; all of them share one installation and a neighbour that must
//! notice nothing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where its picture is wrong"
)]

use std::sync::OnceLock;

use e2e::{Field, stage};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use xtask::terminal::Terminal;

/// A cluster that has nothing to do with the others.
fn neighbour() -> &'static Field {
    static NEIGHBOUR: OnceLock<Field> = OnceLock::new();
    NEIGHBOUR.get_or_init(|| {
        let field = Field::with("neighbour", &json!({}));
        field.is_healthy();
        field
    })
}

#[test]
fn an_image_that_cannot_be_pulled_is_named_and_a_right_one_heals() {
    neighbour();
    let field = Field::with("image", &json!({"image": "localhost/katazuke/no-such:1"}));
    field.says(&["shop-0", "localhost/katazuke/no-such:1"]);
    neighbour().is_healthy();
    field.set(&json!({}));
    field.is_healthy();
}

#[test]
fn a_pod_that_fits_nowhere_is_named_with_what_it_lacks() {
    neighbour();
    let field = Field::with(
        "unschedulable",
        &json!({"resources": {"requests": {"cpu": "900"}}}),
    );
    field.says(&["shop-0", "Insufficient cpu"]);
    neighbour().is_healthy();
    field.set(&json!({}));
    field.is_healthy();
}

#[test]
fn a_setting_that_mysqld_does_not_know_is_named() {
    neighbour();
    let field = Field::with("my-cnf", &json!({"config": {"no_such_setting": "1"}}));
    field.says(&["shop-0", "no_such_setting"]);
    neighbour().is_healthy();
    field.set(&json!({}));
    field.is_healthy();
}

#[test]
fn a_storage_class_that_does_not_exist_is_named_and_works_once_it_does() {
    neighbour();
    let class = "e2e-late";
    let field = Field::with("class", &json!({"storage": {"storageClassName": class}}));
    field.says(&["shop-0", class]);
    neighbour().is_healthy();
    let stage = stage();
    let local = stage
        .cluster
        .kubectl(["get", "storageclass", "local", "--output", "json"]);
    let mut late: serde_json::Value = serde_json::from_str(&local.unwrap()).unwrap();
    late["metadata"] = json!({"name": class});
    stage.apply_text(&late.to_string()).unwrap();
    field.is_healthy();
    stage
        .cluster
        .kubectl(["delete", "storageclass", class])
        .unwrap();
}

#[test]
fn a_secret_that_somebody_deleted_is_there_again_and_nothing_stopped() {
    let field = Field::with("secret", &json!({}));
    field.is_healthy();
    let before = pods(&field);
    let name = manifests::names::tls_secret("shop", 0);
    let namespace = &field.name.namespace;
    stage()
        .cluster
        .kubectl(["--namespace", namespace, "delete", "secret", &name])
        .unwrap();
    field.until("the Secret to be there", |_| {
        stage().secret(namespace, &name, "tls.crt").is_ok()
    });
    field.is_healthy();
    assert_eq!(pods(&field), before, "no Pod was made anew");
}

#[test]
fn deletion_with_policy_delete_leaves_nothing() {
    let field = Field::with("delete", &json!({}));
    field.is_healthy();
    let uid = field.uid();
    field.delete();
    field.leaves_nothing(&uid, false);
    assert_eq!(claims(&field), Vec::<String>::new());
}

#[test]
fn deletion_with_policy_retain_leaves_the_volumes_and_nothing_else() {
    let field = Field::with("retain", &json!({"deletion": {"policy": "Retain"}}));
    field.is_healthy();
    let uid = field.uid();
    field.delete();
    field.leaves_nothing(&uid, true);
    assert_eq!(claims(&field), ["data-shop-0-0"]);
    let labels = kept_claims(&field).remove(0).metadata.labels.unwrap();
    for (label, value) in [
        ("mysql.katazuke.dev/cluster", "shop"),
        ("mysql.katazuke.dev/cluster-uid", uid.as_str()),
        ("mysql.katazuke.dev/role", "primary"),
    ] {
        assert_eq!(
            labels.get(label).map(String::as_str),
            Some(value),
            "{label}"
        );
    }
}

#[test]
fn a_cluster_that_never_started_goes_as_well() {
    let field = Field::with("unborn", &json!({"image": "localhost/katazuke/no-such:1"}));
    field.says(&["no-such"]);
    let uid = field.uid();
    field.delete();
    field.leaves_nothing(&uid, false);
}

#[test]
fn a_deleted_namespace_ends() {
    let field = Field::with("namespace", &json!({}));
    field.is_healthy();
    let uid = field.uid();
    let namespaces: Api<Namespace> = Api::all(stage().client());
    let name = &field.name.namespace;
    let now = DeleteParams::default();
    stage()
        .ask("delete the namespace", namespaces.delete(name, &now))
        .unwrap();
    field.leaves_nothing(&uid, false);
    stage()
        .cluster
        .kubectl([
            "wait",
            "--for=delete",
            "--timeout=120s",
            &format!("namespace/{name}"),
        ])
        .unwrap();
}

#[test]
fn a_cluster_deleted_while_no_operator_runs_leaves_nothing() {
    let field = Field::with("alone", &json!({}));
    field.is_healthy();
    let uid = field.uid();
    let mut terminal = Terminal::new();
    stage().scale_operator(0, &mut terminal).unwrap();
    field.delete();
    stage().scale_operator(2, &mut terminal).unwrap();
    field.leaves_nothing(&uid, false);
    neighbour().is_healthy();
}

#[test]
fn an_operator_that_dies_in_the_middle_of_a_failover_loses_nothing() {
    let field = Field::with("failover", &json!({"replicas": 3}));
    let before = field.is_healthy();
    let mut writer = field.writer();
    field.until("a thousand writes", |_| {
        writer.history().unwrap().attempts.len() > 1000
    });
    let primary = before.primary().unwrap().to_owned();
    let leader = stage().leader().unwrap().metadata.name.unwrap();
    stage()
        .kill_mysqld(&field.name.namespace, &primary)
        .unwrap();
    stage()
        .force_delete(manifests::OPERATOR_NAMESPACE, &leader)
        .unwrap();
    field.until("a new epoch", |picture| picture.epoch() > before.epoch());
    field.is_healthy();
    field.keeps_its_promises(writer);
}

/// Names and uids of the cluster's Pods.
fn pods(field: &Field) -> Vec<(String, String)> {
    let uid = |pod: Pod| (pod.metadata.name.unwrap(), pod.metadata.uid.unwrap());
    stage()
        .pods(&field.name)
        .unwrap()
        .into_iter()
        .map(uid)
        .collect()
}

fn claims(field: &Field) -> Vec<String> {
    kept_claims(field)
        .into_iter()
        .filter_map(|claim| claim.metadata.name)
        .collect()
}

fn kept_claims(field: &Field) -> Vec<PersistentVolumeClaim> {
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(stage().client(), &field.name.namespace);
    let all = ListParams::default();
    let list = stage().ask("list claims", claims.list(&all)).unwrap();
    list.items
}
