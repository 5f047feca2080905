//! The real loop over a fake API server and fake agents: what it does to one
//! single-instance cluster, and what it must not do.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which clippy takes for other code"
)]

mod fake;

use std::time::Duration;

use fake::world::World;
use http::Method;
use serde_json::json;

/// Longer than any timer that would write by mistake, but the resync.
const REST: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_gets_its_objects_and_becomes_healthy_and_then_nothing_is_written() {
    let world = World::start(1);
    world.create_cluster("shop", &json!({"replicas": 1}));
    world.until_situation("shop", "Healthy").await;
    for (plural, name) in [
        ("secrets", "shop-ca"),
        ("secrets", "shop-app"),
        ("secrets", "shop-tls-0"),
        ("services", "shop"),
        ("services", "shop-primary"),
        ("services", "shop-replica"),
        ("configmaps", "shop-config"),
        ("persistentvolumeclaims", "data-shop-0-0"),
        ("pods", "shop-0"),
    ] {
        assert!(
            world.api.get(plural, "db", name).is_some(),
            "{plural} {name}"
        );
    }
    assert_eq!(world.status("shop")["primary"], "shop-0");
    let pod = world.api.get("pods", "db", "shop-0").unwrap();
    assert_eq!(
        pod["metadata"]["labels"]["mysql.katazuke.dev/role"],
        "primary"
    );

    tokio::time::sleep(REST).await;
    let before = world.api.writes();
    let agent = world.agents.lock().unwrap()["shop-0"].clone();
    for transactions in 4..40 {
        agent.grow(transactions);
        tokio::time::sleep(REST / 36).await;
    }
    let after = world.api.writes();
    assert_eq!(
        after[before.len()..],
        [] as [String; 0],
        "at rest nothing is written, whatever clients write"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_was_changed_meanwhile_is_never_overwritten() {
    let world = World::start(2);
    let api = world.api.clone();
    let mut refused = 0;
    // The first three writes of the record meet a resource that has changed.
    api.set_fault(Box::new(move |method, place, body| {
        let record = place.plural == "mysqlclusters" && !body["status"]["ha"].is_null();
        if *method == Method::PATCH && record && refused < 3 {
            assert!(body["metadata"]["resourceVersion"].is_string(), "{body}");
            refused += 1;
            return Some(409);
        }
        None
    }));
    world.create_cluster("shop", &json!({"replicas": 1}));
    world.until_situation("shop", "Healthy").await;
    let versions: Vec<u64> = world
        .api
        .writes()
        .iter()
        .filter(|write| write.contains("\"ha\""))
        .filter_map(|write| {
            write
                .split("\"version\":")
                .nth(1)?
                .split([',', '}'])
                .next()?
                .parse()
                .ok()
        })
        .collect();
    let mut rising = versions.clone();
    rising.dedup();
    rising.sort_unstable();
    assert_eq!(
        versions, rising,
        "every accepted write raised the version once"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_record_of_one_cluster_is_said_and_stops_no_other() {
    let world = World::start(3);
    world.create_cluster("bad", &json!({"replicas": 1}));
    world.until_situation("bad", "Healthy").await;
    world.api.change("mysqlclusters", "bad", |bad| {
        bad["status"]["ha"]["watermark"] = json!("torn");
    });
    let before = world.api.writes().len();
    world.create_cluster("good", &json!({"replicas": 1}));
    world.until_situation("good", "Healthy").await;
    let touched: Vec<String> = world.api.writes()[before..]
        .iter()
        .filter(|write| write.contains("bad-0") || write.contains("mysqlclusters/bad"))
        .cloned()
        .collect();
    assert_eq!(
        touched,
        [] as [String; 0],
        "nothing is done on a record that cannot be read"
    );
    assert!(world.metrics.text().contains(r#"reason="ReadRecord""#));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_spec_is_said_and_the_database_goes_on() {
    let world = World::start(4);
    world.create_cluster("shop", &json!({"replicas": 1}));
    world.until_situation("shop", "Healthy").await;
    world.api.change("mysqlclusters", "shop", |shop| {
        shop["spec"]["config"] = json!({"sync_binlog": "0"});
        shop["metadata"]["generation"] = json!(2);
    });
    let reconciled = || {
        let status = world.status("shop");
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        conditions
            .into_iter()
            .find(|condition| condition["type"] == "Reconciled")
    };
    world
        .until("the spec is refused", || {
            reconciled().is_some_and(|condition| condition["reason"] == "SpecRefused")
        })
        .await;
    assert!(
        reconciled().unwrap()["message"]
            .as_str()
            .unwrap()
            .contains("sync_binlog")
    );
    assert_eq!(world.status("shop")["situation"], "Healthy");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_cluster_leaves_no_metrics_and_is_not_made_again() {
    let world = World::start(5);
    world.create_cluster("shop", &json!({"replicas": 1}));
    world.until_situation("shop", "Healthy").await;
    assert!(world.metrics.text().contains(r#"cluster="shop""#));
    world.api.remove("mysqlclusters", "shop");
    world.api.remove("pods", "shop-0");
    world
        .until("the metrics are gone", || {
            !world.metrics.text().contains(r#"cluster="shop""#)
        })
        .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(world.api.get("pods", "db", "shop-0").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_was_deleted_is_made_again_on_the_same_claim_also_while_the_spec_is_refused() {
    let world = World::start(6);
    world.create_cluster("shop", &json!({"replicas": 1}));
    world.until_situation("shop", "Healthy").await;
    let claim = || {
        world
            .api
            .get("persistentvolumeclaims", "db", "data-shop-0-0")
    };
    let uid = claim().unwrap()["metadata"]["uid"].clone();
    world.api.change("mysqlclusters", "shop", |shop| {
        shop["spec"]["config"] = json!({"sync_binlog": "0"});
    });
    world.agents.lock().unwrap()["shop-0"].stop();
    world.api.remove("pods", "shop-0");
    world
        .until("the Pod is there again", || {
            world.api.get("pods", "db", "shop-0").is_some()
        })
        .await;
    assert_eq!(claim().unwrap()["metadata"]["uid"], uid);
}
