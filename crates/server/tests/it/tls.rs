//! TLS: modes, certificates, rotation, and clients that do it badly.

mod certificates;
mod encrypted;
mod hostile;
mod revoked;

use std::sync::Arc;

use frond_doc::{DocumentBuf, Value, document};
use frond_server::wire::{DocumentSequence, Message};
use frond_server::{Client, ClientTls, ServerOptions, TlsMode, TlsOptions};
use frond_testkit::SimDisk;
use rcgen::DnType;
use rustls::ClientConfig;

use self::certificates::{Authority, Directory, TlsClient, write};
use crate::running::Running;

fn ping() -> Vec<u8> {
    Message::new(document! { "ping": 1_i32, "$db": "admin" }).encode(1, 0)
}

/// A server that shows a certificate, and clients that trust it.
struct Secured {
    server: Running,
    authority: Authority,
    directory: Directory,
    client: Arc<ClientConfig>,
}

impl Secured {
    fn start(mode: TlsMode) -> Secured {
        Secured::with(mode, |options| options)
    }

    fn with(mode: TlsMode, change: impl Fn(ServerOptions) -> ServerOptions) -> Secured {
        let (authority, directory) = (Authority::new("the authority"), Directory::new());
        let file = write(&directory.file("server.pem"), &authority.certificate_of("the server"));
        let tls = Some(options(mode, file));
        let options = change(ServerOptions { tls, ..ServerOptions::default() });
        let server = Running::with(&SimDisk::new(1), options);
        let client = authority.client(None);
        Secured { server, authority, directory, client }
    }

    fn client(&self) -> TlsClient {
        TlsClient::new(self.server.stream(), &self.client)
    }

    /// Whether a client that speaks TLS with `config` is answered.
    fn takes(&self, config: &Arc<ClientConfig>) -> bool {
        takes_tls(&self.server, config)
    }
}

fn options(mode: TlsMode, certificate_key_file: std::path::PathBuf) -> TlsOptions {
    TlsOptions {
        mode,
        certificate_key_file,
        key_password: None,
        authorities_file: None,
        certificates_are_optional: false,
        revocations_file: None,
    }
}

fn takes_tls(server: &Running, config: &Arc<ClientConfig>) -> bool {
    TlsClient::new(server.stream(), config).exchange(&ping()).is_ok()
}

fn takes_plain(server: &Running) -> bool {
    let mut client = server.client();
    client.0.command("admin", document! { "ping": 1_i32 }.view()).is_ok()
}

#[test]
fn modes_say_who_may_connect() {
    let required = Secured::start(TlsMode::Required);
    assert!(required.takes(&required.client) && !takes_plain(&required.server));
    let allowed = Secured::start(TlsMode::Allowed);
    assert!(allowed.takes(&allowed.client) && takes_plain(&allowed.server));
    let none = Running::start();
    assert!(!takes_tls(&none, &allowed.client) && takes_plain(&none));
    assert!(!allowed.takes(&required.client), "another authority's");
}

