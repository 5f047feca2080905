//! Objects that every cluster has: the StorageClass and the address of DNS.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::storage::v1::{CSIDriver, StorageClass};
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ClusterError;

const MANIFESTS: &str = include_str!("manifests.yaml");
const SYSTEM: &str = "kube-system";

/// Creates them; ones that exist stay as they are.
pub(super) async fn create(client: &Client) -> Result<(), ClusterError> {
    // `---` between documents is the file's own rule; see its first lines.
    let mut documents = MANIFESTS.split("\n---\n");
    create_one(Api::<CSIDriver>::all(client.clone()), documents.next()).await?;
    create_one(Api::<StorageClass>::all(client.clone()), documents.next()).await?;
    create_one(
        Api::<Service>::namespaced(client.clone(), SYSTEM),
        documents.next(),
    )
    .await?;
    create_one(
        Api::<EndpointSlice>::namespaced(client.clone(), SYSTEM),
        documents.next(),
    )
    .await
}

async fn create_one<K>(api: Api<K>, document: Option<&str>) -> Result<(), ClusterError>
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object: K = serde_yaml_ng::from_str(document.unwrap_or_default())?;
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        Err(source) => Err(ClusterError::Api {
            doing: "create the cluster's own objects",
            source: Box::new(source),
        }),
    }
}
