//! The JSON merge patch (RFC 7386) that turns one value into another. Pure.

use serde_json::{Map, Value};

/// `None` when they are equal.
pub fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => {
            let mut patch = Map::new();
            for key in from.keys().filter(|key| !to.contains_key(*key)) {
                patch.insert(key.clone(), Value::Null);
            }
            for (key, wanted) in to {
                let difference = match from.get(key) {
                    None => Some(wanted.clone()),
                    Some(present) => merge_patch(present, wanted),
                };
                if let Some(difference) = difference {
                    patch.insert(key.clone(), difference);
                }
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (from, to) => (from != to).then(|| to.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::merge_patch;
    use serde_json::json;

    #[test]
    fn a_patch_holds_what_differs_and_null_for_what_is_gone() {
        let from = json!({"a": 1, "b": {"c": [1], "d": 2}, "e": {}});
        assert_eq!(merge_patch(&from, &from), None);
        assert_eq!(
            merge_patch(&from, &json!({"a": 1, "b": {"c": [2]}, "f": {"g": 1}})),
            Some(json!({"b": {"c": [2], "d": null}, "e": null, "f": {"g": 1}}))
        );
    }
}
