//! TLS: which clients may come with it or without, and with which certificates.
//!
//! As MongoDB has it: one PEM file holds the certificates and their key, another those of the
//! authorities by which clients' certificates are verified. Both are read when the server starts
//! and again at [`Tls::rotate`]; connections that are there keep what they began with. A third may
//! list certificates that were revoked: then a client's own certificate is looked up in the list of
//! its authority, which must be there and in its time, as OpenSSL does it for MongoDB.

mod der;
mod encrypted_key;
pub mod subject;
mod validity;

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use frond_store::io::{Clock, SystemClock};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

pub use self::encrypted_key::EncryptedKeyError;

/// The time before the end of a certificate from which it is reported.
const WARNED_SECONDS: i64 = 30 * 24 * 60 * 60;

/// The connections that are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsMode {
    /// With TLS or without. (MongoDB distinguishes whether members prefer it among themselves;
    /// there is one.)
    Allowed,
    /// With TLS only.
    Required,
}

/// The TLS options of a server.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The connections that are allowed.
    pub mode: TlsMode,
    /// The server's certificate, those between it and an authority, and its key (PEM).
    pub certificate_key_file: PathBuf,
    /// The password by which that key is encrypted, if it is.
    pub key_password: Option<KeyPassword>,
    /// Authorities (PEM): clients' certificates must come from them.
    pub authorities_file: Option<PathBuf>,
    /// Whether clients need no certificate where there are authorities. One that is sent is
    /// verified all the same.
    pub certificates_are_optional: bool,
    /// Lists of certificates that the authorities have revoked (PEM).
    pub revocations_file: Option<PathBuf>,
}

/// The password of a key, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPassword(String);

impl From<String> for KeyPassword {
    fn from(password: String) -> KeyPassword {
        KeyPassword(password)
    }
}

impl fmt::Debug for KeyPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<password>")
    }
}

/// The reason why certificates can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read, or has nothing of what is wanted.
    #[error("{file}: {reason}")]
    File {
        /// As given.
        file: String,
        /// A description of the fault.
        reason: String,
    },
    /// An encrypted key can't be used.
    #[error("{file}: {source}")]
    EncryptedKey {
        /// As given.
        file: String,
        /// The reason.
        source: EncryptedKeyError,
    },
    /// Certificate and key don't go together, or can't be used.
    #[error("{file}: {}", fault(.source))]
    Certificate {
        /// As given.
        file: String,
        /// The fault.
        source: rustls::Error,
    },
    /// The certificate's time is over, or hasn't come.
    #[error(
        "{file}: the provided SSL certificate is expired or not yet valid: it is valid from {} \
         to {}",
        Utc(*.valid.start()),
        Utc(*.valid.end())
    )]
    Time {
        /// As given.
        file: String,
        /// The seconds since 1970 in which it is valid.
        valid: RangeInclusive<i64>,
    },
    /// The authorities can't verify clients.
    #[error("{file}: {source}")]
    Authorities {
        /// As given.
        file: String,
        /// The fault.
        source: VerifierBuilderError,
    },
}

/// A server's TLS, with its certificates.
///
/// *Thread safety*: everything may be called from any number of threads at once.
pub struct Tls {
    options: TlsOptions,
    served: RwLock<Served>,
}

/// The configuration that connections are served with.
#[derive(Clone)]
struct Served {
    config: Arc<ServerConfig>,
    certificate: ServedCertificate,
}

/// The certificate that clients are shown.
#[derive(Clone, Debug)]
pub struct ServedCertificate {
    /// The certificate's subject, as RFC 2253 writes it; `None` if it can't be read.
    pub subject: Option<String>,
    /// The end of its validity, in seconds since 1970; `None`: it isn't given.
    pub ends: Option<i64>,
    /// Whether clients' certificates are verified.
    pub verifies_clients: bool,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn open(options: TlsOptions) -> Result<Tls, TlsError> {
        let served = RwLock::new(read(&options)?);
        Ok(Tls { options, served })
    }

    /// Reads the files again: connections from now on are served with what they hold.
    ///
    /// # Errors
    /// See [`TlsError`]; then all stays as it was.
    pub fn rotate(&self) -> Result<(), TlsError> {
        let served = read(&self.options)?;
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = served;
        Ok(())
    }

    /// Returns which connections are allowed.
    pub fn mode(&self) -> TlsMode {
        self.options.mode
    }

