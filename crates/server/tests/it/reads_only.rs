//! Goal: a server that shows what another one writes says that it is a secondary, takes no write of
//! any kind, and shows what there is to those that may read there. Method: what another server left
//! on a disk; then one command of each kind.

use frond_doc::Value;
use frond_server::ServerOptions;
use frond_testkit::SimDisk;

use crate::running::Running;

const NOT_WRITABLE_PRIMARY: i32 = 10107;
const NOT_PRIMARY_NO_SECONDARY_OK: i32 = 13435;

const ANY: &str = r#""$readPreference": {"mode": "secondaryPreferred"}"#;

/// A server that takes no writes, over a database with a version.
fn reader() -> Running {
    let disk = SimDisk::new(1);
    let leader = Running::on_disk(&disk, 10);
    let mut client = leader.client();
    client.ok("shop", r#"{"insert": "items", "documents": [{"_id": 1, "n": 1}]}"#);
    client.ok("shop", r#"{"frondCommit": 1, "message": "first"}"#);
    drop((client, leader));
    Running::with(&disk, ServerOptions { reads_only: true, ..ServerOptions::default() })
}

#[test]
fn a_server_that_reads_is_a_secondary() {
    let server = reader();
    let mut client = server.client();
    let hello = client.ok("admin", r#"{"hello": 1}"#);
    for (name, expected) in [
        ("isWritablePrimary", Some(Value::Boolean(false))),
        ("secondary", Some(Value::Boolean(true))),
        ("readOnly", Some(Value::Boolean(true))),
        ("primary", None),
    ] {
        assert_eq!(hello.get(name), expected, "{name}");
    }
    let status = client.ok("admin", r#"{"replSetGetStatus": 1}"#);
    assert_eq!(status.get("myState"), Some(Value::Int32(2)));
}

#[test]
fn a_server_that_reads_takes_no_write_of_any_kind() {
    let server = reader();
    let mut client = server.client();
    for command in [
        r#"{"insert": "items", "documents": [{"_id": 2}]}"#,
        r#"{"update": "items", "updates": [{"q": {}, "u": {"$set": {"n": 2}}}]}"#,
        r#"{"delete": "items", "deletes": [{"q": {}, "limit": 0}]}"#,
        r#"{"findAndModify": "items", "query": {}, "remove": true}"#,
        r#"{"aggregate": "items", "pipeline": [{"$out": "others"}], "cursor": {}}"#,
        r#"{"aggregate": "items", "pipeline": [{"$merge": "others"}], "cursor": {}}"#,
        r#"{"create": "others"}"#,
        r#"{"createIndexes": "items", "indexes": [{"key": {"n": 1}, "name": "n"}]}"#,
        r#"{"drop": "items"}"#,
        r#"{"dropDatabase": 1}"#,
        r#"{"createUser": "ada", "pwd": "a long password", "roles": []}"#,
        r#"{"frondCommit": 1, "message": "no"}"#,
        r#"{"frondBranch": 1, "branch": "other"}"#,
        r#"{"frondMerge": 1, "merge_in": "main"}"#,
        r#"{"frondReset": 1, "target": "main"}"#,
        r#"{"frondErase": "items", "documents": [1]}"#,
    ] {
        assert_eq!(client.code("shop", command), NOT_WRITABLE_PRIMARY, "{command}");
    }
    let found = format!(r#"{{"find": "items", {ANY}}}"#);
    client.check_documents("shop", &found, &[r#"{"_id": 1, "n": 1}"#]);
}

#[test]
fn a_server_that_reads_shows_what_there_is_to_who_may_read_there() {
    let server = reader();
    let mut client = server.client();
    assert_eq!(client.code("shop", r#"{"find": "items"}"#), NOT_PRIMARY_NO_SECONDARY_OK);
    let linearizable =
        format!(r#"{{"find": "items", "readConcern": {{"level": "linearizable"}}, {ANY}}}"#);
    assert_eq!(client.code("shop", &linearizable), NOT_WRITABLE_PRIMARY);
    let found = format!(r#"{{"find": "items", {ANY}}}"#);
    client.check_documents("shop@main", &found, &[r#"{"_id": 1, "n": 1}"#]);
    let log = client.ok("shop", &format!(r#"{{"frondLog": 1, {ANY}}}"#));
    let commits = log.get("commits").and_then(|commits| commits.as_array()).expect("an array");
    assert_eq!(commits.iter().count(), 1);
}
