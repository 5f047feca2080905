//! Kubernetes: an API server with compare-and-swap on the record, Pods with
//! uids, and kubelets that start and end containers. Never knows MySQL.

use std::collections::{BTreeMap, BTreeSet};

use katazuke_core::observed::{Request, Role};
use katazuke_core::record::{Ordinal, Record};

/// A Pod object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) uid: String,
    pub(crate) generation: u32,
    pub(crate) role: Option<Role>,
    pub(crate) deleting: bool,
    /// Its container has started: it has an address.
    pub(crate) process: Option<usize>,
}

/// What the API server holds.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    pub(crate) record: Record,
    pub(crate) pods: BTreeMap<Ordinal, Pod>,
    pub(crate) claims: BTreeSet<(Ordinal, u32)>,
    pub(crate) request: Option<Request>,
    /// Who leads, renewed when.
    pub(crate) lease: (usize, u64),
    /// Unreachable until.
    pub(crate) down_until: u64,
}

impl Api {
    pub(crate) fn new() -> Api {
        Api {
            record: Record::default(),
            pods: BTreeMap::new(),
            claims: BTreeSet::new(),
            request: None,
            lease: (0, 0),
            down_until: 0,
        }
    }
}
