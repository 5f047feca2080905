//! Labels and selectors. The role label decides where the Services point, so it
//! is never written by a builder: only the routing of a verified instance
//! writes it.

use crate::validate::ValidatedCluster;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use std::collections::BTreeMap;

/// Name of the cluster that an object belongs to.
pub const CLUSTER: &str = "mysql.katazuke.dev/cluster";
/// Uid of the cluster that an object belongs to.
pub const CLUSTER_UID: &str = "mysql.katazuke.dev/cluster-uid";
/// Number of the instance that an object belongs to.
pub const ORDINAL: &str = "mysql.katazuke.dev/ordinal";
/// Generation of a volume.
pub const GENERATION: &str = "mysql.katazuke.dev/generation";
/// What a Pod serves as: [`ROLE_PRIMARY`], [`ROLE_REPLICA`] or, not verified, absent.
pub const ROLE: &str = "mysql.katazuke.dev/role";
/// Value of [`ROLE`] for the Pod that takes writes.
pub const ROLE_PRIMARY: &str = "primary";
/// Value of [`ROLE`] for a Pod that takes reads.
pub const ROLE_REPLICA: &str = "replica";
/// Who made an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY`].
pub const KATAZUKE: &str = "katazuke";

pub(crate) type Labels = BTreeMap<String, String>;

/// What an object is for, in the words of `app.kubernetes.io/component`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    Instance,
    Routing,
    Configuration,
    Credentials,
    Disruption,
}

impl Component {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Routing => "routing",
            Self::Configuration => "configuration",
            Self::Credentials => "credentials",
            Self::Disruption => "disruption",
        }
    }
}

/// The usual name for what belongs together.
const INSTANCE: &str = "app.kubernetes.io/instance";

pub(crate) fn own(cluster: &ValidatedCluster, component: Component) -> Labels {
    text([
        ("app.kubernetes.io/name", "mysql"),
        (INSTANCE, &cluster.name),
        ("app.kubernetes.io/component", component.as_str()),
        (MANAGED_BY, KATAZUKE),
        (CLUSTER, &cluster.name),
        (CLUSTER_UID, &cluster.uid),
    ])
}

pub(crate) fn of_instance(
    cluster: &ValidatedCluster,
    component: Component,
    ordinal: u32,
) -> Labels {
    let mut labels = own(cluster, component);
    labels.insert(ORDINAL.to_owned(), ordinal.to_string());
    labels
}

/// Without `app.kubernetes.io/instance`: a tool that tracks its objects by that
/// label, such as Argo CD, takes a retained claim, which has no owner, for its
/// own where the cluster is called like one of its applications, and prunes it.
pub(crate) fn of_volume(cluster: &ValidatedCluster, ordinal: u32, generation: u32) -> Labels {
    let mut labels = of_instance(cluster, Component::Instance, ordinal);
    labels.remove(INSTANCE);
    labels.insert(GENERATION.to_owned(), generation.to_string());
    labels
}

/// The Pods of the cluster's instances.
pub(crate) fn instances(cluster: &ValidatedCluster) -> Labels {
    text([
        (CLUSTER, cluster.name.as_str()),
        ("app.kubernetes.io/component", Component::Instance.as_str()),
    ])
}

/// The Pods that serve in a role.
pub(crate) fn in_role(cluster: &ValidatedCluster, role: &str) -> Labels {
    let mut labels = instances(cluster);
    labels.insert(ROLE.to_owned(), role.to_owned());
    labels
}

pub(crate) fn selector(labels: Labels) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels),
        match_expressions: None,
    }
}

/// What the user added, with ours on top.
pub(crate) fn with(added: &Labels, own: Labels) -> Labels {
    let mut labels = added.clone();
    labels.extend(own);
    labels
}

fn text<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
