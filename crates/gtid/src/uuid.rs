//! The identity of a server. Never generated here: a server makes its own.

use crate::error::{Expected, ParseError};
use std::fmt;
use std::str::FromStr;

/// A server's uuid, ordered as its text is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

/// Length of the hyphenated form.
pub(crate) const TEXT_LENGTH: usize = 36;
/// Where the hyphens stand in it.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl Uuid {
    /// From the sixteen bytes that a binlog event carries.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The sixteen bytes as a binlog event carries them.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl FromStr for Uuid {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bytes = text.as_bytes();
        let mut uuid = [0_u8; 16];
        let mut digits = 0;
        for position in 0..TEXT_LENGTH {
            let Some(&byte) = bytes.get(position) else {
                return Err(Expected::Uuid.at(position));
            };
            if HYPHENS.contains(&position) {
                if byte != b'-' {
                    return Err(Expected::Uuid.at(position));
                }
                continue;
            }
            let Some(digit) = hex(byte) else {
                return Err(Expected::Uuid.at(position));
            };
            uuid[digits / 2] = uuid[digits / 2] << 4 | digit;
            digits += 1;
        }
        if bytes.len() > TEXT_LENGTH {
            return Err(Expected::End.at(TEXT_LENGTH));
        }
        Ok(Self(uuid))
    }
}

fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
