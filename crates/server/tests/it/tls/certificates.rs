//! Certificates for one test, and what a client makes of them.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, IsCa, Issuer, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use frond_server::wire::{HEADER_BYTES, Header, Message};

/// A directory that goes when the test ends.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Directory {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("frond-server-tls-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory for certificates");
        Directory(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An authority that issues certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own.
    pub pem: String,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = subject(&[(DnType::CommonName, name)]);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// A list of revoked certificates, by their numbers, that is valid to that year.
    pub fn revocations(&self, revoked: &[u64], last: i32) -> String {
        let revoked = revoked.iter().map(|number| RevokedCertParams {
            serial_number: SerialNumber::from(*number),
            revocation_time: rcgen::date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: rcgen::date_time_ymd(last, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).expect("a list").pem().expect("its text")
    }

    /// A certificate of a key that there is.
    pub fn certificate_of_key(&self, key: &str) -> String {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("good names");
        let key = KeyPair::from_pem(key).expect("a key");
        params.signed_by(&key, &self.issuer).expect("a certificate").pem()
    }

    /// A certificate and its key, in one file's text.
    pub fn certificate(&self, subject_parts: &[(DnType, &str)]) -> String {
        self.certificate_with(subject_parts, |_| {})
    }

    /// The same, with what `change` makes of it.
    pub fn certificate_with(
        &self,
        subject_parts: &[(DnType, &str)],
        change: impl FnOnce(&mut CertificateParams),
    ) -> String {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("good names");
        params.distinguished_name = subject(subject_parts);
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        format!("{}{}", certificate.pem(), key.serialize_pem())
    }

    /// The same, for a client of that name.
    pub fn certificate_of(&self, name: &str) -> String {
        self.certificate(&[(DnType::CommonName, name)])
    }

    /// Returns how a client connects that trusts this authority, with a certificate if it has one.
    pub fn client(&self, certificate: Option<&str>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let own = CertificateDer::from_pem_slice(self.pem.as_bytes()).expect("a certificate");
        roots.add(own).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the defaults")
            .with_root_certificates(roots);
        let config = match certificate {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let chain = CertificateDer::pem_slice_iter(pem.as_bytes());
                let chain = chain.collect::<Result<_, _>>().expect("certificates");
                let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).expect("a key");
                builder.with_client_auth_cert(chain, key).expect("they fit")
            }
        };
        Arc::new(config)
    }
}

fn subject(parts: &[(DnType, &str)]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for (kind, value) in parts {
        name.push(kind.clone(), *value);
    }
    name
}

pub fn write(file: &Path, text: &str) -> PathBuf {
    fs::write(file, text).expect("it is written");
    file.to_owned()
}

/// A client's side of a connection.
pub struct TlsClient(pub StreamOwned<ClientConnection, TcpStream>);

impl TlsClient {
    /// Connects; hands are shaken with the first message.
    pub fn new(stream: TcpStream, config: &Arc<ClientConfig>) -> TlsClient {
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::clone(config), name).expect("a client");
        TlsClient(StreamOwned::new(connection, stream))
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    pub fn read(&mut self) -> io::Result<(Header, Message)> {
        let mut bytes = vec![0; HEADER_BYTES];
        self.0.read_exact(&mut bytes)?;
        let header = Header::decode(bytes[..].try_into().expect("its size")).expect("a header");
        bytes.resize(header.bytes, 0);
        self.0.read_exact(&mut bytes[HEADER_BYTES..])?;
        Ok((header, Message::decode_answer(bytes.into()).expect("a message")))
    }

    /// Sends a message and reads what it is answered.
    pub fn exchange(&mut self, bytes: &[u8]) -> io::Result<Message> {
        self.send(bytes)?;
        self.read().map(|(_, message)| message)
    }

    /// The certificate that the server showed.
    pub fn shown(&self) -> Vec<u8> {
        let shown = self.0.conn.peer_certificates().expect("hands were shaken");
        shown[0].to_vec()
    }
}
