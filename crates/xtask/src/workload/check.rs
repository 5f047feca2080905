//! What a record proves. Pure: a record and what is in the table, nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::record::{Answer, History};

/// The judgement over one record and one server's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Writes tried.
    pub attempted: usize,
    /// Answered OK.
    pub acknowledged: usize,
    /// Not answered, or with something that proves nothing.
    pub unknown: usize,
    /// Answered OK and not there. Must be empty.
    pub lost: BTreeSet<u64>,
    /// There, although nobody tried or every answer said no. Must be empty.
    pub unexpected: BTreeSet<u64>,
    /// Not answered and there: fine, a client has to ask.
    pub recovered: usize,
}

impl Verdict {
    /// Compares what was promised with what is `present`.
    pub fn of(history: &History, present: &BTreeSet<u64>) -> Self {
        let (mut acknowledged, mut unknown) = (BTreeSet::new(), BTreeSet::new());
        for attempt in &history.attempts {
            match attempt.answer {
                Answer::Acknowledged { .. } => drop(acknowledged.insert(attempt.id)),
                Answer::Unknown { .. } => drop(unknown.insert(attempt.id)),
                Answer::Failed { .. } => {}
            }
        }
        let possible = |id: &&u64| !acknowledged.contains(*id) && !unknown.contains(*id);
        Self {
            attempted: history.attempts.len(),
            acknowledged: acknowledged.len(),
            unknown: unknown.len(),
            lost: acknowledged.difference(present).copied().collect(),
            unexpected: present.iter().filter(possible).copied().collect(),
            recovered: unknown.intersection(present).count(),
        }
    }

    /// Whether every promise was kept.
    pub fn holds(&self) -> bool {
        self.lost.is_empty() && self.unexpected.is_empty()
    }
}

/// A time in which one server acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Its uuid.
    pub server: String,
    /// It certainly acknowledged by then, in microseconds of the record.
    pub by_micros: u64,
}

/// How often the acknowledging server certainly changed: the longest chain of
/// acknowledged writes, each begun after the one before was answered, in which
/// each has another server than the one before. A chain with more links than
/// there were primaries means that two servers acknowledged at once; a change of
/// primary that is hidden by slow answers is not counted, so it never accuses
/// wrongly.
pub fn terms(history: &History) -> Vec<Term> {
    let writes: Vec<_> = history.acknowledged().collect();
    let mut order: Vec<usize> = (0..writes.len()).collect();
    order.sort_by_key(|index| writes[*index].0.started_micros);
    // Begun and not yet answered, by the time of the answer.
    let mut waiting: BTreeMap<(u64, usize), Option<Rc<Link>>> = BTreeMap::new();
    // The longest chain of answered writes that ends with this server.
    let mut longest: BTreeMap<&str, Rc<Link>> = BTreeMap::new();
    for index in order {
        let (attempt, server) = writes[index];
        let later = waiting.split_off(&(attempt.started_micros, 0));
        for ((ended, index), before) in std::mem::replace(&mut waiting, later) {
            extend(&mut longest, writes[index].1, ended, before);
        }
        let others = longest
            .iter()
            .filter(|(name, _)| **name != server)
            .map(|(_, link)| link);
        let before = others.max_by_key(|link| link.length).cloned();
        waiting.insert((attempt.ended_micros, index), before);
    }
    for ((ended, index), before) in waiting {
        extend(&mut longest, writes[index].1, ended, before);
    }
    let last = longest.into_values().max_by_key(|link| link.length);
    let chain = std::iter::successors(last, |link| link.before.clone());
    let mut terms: Vec<Term> = chain.map(|link| link.term.clone()).collect();
    terms.reverse();
    terms
}

struct Link {
    term: Term,
    length: usize,
    before: Option<Rc<Link>>,
}

