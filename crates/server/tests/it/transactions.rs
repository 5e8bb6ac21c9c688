//! Transactions and retryable writes over the wire.
//!
//! Method: commands as drivers send them, by hand, so that each state and each code can be reached;
//! then many clients that move money, with a reader that adds it up, while versions are committed.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use frond_doc::{Value, extended_json};
use frond_server::wire::Message;
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient};

const TRANSIENT: &str = "TransientTransactionError";

/// A session of one client, which sends commands as a driver does.
struct Session {
    client: TestClient,
    id: String,
    number: i64,
    is_first: bool,
}

impl Session {
    fn new(server: &Running, name: u8) -> Session {
        let id = format!("{name:02x}").repeat(16);
        Session { client: server.client(), id, number: 0, is_first: false }
    }

    fn begin(&mut self) {
        self.number += 1;
        self.is_first = true;
    }

    fn lsid(&self) -> String {
        let id = &self.id;
        let parts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-");
        format!(r#""lsid": {{"id": {{"$uuid": "{parts}"}}}}"#)
    }

    fn retryable(&self, command: &str, number: i64) -> String {
        let body = command.trim_end().strip_suffix('}').expect("a document");
        format!(r#"{body}, {}, "txnNumber": {{"$numberLong": "{number}"}}}}"#, self.lsid())
    }

    /// The command as a part of the transaction.
    fn part(&mut self, command: &str) -> String {
        let command = self.retryable(command, self.number);
        let body = command.strip_suffix('}').expect("a document");
        let start =
            if std::mem::take(&mut self.is_first) { r#", "startTransaction": true"# } else { "" };
        format!(r#"{body}, "autocommit": false{start}}}"#)
    }

    fn ok(&mut self, database: &str, command: &str) {
        let command = self.part(command);
        self.client.ok(database, &command);
    }

    fn check(&mut self, database: &str, command: &str, expected: &str) {
        let command = self.part(command);
        self.client.check(database, &command, expected);
    }

    fn error(&mut self, database: &str, command: &str) -> (i32, Vec<String>) {
        let command = self.part(command);
        self.client.labels(database, &command)
    }

    fn commit(&mut self) {
        self.check("admin", r#"{"commitTransaction": 1}"#, r#"{"ok": 1.0}"#);
    }

    fn found(&mut self, database: &str, filter: &str) -> Vec<String> {
        let command = self.part(&format!(r#"{{"find": "c", "filter": {filter}}}"#));
        let answer = self.client.ok(database, &command);
        let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document());
        let batch = cursor.and_then(|cursor| cursor.get("firstBatch")?.as_array());
        let batch = batch.expect("a batch");
        let documents = batch.iter().filter_map(|document| document.as_document());
        documents.map(|document| crate::running::text(&document.to_buf())).collect()
    }
}

fn transient(code: i32) -> (i32, Vec<String>) {
    (code, vec![TRANSIENT.to_owned()])
}

fn plain(code: i32) -> (i32, Vec<String>) {
    (code, Vec::new())
}

const INSERT: &str = r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}]}"#;
const INCREMENT: &str =
    r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}]}"#;

