//! From a spec to Kubernetes objects: `validate`, then one builder per kind.
//! Pure: the same cluster gives the same objects, byte for byte. Never reads a
//! clock, never makes a secret, never knows what is there already.
//!
//! A builder writes only the fields that Katazuke owns; what is left out is
//! left to others.

mod config_map;
mod disruption_budget;
#[cfg(test)]
mod fields;
mod hash;
mod install;
pub mod labels;
pub mod names;
mod owner;
mod pod;
pub mod quantity;
mod secret;
mod server_id;
mod service;
mod validate;
mod volume_claim;

pub use config_map::config_map;
pub use disruption_budget::disruption_budget;
pub use hash::SPEC_HASH;
pub use install::{InstallFile, OPERATOR_NAMESPACE, OPERATOR_SERVICE_ACCOUNT, install};
pub use pod::{InstancePlace, pod};
pub use secret::{AppCredentials, KeyPair, app_secret, ca_secret, tls_secret};
pub use server_id::server_id;
pub use service::{Services, services};
pub use validate::{Behaviour, Invalid, ValidatedCluster, validate};
pub use volume_claim::volume_claim;
