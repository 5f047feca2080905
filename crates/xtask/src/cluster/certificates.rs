//! The cluster's certificate authority, made anew by each `up`, and a
//! kubeconfig for every user. Keys never leave the state folder.

use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use crate::host::{HostError, create_folder, write};

use super::ClusterError;
use super::layout::{API_ON_HOST, API_SERVICE_ADDRESS, CONTROL_PLANE_ADDRESS, Layout, NodeNumber};

pub(super) const CA: &str = "ca";
pub(super) const API_SERVER: &str = "kube-apiserver";
pub(super) const ADMIN: &str = "admin";
pub(super) const CONTROLLERS: &str = "kube-controller-manager";
pub(super) const SCHEDULER: &str = "kube-scheduler";
pub(super) const PROXY: &str = "kube-proxy";
pub(super) const PROVISIONER: &str = "volume-provisioner";
pub(super) const DNS: &str = "coredns";
pub(super) const SERVICE_ACCOUNTS: &str = "service-accounts";

/// Everybody who may do everything. The controllers are among them: with an
/// account per controller the first Pod would have to wait some seconds.
const MASTERS: &str = "system:masters";

type Authority = Issuer<'static, KeyPair>;

/// Whom a certificate is for. Each has a name of its own, because the audit
/// log tells writers apart by it.
struct Subject<'a> {
    file: &'a str,
    name: &'a str,
    group: Option<&'a str>,
    addresses: Vec<Ipv4Addr>,
    names: &'a [&'a str],
}

/// Makes all certificates and kubeconfigs.
pub(super) fn make(layout: &Layout, nodes: &[NodeNumber]) -> Result<(), ClusterError> {
    create_folder(&layout.certificates())?;
    std::fs::set_permissions(layout.certificates(), Permissions::from_mode(0o700)).map_err(
        |source| HostError::File {
            doing: "protect",
            path: layout.certificates(),
            source,
        },
    )?;
    let authority = authority(layout)?;
    service_account_keys(layout)?;
    api_server(layout, &authority)?;
    let (inside, on_host) = (
        format!("https://{CONTROL_PLANE_ADDRESS}:6443"),
        format!("https://{API_ON_HOST}"),
    );
    for user in users() {
        leaf(layout, &authority, &user)?;
        kubeconfig(layout, user.file, &inside, &layout.kubeconfig_of(user.file))?;
    }
    kubeconfig(layout, ADMIN, &on_host, &layout.kubeconfig())?;
    for node in nodes {
        kubelet(layout, &authority, *node)?;
        kubeconfig(
            layout,
            &node.name(),
            &inside,
            &layout.kubeconfig_of(&node.name()),
        )?;
    }
    Ok(())
}

fn users() -> [Subject<'static>; 6] {
    let user = |file, name, group| Subject {
        file,
        name,
        group,
        addresses: Vec::new(),
        names: &[],
    };
    [
        user(ADMIN, "admin", Some(MASTERS)),
        user(CONTROLLERS, "kube-controller-manager", Some(MASTERS)),
        user(SCHEDULER, "system:kube-scheduler", None),
        user(PROXY, "system:kube-proxy", None),
        user(PROVISIONER, "volume-provisioner", Some(MASTERS)),
        user(DNS, "coredns", Some(MASTERS)),
    ]
}

fn authority(layout: &Layout) -> Result<Authority, ClusterError> {
    let failed = |source| ClusterError::Certificate {
        subject: CA.to_owned(),
        source,
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name("katazuke-local-cluster", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    save(layout, CA, &certificate.pem(), &key)?;
    Ok(Issuer::new(params, key))
}

fn api_server(layout: &Layout, authority: &Authority) -> Result<(), ClusterError> {
    leaf(
        layout,
        authority,
        &Subject {
            file: API_SERVER,
            name: API_SERVER,
            group: None,
            addresses: vec![
                Ipv4Addr::LOCALHOST,
                CONTROL_PLANE_ADDRESS,
                API_SERVICE_ADDRESS,
            ],
            names: &[
                "localhost",
                "kubernetes",
                "kubernetes.default",
                "kubernetes.default.svc",
                "kubernetes.default.svc.cluster.local",
            ],
        },
    )
}

fn kubelet(layout: &Layout, authority: &Authority, node: NodeNumber) -> Result<(), ClusterError> {
    let (name, user) = (node.name(), format!("system:node:{}", node.name()));
    let group = Some("system:nodes");
    leaf(
        layout,
        authority,
        &Subject {
            file: &name,
            name: &user,
            group,
            addresses: vec![node.address()],
            names: &[&name],
        },
    )
}

fn leaf(layout: &Layout, authority: &Authority, subject: &Subject) -> Result<(), ClusterError> {
    let failed = |source| ClusterError::Certificate {
        subject: subject.name.to_owned(),
        source,
    };
    let names: Vec<String> = subject.names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.subject_alt_names.extend(
        subject
            .addresses
            .iter()
            .map(|address| SanType::IpAddress((*address).into())),
    );
    params.distinguished_name = distinguished_name(subject.name, subject.group);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.signed_by(&key, authority).map_err(failed)?;
    save(layout, subject.file, &certificate.pem(), &key)
}

fn distinguished_name(name: &str, group: Option<&str>) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    if let Some(group) = group {
        distinguished.push(DnType::OrganizationName, group);
    }
    distinguished
}

fn service_account_keys(layout: &Layout) -> Result<(), ClusterError> {
    let failed = |source| ClusterError::Certificate {
        subject: SERVICE_ACCOUNTS.to_owned(),
        source,
    };
    let key = KeyPair::generate().map_err(failed)?;
    save(layout, SERVICE_ACCOUNTS, &key.public_key_pem(), &key)
}

fn save(layout: &Layout, file: &str, certificate: &str, key: &KeyPair) -> Result<(), ClusterError> {
    write(&layout.certificate(file), certificate)?;
    Ok(write(&layout.key(file), key.serialize_pem())?)
}

fn kubeconfig(layout: &Layout, user: &str, server: &str, to: &Path) -> Result<(), ClusterError> {
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "local",
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": user}}],
        "clusters": [{"name": "local", "cluster": {"server": server, "certificate-authority": layout.certificate(CA)}}],
        "users": [{"name": user, "user": {"client-certificate": layout.certificate(user), "client-key": layout.key(user)}}],
    });
    Ok(write(to, serde_yaml_ng::to_string(&config)?)?)
}
