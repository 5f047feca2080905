//! Sets of MySQL's global transaction identifiers (GTIDs), with tags.
//!
//! Every decision about which server holds which transaction rests on this
//! crate, so it must work when no server answers: it never asks one, never
//! panics on any text, and never treats a set that it could not read as empty.
//!
//! ```
//! use gtid::GtidSet;
//! let primary: GtidSet = "3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5:7".parse()?;
//! let replica: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3".parse()?;
//! assert!(primary.contains(&replica));
//! assert_eq!(
//!     primary.subtract(&replica).to_string(),
//!     "3e11fa47-71ca-11e1-9e33-c80aa9429562:4-5:7"
//! );
//! # Ok::<(), gtid::ParseError>(())
//! ```

mod error;
mod intervals;
mod parse;
mod set;
mod tag;
mod text;
mod transaction;
mod uuid;

pub use error::{Expected, ParseError};
pub use intervals::{Interval, NUMBER_MAX, NUMBER_MIN};
pub use set::GtidSet;
pub use tag::Tag;
pub use transaction::Gtid;
pub use uuid::Uuid;
