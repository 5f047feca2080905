//! What is left of acknowledged writes when a primary dies, stops or is cut off.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step ends the test"
)]

mod tier;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use gtid::GtidSet;
use mysql_async::prelude::Queryable;
use nix::sys::signal::Signal;
use tier::{
    Cluster, PATIENCE, received,
    writers::{rows, until_written, writers},
};
use wire::{Act, Mysqld, Outcome, Receiver, Refusal, Volume};

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_write_is_lost_when_the_primary_is_killed_under_load() {
    let cluster = Cluster::open(3).await;
    let writers = writers(&cluster, 8).await;
    until_written(&writers, 200).await;
    cluster.instances[0].signal_mysqld(Signal::SIGKILL);
    let killed = Instant::now();
    cluster
        .until(0, "exit", |state| {
            matches!(state.mysqld, Mysqld::Gated { .. })
        })
        .await;
    eprintln!("exit seen after {:?}", killed.elapsed());
    cluster.raise_epoch();

    // fo-1 on both, then the one with the larger R.
    let mut r = Vec::new();
    for ordinal in [1, 2] {
        let state = cluster.done(ordinal, Act::Fence).await;
        let Mysqld::Running { server } = state.mysqld else {
            panic!("{ordinal} does not run")
        };
        r.push(received(&server));
    }
    let (new, other) = if r[0].contains(&r[1]) { (1, 2) } else { (2, 1) };
    let promoting = cluster.promote(new, 1).await;
    cluster.attach(other, new).await;
    let opening = cluster.open_writes(new, 1).await;
    eprintln!(
        "fence to promoted {promoting:?}, open {opening:?}, killed to open {:?}",
        killed.elapsed()
    );

    let acknowledged = writers.end().await;
    let mut client = cluster.instances[new].client().await.unwrap();
    let present = rows(&mut client).await;
    let lost: BTreeSet<_> = acknowledged.difference(&present).collect();
    eprintln!(
        "{} acknowledged, {} present",
        acknowledged.len(),
        present.len()
    );
    assert_eq!(lost, BTreeSet::new());
    client
        .query_drop("INSERT INTO w VALUES (1000000)")
        .await
        .unwrap();
    assert_eq!(cluster.server(new).await.semi_sync.no_tx, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposed_primary_reports_its_tail_and_returns_by_clone_as_another_server() {
    let mut cluster = Cluster::open(2).await;
    let deposed = cluster.uuid(0).await;
    // A commit that nobody can acknowledge.
    let mut client = cluster.instances[0].client().await.unwrap();
    client
        .query_drop("CREATE TABLE w (id BIGINT PRIMARY KEY)")
        .await
        .unwrap();
    cluster.raise_epoch();
    cluster.done(1, Act::Fence).await;
    let waiting = tokio::spawn(async move { client.query_drop("INSERT INTO w VALUES (7)").await });
    cluster
        .until_server(0, "a waiter", |server| server.semi_sync.waiting > 0)
        .await;
    cluster.instances[0].signal_mysqld(Signal::SIGKILL);
    cluster.promote(1, 0).await;
    cluster.open_writes(1, 0).await;
    assert!(
        waiting.await.unwrap().is_err(),
        "a write without a copy was answered OK"
    );

    let kept = cluster.server(1).await.executed;
    let state = cluster
        .until(0, "gate", |state| {
            matches!(state.mysqld, Mysqld::Gated { .. })
        })
        .await;
    let Volume::Data { on_disk } = state.volume else {
        panic!("{:?}", state.volume)
    };
    let tail = on_disk.binlog.subtract(&kept);
    assert_eq!(tail.count(), 1, "the waiter's transaction: {tail}");
    let last = on_disk.tail.last().unwrap();
    assert!(last.in_use && !last.stopped && !last.unparsable, "{last:?}");
    cluster.done(0, Act::FenceSelf).await;
    let resumed = cluster.order(0, Act::Resume).await.outcome;
    assert!(
        matches!(
            resumed,
            Outcome::Refused {
                refusal: Refusal::WrongState,
                ..
            }
        ),
        "{resumed:?}"
    );

    // The fence outlives the agent.
    cluster.instances[0].kill_agent();
    cluster.instances[0].start();
    let state = cluster
        .until(0, "data", |state| {
            matches!(state.volume, Volume::Data { .. })
        })
        .await;
    assert!(state.self_fenced.is_some());
    let resumed = cluster.order(0, Act::Resume).await.outcome;
    assert!(
        matches!(
            resumed,
            Outcome::Refused {
                refusal: Refusal::WrongState,
                ..
            }
        ),
        "{resumed:?}"
    );

    rejoin(&cluster, &state.incarnation, &kept, &tail).await;
    assert_ne!(cluster.uuid(0).await, deposed);
}

/// The tail of instance 0 is proved unacknowledged: kept aside, and cloned over.
async fn rejoin(cluster: &Cluster, incarnation: &str, kept: &GtidSet, tail: &GtidSet) {
    let state = cluster
        .done(
            0,
            Act::Discard {
                epoch: 1,
                kept: kept.clone(),
            },
        )
        .await;
    assert_eq!(state.volume, Volume::Empty);
    assert_ne!(
        state.incarnation, incarnation,
        "relay logs and data are gone"
    );
    assert_eq!(state.archives.len(), 1);
    assert_eq!(state.archives[0].gtids, *tail);
    let cloning = Instant::now();
    let donor = cluster.endpoint(1).await;
    assert_eq!(
        cluster.order(0, Act::Clone { donor }).await.outcome,
        Outcome::Started
    );
    cluster.join(0, 1).await;
    eprintln!("cloned and attached in {:?}", cloning.elapsed());
    assert!(kept.contains(&cluster.server(0).await.executed));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_below_the_highest_version_seen_is_refused_also_after_a_restart() {
    let mut cluster = Cluster::of(1).await;
    let old = cluster.stamp();
    cluster.raise_version();
    cluster.raise_version();
    assert_eq!(
        cluster.order(0, Act::Initialise).await.outcome,
        Outcome::Started
    );
    cluster
        .until(0, "data", |state| {
            matches!(state.volume, Volume::Data { .. }) && state.job.is_none()
        })
        .await;
    let stale = |outcome: &Outcome| {
        matches!(
            outcome,
            Outcome::Refused {
                refusal: Refusal::Stale,
                ..
            }
        )
    };
    let uuid = Some(cluster.uuid(0).await);
    let reply = cluster.order_as(0, uuid, old, Act::Boot).await;
    assert!(stale(&reply.outcome), "{:?}", reply.outcome);
    cluster.instances[0].kill_agent();
    cluster.instances[0].start();
    cluster
        .until(0, "data", |state| {
            matches!(state.volume, Volume::Data { .. })
        })
        .await;
    for act in [Act::Boot, Act::Peers, Act::FenceSelf] {
        let reply = cluster.order_as(0, uuid, old, act).await;
        assert!(stale(&reply.outcome), "{:?}", reply.outcome);
        assert_eq!(reply.state.seen, cluster.stamp());
        assert_eq!(
            reply.state.self_fenced, None,
            "refused, and nothing changed"
        );
    }
    let stranger = "00000000-0000-0000-0000-000000000001".parse().unwrap();
    let reply = cluster
        .order_as(0, Some(stranger), cluster.stamp(), Act::Boot)
        .await;
    assert!(
        matches!(
            reply.outcome,
            Outcome::Refused {
                refusal: Refusal::NotMe,
                ..
            }
        ),
        "{:?}",
        reply.outcome
    );
    assert!(matches!(reply.state.mysqld, Mysqld::Gated { .. }));
    for name in ["shop-1", "anybody"] {
        let order = wire::Order {
            cluster_uid: tier::CLUSTER_UID.to_owned(),
            uuid,
            stamp: cluster.stamp(),
            peers: Vec::new(),
            act: Act::Boot,
        };
        let answer = cluster.instances[0]
            .try_order_as(&cluster.stranger(name), &order)
            .await;
        assert!(answer.is_err(), "an order of {name} was taken: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphaned_mysqld_keeps_the_volume_locked() {
    let mut cluster = Cluster::of(1).await;
    cluster.bootstrap().await;
    let orphan = cluster.instances[0].mysqld_pid();
    cluster.instances[0].kill_agent();
    cluster.instances[0].start();
    let state = cluster.until(0, "answer", |_| true).await;
    assert_eq!(state.volume, Volume::Locked);
    let reply = cluster.order_as(0, None, cluster.stamp(), Act::Boot).await;
    assert!(
        matches!(
            reply.outcome,
            Outcome::Refused {
                refusal: Refusal::WrongState,
                ..
            }
        ),
        "{:?}",
        reply.outcome
    );
    nix::sys::signal::kill(orphan, Signal::SIGKILL).unwrap();
    let state = cluster
        .until(0, "volume", |state| {
            matches!(state.volume, Volume::Data { .. })
        })
        .await;
    assert!(
        matches!(state.mysqld, Mysqld::Gated { .. }),
        "boots only on order"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_primary_is_seen_by_its_agent_and_by_its_acker_and_can_be_ended() {
    let cluster = Cluster::open(2).await;
    let silent = |frame: &wire::Frame| frame.source_silent_milliseconds.unwrap_or_default();
    assert!(silent(&cluster.instances[1].frame().await.unwrap()) < 1500);
    cluster.instances[0].signal_mysqld(Signal::SIGSTOP);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let primary = cluster.instances[0].frame().await.unwrap();
        let acker = cluster.instances[1].frame().await.unwrap();
        // Beyond replica_net_timeout: by now the receiver knocks again and again.
        if primary.unanswered_milliseconds > 2000 && silent(&acker) > 7000 {
            break;
        }
        assert!(Instant::now() < deadline, "{primary:?} {acker:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let state = cluster.state(0).await;
    assert!(
        matches!(state.mysqld, Mysqld::Running { .. }),
        "frozen is not gone"
    );
    cluster.raise_epoch();
    let begun = Instant::now();
    let state = cluster.done(1, Act::Fence).await;
    eprintln!("fence of a knocking receiver took {:?}", begun.elapsed());
    let Mysqld::Running { server } = state.mysqld else {
        panic!("killed by its fence")
    };
    let replication = server.replication.unwrap();
    assert!(replication.receiver == Receiver::No && !replication.semi_sync_enabled);
    let begun = Instant::now();
    let state = cluster.done(0, Act::FenceSelf).await;
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    let Mysqld::Gated {
        last_exit: Some(exit),
    } = state.mysqld
    else {
        panic!("{:?}", state.mysqld)
    };
    assert_eq!(exit.signal, Some(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_an_acker_received_before_it_acknowledged_do_not_wait_for_ever() {
    let cluster = Cluster::open(2).await;
    let mut client = cluster.instances[0].client().await.unwrap();
    client
        .query_drop("CREATE TABLE w (id BIGINT PRIMARY KEY)")
        .await
        .unwrap();
    cluster.done(1, Act::Fence).await;
    cluster.raise_version();
    let waiting = tokio::spawn(async move { client.query_drop("INSERT INTO w VALUES (7)").await });
    let primary = cluster
        .until_server(0, "a waiter", |server| server.semi_sync.waiting > 0)
        .await;
    // Without acknowledgements it receives what the client waits for.
    cluster.follow(1, 0).await;
    cluster
        .until_server(1, "the waiter's transaction", |server| {
            received(server).contains(&primary.last_binlog_gtids)
        })
        .await;
    cluster
        .done(
            1,
            Act::Admit {
                source: cluster.uuid(0).await,
            },
        )
        .await;
    let answered = tokio::time::timeout(PATIENCE, waiting).await;
    answered.expect("the client is answered").unwrap().unwrap();
    assert_eq!(cluster.server(0).await.semi_sync.no_tx, 0);
    assert_eq!(cluster.state(0).await.not_strict, Vec::<u64>::new());
}
