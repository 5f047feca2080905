//! Whether an object has what we want: only the fields that we set are looked
//! at, quantities by value, lists of named things by name. What the API server
//! and others add is never a difference. Pure.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use manifests::quantity;
use serde_json::{Map, Value};

/// Keys under which quantities live.
const QUANTITIES: [&str; 3] = ["requests", "limits", "capacity"];
/// A map that is compared as a whole.
const SELECTOR: &str = "selector";
/// Keys by which an element of a list is known.
const NAMES: [&str; 4] = ["uid", "name", "port", "key"];

/// Everything wanted is there.
pub(super) fn has(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| has_field(live, key, wanted)),
        (Value::Array(live), Value::Array(wanted)) => has_elements(live, wanted),
        (live, wanted) => live == wanted,
    }
}

fn has_field(live: &Map<String, Value>, key: &str, wanted: &Value) -> bool {
    let Some(live) = live.get(key) else {
        // An empty map or list is not stored.
        return wanted.as_object().is_some_and(Map::is_empty)
            || wanted.as_array().is_some_and(Vec::is_empty)
            || wanted.is_null();
    };
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) if QUANTITIES.contains(&key) => {
            wanted.iter().all(|(name, wanted)| {
                live.get(name)
                    .is_some_and(|live| same_quantity(live, wanted))
            })
        }
        // One key more and it selects something else.
        (live, wanted) if key == SELECTOR => live == wanted,
        (live, wanted) => has(live, wanted),
    }
}

fn same_quantity(live: &Value, wanted: &Value) -> bool {
    let quantity = |value: &Value| match value {
        Value::String(text) => Some(Quantity(text.clone())),
        Value::Number(number) => Some(Quantity(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    match (quantity(live), quantity(wanted)) {
        (Some(live), Some(wanted)) => quantity::same(&live, &wanted),
        (Some(_) | None, _) => live == wanted,
    }
}

fn has_elements(live: &[Value], wanted: &[Value]) -> bool {
    let named = |value: &Value| {
        NAMES
            .iter()
            .find_map(|key| value.get(key).map(|name| (*key, name.clone())))
    };
    if wanted.iter().all(|wanted| named(wanted).is_some()) {
        return wanted.iter().all(|wanted| {
            let name = named(wanted);
            live.iter()
                .any(|live| named(live) == name && has(live, wanted))
        });
    }
    live.len() == wanted.len()
        && live
            .iter()
            .zip(wanted)
            .all(|(live, wanted)| has(live, wanted))
}

/// Takes a field out, by its path as a conflict names it (`.spec.type`,
/// `.metadata.labels.team`, `.spec.ports[port=1].name`). A path into a list
/// takes the whole list. False when it is not there.
pub(super) fn take_out(object: &mut Value, path: &str) -> bool {
    let path = path.strip_prefix('.').unwrap_or(path);
    let path = path.split('[').next().unwrap_or(path);
    let Some(fields) = object.as_object_mut() else {
        return false;
    };
    // Keys may hold dots: the longest that fits is meant.
    let mut fitting: Vec<String> = fields
        .keys()
        .filter(|key| path == key.as_str() || path.starts_with(&format!("{key}.")))
        .cloned()
        .collect();
    fitting.sort_by_key(String::len);
    let Some(key) = fitting.pop() else {
        return false;
    };
    match path.get(key.len() + 1..) {
        None => fields.remove(&key).is_some(),
        Some(rest) => fields
            .get_mut(&key)
            .is_some_and(|inner| take_out(inner, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_others_add_is_no_difference_and_what_we_want_differently_is() {
        let live = json!({
            "metadata": {"labels": {"a": "1", "team": "x"}, "uid": "u"},
            "spec": {
                "clusterIP": "10.0.0.1", "type": "ClusterIP",
                "ports": [{"name": "other", "port": 1}, {"name": "mysql", "port": 3306, "nodePort": 30000}],
            },
        });
        assert!(has(
            &live,
            &json!({"metadata": {"labels": {"a": "1"}}, "spec": {"ports": [{"name": "mysql", "port": 3306}]}})
        ));
        assert!(!has(&live, &json!({"spec": {"type": "NodePort"}})));
        assert!(!has(
            &live,
            &json!({"spec": {"ports": [{"name": "mysql", "port": 3307}]}})
        ));
        assert!(!has(&live, &json!({"metadata": {"labels": {"b": "1"}}})));
        assert!(has(&live, &json!({"metadata": {"annotations": {}}})));
    }

    #[test]
    fn a_selector_with_one_key_more_is_another_selector() {
        let live = json!({"spec": {"selector": {"a": "1", "evil": "1"}}});
        assert!(!has(&live, &json!({"spec": {"selector": {"a": "1"}}})));
        assert!(has(
            &live,
            &json!({"spec": {"selector": {"a": "1", "evil": "1"}}})
        ));
    }

    #[test]
    fn quantities_are_the_same_however_written() {
        let live = json!({"resources": {"requests": {"storage": "6G", "cpu": "500m"}}});
        assert!(has(
            &live,
            &json!({"resources": {"requests": {"storage": "6000M", "cpu": "0.5"}}})
        ));
        assert!(!has(
            &live,
            &json!({"resources": {"requests": {"storage": "6Gi"}}})
        ));
    }

    #[test]
    fn a_field_is_taken_out_by_the_path_of_a_conflict() {
        let mut object = json!({
            "metadata": {"labels": {"team.x/y": "1", "b": "2"}},
            "spec": {"type": "ClusterIP", "ports": [{"port": 1}]},
        });
        assert!(take_out(&mut object, ".metadata.labels.team.x/y"));
        assert!(take_out(&mut object, ".spec.ports[port=1].name"));
        assert!(take_out(&mut object, ".spec.type"));
        assert!(!take_out(&mut object, ".spec.other"));
        assert_eq!(
            object,
            json!({"metadata": {"labels": {"b": "2"}}, "spec": {}})
        );
    }
}
