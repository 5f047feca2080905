//! The second line of defence: what the CRD's rules refuse is refused here too.

#![allow(
    clippy::unwrap_used,
    reason = "a test stops where its picture is wrong"
)]

use api::MySQLCluster;
use manifests::validate;
use serde::Deserialize;
use std::path::PathBuf;

fn with_spec(lines: &str) -> MySQLCluster {
    let text = format!(
        "metadata: {{name: shop, namespace: db, uid: u}}\nspec:\n  image: mysql:9.7\n  storage: {{size: 1Gi}}\n{lines}"
    );
    let mut value: serde_yaml_ng::Value = serde_yaml_ng::from_str(&text).unwrap();
    value["apiVersion"] = "mysql.katazuke.dev/v1alpha1".into();
    value["kind"] = "MySQLCluster".into();
    serde_yaml_ng::from_value(value).unwrap()
}

fn complaints(cluster: &MySQLCluster) -> Vec<String> {
    match validate(cluster) {
        Ok(_) => Vec::new(),
        Err(invalid) => invalid.iter().map(ToString::to_string).collect(),
    }
}

/// Rules about amounts and label texts only spare an error of the API server
/// later; changes over time need the resource before.
const CRD_ONLY: [&str; 9] = [
    "acknowledge-changed",
    "limits-not-an-amount",
    "lowering-replicas",
    "node-selector-not-a-label",
    "pod-label-not-a-label",
    "replica-service-annotation-not-one",
    "resources-",
    "storage-class-",
    "storage-shrinks",
];

#[test]
fn what_the_crd_refuses_is_refused_here() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../api/tests/specs");
    let (mut refused, mut accepted) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let last = serde_yaml_ng::Deserializer::from_str(&text).last().unwrap();
        let mut value = serde_yaml_ng::Value::deserialize(last).unwrap();
        if let Some(spec) = value["spec"].as_mapping_mut() {
            spec.retain(|_, value| !value.is_null());
        }
        let mut cluster: MySQLCluster = serde_yaml_ng::from_value(value).unwrap();
        cluster.metadata.uid = Some("u".into());
        let expected = text.contains("# refused:")
            && !CRD_ONLY.iter().any(|beginning| file.starts_with(beginning));
        let complaints = complaints(&cluster);
        assert_eq!(!complaints.is_empty(), expected, "{file}: {complaints:?}");
        refused += i32::from(expected);
        accepted += i32::from(!expected);
    }
    assert!(refused > 50 && accepted > 5, "{refused} {accepted}");
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let bad = with_spec(
        "  replicas: 0\n  config: {loose-sync-binlog: '0', max_connections: \"1\\n2\"}\n  reads: Strict\n",
    );
    assert_eq!(
        complaints(&bad),
        [
            "spec.config: remove sync_binlog: Katazuke sets it itself: an acknowledged write would not survive a crash otherwise",
            "spec.config: write the value of \"max_connections\" as one line",
            "spec.reads: write Available: Strict is not built yet",
            "spec.replicas: write 1 to 9",
        ]
    );
}

#[test]
fn periods_are_read() {
    let good = with_spec("  rebuild: {keepOldVolumeFor: 90m, keepArchiveFor: 2d}\n");
    let behaviour = validate(&good).unwrap().behaviour;
    assert_eq!(behaviour.keep_old_volume_seconds, 5_400);
    assert_eq!(behaviour.keep_archive_seconds, 172_800);
}

#[test]
fn a_resource_that_was_not_read_from_a_server_is_refused() {
    let mut cluster = with_spec("");
    cluster.metadata.uid = None;
    cluster.metadata.namespace = None;
    assert_eq!(complaints(&cluster).len(), 2);
}
