//! Waiting with an end. The one place in the tests and the demo that pauses.

use std::time::{Duration, Instant};

use super::{Name, Picture, Stage, StageError};
use crate::terminal::Terminal;

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What to wait for and for how long.
#[derive(Debug)]
pub struct Wait<'a> {
    /// A sentence: "shop to be Ready".
    pub what: &'a str,
    /// The deadline.
    pub seconds_max: u64,
}

impl Stage {
    /// Looks until `found` answers. An API server that is away for a moment is
    /// looked at again; a failure tells all that can be seen about `about`.
    pub fn wait<T>(
        &self,
        wait: &Wait<'_>,
        terminal: &mut Terminal,
        about: &Name,
        mut found: impl FnMut(&Stage) -> Result<Option<T>, StageError>,
    ) -> Result<T, StageError> {
        let deadline = Instant::now() + Duration::from_secs(wait.seconds_max);
        loop {
            let (trouble, sentence) = match found(self) {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => (None, self.sentence_of(about)),
                Err(error @ StageError::Api { .. }) => (Some(error), String::new()),
                Err(other) => return Err(other),
            };
            if Instant::now() > deadline {
                return Err(trouble.unwrap_or_else(|| StageError::InVain {
                    what: wait.what.to_owned(),
                    seconds: wait.seconds_max,
                    seen: self.explain(about),
                }));
            }
            let detail = trouble.map_or(sentence, |error| error.to_string());
            terminal.waiting(&format!("{} ({detail})", wait.what));
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn sentence_of(&self, about: &Name) -> String {
        match self.look(about) {
            Ok(Some(picture)) => picture.sentence(),
            Ok(None) => format!("{about} does not exist"),
            Err(error) => error.to_string(),
        }
    }

    /// Waits until the picture of a cluster is as wanted.
    pub fn wait_until(
        &self,
        wait: &Wait<'_>,
        terminal: &mut Terminal,
        about: &Name,
        mut is_so: impl FnMut(&Picture) -> bool,
    ) -> Result<Picture, StageError> {
        self.wait(wait, terminal, about, |stage| {
            Ok(stage.look(about)?.filter(|picture| is_so(picture)))
        })
    }
}