#[test]
fn databases_and_branches_change_together_or_not_at_all() {
    let server = Running::start();
    let mut plain_client = server.client();
    plain_client.ok("shop", INSERT);
    plain_client.ok("shop", r#"{"frondCommit": 1, "message": "first"}"#);
    plain_client.ok("shop", r#"{"frondBranch": 1, "branch": "feature"}"#);
    let mut session = Session::new(&server, 1);
    for commits in [false, true] {
        session.begin();
        for database in ["shop", "shop@feature"] {
            session.check(database, INCREMENT, r#"{"n": 1, "nModified": 1, "ok": 1.0}"#);
        }
        session.check(
            "other",
            r#"{"insert": "new", "documents": [{"_id": 5}]}"#,
            r#"{"n": 1, "ok": 1.0}"#,
        );
        assert_eq!(session.found("shop", r#"{"_id": 1}"#), [r#"{"_id":1,"a":2}"#]);
        for database in ["shop", "shop@feature"] {
            let find = r#"{"find": "c", "filter": {"_id": 1}}"#;
            plain_client.check_documents(database, find, &[r#"{"_id": 1, "a": 1}"#]);
        }
        if commits {
            session.commit();
            session.commit(); // Again: the driver got no answer.
            assert_eq!(session.error("shop", INCREMENT), plain(256));
            assert_eq!(session.error("admin", r#"{"abortTransaction": 1}"#), plain(256));
        } else {
            session.check("admin", r#"{"abortTransaction": 1}"#, r#"{"ok": 1.0}"#);
            assert_eq!(session.error("admin", r#"{"abortTransaction": 1}"#), transient(251));
            assert_eq!(session.error("admin", r#"{"commitTransaction": 1}"#), transient(251));
        }
    }
    for database in ["shop", "shop@feature"] {
        let find = r#"{"find": "c"}"#;
        plain_client.check_documents(database, find, &[r#"{"_id": 1, "a": 2}"#]);
    }
    plain_client.check("other", r#"{"count": "new"}"#, r#"{"n": 1, "ok": 1.0}"#);
}

#[test]
fn a_transaction_that_began_before_a_branch_was_closed_is_run_again_by_drivers() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("shop", INSERT);
    let (mut session, mut other) = (Session::new(&server, 1), Session::new(&server, 2));
    session.begin();
    session.ok("shop", INCREMENT);
    other.begin();
    other.ok("other", INSERT);
    client.ok("shop", r#"{"frondBranch": 1, "branch": "main", "closed": true}"#);
    for began in [&mut session, &mut other] {
        assert_eq!(began.error("admin", r#"{"commitTransaction": 1}"#), transient(112));
    }
    client.check_documents("shop", r#"{"find": "c"}"#, &[r#"{"_id": 1, "a": 1}"#]);
    session.begin();
    assert_eq!(session.error("shop", INCREMENT).0, 371);
    other.begin();
    other.ok("other", INSERT);
    other.commit();
    client.ok("shop", r#"{"frondBranch": 1, "branch": "main", "closed": false}"#);
    client.ok("shop", INCREMENT);
}

/// A number of the engine in `serverStatus`.
fn engine_count(server: &Running, name: &str) -> i64 {
    let status = server.client().ok("admin", r#"{"serverStatus": 1}"#);
    let engine = status.get("frond").and_then(|frond| frond.as_document()?.get("engine"));
    let count = engine.and_then(|engine| engine.as_document()?.get(name)?.as_integer());
    count.expect("it is told")
}

/// Waits until so many commands wait for a transaction.
fn await_waiting(server: &Running, count: i64) {
    while engine_count(server, "waiting") != count {
        std::thread::yield_now();
    }
}

#[test]
fn writes_wait_for_the_end_of_an_open_transaction() {
    let server = Running::start();
    server.client().ok("shop", INSERT);
    let (mut one, mut two) = (Session::new(&server, 1), Session::new(&server, 2));
    for (commits, expected) in [(true, 4), (false, 6)] {
        one.begin();
        one.ok("shop", INCREMENT);
        std::thread::scope(|scope| {
            // The one is a transaction as well, whose first statement this is; the other is by
            // itself.
            scope.spawn(|| {
                two.begin();
                two.ok("shop", INCREMENT);
                two.commit();
            });
            scope.spawn(|| server.client().ok("shop", INCREMENT));
            await_waiting(&server, 2);
            if commits {
                one.commit();
            } else {
                one.ok("admin", r#"{"abortTransaction": 1}"#);
            }
        });
        let expected = format!(r#"{{"_id": 1, "a": {expected}}}"#);
        server.client().check_documents("shop", r#"{"find": "c"}"#, &[&expected]);
    }
    assert_eq!(engine_count(&server, "keyLockWaits"), 4);
    assert!(engine_count(&server, "snapshotsRefreshed") > 0);
}

#[test]
fn all_answers_of_a_transaction_are_of_one_moment() {
    let server = Running::start();
    server
        .client()
        .ok("shop", r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 1}]}"#);
    let mut session = Session::new(&server, 1);
    // The documents it has read are unchanged: it goes on, and sees what was written meanwhile.
    session.begin();
    assert_eq!(session.found("shop", r#"{"_id": 2}"#), [r#"{"_id":2,"a":1}"#]);
    server.client().ok("shop", INCREMENT);
    session.ok("shop", INCREMENT);
    assert_eq!(session.found("shop", r#"{"_id": 1}"#), [r#"{"_id":1,"a":3}"#]);
    session.commit();
    // A document it has read was written: it can't go on.
    session.begin();
    assert_eq!(session.found("shop", r#"{"_id": 1}"#), [r#"{"_id":1,"a":3}"#]);
    server.client().ok("shop", INCREMENT);
    assert_eq!(session.found("shop", r#"{"_id": 1}"#), [r#"{"_id":1,"a":3}"#]);
    assert_eq!(session.error("shop", INCREMENT), transient(112));
    assert_eq!(session.error("shop", INCREMENT), transient(251));
    let left = [r#"{"_id": 1, "a": 4}"#, r#"{"_id": 2, "a": 1}"#];
    server.client().check_documents("shop", r#"{"find": "c"}"#, &left);
}

#[test]
fn a_wait_ends_by_time_by_command_and_in_a_circle() {
    let server = Running::start();
    server
        .client()
        .ok("shop", r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 1}]}"#);
    let other = r#"{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$inc": {"a": 1}}}]}"#;
    let (mut one, mut two) = (Session::new(&server, 1), Session::new(&server, 2));
    one.begin();
    one.ok("shop", INCREMENT);
    let hasty = INCREMENT.replace(r#""c", "#, r#""c", "maxTimeMS": 30, "#);
    assert_eq!(server.client().labels("shop", &hasty), plain(50));
    two.begin();
    assert_eq!(two.error("shop", &hasty), plain(50));
    // No client ends it: the statement's own limit does.
    two.begin();
    assert_eq!(two.error("shop", INCREMENT), transient(112));
    // Another connection aborts the transaction under its statement.
    two.begin();
    let abort = two.retryable(r#"{"abortTransaction": 1}"#, two.number);
    let abort = abort.replace(r#""txnNumber""#, r#""autocommit": false, "txnNumber""#);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| two.error("shop", INCREMENT));
        await_waiting(&server, 1);
        server.client().ok("admin", &abort);
        assert_eq!(waits.join().expect("answered"), transient(251));
    });
    // The older one has what the younger wants, and wants what it has.
    two.begin();
    two.ok("shop", other);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| two.error("shop", INCREMENT));
        await_waiting(&server, 1);
        one.ok("shop", other);
        assert_eq!(waits.join().expect("answered"), transient(112));
    });
    one.commit();
    assert_eq!(engine_count(&server, "deadlocks"), 1);
    let left = [r#"{"_id": 1, "a": 2}"#, r#"{"_id": 2, "a": 2}"#];
    server.client().check_documents("shop", r#"{"find": "c"}"#, &left);
}

#[test]
fn a_disconnected_client_stops_waiting() {
    let server = Running::start();
    server.client().ok("shop", INSERT);
    let (mut one, mut two) = (Session::new(&server, 1), Session::new(&server, 2));
    one.begin();
    one.ok("shop", INCREMENT);
    two.begin();
    for command in [two.part(INCREMENT), INCREMENT.to_owned()] {
        let body = command.strip_suffix('}').expect("a document");
        let body = extended_json::parse(&format!(r#"{body}, "$db": "shop"}}"#)).expect("a command");
        let mut stream = server.stream();
        stream.write_all(&Message::new(body).encode(1, 0)).expect("sends");
        await_waiting(&server, 1);
        drop(stream);
        await_waiting(&server, 0);
    }
    one.commit();
    server.client().check_documents("shop", r#"{"find": "c"}"#, &[r#"{"_id": 1, "a": 2}"#]);
}

#[test]
fn a_statement_that_fails_ends_its_transaction() {
    let server = Running::start();
    server.client().ok("shop", INSERT);
    let mut session = Session::new(&server, 1);
    for (failing, code) in [
        (r#"{"find": "c", "filter": {"$foo": 1}}"#, Some(2)),
        (INSERT, None), // A duplicate key is reported among the answer's errors.
    ] {
        session.begin();
        session.ok("shop", r#"{"insert": "c", "documents": [{"_id": 2}]}"#);
        match code {
            Some(code) => assert_eq!(session.error("shop", failing), plain(code)),
            None => session.ok("shop", failing),
        }
        assert_eq!(session.error("admin", r#"{"commitTransaction": 1}"#), transient(251));
    }
    server.client().check("shop", r#"{"count": "c"}"#, r#"{"n": 1, "ok": 1.0}"#);
}

#[test]
fn commands_outside_the_transaction_are_refused() {
    let server = Running::start();
    let mut session = Session::new(&server, 1);
    session.begin();
    session.ok("shop", INSERT);
    for (database, command, code) in [
        ("shop", r#"{"count": "c"}"#, 263),
        ("shop", r#"{"frondCommit": 1, "message": "x"}"#, 263),
        ("shop", r#"{"drop": "c"}"#, 263),
        ("admin", r#"{"find": "c"}"#, 263),
        ("shop", r#"{"insert": "c", "documents": [{}], "writeConcern": {"w": 1}}"#, 72),
        ("shop", r#"{"find": "c", "readConcern": {"level": "snapshot"}}"#, 72),
    ] {
        assert_eq!(session.error(database, command), plain(code), "{command}");
    }
    session.commit(); // What was refused before it began did no harm.
    for (command, code) in [
        (r#"{"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}}"#, 263),
        (r#"{"aggregate": "c", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}}"#, 263),
        (r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#, 263),
    ] {
        session.begin();
        assert_eq!(session.error("shop", command), plain(code), "{command}");
        assert_eq!(session.error("admin", r#"{"commitTransaction": 1}"#), transient(251));
    }
    session.begin();
    assert_eq!(
        session.error("shop", r#"{"find": "c", "readConcern": {"level": "linearizable"}}"#),
        plain(72)
    );
    let find = session.retryable(r#"{"find": "c"}"#, 99);
    assert_eq!(session.client.labels("shop", &find), plain(50768));
}

#[test]
fn a_transaction_makes_collections_and_indexes() {
    let server = Running::start();
    server.client().ok("shop", r#"{"insert": "old", "documents": [{"_id": 1}]}"#);
    let mut session = Session::new(&server, 1);
    session.begin();
    session.ok("shop", r#"{"create": "c"}"#);
    session.ok(
        "shop",
        r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1", "unique": true}]}"#,
    );
    session.ok(
        "shop",
        r#"{"insert": "c", "documents": [{"_id": 1, "a": [1, 2]}, {"_id": 2, "a": 3}]}"#,
    );
    // Two elements of one array fulfil this: the index must know that it is multikey.
    let filter = r#"{"a": {"$gt": 1, "$lt": 2}}"#;
    assert_eq!(session.found("shop", filter), [r#"{"_id":1,"a":[1,2]}"#]);
    assert_eq!(session.found("shop", r#"{"a": 3}"#), [r#"{"_id":2,"a":3}"#]);
    session.ok("shop", r#"{"update": "c", "updates": [{"q": {"a": 3}, "u": {"$set": {"a": 4}}}]}"#);
    session.ok("shop", r#"{"delete": "c", "deletes": [{"q": {"a": 2}, "limit": 1}]}"#);
    session.commit();
    let mut client = server.client();
    client.check_documents("shop", r#"{"find": "c"}"#, &[r#"{"_id": 2, "a": 4}"#]);
    client.check_documents("shop", r#"{"find": "c", "hint": "a_1"}"#, &[r#"{"_id": 2, "a": 4}"#]);
    // A collection that exists already can only be made again without a transaction.
    client.ok("shop", r#"{"create": "c"}"#);
    session.begin();
    assert_eq!(session.error("shop", r#"{"create": "c"}"#), plain(48));
    session.begin();
    assert_eq!(session.error("shop", r#"{"create": "v", "viewOn": "c"}"#), plain(263));
}

#[test]
fn cursors_belong_to_their_transaction() {
    let server = Running::start();
    let documents: Vec<String> = (0..10).map(|id| format!(r#"{{"_id": {id}, "a": 1}}"#)).collect();
    let insert = format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(","));
    server.client().ok("shop", &insert);
    let mut session = Session::new(&server, 1);
    session.begin();
    let find = session.part(r#"{"find": "c", "batchSize": 2}"#);
    let answer = session.client.ok("shop", &find);
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    let id = cursor.get("id").and_then(|id| id.as_integer()).expect("an id");
    let more =
        format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c", "batchSize": 2}}"#);
    let body = more.strip_suffix('}').expect("a document");
    let outside = format!("{body}, {}}}", session.lsid());
    assert_eq!(session.client.labels("shop", &outside), plain(50741));
    session.ok("shop", r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}"#);
    session.ok("shop", &more);
    session.commit();
    assert_eq!(session.client.labels("shop", &outside), plain(43));
}

#[test]
fn a_stopping_server_ends_waits_for_transactions() {
    let server = Running::start();
    server.client().ok("test", r#"{"insert": "a", "documents": [{"_id": 1}]}"#);
    let set = r#"{"update": "a", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"v": 1}}}]}"#;
    let (mut first, mut second) = (Session::new(&server, 1), Session::new(&server, 2));
    first.begin();
    first.ok("test", set);
    // In a transaction and outside of one; the last waits for both of the others.
    second.begin();
    let mut alone = server.client();
    std::thread::scope(|scope| {
        scope.spawn(|| second.ok("test", set));
        await_waiting(&server, 1);
        scope.spawn(|| alone.check("test", set, r#"{"n": 1, "nModified": 1, "ok": 1.0}"#));
        await_waiting(&server, 2);
        // Asserts that the server stops well. Both are answered as where the first was aborted: had
        // the server waited for that one to end, they would get the answer that it stops.
        drop(server);
    });
}

#[test]
fn sessions_that_end_take_their_transactions_with_them() {
    let server = Running::start();
    let mut session = Session::new(&server, 1);
    for command in [
        format!(r#"{{"endSessions": [{}]}}"#, lsid_of(&session)),
        format!(r#"{{"killSessions": [{}]}}"#, lsid_of(&session)),
        r#"{"killAllSessions": []}"#.to_owned(),
    ] {
        session.begin();
        session.ok("shop", INSERT);
        server.client().ok("admin", &command);
        assert_eq!(session.error("admin", r#"{"commitTransaction": 1}"#), transient(251));
    }
    // A newer transaction ends the one before, and an older number is refused.
    session.begin();
    session.ok("shop", INSERT);
    session.begin();
    session.ok("shop", INSERT);
    session.number -= 1;
    assert_eq!(session.error("admin", r#"{"commitTransaction": 1}"#), plain(225));
    session.number += 1;
    session.is_first = true;
    assert_eq!(session.error("shop", INSERT), plain(117));
    session.commit();
    server.client().check("shop", r#"{"count": "c"}"#, r#"{"n": 1, "ok": 1.0}"#);
}

fn lsid_of(session: &Session) -> String {
    session.lsid().strip_prefix(r#""lsid": "#).expect("a field").to_owned()
}

#[test]
fn the_outcome_of_a_commit_is_known_after_a_crash() {
    let disk = SimDisk::new(1);
    let server = Running::on_disk(&disk, 10);
    let mut session = Session::new(&server, 1);
    let insert = session.retryable(INSERT, 7);
    let modify =
        r#"{"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"a": 1}}, "new": true}"#;
    let modify = session.retryable(modify, 8);
    session.client.check("shop", &insert, r#"{"n": 1, "ok": 1.0}"#);
    session.client.check("shop", &insert, r#"{"n": 1, "retriedStmtIds": [0], "ok": 1.0}"#);
    session.client.ok("shop", &modify);
    let mut other = Session::new(&server, 2);
    other.begin();
    other.ok("shop", r#"{"insert": "c", "documents": [{"_id": 2}]}"#);
    other.commit();
    let after = disk.crash();
    server.abandon();
    let server = Running::on_disk(&after, 10);
    (session.client, other.client) = (server.client(), server.client());
    let expected = r#"{"lastErrorObject": {"n": 1, "updatedExisting": true},
        "value": {"_id": 1, "a": 2}, "retriedStmtIds": [0], "ok": 1.0}"#;
    session.client.check("shop", &modify, expected);
    assert_eq!(session.client.labels("shop", &insert), plain(225));
    other.commit();
    other.is_first = true;
    assert_eq!(other.error("shop", INSERT), plain(256));
    let expected = [r#"{"_id": 1, "a": 2}"#, r#"{"_id": 2}"#];
    server.client().check_documents("shop", r#"{"find": "c"}"#, &expected);
}

const CLIENTS: u8 = 32;
const TRANSFERS: usize = 8;
const ACCOUNTS: usize = 12;

#[test]
fn money_is_moved_and_never_made() {
    let server = Running::start();
    let documents: Vec<String> =
        (0..ACCOUNTS).map(|id| format!(r#"{{"_id": {id}, "a": 100}}"#)).collect();
    let insert = format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(","));
    server.client().ok("bank", &insert);
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (server, finished) = (&server, &finished);
        let clients: Vec<_> = (1..=CLIENTS)
            .map(|name| scope.spawn(move || move_money(&mut Session::new(server, name), name)))
            .collect();
        let reader = scope.spawn(move || {
            let mut client = server.client();
            let sum = r#"{"aggregate": "c", "cursor": {}, "pipeline": [
                {"$group": {"_id": null, "sum": {"$sum": "$a"}}}]}"#;
            let expected = format!(r#"{{"_id": null, "sum": {}}}"#, ACCOUNTS * 100);
            while !finished.load(Ordering::Relaxed) {
                client.check_documents("bank", sum, &[&expected]);
            }
        });
        let versions = scope.spawn(move || {
            let mut client = server.client();
            while !finished.load(Ordering::Relaxed) {
                client.ok("bank", r#"{"insert": "log", "documents": [{}]}"#);
                client.ok("bank", r#"{"frondCommit": 1, "message": "x"}"#);
            }
        });
        let results: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        finished.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.expect("a client is content"));
        reader.join().expect("the sum is constant");
        versions.join().expect("versions are committed");
    });
    let status = server.client().ok("admin", r#"{"serverStatus": 1}"#);
    let transactions = status.get("transactions").and_then(|part| part.as_document());
    let committed = transactions.and_then(|part| part.get("totalCommitted"));
    let expected = Value::Int64(i64::from(CLIENTS) * TRANSFERS as i64);
    assert_eq!(committed, Some(expected));
}

fn move_money(session: &mut Session, name: u8) {
    let mut random = frond_testkit::random::Random::new(u64::from(name));
    for _ in 0..TRANSFERS {
        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
        while !transfer(session, from, to) {}
    }
}

/// Tries a transfer as a driver does; returns whether it was committed.
fn transfer(session: &mut Session, from: usize, to: usize) -> bool {
    session.begin();
    for (account, sum) in [(from, -1), (to, 1)] {
        let update = format!(
            r#"{{"update": "c", "updates": [{{"q": {{"_id": {account}}}, "u": {{"$inc": {{"a": {sum}}}}}}}]}}"#
        );
        if !done(session, "bank", &update) {
            return false;
        }
    }
    done(session, "admin", r#"{"commitTransaction": 1}"#)
}

fn done(session: &mut Session, database: &str, command: &str) -> bool {
    let command = session.part(command);
    match session.client.0.command(database, crate::running::json(&command).view()) {
        Ok(_) => true,
        Err(frond_server::ClientError::Command { answer, .. }) => {
            let text = crate::running::text(&answer);
            assert!(text.contains(TRANSIENT), "{text}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn each_statement_of_a_write_has_a_name_of_its_own() {
    let server = Running::start();
    let mut session = Session::new(&server, 1);
    let documents = r#""documents": [{"_id": 1}, {"_id": 2}]"#;
    for (ids, code) in [
        (r#""stmtIds": [3, 3]"#, 72),
        (r#""stmtIds": [3]"#, 16),
        (r#""stmtIds": [3, 4, 5]"#, 16),
        (r#""stmtIds": [3, 4], "stmtId": 1"#, 72),
        (r#""stmtId": 2147483647"#, 2),
    ] {
        let command = format!(r#"{{"insert": "c", {documents}, {ids}}}"#);
        let command = session.retryable(&command, 1);
        assert_eq!(session.client.error("test", &command).0, code, "{ids}");
    }
    let command = format!(r#"{{"insert": "c", {documents}, "stmtIds": [4, 3]}}"#);
    let command = session.retryable(&command, 1);
    session.client.check("test", &command, r#"{"n": 2, "ok": 1.0}"#);
    let again = r#"{"n": 2, "retriedStmtIds": [4, 3], "ok": 1.0}"#;
    session.client.check("test", &command, again);
}
