//! Arithmetic on the transaction numbers of one server and tag. Never sees a
//! uuid, and never adds to a number without looking at the end of the range.

use std::fmt;

/// The first transaction's number.
pub const NUMBER_MIN: u64 = 1;
/// The last number that MySQL gives out: 2^63 − 2.
pub const NUMBER_MAX: u64 = (1 << 63) - 2;

/// Transaction numbers from `first` to `last`, both included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Interval {
    first: u64,
    last: u64,
}

impl Interval {
    /// None when a number is out of range or `last` is before `first`.
    pub fn new(first: u64, last: u64) -> Option<Self> {
        (NUMBER_MIN <= first && first <= last && last <= NUMBER_MAX).then_some(Self { first, last })
    }

    /// The lowest number in it.
    pub const fn first(self) -> u64 {
        self.first
    }

    /// The highest number in it.
    pub const fn last(self) -> u64 {
        self.last
    }

    fn length(self) -> u128 {
        u128::from(self.last - self.first) + 1
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return write!(f, "{}", self.first);
        }
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// Sorted intervals with a gap between every two of them: one form per set.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Intervals(Vec<Interval>);

impl Intervals {
    pub(crate) fn from_unsorted(mut unsorted: Vec<Interval>) -> Self {
        unsorted.sort_unstable();
        let mut merged: Vec<Interval> = Vec::with_capacity(unsorted.len());
        for next in unsorted {
            match merged.last_mut() {
                // No overflow: NUMBER_MAX is far below u64::MAX.
                Some(before) if next.first <= before.last + 1 => {
                    before.last = before.last.max(next.last);
                }
                Some(_) | None => merged.push(next),
            }
        }
        Self(merged)
    }

    pub(crate) fn as_slice(&self) -> &[Interval] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn count(&self) -> u128 {
        self.0.iter().map(|interval| interval.length()).sum()
    }

    pub(crate) fn insert(&mut self, new: Interval) {
        // The common case, a transaction after the last one, moves nothing.
        let from = self.0.partition_point(|old| old.last + 1 < new.first);
        let to = self.0.partition_point(|old| old.first <= new.last + 1);
        let mut grown = new;
        for old in &self.0[from..to] {
            grown.first = grown.first.min(old.first);
            grown.last = grown.last.max(old.last);
        }
        self.0.splice(from..to, [grown]);
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        Self::from_unsorted(self.0.iter().chain(&other.0).copied().collect())
    }

    pub(crate) fn contains(&self, other: &Self) -> bool {
        other.0.iter().all(|wanted| {
            let at = self.0.partition_point(|own| own.last < wanted.last);
            self.0.get(at).is_some_and(|own| own.first <= wanted.first)
        })
    }

    pub(crate) fn contains_number(&self, number: u64) -> bool {
        let at = self.0.partition_point(|own| own.last < number);
        self.0.get(at).is_some_and(|own| own.first <= number)
    }

    pub(crate) fn intersect(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = Vec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let (first, last) = (a.first.max(b.first), a.last.min(b.last));
            if first <= last {
                common.push(Interval { first, last });
            }
            if a.last < b.last {
                left.next();
            } else {
                right.next();
            }
        }
        Self(common)
    }

    pub(crate) fn subtract(&self, other: &Self) -> Self {
        self.intersect(&other.complement())
    }

    fn complement(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = NUMBER_MIN;
        for own in &self.0 {
            gaps.extend(Interval::new(next, own.first - 1));
            next = own.last + 1;
        }
        gaps.extend(Interval::new(next, NUMBER_MAX));
        Self(gaps)
    }
}
