//! The certificate authority of one cluster (D7): an authority, a leaf per
//! instance, a client certificate of the operator that lives in memory only.
//! Makes and judges text; never reads or writes Kubernetes, never replaces an
//! authority that exists.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};
use wire::layout::{INSTANCE_ORGANISATION, OPERATOR_COMMON_NAME};

/// Life of an authority.
const AUTHORITY_LIFE: Duration = Duration::days(3650);
/// Life of an instance's leaf; renewed at two thirds.
const LEAF_LIFE: Duration = Duration::days(90);
/// Life of the operator's client certificate, which is made anew at two thirds.
pub(crate) const CLIENT_LIFE: Duration = Duration::days(7);
/// Clocks of nodes differ: everything is valid from a little earlier on.
const CLOCK_TOLERANCE: Duration = Duration::minutes(10);

/// A certificate and its private key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// Keys never reach a log.
impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

/// Names of an instance, as its certificate carries them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceName<'a> {
    /// `<cluster>-<ordinal>`.
    pub instance: &'a str,
    /// The cluster, which is also the headless Service.
    pub cluster: &'a str,
    /// Namespace.
    pub namespace: &'a str,
}

impl InstanceName<'_> {
    /// The name under which the operator dials it.
    pub fn server_name(&self) -> String {
        format!("{}.{}.{}.svc", self.instance, self.cluster, self.namespace)
    }

    fn all(&self, ordinal: u32) -> Vec<String> {
        manifests::names::certificate(self.namespace, self.cluster, ordinal)
    }
}

/// What could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// rcgen refused.
    #[error("cannot make {what}: {source}")]
    Make {
        /// What was being made.
        what: &'static str,
        /// Its words.
        source: rcgen::Error,
    },
    /// The stored text is not a certificate or key.
    #[error("cannot read {what}: {why}")]
    Read {
        /// What was being read.
        what: &'static str,
        /// How it failed.
        why: String,
    },
}

