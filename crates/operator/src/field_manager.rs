//! Who we are to the API server: one field manager per concern (D5), and the
//! written table of what happens when another manager owns a field that we
//! want. Never forces on the first try.

use manifests::labels;

/// A concern and the fields that it owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldManager {
    /// Pods, as they are created.
    Pods,
    /// Services: ports, selector, type, our labels and annotations.
    Services,
    /// The role label of a Pod, and of its claim, where the last one stays.
    Routing,
    /// Claims: size, labels, ownerReference by deletion policy.
    Volumes,
    /// Secrets: data, labels.
    Secrets,
    /// The ConfigMap with my.cnf.
    Config,
    /// The PodDisruptionBudget.
    Disruption,
    /// The status of MySQLCluster.
    Status,
}

/// What to do when another manager owns a field that we want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// Safety: taken, with an event that names the other manager.
    Take,
    /// Everything else: yielded, with condition `FieldConflict`.
    Yield,
}

impl FieldManager {
    /// The name in `metadata.managedFields`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pods => "katazuke/pods",
            Self::Services => "katazuke/services",
            Self::Routing => "katazuke/routing",
            Self::Volumes => "katazuke/volumes",
            Self::Secrets => "katazuke/secrets",
            Self::Config => "katazuke/config",
            Self::Disruption => "katazuke/disruption",
            Self::Status => "katazuke/status",
        }
    }

    /// The written table. `field` is named as the API server names it in a conflict.
    pub fn on_conflict(self, field: &str) -> OnConflict {
        let role = field.starts_with(".metadata.labels") && field.ends_with(labels::ROLE);
        if role
            || field.starts_with(".metadata.ownerReferences")
            || field.starts_with(".spec.selector")
        {
            OnConflict::Take
        } else {
            OnConflict::Yield
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fields_on_which_safety_rests_are_taken() {
        let on = |field: &str| FieldManager::Services.on_conflict(field);
        assert_eq!(on(".spec.selector"), OnConflict::Take);
        assert_eq!(
            on(".metadata.labels.mysql.katazuke.dev/role"),
            OnConflict::Take
        );
        assert_eq!(on(".spec.type"), OnConflict::Yield);
        assert_eq!(on(".metadata.labels.team"), OnConflict::Yield);
    }
}
