//! From empty volumes to an open primary with replicas that acknowledge.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step ends the test"
)]

mod tier;

use std::time::Instant;

use mysql_async::prelude::Queryable;
use tier::Cluster;
use wire::{Act, Mysqld, Outcome, Volume};

#[tokio::test(flavor = "multi_thread")]
async fn one_instance_goes_from_an_empty_volume_to_serving_writes() {
    let cluster = Cluster::of(1).await;
    let begun = Instant::now();
    assert_eq!(cluster.instances[0].probe("/startupz").await.0, 200);
    assert_eq!(cluster.instances[0].probe("/readyz").await.0, 503);
    assert_eq!(
        cluster.order(0, Act::Initialise).await.outcome,
        Outcome::Started
    );
    let state = cluster
        .until(0, "data", |state| {
            matches!(state.volume, Volume::Data { .. }) && state.job.is_none()
        })
        .await;
    eprintln!("initialised after {:?}", begun.elapsed());
    assert!(
        matches!(state.mysqld, Mysqld::Gated { last_exit: None }),
        "nothing runs before an order"
    );
    let booting = Instant::now();
    cluster.boot(0).await;
    eprintln!("booted in {:?}", booting.elapsed());
    let server = cluster.server(0).await;
    assert!(
        server.read_only && server.offline && server.executed.is_empty(),
        "{server:#?}"
    );
    cluster
        .done(
            0,
            Act::Promote {
                until: gtid::GtidSet::default(),
                k: 0,
            },
        )
        .await;
    cluster.done(0, Act::Open { k: 0 }).await;
    let state = cluster.done(0, Act::EnsureApp).await;
    let Mysqld::Running { server } = state.mysqld else {
        panic!("runs")
    };
    assert!(server.app_ready && !server.read_only && !server.offline);
    assert_eq!(server.drift, []);
    let executed = server.executed.clone();
    cluster.done(0, Act::EnsureApp).await;
    assert_eq!(
        cluster.server(0).await.executed,
        executed,
        "a second EnsureApp writes nothing"
    );
    let mut client = cluster.instances[0].client().await.unwrap();
    client
        .query_drop("CREATE TABLE t (id INT PRIMARY KEY)")
        .await
        .unwrap();
    assert_eq!(cluster.instances[0].probe("/readyz").await.0, 200);
    let (_, metrics) = cluster.instances[0].probe("/metrics").await;
    assert!(
        metrics.contains("katazuke_agent_mysqld_serving 1"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn three_instances_acknowledge_each_other_s_writes() {
    let begun = Instant::now();
    let cluster = Cluster::open(3).await;
    eprintln!("three instances open after {:?}", begun.elapsed());
    let mut client = cluster.instances[0].client().await.unwrap();
    client
        .query_drop("CREATE TABLE t (id INT PRIMARY KEY)")
        .await
        .unwrap();
    client.query_drop("INSERT INTO t VALUES (1)").await.unwrap();
    let primary = cluster.server(0).await;
    assert!(primary.semi_sync.enabled && primary.semi_sync.k == 1 && primary.semi_sync.no_tx == 0);
    for ordinal in [1, 2] {
        let replica = cluster
            .until_server(ordinal, "the row", |server| {
                server.executed.contains(&primary.executed)
            })
            .await;
        assert_ne!(replica.uuid, primary.uuid);
        assert!(replica.read_only && replica.offline);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_a_passwd_entry_and_without_privileges_initialises_boots_and_clones() {
    let cluster = Cluster::of_user(2, Some(54_321)).await;
    cluster.bootstrap().await;
    let clone = Act::Clone {
        donor: cluster.endpoint(0).await,
    };
    assert_eq!(cluster.order(1, clone).await.outcome, Outcome::Started);
    cluster.join(1, 0).await;
}
