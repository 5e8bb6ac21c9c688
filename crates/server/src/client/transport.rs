//! The transport of a client's bytes: TCP, TLS over it, or a socket of the Unix domain.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::tls::{TlsError, read_certificates, read_key, unusable_certificate};

/// The time that an address may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The TLS options of a client.
#[derive(Clone, Default, Debug)]
pub struct ClientTls {
    /// Authorities (PEM) that the server's certificate must come from; without them those that the
    /// system trusts.
    pub authorities_file: Option<PathBuf>,
    /// A certificate to show, and its key (PEM).
    pub certificate_key_file: Option<PathBuf>,
}

impl ClientTls {
    /// Reads the files.
    ///
    /// # Errors
    /// If one can't be read, or used.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|source| TlsError::Certificate { file: "TLS".to_owned(), source })?
            .with_root_certificates(self.roots()?);
        let Some(file) = &self.certificate_key_file else {
            return Ok(Arc::new(builder.with_no_client_auth()));
        };
        let (chain, key) = (read_certificates(file)?, read_key(file, None)?);
        let config = builder.with_client_auth_cert(chain, key);
        Ok(Arc::new(config.map_err(|source| unusable_certificate(file, source))?))
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        match &self.authorities_file {
            Some(file) => {
                for certificate in read_certificates(file)? {
                    let added = roots.add(certificate);
                    added.map_err(|source| unusable_certificate(file, source))?;
                }
            }
            // Among a system's are some that can't be read: the others do.
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        Ok(roots)
    }
}

/// A connection.
pub enum Transport {
    /// By TCP.
    Tcp(TcpStream),
    /// By TLS.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    /// Through a socket of the Unix domain.
    Unix(UnixStream),
}

impl Transport {
    /// Connects to `address`, `HOST:PORT` or the path of a socket; a socket needs no TLS.
    ///
    /// # Errors
    /// The error of the last of the host's addresses; a certificate that isn't trusted.
    pub fn connect(address: &str, tls: Option<&ClientTls>) -> io::Result<Transport> {
        if address.contains('/') {
            return UnixStream::connect(address).map(Transport::Unix);
        }
        let stream = connect_tcp(address)?;
        stream.set_nodelay(true)?;
        let Some(tls) = tls else { return Ok(Transport::Tcp(stream)) };
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let config =
            tls.config().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        // A server that isn't trusted is refused now, not at the first command.
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(explain)?;
        }
        Ok(Transport::Tls(Box::new(stream)))
    }

    /// Sets how long a read waits at most; `None`: for as long as it takes.
    ///
    /// # Errors
    /// An error of the system.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Transport::Tcp(stream) => stream.set_read_timeout(time),
            Transport::Tls(stream) => stream.sock.set_read_timeout(time),
            Transport::Unix(stream) => stream.set_read_timeout(time),
        }
    }
}

/// Says in a user's words why there is no connection by TLS.
fn explain(error: io::Error) -> io::Error {
    let reason = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match reason {
        Some(rustls::Error::InvalidCertificate(why)) => why,
        // An answer that isn't TLS begins otherwise than a server's hello.
        Some(rustls::Error::InvalidMessage(_)) => {
            return io::Error::new(error.kind(), "it doesn't speak TLS: leave tls=true out");
        }
        _ => return error,
    };
    let text = match why {
        CertificateError::UnknownIssuer => {
            "its certificate isn't from an authority that is trusted: name one with tlsCAFile=FILE"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name".to_owned()
        }
        // The library has no kind for it.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is an authority's own: a server needs one that the authority signed"
                .to_owned()
        }
        other => format!("its certificate isn't valid: {other}"),
    };
    io::Error::new(error.kind(), text)
}

fn connect_tcp(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    let resolved: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    for candidate in resolved {
        match TcpStream::connect_timeout(&candidate, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Read for Transport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Tcp(stream) => stream.read(buffer),
            Transport::Tls(stream) => stream.read(buffer),
            Transport::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Tcp(stream) => stream.write(bytes),
            Transport::Tls(stream) => stream.write(bytes),
            Transport::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Transport::Tcp(stream) => stream.flush(),
            Transport::Tls(stream) => stream.flush(),
            Transport::Unix(stream) => stream.flush(),
        }
    }
}