/// As the command line and a follower connect.
#[test]
fn our_own_client_speaks_it() {
    let members = Authority::new("the members");
    let secured = Secured::with(TlsMode::Required, |options| options);
    let port = secured.server.stream().peer_addr().expect("a peer").port();
    let own = write(&secured.directory.file("ca.pem"), &secured.authority.pem);
    let other = write(&secured.directory.file("other.pem"), &members.pem);
    let ping = |host: &str, authorities_file: Option<std::path::PathBuf>| {
        let tls = ClientTls { authorities_file, certificate_key_file: None };
        let mut client = Client::connect_by(&format!("{host}:{port}"), Some(&tls))?;
        client.command("admin", document! { "ping": 1_i32 }.view())
    };
    ping("localhost", Some(own.clone())).expect("it is trusted");
    ping("127.0.0.1", Some(own.clone())).expect("by its address, too");
    for (file, expected) in [
        (Some(other), "isn't from an authority that is trusted"),
        (None, "isn't from an authority that is trusted"),
        (Some(secured.directory.file("missing.pem")), "no such file"),
    ] {
        let error = ping("localhost", file).expect_err("it isn't trusted").to_string();
        assert!(error.contains(expected), "{error}");
    }
    let plain = Client::connect(&format!("127.0.0.1:{port}"));
    let mut plain = plain.expect("a connection");
    assert!(plain.command("admin", document! { "ping": 1_i32 }.view()).is_err());

    let file = secured.directory.file("server.pem");
    let members_file = write(&secured.directory.file("members.pem"), &members.pem);
    let options =
        TlsOptions { authorities_file: Some(members_file), ..options(TlsMode::Required, file) };
    let options = ServerOptions { tls: Some(options), ..ServerOptions::default() };
    let server = Running::with(&SimDisk::new(2), options);
    let port = server.stream().peer_addr().expect("a peer").port();
    let shown = write(&secured.directory.file("me.pem"), &members.certificate_of("me"));
    for certificate_key_file in [None, Some(shown)] {
        let is_member = certificate_key_file.is_some();
        let tls = ClientTls { authorities_file: Some(own.clone()), certificate_key_file };
        let client = Client::connect_by(&format!("localhost:{port}"), Some(&tls));
        let answer = client
            .and_then(|mut client| client.command("admin", document! { "ping": 1_i32 }.view()));
        assert_eq!(answer.is_ok(), is_member);
    }
}

/// The first byte of a message is that of its length, which may be that of a TLS record.
#[test]
fn messages_whose_length_looks_like_tls_are_messages() {
    let secured = Secured::start(TlsMode::Allowed);
    for bytes in [0x116, 0x316, 0x0416, 0x0016_0316] {
        let mut text = String::new();
        let message = loop {
            let body = document! { "ping": 1_i32, "$db": "admin", "comment": &text };
            let message = Message::new(body).encode(1, 0);
            if message.len() == bytes {
                break message;
            }
            text = "x".repeat(text.len() + bytes - message.len());
        };
        let mut stream = secured.server.stream();
        std::io::Write::write_all(&mut stream, &message).expect("sends");
        std::io::Read::read_exact(&mut stream, &mut [0; 16]).expect("an answer");
    }
}

#[test]
fn large_messages_go_both_ways_and_in_any_pieces() {
    let secured = Secured::start(TlsMode::Required);
    let mut client = secured.client();
    let text = "0123456789abcdef".repeat(100_000);
    let documents: Vec<DocumentBuf> =
        (0..9_i32).map(|id| document! { "_id": id, "text": &text }).collect();
    let sequences =
        vec![DocumentSequence { name: "documents".to_owned(), documents: documents.clone() }];
    let insert = Message::new(document! { "insert": "c", "$db": "test" });
    let answer = client.exchange(&Message { sequences, ..insert }.encode(1, 0)).expect("answers");
    assert_eq!(answer.body.get("n"), Some(Value::Int32(9)));
    let find = Message::new(document! { "find": "c", "$db": "test" }).encode(2, 0);
    for round in 0..3 {
        let answer = client.exchange(&find).expect("answers");
        let cursor = answer.body.get("cursor").and_then(|cursor| cursor.as_document());
        let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).expect("a batch");
        let batch = batch.as_array().expect("an array");
        let found: Vec<_> = batch.iter().filter_map(|one| one.as_document()).collect();
        assert!(found == documents.iter().map(|one| one.view()).collect::<Vec<_>>(), "{round}");
    }
    // A record for each byte, then many messages in one.
    for byte in ping() {
        client.send(&[byte]).expect("sends");
    }
    client.read().expect("an answer");
    client.send(&ping().repeat(100)).expect("sends");
    for _ in 0..100 {
        client.read().expect("an answer");
    }
}

/// A request that was decrypted and not answered is answered, though the client sends nothing more
/// and its thread is wanted.
#[test]
fn clients_take_turns_whatever_was_decrypted() {
    let secured = Secured::with(TlsMode::Required, |options| ServerOptions {
        threads_max: 1,
        connections_max: 20,
        ..options
    });
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = secured.client();
                for _ in 0..20 {
                    client.send(&ping().repeat(5)).expect("sends");
                    for _ in 0..5 {
                        client.read().expect("an answer");
                    }
                }
            });
        }
    });
}

