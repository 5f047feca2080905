//! The mysqld tier: real agents over real mysqlds on loopback, driven by orders
//! as an operator drives them. Never skips: without mysqld it fails and says
//! what is missing.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test is a crate that uses its part of the tier; a failed step ends the test"
)]

pub mod instance;
pub mod pki;
pub mod writers;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use gtid::{GtidSet, Uuid};
use tempfile::TempDir;
use wire::{Act, AgentState, Endpoint, Mysqld, Order, Outcome, Reply, Server, Stamp, Volume};

use instance::Instance;
use pki::Authority;

pub const CLUSTER_UID: &str = "5b1fe0a4-0000-4000-8000-000000000000";

/// Long enough for a loaded machine; a wait that ends earlier ends at once.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Instances of one cluster, and the versions that its operator would commit.
pub struct Cluster {
    pub instances: Vec<Instance>,
    pub directory: TempDir,
    authority: Authority,
    version: AtomicU64,
    epoch: AtomicU64,
}

impl Cluster {
    /// Agents that are started, with empty volumes.
    pub async fn of(count: usize) -> Self {
        Self::of_user(count, None).await
    }

    /// The same, as a user that passwd does not know.
    pub async fn of_user(count: usize, uid: Option<u32>) -> Self {
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let directory = tempfile::Builder::new()
            .permissions(everybody)
            .prefix("kz")
            .tempdir()
            .unwrap();
        let authority = Authority::new();
        let mut instances = Vec::new();
        for ordinal in 0..count {
            let mut instance = Instance::new(directory.path(), &authority, ordinal);
            instance.uid = uid;
            instance.start();
            instances.push(instance);
        }
        let cluster = Self {
            instances,
            directory,
            authority,
            version: AtomicU64::new(1),
            epoch: AtomicU64::new(1),
        };
        for ordinal in 0..count {
            cluster
                .until(ordinal, "empty volume", |state| {
                    state.volume == Volume::Empty
                })
                .await;
        }
        cluster
    }

    /// A primary that is open with k = floor(N/2), its replicas admitted.
    pub async fn open(count: usize) -> Self {
        let cluster = Self::of(count).await;
        cluster.bootstrap().await;
        let k = u32::from(count > 1);
        for ordinal in 1..count {
            let clone = Act::Clone {
                donor: cluster.endpoint(0).await,
            };
            assert_eq!(
                cluster.order(ordinal, clone).await.outcome,
                Outcome::Started
            );
        }
        for ordinal in 1..count {
            cluster.join(ordinal, 0).await;
        }
        cluster.done(0, Act::SemiSync { k }).await;
        cluster.done(0, Act::Open { k }).await;
        cluster.done(0, Act::EnsureApp).await;
        cluster
    }

    /// Instance 0 initialised, booted and a source without acknowledgements.
    pub async fn bootstrap(&self) {
        assert_eq!(
            self.order(0, Act::Initialise).await.outcome,
            Outcome::Started
        );
        self.until(0, "data", |state| {
            matches!(state.volume, Volume::Data { .. }) && state.job.is_none()
        })
        .await;
        self.boot(0).await;
        self.done(
            0,
            Act::Promote {
                until: GtidSet::default(),
                k: 0,
            },
        )
        .await;
    }

    /// After its clone: boot, follow, admit.
    pub async fn join(&self, ordinal: usize, source: usize) {
        self.until(ordinal, "cloned data", |state| {
            assert_eq!(state.job_failure, None);
            matches!(state.volume, Volume::Data { .. }) && state.job.is_none()
        })
        .await;
        self.boot(ordinal).await;
        self.follow(ordinal, source).await;
        self.done(
            ordinal,
            Act::Admit {
                source: self.uuid(source).await,
            },
        )
        .await;
        self.until_server(ordinal, "acknowledging", |server| {
            server
                .replication
                .as_ref()
                .is_some_and(|r| r.semi_sync_active)
        })
        .await;
    }

    pub async fn follow(&self, ordinal: usize, source: usize) {
        let server = self.server(source).await;
        let within = server.executed.union(&server.last_binlog_gtids);
        let act = Act::Follow {
            source: self.endpoint(source).await,
            within,
        };
        self.done(ordinal, act).await;
        self.until_server(ordinal, "receiver attached", |server| {
            server
                .replication
                .as_ref()
                .is_some_and(|r| r.receiver == wire::Receiver::Yes)
        })
        .await;
    }

    pub async fn boot(&self, ordinal: usize) -> AgentState {
        self.done(ordinal, Act::Boot).await;
        self.until(ordinal, "mysqld answering", |state| {
            matches!(state.mysqld, Mysqld::Running { .. })
        })
        .await
    }

