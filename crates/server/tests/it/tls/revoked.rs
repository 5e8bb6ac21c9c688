//! Goal: a client whose certificate was revoked isn't let in, nor one whose authority's list is
//! missing or out of date.

use std::path::PathBuf;

use frond_server::tls::Tls;
use frond_server::{ServerOptions, TlsMode, TlsOptions};
use frond_testkit::SimDisk;
use rcgen::{DnType, SerialNumber};

use super::certificates::{Authority, Directory, TlsClient, write};
use super::{options, ping};
use crate::running::Running;

/// Authorities of servers and of clients, the server's files, and clients' certificates.
struct Files {
    directory: Directory,
    servers: Authority,
    members: Authority,
    certificates: PathBuf,
    authorities: PathBuf,
}

impl Files {
    fn new() -> Files {
        let directory = Directory::new();
        let (servers, members) = (Authority::new("the servers'"), Authority::new("the members'"));
        let certificates =
            write(&directory.file("server.pem"), &servers.certificate_of("the server"));
        let authorities = write(&directory.file("ca.pem"), &members.pem);
        Files { directory, servers, members, certificates, authorities }
    }

    fn tls(&self, lists: &str) -> TlsOptions {
        TlsOptions {
            authorities_file: Some(self.authorities.clone()),
            revocations_file: Some(write(&self.directory.file("crl.pem"), lists)),
            certificates_are_optional: true,
            ..options(TlsMode::Allowed, self.certificates.clone())
        }
    }

    /// A client's certificate with that number.
    fn certificate(&self, number: u64) -> String {
        self.members.certificate_with(&[(DnType::CommonName, "ada")], |params| {
            params.serial_number = Some(SerialNumber::from(number));
        })
    }

    /// Whether a server lets in a client of that certificate.
    fn takes(&self, server: &Running, number: u64) -> bool {
        let client = self.servers.client(Some(&self.certificate(number)));
        TlsClient::new(server.stream(), &client).exchange(&ping()).is_ok()
    }
}

#[test]
fn revoked_certificates_are_refused() {
    let files = Files::new();
    let tls = Some(files.tls(&files.members.revocations(&[7], 3000)));
    let server = Running::with(&SimDisk::new(1), ServerOptions { tls, ..ServerOptions::default() });
    assert!(files.takes(&server, 6));
    assert!(!files.takes(&server, 7));
    // The file is read again with the certificates.
    let rotate = r#"{"rotateCertificates": 1}"#;
    let lists = |text: &str| write(&files.directory.file("crl.pem"), text);
    lists(&files.members.revocations(&[6, 8], 3000));
    let mut client = server.client();
    client.ok("admin", rotate);
    assert!(!files.takes(&server, 6));
    assert!(files.takes(&server, 7));
    // A list that is over, and one of another authority, say nothing about anyone.
    for text in [files.members.revocations(&[6], 2024), files.servers.revocations(&[6], 3000)] {
        lists(&text);
        client.ok("admin", rotate);
        assert!(!files.takes(&server, 7));
    }
    lists("");
    assert!(client.error("admin", rotate).1.contains("no list of revoked certificates"));
}

#[test]
fn a_list_that_cannot_be_read_is_refused_at_the_start() {
    let files = Files::new();
    for (text, expected) in [
        ("", "crl.pem: there is no list of revoked certificates in it"),
        ("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "crl.pem: "),
    ] {
        let error = Tls::open(files.tls(text)).err().expect("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
