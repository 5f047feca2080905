//! What is applied to install Katazuke itself. No webhooks, no privileges on a
//! node, and no right that the operator does not use.

mod operator;
mod rights;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, to_value};
use std::collections::BTreeMap;

/// Where the operator runs.
pub const OPERATOR_NAMESPACE: &str = "katazuke-system";
/// The identity that the operator runs with.
pub const OPERATOR_SERVICE_ACCOUNT: &str = "katazuke-operator";

/// One file of `deploy/`, in the order in which it is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct InstallFile {
    /// Name of the file.
    pub name: &'static str,
    /// The objects in it, one document each.
    pub documents: Vec<Value>,
}

/// Everything that is applied, with the operator's image in it. Fails only if
/// an object cannot be written as JSON.
pub fn install(image: &str) -> Result<Vec<InstallFile>, serde_json::Error> {
    let operator = operator::objects(image);
    let rights = rights::objects();
    let crd = vec![to_value(api::crd())?];
    let namespace = vec![to_value(namespace())?];
    let rights = vec![
        to_value(rights.service_account)?,
        to_value(rights.cluster_role)?,
        to_value(rights.cluster_role_binding)?,
        to_value(rights.role)?,
        to_value(rights.role_binding)?,
        to_value(rights.view)?,
        to_value(rights.edit)?,
    ];
    let operator = vec![
        to_value(operator.deployment)?,
        to_value(operator.disruption_budget)?,
    ];
    Ok(vec![
        InstallFile {
            name: "00-crd.yaml",
            documents: crd,
        },
        InstallFile {
            name: "10-namespace.yaml",
            documents: namespace,
        },
        InstallFile {
            name: "20-rights.yaml",
            documents: rights,
        },
        InstallFile {
            name: "30-operator.yaml",
            documents: operator,
        },
    ])
}

fn namespace() -> Namespace {
    let mut labels = labels();
    labels.insert(
        "pod-security.kubernetes.io/enforce".to_owned(),
        "restricted".to_owned(),
    );
    Namespace {
        metadata: ObjectMeta {
            name: Some(OPERATOR_NAMESPACE.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}

fn labels() -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", "katazuke"),
        ("app.kubernetes.io/component", "operator"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels()),
        ..ObjectMeta::default()
    }
}

fn in_namespace(name: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(OPERATOR_NAMESPACE.to_owned()),
        ..named(name)
    }
}
