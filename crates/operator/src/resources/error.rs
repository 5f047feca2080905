//! What can fail while bringing about the owned objects, and when to try again.

use std::time::Duration;

use crate::pki::PkiError;

/// A reconciliation failed; the others of its objects were still brought about.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    /// The API server refused or did not answer.
    #[error("cannot {verb} {kind} {name}: {n}", n = words(source))]
    Api {
        /// What was being done.
        verb: &'static str,
        /// Kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// How it failed.
        source: Box<kube::Error>,
    },
    /// A certificate could not be made or read.
    #[error("{secret}: {source}")]
    Certificate {
        /// Which Secret.
        secret: String,
        /// How it failed.
        source: PkiError,
    },
    /// A Secret that must never be made anew lacks a part.
    #[error(
        "Secret {secret} lacks {part}; restore it from where it was changed, or delete the Secret to have it made anew"
    )]
    Damaged {
        /// Which Secret.
        secret: String,
        /// Which part.
        part: &'static str,
    },
    /// An object of that name belongs to somebody else.
    #[error("{kind} {name} belongs to {owner}; rename one of the two")]
    Foreign {
        /// Kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Its owner.
        owner: String,
    },
}

/// What the API server said, without the wrapping.
pub(crate) fn words(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return status.message.clone();
    }
    error.to_string()
}

/// The namespace is being deleted: nothing can be made in it, and nothing has to be.
pub(crate) fn namespace_ends(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .map(|cause| cause.reason.as_str())
        .any(|reason| reason == "NamespaceTerminating")
}

impl ReconcileError {
    /// See [`namespace_ends`].
    pub(crate) fn is_namespace_ending(&self) -> bool {
        match self {
            Self::Api { source, .. } => namespace_ends(source),
            Self::Certificate { .. } | Self::Damaged { .. } | Self::Foreign { .. } => false,
        }
    }

    /// Exhaustive, so that a new variant has to answer.
    pub(super) fn retry(&self) -> Duration {
        match self {
            Self::Api { .. } => Duration::from_secs(3),
            Self::Certificate { .. } | Self::Damaged { .. } | Self::Foreign { .. } => {
                Duration::from_secs(30)
            }
        }
    }

    /// Reason of the condition and label of the metric.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Api { .. } => "ApiRefused",
            Self::Certificate { .. } => "CertificateFailed",
            Self::Damaged { .. } => "SecretDamaged",
            Self::Foreign { .. } => "NameTaken",
        }
    }
}
