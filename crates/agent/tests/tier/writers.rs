//! Clients that write for as long as they are let, and remember what they were
//! told. An error is not a "no": the row may be there.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use mysql_async::{Conn, prelude::Queryable};
use tokio::task::JoinHandle;

pub struct Writers {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<BTreeSet<u64>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Writers {
    /// Each with a connection of its own, into the table `w`.
    pub fn start(clients: Vec<Conn>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
        let next = Arc::new(AtomicU64::new(1));
        let tasks = clients
            .into_iter()
            .map(|mut client| {
                let (stop, acknowledged, next) = (
                    Arc::clone(&stop),
                    Arc::clone(&acknowledged),
                    Arc::clone(&next),
                );
                tokio::spawn(async move {
                    while !stop.load(Ordering::SeqCst) {
                        let id = next.fetch_add(1, Ordering::SeqCst);
                        if client
                            .query_drop(format!("INSERT INTO w VALUES ({id})"))
                            .await
                            .is_err()
                        {
                            return;
                        }
                        acknowledged.lock().unwrap().insert(id);
                    }
                })
            })
            .collect();
        Self {
            stop,
            acknowledged,
            tasks,
        }
    }

    pub fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    /// The rows that were answered OK.
    pub async fn end(self) -> BTreeSet<u64> {
        self.stop.store(true, Ordering::SeqCst);
        for task in self.tasks {
            let ended = tokio::time::timeout(super::PATIENCE, task).await;
            ended.expect("a writer ends").unwrap();
        }
        self.acknowledged.lock().unwrap().clone()
    }
}

/// The rows that are there.
pub async fn rows(client: &mut Conn) -> BTreeSet<u64> {
    let rows: Vec<u64> = client.query("SELECT id FROM w").await.unwrap();
    rows.into_iter().collect()
}

pub async fn writers(cluster: &super::Cluster, count: usize) -> Writers {
    let mut client = cluster.instances[0].client().await.unwrap();
    client
        .query_drop("CREATE TABLE IF NOT EXISTS w (id BIGINT PRIMARY KEY)")
        .await
        .unwrap();
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(cluster.instances[0].client().await.unwrap());
    }
    Writers::start(clients)
}

pub async fn until_written(writers: &Writers, count: usize) {
    let deadline = std::time::Instant::now() + super::PATIENCE;
    while writers.count() < count {
        assert!(
            std::time::Instant::now() < deadline,
            "only {} writes",
            writers.count()
        );
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
