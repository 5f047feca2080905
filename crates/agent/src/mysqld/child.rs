//! Children of PID 1. One reaper takes every exit, of mysqld and of orphans
//! that the kernel gave to us; nobody else waits for a process.

use std::{
    collections::BTreeMap,
    io,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use nix::{
    errno::Errno,
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::{lock, mysqld::log::Log};

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

type Waiters = Mutex<BTreeMap<i32, watch::Sender<Option<Ended>>>>;

/// Starts children and takes their exits.
#[derive(Debug, Clone)]
pub(crate) struct Children {
    waiters: Arc<Waiters>,
}

/// A child that was started.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pid: Pid,
    ended: watch::Receiver<Option<Ended>>,
    /// What it logs.
    pub(crate) log: Log,
}

impl Children {
    /// Begins to reap.
    pub(crate) fn reap() -> io::Result<Self> {
        let waiters = Arc::new(Waiters::default());
        let mut exits = signal(SignalKind::child())?;
        let reaped = Arc::clone(&waiters);
        tokio::spawn(async move {
            while exits.recv().await.is_some() {
                reap_all(&reaped);
            }
        });
        Ok(Self { waiters })
    }

    /// Starts a program whose standard error is mysqld's log.
    pub(crate) fn start(&self, command: &mut Command) -> io::Result<Child> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let (sender, ended) = watch::channel(None);
        // Held until the pid is known, so that the reaper cannot come first.
        let mut waiters = lock(&self.waiters);
        let mut process = command.spawn()?;
        let pid = i32::try_from(process.id()).map_err(io::Error::other)?;
        waiters.insert(pid, sender);
        drop(waiters);
        let log = Log::follow(process.stderr.take());
        Ok(Child {
            pid: Pid::from_raw(pid),
            ended,
            log,
        })
    }
}

fn reap_all(waiters: &Waiters) {
    let mut waiters = lock(waiters);
    loop {
        let (pid, ended) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => (
                pid,
                Ended {
                    code: Some(code),
                    signal: None,
                },
            ),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (
                pid,
                Ended {
                    code: None,
                    signal: Some(signal as i32),
                },
            ),
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return,
            Ok(_) | Err(Errno::EINTR) => continue,
            Err(error) => {
                tracing::error!(%error, "reaping");
                return;
            }
        };
        if let Some(waiter) = waiters.remove(&pid.as_raw()) {
            let _unheard = waiter.send(Some(ended));
        }
    }
}

impl Child {
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// `None` while it runs.
    pub(crate) fn ended(&self) -> Option<Ended> {
        *self.ended.borrow()
    }

    /// Returns once the child is dead and reaped.
    pub(crate) async fn wait(&self) -> Ended {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(value) => value.unwrap_or(Ended {
                code: None,
                signal: None,
            }),
            // The reaper is gone: the agent is ending.
            Err(_) => Ended {
                code: None,
                signal: None,
            },
        }
    }

    /// Sends a signal, unless the child was reaped: its number may be another's.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.ended().is_none()
            && let Err(error) = kill(self.pid, signal)
        {
            tracing::warn!(pid = self.pid(), %signal, %error, "signal not sent");
        }
    }

    /// SIGKILL; returns once it is dead and reaped.
    pub(crate) async fn kill(&self) -> Ended {
        self.signal(Signal::SIGKILL);
        self.wait().await
    }
}
