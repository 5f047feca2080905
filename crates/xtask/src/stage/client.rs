//! The handle: the local cluster and a client of its API server. Blocking,
//! because its callers do one thing after another.

use std::time::Duration;

use api::MySQLCluster;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Pod, Secret, Service};
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};
use serde::de::DeserializeOwned;

use super::{Name, Picture, StageError};
use crate::cluster::Cluster;

/// A local Kubernetes with Katazuke on it.
pub struct Stage {
    /// The local cluster.
    pub cluster: Cluster,
    client: Client,
    runtime: tokio::runtime::Runtime,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Stage")
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

impl Stage {
    /// The stage on a running cluster.
    pub fn on(cluster: Cluster) -> Result<Self, StageError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|source| StageError::Runtime { source })?;
        let client = runtime.block_on(connect(&cluster))?;
        Ok(Self {
            cluster,
            client,
            runtime,
        })
    }

    /// A client of the API server, for what the stage has no word for.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Runs one request.
    pub fn ask<T>(
        &self,
        doing: impl Into<String>,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, StageError> {
        let doing = doing.into();
        let answer = self.runtime.block_on(request);
        answer.map_err(|source| StageError::Api {
            doing,
            source: Box::new(source),
        })
    }

    pub(super) fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), namespace)
    }

    /// What a MySQLCluster says now; `None` when there is none.
    pub fn look(&self, name: &Name) -> Result<Option<Picture>, StageError> {
        let clusters: Api<MySQLCluster> = self.api(&name.namespace);
        let found = self.ask(format!("read {name}"), clusters.get_opt(&name.name))?;
        Ok(found.map(Picture::of))
    }

    /// The Pods of a cluster, by name.
    pub fn pods(&self, name: &Name) -> Result<Vec<Pod>, StageError> {
        let pods: Api<Pod> = self.api(&name.namespace);
        let label = format!("{}={}", manifests::labels::CLUSTER, name.name);
        let ours = ListParams::default().labels(&label);
        let list = pods.list(&ours);
        let mut pods = self.ask(format!("list the Pods of {name}"), list)?.items;
        pods.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        Ok(pods)
    }

    /// One object.
    pub fn get<K>(&self, namespace: &str, name: &str) -> Result<K, StageError>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        self.ask(
            format!("read {namespace}/{name}"),
            self.api::<K>(namespace).get(name),
        )
    }

    /// A value of a Secret, as text.
    pub fn secret(
        &self,
        namespace: &str,
        name: &str,
        key: &'static str,
    ) -> Result<String, StageError> {
        let secret: Secret = self.get(namespace, name)?;
        let value = secret.data.and_then(|mut data| data.remove(key));
        let lacks = || StageError::Lacks {
            what: format!("Secret {namespace}/{name}"),
            field: key,
        };
        String::from_utf8(value.ok_or_else(lacks)?.0).map_err(|_| lacks())
    }

    /// The address of a Service.
    pub fn cluster_ip(&self, namespace: &str, name: &str) -> Result<std::net::IpAddr, StageError> {
        let service: Service = self.get(namespace, name)?;
        let address = service.spec.and_then(|spec| spec.cluster_ip);
        address
            .and_then(|address| address.parse().ok())
            .ok_or_else(|| StageError::Lacks {
                what: format!("Service {namespace}/{name}"),
                field: "clusterIP",
            })
    }
}

async fn connect(cluster: &Cluster) -> Result<Client, StageError> {
    let path = cluster.kubeconfig();
    let unusable = |source| StageError::Kubeconfig {
        path: path.clone(),
        source: Box::new(source),
    };
    let file = Kubeconfig::read_from(&path).map_err(unusable)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(file, &options)
        .await
        .map_err(unusable)?;
    config.read_timeout = Some(Duration::from_secs(15));
    Client::try_from(config).map_err(|source| StageError::Api {
        doing: "connect to the API server".to_owned(),
        source: Box::new(source),
    })
}
