//! The mark by which a Pod built from another spec is recognised. Mutating
//! webhooks and the API server's defaults change a Pod, so it is never compared
//! as a whole.

use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

use crate::quantity;

/// Annotation of a Pod: hash of what it was built from.
pub const SPEC_HASH: &str = "mysql.katazuke.dev/spec-hash";

/// What a Pod is compared by.
#[derive(Serialize)]
pub(crate) struct Compared<'p> {
    pub(crate) labels: &'p BTreeMap<String, String>,
    pub(crate) annotations: &'p BTreeMap<String, String>,
    pub(crate) my_cnf: &'p str,
    pub(crate) spec: PodSpec,
}

impl Compared<'_> {
    /// None only if the spec cannot be written as JSON, which no spec that was
    /// read from JSON can bring about.
    pub(crate) fn hash(mut self) -> Option<String> {
        // A new operator must not roll every database: the old agent goes on.
        for container in self.spec.init_containers.iter_mut().flatten() {
            container.image = None;
        }
        for container in &mut self.spec.containers {
            if let Some(resources) = &mut container.resources {
                by_value(resources);
            }
        }
        // Struct fields in their order and maps sorted: the same bytes always.
        let bytes = serde_json::to_vec(&self).ok()?;
        Some(hex(&Sha256::digest(bytes)))
    }
}

fn by_value(resources: &mut ResourceRequirements) {
    let maps = [resources.requests.as_mut(), resources.limits.as_mut()];
    for amount in maps.into_iter().flatten().flat_map(|map| map.values_mut()) {
        if let Some(nano) = quantity::nano(amount) {
            *amount = Quantity(format!("{nano}n"));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
