//! Reads GTID texts as the server does: any case, white space and line ends
//! between the parts, empty items between commas.
//!
//! Two texts that the server takes for nothing are refused here, because
//! nothing is what a decision would then rest on: a uuid without numbers and an
//! interval that ends before it starts.

use crate::error::{Expected, ParseError};
use crate::intervals::{Interval, Intervals, NUMBER_MAX, NUMBER_MIN};
use crate::tag::Tag;
use crate::uuid::{TEXT_LENGTH, Uuid};
use std::collections::BTreeMap;

type Source = (Uuid, Option<Tag>);

pub(crate) struct Parser<'t> {
    text: &'t str,
    position: usize,
}

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, position: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn at_end(&self) -> bool {
        self.peek().is_none()
    }

    pub(crate) fn at_tag(&self) -> bool {
        self.peek().is_some_and(Tag::starts_with)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let there = self.peek() == Some(wanted);
        self.position += usize::from(there);
        there
    }

    pub(crate) fn skip_whitespace(&mut self) {
        while matches!(
            self.peek(),
            Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
        ) {
            self.position += 1;
        }
    }

    /// The longest run of bytes that fit; ASCII, hence a whole piece of text.
    fn run(&mut self, fits: fn(u8) -> bool) -> &'t str {
        let start = self.position;
        while self.peek().is_some_and(fits) {
            self.position += 1;
        }
        self.text.get(start..self.position).unwrap_or_default()
    }

    pub(crate) fn uuid(&mut self) -> Result<Uuid, ParseError> {
        let start = self.position;
        let end = self.text.len().min(start.saturating_add(TEXT_LENGTH));
        // A cut inside a character means that the text is no uuid anyway.
        let text = self.text.get(start..end).ok_or(Expected::Uuid.at(start))?;
        let uuid = text.parse().map_err(|error| moved(error, start))?;
        self.position = end;
        self.skip_whitespace();
        Ok(uuid)
    }

    pub(crate) fn colon(&mut self) -> Result<(), ParseError> {
        if !self.take(b':') {
            return Err(Expected::Colon.at(self.position));
        }
        self.skip_whitespace();
        Ok(())
    }

    pub(crate) fn tag(&mut self) -> Result<Tag, ParseError> {
        let start = self.position;
        let tag = self
            .run(Tag::goes_on_with)
            .parse()
            .map_err(|error| moved(error, start))?;
        self.skip_whitespace();
        Ok(tag)
    }

    pub(crate) fn number(&mut self) -> Result<u64, ParseError> {
        let start = self.position;
        let number = self.run(|byte| byte.is_ascii_digit()).parse::<u64>();
        match number {
            Ok(number) if (NUMBER_MIN..=NUMBER_MAX).contains(&number) => Ok(number),
            Ok(_) | Err(_) => Err(Expected::Number.at(start)),
        }
    }

    fn interval(&mut self) -> Result<Interval, ParseError> {
        let start = self.position;
        let first = self.number()?;
        self.skip_whitespace();
        let mut last = first;
        if self.take(b'-') {
            self.skip_whitespace();
            last = self.number()?;
            self.skip_whitespace();
        }
        Interval::new(first, last).ok_or(Expected::OrderedInterval.at(start))
    }

    pub(crate) fn set(mut self) -> Result<BTreeMap<Source, Intervals>, ParseError> {
        let mut unsorted: BTreeMap<Source, Vec<Interval>> = BTreeMap::new();
        loop {
            self.skip_whitespace();
            while self.take(b',') {
                self.skip_whitespace();
            }
            if self.at_end() {
                break;
            }
            self.item(&mut unsorted)?;
            if !self.at_end() && self.peek() != Some(b',') {
                return Err(Expected::CommaOrEnd.at(self.position));
            }
        }
        Ok(unsorted
            .into_iter()
            .map(|(source, intervals)| (source, Intervals::from_unsorted(intervals)))
            .collect())
    }

    /// `uuid:1-3:5:blue:1-2`: a tag holds for the intervals after it.
    fn item(&mut self, into: &mut BTreeMap<Source, Vec<Interval>>) -> Result<(), ParseError> {
        let uuid = self.uuid()?;
        let mut tag = None;
        loop {
            self.colon()?;
            if self.at_tag() {
                tag = Some(self.tag()?);
                self.colon()?;
            } else if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(Expected::TagOrNumber.at(self.position));
            }
            let interval = self.interval()?;
            into.entry((uuid, tag.clone())).or_default().push(interval);
            if self.peek() != Some(b':') {
                return Ok(());
            }
        }
    }
}

fn moved(error: ParseError, by: usize) -> ParseError {
    error.expected.at(error.position.saturating_add(by))
}
