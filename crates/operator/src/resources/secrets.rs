//! Secrets: made once and never overwritten (authority, application), or
//! renewed by a written rule (leaves). What exists is read back, so that two
//! operators that race use the same authority. Never logs what is inside.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use manifests::{
    AppCredentials, KeyPair, ValidatedCluster, app_secret, ca_secret, names, tls_secret,
};
use time::OffsetDateTime;
use wire::layout;

use super::apply::{Applied, Memory, apply};
use super::error::ReconcileError;
use crate::cache::Key;
use crate::context::Caches;
use crate::field_manager::FieldManager;
use crate::pki::{self, InstanceName, Pair, Renewal};

/// Name of the application's account and of the database that it owns.
const APP: &str = "app";

/// The authority of a cluster, as the cache knows it.
pub(super) fn cached_authority(caches: &Caches, key: &Key) -> Option<Pair> {
    let secret = caches.secrets.get(key, &names::ca_secret(&key.name))?;
    pair(&secret).ok()
}

/// The authority; made where there is none.
pub(super) async fn authority(
    client: &Client,
    cluster: &ValidatedCluster,
    cached: Option<Arc<Secret>>,
    now: OffsetDateTime,
) -> Result<Pair, ReconcileError> {
    if let Some(secret) = cached {
        return pair(&secret);
    }
    let made =
        pki::authority(&cluster.name, now).map_err(|source| ReconcileError::Certificate {
            secret: names::ca_secret(&cluster.name),
            source,
        })?;
    let wanted = ca_secret(cluster, &key_pair(&made, &made.certificate));
    pair(&create_once(client, wanted).await?)
}

/// The application's Secret; made where there is none.
pub(super) async fn application(
    client: &Client,
    cluster: &ValidatedCluster,
    cached: Option<Arc<Secret>>,
) -> Result<(), ReconcileError> {
    if cached.is_some() {
        return Ok(());
    }
    let credentials = AppCredentials {
        user: APP.to_owned(),
        password: uuid::Uuid::new_v4().simple().to_string(),
        database: APP.to_owned(),
    };
    create_once(client, app_secret(cluster, &credentials))
        .await
        .map(drop)
}

/// The leaf of one instance; why it was made anew, if it was.
pub(super) async fn leaf(
    client: &Client,
    memory: &mut Memory,
    cluster: &ValidatedCluster,
    place: Place<'_>,
    cached: Option<Arc<Secret>>,
) -> Result<Option<Renewal>, ReconcileError> {
    let Place {
        ordinal,
        authority,
        now,
    } = place;
    let instance = names::instance(&cluster.name, ordinal);
    let name = InstanceName {
        instance: &instance,
        cluster: &cluster.name,
        namespace: &cluster.namespace,
    };
    let stored = cached
        .as_deref()
        .and_then(|secret| Some((pair(secret).ok()?, text(secret, layout::TLS_CA)?)));
    let stored = stored.as_ref().map(|(leaf, trust)| (leaf, trust.as_str()));
    let Some(renewal) = pki::renewal(stored, &authority.certificate, ordinal, name, now) else {
        return Ok(None);
    };
    let secret = names::tls_secret(&cluster.name, ordinal);
    let made = pki::instance_leaf(authority, ordinal, name, now)
        .map_err(|source| ReconcileError::Certificate { secret, source })?;
    let wanted = tls_secret(cluster, ordinal, &key_pair(&made, &authority.certificate));
    match apply(client, memory, FieldManager::Secrets, &wanted, cached).await? {
        Applied::AsWanted | Applied::Created | Applied::Changed | Applied::Conflict(_) => {
            Ok(Some(renewal))
        }
    }
}

/// Which leaf, signed by whom, when.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The instance.
    pub ordinal: u32,
    /// Who signs.
    pub authority: &'a Pair,
    /// The time.
    pub now: OffsetDateTime,
}

/// Creates a Secret, or reads the one that was there first.
async fn create_once(client: &Client, wanted: Secret) -> Result<Secret, ReconcileError> {
    let name = wanted.name_any();
    let api: Api<Secret> = Api::namespaced(client.clone(), &wanted.namespace().unwrap_or_default());
    let failed = |verb: &'static str, source: kube::Error| ReconcileError::Api {
        verb,
        kind: "Secret",
        name: name.clone(),
        source: Box::new(source),
    };
    let params = PostParams {
        field_manager: Some(FieldManager::Secrets.name().to_owned()),
        ..PostParams::default()
    };
    match api.create(&params, &wanted).await {
        Ok(created) => Ok(created),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => api
            .get(&name)
            .await
            .map_err(|source| failed("read", source)),
        Err(source) => Err(failed("create", source)),
    }
}

fn key_pair(pair: &Pair, trust: &str) -> KeyPair {
    KeyPair {
        certificate: pair.certificate.clone(),
        key: pair.key.clone(),
        trust: trust.to_owned(),
    }
}

fn pair(secret: &Secret) -> Result<Pair, ReconcileError> {
    let part = |part: &'static str| {
        text(secret, part).ok_or_else(|| ReconcileError::Damaged {
            secret: secret.name_any(),
            part,
        })
    };
    Ok(Pair {
        certificate: part(layout::TLS_CERT)?,
        key: part(layout::TLS_KEY)?,
    })
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = secret.data.as_ref()?.get(key)?;
    String::from_utf8(bytes.0.clone())
        .ok()
        .filter(|text| !text.is_empty())
}
