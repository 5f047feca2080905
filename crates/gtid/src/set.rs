//! The algebra of GTID sets. Never keeps a source without a number, so that
//! equal sets are equal values.

use crate::error::ParseError;
use crate::intervals::{Interval, Intervals};
use crate::parse::Parser;
use crate::tag::Tag;
use crate::transaction::Gtid;
use crate::uuid::Uuid;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A set of transactions.
///
/// Its order is that of inclusion: `a < b` says that `b` holds everything in
/// `a` and more, and two sets that each hold something of their own have no
/// order (`partial_cmp` is `None`).
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct GtidSet {
    sources: BTreeMap<(Uuid, Option<Tag>), Intervals>,
}

impl GtidSet {
    /// The set of no transactions.
    pub const fn new() -> Self {
        Self {
            sources: BTreeMap::new(),
        }
    }

    /// Whether there is no transaction in it.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// How many transactions it holds.
    pub fn count(&self) -> u128 {
        self.sources.values().map(Intervals::count).sum()
    }

    /// Whether every transaction of `other` is in this set.
    pub fn contains(&self, other: &Self) -> bool {
        other.sources.iter().all(|(source, wanted)| {
            self.sources
                .get(source)
                .is_some_and(|own| own.contains(wanted))
        })
    }

    /// Whether this one transaction is in the set.
    pub fn contains_gtid(&self, gtid: &Gtid) -> bool {
        let source = (gtid.uuid(), gtid.tag().cloned());
        self.sources
            .get(&source)
            .is_some_and(|own| own.contains_number(gtid.number()))
    }

    /// Adds one transaction.
    pub fn insert(&mut self, gtid: Gtid) {
        let (uuid, tag, number) = gtid.into_parts();
        if let Some(interval) = Interval::new(number, number) {
            self.insert_interval(uuid, tag, interval);
        }
    }

    /// Adds a server's transactions with these numbers.
    pub fn insert_interval(&mut self, uuid: Uuid, tag: Option<Tag>, interval: Interval) {
        self.sources
            .entry((uuid, tag))
            .or_default()
            .insert(interval);
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (source, theirs) in &other.sources {
            let own = union.sources.entry(source.clone()).or_default();
            *own = own.union(theirs);
        }
        union
    }

    /// What is in this set but not in `other`.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        self.derive(|source, own| match other.sources.get(source) {
            Some(theirs) => own.subtract(theirs),
            None => own.clone(),
        })
    }

    /// What is in both.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        self.derive(|source, own| match other.sources.get(source) {
            Some(theirs) => own.intersect(theirs),
            None => Intervals::default(),
        })
    }

    /// The transactions that this server wrote first, whatever their tag.
    #[must_use]
    pub fn only(&self, uuid: Uuid) -> Self {
        self.derive(|source, own| {
            if source.0 == uuid {
                own.clone()
            } else {
                Intervals::default()
            }
        })
    }

    /// Whether a transaction in it has a tag.
    pub fn has_tags(&self) -> bool {
        self.sources.keys().any(|(_, tag)| tag.is_some())
    }

    /// The servers whose transactions it holds, each once, in order.
    pub fn uuids(&self) -> impl Iterator<Item = Uuid> {
        let mut before = None;
        self.sources.keys().filter_map(move |(uuid, _)| {
            let new = before != Some(*uuid);
            before = Some(*uuid);
            new.then_some(*uuid)
        })
    }

    /// Every interval in canonical order.
    pub fn intervals(&self) -> impl Iterator<Item = (Uuid, Option<&Tag>, Interval)> {
        self.sources.iter().flat_map(|((uuid, tag), intervals)| {
            intervals
                .as_slice()
                .iter()
                .map(move |interval| (*uuid, tag.as_ref(), *interval))
        })
    }

    fn derive(&self, of: impl Fn(&(Uuid, Option<Tag>), &Intervals) -> Intervals) -> Self {
        let sources = self
            .sources
            .iter()
            .map(|(source, own)| (source.clone(), of(source, own)))
            .filter(|(_, derived)| !derived.is_empty())
            .collect();
        Self { sources }
    }
}

impl PartialOrd for GtidSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self.contains(other), other.contains(self)) {
            (true, true) => Some(Ordering::Equal),
            (true, false) => Some(Ordering::Greater),
            (false, true) => Some(Ordering::Less),
            (false, false) => None,
        }
    }
}

impl FromIterator<Gtid> for GtidSet {
    fn from_iter<I: IntoIterator<Item = Gtid>>(gtids: I) -> Self {
        let mut set = Self::new();
        set.extend(gtids);
        set
    }
}

impl Extend<Gtid> for GtidSet {
    fn extend<I: IntoIterator<Item = Gtid>>(&mut self, gtids: I) {
        for gtid in gtids {
            self.insert(gtid);
        }
    }
}

impl FromStr for GtidSet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Ok(Self {
            sources: Parser::new(text).set()?,
        })
    }
}

/// MySQL's canonical form: `uuid:1-3:5:blue:1-2`, servers in order, on one
/// line. The alternate form (`{:#}`) puts each server on a line of its own, as
/// `@@gtid_executed` does; the server reads both.
impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = None;
        for ((uuid, tag), intervals) in &self.sources {
            if before != Some(uuid) {
                if before.is_some() {
                    f.write_str(if f.alternate() { ",\n" } else { "," })?;
                }
                write!(f, "{uuid}")?;
            }
            before = Some(uuid);
            if let Some(tag) = tag {
                write!(f, ":{tag}")?;
            }
            for interval in intervals.as_slice() {
                write!(f, ":{interval}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}
