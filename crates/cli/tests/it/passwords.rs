//! Goal: passwords are in no place that others can look at: that of a certificate's key not among
//! the process's arguments, nor in `getCmdLineOpts`, nor in the log; a user's in no message.
//! Method: `frond serve` and a link that is called mongod as child processes, with the password on
//! the command line.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use frond_doc::{DocumentBuilder, Value, document, extended_json};
use frond_server::Client;

use crate::serving::Server;
use crate::{Directory, command, frond};

const PASSWORD: &str = "geheim-W\u{f6}rt";
/// A certificate of 100 years for localhost, and its key by `openssl pkcs8 -topk8`.
const CERTIFICATE_AND_KEY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUDYiltUSf7lwOQPrKGvMMV9kkj2kwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDE2MDkyNFoYDzIxMjYxMTA2
MTYwOTI0WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATX+8p0NgK+oDSJPBe3yRUPn33aOpwGfIxHKxZYD0qVIcZYGyd5lMO1
h0arF8LZiAcEK1x0oV0srTuTHG7rUN0Vo28wbTAdBgNVHQ4EFgQUSn2qmbzg1Ytd
09VzAWgMTfxp7M8wHwYDVR0jBBgwFoAUSn2qmbzg1Ytd09VzAWgMTfxp7M8wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhAPF7PluRnvJvPa/aMBrCJHR94vZcfiIsDVsmxD0mkcz/AiAy
vUImnyVdpc6sHWerF6ioW9neEjQrldWAf13BK/XgEw==
-----END CERTIFICATE-----
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgj+Xepw1XqDAICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEH4dDEGDMda6oESfGPthDTMEgZCw
x5siwSE38EcPG+is+W9RNzTrLVh2asSzirrd38HzLaJpvCm9IFFDwVm5iGdNL93T
TCkoXjcFvPHdyeWu61KWymErYr7CEHS9AMh1vyrwtLNGx7pOwENvpz7n5gluXMOA
2k1y4YHvXoCCyeiklTjoRnWUMG6H7AZYp9LLswlr5z3p1PHaaM6LwW2KiiNMKY8=
-----END ENCRYPTED PRIVATE KEY-----
";

/// Asks a server that has the password what it was started with.
fn check_hidden(server: &Server) {
    let arguments = std::fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap();
    let arguments = String::from_utf8_lossy(&arguments);
    assert!(arguments.contains("server.pem"), "{arguments}");
    assert!(!arguments.contains(PASSWORD), "{arguments}");
    let mut client = Client::connect(&server.address).unwrap();
    let options = client.command("admin", document! { "getCmdLineOpts": 1_i32 }.view()).unwrap();
    let path = frond_doc::path::Path::new("parsed.net.tls.certificateKeyFilePassword");
    assert_eq!(path.get(options.view()), Some(Value::String("<password>")));
    let log = client.command("admin", document! { "getLog": "global" }.view()).unwrap();
    for answer in [options, log] {
        assert!(!format!("{answer:?}").contains(PASSWORD), "{answer:?}");
    }
}

#[test]
fn the_password_of_a_key_is_out_of_sight() {
    let directory = Directory::new();
    let file = directory.file("server.pem", CERTIFICATE_AND_KEY);
    let mut by_flag = command(&directory, "serve --listen 127.0.0.1:0 --tls-mode allowTLS");
    by_flag.args(["--tls-certificate-key-file", &file]);
    by_flag.args(["--tls-certificate-key-file-password", PASSWORD]);
    let server = Server::start_as(by_flag);
    check_hidden(&server);
    server.stop();

    let lines = format!(
        "net: {{port: 0, tls: {{mode: allowTLS, certificateKeyFile: '{file}',\n  \
         certificateKeyFilePassword: '{PASSWORD}'}}}}\n"
    );
    directory.file("frond.conf", &lines);
    let mut by_file = command(&directory, "serve --config frond.conf");
    // So that its name is among the arguments.
    by_file.args(["--tls-certificate-key-file", &file]);
    let server = Server::start_as(by_file);
    check_hidden(&server);
    server.stop();

    let mongod = directory.path().join("mongod");
    symlink(env!("CARGO_BIN_EXE_frond"), &mongod).unwrap();
    let mut wrong = Command::new(mongod);
    wrong.current_dir(directory.path()).args(["--port", "0", "--dbpath", "frond-data"]);
    wrong.args(["--tlsMode", "allowTLS", "--tlsCertificateKeyFile", &file]);
    wrong.arg("--tlsCertificateKeyFilePassword=other-than-it");
    let output = wrong.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("the password isn't that of its key"), "{errors}");
    assert!(!errors.contains("other-than-it"), "{errors}");
}

#[test]
fn a_message_about_a_server_has_no_password_of_its_users() {
    let directory = Directory::new();
    let server = Server::start_with(&directory, "--auth");
    let mut client = Client::connect(&server.address).unwrap();
    let roles = extended_json::parse(r#"{"roles": ["root"]}"#).unwrap();
    let mut create = DocumentBuilder::new();
    create.append("createUser", Value::String("ada")).append("pwd", Value::String("geheim"));
    create.append("roles", roles.get("roles").unwrap());
    client.command("admin", create.build().view()).unwrap();
    let uri = format!("mongodb://ada:geheim@{}/", server.address);
    // It has no remotes, by which backups are taken.
    let error = frond(&directory, &format!("backup --uri {uri} elsewhere")).fails(1);
    assert!(error.contains("serves no remotes"), "{error}");
    assert!(!error.contains("geheim"), "{error}");
    drop(client);
    server.stop();
}