#[test]
fn a_hello_that_waits_is_answered_by_tls() {
    let secured = Secured::start(TlsMode::Required);
    let mut client = secured.client();
    let hello = Message::new(document! { "hello": 1_i32, "$db": "admin" });
    let answer = client.exchange(&hello.encode(1, 0)).expect("answers");
    let topology = answer.body.get("topologyVersion").expect("a topology");
    let topology = topology.as_document().expect("a document").to_buf();
    let body = document! {
        "hello": 1_i32, "topologyVersion": &topology, "maxAwaitTimeMS": 20_i32, "$db": "admin",
    };
    let mut message = Message::new(body);
    message.flags.exhaust_allowed = true;
    client.send(&message.encode(7, 0)).expect("sends");
    let mut response_to = 7;
    for _ in 0..5 {
        let (header, answer) = client.read().expect("news");
        assert_eq!((header.response_to, answer.flags.more_to_come), (response_to, true));
        response_to = header.request_id;
    }
    client.send(&ping()).expect("sends");
    while client.read().expect("an answer").1.flags.more_to_come {}
    assert_eq!(client.read().expect("an answer").0.response_to, 1);
}

#[test]
fn clients_show_certificates_where_there_are_authorities() {
    for are_optional in [false, true] {
        let directory = Directory::new();
        let (authority, members) = (Authority::new("the server's"), Authority::new("the members'"));
        let file = write(&directory.file("server.pem"), &authority.certificate_of("the server"));
        let tls = TlsOptions {
            authorities_file: Some(write(&directory.file("ca.pem"), &members.pem)),
            certificates_are_optional: are_optional,
            ..options(TlsMode::Required, file)
        };
        let options = ServerOptions { tls: Some(tls), ..ServerOptions::default() };
        let server = Running::with(&SimDisk::new(1), options);
        let (member, stranger) = (members.certificate_of("ada"), authority.certificate_of("eve"));
        assert!(takes_tls(&server, &authority.client(Some(&member))));
        assert!(!takes_tls(&server, &authority.client(Some(&stranger))));
        // The operator sees why in the log.
        let mut client = TlsClient::new(server.stream(), &authority.client(Some(&member)));
        let request = document! { "getLog": "global", "$db": "admin" };
        client.send(&Message::new(request).encode(2, 0)).expect("sends");
        let reply = client.read().expect("an answer").1.body;
        let reply = format!("{reply:?}");
        assert!(reply.contains("TLS handshake failed"), "{reply}");
        assert!(reply.contains("invalid peer certificate"), "{reply}");
        assert_eq!(takes_tls(&server, &authority.client(None)), are_optional);
    }
}

#[test]
fn certificates_are_rotated() {
    let secured = Secured::start(TlsMode::Allowed);
    let rotate = r#"{"rotateCertificates": 1, "message": "by a test"}"#;
    let mut old = secured.client();
    old.exchange(&ping()).expect("answers");
    let file = secured.directory.file("server.pem");
    write(&file, &secured.authority.certificate_of("the server, again"));
    let mut client = secured.server.client();
    let shown = |secured: &Secured| {
        let mut client = secured.client();
        client.exchange(&ping()).expect("answers");
        client.shown()
    };
    assert_eq!(shown(&secured), old.shown(), "not read yet");
    client.ok("admin", rotate);
    let new = shown(&secured);
    assert_ne!(new, old.shown());
    old.exchange(&ping()).expect("it goes on");
    // A certificate that can't be used changes nothing.
    let other = secured.authority.certificate_of("another");
    let good = secured.authority.certificate_of("the server");
    let key_of = |pem: &str| pem[pem.find("-----BEGIN PRIVATE").expect("a key")..].to_owned();
    let certificate = good.replace(&key_of(&good), "");
    for text in ["", &certificate, &key_of(&good), &format!("{certificate}{}", key_of(&other))] {
        write(&file, text);
        let (code, message) = client.error("admin", rotate);
        assert_eq!(code, 140, "{message}");
        assert!(message.contains("server.pem"), "{message}");
        assert_eq!(shown(&secured), new);
    }
    std::fs::remove_file(&file).expect("it is there");
    assert!(client.error("admin", rotate).1.contains("no such file"));
    assert_eq!(client.error("test", rotate).0, 13);
    assert_eq!(Running::start().client().error("admin", rotate).0, 20);
}