fn extend<'a>(
    longest: &mut BTreeMap<&'a str, Rc<Link>>,
    server: &'a str,
    by_micros: u64,
    before: Option<Rc<Link>>,
) {
    let length = 1 + before.as_ref().map_or(0, |link| link.length);
    if longest.get(server).is_none_or(|link| link.length < length) {
        let term = Term {
            server: server.to_owned(),
            by_micros,
        };
        longest.insert(
            server,
            Rc::new(Link {
                term,
                length,
                before,
            }),
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record::Attempt;
    use super::*;

    /// "7 a 10-20": write 7, answered OK by a. "7 ? 10-20": no answer.
    /// "7 ! 10-20": refused.
    fn history(lines: &[&str]) -> History {
        let attempts = lines.iter().map(|line| {
            let words: Vec<&str> = line.split([' ', '-']).collect();
            let number = |at: usize| words[at].parse().unwrap();
            let answer = match words[1] {
                "?" => Answer::Unknown { why: String::new() },
                "!" => Answer::Failed { why: String::new() },
                server => Answer::Acknowledged {
                    server: server.to_owned(),
                },
            };
            let (started_micros, ended_micros) = (number(2), number(3));
            Attempt {
                id: number(0),
                client: 1,
                started_micros,
                ended_micros,
                answer,
            }
        });
        History::of(attempts.collect())
    }

    fn servers(lines: &[&str]) -> String {
        terms(&history(lines))
            .into_iter()
            .map(|term| term.server)
            .collect()
    }

    #[test]
    fn lost_is_acknowledged_and_absent() {
        let history = history(&["1 a 0-1", "2 a 1-2", "3 ? 2-3", "4 ? 3-4", "5 ! 4-5"]);
        let verdict = Verdict::of(&history, &BTreeSet::from([1, 3]));
        assert_eq!(
            verdict,
            Verdict {
                attempted: 5,
                acknowledged: 2,
                unknown: 2,
                lost: BTreeSet::from([2]),
                unexpected: BTreeSet::new(),
                recovered: 1,
            }
        );
        assert!(!verdict.holds());
    }

    #[test]
    fn a_row_that_nobody_wrote_or_that_was_refused_is_unexpected() {
        let verdict = Verdict::of(
            &history(&["1 a 0-1", "5 ! 4-5"]),
            &BTreeSet::from([1, 5, 9]),
        );
        assert_eq!(verdict.unexpected, BTreeSet::from([5, 9]));
        assert!(!verdict.holds());
    }

    #[test]
    fn a_change_of_primary_is_two_terms() {
        assert_eq!(servers(&["1 a 0-1", "2 a 1-2", "3 b 5-6", "4 b 6-7"]), "ab");
    }

    #[test]
    fn an_answer_that_comes_late_does_not_make_a_term() {
        assert_eq!(servers(&["1 a 0-1", "2 b 3-4", "3 a 1-9"]), "ab");
        assert_eq!(servers(&["1 b 1-1", "2 a 0-14", "3 b 21-21"]), "ab");
    }

    #[test]
    fn two_servers_at_once_show_as_many_terms() {
        assert_eq!(
            servers(&["1 a 0-1", "2 b 2-3", "3 a 4-5", "4 b 6-7"]),
            "abab"
        );
    }

    #[test]
    fn a_server_may_become_primary_again() {
        assert_eq!(servers(&["1 a 0-1", "2 b 2-3", "3 a 8-9"]), "aba");
    }

    proptest! {
        /// A history made by one primary after another is never accused.
        #[test]
        fn one_primary_at_a_time_is_never_accused(
            lengths in proptest::collection::vec(1u64..50, 1..8),
            writes in proptest::collection::vec((0u64..400, 0u64..30, 0u64..30), 0..60),
        ) {
            let server_at = |at: u64| {
                let mut end = 0;
                lengths.iter().position(|length| { end += length; at < end })
                    .unwrap_or(lengths.len() - 1) % 3
            };
            let mut attempts: Vec<Attempt> = writes.iter().zip(0..).map(|((at, before, after), id)| {
                Attempt {
                    id,
                    client: 1,
                    started_micros: at.saturating_sub(*before),
                    ended_micros: at + after,
                    answer: Answer::Acknowledged { server: server_at(*at).to_string() },
                }
            }).collect();
            attempts.sort_by_key(|attempt| attempt.ended_micros);
            let history = History::of(attempts);
            prop_assert!(terms(&history).len() <= lengths.len());
        }

        /// Every promise kept, every row explained: the verdict holds.
        #[test]
        fn a_faithful_server_passes(
            answers in proptest::collection::vec((0u8..3, any::<bool>()), 0..50),
        ) {
            let attempts: Vec<Attempt> = answers.iter().zip(0..).map(|((kind, _), id)| Attempt {
                id,
                client: 1,
                started_micros: id,
                ended_micros: id + 1,
                answer: match kind {
                    0 => Answer::Acknowledged { server: "a".into() },
                    1 => Answer::Unknown { why: String::new() },
                    _ => Answer::Failed { why: String::new() },
                },
            }).collect();
            let is_there = |(kind, there): &(u8, bool)| *kind == 0 || (*kind == 1 && *there);
            let present: BTreeSet<u64> =
                (0..).zip(&answers).filter(|(_, row)| is_there(row)).map(|(id, _)| id).collect();
            let history = History::of(attempts);
            prop_assert!(Verdict::of(&history, &present).holds());
            // And taking any acknowledged row away is noticed.
            for (id, (kind, _)) in (0..).zip(&answers) {
                let mut less = present.clone();
                less.remove(&id);
                prop_assert_eq!(Verdict::of(&history, &less).holds(), *kind != 0);
            }
        }
    }
}
