//! What the agent reads from certificates: who calls, and how the subject of a
//! peer is written. Never judges a chain: rustls and mysqld do.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustls::pki_types::{CertificateDer, pem::PemObject};
use x509_parser::{parse_x509_certificate, prelude::X509Name};

/// The certificate of this instance is not usable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// The file.
    #[error("reading {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// Its content.
    #[error("{path} holds no certificate with a subject that can be written out")]
    Content { path: PathBuf },
}

/// The common name of the first certificate of a chain.
pub(crate) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    let name = certificate
        .subject()
        .iter_common_name()
        .next()?
        .as_str()
        .ok()?
        .to_owned();
    Some(name)
}

/// How the subject of any instance is written: as our own, with another common
/// name. The order of its parts is the issuer's choice, and MySQL compares text.
#[derive(Debug, Clone)]
pub(crate) struct SubjectPattern {
    before: String,
    after: String,
}

impl SubjectPattern {
    /// From our own certificate.
    pub(crate) fn read(path: &Path) -> Result<Self, CertificateError> {
        let pem = std::fs::read(path).map_err(|source| CertificateError::Read {
            path: path.to_owned(),
            source,
        })?;
        CertificateDer::from_pem_slice(&pem)
            .ok()
            .and_then(|der| pattern(parse_x509_certificate(&der).ok()?.1.subject()))
            .ok_or_else(|| CertificateError::Content {
                path: path.to_owned(),
            })
    }

    /// The subject of an instance, as `REQUIRE SUBJECT` wants it.
    pub(crate) fn of(&self, instance: &str) -> String {
        format!("{}/CN={instance}{}", self.before, self.after)
    }
}

fn pattern(subject: &X509Name<'_>) -> Option<SubjectPattern> {
    let mut before = String::new();
    let mut after = None;
    for part in subject.iter_attributes() {
        let name = match part.attr_type().to_id_string().as_str() {
            "2.5.4.3" => {
                after = Some(String::new());
                continue;
            }
            "2.5.4.6" => "C",
            "2.5.4.7" => "L",
            "2.5.4.8" => "ST",
            "2.5.4.10" => "O",
            "2.5.4.11" => "OU",
            _ => return None,
        };
        let text = format!("/{name}={}", part.as_str().ok()?);
        match &mut after {
            None => before.push_str(&text),
            Some(after) => after.push_str(&text),
        }
    }
    Some(SubjectPattern {
        before,
        after: after?,
    })
}
