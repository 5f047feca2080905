//! The tag of a GTID (MySQL 8.3 and later). Never longer than the server takes.

use crate::error::{Expected, ParseError};
use std::fmt;
use std::str::FromStr;

/// Most letters that a tag may have.
const LENGTH_MAX: usize = 32;

/// A tag: at most 32 of `a-z 0-9 _`, not beginning with a digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

impl Tag {
    /// The tag's text, lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn starts_with(byte: u8) -> bool {
        byte.is_ascii_alphabetic() || byte == b'_'
    }

    pub(crate) fn goes_on_with(byte: u8) -> bool {
        Self::starts_with(byte) || byte.is_ascii_digit()
    }
}

/// Upper case is accepted and lowered, as the server does.
impl FromStr for Tag {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.bytes().next() {
            Some(byte) if Self::starts_with(byte) => {}
            Some(_) | None => return Err(Expected::Tag.at(0)),
        }
        if let Some(position) = text.bytes().position(|byte| !Self::goes_on_with(byte)) {
            return Err(Expected::Tag.at(position));
        }
        if text.len() > LENGTH_MAX {
            return Err(Expected::Tag.at(LENGTH_MAX));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
