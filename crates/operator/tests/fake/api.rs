//! An API server in memory, as a tower service. Apply is a merge that creates:
//! ownership of fields is not modelled.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use serde_json::{Value, json};

pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

/// Where an object is stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) group_version: String,
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

struct Watcher {
    of: Place,
    sender: UnboundedSender<Bytes>,
}

/// Decides about a request before it is served: a status code refuses it.
pub(crate) type Fault = Box<dyn FnMut(&Method, &Place, &Value) -> Option<u16> + Send>;

#[derive(Default)]
struct State {
    objects: BTreeMap<Place, Value>,
    version: u64,
    history: Vec<(u64, Place, Value)>,
    watchers: Vec<Watcher>,
    writes: Vec<String>,
    fault: Option<Fault>,
}

#[derive(Clone, Default)]
pub(crate) struct FakeApi(Arc<Mutex<State>>);

impl FakeApi {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap())
    }

    /// Writes so far, without leases and events.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.with(|state| state.writes.clone())
    }

    pub(crate) fn set_fault(&self, fault: Fault) {
        self.with(|state| state.fault = Some(fault));
    }

    pub(crate) fn all(&self, plural: &str) -> Vec<Value> {
        self.with(|state| {
            let of = state
                .objects
                .iter()
                .filter(|(place, _)| place.plural == plural);
            of.map(|(_, object)| object.clone()).collect()
        })
    }

    pub(crate) fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        self.with(|state| {
            let found = state.objects.iter().find(|(place, _)| {
                place.plural == plural && place.namespace == namespace && place.name == name
            });
            found.map(|(_, object)| object.clone())
        })
    }

    /// Somebody else changes or makes an object.
    pub(crate) fn put(&self, group_version: &str, plural: &str, object: Value) {
        let text = |field: &str| {
            object["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let place = Place {
            group_version: group_version.into(),
            plural: plural.into(),
            namespace: text("namespace"),
            name: text("name"),
        };
        self.with(|state| state.store(place, object));
    }

    /// Somebody else deletes an object, or the garbage collector does.
    pub(crate) fn remove(&self, plural: &str, name: &str) {
        self.with(|state| {
            let gone = |place: &&Place| place.plural == plural && place.name == name;
            let Some(place) = state.objects.keys().find(gone).cloned() else {
                return;
            };
            state.delete(place);
        });
    }

    pub(crate) fn change(&self, plural: &str, name: &str, change: impl FnOnce(&mut Value)) {
        self.with(|state| {
            let found = state
                .objects
                .keys()
                .find(|p| p.plural == plural && p.name == name)
                .cloned();
            let Some(place) = found else { return };
            let mut object = state.objects[&place].clone();
            change(&mut object);
            state.store(place, object);
        });
    }
}

impl State {
    fn store(&mut self, place: Place, mut object: Value) -> Value {
        let former = self.objects.get(&place);
        let metadata = object["metadata"].as_object_mut().unwrap();
        if let Some(former) = former {
            metadata.insert(
                "resourceVersion".into(),
                former["metadata"]["resourceVersion"].clone(),
            );
            if *former == object {
                return object;
            }
        } else {
            metadata
                .entry("uid")
                .or_insert(json!(format!("uid-{}", self.version)));
            metadata.insert("generation".into(), json!(1));
            metadata.insert("creationTimestamp".into(), json!("2026-01-01T00:00:00Z"));
        }
        let kind = if former.is_some() {
            "MODIFIED"
        } else {
            "ADDED"
        };
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(place.clone(), object.clone());
        self.tell(place, json!({"type": kind, "object": object}));
        object
    }

    fn tell(&mut self, place: Place, event: Value) {
        for watcher in self
            .watchers
            .iter()
            .filter(|watcher| watcher.of.matches(&place))
        {
            let _ = watcher.sender.unbounded_send(line(&event));
        }
        self.history.push((self.version, place, event));
    }

