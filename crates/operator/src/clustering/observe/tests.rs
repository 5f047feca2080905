//! Pictures of the mapping: JSON as it arrives, core's value as it leaves.

use super::*;
use serde_json::json;

const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

fn cluster(annotation: Option<&str>) -> MySQLCluster {
    let mut cluster: MySQLCluster = serde_json::from_value(json!({
        "apiVersion": "mysql.katazuke.dev/v1alpha1", "kind": "MySQLCluster",
        "metadata": {"name": "shop", "namespace": "db", "uid": "cluster-uid"},
        "spec": {"image": "mysql:9.7", "storage": {"size": "1Gi"}, "replicas": 3},
    }))
    .unwrap();
    if let Some(text) = annotation {
        cluster
            .annotations_mut()
            .insert(labels::SWITCHOVER.into(), text.into());
    }
    cluster
}

fn state(mysqld: &serde_json::Value) -> wire::AgentState {
    serde_json::from_value(json!({
        "instance": "shop-0", "agent_version": "0.1.0", "cluster_uid": "cluster-uid",
        "incarnation": "boot-1", "seen": {"version": 4, "epoch": 1}, "not_strict": [1],
        "volume": {"kind": "Data", "on_disk": {
            "uuid": A, "binlog": format!("{A}:1-5"), "relay": "",
            "tail": [
                {"file": "binlog.000001", "gtids": format!("{A}:1-5"), "in_use": false, "stopped": false, "unparsable": true},
            ],
        }},
        "mysqld": mysqld,
    }))
    .unwrap()
}

fn running(read_only: bool, offline: bool) -> serde_json::Value {
    json!({"kind": "Running", "server": {
        "as_of": {"version": 3, "epoch": 1}, "uuid": A, "version": "9.7.4-debug",
        "executed": format!("{A}:1-5"), "read_only": read_only, "offline": offline,
        "binlog_end": {"file": 1, "offset": 777}, "last_binlog_gtids": format!("{A}:1-6"),
        "semi_sync": {"enabled": true, "k": 1, "waiting": 3, "no_tx": 0},
        "drift": [{"name": "sync_binlog", "want": "1", "have": "0"}],
    }})
}

fn fresh(state: wire::AgentState) -> Fresh {
    Fresh {
        state,
        settled_milliseconds: 10,
        unanswered_milliseconds: 20,
        source_silent_milliseconds: Some(30),
    }
}

fn picture(
    cluster: &MySQLCluster,
    said: &BTreeMap<Ordinal, Said>,
    pods: Option<Vec<KubePod>>,
) -> Observed {
    let by_name = |pod: KubePod| (pod.name_any(), Arc::new(pod));
    observe(&Sources {
        cluster,
        record: Record::default(),
        said,
        milliseconds_without_link: 0,
        pods: pods.map(|pods| pods.into_iter().map(by_name).collect()),
        claims: Some(BTreeMap::new()),
        node: &|_| None,
        spec_hash: &|_| Some("h1".into()),
        refusals: &BTreeMap::new(),
    })
}

#[test]
fn a_running_primary_is_read_with_waiters_drift_and_a_tail_that_proves_nothing() {
    let seen = agent(&fresh(state(&running(false, false))));
    let Mysqld::Running(server) = &seen.mysqld else {
        panic!("{seen:?}")
    };
    assert_eq!(server.access, Access::Writes);
    assert_eq!(server.version, (9, 7, 4));
    assert_eq!(server.as_of_version, 3);
    assert_eq!(server.semi_sync, Some(1));
    assert!(server.waiters);
    assert_eq!(server.drift, ["sync_binlog is 0, not 1"]);
    let Volume::Data(disk) = &seen.volume else {
        panic!("{seen:?}")
    };
    assert!(disk.tail.iter().all(|tail| tail.stopped));
    assert_eq!((seen.seen_version, seen.not_strict.len()), (4, 1));
    assert_eq!(seen.source_silent_milliseconds, Some(30));
}

#[test]
fn access_is_what_both_switches_say() {
    for (read_only, offline, access) in [
        (true, true, Access::Closed),
        (true, false, Access::Reads),
        (false, true, Access::Opening),
        (false, false, Access::Writes),
    ] {
        let seen = agent(&fresh(state(&running(read_only, offline))));
        assert_eq!(seen.server().map(|server| server.access), Some(access));
    }
}

#[test]
fn what_was_not_seen_is_unknown_and_only_a_synced_cache_tells_absence() {
    let blind = picture(&cluster(None), &BTreeMap::new(), None);
    assert!(
        blind
            .instances
            .values()
            .all(|i| matches!(i.pod, Seen::Unknown(_)))
    );
    let empty = picture(&cluster(None), &BTreeMap::new(), Some(Vec::new()));
    assert_eq!(empty.instances.len(), 3);
    assert!(
        empty
            .instances
            .values()
            .all(|i| i.pod.is_absent() && matches!(i.agent, Seen::Unknown(_)))
    );
}

#[test]
fn pods_of_removed_ordinals_are_seen_and_pods_of_another_owner_are_not_taken_for_ours() {
    let pod = |name: &str, owner: &str, hash: &str| -> KubePod {
        serde_json::from_value(json!({"metadata": {
            "name": name, "uid": "p", "labels": {"mysql.katazuke.dev/role": "replica"},
            "annotations": {"mysql.katazuke.dev/spec-hash": hash},
            "ownerReferences": [{"apiVersion": "v", "kind": "MySQLCluster", "name": "shop", "uid": owner, "controller": true}],
        }, "status": {"phase": "Failed"}}))
        .unwrap()
    };
    let pods = vec![
        pod("shop-4", "cluster-uid", "h1"),
        pod("shop-1", "former-uid", "h1"),
        pod("shop-2", "cluster-uid", "h0"),
    ];
    let seen = picture(&cluster(None), &BTreeMap::new(), Some(pods));
    let of = |n| &seen.instances.get(&Ordinal(n)).unwrap().pod;
    assert_eq!(
        of(4).present().map(|p| (p.ended, p.outdated, p.role)),
        Some((true, false, Some(Role::Replica)))
    );
    assert_eq!(of(2).present().map(|p| p.outdated), Some(true));
    assert!(
        matches!(of(1), Seen::Unknown(silence) if silence.why == "Pod shop-1 belongs to MySQLCluster shop")
    );
}

#[test]
fn a_switchover_request_names_its_id_and_perhaps_a_target() {
    let asked = |text| request(&cluster(Some(text)));
    let to = |n| Some(Ordinal(n));
    assert_eq!(request(&cluster(None)), None);
    assert_eq!(asked(" "), None);
    assert_eq!(
        asked("r1"),
        Some(Request {
            id: "r1".into(),
            to: None
        })
    );
    assert_eq!(
        asked("r1 to=2"),
        Some(Request {
            id: "r1".into(),
            to: to(2)
        })
    );
    assert_eq!(
        asked("r1 to=shop-1"),
        Some(Request {
            id: "r1".into(),
            to: to(1)
        })
    );
    assert_eq!(
        asked("r1 to=shop-x"),
        Some(Request {
            id: "r1".into(),
            to: to(u32::MAX)
        })
    );
}
