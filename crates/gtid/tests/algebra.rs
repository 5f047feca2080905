//! The laws of the set algebra, against the plainest model there is: a set of
//! (server, tag, number).

#![allow(
    clippy::unwrap_used,
    reason = "a test stops where its picture is wrong"
)]

use gtid::{Gtid, GtidSet, NUMBER_MAX, Tag, Uuid};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::BTreeSet;

type Model = BTreeSet<(u8, Option<u8>, u64)>;

/// Few servers, tags and numbers, at both ends of the range, so that sets meet.
fn models() -> impl Strategy<Value = Model> {
    let number = prop_oneof![1..=10_u64, NUMBER_MAX - 9..=NUMBER_MAX];
    let tag = prop_oneof![2 => Just(None), 1 => (0..2_u8).prop_map(Some)];
    prop::collection::btree_set((0..3_u8, tag, number), 0..40)
}

fn gtids(model: &Model) -> impl Iterator<Item = Gtid> {
    model.iter().map(|&(server, tag, number)| {
        let tag = tag.map(|tag| ["blue", "green"][usize::from(tag)].parse::<Tag>().unwrap());
        Gtid::new(Uuid::from_bytes([server; 16]), tag, number).unwrap()
    })
}

fn set(model: &Model) -> GtidSet {
    gtids(model).collect()
}

fn order(a: &Model, b: &Model) -> Option<Ordering> {
    match (a.is_superset(b), a.is_subset(b)) {
        (true, true) => Some(Ordering::Equal),
        (true, false) => Some(Ordering::Greater),
        (false, true) => Some(Ordering::Less),
        (false, false) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn operations_agree_with_the_model(a in models(), b in models()) {
        prop_assert_eq!(set(&a).union(&set(&b)), set(&(&a | &b)));
        prop_assert_eq!(set(&a).subtract(&set(&b)), set(&(&a - &b)));
        prop_assert_eq!(set(&a).intersect(&set(&b)), set(&(&a & &b)));
        prop_assert_eq!(set(&a).contains(&set(&b)), a.is_superset(&b));
        prop_assert_eq!(set(&a).partial_cmp(&set(&b)), order(&a, &b));
        prop_assert_eq!(set(&a) == set(&b), a == b);
        prop_assert_eq!(set(&a).count(), a.len() as u128);
        prop_assert_eq!(set(&a).is_empty(), a.is_empty());
    }

    #[test]
    fn a_subset_is_contained(a in models(), b in models()) {
        let (a, union) = (set(&a), set(&a).union(&set(&b)));
        prop_assert!(union.contains(&a));
        prop_assert!(a <= union);
        prop_assert!(union.subtract(&a).intersect(&a).is_empty());
        prop_assert_eq!(union.subtract(&a).union(&a), union);
    }

    #[test]
    fn membership_agrees_with_the_model(a in models(), b in models()) {
        for (gtid, key) in gtids(&b).zip(&b) {
            prop_assert_eq!(set(&a).contains_gtid(&gtid), a.contains(key));
        }
    }

    #[test]
    fn the_order_of_insertion_does_not_matter(a in models(), seed in any::<u64>()) {
        let mut shuffled: Vec<Gtid> = gtids(&a).collect();
        shuffled.sort_by_key(|gtid| gtid.number().wrapping_mul(seed | 1));
        prop_assert_eq!(shuffled.into_iter().collect::<GtidSet>(), set(&a));
    }

    #[test]
    fn parsing_undoes_printing(a in models()) {
        let set = set(&a);
        prop_assert_eq!(set.to_string().parse::<GtidSet>().unwrap(), set.clone());
        prop_assert_eq!(format!("{set:#}").parse::<GtidSet>().unwrap(), set.clone());
        for gtid in gtids(&a) {
            prop_assert_eq!(gtid.to_string().parse::<Gtid>().unwrap(), gtid);
        }
    }

    #[test]
    fn the_canonical_form_is_sorted_and_has_gaps(a in models()) {
        let set = set(&a);
        let intervals: Vec<_> = set.intervals().collect();
        for pair in intervals.windows(2) {
            let ((uuid, tag, before), (next_uuid, next_tag, after)) = (pair[0], pair[1]);
            prop_assert!((uuid, tag) <= (next_uuid, next_tag));
            if (uuid, tag) == (next_uuid, next_tag) {
                prop_assert!(before.last() + 1 < after.first());
            }
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        let _ = (text.parse::<GtidSet>().is_ok(), text.parse::<Gtid>().is_ok());
    }

    #[test]
    fn no_text_near_the_grammar_makes_the_parser_panic(
        text in "([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[:,\\- \n]|[0-9]{1,21}|[a-z_é]{1,34}){0,12}"
    ) {
        if let Ok(set) = text.parse::<GtidSet>() {
            prop_assert_eq!(set.to_string().parse::<GtidSet>().unwrap(), set);
        }
        let _ = text.parse::<Gtid>().is_ok();
    }
}

/// A random test that never meets the interesting cases proves nothing.
#[test]
fn the_models_meet_every_kind_of_relation() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..500 {
        let a = models().new_tree(&mut runner).unwrap().current();
        let b = models().new_tree(&mut runner).unwrap().current();
        seen.insert(order(&a, &b));
        seen.insert(order(&a, &(&a | &b)));
        seen.insert(order(&(&a | &b), &b));
        seen.insert(order(&a, &a));
    }
    assert_eq!(
        seen.len(),
        4,
        "equal, less, greater and incomparable: {seen:?}"
    );
}
