//! What can fail in a pass, and when to try again. A variant says what was
//! being done; its name is the metric's label.

use std::time::Duration;

use super::record::Unreadable;
use crate::leader::NotLeading;
use crate::resources::words;

/// A pass failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    /// The resource could not be read live.
    #[error("cannot read the resource: {n}", n = words(.0))]
    ReadCluster(#[source] kube::Error),
    /// The stored record is damaged: nothing may rest on it.
    #[error(transparent)]
    ReadRecord(#[from] Unreadable),
    /// The status could not be written.
    #[error("cannot write the status: {n}", n = words(.0))]
    WriteStatus(#[source] kube::Error),
    /// Somebody else leads.
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
}

/// When to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// After this time, or when something changes.
    After(Duration),
    /// Never in this term.
    Never,
}

impl PassError {
    /// Exhaustive, so that a new variant has to answer.
    pub(super) fn retry(&self) -> Retry {
        match self {
            Self::ReadCluster(_) | Self::WriteStatus(_) => Retry::After(Duration::from_millis(500)),
            Self::ReadRecord(_) => Retry::After(Duration::from_secs(10)),
            Self::NotLeading(_) => Retry::Never,
        }
    }

    /// Label of the metric.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::ReadCluster(_) => "ReadCluster",
            Self::ReadRecord(_) => "ReadRecord",
            Self::WriteStatus(_) => "WriteStatus",
            Self::NotLeading(_) => "NotLeading",
        }
    }

    /// Only what a human has to look at.
    pub(super) fn needs_human(&self) -> bool {
        match self {
            Self::ReadRecord(_) => true,
            Self::ReadCluster(_) | Self::WriteStatus(_) | Self::NotLeading(_) => false,
        }
    }
}

/// One action failed; the next pass sees what holds and plans again.
#[derive(Debug, thiserror::Error)]
pub(super) enum ActError {
    /// The record was changed by somebody since it was read (R1).
    #[error("the record was changed meanwhile")]
    RecordConflict,
    /// It could not be written.
    #[error("cannot write the record: {n}", n = words(.0))]
    WriteRecord(#[source] kube::Error),
    /// No answer to an order.
    #[error("cannot order: {0}")]
    Order(#[from] crate::agents::OrderError),
    /// The label could not be set.
    #[error("cannot set the role label: {n}", n = words(.0))]
    SetRole(#[source] kube::Error),
    /// The Pod or claim could not be made.
    #[error("cannot create {what}: {n}", n = words(source))]
    Create {
        /// Which object.
        what: String,
        /// How it failed.
        source: kube::Error,
    },
    /// There never was a valid spec to build it from.
    #[error("there is no valid spec to build it from")]
    NoValidSpec,
    /// The Pod could not be deleted.
    #[error("cannot delete the Pod: {n}", n = words(.0))]
    Delete(#[source] kube::Error),
    /// The Pod is another one by now.
    #[error("the Pod is another one by now")]
    AnotherPod,
}

impl ActError {
    /// The API server refused or did not answer: asking again at once does not help.
    pub(super) fn is_refused_by_api(&self) -> bool {
        match self {
            Self::WriteRecord(_) | Self::SetRole(_) | Self::Create { .. } | Self::Delete(_) => true,
            Self::RecordConflict | Self::Order(_) | Self::NoValidSpec | Self::AnotherPod => false,
        }
    }

    /// Label of the metric.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::RecordConflict => "RecordConflict",
            Self::WriteRecord(_) => "WriteRecord",
            Self::Order(_) => "Order",
            Self::SetRole(_) => "SetRole",
            Self::Create { .. } => "Create",
            Self::NoValidSpec => "NoValidSpec",
            Self::Delete(_) => "Delete",
            Self::AnotherPod => "AnotherPod",
        }
    }
}