    /// Returns the configuration to serve a connection with.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.served().config
    }

    /// The certificate that clients are shown now.
    pub fn certificate(&self) -> ServedCertificate {
        self.served().certificate
    }

    /// Returns the warning about a certificate that ends soon, or has ended.
    pub fn warning(&self) -> Option<String> {
        let ends = self.served().certificate.ends?;
        let left = ends - now_seconds();
        let what = match left {
            ..0 => "the server's certificate has expired: clients will refuse it",
            0..WARNED_SECONDS => "the server's certificate expires soon",
            _ => return None,
        };
        let file = name(&self.options.certificate_key_file);
        Some(format!(
            "{what}: {file} is valid until {} (rotateCertificates reads a new one)",
            Utc(ends)
        ))
    }

    fn served(&self) -> Served {
        self.served.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn now_seconds() -> i64 {
    SystemClock.now_micros().div_euclid(1_000_000)
}

/// Seconds since 1970 as text.
struct Utc(i64);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0) {
            Ok(time) => time.fmt(f),
            Err(_) => write!(f, "{} s after 1970", self.0),
        }
    }
}

fn read(options: &TlsOptions) -> Result<Served, TlsError> {
    let file = &options.certificate_key_file;
    let wrong = |source| unusable_certificate(file, source);
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(wrong)?;
    let builder = match &options.authorities_file {
        Some(authorities) => {
            builder.with_client_cert_verifier(verifier(authorities, provider, options)?)
        }
        None => builder.with_no_client_auth(),
    };
    let chain = read_certificates(file)?;
    let key = read_key(file, options.key_password.as_ref())?;
    let valid = chain.first().and_then(validity::of_certificate);
    let subject = chain.first().and_then(subject::of_certificate);
    let config = Arc::new(builder.with_single_cert(chain, key).map_err(wrong)?);
    match valid {
        Some(valid) if !valid.contains(&now_seconds()) => {
            Err(TlsError::Time { file: name(file), valid })
        }
        valid => {
            let ends = valid.map(|valid| *valid.end());
            let verifies_clients = options.authorities_file.is_some();
            let certificate = ServedCertificate { subject, ends, verifies_clients };
            Ok(Served { config, certificate })
        }
    }
}

/// Returns the verifier of clients' certificates.
fn verifier(
    file: &Path,
    provider: Arc<CryptoProvider>,
    options: &TlsOptions,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let mut authorities = RootCertStore::empty();
    for certificate in read_certificates(file)? {
        authorities.add(certificate).map_err(|source| unusable_certificate(file, source))?;
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider);
    if options.certificates_are_optional {
        builder = builder.allow_unauthenticated();
    }
    if let Some(revocations) = &options.revocations_file {
        let lists = read_revocations(revocations)?;
        builder = builder.with_crls(lists).only_check_end_entity_revocation();
        builder = builder.enforce_revocation_expiration();
    }
    builder.build().map_err(|source| {
        let file = match (&source, &options.revocations_file) {
            (VerifierBuilderError::InvalidCrl(_), Some(revocations)) => revocations,
            _ => file,
        };
        TlsError::Authorities { file: name(file), source }
    })
}

/// The key of a file, by its password if it is encrypted.
///
/// # Errors
/// If it can't be read, or there is none that can be used.
pub(crate) fn read_key(
    file: &Path,
    password: Option<&KeyPassword>,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = std::fs::read(file).map_err(|error| unusable(file, &error.to_string()))?;
    let text = String::from_utf8_lossy(&bytes);
    let password = password.map(|password| password.0.as_str());
    match encrypted_key::decrypt(&text, password) {
        Ok(Some(key)) => return Ok(key),
        Ok(None) => {}
        Err(source) => return Err(TlsError::EncryptedKey { file: name(file), source }),
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => unusable(file, "there is no key in it"),
        other => unusable(file, &other.to_string()),
    })
}

/// All lists of revoked certificates of a file, at least one.
fn read_revocations(file: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let lists: Result<Vec<_>, _> =
        CertificateRevocationListDer::pem_file_iter(file).and_then(Iterator::collect);
    match lists {
        Ok(lists) if lists.is_empty() => {
            Err(unusable(file, "there is no list of revoked certificates in it"))
        }
        Ok(lists) => Ok(lists),
        Err(error) => Err(unusable(file, &error.to_string())),
    }
}

/// All certificates of a file, at least one.
///
/// # Errors
/// If it can't be read, or there is none.
pub(crate) fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err(unusable(file, "there is no certificate in it"))
        }
        Ok(certificates) => Ok(certificates),
        Err(pem::Error::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            Err(unusable(file, "there is no such file"))
        }
        Err(error) => Err(unusable(file, &error.to_string())),
    }
}

/// Describes the fault of a certificate that can't be used, or of a handshake. The library says of
/// a certificate's version only that it is another one.
pub(crate) fn fault(error: &rustls::Error) -> String {
    let text = error.to_string();
    match text.contains("UnsupportedCertVersion") {
        true => "the certificate must be X.509 version 3".to_owned(),
        false => text,
    }
}

pub(crate) fn unusable_certificate(file: &Path, source: rustls::Error) -> TlsError {
    TlsError::Certificate { file: name(file), source }
}

fn unusable(file: &Path, reason: &str) -> TlsError {
    TlsError::File { file: name(file), reason: reason.to_owned() }
}

fn name(file: &Path) -> String {
    file.display().to_string()
}
