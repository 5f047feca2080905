//! mysqld's error log: read from its standard error, given on as JSON lines.
//! Never drops a line, whatever it looks like.

use std::{
    io::{BufRead, BufReader},
    process::ChildStderr,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use tokio::{sync::watch, time::timeout};

use crate::lock;

/// From mysqld's exit to the end of its log.
const END_BOUND: Duration = Duration::from_millis(500);

/// The last ERRORs of many failed starts, and never the reason: "Aborting", and
/// that the data directory just made is of no use.
const CONSEQUENCES: [&str; 2] = ["MY-010119", "MY-013455"];

/// One line in mysqld's traditional format.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    severity: &'a str,
    code: &'a str,
    subsystem: &'a str,
    message: &'a str,
}

/// What of the log is kept.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    last_error: Arc<Mutex<Option<String>>>,
    ended: watch::Receiver<bool>,
}

impl Log {
    /// Reads to the end, in a thread of its own: a stuck runtime must not
    /// stop mysqld on a full pipe.
    pub(crate) fn follow(stderr: Option<ChildStderr>) -> Self {
        let (end, ended) = watch::channel(false);
        let log = Self {
            last_error: Arc::default(),
            ended,
        };
        let Some(stderr) = stderr else { return log };
        let reader = log.clone();
        let started = thread::Builder::new()
            .name("mysqld-log".to_owned())
            .spawn(move || {
                let mut stderr = BufReader::new(stderr);
                let mut line = Vec::new();
                while matches!(stderr.read_until(b'\n', &mut line), Ok(1..)) {
                    reader.take(String::from_utf8_lossy(&line).trim_end());
                    line.clear();
                }
                end.send_replace(true);
            });
        if let Err(error) = started {
            tracing::error!(%error, "mysqld's log is not read");
        }
        log
    }

    /// Returns when everything was read, or after a while: the program that
    /// ended may have left somebody who holds the other end.
    pub(crate) async fn read_to_end(&self) {
        let mut ended = self.ended.clone();
        if timeout(END_BOUND, ended.wait_for(|ended| *ended))
            .await
            .is_err()
        {
            tracing::warn!("mysqld's log has no end");
        }
    }

    /// The last line of severity ERROR.
    pub(crate) fn last_error(&self) -> Option<String> {
        lock(&self.last_error).clone()
    }

    fn take(&self, text: &str) {
        let Some(Line {
            severity,
            code,
            subsystem,
            message,
        }) = parse(text)
        else {
            if !text.is_empty() {
                tracing::info!(target: "mysqld", "{text}");
            }
            return;
        };
        match severity {
            "ERROR" => {
                if !CONSEQUENCES.contains(&code) {
                    *lock(&self.last_error) = Some(format!("{code} {message}"));
                }
                tracing::error!(target: "mysqld", severity, code, subsystem, "{message}");
            }
            "Warning" => tracing::warn!(target: "mysqld", severity, code, subsystem, "{message}"),
            _ => tracing::info!(target: "mysqld", severity, code, subsystem, "{message}"),
        }
    }
}

/// `2026-11-30T16:26:12.476359Z 0 [System] [MY-015150] [Server] text`
fn parse(text: &str) -> Option<Line<'_>> {
    let rest = text.split_once(' ')?.1.split_once(' ')?.1;
    let (severity, rest) = rest.strip_prefix('[')?.split_once("] [")?;
    let (code, rest) = rest.split_once("] [")?;
    let (subsystem, message) = rest.split_once("] ")?;
    Some(Line {
        severity,
        code,
        subsystem,
        message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mysqld_is_taken_apart() {
        let line =
            parse("2026-11-30T16:26:12.476359Z 0 [ERROR] [MY-010119] [Server] Aborting [now] x");
        assert_eq!(
            line,
            Some(Line {
                severity: "ERROR",
                code: "MY-010119",
                subsystem: "Server",
                message: "Aborting [now] x"
            })
        );
    }

    #[test]
    fn anything_else_is_passed_on_as_it_is() {
        assert_eq!(parse("mysqld: Can't open file"), None);
        assert_eq!(parse(""), None);
    }
}