#[test]
fn a_server_without_good_files_does_not_start() {
    let directory = Directory::new();
    let authority = Authority::new("the authority");
    let good = write(&directory.file("good.pem"), &authority.certificate_of("the server"));
    let empty = write(&directory.file("empty.pem"), "");
    let with = |file: &std::path::Path, authorities: Option<&std::path::Path>| {
        let options = options(TlsMode::Required, file.to_owned());
        let authorities_file = authorities.map(std::path::Path::to_owned);
        frond_server::tls::Tls::open(TlsOptions { authorities_file, ..options }).map(drop)
    };
    assert!(with(&good, None).is_ok() && with(&good, Some(&good)).is_ok());
    for (result, expected) in [
        (with(&empty, None), "there is no certificate in it"),
        (with(&directory.file("none.pem"), None), "there is no such file"),
        (with(&good, Some(&empty)), "there is no certificate in it"),
        (with(&directory.file("."), None), "server-tls"),
    ] {
        let error = result.expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// MongoDB: 28652, and nothing is served.
#[test]
fn certificates_whose_time_is_over_or_has_not_come_are_refused() {
    let secured = Secured::start(TlsMode::Allowed);
    let file = secured.directory.file("server.pem");
    let valid = |first: i32, last: i32| {
        secured.authority.certificate_with(&[(DnType::CommonName, "the server")], |params| {
            params.not_before = rcgen::date_time_ymd(first, 2, 28);
            params.not_after = rcgen::date_time_ymd(last, 1, 1);
        })
    };
    let mut client = secured.server.client();
    for (first, last, answer) in [(2000, 2001, "2001-01-01"), (2990, 3000, "2990-02-28")] {
        write(&file, &valid(first, last));
        let (code, message) = client.error("admin", r#"{"rotateCertificates": 1}"#);
        assert_eq!(code, 140, "{message}");
        assert!(
            message.contains("expired or not yet valid") && message.contains(answer),
            "{message}"
        );
        assert!(secured.takes(&secured.client), "the old one stays");
        let opened = frond_server::tls::Tls::open(options(TlsMode::Required, file.clone()));
        let error = opened.err().expect("refused").to_string();
        assert!(error.contains("expired or not yet valid"), "{error}");
    }
    write(&file, &valid(2000, 3000));
    client.ok("admin", r#"{"rotateCertificates": 1}"#);
    let tls = frond_server::tls::Tls::open(options(TlsMode::Required, file.clone())).expect("good");
    assert_eq!(tls.warning(), None);
    let soon = secured.authority.certificate_with(&[(DnType::CommonName, "it")], |params| {
        let now = std::time::SystemTime::now();
        params.not_after = (now + std::time::Duration::from_secs(29 * 24 * 3600)).into();
    });
    write(&file, &soon);
    tls.rotate().expect("it is valid");
    let warning = tls.warning().expect("it ends soon");
    assert!(warning.contains("expires soon"), "{warning}");
}

/// A client that is gone is noticed while its command waits, though it has said farewell.
#[test]
fn commands_of_clients_that_are_gone_end() {
    let secured = Secured::start(TlsMode::Allowed);
    let mut holder = secured.server.client();
    holder.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let session = r#"{"id": {"$binary": {"base64": "AQIDBAUGBwgJCgsMDQ4PEA==", "subType": "04"}}}"#;
    let update = format!(
        r#"{{"update": "c", "updates": [{{"q": {{"_id": 1}}, "u": {{"$set": {{"a": 1}}}}}}],
            "lsid": {session}, "txnNumber": {{"$numberLong": "1"}}, "autocommit": false,
            "startTransaction": true}}"#
    );
    holder.ok("test", &update);
    let delete = r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0}], "$db": "test"}"#;
    let delete = Message::new(crate::running::json(delete)).encode(1, 0);
    let mut client = secured.client();
    client.send(&delete).expect("sends");
    let running = |holder: &mut crate::running::TestClient| {
        let answer = holder.ok("admin", r#"{"currentOp": 1}"#);
        let list = answer.get("inprog").and_then(|list| list.as_array()).expect("an array");
        list.iter().count()
    };
    while running(&mut holder) < 2 {
        std::thread::yield_now();
    }
    client.0.conn.send_close_notify();
    std::io::Write::flush(&mut client.0).expect("it says farewell");
    drop(client);
    while running(&mut holder) > 1 {
        std::thread::yield_now();
    }
}

