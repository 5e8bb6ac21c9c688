//! Goal: a server whose key is encrypted serves by its password, and starts with no other.

use frond_server::tls::Tls;
use frond_server::{KeyPassword, ServerOptions, TlsMode, TlsOptions};
use frond_testkit::SimDisk;

use super::certificates::{Authority, Directory, write};
use super::{options, takes_tls};
use crate::running::Running;

const PASSWORD: &str = "geheim-Wört";
const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgFJzzfXZthIQ2w9km
uStEoSRL//wX/OAmMaERiJIqJk6hRANCAATX+8p0NgK+oDSJPBe3yRUPn33aOpwG
fIxHKxZYD0qVIcZYGyd5lMO1h0arF8LZiAcEK1x0oV0srTuTHG7rUN0V
-----END PRIVATE KEY-----
";
/// The same by `openssl pkcs8 -topk8 -v2 aes-256-cbc`.
const ENCRYPTED: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgj+Xepw1XqDAICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEH4dDEGDMda6oESfGPthDTMEgZCw
x5siwSE38EcPG+is+W9RNzTrLVh2asSzirrd38HzLaJpvCm9IFFDwVm5iGdNL93T
TCkoXjcFvPHdyeWu61KWymErYr7CEHS9AMh1vyrwtLNGx7pOwENvpz7n5gluXMOA
2k1y4YHvXoCCyeiklTjoRnWUMG6H7AZYp9LLswlr5z3p1PHaaM6LwW2KiiNMKY8=
-----END ENCRYPTED PRIVATE KEY-----
";

#[test]
fn an_encrypted_key_serves_by_its_password() {
    let (authority, directory) = (Authority::new("the authority"), Directory::new());
    let pem = format!("{}{ENCRYPTED}", authority.certificate_of_key(KEY));
    let file = write(&directory.file("server.pem"), &pem);
    let with = |password: Option<&str>| TlsOptions {
        key_password: password.map(|password| KeyPassword::from(password.to_owned())),
        ..options(TlsMode::Required, file.clone())
    };
    let right = with(Some(PASSWORD));
    assert!(!format!("{right:?}").contains(PASSWORD), "no log shows it");
    for (password, expected) in [
        (None, "needs a password: --tls-certificate-key-file-password"),
        (Some("wrong"), "the password isn't that of its key"),
    ] {
        let error = Tls::open(with(password)).err().expect("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
    let options = ServerOptions { tls: Some(right), ..ServerOptions::default() };
    let server = Running::with(&SimDisk::new(1), options);
    let client = authority.client(None);
    assert!(takes_tls(&server, &client));
    // A key that isn't encrypted takes a password that isn't needed, as MongoDB's does.
    let other = Authority::new("another authority");
    write(&directory.file("server.pem"), &other.certificate_of("the server"));
    let tls = Tls::open(with(Some(PASSWORD)));
    assert!(tls.is_ok(), "{:?}", tls.err());
}
