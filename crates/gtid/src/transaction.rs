//! One transaction's identifier. Never stands for a transaction without a
//! number (`AUTOMATIC`, `ANONYMOUS`): those have no identity to compare.

use crate::error::{Expected, ParseError};
use crate::intervals::{NUMBER_MAX, NUMBER_MIN};
use crate::parse::Parser;
use crate::tag::Tag;
use crate::uuid::Uuid;
use std::fmt;
use std::str::FromStr;

/// `uuid:number` or `uuid:tag:number`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    uuid: Uuid,
    tag: Option<Tag>,
    number: u64,
}

impl Gtid {
    /// None when the number is not between [`NUMBER_MIN`] and [`NUMBER_MAX`].
    pub fn new(uuid: Uuid, tag: Option<Tag>, number: u64) -> Option<Self> {
        (NUMBER_MIN..=NUMBER_MAX)
            .contains(&number)
            .then_some(Self { uuid, tag, number })
    }

    /// The server that wrote the transaction first.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Its tag, if it was given one.
    pub fn tag(&self) -> Option<&Tag> {
        self.tag.as_ref()
    }

    /// Its number among that server's transactions with that tag.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn into_parts(self) -> (Uuid, Option<Tag>, u64) {
        (self.uuid, self.tag, self.number)
    }
}

impl FromStr for Gtid {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::new(text);
        parser.skip_whitespace();
        let uuid = parser.uuid()?;
        parser.colon()?;
        let tag = if parser.at_tag() {
            let tag = parser.tag()?;
            parser.colon()?;
            Some(tag)
        } else {
            None
        };
        let number = parser.number()?;
        parser.skip_whitespace();
        if !parser.at_end() {
            return Err(Expected::End.at(parser.position()));
        }
        Ok(Self { uuid, tag, number })
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.uuid)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        write!(f, ":{}", self.number)
    }
}

impl fmt::Debug for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
