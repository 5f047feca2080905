//! The words of a line: `key`, `key=value`, `key="a value"`. Every word has to be
//! asked for; one that nobody asked for is refused.

use std::collections::BTreeSet;

use gtid::GtidSet;

/// What is wrong, as a sentence.
pub(super) type Result<T> = std::result::Result<T, String>;

/// The words of a line; every one has to be asked for.
pub(super) struct Words {
    words: Vec<(String, String)>,
    used: std::cell::RefCell<BTreeSet<usize>>,
}

impl Words {
    pub(super) fn new(line: &str) -> Words {
        let mut words = Vec::new();
        let mut rest = line.trim();
        while !rest.is_empty() {
            let quoted = rest
                .find('"')
                .filter(|at| rest.get(..*at).is_some_and(|before| !before.contains(' ')));
            let end = match quoted {
                Some(at) => rest
                    .get(at + 1..)
                    .and_then(|r| r.find('"'))
                    .map_or(rest.len(), |close| at + close + 2),
                None => rest.find(' ').unwrap_or(rest.len()),
            };
            let (word, more) = rest.split_at(end);
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            words.push((key.to_owned(), value.trim_matches('"').to_owned()));
            rest = more.trim();
        }
        Words {
            words,
            used: std::cell::RefCell::default(),
        }
    }

    pub(super) fn all(&self, key: &str) -> Vec<&str> {
        let matching = self
            .words
            .iter()
            .enumerate()
            .filter(|(_, (word, _))| word == key);
        matching
            .map(|(index, (_, value))| {
                self.used.borrow_mut().insert(index);
                value.as_str()
            })
            .collect()
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.all(key).first().copied()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn number<T: std::str::FromStr>(&self, key: &str, default: T) -> Result<T> {
        match self.get(key) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| format!("{key}={text} is no number")),
        }
    }

    pub(super) fn milliseconds(&self, key: &str) -> Result<Option<u64>> {
        let Some(text) = self.get(key) else {
            return Ok(None);
        };
        let (digits, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
            (Some(digits), _) => (digits, 1),
            (None, Some(digits)) => (digits, 1000),
            (None, None) => return Err(format!("{key}={text} needs a unit, s or ms")),
        };
        let number: u64 = digits
            .parse()
            .map_err(|_| format!("{key}={text} is no duration"))?;
        Ok(Some(number * factor))
    }

    pub(super) fn gtids(&self, key: &str) -> Result<GtidSet> {
        self.get(key)
            .map_or_else(|| Ok(GtidSet::new()), super::parse::gtids)
    }

    pub(super) fn all_used(&self) -> Result<()> {
        let used = self.used.borrow();
        match self
            .words
            .iter()
            .enumerate()
            .find(|(index, _)| !used.contains(index))
        {
            Some((_, (key, _))) => Err(format!("`{key}` is not known here")),
            None => Ok(()),
        }
    }
}
