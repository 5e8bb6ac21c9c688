//! Goal: the audit log records logins, refusals and changes, with their actors and outcomes, and
//! never stored values. Method: a real file, read as a client of it would.

use std::fs;
use std::path::{Path, PathBuf};

use frond_db::FrondOptions;
use frond_doc::{DocumentBuf, Value, extended_json};
use frond_server::{Server, ServerError, ServerOptions};
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient};

/// A directory of a test's own, gone with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("frond-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that records at `path`, and a client that has made the user `root` and logged in as it.
fn start(path: &Path) -> (Running, TestClient) {
    let server = server(path);
    let mut root = server.client();
    root.ok("admin", r#"{"createUser": "root", "pwd": "secret", "roles": ["root"]}"#);
    root.0.log_in("admin", "root", "secret").expect("the password is right");
    (server, root)
}

fn server(path: &Path) -> Running {
    let audit_path = Some(path.to_owned());
    let options = ServerOptions { auth: true, audit_path, ..ServerOptions::default() };
    Running::with(&SimDisk::new(1), options)
}

fn events(path: &Path) -> Vec<DocumentBuf> {
    let text = fs::read_to_string(path).expect("a file");
    text.lines().map(|line| extended_json::parse(line).expect("a line is JSON")).collect()
}

/// `atype`, the first user, `param`, `result`.
fn shown(event: &DocumentBuf) -> String {
    let users = event.get("users").and_then(|users| users.as_array()).expect("users");
    let user = users.iter().next().and_then(|user| user.as_document());
    let user = user.and_then(|user| user.get("user")).and_then(|user| user.as_str());
    let param = event.get("param").and_then(|param| param.as_document()).expect("param");
    let kind = event.get("atype").and_then(|kind| kind.as_str()).expect("atype");
    let Some(Value::Int32(code)) = event.get("result") else { panic!("{event:?}") };
    format!("{kind} {} {} {code}", user.unwrap_or("-"), frond_query::text::value(param.into()))
}

#[test]
fn the_audit_names_actors_and_actions_but_no_stored_values() {
    let place = Place::new("audit");
    let path = place.0.join("audit.json");
    let (server, mut root) = start(&path);
    root.ok("shop", r#"{"createUser": "ann", "pwd": "hidden", "roles": ["read"]}"#);
    root.ok("shop", r#"{"create": "things"}"#);
    root.ok("shop", r#"{"insert": "things", "documents": [{"_id": "stored"}]}"#);
    let index = r#"{"key": {"a": 1}, "name": "a_1"}"#;
    root.ok("shop", &format!(r#"{{"createIndexes": "things", "indexes": [{index}]}}"#));
    root.ok("shop", r#"{"frondBranch": 1}"#);
    root.ok("shop", r#"{"frondBranch": 1, "branch": "dev"}"#);
    let again = r#"{"create": "things", "capped": true, "size": 4096}"#;
    assert_eq!(root.code("shop", again), 48);
    let mut ann = server.client();
    assert!(ann.0.log_in("shop", "ann", "wrong").is_err());
    let mut ann = server.client();
    ann.0.log_in("shop", "ann", "hidden").expect("the password is right");
    ann.ok("shop", r#"{"find": "things", "filter": {"_id": "stored"}}"#);
    let insert = r#"{"insert": "things", "documents": [{"_id": "stored too"}]}"#;
    assert_eq!(ann.code("shop", insert), 13);
    assert_eq!(ann.code("shop", r#"{"drop": "things"}"#), 13);
    ann.ok("shop", r#"{"logout": 1}"#);
    let shown: Vec<String> = events(&path).iter().map(shown).collect();
    let expected = [
        "createUser - { user: \"root\", db: \"admin\", roles: [ \"root\" ] } 0",
        "authenticate root { user: \"root\", db: \"admin\", mechanism: \"SCRAM-SHA-256\" } 0",
        "createUser root { user: \"ann\", db: \"shop\", roles: [ \"read\" ] } 0",
        "createCollection root { ns: \"shop.things\" } 0",
        "createIndex root { ns: \"shop.things\", indexes: [ \"a_1\" ] } 0",
        "frondBranch root { ns: \"shop\", branch: \"dev\" } 0",
        "createCollection root { ns: \"shop.things\" } 48",
        "authenticate - { user: \"ann\", db: \"shop\", mechanism: \"SCRAM-SHA-256\" } 18",
        "authenticate ann { user: \"ann\", db: \"shop\", mechanism: \"SCRAM-SHA-256\" } 0",
        "authCheck ann { command: \"insert\", ns: \"shop.things\" } 13",
        "authCheck ann { command: \"drop\", ns: \"shop.things\" } 13",
        "logout ann {} 0",
    ];
    assert_eq!(shown, expected);
    let text = fs::read_to_string(&path).expect("a file");
    for secret in ["secret", "hidden", "stored", "wrong"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let roles = events(&path)[3].get("roles").map(|roles| format!("{roles:?}"));
    assert!(roles.is_some_and(|roles| roles.contains("root")));
}

#[test]
fn the_file_can_be_rotated() {
    let place = Place::new("audit-rotated");
    let path = place.0.join("audit.json");
    let (_server, mut root) = start(&path);
    root.ok("admin", r#"{"logRotate": "audit"}"#);
    assert_eq!(root.code("admin", r#"{"logRotate": "other"}"#), 2);
    let files = fs::read_dir(&place.0).expect("a directory").count();
    assert_eq!(files, 2);
    let shown: Vec<String> = events(&path).iter().map(shown).collect();
    assert_eq!(shown, ["rotateLog root {} 0", "rotateLog root {} 2"]);
}

#[cfg(target_os = "linux")]
#[test]
fn audited_actions_are_refused_while_the_audit_cannot_be_written() {
    // A device that is always full: the first event is lost, and that is reported in the server's
    // log; no further one happens.
    let server = server(Path::new("/dev/full"));
    let mut client = server.client();
    client.ok("admin", r#"{"createUser": "root", "pwd": "secret", "roles": ["root"]}"#);
    assert!(client.0.log_in("admin", "root", "secret").is_err());
    client.ok("admin", r#"{"ping": 1}"#);
}

#[test]
fn events_that_a_filter_leaves_out_are_not_logged() {
    let place = Place::new("audit-filter");
    let path = place.0.join("audit.json");
    let filter = r#"{"atype": {"$in": ["authenticate", "createCollection"]}, "result": 0}"#;
    let options = |filter: &str| ServerOptions {
        auth: true,
        audit_path: Some(path.clone()),
        audit_filter: Some(extended_json::parse(filter).expect("JSON")),
        listen: Some("127.0.0.1:0".to_owned()),
        ..ServerOptions::default()
    };
    let server = Running::with(&SimDisk::new(1), options(filter));
    let mut root = server.client();
    root.ok("admin", r#"{"createUser": "root", "pwd": "secret", "roles": ["root"]}"#);
    root.0.log_in("admin", "root", "wrong").expect_err("another password");
    root.0.log_in("admin", "root", "secret").expect("the password is right");
    root.ok("shop", r#"{"create": "things"}"#);
    assert_eq!(root.code("shop", r#"{"create": "things", "capped": true, "size": 4096}"#), 48);
    root.ok("shop", r#"{"drop": "things"}"#);
    let kinds: Vec<String> = events(&path).iter().map(shown).collect();
    let [login, made] = &kinds[..] else { panic!("{kinds:?}") };
    assert!(login.starts_with("authenticate") && made.starts_with("createCollection"), "{kinds:?}");
    let frond = frond_vcs::open_on(&SimDisk::new(2).machine(), FrondOptions::default());
    let bound = Server::bind(frond.expect("opens"), options(r#"{"atype": {"$no": 1}}"#));
    let failure = bound.err();
    assert!(matches!(failure, Some(ServerError::AuditFilter(_))), "{failure:?}");
}