/// Makes an authority.
pub fn authority(cluster: &str, now: OffsetDateTime) -> Result<Pair, PkiError> {
    let made = |source| PkiError::Make {
        what: "the certificate authority",
        source,
    };
    let mut params = CertificateParams::new(Vec::new()).map_err(made)?;
    params
        .distinguished_name
        .push(DnType::CommonName, format!("katazuke {cluster}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid(&mut params, now, AUTHORITY_LIFE);
    let key = KeyPair::generate().map_err(made)?;
    let certificate = params.self_signed(&key).map_err(made)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Makes the leaf of an instance: server and client, for its agent and its mysqld.
pub fn instance_leaf(
    authority: &Pair,
    ordinal: u32,
    name: InstanceName<'_>,
    now: OffsetDateTime,
) -> Result<Pair, PkiError> {
    let made = |source| PkiError::Make {
        what: "an instance's certificate",
        source,
    };
    let mut params = CertificateParams::new(name.all(ordinal)).map_err(made)?;
    params
        .distinguished_name
        .push(DnType::CommonName, name.instance);
    params
        .distinguished_name
        .push(DnType::OrganizationName, INSTANCE_ORGANISATION);
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    valid(&mut params, now, LEAF_LIFE);
    sign(authority, params, made)
}

/// Makes the operator's client certificate.
pub fn operator_client(authority: &Pair, now: OffsetDateTime) -> Result<Pair, PkiError> {
    let made = |source| PkiError::Make {
        what: "the operator's certificate",
        source,
    };
    let mut params = CertificateParams::new(Vec::new()).map_err(made)?;
    params
        .distinguished_name
        .push(DnType::CommonName, OPERATOR_COMMON_NAME);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    valid(&mut params, now, CLIENT_LIFE);
    sign(authority, params, made)
}

fn valid(params: &mut CertificateParams, now: OffsetDateTime, life: Duration) {
    params.not_before = now - CLOCK_TOLERANCE;
    params.not_after = now + life;
}

fn sign(
    authority: &Pair,
    mut params: CertificateParams,
    made: impl Fn(rcgen::Error) -> PkiError + Copy,
) -> Result<Pair, PkiError> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    let signer = KeyPair::from_pem(&authority.key).map_err(made)?;
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, signer).map_err(made)?;
    let key = KeyPair::generate().map_err(made)?;
    let certificate = params.signed_by(&key, &issuer).map_err(made)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Why a stored leaf has to be made anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewal {
    /// There is none, or a part of it is missing.
    Missing,
    /// It was signed by another authority.
    OtherAuthority,
    /// It cannot be read.
    Unreadable,
    /// It lacks a name.
    OtherNames,
    /// Two thirds of its life are over.
    Due,
}

/// Whether a stored leaf has to be made anew. Deterministic: `now` is an input.
pub fn renewal(
    stored: Option<(&Pair, &str)>,
    authority: &str,
    ordinal: u32,
    name: InstanceName<'_>,
    now: OffsetDateTime,
) -> Option<Renewal> {
    let Some((leaf, trusted)) = stored else {
        return Some(Renewal::Missing);
    };
    if trusted != authority {
        return Some(Renewal::OtherAuthority);
    }
    let Ok(read) = read(&leaf.certificate) else {
        return Some(Renewal::Unreadable);
    };
    if KeyPair::from_pem(&leaf.key).is_err() {
        return Some(Renewal::Unreadable);
    }
    if name
        .all(ordinal)
        .iter()
        .any(|wanted| !read.names.contains(wanted))
    {
        return Some(Renewal::OtherNames);
    }
    due(read.not_before, read.not_after, now).then_some(Renewal::Due)
}

/// Two thirds of its life are over.
fn due(not_before: OffsetDateTime, not_after: OffsetDateTime, now: OffsetDateTime) -> bool {
    now >= not_before + (not_after - not_before) * 2 / 3
}

struct Read {
    names: Vec<String>,
    not_before: OffsetDateTime,
    not_after: OffsetDateTime,
}

fn read(pem: &str) -> Result<Read, PkiError> {
    let unreadable = |why: String| PkiError::Read {
        what: "a stored certificate",
        why,
    };
    let (_, block) = x509_parser::pem::parse_x509_pem(pem.as_bytes())
        .map_err(|error| unreadable(error.to_string()))?;
    let certificate = block
        .parse_x509()
        .map_err(|error| unreadable(error.to_string()))?;
    let names = match certificate.subject_alternative_name() {
        Ok(Some(names)) => names
            .value
            .general_names
            .iter()
            .filter_map(|name| {
                if let x509_parser::extensions::GeneralName::DNSName(dns) = name {
                    Some((*dns).to_owned())
                } else {
                    None
                }
            })
            .collect(),
        Ok(None) => Vec::new(),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    Ok(Read {
        names,
        not_before: certificate.validity().not_before.to_datetime(),
        not_after: certificate.validity().not_after.to_datetime(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: InstanceName<'static> = InstanceName {
        instance: "shop-1",
        cluster: "shop",
        namespace: "db",
    };

    fn at(day: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + Duration::days(20_000 + day)
    }

    #[test]
    fn a_fresh_leaf_is_kept_until_two_thirds_of_its_life() {
        let ca = authority("shop", at(0)).unwrap();
        let leaf = instance_leaf(&ca, 1, NAME, at(0)).unwrap();
        let stored = Some((&leaf, ca.certificate.as_str()));
        assert_eq!(renewal(stored, &ca.certificate, 1, NAME, at(0)), None);
        assert_eq!(renewal(stored, &ca.certificate, 1, NAME, at(59)), None);
        assert_eq!(
            renewal(stored, &ca.certificate, 1, NAME, at(60)),
            Some(Renewal::Due)
        );
        assert_eq!(
            renewal(stored, &ca.certificate, 1, NAME, at(400)),
            Some(Renewal::Due)
        );
    }

    #[test]
    fn a_leaf_of_another_authority_or_name_or_none_is_made_anew() {
        let ca = authority("shop", at(0)).unwrap();
        let other = authority("shop", at(0)).unwrap();
        let leaf = instance_leaf(&ca, 1, NAME, at(0)).unwrap();
        let stored = Some((&leaf, ca.certificate.as_str()));
        assert_eq!(
            renewal(None, &ca.certificate, 1, NAME, at(0)),
            Some(Renewal::Missing)
        );
        assert_eq!(
            renewal(stored, &other.certificate, 1, NAME, at(0)),
            Some(Renewal::OtherAuthority)
        );
        let moved = InstanceName {
            namespace: "elsewhere",
            ..NAME
        };
        assert_eq!(
            renewal(stored, &ca.certificate, 1, moved, at(0)),
            Some(Renewal::OtherNames)
        );
        let torn = Pair {
            certificate: "torn".into(),
            key: leaf.key.clone(),
        };
        assert_eq!(
            renewal(
                Some((&torn, &ca.certificate)),
                &ca.certificate,
                1,
                NAME,
                at(0)
            ),
            Some(Renewal::Unreadable)
        );
    }
}
