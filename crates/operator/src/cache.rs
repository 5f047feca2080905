//! What the watches have seen, indexed by cluster, so that a pass over one
//! cluster costs nothing for the others. A cache tells absence only once it is
//! synced; nothing destructive rests on it alone (clustering.md, R1).

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

/// Namespace and name of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace; empty for what has none.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Which cluster an object belongs to.
pub type Owner<K> = fn(&K) -> Option<Key>;

/// An object by the label that names its cluster.
pub fn by_label<K: ResourceExt>(object: &K) -> Option<Key> {
    let name = object.labels().get(manifests::labels::CLUSTER)?.clone();
    Some(Key {
        namespace: object.namespace()?,
        name,
    })
}

/// An object by its own name.
pub fn by_name<K: ResourceExt>(object: &K) -> Option<Key> {
    Some(Key {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    })
}

type Index<K> = BTreeMap<Key, BTreeMap<String, Arc<K>>>;

struct Inner<K> {
    index: Index<K>,
    /// A list under way; replaces the index when it is complete.
    arriving: Option<Index<K>>,
    synced: bool,
}

/// Objects of one kind.
pub struct Cache<K> {
    inner: RwLock<Inner<K>>,
    owner: Owner<K>,
}

impl<K> Cache<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Empty and not synced.
    pub fn new(owner: Owner<K>) -> Arc<Self> {
        let inner = Inner {
            index: BTreeMap::new(),
            arriving: None,
            synced: false,
        };
        Arc::new(Self {
            inner: RwLock::new(inner),
            owner,
        })
    }

    /// True once a whole list has been seen.
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// One object of a cluster.
    pub fn get(&self, cluster: &Key, name: &str) -> Option<Arc<K>> {
        self.read().index.get(cluster)?.get(name).cloned()
    }

    /// All objects of a cluster, by name.
    pub fn of(&self, cluster: &Key) -> BTreeMap<String, Arc<K>> {
        self.read().index.get(cluster).cloned().unwrap_or_default()
    }

    /// All clusters with an object of this kind.
    pub fn keys(&self) -> Vec<Key> {
        self.read().index.keys().cloned().collect()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Inner<K>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event in; says which clusters it touched.
    pub fn take(&self, event: watcher::Event<K>) -> Vec<Key> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        match event {
            watcher::Event::Init => {
                inner.arriving = Some(BTreeMap::new());
                Vec::new()
            }
            watcher::Event::InitApply(object) => {
                if let (Some(key), Some(arriving)) = ((self.owner)(&object), &mut inner.arriving) {
                    arriving
                        .entry(key)
                        .or_default()
                        .insert(object.name_any(), Arc::new(object));
                }
                Vec::new()
            }
            watcher::Event::InitDone => {
                inner.synced = true;
                let former = match inner.arriving.take() {
                    Some(arrived) => std::mem::replace(&mut inner.index, arrived),
                    None => return Vec::new(),
                };
                let mut touched: Vec<Key> = former.into_keys().collect();
                touched.extend(inner.index.keys().cloned());
                touched.sort();
                touched.dedup();
                touched
            }
            watcher::Event::Apply(object) => {
                let Some(key) = (self.owner)(&object) else {
                    return Vec::new();
                };
                let of = inner.index.entry(key.clone()).or_default();
                of.insert(object.name_any(), Arc::new(object));
                vec![key]
            }
            watcher::Event::Delete(object) => {
                let Some(key) = (self.owner)(&object) else {
                    return Vec::new();
                };
                if let Some(of) = inner.index.get_mut(&key) {
                    of.remove(&object.name_any());
                    if of.is_empty() {
                        inner.index.remove(&key);
                    }
                }
                vec![key]
            }
        }
    }
}

/// Keeps a cache up to date for ever. `strip` drops what nobody here reads.
pub async fn keep<K>(
    api: Api<K>,
    config: watcher::Config,
    cache: Arc<Cache<K>>,
    strip: fn(&mut K),
    touched: impl Fn(Key) + Send,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let kind = K::kind(&()).into_owned();
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let event = event.modify(|object| {
                    object.managed_fields_mut().clear();
                    strip(object);
                });
                cache.take(event).into_iter().for_each(&touched);
            }
            Err(error) => tracing::warn!(kind, %error, "the watch broke and is begun again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Node;
    use kube::runtime::watcher::Event;

    fn node(name: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = Some(name.to_owned());
        node
    }

    fn key(name: &str) -> Key {
        Key {
            namespace: String::new(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_cache_tells_absence_only_after_a_whole_list_and_forgets_what_a_new_list_lacks() {
        let cache = Cache::<Node>::new(by_name);
        cache.take(Event::Init);
        cache.take(Event::InitApply(node("a")));
        cache.take(Event::InitApply(node("b")));
        assert!(!cache.is_synced());
        assert_eq!(cache.keys(), []);
        assert_eq!(cache.take(Event::InitDone), [key("a"), key("b")]);
        assert!(cache.is_synced());
        cache.take(Event::Init);
        cache.take(Event::InitApply(node("b")));
        assert_eq!(
            cache.keys(),
            [key("a"), key("b")],
            "the old list stands until the new one is whole"
        );
        assert_eq!(
            cache.take(Event::InitDone),
            [key("a"), key("b")],
            "what is gone is touched too"
        );
        assert_eq!(cache.keys(), [key("b")]);
        assert_eq!(cache.take(Event::Delete(node("b"))), [key("b")]);
        assert_eq!(cache.keys(), []);
    }
}
