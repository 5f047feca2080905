//! How a primary hands over or ends on purpose.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step ends the test"
)]

mod tier;

use std::time::{Duration, Instant};

use gtid::GtidSet;
use mysql_async::prelude::Queryable;
use nix::sys::signal::Signal;
use tier::{
    Cluster, received,
    writers::{rows, until_written, writers},
};
use wire::{Act, Mysqld, Outcome, Refusal, Volume};

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_never_answers_ok_to_a_commit_that_nobody_holds() {
    let mut cluster = Cluster::open(2).await;
    let mut client = cluster.instances[0].client().await.unwrap();
    client
        .query_drop("CREATE TABLE w (id BIGINT PRIMARY KEY)")
        .await
        .unwrap();
    cluster.done(1, Act::Fence).await;
    let waiting = tokio::spawn(async move { client.query_drop("INSERT INTO w VALUES (7)").await });
    cluster
        .until_server(0, "a waiter", |server| server.semi_sync.waiting > 0)
        .await;
    let begun = Instant::now();
    cluster.instances[0].signal_agent(Signal::SIGTERM);
    cluster
        .until(0, "terminating", |state| state.terminating)
        .await;
    let status = cluster.instances[0].agent_exits().await;
    assert!(status.success(), "{status}");
    assert!(
        begun.elapsed() > Duration::from_secs(9),
        "no time for a switchover: {:?}",
        begun.elapsed()
    );
    assert!(
        waiting.await.unwrap().is_err(),
        "a write without a copy was answered OK"
    );
    cluster.instances[0].start();
    let state = cluster
        .until(0, "data", |state| {
            matches!(state.volume, Volume::Data { .. })
        })
        .await;
    let Volume::Data { on_disk } = state.volume else {
        panic!("just seen")
    };
    assert!(!on_disk.tail.last().unwrap().stopped, "ended by SIGKILL");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switchover_moves_writes_and_the_old_primary_follows() {
    let cluster = Cluster::open(2).await;
    let writers = writers(&cluster, 4).await;
    until_written(&writers, 50).await;
    cluster.raise_epoch();
    let begun = Instant::now();
    let state = cluster
        .done(
            0,
            Act::Freeze {
                id: "s1".to_owned(),
                wait_milliseconds: 3000,
            },
        )
        .await;
    let Mysqld::Running { server } = state.mysqld else {
        panic!("frozen, not ended")
    };
    assert!(server.read_only);
    let executed = server.executed.clone();
    cluster
        .until_server(1, "everything", |server| {
            received(server).contains(&executed)
        })
        .await;
    cluster.raise_epoch();
    cluster.promote(1, 1).await;
    cluster.attach(0, 1).await;
    cluster.open_writes(1, 1).await;
    eprintln!("switchover took {:?}", begun.elapsed());
    let acknowledged = writers.end().await;
    let mut client = cluster.instances[1].client().await.unwrap();
    let present = rows(&mut client).await;
    assert!(present.is_superset(&acknowledged));
    client
        .query_drop("INSERT INTO w VALUES (1000000)")
        .await
        .unwrap();
    let written = cluster
        .until_server(1, "the write", |server| {
            !executed.contains(&server.executed)
        })
        .await;
    cluster
        .until_server(0, "the write", |server| {
            server.executed.contains(&written.executed)
        })
        .await;
    assert_eq!(cluster.state(0).await.not_strict, Vec::<u64>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_that_somebody_blocks_is_undone_and_names_them() {
    let cluster = Cluster::open(1).await;
    let mut client = cluster.instances[0].client().await.unwrap();
    client
        .query_drop("CREATE TABLE w (id BIGINT PRIMARY KEY)")
        .await
        .unwrap();
    client.query_drop("LOCK TABLES w WRITE").await.unwrap();
    client.query_drop("INSERT INTO w VALUES (1)").await.unwrap();
    cluster.raise_version();
    let freeze = Act::Freeze {
        id: "s1".to_owned(),
        wait_milliseconds: 1000,
    };
    let reply = cluster.order(0, freeze).await;
    let Outcome::Refused {
        refusal: Refusal::Blocked,
        message,
    } = reply.outcome
    else {
        panic!("{:?}", reply.outcome)
    };
    eprintln!("{message}");
    let Mysqld::Running { server } = reply.state.mysqld else {
        panic!("runs")
    };
    assert!(!server.read_only, "as before");
    client.query_drop("INSERT INTO w VALUES (2)").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_end_of_an_open_primary_makes_its_epoch_not_strict() {
    let cluster = Cluster::open(1).await;
    cluster.instances[0].signal_mysqld(Signal::SIGTERM);
    let state = cluster
        .until(0, "gate", |state| {
            matches!(state.mysqld, Mysqld::Gated { .. })
        })
        .await;
    assert_eq!(state.not_strict, vec![1]);
    let Volume::Data { on_disk } = state.volume else {
        panic!("{:?}", state.volume)
    };
    assert!(on_disk.tail.last().unwrap().stopped);
    assert!(!on_disk.tail.last().unwrap().in_use);
    let Mysqld::Gated {
        last_exit: Some(exit),
    } = state.mysqld
    else {
        panic!("{:?}", state.mysqld)
    };
    assert_eq!((exit.code, exit.failed_starts), (Some(0), 0));
    cluster.done(0, Act::Resume).await;
    cluster
        .until_server(0, "resumed", |server| {
            server.read_only && server.executed != GtidSet::default()
        })
        .await;
}
