//! The whole operator over the fake API server, with a kubelet that gives each
//! Pod an address on loopback and an agent.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::client::ClientBuilder;
use operator::gate::{CurrentTerm, Gate};
use operator::leader::Term;
use operator::metrics::Metrics;
use operator::{Options, run_over};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::agent::{Certificates, FakeAgent};
use super::api::FakeApi;

pub(crate) struct World {
    pub(crate) api: FakeApi,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) agents: Arc<Mutex<BTreeMap<String, FakeAgent>>>,
    pub(crate) stop: CancellationToken,
}

impl World {
    /// `net` is the third number of the Pods' addresses, so that tests do not meet.
    pub(crate) fn start(net: u8) -> Self {
        let world = Self {
            api: FakeApi::default(),
            metrics: Metrics::new(),
            agents: Arc::default(),
            stop: CancellationToken::new(),
        };
        let term = CurrentTerm::new(Term::none());
        let gate = Gate {
            term: term.clone(),
            metrics: world.metrics.clone(),
        };
        let client = ClientBuilder::new(world.api.clone(), "default")
            .with_layer(&gate)
            .build();
        let options = Options {
            namespace: "ops".into(),
            identity: "operator-a".into(),
            agent_image: "katazuke:test".into(),
            watch_namespace: None,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
        };
        let (metrics, stop) = (world.metrics.clone(), world.stop.clone());
        tokio::spawn(async move {
            run_over(client, options, stop, metrics, term)
                .await
                .unwrap();
        });
        tokio::spawn(kubelet(world.api.clone(), world.agents.clone(), net));
        world
    }

    pub(crate) fn create_cluster(&self, name: &str, spec: &Value) {
        let mut all = json!({"image": "mysql:9.7", "storage": {"size": "1Gi"}});
        for (key, value) in spec.as_object().unwrap() {
            all[key] = value.clone();
        }
        self.api.put(
            "mysql.katazuke.dev/v1alpha1",
            "mysqlclusters",
            json!({
                "apiVersion": "mysql.katazuke.dev/v1alpha1", "kind": "MySQLCluster",
                "metadata": {"name": name, "namespace": "db", "uid": format!("uid-of-{name}")},
                "spec": all,
            }),
        );
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        self.api
            .get("mysqlclusters", "db", name)
            .unwrap_or_default()["status"]
            .clone()
    }

    /// Waits until the status has this situation; panics with what it has.
    pub(crate) async fn until_situation(&self, name: &str, situation: &str) {
        self.until(&format!("{name} is {situation}"), || {
            self.status(name)["situation"] == situation
        })
        .await;
    }

    pub(crate) async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "waited for: {what}\n{:#?}\n{:#?}",
                self.api.all("mysqlclusters"),
                self.api.writes().iter().rev().take(20).collect::<Vec<_>>()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Runs every new Pod whose certificate is there.
async fn kubelet(api: FakeApi, agents: Arc<Mutex<BTreeMap<String, FakeAgent>>>, net: u8) {
    let mut host = 10;
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        for pod in api.all("pods") {
            let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
            if !pod["status"]["podIP"].is_null() {
                continue;
            }
            let (cluster, ordinal) = name.rsplit_once('-').unwrap();
            let Some(secret) = api.get("secrets", "db", &format!("{cluster}-tls-{ordinal}")) else {
                continue;
            };
            host += 1;
            let ip = Ipv4Addr::new(127, 0, net, host);
            let owner = pod["metadata"]["ownerReferences"][0]["uid"]
                .as_str()
                .unwrap();
            let agent = FakeAgent::new(&name, owner);
            agents.lock().unwrap().insert(name.clone(), agent.clone());
            let address = SocketAddr::new(IpAddr::V4(ip), wire::layout::AGENT_PORT);
            tokio::spawn(agent.run(address, certificates(&secret)));
            api.change("pods", &name, |pod| {
                pod["status"] = json!({"podIP": ip.to_string(), "phase": "Running"});
            });
        }
    }
}

fn certificates(secret: &Value) -> Certificates {
    let secret: k8s_openapi::api::core::v1::Secret =
        serde_json::from_value(secret.clone()).unwrap();
    let data = secret.data.unwrap();
    let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
    Certificates {
        trust: text(wire::layout::TLS_CA),
        certificate: text(wire::layout::TLS_CERT),
        key: text(wire::layout::TLS_KEY),
    }
}
