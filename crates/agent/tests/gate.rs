//! The start gate, accounts and certificates.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step ends the test"
)]

mod tier;

use mysql_async::prelude::Queryable;
use tier::{Cluster, uuid_of};
use wire::{Act, Mysqld, Outcome, Receiver, Volume};

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_configuration_is_a_counted_failure_and_not_a_loop() {
    let cluster = Cluster::of(1).await;
    assert_eq!(
        cluster.order(0, Act::Initialise).await.outcome,
        Outcome::Started
    );
    cluster
        .until(0, "data", |state| {
            matches!(state.volume, Volume::Data { .. }) && state.job.is_none()
        })
        .await;
    cluster.instances[0].append_to_my_cnf("no_such_variable=1");
    for attempt in 1..=2 {
        cluster.done(0, Act::Boot).await;
        let state = cluster
            .until(0, "failed start", |state| match &state.mysqld {
                Mysqld::Gated {
                    last_exit: Some(exit),
                } => exit.failed_starts == attempt,
                Mysqld::Gated { last_exit: None } | Mysqld::Starting | Mysqld::Running { .. } => {
                    false
                }
            })
            .await;
        let Mysqld::Gated {
            last_exit: Some(exit),
        } = state.mysqld
        else {
            panic!("just seen")
        };
        assert!(
            exit.message
                .as_ref()
                .is_some_and(|m| m.contains("no_such_variable")),
            "{exit:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_is_not_on_the_list_is_cut_off_and_stays_out_after_a_boot() {
    let cluster = Cluster::open(2).await;
    cluster.raise_version();
    cluster.done_without_peers(0, Act::Peers).await;
    let cut = |server: &wire::Server| {
        server
            .replication
            .as_ref()
            .is_some_and(|r| r.receiver == Receiver::Connecting)
    };
    let replica = cluster.until_server(1, "receiver cut off", cut).await;
    assert!(replica.executed.contains(&cluster.server(0).await.executed));
    cluster.raise_version();
    cluster.done(0, Act::Peers).await;
    let attached = |server: &wire::Server| {
        server
            .replication
            .as_ref()
            .is_some_and(|r| r.receiver == Receiver::Yes)
    };
    cluster.until_server(1, "receiver attached", attached).await;
    // The list changes while the server cannot be told: its init file tells it.
    cluster.raise_version();
    cluster.done_without_peers(0, Act::Kill).await;
    cluster.done_without_peers(0, Act::Boot).await;
    cluster
        .until(0, "answer", |state| {
            matches!(state.mysqld, Mysqld::Running { .. })
        })
        .await;
    let replica = cluster
        .until_server(1, "locked out", |server| {
            let error = server
                .replication
                .as_ref()
                .and_then(|r| r.receiver_error.clone());
            error.is_some_and(|error| error.contains("locked"))
        })
        .await;
    assert!(cut(&replica));
    // Opened again on a running, read-only server: section 14.
    cluster.raise_version();
    let before = cluster.server(0).await;
    let state = cluster.done(0, Act::Peers).await;
    let Mysqld::Running { server } = state.mysqld else {
        panic!("runs")
    };
    assert_eq!(
        server.executed, before.executed,
        "account statements are not binlogged"
    );
    assert!(server.read_only && server.offline);
    cluster.until_server(1, "receiver attached", attached).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_of_a_replica_does_not_inherit_its_source() {
    let cluster = Cluster::of(3).await;
    cluster.bootstrap().await;
    let clone = |donor| Act::Clone { donor };
    assert_eq!(
        cluster
            .order(1, clone(cluster.endpoint(0).await))
            .await
            .outcome,
        Outcome::Started
    );
    cluster.join(1, 0).await;
    assert_eq!(
        cluster
            .order(2, clone(cluster.endpoint(1).await))
            .await
            .outcome,
        Outcome::Started
    );
    cluster
        .until(2, "cloned data", |state| {
            matches!(state.volume, Volume::Data { .. }) && state.job.is_none()
        })
        .await;
    let state = cluster.boot(2).await;
    let Mysqld::Running { server } = state.mysqld else {
        panic!("runs")
    };
    assert_eq!(server.replication, None);
    assert!(
        server.executed.is_empty(),
        "a boot writes nothing: {}",
        server.executed
    );
    cluster.join(2, 0).await;
    let state = cluster.state(2).await;
    assert_eq!(uuid_of(&state), Some(server.uuid));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_enters_without_the_agent_s_password_or_a_peer_s_certificate() {
    let cluster = Cluster::open(1).await;
    let instance = &cluster.instances[0];
    for user in ["root", "katazuke_agent", "kz_shop-1"] {
        let options = mysql_async::OptsBuilder::default()
            .socket(Some(instance.path("run/mysqld.sock").to_string_lossy()))
            .user(Some(user))
            .prefer_socket(false);
        let login = mysql_async::Conn::new(options).await;
        assert!(login.is_err(), "{user} logged in without anything");
    }
    let mut client = instance.client().await.unwrap();
    let grants: Vec<String> = client.query("SHOW GRANTS").await.unwrap();
    assert_eq!(grants.len(), 2, "{grants:?}");
    assert!(
        grants
            .iter()
            .all(|grant| !grant.contains("SUPER") && !grant.contains("ADMIN")),
        "{grants:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_from_the_files_is_what_the_server_had_executed() {
    let cluster = Cluster::open(2).await;
    let mut client = cluster.instances[0].client().await.unwrap();
    client
        .query_drop("CREATE TABLE w (id INT PRIMARY KEY, t MEDIUMTEXT)")
        .await
        .unwrap();
    for id in 0..5 {
        client
            .query_drop(format!("INSERT INTO w VALUES ({id}, REPEAT('x', 200000))"))
            .await
            .unwrap();
    }
    client.query_drop("XA START 'a'").await.unwrap();
    client
        .query_drop("INSERT INTO w VALUES (100, '')")
        .await
        .unwrap();
    client.query_drop("XA END 'a'").await.unwrap();
    client.query_drop("XA PREPARE 'a'").await.unwrap();
    client.query_drop("XA COMMIT 'a'").await.unwrap();
    client.query_drop("TRUNCATE TABLE w").await.unwrap();
    // Any order is followed by a look at the server.
    cluster.done(0, Act::Peers).await;
    let executed = cluster.server(0).await.executed;
    let replica = cluster
        .until_server(1, "everything", |server| {
            server.executed.contains(&executed)
        })
        .await;
    for ordinal in [0, 1] {
        let server = cluster.server(ordinal).await;
        let state = cluster.done(ordinal, Act::Kill).await;
        let Volume::Data { on_disk } = state.volume else {
            panic!("{:?}", state.volume)
        };
        // Also of the clone, whose binlogs lack what came by clone.
        let held = on_disk.binlog.union(&on_disk.relay);
        assert_eq!(held, server.executed);
    }
    let retrieved = replica.replication.unwrap().retrieved;
    assert!(executed.contains(&retrieved));
    // Again after a clean end: a second file, and a Stop event.
    cluster.boot(0).await;
    let state = cluster.done(0, Act::Stop).await;
    let Volume::Data { on_disk } = state.volume else {
        panic!("{:?}", state.volume)
    };
    assert_eq!(on_disk.binlog, executed);
    assert_eq!(on_disk.tail.len(), 2);
    assert!(on_disk.tail[1].stopped);
}
