//! GTIDs of a binlog or relay log, from event headers. Bytes in, values out;
//! never trusts a length, never holds more than one small event in memory.
//!
//! A transaction counts once its last event is there: a torn one at the end is
//! cut off by mysqld itself and was never sent as a whole.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use gtid::{Gtid, GtidSet, Interval, Uuid};

const MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];
const MAGIC_ENCRYPTED: [u8; 4] = [0xfd, b'b', b'i', b'n'];
const HEADER: usize = 19;
/// Where the flags are in it.
const FLAGS: usize = 17;
/// Enough of a Query event to see whether it is BEGIN, for every database name.
const QUERY_PREFIX: u64 = 4 * 1024;
/// Largest Previous_gtids or Gtid event that is believed.
const GTID_EVENT_BYTES_MAX: u64 = 256 * 1024 * 1024;
const IN_USE: u8 = 1;

/// Event types, as numbered in the file format.
mod kind {
    pub(super) const QUERY: u8 = 2;
    pub(super) const STOP: u8 = 3;
    pub(super) const ROTATE: u8 = 4;
    pub(super) const FORMAT_DESCRIPTION: u8 = 15;
    pub(super) const XID: u8 = 16;
    pub(super) const GTID: u8 = 33;
    pub(super) const ANONYMOUS_GTID: u8 = 34;
    pub(super) const PREVIOUS_GTIDS: u8 = 35;
    pub(super) const XA_PREPARE: u8 = 38;
    pub(super) const TRANSACTION_PAYLOAD: u8 = 40;
    pub(super) const GTID_TAGGED: u8 = 42;
}

/// Why a file proves nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BinlogError {
    /// fact 19
    #[error("encrypted")]
    Encrypted,
    /// Neither magic.
    #[error("not a binlog")]
    NotABinlog,
    /// An event that does not hold what its type says.
    #[error("damaged event of type {kind} at {at}")]
    Damaged { kind: u8, at: u64 },
    /// The file system.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// What one file holds, and how far it was read: reading can go on from here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Previous_gtids: what was in the files before.
    pub(crate) previous: GtidSet,
    /// Transactions that are complete in this file.
    pub(crate) gtids: GtidSet,
    /// The format description's flag (fact 4).
    pub(crate) in_use: bool,
    /// There is a Stop event: a clean shutdown.
    pub(crate) stopped: bool,
    /// End of the last complete transaction, or of the last event outside one.
    pub(crate) complete: u64,
    /// Next event to read.
    next: u64,
    open: Option<Open>,
}

/// A transaction whose end was not seen yet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Open {
    gtid: Option<Gtid>,
    began: bool,
}

struct Event {
    kind: u8,
    at: u64,
    size: u64,
    flags: u8,
}

impl Scan {
    /// Everything from the beginning of the file.
    pub(crate) fn of(file: impl Read + Seek) -> Result<Self, BinlogError> {
        let mut scan = Self::default();
        scan.go_on(file)?;
        Ok(scan)
    }

    /// What was added since; a torn event at the end is left for the next time.
    pub(crate) fn go_on(&mut self, mut file: impl Read + Seek) -> Result<(), BinlogError> {
        let length = file.seek(SeekFrom::End(0))?;
        if length < self.next {
            *self = Self::default();
        }
        if self.next > MAGIC.len() as u64 {
            // A clean end clears the flag of the first event.
            let mut header = [0; HEADER];
            file.seek(SeekFrom::Start(MAGIC.len() as u64))?;
            file.read_exact(&mut header)?;
            self.in_use = header[FLAGS] & IN_USE != 0;
        }
        file.seek(SeekFrom::Start(self.next))?;
        let mut file = BufReader::with_capacity(64 * 1024, file);
        if self.next == 0 {
            if length < 4 {
                return Ok(());
            }
            let mut magic = [0; 4];
            file.read_exact(&mut magic)?;
            match magic {
                MAGIC => {}
                MAGIC_ENCRYPTED => return Err(BinlogError::Encrypted),
                _ => return Err(BinlogError::NotABinlog),
            }
            self.next = 4;
            self.complete = 4;
        }
        while let Some(event) = next_event(&mut file, self.next, length)? {
            let left = self.take(&event, &mut file)?;
            file.seek_relative(i64::try_from(left).unwrap_or(i64::MAX))?;
            self.next = event.at + event.size;
            if self.open.is_none() {
                self.complete = self.next;
            }
        }
        Ok(())
    }

    /// Returns how much of the event was not read.
    fn take(&mut self, event: &Event, file: &mut impl Read) -> Result<u64, BinlogError> {
        let body_bytes = event.size - HEADER as u64;
        let damaged = || BinlogError::Damaged {
            kind: event.kind,
            at: event.at,
        };
        match event.kind {
            kind::FORMAT_DESCRIPTION => {
                if event.at == 4 {
                    self.in_use = event.flags & IN_USE != 0;
                }
                // In a relay log: the source began anew, a torn group is rolled back.
                self.open = None;
            }
            kind::PREVIOUS_GTIDS => {
                let body = read(file, body_bytes, GTID_EVENT_BYTES_MAX)?;
                self.previous = previous_gtids(&body).ok_or_else(damaged)?;
                return Ok(body_bytes - body.len() as u64);
            }
            kind::GTID | kind::GTID_TAGGED | kind::ANONYMOUS_GTID => {
                self.close();
                let body = read(file, body_bytes, QUERY_PREFIX)?;
                let gtid = match event.kind {
                    kind::GTID => Some(plain_gtid(&body).ok_or_else(damaged)?),
                    kind::GTID_TAGGED => Some(tagged_gtid(&body).ok_or_else(damaged)?),
                    _ => None,
                };
                self.open = Some(Open { gtid, began: false });
                return Ok(body_bytes - body.len() as u64);
            }
            kind::QUERY => {
                let body = read(file, body_bytes, QUERY_PREFIX)?;
                self.query(&body);
                return Ok(body_bytes - body.len() as u64);
            }
            kind::XID | kind::XA_PREPARE | kind::TRANSACTION_PAYLOAD => self.close(),
            kind::STOP => {
                self.close();
                self.stopped = true;
            }
            kind::ROTATE => {
                // In a relay log the source's rotation may stand inside a torn
                // group, which is then rolled back: not received.
                self.open = None;
            }
            _ => {}
        }
        Ok(body_bytes)
    }

