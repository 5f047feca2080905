//! Certificates as the operator issues them. Never reused between clusters.

use std::{fs, path::Path, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, SanType,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use wire::layout;

pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "a cluster's authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    /// Certificate and key of a name.
    fn issue(&self, common_name: &str, organisation: Option<&str>) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        if let Some(organisation) = organisation {
            params
                .distinguished_name
                .push(DnType::OrganizationName, organisation);
        }
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params.subject_alt_names = vec![
            SanType::IpAddress([127, 0, 0, 1].into()),
            SanType::DnsName(common_name.try_into().unwrap()),
        ];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// The mounted Secret of an instance.
    pub fn mount(&self, directory: &Path, instance: &str) {
        let (certificate, key) = self.issue(instance, Some(layout::INSTANCE_ORGANISATION));
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join(layout::TLS_CA), self.issuer.pem()).unwrap();
        fs::write(directory.join(layout::TLS_CERT), certificate).unwrap();
        fs::write(directory.join(layout::TLS_KEY), key).unwrap();
    }

    /// A client that calls itself so.
    pub fn client(&self, common_name: &str) -> Arc<ClientConfig> {
        let (certificate, key) = self.issue(common_name, None);
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.issuer.pem().as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }
}
