//! Secrets. What is in them is made elsewhere and given: a builder that made a
//! key would make another one next time. Never an environment variable.

use crate::labels::{self, Component, Labels};
use crate::validate::ValidatedCluster;
use crate::{names, owner};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use std::collections::BTreeMap;
use std::fmt;
use wire::layout;

/// A certificate, its key, and the certificates to trust, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
    /// The trust bundle: during a rotation it holds the old and the new CA.
    pub trust: String,
}

/// Never prints the key.
impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").finish_non_exhaustive()
    }
}

/// The account of the application.
#[derive(Clone, PartialEq, Eq)]
pub struct AppCredentials {
    /// Name of the account.
    pub user: String,
    /// Its password.
    pub password: String,
    /// The database that it owns.
    pub database: String,
}

/// Never prints the password.
impl fmt::Debug for AppCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppCredentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The certificate authority. Read by the operator only, mounted nowhere.
pub fn ca_secret(cluster: &ValidatedCluster, authority: &KeyPair) -> Secret {
    key_pair(
        cluster,
        names::ca_secret(&cluster.name),
        credentials(cluster),
        authority,
    )
}

/// The certificate of one instance.
pub fn tls_secret(cluster: &ValidatedCluster, ordinal: u32, leaf: &KeyPair) -> Secret {
    let labels = labels::of_instance(cluster, Component::Credentials, ordinal);
    key_pair(
        cluster,
        names::tls_secret(&cluster.name, ordinal),
        labels,
        leaf,
    )
}

/// What an application needs to connect.
pub fn app_secret(cluster: &ValidatedCluster, credentials: &AppCredentials) -> Secret {
    let AppCredentials {
        user,
        password,
        database,
    } = credentials;
    let host = names::primary_host(&cluster.namespace, &cluster.name);
    let port = layout::MYSQL_PORT;
    let uri = format!(
        "mysql://{}:{}@{host}:{port}/{}",
        escaped(user),
        escaped(password),
        escaped(database)
    );
    secret(
        cluster,
        names::app_secret(&cluster.name),
        self::credentials(cluster),
        "Opaque",
        [
            ("host", host.as_str()),
            ("port", port.to_string().as_str()),
            ("user", user),
            ("password", password),
            ("database", database),
            ("uri", &uri),
        ],
    )
}

fn credentials(cluster: &ValidatedCluster) -> Labels {
    labels::own(cluster, Component::Credentials)
}

fn key_pair(cluster: &ValidatedCluster, name: String, labels: Labels, pair: &KeyPair) -> Secret {
    let KeyPair {
        certificate,
        key,
        trust,
    } = pair;
    let data = [
        (layout::TLS_CERT, certificate.as_str()),
        (layout::TLS_KEY, key),
        (layout::TLS_CA, trust),
    ];
    secret(cluster, name, labels, "kubernetes.io/tls", data)
}

fn secret<const N: usize>(
    cluster: &ValidatedCluster,
    name: String,
    labels: Labels,
    type_: &str,
    data: [(&str, &str); N],
) -> Secret {
    let data: BTreeMap<String, ByteString> = data
        .into_iter()
        .map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())))
        .collect();
    Secret {
        metadata: owner::owned(cluster, name, labels),
        type_: Some(type_.to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}

/// For a part of a URI.
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_does_not_break_the_uri() {
        assert_eq!(escaped("p@ss/w:rd?é"), "p%40ss%2Fw%3Ard%3F%C3%A9");
    }

    #[test]
    fn secrets_are_not_printed() {
        let pair = KeyPair {
            certificate: "c".into(),
            key: "TOP".into(),
            trust: "t".into(),
        };
        let app = AppCredentials {
            user: "u".into(),
            password: "TOP".into(),
            database: "d".into(),
        };
        assert!(!format!("{pair:?} {app:?}").contains("TOP"));
    }
}
