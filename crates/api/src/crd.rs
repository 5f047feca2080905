//! The CustomResourceDefinition: what the types say, plus rules and bounds.
//! Never edited by hand where it is written to a file.

use crate::rules::{self, BOUNDS, Bound, Rule};
use crate::spec::MySQLCluster;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    ValidationRule,
};
use kube::CustomResourceExt;

/// The definition of [`MySQLCluster`] as it is installed.
///
/// Use this one and not `MySQLCluster::crd()`, which knows no rules.
pub fn crd() -> CustomResourceDefinition {
    let mut crd = MySQLCluster::crd();
    let schemas = crd
        .spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        every(schema, &tidy);
        for bound in BOUNDS {
            limit(schema, bound);
        }
        for rule in rules::all() {
            add(schema, rule);
        }
    }
    crd
}

/// Nulls are then pruned and defaulted by the API server, so that no rule
/// meets one; integers keep to the formats that Kubernetes knows.
fn tidy(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.format = match schema.format.take().as_deref() {
        Some("uint8" | "uint16" | "uint32" | "uint64" | "uint") => Some("int64".to_owned()),
        Some(other) => Some(other.to_owned()),
        None => None,
    };
}

fn every(schema: &mut JSONSchemaProps, edit: &impl Fn(&mut JSONSchemaProps)) {
    edit(schema);
    for child in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        every(child, edit);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(child)) => every(child, edit),
        Some(JSONSchemaPropsOrArray::Schemas(children)) => {
            for child in children {
                every(child, edit);
            }
        }
        None => {}
    }
    match &mut schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(child)) => every(child, edit),
        Some(JSONSchemaPropsOrBool::Bool(_)) | None => {}
    }
}

/// The schema at a place such as `spec.config.*`. A test asks for every place
/// that is named in the rules.
fn at<'s>(schema: &'s mut JSONSchemaProps, place: &str) -> Option<&'s mut JSONSchemaProps> {
    place
        .split('.')
        .filter(|step| !step.is_empty())
        .try_fold(schema, |schema, step| {
            if step != "*" {
                return schema.properties.as_mut()?.get_mut(step);
            }
            match schema.additional_properties.as_mut()? {
                JSONSchemaPropsOrBool::Schema(values) => Some(values.as_mut()),
                JSONSchemaPropsOrBool::Bool(_) => None,
            }
        })
}

fn limit(schema: &mut JSONSchemaProps, bound: &Bound) {
    match *bound {
        Bound::Properties(place, most) => {
            if let Some(schema) = at(schema, place) {
                schema.max_properties = Some(most);
            }
        }
        Bound::Length(place, most) => {
            if let Some(schema) = at(schema, place) {
                schema.max_length = Some(most);
            }
        }
    }
}

fn add(schema: &mut JSONSchemaProps, rule: Rule) {
    let Rule {
        at: place,
        cel,
        message,
    } = rule;
    if let Some(schema) = at(schema, place) {
        schema
            .x_kubernetes_validations
            .get_or_insert_default()
            .push(ValidationRule {
                rule: cel,
                message: Some(message),
                ..ValidationRule::default()
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> JSONSchemaProps {
        let version = crd().spec.versions.remove(0);
        version.schema.unwrap().open_api_v3_schema.unwrap()
    }

    #[test]
    fn every_rule_and_bound_has_its_place() {
        let mut schema = schema();
        for rule in rules::all() {
            let at = at(&mut schema, rule.at).expect(rule.at);
            assert!(at.x_kubernetes_validations.is_some(), "{}", rule.at);
        }
        for bound in BOUNDS {
            let (Bound::Properties(place, _) | Bound::Length(place, _)) = bound;
            assert!(at(&mut schema, place).is_some(), "{place}");
        }
    }

    #[test]
    fn every_property_is_described() {
        fn walk(schema: &JSONSchemaProps, path: &str, missing: &mut Vec<String>) {
            for (name, child) in schema.properties.iter().flatten() {
                let path = format!("{path}.{name}");
                let described = child
                    .description
                    .as_ref()
                    .is_some_and(|text| text.len() > 8);
                if !described && path != ".spec" && path != ".status" {
                    missing.push(path.clone());
                }
                walk(child, &path, missing);
            }
            if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
                walk(items, &format!("{path}[]"), missing);
            }
            if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
                walk(values, &format!("{path}{{}}"), missing);
            }
        }
        let mut missing = Vec::new();
        walk(&schema(), "", &mut missing);
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn nothing_is_nullable_and_every_format_is_known_to_kubernetes() {
        let mut schema = schema();
        every(&mut schema, &|schema| {
            assert_eq!(schema.nullable, None);
            if let Some(format) = &schema.format {
                assert!(
                    ["int32", "int64", "date-time"].contains(&format.as_str()),
                    "{format}"
                );
            }
        });
    }

    #[test]
    fn what_a_string_rule_reads_is_bounded() {
        let mut schema = schema();
        for rule in rules::all().iter().filter(|rule| !rule.at.is_empty()) {
            let schema = at(&mut schema, rule.at).unwrap();
            if schema.type_.as_deref() == Some("string") && schema.enum_.is_none() {
                assert!(schema.max_length.is_some(), "{}", rule.at);
            }
            if schema.additional_properties.is_some() {
                assert!(schema.max_properties.is_some(), "{}", rule.at);
            }
        }
    }
}
