//! The record of a writer: one JSON line per attempt, written when its answer is
//! known. Times are of one monotonic clock, anchored once at the wall clock.

use serde::{Deserialize, Serialize};

/// The number of the client that only measures whether writes get through.
pub const PROBE: u32 = 0;

/// What the server said to one write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Answer {
    /// OK: this row must never be lost.
    Acknowledged {
        /// `@@server_uuid` of who said so.
        server: String,
    },
    /// No answer, or one after which the row may or may not be there.
    Unknown {
        /// What came instead.
        why: String,
    },
    /// The write never reached a server, or was refused before it began.
    Failed {
        /// What came instead.
        why: String,
    },
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Primary key of the row; never used twice.
    pub id: u64,
    /// Who wrote; [`PROBE`] is the probe.
    pub client: u32,
    /// Microseconds from the start of the writer to the request.
    pub started_micros: u64,
    /// Microseconds from the start of the writer to the answer.
    pub ended_micros: u64,
    /// The answer.
    pub answer: Answer,
}

impl Attempt {
    /// Whether the server said OK.
    pub fn is_acknowledged(&self) -> bool {
        matches!(self.answer, Answer::Acknowledged { .. })
    }
}

/// One line of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line")]
pub enum Line {
    /// The first.
    Begin {
        /// Wall clock at which the attempts' times are zero.
        wall_micros: u64,
    },
    /// One write.
    Attempt(Attempt),
    /// The last; without it the writer was killed and the record has holes.
    End {
        /// How many attempts were made.
        attempts: u64,
    },
}

/// Why a record cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A whole line does not parse.
    #[error("a line does not parse")]
    Line(#[from] serde_json::Error),
    /// There is no first line yet.
    #[error("it has no first line")]
    NotBegun,
    /// The last line is missing or counts differently.
    #[error("it is not complete: {written} attempts are written down, {made} were made")]
    Incomplete {
        /// In the file.
        written: u64,
        /// By the last line; 0 without one.
        made: u64,
    },
}

/// A record, as far as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Wall clock at which the attempts' times are zero.
    pub wall_micros: Option<u64>,
    /// In the order of their answers.
    pub attempts: Vec<Attempt>,
    /// What the last line says.
    pub made: Option<u64>,
    bytes: u64,
}

impl History {
    /// A complete one, for checking the checkers.
    #[cfg(test)]
    pub(super) fn of(attempts: Vec<Attempt>) -> Self {
        Self {
            made: Some(attempts.len() as u64),
            attempts,
            wall_micros: Some(0),
            bytes: 0,
        }
    }

    /// Takes in the text after [`History::bytes`]. A last line without its end is
    /// left for the next time.
    pub fn extend(&mut self, fresh: &str) -> Result<(), RecordError> {
        let whole = fresh.rfind('\n').map_or("", |end| &fresh[..=end]);
        for line in whole.lines() {
            match serde_json::from_str(line)? {
                Line::Begin { wall_micros } => self.wall_micros = Some(wall_micros),
                Line::Attempt(attempt) => self.attempts.push(attempt),
                Line::End { attempts } => self.made = Some(attempts),
            }
        }
        self.bytes += whole.len() as u64;
        Ok(())
    }

    /// How much of the file has been taken in.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The history, if nothing is missing from it.
    pub fn complete(self) -> Result<Self, RecordError> {
        let written = self.attempts.len() as u64;
        match (self.wall_micros, self.made) {
            (None, _) => Err(RecordError::NotBegun),
            (Some(_), Some(made)) if made == written => Ok(self),
            (Some(_), made) => Err(RecordError::Incomplete {
                written,
                made: made.unwrap_or_default(),
            }),
        }
    }

    /// A moment of this record on the wall clock.
    pub fn on_the_wall(&self, micros: u64) -> u64 {
        self.wall_micros.unwrap_or_default() + micros
    }

    /// Writes that were answered OK: the attempt and who answered.
    pub fn acknowledged(&self) -> impl Iterator<Item = (&Attempt, &str)> {
        self.attempts
            .iter()
            .filter_map(|attempt| match &attempt.answer {
                Answer::Acknowledged { server } => Some((attempt, server.as_str())),
                Answer::Unknown { .. } | Answer::Failed { .. } => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "{\"line\":\"Begin\",\"wall_micros\":5}\n";
    const WRITE: &str = "{\"line\":\"Attempt\",\"id\":7,\"client\":1,\"started_micros\":1,\
                         \"ended_micros\":2,\"answer\":{\"kind\":\"Acknowledged\",\"server\":\"a\"}}\n";
    const END: &str = "{\"line\":\"End\",\"attempts\":1}\n";

    #[test]
    fn a_record_can_be_followed_while_it_is_written() {
        let whole = format!("{BEGIN}{WRITE}{END}");
        let mut history = History::default();
        for end in 0..=whole.len() {
            let from = usize::try_from(history.bytes()).unwrap();
            history.extend(&whole[from..end]).unwrap();
        }
        assert_eq!(history.attempts.len(), 1);
        assert_eq!(history.on_the_wall(2), 7);
        assert!(history.complete().is_ok());
    }

    #[test]
    fn a_record_without_its_end_is_not_evidence() {
        let mut history = History::default();
        assert!(matches!(
            history.clone().complete(),
            Err(RecordError::NotBegun)
        ));
        history.extend(&format!("{BEGIN}{WRITE}")).unwrap();
        assert!(matches!(
            history.complete(),
            Err(RecordError::Incomplete {
                written: 1,
                made: 0
            })
        ));
    }

    #[test]
    fn a_broken_line_is_an_error() {
        assert!(History::default().extend("{\"line\":\n").is_err());
    }
}