/// Users of `$external` are who their certificates say, and no others.
#[test]
fn a_certificate_logs_in_the_user_that_it_names() {
    let directory = Directory::new();
    let (authority, members) = (Authority::new("the server's"), Authority::new("the members'"));
    let file = write(&directory.file("server.pem"), &authority.certificate_of("the server"));
    let tls = TlsOptions {
        authorities_file: Some(write(&directory.file("ca.pem"), &members.pem)),
        certificates_are_optional: true,
        ..options(TlsMode::Allowed, file)
    };
    let options = ServerOptions { tls: Some(tls), ..ServerOptions::default() };
    let server = Running::with(&SimDisk::new(1), options);
    let mut root = server.client();
    let create = |name: &str, more: &str| {
        format!(r#"{{"createUser": "{name}", "roles": [{{"role": "read", "db": "shop"}}]{more}}}"#)
    };
    root.ok("$external", &create("CN=ada,OU=Engines,O=Frond", ""));
    assert_eq!(root.code("$external", &create("CN=bob", r#", "pwd": "secret""#)), 2);
    assert_eq!(root.code("shop", &create("CN=bob", "")), 2);

    let parts = [
        (DnType::OrganizationName, "Frond"),
        (DnType::OrganizationalUnitName, "Engines"),
        (DnType::CommonName, "ada"),
    ];
    let (ada, eve) = (members.certificate(&parts), members.certificate_of("eve"));
    let connect =
        |certificate: Option<&str>| TlsClient::new(server.stream(), &authority.client(certificate));
    let command = |client: &mut TlsClient, command: &str| {
        let message = Message::new(crate::running::json(command)).encode(1, 0);
        client.exchange(&message).expect("answers").body
    };
    let code = |answer: &DocumentBuf| answer.get("code").and_then(|code| code.as_integer());
    let log_in = r#"{"authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external"}"#;
    let named = r#"{"authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external",
        "user": "CN=ada,OU=Engines,O=Frond"}"#;
    let status = r#"{"connectionStatus": 1, "$db": "admin"}"#;
    for log_in in [log_in, named] {
        let mut client = connect(Some(&ada));
        let answer = command(&mut client, log_in);
        assert_eq!(answer.get("dbname"), Some(Value::String("$external")));
        assert_eq!(answer.get("user"), Some(Value::String("CN=ada,OU=Engines,O=Frond")));
        let status = format!("{:?}", command(&mut client, status));
        assert!(
            status.contains("CN=ada,OU=Engines,O=Frond") && status.contains("read"),
            "{status}"
        );
    }
    let hello = r#"{"hello": 1, "$db": "admin", "speculativeAuthenticate": {"authenticate": 1,
        "mechanism": "MONGODB-X509", "db": "$external"}}"#;
    let answer = command(&mut connect(Some(&ada)), hello);
    assert!(answer.get("speculativeAuthenticate").is_some(), "{answer:?}");
    for (certificate, log_in) in [(Some(&eve), log_in), (Some(&eve), named), (None, log_in)] {
        let mut client = connect(certificate.map(String::as_str));
        assert_eq!(code(&command(&mut client, log_in)), Some(18));
        assert_eq!(command(&mut client, hello).get("speculativeAuthenticate"), None);
        assert!(!format!("{:?}", command(&mut client, status)).contains("CN="));
    }
}
