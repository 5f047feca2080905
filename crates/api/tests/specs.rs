//! Good and bad specs, each a file in `specs/`: the first lines say whether the
//! last document is refused, where, and with which sentence; documents before
//! it are applied first. The same table is run against a real API server by
//! the tests of that tier; here the rules are evaluated without one.

#![allow(
    clippy::unwrap_used,
    reason = "a test stops where its picture is wrong"
)]

use api::MySQLCluster;
use kube_cel::Validator;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

struct Case {
    file: String,
    refused: Option<(String, String)>,
    documents: Vec<Value>,
}

fn cases() -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/specs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(case).collect()
}

fn case(path: &PathBuf) -> Case {
    let text = std::fs::read_to_string(path).unwrap();
    let header = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key))
            .map(|rest| rest.trim().to_owned())
    };
    let refused = header("# refused:").map(|sentence| (header("# at:").unwrap(), sentence));
    assert!(
        refused.is_some() || text.starts_with("# accepted"),
        "{}",
        path.display()
    );
    let documents = serde_yaml_ng::Deserializer::from_str(&text)
        .map(|document| Value::deserialize(document).unwrap())
        .collect();
    Case {
        file: path.file_name().unwrap().to_string_lossy().into_owned(),
        refused,
        documents,
    }
}

fn schema() -> Value {
    let version = api::crd().spec.versions.remove(0);
    serde_json::to_value(version.schema.unwrap().open_api_v3_schema.unwrap()).unwrap()
}

/// As the API server does: nulls go before defaults come.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// What the rules say about the last document, as `place: sentence`.
fn complaints(schema: &Value, case: &Case) -> Vec<String> {
    let mut old: Option<Value> = None;
    let mut complaints = Vec::new();
    for document in case.documents.iter().map(without_nulls) {
        assert_eq!(
            complaints,
            Vec::<String>::new(),
            "{}: refused too early",
            case.file
        );
        if let Err(errors) = Validator::new().validate(schema, &document, old.as_ref()) {
            for error in errors.into_vec() {
                let place = if error.field_path.is_empty() {
                    "<nil>"
                } else {
                    &error.field_path
                };
                complaints.push(format!("{place}: {}", error.message));
            }
        }
        old = Some(document);
    }
    complaints
}

#[test]
fn a_good_spec_is_accepted_and_a_bad_one_is_told_what_to_write() {
    let schema = schema();
    let mut wrong = Vec::new();
    for case in cases() {
        let complaints = complaints(&schema, &case);
        let as_expected = match &case.refused {
            None => complaints.is_empty(),
            Some((place, sentence)) => {
                let expected = format!("{place}: {sentence}");
                complaints
                    .iter()
                    .any(|complaint| complaint.starts_with(&expected))
            }
        };
        if !as_expected {
            wrong.push((case.file, complaints));
        }
    }
    assert_eq!(wrong, Vec::new());
}

#[test]
fn every_rule_refuses_something_in_the_table() {
    let schema = schema();
    let seen: BTreeSet<String> = cases()
        .iter()
        .flat_map(|case| complaints(&schema, case))
        .collect();
    let mut unseen = Vec::new();
    walk(&schema, &mut |message| {
        let forced = message.starts_with("remove ");
        if !forced && !seen.iter().any(|complaint| complaint.ends_with(message)) {
            unseen.push(message.to_owned());
        }
    });
    assert_eq!(unseen, Vec::<String>::new());
}

fn walk(schema: &Value, each: &mut impl FnMut(&str)) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        each(rule["message"].as_str().unwrap());
    }
    for child in schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::values)
    {
        walk(child, each);
    }
}

/// The rule in the CRD and the function are two ways to say one list.
#[test]
fn the_rules_and_the_function_agree_on_what_is_forced() {
    let schema = schema();
    let mut forced = 0;
    for case in cases() {
        let refused = complaints(&schema, &case)
            .iter()
            .any(|text| text.contains(": remove "));
        let config = case.documents.last().unwrap()["spec"]["config"]
            .as_object()
            .cloned();
        let found = config
            .iter()
            .flat_map(|map| map.keys())
            .any(|key| api::forced(key).is_some());
        assert_eq!(
            refused,
            found && !case.file.starts_with("key-with-"),
            "{}",
            case.file
        );
        forced += i32::from(refused);
    }
    assert!(forced > 20, "{forced}");
}

/// Also those that are refused: what an older version let in must stay readable.
#[test]
fn every_spec_in_the_table_can_be_read() {
    for case in cases() {
        for document in case.documents.iter().map(without_nulls) {
            serde_json::from_value::<MySQLCluster>(document).expect(&case.file);
        }
    }
}

#[test]
fn the_defaults_of_the_schema_are_those_of_the_types() {
    let least = cases()
        .into_iter()
        .find(|case| case.file == "least.yaml")
        .unwrap();
    let read: MySQLCluster = serde_json::from_value(least.documents[0].clone()).unwrap();
    let written = serde_json::to_value(&read.spec).unwrap();
    let properties = schema()["properties"]["spec"]["properties"].clone();
    for (name, property) in properties.as_object().unwrap() {
        if let Some(default) = property.get("default") {
            assert_eq!(written.get(name), Some(default), "{name}");
        }
    }
    assert_eq!(
        (read.spec.replicas, read.spec.failover.silence_seconds),
        (3, 5)
    );
}
