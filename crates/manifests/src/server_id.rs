//! mysqld's server_id. Semi-sync counts acknowledgements by it, so within a
//! cluster it is never shared, nor reused while the volume before may live.

use sha2::{Digest, Sha256};

/// Instances that can be told apart.
const ORDINAL_BITS: u32 = 5;
/// Generations of one instance until an id returns.
const GENERATION_BITS: u32 = 12;
/// Clusters, so that one replicating from another rarely meets its own ids.
const CLUSTER_BITS: u32 = 14;

/// The id of this instance on this generation of its volume; never 0, always
/// with the highest bit set.
pub fn server_id(cluster_uid: &str, ordinal: u32, generation: u32) -> u32 {
    let digest = Sha256::digest(cluster_uid);
    let cluster = u32::from(digest[0]) << 8 | u32::from(digest[1]);
    let low = |value: u32, bits: u32| value & ((1 << bits) - 1);
    1 << 31
        | low(cluster, CLUSTER_BITS) << (GENERATION_BITS + ORDINAL_BITS)
        | low(generation, GENERATION_BITS) << ORDINAL_BITS
        | low(ordinal, ORDINAL_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_instances_or_generations_of_a_cluster_share_an_id() {
        let ids: BTreeSet<u32> = (0..9)
            .flat_map(|ordinal| {
                (0..4096).map(move |generation| server_id("u", ordinal, generation))
            })
            .collect();
        assert_eq!(ids.len(), 9 * 4096);
        assert!(ids.iter().all(|id| *id >= 1 << 31));
    }

    #[test]
    fn clusters_differ_and_an_id_never_changes() {
        let uid = "6f2f4f6a-9a53-4c7e-9c3f-0d7f5c1a2b3c";
        assert_eq!(server_id(uid, 0, 0), server_id(uid, 0, 0));
        assert_ne!(server_id(uid, 0, 0), server_id("another", 0, 0));
    }
}
