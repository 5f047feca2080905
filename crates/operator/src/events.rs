//! The catalogue of Kubernetes events: reason, type and sentence of everything
//! that is worth telling. Published aside from the passes, so that a slow API
//! server never delays a failover; the same words about the same object are
//! told once a minute at most. Never decides anything.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::sync::mpsc;

use crate::resources::namespace_ends;

/// The same words about the same object are not repeated within this time.
const REPEAT: Duration = Duration::from_mins(1);
/// Events that wait for the API server; more are dropped, and that is logged.
const WAITING_MAX: usize = 1024;
/// A note may have 1 KiB.
const NOTE_BYTES_MAX: usize = 1000;
/// A publication that takes longer is given up.
const PUBLISH: Duration = Duration::from_secs(5);

/// What can be told. The variant's name is the event's reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The first primary was recorded.
    ClusterBootstrapped,
    /// All is as wanted again.
    ClusterHealthy,
    /// The primary serves; something else is not as wanted.
    ClusterDegraded,
    /// The primary is silent or gone.
    PrimarySuspected,
    /// fo-1.
    FailoverStarted,
    /// fo-2: so few can still acknowledge that no commit can be.
    AckersFenced,
    /// fo-5, so-4.
    PrimaryElected,
    /// fo-6: it is a source now.
    PrimaryPromoted,
    /// It takes writes.
    PrimaryOpened,
    /// The old primary's mysqld is killed and stays so.
    PrimaryFenced,
    /// The change of primary is over.
    FailoverCompleted,
    /// so-2.
    SwitchoverStarted,
    /// so-5.
    SwitchoverCompleted,
    /// It was not done, and why.
    SwitchoverRefused,
    /// A failover or switchover was undone.
    TransitionAborted,
    /// An instance may acknowledge from now on.
    InstanceRejoined,
    /// It may no longer.
    AckerRemoved,
    /// A Pod was made.
    InstanceCreated,
    /// A Pod was deleted.
    InstanceDeleted,
    /// A clone began.
    InstanceCloning,
    /// A clone ended.
    InstanceCloned,
    /// A long work of an agent failed.
    JobFailed,
    /// Transactions that nobody acknowledged were archived and undone.
    TailArchived,
    /// Transactions of which that is not proved.
    ErrantUnproven,
    /// fo-2 cannot be met.
    Blocked,
    /// fo-3.
    Diverged,
    /// fo-3.
    AckedDataMissing,
    /// fo-4.
    ApplierBroken,
    /// R4.
    StatusBehind,
    /// Fewer than k ackers.
    WritesWaiting,
    /// An agent refused.
    OrderRefused,
    /// An order or a write failed.
    ActionFailed,
    /// Another manager owns a field that we want.
    FieldConflict,
    /// A safety field was taken back from another manager.
    FieldTaken,
    /// The spec is refused.
    SpecRefused,
    /// Owned objects cannot be brought about.
    ReconcileFailed,
    /// A certificate was renewed.
    CertificateRenewed,
    /// Something that Katazuke owns was missing and was made again.
    ObjectCreated,
    /// A Pod cannot start.
    InstanceTrouble,
}

impl Reason {
    fn kind(self) -> EventType {
        match self {
            Self::ClusterBootstrapped
            | Self::ClusterHealthy
            | Self::AckersFenced
            | Self::PrimaryElected
            | Self::PrimaryPromoted
            | Self::PrimaryOpened
            | Self::FailoverCompleted
            | Self::SwitchoverStarted
            | Self::SwitchoverCompleted
            | Self::InstanceRejoined
            | Self::AckerRemoved
            | Self::InstanceCreated
            | Self::InstanceDeleted
            | Self::InstanceCloning
            | Self::InstanceCloned
            | Self::CertificateRenewed
            | Self::ObjectCreated => EventType::Normal,
            Self::PrimarySuspected
            | Self::ClusterDegraded
            | Self::FailoverStarted
            | Self::PrimaryFenced
            | Self::SwitchoverRefused
            | Self::TransitionAborted
            | Self::JobFailed
            | Self::TailArchived
            | Self::ErrantUnproven
            | Self::Blocked
            | Self::Diverged
            | Self::AckedDataMissing
            | Self::ApplierBroken
            | Self::StatusBehind
            | Self::WritesWaiting
            | Self::OrderRefused
            | Self::ActionFailed
            | Self::FieldConflict
            | Self::FieldTaken
            | Self::SpecRefused
            | Self::ReconcileFailed
            | Self::InstanceTrouble => EventType::Warning,
        }
    }