    pub fn raise_version(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    pub fn raise_epoch(&self) {
        self.raise_version();
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    pub fn stamp(&self) -> Stamp {
        Stamp {
            version: self.version.load(Ordering::SeqCst),
            epoch: self.epoch.load(Ordering::SeqCst),
        }
    }

    /// An order at the present version, to the server that is there, with all
    /// other instances as peers.
    pub async fn order(&self, ordinal: usize, act: Act) -> Reply {
        let uuid = uuid_of(&self.state(ordinal).await);
        self.order_as(ordinal, uuid, self.stamp(), act).await
    }

    pub async fn order_as(
        &self,
        ordinal: usize,
        uuid: Option<Uuid>,
        stamp: Stamp,
        act: Act,
    ) -> Reply {
        let peers = self
            .instances
            .iter()
            .filter(|instance| instance.ordinal != ordinal)
            .map(|instance| instance.name.clone())
            .collect();
        let order = Order {
            cluster_uid: CLUSTER_UID.to_owned(),
            uuid,
            stamp,
            peers,
            act,
        };
        self.instances[ordinal].order(&order).await
    }

    /// An order that must be done.
    pub async fn done(&self, ordinal: usize, act: Act) -> AgentState {
        let what = format!("{act:?}");
        let reply = self.order(ordinal, act).await;
        assert_eq!(
            reply.outcome,
            Outcome::Done,
            "{what} to {ordinal}: {:#?}",
            reply.state
        );
        reply.state
    }

    /// The same, with nobody allowed to replicate from there.
    pub async fn done_without_peers(&self, ordinal: usize, act: Act) {
        let uuid = uuid_of(&self.state(ordinal).await);
        let order = Order {
            cluster_uid: CLUSTER_UID.to_owned(),
            uuid,
            stamp: self.stamp(),
            peers: Vec::new(),
            act,
        };
        let reply = self.instances[ordinal].order(&order).await;
        assert_eq!(reply.outcome, Outcome::Done, "{:?}", order.act);
    }

    pub async fn state(&self, ordinal: usize) -> AgentState {
        self.instances[ordinal].state().await
    }

    pub async fn server(&self, ordinal: usize) -> Server {
        match self.state(ordinal).await.mysqld {
            Mysqld::Running { server } => *server,
            other @ (Mysqld::Gated { .. } | Mysqld::Starting) => {
                panic!("{ordinal} does not run: {other:?}")
            }
        }
    }

    pub async fn uuid(&self, ordinal: usize) -> Uuid {
        uuid_of(&self.state(ordinal).await).expect("a server with a uuid")
    }

    pub async fn endpoint(&self, ordinal: usize) -> Endpoint {
        Endpoint {
            instance: self.instances[ordinal].name.clone(),
            host: "127.0.0.1".to_owned(),
            port: self.instances[ordinal].mysql_port,
            uuid: self.uuid(ordinal).await,
        }
    }

    pub async fn until(
        &self,
        ordinal: usize,
        what: &str,
        wanted: impl Fn(&AgentState) -> bool,
    ) -> AgentState {
        self.instances[ordinal].until(what, wanted).await
    }

    pub async fn until_server(
        &self,
        ordinal: usize,
        what: &str,
        wanted: impl Fn(&Server) -> bool,
    ) -> Server {
        let state = self
            .until(ordinal, what, |state| match &state.mysqld {
                Mysqld::Running { server } => wanted(server),
                Mysqld::Gated { .. } | Mysqld::Starting => false,
            })
            .await;
        match state.mysqld {
            Mysqld::Running { server } => *server,
            Mysqld::Gated { .. } | Mysqld::Starting => unreachable!("just seen running"),
        }
    }
}

pub fn uuid_of(state: &AgentState) -> Option<Uuid> {
    match (&state.mysqld, &state.volume) {
        (Mysqld::Running { server }, _) => Some(server.uuid),
        (Mysqld::Gated { .. } | Mysqld::Starting, Volume::Data { on_disk }) => on_disk.uuid,
        (
            Mysqld::Gated { .. } | Mysqld::Starting,
            Volume::Locked | Volume::Empty | Volume::Partial { .. } | Volume::Unreadable { .. },
        ) => None,
    }
}

impl Cluster {
    /// fo-1 to fo-6 on `new`, by orders at a new version; returns how long the
    /// new primary's own steps took, from its fence to open.
    pub async fn promote(&self, new: usize, k: u32) -> Duration {
        let begun = std::time::Instant::now();
        let fenced = self.done(new, Act::Fence).await;
        let Mysqld::Running { server } = fenced.mysqld else {
            panic!("{new} was killed by its fence")
        };
        let until = received(&server);
        match self.order(new, Act::CatchUp).await.outcome {
            Outcome::Done => {}
            Outcome::Started => {
                self.until(new, "everything applied", |state| state.job.is_none())
                    .await;
            }
            other @ (Outcome::Refused { .. } | Outcome::Failed { .. }) => panic!("{other:?}"),
        }
        self.done(new, Act::Promote { until, k }).await;
        begun.elapsed()
    }

    pub async fn open_writes(&self, ordinal: usize, k: u32) -> Duration {
        let begun = std::time::Instant::now();
        self.done(ordinal, Act::Open { k }).await;
        begun.elapsed()
    }

    /// Takes the place of a receiver that follows `source` and acknowledges.
    pub async fn attach(&self, ordinal: usize, source: usize) {
        self.follow(ordinal, source).await;
        self.done(
            ordinal,
            Act::Admit {
                source: self.uuid(source).await,
            },
        )
        .await;
    }

    /// Whether the operator's orders are taken from somebody else.
    pub fn stranger(&self, common_name: &str) -> std::sync::Arc<rustls::ClientConfig> {
        self.authority.client(common_name)
    }
}

/// R of a server.
pub fn received(server: &Server) -> GtidSet {
    match &server.replication {
        Some(replication) => server.executed.union(&replication.retrieved),
        None => server.executed.clone(),
    }
}
