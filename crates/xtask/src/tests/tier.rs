//! The tiers, cheapest first. See docs/testing.md.

/// Use the least powerful that can show a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Tier {
    /// Format, lints, tidy, values in and values out.
    Pure,
    /// The agent with real mysqld processes on loopback.
    Mysqld,
    /// The local Kubernetes itself.
    LocalCluster,
    /// Real Kubernetes API, no instances.
    Apiserver,
    /// Everything, broken on purpose.
    Cluster,
    /// What the README promises.
    Demo,
}

impl Tier {
    /// In order.
    pub const ALL: [Self; 6] = [
        Self::Pure,
        Self::Mysqld,
        Self::LocalCluster,
        Self::Apiserver,
        Self::Cluster,
        Self::Demo,
    ];

    pub(super) fn needs_kubernetes(self) -> bool {
        match self {
            Self::Pure | Self::Mysqld => false,
            Self::LocalCluster | Self::Apiserver | Self::Cluster | Self::Demo => true,
        }
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Self::Pure => "pure",
            Self::Mysqld => "mysqld",
            Self::LocalCluster => "local-cluster",
            Self::Apiserver => "apiserver",
            Self::Cluster => "cluster",
            Self::Demo => "demo",
        })
    }
}