    /// The word in `kubectl describe`.
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

/// One thing to tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Happening {
    /// What.
    pub reason: Reason,
    /// Names and values in a sentence.
    pub note: String,
}

impl Happening {
    /// With a sentence.
    pub fn new(reason: Reason, note: impl Into<String>) -> Self {
        Self {
            reason,
            note: note.into(),
        }
    }
}

struct Told {
    about: ObjectReference,
    happening: Happening,
}

/// Tells events; cheap to clone.
#[derive(Clone)]
pub struct Voice(mpsc::Sender<Told>);

impl Voice {
    /// The voice, and the task that publishes.
    pub fn new(client: Client, instance: String) -> (Self, impl Future<Output = ()>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let reporter = Reporter {
            controller: "katazuke".to_owned(),
            instance: Some(instance),
        };
        (
            Self(sender),
            publish(Recorder::new(client, reporter), receiver),
        )
    }

    /// Tells something about an object.
    pub fn tell(&self, about: &ObjectReference, happening: Happening) {
        let told = Told {
            about: about.clone(),
            happening,
        };
        if let Err(error) = self.0.try_send(told) {
            tracing::warn!(%error, "an event was dropped");
        }
    }
}

async fn publish(recorder: Recorder, mut waiting: mpsc::Receiver<Told>) {
    let mut limit = Limit::default();
    while let Some(Told { about, happening }) = waiting.recv().await {
        let of = about.uid.clone().unwrap_or_default();
        if !limit.allows(&of, &happening, Instant::now()) {
            continue;
        }
        let reason = happening.reason.name();
        let event = Event {
            type_: happening.reason.kind(),
            action: action(&happening),
            reason,
            note: Some(shorten(happening.note)),
            secondary: None,
        };
        match tokio::time::timeout(PUBLISH, recorder.publish(&event, &about)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) if namespace_ends(&error) => {}
            Ok(Err(error)) => tracing::warn!(%error, reason = event.reason, "cannot tell an event"),
            Err(_) => tracing::warn!(reason = event.reason, "cannot tell an event in time"),
        }
    }
}

/// A series is one reason, object and action: other words are another series.
fn action(happening: &Happening) -> String {
    let mut hasher = DefaultHasher::new();
    happening.note.hash(&mut hasher);
    format!("{}-{:08x}", happening.reason.name(), hasher.finish() >> 32)
}

fn shorten(mut note: String) -> String {
    if note.len() > NOTE_BYTES_MAX {
        let end = (0..=NOTE_BYTES_MAX)
            .rev()
            .find(|i| note.is_char_boundary(*i))
            .unwrap_or(0);
        note.truncate(end);
        note.push('…');
    }
    note
}

#[derive(Default)]
struct Limit(BTreeMap<(String, Reason, String), Instant>);

impl Limit {
    fn allows(&mut self, of: &str, happening: &Happening, now: Instant) -> bool {
        self.0.retain(|_, told| now.duration_since(*told) < REPEAT);
        let key = (of.to_owned(), happening.reason, happening.note.clone());
        if self.0.contains_key(&key) {
            return false;
        }
        self.0.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_about_the_same_object_are_told_once_a_minute() {
        let mut limit = Limit::default();
        let blocked = Happening::new(Reason::Blocked, "shop-1 is missing");
        let other = Happening::new(Reason::Blocked, "shop-2 is missing");
        let now = Instant::now();
        assert!(limit.allows("a", &blocked, now));
        assert!(!limit.allows("a", &blocked, now + Duration::from_secs(59)));
        assert!(limit.allows("a", &other, now));
        assert!(limit.allows("b", &blocked, now));
        assert!(limit.allows("a", &blocked, now + Duration::from_secs(61)));
    }

    #[test]
    fn a_long_note_is_cut_at_a_letter() {
        let note = shorten("é".repeat(600));
        assert!(note.len() <= 1003);
        assert!(note.ends_with('…'));
        assert_eq!(shorten("short".into()), "short");
    }
}
