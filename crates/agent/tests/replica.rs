//! What a replica does with what it received.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step ends the test"
)]

mod tier;

use std::time::{Duration, Instant};

use mysql_async::{Conn, prelude::Queryable};
use nix::sys::signal::Signal;
use tier::{Cluster, received};
use wire::{Act, Mysqld, Outcome, Receiver};

/// A client that reads on the replica and holds a lock that stops its applier.
async fn applier_blocked_by_a_client() -> (Cluster, Conn) {
    let cluster = Cluster::open(2).await;
    let mut writer = cluster.instances[0].client().await.unwrap();
    writer
        .query_drop("CREATE TABLE w (id BIGINT PRIMARY KEY)")
        .await
        .unwrap();
    let executed = cluster.done(0, Act::Peers).await;
    let Mysqld::Running { server } = executed.mysqld else {
        panic!("runs")
    };
    cluster
        .until_server(1, "the table", |replica| {
            replica.executed.contains(&server.executed)
        })
        .await;
    assert_eq!(cluster.instances[1].probe("/readyz").await.0, 503);
    cluster.done(1, Act::ServeReads).await;
    assert_eq!(cluster.instances[1].probe("/readyz").await.0, 200);
    let mut reader = cluster.instances[1].client().await.unwrap();
    reader.query_drop("LOCK TABLES w READ").await.unwrap();
    for id in 0..20 {
        writer
            .query_drop(format!("INSERT INTO w VALUES ({id})"))
            .await
            .unwrap();
    }
    let state = cluster.done(1, Act::Peers).await;
    let Mysqld::Running { server } = state.mysqld else {
        panic!("runs")
    };
    assert!(
        !server.executed.contains(&received(&server)),
        "acknowledged, received, not applied"
    );
    (cluster, reader)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_applier_that_a_client_blocks_is_freed_when_the_replica_must_catch_up() {
    let (cluster, mut reader) = applier_blocked_by_a_client().await;
    cluster.instances[0].signal_mysqld(Signal::SIGKILL);
    cluster.raise_epoch();
    cluster.done(1, Act::Fence).await;
    let early = cluster
        .order(
            1,
            Act::Promote {
                until: received(&cluster.server(1).await),
                k: 0,
            },
        )
        .await;
    assert!(
        matches!(early.outcome, Outcome::Refused { .. }),
        "{:?}",
        early.outcome
    );
    let begun = Instant::now();
    assert_eq!(
        cluster.order(1, Act::CatchUp).await.outcome,
        Outcome::Started
    );
    let state = cluster
        .until(1, "everything applied", |state| state.job.is_none())
        .await;
    assert_eq!(state.job_failure, None);
    assert!(
        begun.elapsed() > Duration::from_secs(3),
        "clients have some time first"
    );
    assert!(
        reader.query_drop("DO 1").await.is_err(),
        "the client was not what blocked"
    );
    let unknown = "00000000-0000-0000-0000-000000000001:1".parse().unwrap();
    let beyond = cluster
        .order(
            1,
            Act::Promote {
                until: unknown,
                k: 0,
            },
        )
        .await;
    assert!(
        matches!(beyond.outcome, Outcome::Refused { .. }),
        "{:?}",
        beyond.outcome
    );
    cluster.promote(1, 0).await;
    cluster.open_writes(1, 0).await;
    let mut client = cluster.instances[1].client().await.unwrap();
    let rows: Option<u32> = client.query_first("SELECT COUNT(*) FROM w").await.unwrap();
    assert_eq!(rows, Some(20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_that_is_only_in_relay_logs_is_archived_and_forgotten() {
    let (cluster, _reader) = applier_blocked_by_a_client().await;
    let kept = cluster.server(1).await.executed;
    cluster.instances[0].signal_mysqld(Signal::SIGKILL);
    // Not by the agent's Kill: its offline_mode would end the reader first, and
    // the applier's workers would get their lock before the SIGKILL.
    cluster.instances[1].signal_mysqld(Signal::SIGKILL);
    cluster
        .until(1, "the end of its mysqld", |state| {
            matches!(state.mysqld, Mysqld::Gated { .. })
        })
        .await;
    let state = cluster.boot(1).await;
    let Mysqld::Running { server } = &state.mysqld else {
        panic!("runs")
    };
    let tail = received(server).subtract(&kept);
    assert_eq!(tail.count(), 20, "relay logs outlive a kill");
    let replication = server.replication.as_ref().unwrap();
    assert!(
        replication.receiver == Receiver::No && !replication.applier,
        "stopped after a boot"
    );
    cluster.raise_epoch();
    let after = cluster
        .done(1, Act::DiscardRelayLogs { kept: kept.clone() })
        .await;
    assert_ne!(after.incarnation, state.incarnation);
    let Mysqld::Running { server } = after.mysqld else {
        panic!("runs")
    };
    assert_eq!(server.replication, None);
    assert_eq!(received(&server), kept);
    cluster.done(1, Act::Kill).await;
    let state = cluster.state(1).await;
    assert_eq!(state.archives.len(), 1);
    assert_eq!(state.archives[0].gtids, tail);
    assert!(state.archives[0].bytes > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_beats_within_its_bound_and_tells_an_exit_at_once() {
    let cluster = Cluster::open(1).await;
    let mut watch = cluster.instances[0].watch().await.unwrap();
    assert!(
        watch.next().await.unwrap().state.is_some(),
        "full state first"
    );
    let mut longest = Duration::ZERO;
    for _frame in 0..30 {
        let before = Instant::now();
        watch.next().await.unwrap();
        longest = longest.max(before.elapsed());
    }
    eprintln!("longest silence {longest:?}");
    assert!(
        longest < Duration::from_secs(1),
        "{longest:?}, on a machine that may be loaded"
    );
    cluster.instances[0].signal_mysqld(Signal::SIGKILL);
    let killed = Instant::now();
    loop {
        let frame = watch.next().await.unwrap();
        let gone = |state: &wire::AgentState| matches!(state.mysqld, Mysqld::Gated { .. });
        if frame.state.is_some_and(|state| gone(&state)) {
            break;
        }
        assert!(killed.elapsed() < tier::PATIENCE, "no word of the exit");
    }
    eprintln!("exit told after {:?}", killed.elapsed());
}