    fn serve(&mut self, method: &Method, place: &Place, query: &str, body: &Value) -> (u16, Value) {
        let refused = self
            .fault
            .as_mut()
            .and_then(|fault| fault(method, place, body));
        if let Some(code) = refused {
            return status(code, "refused by the test");
        }
        let (status_only, place) = match place.name.strip_suffix("/status") {
            Some(name) => (
                true,
                Place {
                    name: name.into(),
                    ..place.clone()
                },
            ),
            None => (false, place.clone()),
        };
        if *method != Method::GET && !["leases", "events"].contains(&place.plural.as_str()) {
            self.writes.push(format!(
                "{method} {}/{} {query} {body}",
                place.plural, place.name
            ));
        }
        let found = self.objects.get(&place).cloned();
        match (method.as_str(), found) {
            ("GET", Some(found)) => (200, found),
            ("GET", None) if place.name.is_empty() => (200, self.list(&place)),
            ("POST", _) => self.create(place, body.clone()),
            ("PATCH", None) if query.contains("force") || is_apply(body) => {
                (201, self.store(place, body.clone()))
            }
            ("DELETE", Some(_)) => {
                self.delete(place);
                (
                    200,
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
                )
            }
            (_, None) => status(404, "NotFound"),
            ("PATCH" | "PUT", Some(found)) => {
                let asked = &body["metadata"]["resourceVersion"];
                if !asked.is_null() && *asked != found["metadata"]["resourceVersion"] {
                    return status(409, "Conflict");
                }
                let mut object = found.clone();
                if method == Method::PUT {
                    object = body.clone();
                } else if status_only {
                    merge(&mut object["status"], &body["status"]);
                } else {
                    merge(&mut object, body);
                }
                (200, self.store(place, object))
            }
            (method, _) => status(405, method),
        }
    }

    fn delete(&mut self, place: Place) {
        let Some(mut object) = self.objects.remove(&place) else {
            return;
        };
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.tell(place, json!({"type": "DELETED", "object": object}));
    }

    fn create(&mut self, mut place: Place, body: Value) -> (u16, Value) {
        place.name = body["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if self.objects.contains_key(&place) {
            return status(409, "AlreadyExists");
        }
        let mut body = body;
        body["metadata"]["namespace"] = json!(place.namespace);
        (201, self.store(place, body))
    }

    fn list(&self, of: &Place) -> Value {
        let items: Vec<&Value> = self
            .objects
            .iter()
            .filter(|(place, _)| of.matches(place))
            .map(|(_, object)| object)
            .collect();
        json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": self.version.to_string()}, "items": items})
    }

    fn watch(&mut self, of: Place, query: &str) -> ResponseBody {
        let (sender, receiver) = unbounded();
        let since = query
            .split('&')
            .find_map(|part| part.strip_prefix("resourceVersion="));
        let since: u64 = since.and_then(|since| since.parse().ok()).unwrap_or(0);
        for (version, place, event) in &self.history {
            if *version > since && of.matches(place) {
                let _ = sender.unbounded_send(line(event));
            }
        }
        self.watchers.push(Watcher { of, sender });
        StreamBody::new(receiver.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
    }
}

impl Place {
    fn matches(&self, other: &Place) -> bool {
        self.group_version == other.group_version
            && self.plural == other.plural
            && (self.namespace.is_empty() || self.namespace == other.namespace)
    }

    /// `/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>/status`.
    fn parse(path: &str) -> Self {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group_version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            other => panic!("{other:?}"),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let (plural, name) = rest.split_first().unwrap();
        Place {
            group_version,
            plural: (*plural).to_owned(),
            namespace: namespace.to_owned(),
            name: name.join("/"),
        }
    }
}

fn is_apply(body: &Value) -> bool {
    body["apiVersion"].is_string() && body["kind"].is_string()
}

fn line(event: &Value) -> Bytes {
    Bytes::from(format!("{event}\n"))
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason}),
    )
}

fn merge(into: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key], value);
        }
    }
}

impl tower::Service<Request<Body>> for FakeApi {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let place = Place::parse(head.uri.path());
            let query = head.uri.query().unwrap_or_default().to_owned();
            if query.contains("watch=true") {
                let body = this.with(|state| state.watch(place, &query));
                return Ok(Response::new(body));
            }
            let (code, answer) =
                this.with(|state| state.serve(&head.method, &place, &query, &body));
            let body = Full::new(Bytes::from(answer.to_string())).boxed_unsync();
            Ok(Response::builder().status(code).body(body).unwrap())
        })
    }
}
