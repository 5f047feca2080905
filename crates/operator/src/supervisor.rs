//! Two tasks per cluster for as long as the resource exists and we lead. A
//! panic in one is caught, said, and started again with a growing pause; it
//! never reaches another. Knows nothing about what the tasks do.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use kube::ResourceExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::cache::Key;
use crate::context::{Context, Shared};

/// First and longest pause after a panic.
const PANIC_FIRST: Duration = Duration::from_secs(1);
const PANIC_LONGEST: Duration = Duration::from_mins(1);

/// Where the watches say which cluster something of was touched. Goes nowhere
/// while we do not lead.
#[derive(Clone, Default)]
pub struct Touches(Arc<Mutex<Option<mpsc::UnboundedSender<Key>>>>);

impl Touches {
    /// Something of this cluster changed.
    pub fn touch(&self, key: Key) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*sender {
            // A closed channel means that the term is ending.
            let _ = sender.send(key);
        }
    }

    fn listen(&self) -> mpsc::UnboundedReceiver<Key> {
        let (sender, receiver) = mpsc::unbounded_channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    fn stop(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The tasks of one cluster; dropping them ends them.
struct Tasks {
    uid: String,
    shared: Arc<Shared>,
    _clustering: AbortOnDropHandle<()>,
    _resources: AbortOnDropHandle<()>,
}

/// Runs all clusters until the term ends. When this returns, no task acts any more.
pub async fn run(context: Arc<Context>, touches: Touches, ended: CancellationToken) {
    let mut touched = touches.listen();
    let mut clusters: BTreeMap<Key, Tasks> = BTreeMap::new();
    for key in context.caches.clusters.keys() {
        see(&context, &mut clusters, key);
    }
    loop {
        let key = tokio::select! {
            () = ended.cancelled() => break,
            key = touched.recv() => key,
        };
        let Some(key) = key else { break };
        see(&context, &mut clusters, key);
    }
    touches.stop();
    drop(clusters);
}

/// Starts, wakes, or ends the tasks of a cluster.
fn see(context: &Arc<Context>, clusters: &mut BTreeMap<Key, Tasks>, key: Key) {
    let uid = context
        .caches
        .clusters
        .get(&key, &key.name)
        .and_then(|cluster| cluster.uid());
    let Some(uid) = uid else {
        clusters.remove(&key);
        return;
    };
    if let Some(tasks) = clusters.get(&key)
        && tasks.uid == uid
    {
        tasks.shared.wake.now();
        tasks.shared.resources.notify_one();
        return;
    }
    clusters.insert(key.clone(), start(context, key, uid));
}

fn start(context: &Arc<Context>, key: Key, uid: String) -> Tasks {
    let shared = Arc::new(Shared::new(context.metrics.agents_connected.clone()));
    let clustering = {
        let (context, shared, key, uid) =
            (context.clone(), shared.clone(), key.clone(), uid.clone());
        let name = format!("clustering of {key}");
        let metrics = context.metrics.clone();
        keep(name, metrics, move || {
            crate::clustering::run(context.clone(), key.clone(), uid.clone(), shared.clone())
        })
    };
    let resources = {
        let (context, shared, uid) = (context.clone(), shared.clone(), uid.clone());
        let name = format!("owned objects of {key}");
        let metrics = context.metrics.clone();
        keep(name, metrics, move || {
            crate::resources::run(context.clone(), key.clone(), uid.clone(), shared.clone())
        })
    };
    Tasks {
        uid,
        shared,
        _clustering: AbortOnDropHandle::new(tokio::spawn(clustering)),
        _resources: AbortOnDropHandle::new(tokio::spawn(resources)),
    }
}

/// Runs a task again after a panic.
async fn keep<F: Future<Output = ()>>(
    name: String,
    metrics: Arc<crate::metrics::Metrics>,
    make: impl Fn() -> F,
) {
    let mut pause = PANIC_FIRST;
    while let Err(panic) = AssertUnwindSafe(make()).catch_unwind().await {
        metrics.panics.inc();
        tracing::error!(
            task = name,
            panic = words(&*panic),
            "a task panicked and is started again"
        );
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PANIC_LONGEST);
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_started_again_and_stops_no_other() {
        let metrics = crate::metrics::Metrics::new();
        let (bad, good) = (AtomicU32::new(0), AtomicU32::new(0));
        let bad_task = keep("bad".into(), metrics.clone(), || async {
            assert!(bad.fetch_add(1, Ordering::SeqCst) >= 2, "not yet");
        });
        let good_task = keep("good".into(), metrics.clone(), || async {
            for _ in 0..50 {
                tokio::time::sleep(Duration::from_millis(10)).await;
                good.fetch_add(1, Ordering::SeqCst);
            }
        });
        tokio::join!(bad_task, good_task);
        assert_eq!((bad.into_inner(), good.into_inner()), (3, 50));
        assert_eq!(metrics.panics.get(), 2);
    }
}
