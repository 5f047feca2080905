//! What the operator may do, and what users of the usual roles may do with
//! clusters. A right is added with the code that uses it, never before.

use super::{OPERATOR_NAMESPACE, OPERATOR_SERVICE_ACCOUNT, in_namespace, named};
use crate::pod::strings;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

const READ: [&str; 3] = ["get", "list", "watch"];
/// Server-side apply creates by patch, for which both rights are asked.
const KEEP: [&str; 5] = ["get", "list", "watch", "create", "patch"];
const KEEP_AND_DELETE: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

pub(super) struct Rights {
    pub(super) service_account: ServiceAccount,
    pub(super) cluster_role: ClusterRole,
    pub(super) cluster_role_binding: ClusterRoleBinding,
    pub(super) role: Role,
    pub(super) role_binding: RoleBinding,
    pub(super) view: ClusterRole,
    pub(super) edit: ClusterRole,
}

pub(super) fn objects() -> Rights {
    Rights {
        service_account: ServiceAccount {
            metadata: in_namespace(OPERATOR_SERVICE_ACCOUNT),
            ..ServiceAccount::default()
        },
        cluster_role: ClusterRole {
            metadata: named(OPERATOR_SERVICE_ACCOUNT),
            rules: Some(everywhere()),
            aggregation_rule: None,
        },
        cluster_role_binding: ClusterRoleBinding {
            metadata: named(OPERATOR_SERVICE_ACCOUNT),
            role_ref: role_ref("ClusterRole"),
            subjects: Some(vec![operator()]),
        },
        role: Role {
            metadata: in_namespace(OPERATOR_SERVICE_ACCOUNT),
            rules: Some(vec![rule(
                "coordination.k8s.io",
                &["leases"],
                &["get", "create", "update"],
            )]),
        },
        role_binding: RoleBinding {
            metadata: in_namespace(OPERATOR_SERVICE_ACCOUNT),
            role_ref: role_ref("Role"),
            subjects: Some(vec![operator()]),
        },
        view: for_users("view", &READ),
        edit: for_users(
            "edit",
            &["create", "delete", "deletecollection", "patch", "update"],
        ),
    }
}

fn everywhere() -> Vec<PolicyRule> {
    vec![
        rule(api::GROUP, &["mysqlclusters"], &READ),
        rule(api::GROUP, &["mysqlclusters/status"], &["patch"]),
        // What goes with the cluster is deleted by Kubernetes, by its owner;
        // a claim holds data, and the operator cannot delete one at all.
        rule(
            "",
            &["configmaps", "persistentvolumeclaims", "services"],
            &KEEP,
        ),
        rule("", &["pods", "secrets"], &KEEP_AND_DELETE),
        rule("policy", &["poddisruptionbudgets"], &KEEP_AND_DELETE),
        // A Pod whose node is out of service will not come back.
        rule("", &["nodes"], &READ),
        rule("events.k8s.io", &["events"], &["create", "patch"]),
    ]
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |texts: &[&str]| {
        texts
            .iter()
            .map(|&text| text.to_owned())
            .collect::<Vec<_>>()
    };
    PolicyRule {
        api_groups: Some(strings([group])),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

fn operator() -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: OPERATOR_SERVICE_ACCOUNT.to_owned(),
        namespace: Some(OPERATOR_NAMESPACE.to_owned()),
        api_group: None,
    }
}

fn role_ref(kind: &str) -> RoleRef {
    RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: kind.to_owned(),
        name: OPERATOR_SERVICE_ACCOUNT.to_owned(),
    }
}

/// Joins the cluster's own roles: who may view or edit a namespace may do so
/// with its MySQL clusters.
fn for_users(role: &str, verbs: &[&str]) -> ClusterRole {
    let mut metadata = named(&format!("katazuke-{role}"));
    let labels = metadata.labels.get_or_insert_default();
    let joined: &[&str] = match role {
        "view" => &["view", "edit", "admin"],
        _ => &["edit", "admin"],
    };
    for name in joined {
        labels.insert(
            format!("rbac.authorization.k8s.io/aggregate-to-{name}"),
            "true".to_owned(),
        );
    }
    ClusterRole {
        metadata,
        rules: Some(vec![rule(api::GROUP, &["mysqlclusters"], verbs)]),
        aggregation_rule: None,
    }
}
