//! Labels and annotations that the operator reads beside those of manifests.
//! Never a value that a user chooses.

/// Selects everything that Katazuke made.
pub const MANAGED: &str = "app.kubernetes.io/managed-by=katazuke";
/// A request for a planned switchover: `<id>` or `<id> to=<ordinal or instance>`.
pub const SWITCHOVER: &str = "mysql.katazuke.dev/switchover";
/// Taint of a node that is declared out of service.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Hash of what was last applied: tells a field that is no longer wanted.
pub const APPLIED: &str = "mysql.katazuke.dev/applied";