    fn query(&mut self, body: &[u8]) {
        let text = query_text(body).unwrap_or_default();
        let Some(open) = &mut self.open else { return };
        if is(text, b"BEGIN") || text.starts_with(b"XA START") {
            open.began = true;
        } else if !open.began
            || is(text, b"COMMIT")
            || is(text, b"ROLLBACK")
            || text.starts_with(b"XA ROLLBACK")
        {
            // A statement that is a transaction of its own, or the end of one.
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(gtid) = self.open.take().and_then(|open| open.gtid) {
            self.gtids.insert(gtid);
        }
    }
}

/// `None` at the end of the file or before a torn event.
fn next_event(file: &mut impl Read, at: u64, length: u64) -> Result<Option<Event>, BinlogError> {
    if at + HEADER as u64 > length {
        return Ok(None);
    }
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let size = u64::from(u32::from_le_bytes([
        header[9], header[10], header[11], header[12],
    ]));
    if size < HEADER as u64 || at + size > length {
        return Ok(None);
    }
    Ok(Some(Event {
        kind: header[4],
        at,
        size,
        flags: header[FLAGS],
    }))
}

fn read(file: &mut impl Read, bytes: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    file.take(bytes.min(bytes_max)).read_to_end(&mut body)?;
    Ok(body)
}

/// A checksum of four bytes may follow.
fn is(text: &[u8], word: &[u8]) -> bool {
    text.starts_with(word) && text.len() <= word.len() + 4
}

fn query_text(body: &[u8]) -> Option<&[u8]> {
    let database = usize::from(*body.get(8)?);
    let status = usize::from(u16::from_le_bytes([*body.get(11)?, *body.get(12)?]));
    body.get(13 + status + database + 1..)
}

fn plain_gtid(body: &[u8]) -> Option<Gtid> {
    let uuid: [u8; 16] = body.get(1..17)?.try_into().ok()?;
    let number: [u8; 8] = body.get(17..25)?.try_into().ok()?;
    Gtid::new(Uuid::from_bytes(uuid), None, u64::from_le_bytes(number))
}

/// MySQL's serialization library: version, size, last required field, then
/// pairs of field id and value. The fields that matter come first.
fn tagged_gtid(body: &[u8]) -> Option<Gtid> {
    let mut bytes = Bytes(body);
    for _envelope in 0..3 {
        bytes.varlen()?;
    }
    let mut uuid = [0; 16];
    let mut number = 0;
    for expected in 0..4 {
        if bytes.varlen()? != expected {
            return None;
        }
        match expected {
            0 => drop(bytes.varlen()?),
            1 => {
                for byte in &mut uuid {
                    *byte = u8::try_from(bytes.varlen()?).ok()?;
                }
            }
            // Signed numbers carry the sign in the lowest bit.
            2 => number = bytes.varlen()? >> 1,
            _ => break,
        }
    }
    let tag = bytes.tag()?;
    Gtid::new(Uuid::from_bytes(uuid), tag, number)
}

fn previous_gtids(body: &[u8]) -> Option<GtidSet> {
    let mut bytes = Bytes(body);
    let head = bytes.u64()?;
    let tagged = head >> 56 != 0;
    let sources = if tagged {
        head >> 8 & 0xffff_ffff_ffff
    } else {
        head & 0x00ff_ffff_ffff_ffff
    };
    let mut set = GtidSet::default();
    for _ in 0..sources {
        let uuid = Uuid::from_bytes(bytes.take(16)?.try_into().ok()?);
        let tag = if tagged { bytes.tag()? } else { None };
        for _ in 0..bytes.u64()? {
            let first = bytes.u64()?;
            let last = bytes.u64()?.checked_sub(1)?;
            set.insert_interval(uuid, tag.clone(), Interval::new(first, last)?);
        }
    }
    Some(set)
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// The number of trailing ones of the first byte is the number of further bytes.
    fn varlen(&mut self) -> Option<u64> {
        let more = self.0.first()?.trailing_ones() as usize;
        if more == 8 {
            self.take(1)?;
            return self.u64();
        }
        let mut raw = [0; 8];
        raw[..=more].copy_from_slice(self.take(more + 1)?);
        Some(u64::from_le_bytes(raw) >> (more + 1))
    }

    #[expect(clippy::option_option, reason = "damaged, no tag, a tag")]
    fn tag(&mut self) -> Option<Option<gtid::Tag>> {
        let length = usize::try_from(self.varlen()?).ok()?;
        if length == 0 {
            return Some(None);
        }
        let text = std::str::from_utf8(self.take(length)?).ok()?;
        Some(Some(text.parse().ok()?))
    }
}

#[cfg(test)]
mod tests;
