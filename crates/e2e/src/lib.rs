//! What the tests against a real Kubernetes share: words short enough that each
//! test is a picture. Needs the local cluster to be up (`cargo xtask cluster
//! up`) and says so when it is not. Never skips, never tries again.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test stops where its picture is wrong"
)]

use std::sync::{Mutex, OnceLock, PoisonError};

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use xtask::cluster::{CLIENT_NAMESPACE, Cluster};
use xtask::host::project_root;
use xtask::image::MYSQL;
use xtask::stage::{Leftover, Name, Picture, Stage, Wait};
use xtask::terminal::Terminal;
use xtask::workload::{RunArguments, Writer};

/// From nothing to Healthy, with other clusters beside it.
const HEALTHY_SECONDS_MAX: u64 = 240;
/// Until what is wrong is told.
const SAID_SECONDS_MAX: u64 = 90;
/// Until nothing is left.
const GONE_SECONDS_MAX: u64 = 180;

/// A local Kubernetes, without Katazuke.
pub fn bare_stage() -> Stage {
    let up = "these tests need the local cluster: cargo xtask cluster up";
    Stage::on(Cluster::attach().expect(up)).unwrap()
}

/// A local Kubernetes with Katazuke on it, installed once.
pub fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let stage = bare_stage();
        stage.install(&mut Terminal::new()).unwrap();
        stage
    })
}

/// One MySQLCluster in a namespace of its own, both gone after the test.
#[derive(Debug)]
pub struct Field {
    /// The cluster.
    pub name: Name,
    terminal: Mutex<Terminal>,
}

impl Field {
    /// One instance, with these fields of the spec instead.
    pub fn with(test: &str, spec: &Value) -> Self {
        let field = Self {
            name: Name::new(&format!("e2e-{test}"), "shop"),
            terminal: Mutex::new(Terminal::new()),
        };
        stage().make_namespace(&field.name.namespace).unwrap();
        field.set(spec);
        field
    }

    /// Applies the spec anew; a field that is not named has its usual value.
    pub fn set(&self, spec: &Value) {
        let Name { namespace, name } = &self.name;
        let mut wanted = json!({
            "replicas": 1,
            "image": MYSQL,
            "storage": {"size": "400Mi"},
            "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}},
            "config": {"innodb_buffer_pool_size": "32M", "innodb_redo_log_capacity": "32M"},
            "deletion": {"policy": "Delete"},
        });
        merge(&mut wanted, spec);
        let resource = json!({
            "apiVersion": format!("{}/{}", api::GROUP, api::VERSION),
            "kind": api::KIND,
            "metadata": {"name": name, "namespace": namespace},
            "spec": wanted,
        });
        stage().apply_text(&resource.to_string()).unwrap();
    }

    /// Waits until the cluster is so.
    pub fn until(&self, what: &str, is_so: impl FnMut(&Picture) -> bool) -> Picture {
        self.wait(what, HEALTHY_SECONDS_MAX, is_so)
    }

    fn wait(&self, what: &str, seconds_max: u64, is_so: impl FnMut(&Picture) -> bool) -> Picture {
        let mut terminal = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = Wait { what, seconds_max };
        match stage().wait_until(&wait, &mut terminal, &self.name, is_so) {
            Ok(picture) => picture,
            Err(error) => panic_with(&error.to_string()),
        }
    }

    /// Waits until all is as the spec says.
    pub fn is_healthy(&self) -> Picture {
        self.until(&format!("{} to be Healthy", self.name), |picture| {
            picture.is_current() && picture.is("Ready") && picture.is("Healthy")
        })
    }

    /// Waits until a condition that is not True, with a reason, and the words
    /// around it tell all of this.
    pub fn says(&self, words: &[&str]) {
        self.wait(
            &format!("{} to say {words:?}", self.name),
            SAID_SECONDS_MAX,
            |picture| {
                let text = everything_said(picture);
                words.iter().all(|word| text.contains(word)) && !picture.is("Ready")
            },
        );
    }

    /// Its uid.
    pub fn uid(&self) -> String {
        stage()
            .look(&self.name)
            .unwrap()
            .unwrap()
            .resource
            .metadata
            .uid
            .unwrap()
    }

    /// Deletes the resource and does not wait.
    pub fn delete(&self) {
        let clusters: Api<api::MySQLCluster> =
            Api::namespaced(stage().client(), &self.name.namespace);
        let parameters = DeleteParams::default();
        stage()
            .ask("delete", clusters.delete(&self.name.name, &parameters))
            .unwrap();
    }

    /// Waits until nothing of the cluster is left, except retained volumes.
    pub fn leaves_nothing(&self, uid: &str, retained: bool) {
        let mut left: Vec<Leftover> = Vec::new();
        let mut terminal = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = Wait {
            what: "nothing to be left",
            seconds_max: GONE_SECONDS_MAX,
        };
        let waited = stage().wait(&wait, &mut terminal, &self.name, |stage| {
            left = stage.leftovers(&self.name, uid, retained)?;
            left.extend(stage.stray_mysqlds()?);
            Ok(left.is_empty().then_some(()))
        });
        assert!(waited.is_ok(), "left behind: {left:#?}\n{waited:?}");
    }

    /// A writer through the primary's Service.
    pub fn writer(&self) -> Writer {
        let record = project_root().join(format!("target/e2e/{}.jsonl", self.name.namespace));
        let arguments = RunArguments {
            target: stage().primary(&self.name, TABLE).unwrap(),
            record,
            clients: 4,
            pause_milliseconds: 10,
            seconds_max: 900,
        };
        Writer::start(CLIENT_NAMESPACE, &arguments).unwrap()
    }

    /// Stops the writer; every instance holds the same, and every promise.
    pub fn keeps_its_promises(&self, writer: Writer) {
        let history = writer.stop().unwrap();
        assert!(
            history.acknowledged().count() > 100,
            "hardly anything was written"
        );
        let mut terminal = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
        let agreement = stage()
            .agreement(&self.name, TABLE, &history, &mut terminal)
            .unwrap();
        assert!(agreement.verdict.holds(), "{:#?}", agreement.verdict);
    }
}

/// The table that writers fill.
pub const TABLE: &str = "katazuke_writes";

impl Drop for Field {
    fn drop(&mut self) {
        let namespaces: Api<Namespace> = Api::all(stage().client());
        let name = &self.name.namespace;
        // A failed test must not fail those after it.
        let _ = stage().ask("delete the namespace", async {
            namespaces.delete(name, &DeleteParams::background()).await
        });
    }
}

/// Words of the status: what a user sees with `kubectl describe`.
pub fn everything_said(picture: &Picture) -> String {
    let mut text = picture.sentence();
    let status = picture.resource.status.clone().unwrap_or_default();
    for condition in status.conditions {
        text = format!("{text}\n{} {}", condition.reason, condition.message);
    }
    for instance in status.instances {
        let message = instance.message.unwrap_or_default();
        text = format!("{text}\n{} {message}", instance.situation);
    }
    text
}

/// Later values win; maps are merged, all else is replaced.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => into.clone_from(from),
    }
}

#[allow(clippy::panic, reason = "prints the picture with its line breaks")]
fn panic_with(text: &str) -> ! {
    panic!("{text}")
}
