//! The standing link to one agent: dials, follows its stream, dials again.
//! Every frame and every reply lands in one place, [`Heard`]. Never gives an
//! order by itself.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use rustls::ClientConfig;
use tokio_util::task::AbortOnDropHandle;
use wire::{Frame, Order, Reply};

use super::Wake;
use super::dial::{self, Connection, DialError};
use super::heard::{Change, Heard, SILENT, Said};

/// Pauses between attempts to connect: first and longest.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_millis(500);

/// Where an agent is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Its Pod; another uid is another agent.
    pub pod_uid: String,
    /// The Pod's address.
    pub socket: SocketAddr,
    /// Name in its certificate.
    pub server_name: String,
}

/// A link; dropping it closes it.
pub(super) struct Link {
    address: Address,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

/// What the stream's task and the passes share.
pub(super) struct Shared {
    heard: Mutex<Heard>,
    connection: Mutex<Option<Connection>>,
    wake: Wake,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Begins to dial.
    pub(super) fn open(address: Address, tls: Arc<ClientConfig>, wake: Wake) -> Self {
        let shared = Arc::new(Shared {
            heard: Mutex::new(Heard::nothing(Instant::now())),
            connection: Mutex::new(None),
            wake,
        });
        let task = tokio::spawn(follow(address.clone(), tls, shared.clone()));
        Self {
            address,
            shared,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Where it leads.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// What a pass may rest on.
    pub(super) fn snapshot(&self, now: Instant) -> Said {
        lock(&self.shared.heard).snapshot(now)
    }

    /// When it was last heard to take writes.
    pub(super) fn serving(&self) -> Option<Instant> {
        lock(&self.shared.heard).serving()
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }
}

impl Shared {
    /// Gives an order; the reply's state is heard at once.
    pub(super) async fn order(&self, order: &Order) -> Result<Reply, DialError> {
        let connection = lock(&self.connection).clone();
        let Some(connection) = connection else {
            return Err(DialError::Answer("its stream is not connected".to_owned()));
        };
        let reply = tokio::select! {
            reply = connection.order(order) => reply?,
            () = connection.cut.cancelled() => {
                return Err(DialError::Answer("its stream broke while it was ordered".to_owned()));
            }
        };
        let change = {
            let mut heard = lock(&self.heard);
            // The answer of a former stream tells nothing about this one.
            if connection.cut.is_cancelled() {
                Change::Noise
            } else {
                heard.state(reply.state.clone(), Instant::now())
            }
        };
        self.wake.on(change);
        Ok(reply)
    }
}

async fn follow(address: Address, tls: Arc<ClientConfig>, shared: Arc<Shared>) {
    let wake = &shared.wake;
    let mut pause = RETRY_FIRST;
    loop {
        let ended = attempt(&address, tls.clone(), &shared, &mut pause).await;
        *lock(&shared.connection) = None;
        let why = match ended {
            Ok(()) => "its stream ended".to_owned(),
            Err(error) => error.to_string(),
        };
        tracing::debug!(agent = address.server_name, why, "no stream");
        let change = lock(&shared.heard).broke(why);
        wake.on(change);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_LONGEST);
    }
}

async fn attempt(
    address: &Address,
    tls: Arc<ClientConfig>,
    shared: &Shared,
    pause: &mut Duration,
) -> Result<(), DialError> {
    let wake = &shared.wake;
    let connection = dial::connect(address.socket, &address.server_name, tls).await?;
    let watching = tokio::time::timeout(SILENT, connection.watch());
    let body = watching
        .await
        .unwrap_or(Err(DialError::Timeout(address.socket)))?;
    let _cut = connection.cut.clone().drop_guard();
    *lock(&shared.connection) = Some(connection);
    let _connected = wake.connected();
    frames(body, |frame| {
        *pause = RETRY_FIRST;
        let change = lock(&shared.heard).frame(frame, Instant::now());
        wake.on(change);
    })
    .await
}

/// Reads frames until the stream ends or is silent.
async fn frames(mut body: Incoming, mut heard: impl FnMut(Frame)) -> Result<(), DialError> {
    let mut lines = Lines::default();
    loop {
        let next = tokio::time::timeout(SILENT, body.frame());
        let Ok(next) = next.await else {
            return Err(DialError::Answer("its stream went silent".to_owned()));
        };
        let Some(part) = next else { return Ok(()) };
        let Ok(data) = part?.into_data() else {
            continue;
        };
        lines.push(&data)?;
        while let Some(line) = lines.next() {
            let frame = serde_json::from_slice(&line)
                .map_err(|error| DialError::Answer(error.to_string()))?;
            heard(frame);
        }
    }
}

/// Cuts a stream of bytes into lines.
#[derive(Default)]
struct Lines(BytesMut);

impl Lines {
    fn push(&mut self, data: &Bytes) -> Result<(), DialError> {
        if self.0.len() + data.len() > dial::BODY_BYTES_MAX {
            return Err(DialError::Answer(
                "a line of its stream has no end".to_owned(),
            ));
        }
        self.0.extend_from_slice(data);
        Ok(())
    }

    fn next(&mut self) -> Option<BytesMut> {
        loop {
            let end = self.0.iter().position(|byte| *byte == b'\n')?;
            let mut line = self.0.split_to(end + 1);
            line.truncate(end);
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(line);
            }
        }
    }
}

/// How a change reaches the cluster's task.
impl Wake {
    fn on(&self, change: Change) {
        let matters = match change {
            Change::Noise => false,
            Change::Growth => self.is_restless(),
            Change::Significant => true,
        };
        if matters {
            self.now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_cut_at_line_ends_wherever_the_network_cut_them() {
        let mut lines = Lines::default();
        lines.push(&Bytes::from_static(b"{\"a\":")).unwrap();
        assert_eq!(lines.next(), None);
        lines
            .push(&Bytes::from_static(b"1}\n\n{\"b\":2}\n{"))
            .unwrap();
        assert_eq!(lines.next().as_deref(), Some(b"{\"a\":1}".as_slice()));
        assert_eq!(lines.next().as_deref(), Some(b"{\"b\":2}".as_slice()));
        assert_eq!(lines.next(), None);
    }
}
