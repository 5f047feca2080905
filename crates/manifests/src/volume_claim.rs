//! The claim for an instance's volume. Its owner reference follows the deletion
//! policy; nothing else here ever leads to the loss of data.

use crate::labels;
use crate::pod::InstancePlace;
use crate::validate::ValidatedCluster;
use crate::{names, owner};
use api::Policy;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use std::collections::BTreeMap;

/// The claim of one generation of an instance's volume.
pub fn volume_claim(cluster: &ValidatedCluster, place: InstancePlace) -> PersistentVolumeClaim {
    let InstancePlace {
        ordinal,
        generation,
    } = place;
    let mut metadata = owner::owned(
        cluster,
        names::volume_claim(&cluster.name, ordinal, generation),
        labels::of_volume(cluster, ordinal, generation),
    );
    match cluster.deletion_policy {
        Policy::Retain => metadata.owner_references = None,
        Policy::Delete => {}
    }
    PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([(
                    "storage".to_owned(),
                    cluster.storage.size.clone(),
                )])),
                limits: None,
            }),
            storage_class_name: cluster.storage.storage_class_name.clone(),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}
