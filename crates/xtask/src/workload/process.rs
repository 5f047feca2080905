//! The writer and the reader as processes inside the client namespace, seen from
//! the host. A writer whose starter died stops too: its standard input ends.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::WorkloadError;
use super::connect::{PASSWORD_VARIABLE, Target};
use super::read::Reading;
use super::record::{History, RecordError};
use super::writer::RunArguments;
use crate::host::{
    HostError, create_folder, line_of, project_root, remove_file, run, this_program,
};

const STOP_SECONDS_MAX: u64 = 20;

/// The xtask program: this one, or the one beside the test that is running.
pub fn program() -> Result<PathBuf, WorkloadError> {
    let this = this_program().unwrap_or_default();
    if this.file_stem().is_some_and(|name| name == "xtask") {
        return Ok(this);
    }
    let path = project_root().join("target/x86_64-unknown-linux-gnu/debug/xtask");
    if path.exists() {
        Ok(path)
    } else {
        Err(WorkloadError::NoProgram { path })
    }
}

fn in_namespace(namespace: &str, verb: &str, target: &Target) -> Result<Command, WorkloadError> {
    let Target {
        address,
        login,
        table,
    } = target;
    let mut net = OsString::from("--net=/run/netns/");
    net.push(namespace);
    let mut command = Command::new("nsenter");
    command
        .arg(net)
        .arg("--")
        .arg(program()?)
        .args(["workload", verb]);
    command.args(["--address", &address.to_string(), "--user", &login.user]);
    command.args(["--database", &login.database, "--table", table]);
    command.env(PASSWORD_VARIABLE, &login.password);
    Ok(command)
}

/// Reads the table back from one server, in the client namespace.
pub fn read_through(namespace: &str, target: &Target) -> Result<Reading, WorkloadError> {
    let text = run(&mut in_namespace(namespace, "read", target)?)?;
    Ok(serde_json::from_str(&text).map_err(RecordError::from)?)
}

/// A writer at work.
#[derive(Debug)]
pub struct Writer {
    child: Child,
    record: PathBuf,
    log: PathBuf,
    history: History,
}

impl Writer {
    /// Starts one in the client namespace.
    pub fn start(namespace: &str, arguments: &RunArguments) -> Result<Self, WorkloadError> {
        let RunArguments {
            target,
            record,
            clients,
            pause_milliseconds,
            seconds_max,
        } = arguments;
        if let Some(folder) = record.parent() {
            create_folder(folder)?;
        }
        remove_file(record)?;
        let log = record.with_extension("log");
        let messages = std::fs::File::create(&log).map_err(|source| WorkloadError::File {
            path: log.clone(),
            source,
        })?;
        let mut command = in_namespace(namespace, "run", target)?;
        command
            .arg("--record")
            .arg(record)
            .args(["--clients", &clients.to_string()]);
        command.args(["--pause-milliseconds", &pause_milliseconds.to_string()]);
        command.args(["--seconds-max", &seconds_max.to_string()]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(messages);
        let line = line_of(&command);
        let child = command.spawn().map_err(|source| HostError::Start {
            command: line,
            source,
        })?;
        Ok(Self {
            child,
            record: record.clone(),
            log,
            history: History::default(),
        })
    }

    /// What has been written down so far.
    pub fn history(&mut self) -> Result<&History, WorkloadError> {
        if let Some(status) = self.ended()? {
            return Err(WorkloadError::EndedEarly {
                status,
                log: self.log.clone(),
            });
        }
        self.take_in()?;
        Ok(&self.history)
    }

    /// Ends it; answers only with a complete record.
    pub fn stop(mut self) -> Result<History, WorkloadError> {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(STOP_SECONDS_MAX);
        while self.ended()?.is_none() {
            if Instant::now() > deadline {
                let log = self.log.clone();
                return Err(WorkloadError::DidNotStop {
                    seconds: STOP_SECONDS_MAX,
                    log,
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.take_in()?;
        Ok(std::mem::take(&mut self.history).complete()?)
    }

    /// Where its record is.
    pub fn record(&self) -> &Path {
        &self.record
    }

    fn take_in(&mut self) -> Result<(), WorkloadError> {
        if !self.record.exists() {
            return Ok(());
        }
        let failed = |source| WorkloadError::File {
            path: self.record.clone(),
            source,
        };
        let mut file = File::open(&self.record).map_err(failed)?;
        file.seek(SeekFrom::Start(self.history.bytes()))
            .map_err(failed)?;
        let mut fresh = String::new();
        file.read_to_string(&mut fresh).map_err(failed)?;
        Ok(self.history.extend(&fresh)?)
    }

    fn ended(&mut self) -> Result<Option<std::process::ExitStatus>, WorkloadError> {
        let failed = |source| WorkloadError::File {
            path: self.log.clone(),
            source,
        };
        self.child.try_wait().map_err(failed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Nothing to be done about an error: it has ended, or ends by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
