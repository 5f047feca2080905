//! What a MySQLCluster said at one moment. Only reads it; what it means was
//! judged by the operator.

use api::MySQLCluster;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// One reading of the resource.
#[derive(Debug, Clone)]
pub struct Picture {
    /// The resource.
    pub resource: MySQLCluster,
}

impl Picture {
    pub(super) fn of(resource: MySQLCluster) -> Self {
        Self { resource }
    }

    /// `status.situation`, or that there is none yet.
    pub fn situation(&self) -> &str {
        let status = self.resource.status.as_ref();
        status
            .and_then(|status| status.situation.as_deref())
            .unwrap_or("(none yet)")
    }

    /// `status.why`.
    pub fn why(&self) -> &str {
        let status = self.resource.status.as_ref();
        status
            .and_then(|status| status.why.as_deref())
            .unwrap_or_default()
    }

    /// The name of the Pod that is primary.
    pub fn primary(&self) -> Option<&str> {
        self.resource.status.as_ref()?.primary.as_deref()
    }

    /// `status.ha.version`.
    pub fn version(&self) -> u64 {
        self.ha().map_or(0, |ha| ha.version)
    }

    /// `status.ha.epoch`.
    pub fn epoch(&self) -> u64 {
        self.ha().map_or(0, |ha| ha.epoch)
    }

    /// The last request for a switchover that was done or refused.
    pub fn handled_request(&self) -> Option<&str> {
        self.ha()?.handled_request.as_deref()
    }

    fn ha(&self) -> Option<&api::HaRecord> {
        self.resource.status.as_ref()?.ha.as_ref()
    }

    /// A condition by its type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        let status = self.resource.status.as_ref()?;
        status
            .conditions
            .iter()
            .find(|condition| condition.type_ == kind)
    }

    /// Whether a condition is True.
    pub fn is(&self, kind: &str) -> bool {
        self.condition(kind)
            .is_some_and(|condition| condition.status == "True")
    }

    /// Whether the status is about the spec as it is now.
    pub fn is_current(&self) -> bool {
        let observed = self
            .resource
            .status
            .as_ref()
            .and_then(|status| status.observed_generation);
        observed == self.resource.metadata.generation
    }

    /// When a condition last changed, in microseconds since 1970. Kubernetes
    /// keeps whole seconds.
    pub fn changed_micros(&self, kind: &str) -> Option<u64> {
        let time = &self.condition(kind)?.last_transition_time;
        u64::try_from(time.0.as_microsecond()).ok()
    }

    /// Situation and why, on one line.
    pub fn sentence(&self) -> String {
        match self.why() {
            "" => self.situation().to_owned(),
            why => format!("{}: {why}", self.situation()),
        }
    }
}
