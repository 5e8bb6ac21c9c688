//! Goal: the log reports clients that come, log in, fail to and go, in mongod's words and with its
//! numbers, and nothing that proves their identity. Method: `getLog`, as an operator reads it.

use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, Value, extended_json};
use frond_server::scram::Mechanism;
use frond_server::{BeginningParameters, ServerOptions};
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient};

const METADATA: &str = r#"{"hello": 1, "compression": ["zlib", "lz4"], "client": {
    "application": {"name": "till"}, "driver": {"name": "some", "version": "1"},
    "os": {"type": "Linux"}}}"#;

/// The lines of the log.
fn lines(client: &mut TestClient) -> Vec<DocumentBuf> {
    let log = client.ok("admin", r#"{"getLog": "global"}"#);
    let log = log.get("log").and_then(|log| log.as_array()).expect("an array");
    let line = |line: Value<'_>| extended_json::parse(line.as_str().expect("a text"));
    log.iter().map(|it| line(it).expect("JSON")).collect()
}

/// `c`, `ctx` and some attributes of the lines with a number.
fn fields_of(lines: &[DocumentBuf], id: i32, names: &[&str]) -> Vec<String> {
    let text = |value: Option<Value<'_>>| value.map_or("-".to_owned(), frond_query::text::value);
    let of = |line: &DocumentBuf| {
        let attributes = line.get("attr").and_then(|it| it.as_document()).expect("attributes");
        let mut all = vec![text(line.get("c")), text(line.get("ctx"))];
        all.extend(names.iter().map(|name| text(attributes.get(name))));
        all.join(" ").replace(['"', '\\'], "")
    };
    lines.iter().filter(|line| line.get("id") == Some(Value::Int32(id))).map(of).collect()
}

#[test]
fn clients_that_come_log_in_and_go_are_logged() {
    let server = Running::with_auth(&SimDisk::new(1));
    let mut root = server.client();
    root.ok("admin", r#"{"createUser": "root", "pwd": "hush1", "roles": ["root"]}"#);
    root.0.log_in("admin", "root", "hush1").expect("the password is right");
    let mut other = server.client();
    other.ok("admin", METADATA);
    other.ok("admin", METADATA);
    other.0.log_in("admin", "root", "hush2").expect_err("another password");
    other.0.log_in_by(Mechanism::Sha1, "shop", "nobody", "hush3").expect_err("no such user");
    other.ok("admin", r#"{"logout": 1}"#);
    drop(other);
    let end = Instant::now() + Duration::from_secs(20);
    let lines = loop {
        let lines = lines(&mut root);
        if !fields_of(&lines, 22944, &[]).is_empty() || end < Instant::now() {
            break lines;
        }
        std::thread::yield_now();
    };
    let accepted = fields_of(&lines, 22943, &["connectionId", "connectionCount"]);
    assert_eq!(accepted, ["NETWORK listener 1 1", "NETWORK listener 2 2"]);
    let ended = fields_of(&lines, 22944, &["connectionId", "connectionCount"]);
    assert_eq!(ended, ["NETWORK conn2 2 1"]);
    let metadata = fields_of(&lines, 51800, &["client", "negotiatedCompressors"]);
    assert_eq!(metadata, ["NETWORK conn2 conn2 [ zlib ]"], "once");
    let names = ["mechanism", "user", "db", "isSpeculative", "result", "error"];
    assert_eq!(
        fields_of(&lines, 5_286_306, &names),
        ["ACCESS conn1 SCRAM-SHA-256 root admin false 0 -"]
    );
    assert_eq!(
        fields_of(&lines, 5_286_307, &names),
        [
            "ACCESS conn2 SCRAM-SHA-256 root admin false 18 AuthenticationFailed: SCRAM \
             authentication failed, storedKey mismatch",
            "ACCESS conn2 SCRAM-SHA-1 nobody shop false 11 UserNotFound: Could not find user nobody \
             for db shop",
        ]
    );
    assert!(fields_of(&lines, 22943, &["remote"])[0].contains("127.0.0.1:"));
    let all = format!("{lines:?}");
    for secret in ["hush", "payload", "SaltedPassword", "p="] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
    let status = root.ok("admin", r#"{"serverStatus": 1}"#);
    let get = |path: &str| frond_doc::path::Path::new(path).get(status.view());
    for (path, count) in [
        ("SCRAM-SHA-256.authenticate.received", 2),
        ("SCRAM-SHA-256.authenticate.successful", 1),
        ("SCRAM-SHA-1.authenticate.received", 1),
        ("SCRAM-SHA-1.authenticate.successful", 0),
        ("SCRAM-SHA-1.speculativeAuthenticate.received", 0),
    ] {
        let found = get(&format!("security.authentication.mechanisms.{path}"));
        assert_eq!(found, Some(Value::Int64(count)), "{path}");
    }
}

#[test]
fn a_quiet_server_logs_logins_alone() {
    let parameters = BeginningParameters { is_quiet: true, ..BeginningParameters::default() };
    let options = ServerOptions { auth: true, parameters, ..ServerOptions::default() };
    let server = Running::with(&SimDisk::new(1), options);
    let mut root = server.client();
    root.ok("admin", r#"{"createUser": "root", "pwd": "hush", "roles": ["root"]}"#);
    root.0.log_in("admin", "root", "hush").expect("the password is right");
    let before = lines(&mut root);
    assert!(fields_of(&before, 22943, &[]).is_empty());
    assert_eq!(fields_of(&before, 5_286_306, &[]).len(), 1);
    let quiet = root.ok("admin", r#"{"getParameter": 1, "quiet": 1}"#);
    assert_eq!(quiet.get("quiet"), Some(Value::Boolean(true)));
    root.ok("admin", r#"{"setParameter": 1, "quiet": false}"#);
    server.check();
    assert_eq!(fields_of(&lines(&mut root), 22943, &[]).len(), 1);
}

#[test]
fn connections_beyond_the_limit_are_logged() {
    let server = Running::with_connections(1);
    let mut only = server.client();
    only.ok("admin", r#"{"ping": 1}"#);
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let mut byte = [0];
        let mut refused = server.stream();
        let _ = std::io::Read::read(&mut refused, &mut byte);
        let refused = fields_of(&lines(&mut only), 22942, &["connectionCount"]);
        if let Some(first) = refused.first() {
            assert_eq!(first, "NETWORK listener 1");
            break;
        }
        assert!(Instant::now() < end, "a connection beyond the limit isn't logged");
    }
}
