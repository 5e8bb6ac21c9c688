//! Errors that clients get when a sync of the log fails: that the outcome is unknown, until the
//! server was started again.
//!
//! Method: the disk fails the sync of the client's write, whatever the server writes of its own
//! meanwhile. The same commands are sent again to the server that is closed for writing, and to one
//! that is started on what the disk holds: after the end of the process alone, and after a power
//! cut, which keeps the transaction or doesn't.

use frond_doc::{DocumentBuf, Value};
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient};

const TRANSIENT: &str = "TransientTransactionError";
const RETRYABLE: &str = "RetryableWriteError";
const SESSION: &str = r#""lsid": {"id": {"$uuid": "01010101-0101-0101-0101-010101010101"}}"#;
const UPDATE: &str = r#"{"update": "c",
    "updates": [{"q": {"_id": "counter"}, "u": {"$inc": {"n": 1}}}]}"#;
/// A text in the key of the counter, and in nothing else that the server writes.
const WRITTEN: &[u8] = b"counter";

fn start(disk: &SimDisk) -> Running {
    Running::on_disk(disk, 100)
}

/// The command as a write, or part of a transaction, of the session.
fn with_number(command: &str, number: i64, more: &str) -> String {
    let body = command.strip_suffix('}').expect("a document");
    format!(r#"{body}, {SESSION}, "txnNumber": {{"$numberLong": "{number}"}}{more}}}"#)
}

fn part(command: &str, more: &str) -> String {
    with_number(command, 1, &format!(r#", "autocommit": false{more}"#))
}

fn commit() -> String {
    part(r#"{"commitTransaction": 1}"#, "")
}

/// The counter that the writes increment.
fn counter(client: &mut TestClient) -> i64 {
    let answer = client.ok("test", r#"{"find": "c", "filter": {"_id": "counter"}}"#);
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document());
    let batch = cursor.and_then(|cursor| cursor.get("firstBatch")?.as_array());
    let document = batch.and_then(|batch| batch.iter().next()?.as_document());
    document.and_then(|document| document.get("n")?.as_integer()).expect("the document is there")
}

fn field(answer: &DocumentBuf, path: &str) -> Option<Value<'static>> {
    let mut document = answer.view();
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    for name in parents.split('.').filter(|name| !name.is_empty()) {
        document = document.get(name)?.as_document()?;
    }
    match document.get(last)? {
        Value::Boolean(is) => Some(Value::Boolean(is)),
        other => other.as_integer().map(Value::Int64),
    }
}

/// A server with a counter that stands at 0, and one of its clients.
fn with_counter(disk: &SimDisk) -> (Running, TestClient) {
    let server = start(disk);
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": "counter", "n": 0}]}"#);
    (server, client)
}

#[test]
fn a_commit_whose_sync_fails_is_unknown_until_the_next_start() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..24 {
        let disk = SimDisk::new(seed);
        let (server, mut client) = with_counter(&disk);
        client.ok("test", &part(UPDATE, r#", "startTransaction": true"#));
        disk.fail_sync_of(WRITTEN);
        for _ in 0..3 {
            let answer = client.labels("admin", &commit());
            assert_eq!(answer, (91, vec![RETRYABLE.to_owned()]), "seed {seed}");
        }
        let abort = part(r#"{"abortTransaction": 1}"#, "");
        assert_eq!(client.labels("admin", &abort), (91, vec![RETRYABLE.to_owned()]));
        assert_eq!(client.labels("test", &part(UPDATE, "")), (91, vec![]), "never transient");
        assert_eq!(counter(&mut client), 0, "what is unknown isn't visible");
        let is_killed = seed % 3 == 0;
        let after = if is_killed { disk.kill() } else { disk.crash() };
        server.abandon();

        let server = start(&after);
        let mut client = server.client();
        let found = counter(&mut client);
        if found == 1 {
            kept += 1;
            client.ok("admin", &commit());
        } else {
            lost += 1;
            assert!(!is_killed, "the write reached the file");
            let answer = client.labels("admin", &commit());
            assert_eq!(answer, (251, vec![TRANSIENT.to_owned()]), "seed {seed}");
        }
        assert_eq!(counter(&mut client), found, "seed {seed}");
    }
    assert!(0 < kept && 0 < lost, "{kept} kept, {lost} lost");
}

#[test]
fn a_retryable_write_whose_sync_fails_is_done_once_by_the_next_start() {
    let find_and_modify =
        r#"{"findAndModify": "c", "query": {"_id": "counter"}, "update": {"$inc": {"n": 1}}}"#;
    let bulk = r#"{"bulkWrite": 1, "nsInfo": [{"ns": "test.c"}],
        "ops": [{"update": 0, "filter": {"_id": "counter"}, "updateMods": {"$inc": {"n": 1}}}]}"#;
    for (database, command) in [("test", UPDATE), ("test", find_and_modify), ("admin", bulk)] {
        for seed in 0..8 {
            let disk = SimDisk::new(seed);
            let (server, mut client) = with_counter(&disk);
            let command = with_number(command, 1, "");
            disk.fail_sync_of(WRITTEN);
            let answer = client.labels(database, &command);
            assert_eq!(answer, (91, vec![RETRYABLE.to_owned()]), "{command}");
            for _ in 0..2 {
                let answer = client.labels(database, &command);
                assert_eq!(answer, (10107, vec![RETRYABLE.to_owned()]), "{command}");
            }
            assert_eq!(counter(&mut client), 0);
            let after = if seed % 2 == 0 { disk.kill() } else { disk.crash() };
            server.abandon();
            let server = start(&after);
            let mut client = server.client();
            for _ in 0..2 {
                client.ok(database, &command);
                assert_eq!(counter(&mut client), 1, "{command}");
            }
        }
    }
}

#[test]
fn every_write_is_refused_alike() {
    for (database, command) in [
        ("test", r#"{"insert": "c", "documents": [{}, {}]}"#),
        ("test", r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}"#),
        ("test", r#"{"create": "d"}"#),
        ("test", r#"{"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n"}]}"#),
        ("test", r#"{"collMod": "c", "validator": {"n": {"$gte": 0}}}"#),
        ("test", r#"{"drop": "c"}"#),
        ("test", r#"{"dropDatabase": 1}"#),
        ("admin", r#"{"renameCollection": "test.c", "to": "test.d"}"#),
        ("test", r#"{"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}}"#),
        ("test", r#"{"frondCommit": 1, "message": "m"}"#),
    ] {
        let disk = SimDisk::new(1);
        let (server, mut client) = with_counter(&disk);
        disk.fail_sync_after(0);
        // Packs or the log: nothing was written before the first, and the server can't know after
        // the second.
        let (code, labels) = client.labels(database, command);
        assert!([91, 10107].contains(&code), "{command}: {code}");
        assert!(labels.is_empty(), "{command}: {labels:?}");
        assert_eq!(client.labels(database, command).0, 10107, "{command}");
        assert_eq!(counter(&mut client), 0, "{command}");
        disk.crash();
        server.abandon();
    }
}

#[test]
fn a_closed_server_says_that_it_is_no_primary() {
    let disk = SimDisk::new(1);
    let (server, mut client) = with_counter(&disk);
    let is = |answer: &DocumentBuf, path: &str, expected: bool| {
        assert_eq!(field(answer, path), Some(Value::Boolean(expected)), "{path}: {answer:?}");
    };
    let outcome_of = |client: &mut TestClient, is_primary: bool| {
        let hello = client.ok("admin", r#"{"hello": 1}"#);
        is(&hello, "isWritablePrimary", is_primary);
        is(&hello, "secondary", !is_primary);
        assert_eq!(hello.get("primary").is_some(), is_primary);
        is(&client.ok("admin", r#"{"isMaster": 1}"#), "ismaster", is_primary);
        let status = client.ok("admin", r#"{"serverStatus": 1}"#);
        is(&status, "frond.health.ok", is_primary);
        is(&status, "repl.isWritablePrimary", is_primary);
        let faults = i64::from(!is_primary);
        assert_eq!(field(&status, "frond.engine.faults"), Some(Value::Int64(faults)));
        let log = client.ok("admin", r#"{"getLog": "startupWarnings"}"#);
        // One more says that everybody may do everything.
        assert_eq!(field(&log, "totalLinesWritten"), Some(Value::Int64(1 + faults)));
        let state = client.ok("admin", r#"{"replSetGetStatus": 1}"#);
        assert_eq!(field(&state, "myState"), Some(Value::Int64(1 + faults)));
        (hello, status)
    };
    outcome_of(&mut client, true);
    disk.fail_sync_after(0);
    client.labels("test", r#"{"insert": "c", "documents": [{}]}"#);
    let (hello, status) = outcome_of(&mut client, false);
    assert_eq!(field(&hello, "topologyVersion.counter"), Some(Value::Int64(1)));
    let health = status.get("frond").and_then(|frond| frond.as_document()?.get("health"));
    let health = health.and_then(|health| health.as_document()).expect("a section");
    let reason = health.get("reason").and_then(|reason| reason.as_str()).expect("a reason");
    assert!(reason.contains("log-") && reason.contains("simulated failure"), "{reason}");
    client.ok("admin", r#"{"ping": 1}"#);
    assert_eq!(counter(&mut client), 0, "reads go on");
    // A transaction that reads goes on, too; one that would write is refused at once.
    let find = r#"{"find": "c"}"#;
    client.ok("test", &part(find, r#", "startTransaction": true"#));
    let reply = client.labels("test", &part(UPDATE, ""));
    assert_eq!(reply, (10107, vec![TRANSIENT.to_owned()]));
    disk.crash();
    server.abandon();
}
