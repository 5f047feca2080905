//! Names of objects. One function per kind, so that a name is never put
//! together anywhere else.

/// Pod of an instance, which is also the instance's name.
pub fn instance(cluster: &str, ordinal: u32) -> String {
    format!("{cluster}-{ordinal}")
}

/// Volume claim of an instance; claims cannot be renamed, so a rebuild makes a
/// new generation.
pub fn volume_claim(cluster: &str, ordinal: u32, generation: u32) -> String {
    format!("data-{cluster}-{ordinal}-{generation}")
}

/// Headless Service: names of the instances.
pub fn headless(cluster: &str) -> String {
    cluster.to_owned()
}

/// Service in front of the primary.
pub fn primary_service(cluster: &str) -> String {
    format!("{cluster}-primary")
}

/// Service in front of the replicas.
pub fn replica_service(cluster: &str) -> String {
    format!("{cluster}-replica")
}

/// ConfigMap with my.cnf.
pub fn config_map(cluster: &str) -> String {
    format!("{cluster}-config")
}

/// Secret with the certificate authority.
pub fn ca_secret(cluster: &str) -> String {
    format!("{cluster}-ca")
}

/// Secret with an instance's certificate.
pub fn tls_secret(cluster: &str, ordinal: u32) -> String {
    format!("{cluster}-tls-{ordinal}")
}

/// Secret with the application's credentials.
pub fn app_secret(cluster: &str) -> String {
    format!("{cluster}-app")
}

/// PodDisruptionBudget.
pub fn disruption_budget(cluster: &str) -> String {
    cluster.to_owned()
}

/// DNS name under which the other instances reach this one.
pub fn advertised(namespace: &str, cluster: &str, ordinal: u32) -> String {
    format!(
        "{}.{}.{namespace}.svc",
        instance(cluster, ordinal),
        headless(cluster)
    )
}

/// DNS name of the Service in front of the primary.
pub fn primary_host(namespace: &str, cluster: &str) -> String {
    format!("{}.{namespace}.svc", primary_service(cluster))
}

/// Every name that a certificate of this instance must carry: its own, and
/// those of the Services through which clients reach it.
pub fn certificate(namespace: &str, cluster: &str, ordinal: u32) -> Vec<String> {
    let own = format!("{}.{}", instance(cluster, ordinal), headless(cluster));
    [own, primary_service(cluster), replica_service(cluster)]
        .into_iter()
        .flat_map(|host| {
            [
                host.clone(),
                format!("{host}.{namespace}"),
                format!("{host}.{namespace}.svc"),
                format!("{host}.{namespace}.svc.cluster.local"),
            ]
        })
        .chain([instance(cluster, ordinal), "localhost".to_owned()])
        .collect()
}
