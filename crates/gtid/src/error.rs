//! What was wrong with a text, and where. Never holds the text itself: it may
//! be long, and it ends up in events.

/// A text that is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {position}: expected {expected}")]
pub struct ParseError {
    /// Offset in bytes from the start of the text.
    pub position: usize,
    /// What should have stood there.
    pub expected: Expected,
}

/// What the parser would have accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Expected {
    /// A server uuid in its hyphenated form.
    #[error("a uuid such as 3e11fa47-71ca-11e1-9e33-c80aa9429562")]
    Uuid,
    /// The colon after a uuid or a tag.
    #[error("a colon")]
    Colon,
    /// A tag or the start of an interval.
    #[error("a tag or a transaction number")]
    TagOrNumber,
    /// A tag of legal length and letters.
    #[error("a tag of at most 32 letters, digits or underscores that does not begin with a digit")]
    Tag,
    /// A transaction number in range.
    #[error("a transaction number between 1 and 9223372036854775806")]
    Number,
    /// The end of an interval that is not before its start.
    #[error("an interval that does not end before it starts")]
    OrderedInterval,
    /// A comma or the end of the text.
    #[error("a comma or the end of the text")]
    CommaOrEnd,
    /// Nothing more.
    #[error("the end of the text")]
    End,
}

impl Expected {
    pub(crate) fn at(self, position: usize) -> ParseError {
        ParseError {
            position,
            expected: self,
        }
    }
}
