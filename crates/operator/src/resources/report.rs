//! What is said about the owned objects: two conditions, always the same, with
//! reasons from a closed list. Pure.

use katazuke_core::conditions::Condition;

use super::apply::Conflict;
use super::error::ReconcileError;
use crate::events::Reason;

/// `Reconciled` and `FieldConflict`.
pub(super) fn conditions<'a>(
    refused: &[String],
    errors: &[ReconcileError],
    conflicts: impl Iterator<Item = &'a Conflict>,
) -> Vec<Condition> {
    let conflicts: Vec<String> = conflicts.map(sentence).collect();
    let reconciled = if !refused.is_empty() {
        condition("Reconciled", false, "SpecRefused", refused.join("; "))
    } else if let Some(first) = errors.first() {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        condition("Reconciled", false, first.reason(), all.join("; "))
    } else {
        let message = "every owned object is as the spec wants it".to_owned();
        condition("Reconciled", true, "AsWanted", message)
    };
    let conflict = if conflicts.is_empty() {
        let message = "no other manager holds a field that is wanted".to_owned();
        condition("FieldConflict", false, "NoConflict", message)
    } else {
        condition("FieldConflict", true, "Yielded", conflicts.join("; "))
    };
    vec![reconciled, conflict]
}

/// Object, fields, managers.
pub(super) fn sentence(conflict: &Conflict) -> String {
    let Conflict {
        object,
        fields,
        managers,
        taken,
    } = conflict;
    let what = if *taken { "taken back from" } else { "left to" };
    format!(
        "{object}: {} {what} {}",
        fields.join(", "),
        managers.join(", ")
    )
}

/// The event of a condition that is not as it should be.
pub(super) fn event(condition: &Condition) -> Option<Reason> {
    match (condition.kind, condition.status, condition.reason) {
        ("Reconciled", Some(false), "SpecRefused") => Some(Reason::SpecRefused),
        ("Reconciled", Some(false), _) => Some(Reason::ReconcileFailed),
        ("FieldConflict", Some(true), _) => Some(Reason::FieldConflict),
        _ => None,
    }
}

fn condition(kind: &'static str, status: bool, reason: &'static str, message: String) -> Condition {
    Condition {
        kind,
        status: Some(status),
        reason,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_spec_is_said_with_every_field() {
        let said = conditions(
            &["spec.image: a".into(), "spec.reads: b".into()],
            &[],
            [].iter(),
        );
        assert_eq!(said[0].reason, "SpecRefused");
        assert_eq!(said[0].message, "spec.image: a; spec.reads: b");
        assert_eq!(event(&said[0]), Some(Reason::SpecRefused));
        assert_eq!(event(&said[1]), None);
    }

    #[test]
    fn a_conflict_is_said_with_object_field_and_manager() {
        let conflict = Conflict {
            object: "Service shop-primary".into(),
            fields: vec![".spec.type".into()],
            managers: vec!["kubectl".into()],
            taken: false,
        };
        let said = conditions(&[], &[], [conflict].iter());
        assert_eq!(said[0].status, Some(true));
        assert_eq!(
            said[1].message,
            "Service shop-primary: .spec.type left to kubectl"
        );
    }
}
