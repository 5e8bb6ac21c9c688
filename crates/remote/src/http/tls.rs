//! Certificates and keys: PEM files to what rustls wants.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::http::server::ServeError;
use crate::runtime;

/// Returns how the server speaks TLS: with the certificates in one file and the key in another.
pub(crate) fn server_config(
    certificates: &Path,
    key: &Path,
) -> Result<Arc<ServerConfig>, ServeError> {
    runtime::choose_cryptography();
    let wrong = |file: &Path, what: String| ServeError::Tls(format!("{}: {what}", file.display()));
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(certificates).and_then(Iterator::collect);
    let chain = chain.map_err(|error| wrong(certificates, error.to_string()))?;
    let key_der =
        PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key_der)
        .map_err(|error| wrong(certificates, error.to_string()))?;
    Ok(Arc::new(config))
}
