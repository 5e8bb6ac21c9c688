//! Goal: a database goes from one line to another through a router while its clients go on, and
//! where it isn't any more it is refused. Method: two servers and a router in this process;
//! commands as drivers send them; the steps of a move by hand, to stop between them. Kills and
//! freezes of real processes are `conformance/router.py`'s.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use frond_server::{Client, Router, RouterOptions, ServerOptions};
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient, json, text};

/// A router before two lines, `default` and `eu`.
struct Routed {
    default: Running,
    eu: Running,
    address: String,
    stop: Box<dyn Fn() + Send + Sync>,
    thread: Option<JoinHandle<()>>,
}

impl Routed {
    fn start() -> Routed {
        let running =
            |seed| Running::recording_events(&SimDisk::new(seed), ServerOptions::default());
        let (default, eu) = (running(1), running(2));
        let insert = format!(
            r#"{{"insert": "lines", "documents": [{{"_id": "eu", "uri": "mongodb://{}"}}]}}"#,
            eu.address
        );
        default.client().ok("config", &insert);
        let options = RouterOptions::of(&format!("mongodb://{}", default.address));
        let router = Router::bind(options).expect("any port");
        let (address, stopper) = (router.address().to_string(), router.stopper());
        let thread = std::thread::spawn(move || router.run().expect("it runs"));
        let stop = Box::new(move || {
            stopper.send_replace(true);
        });
        Routed { default, eu, address, stop, thread: Some(thread) }
    }

    fn client(&self) -> TestClient {
        TestClient(Client::connect(&self.address).expect("it listens"))
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        (self.stop)();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A count, as a router or a line answers it: a router's answers have no moment.
fn check(client: &mut TestClient, database: &str, command: &str, expected: &str) {
    let answer = client.ok(database, command);
    assert_eq!(answer.get("n"), json(expected).get("n"), "{command}: {}", text(&answer));
}

const LSID: &str = r#""lsid": {"id": {"$uuid": "01010101-0101-0101-0101-010101010101"}}"#;
const MOVE: &str = r#"{"movePrimary": "shop", "to": "eu"}"#;

fn insert(id: i32) -> String {
    format!(
        r#"{{"insert": "c", "documents": [{{"_id": {id}, "at": {{"$date": {{"$numberLong": "0"}}}}}}]}}"#
    )
}

fn numbered(id: i32, number: i64) -> String {
    format!(
        r#"{{"insert": "c", "documents": [{{"_id": {id}}}], {LSID}, "txnNumber": {{"$numberLong": "{number}"}}}}"#
    )
}

fn part(id: i32, number: i64, more: &str) -> String {
    let write = numbered(id, number);
    let write = write.strip_suffix('}').expect("a document");
    format!(r#"{write}, "autocommit": false{more}}}"#)
}

/// The documents of a first batch.
fn batch(answer: &frond_doc::DocumentBuf) -> Vec<String> {
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    let batch = cursor.get("firstBatch").and_then(|batch| batch.as_array()).expect("a batch");
    batch.iter().filter_map(|row| Some(text(&row.as_document()?.to_buf()))).collect()
}

/// The requests that mongosh's `sh.status()` sends to a router.
#[test]
fn lines_are_listed_as_shards() {
    let routed = Routed::start();
    let mut client = routed.client();
    let (default, eu) = (&routed.default.address, &routed.eu.address);
    let all = [
        format!(r#"{{"_id":"default","host":"{default}","state":1}}"#),
        format!(r#"{{"_id":"eu","host":"{eu}","state":1}}"#),
    ];
    let mut ask = |command: &str| batch(&client.ok("config", command));
    // The table is read within a second.
    let end = std::time::Instant::now() + Duration::from_secs(20);
    let sorted = r#"{"find": "shards", "filter": {}, "sort": {"_id": 1}}"#;
    while ask(sorted).len() < 2 && std::time::Instant::now() < end {
        std::thread::yield_now();
    }
    assert_eq!(ask(sorted), all);
    assert_eq!(ask(r#"{"find": "shards", "filter": {"_id": "eu"}, "limit": 1}"#), all[1..]);
    let counted = r#"{"aggregate": "shards", "pipeline": [{"$count": "n"}], "cursor": {}}"#;
    assert_eq!(ask(counted), [r#"{"n":2}"#]);
    assert_eq!(ask(r#"{"find": "version", "limit": 1, "singleBatch": true}"#).len(), 1);
    let balancer =
        r#"{"find": "settings", "filter": {"_id": "balancer"}, "projection": {"stopped": 1}}"#;
    assert_eq!(ask(balancer), [r#"{"_id":"balancer","stopped":true}"#]);
    assert_eq!(ask(r#"{"find": "mongos"}"#).len(), 1);
    assert_eq!(ask(r#"{"find": "collections"}"#).len(), 0);
    let balancer = client.ok("admin", r#"{"balancerStatus": 1}"#);
    assert_eq!(balancer.get("mode").and_then(|mode| mode.as_str()), Some("off"));
    // A line by itself has none of it.
    let mut alone = routed.default.client();
    assert_eq!(batch(&alone.ok("config", sorted)).len(), 0);
}

#[test]
fn a_database_moves_with_all_that_it_has() {
    let lines = Routed::start();
    let mut client = lines.client();
    client.ok("shop", &insert(1));
    let indexes = r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"},
        {"key": {"at": 1}, "name": "at", "expireAfterSeconds": 2000000000}]}"#;
    client.ok("shop", indexes);
    client.ok("shop", r#"{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"_id": 1}}]}"#);
    client.ok("shop", r#"{"create": "checked", "validator": {"a": {"$type": "int"}}}"#);
    client.ok("shop", r#"{"create": "times", "timeseries": {"timeField": "t"}}"#);
    let point =
        r#"{"insert": "times", "documents": [{"t": {"$date": "2026-01-01T00:00:00Z"}, "a": 1}]}"#;
    client.ok("shop", point);
    client.ok("shop", r#"{"frondCommit": 1, "message": "first"}"#);
    client.ok("shop", r#"{"frondBranch": 1, "branch": "side"}"#);
    client.ok("shop@side", &insert(2));
    client.ok("shop", &numbered(3, 7));
    client.ok("admin", MOVE);
    client.ok("admin", MOVE);
    for _ in 0..2 {
        // Retryable writes of before the move are known at the new line.
        check(&mut client, "shop", &numbered(3, 7), r#"{"n": 1, "ok": 1.0}"#);
    }
    for mut direct in [lines.client(), lines.eu.client()] {
        check(&mut direct, "shop", r#"{"count": "c"}"#, r#"{"n": 2, "ok": 1.0}"#);
        check(&mut direct, "shop@side", r#"{"count": "c"}"#, r#"{"n": 2, "ok": 1.0}"#);
        check(&mut direct, "shop", r#"{"count": "v"}"#, r#"{"n": 1, "ok": 1.0}"#);
        check(&mut direct, "shop", r#"{"count": "times"}"#, r#"{"n": 1, "ok": 1.0}"#);
        let answer = text(&direct.ok("shop", r#"{"listIndexes": "c"}"#));
        assert!(answer.contains("expireAfterSeconds"), "{answer}");
        let wrong = r#"{"insert": "checked", "documents": [{"a": "no"}]}"#;
        assert!(text(&direct.ok("shop", wrong)).contains("121"));
    }
    let mut old = lines.default.client();
    for command in [r#"{"find": "c"}"#, r#"{"frondStatus": 1}"#, r#"{"dropDatabase": 1}"#] {
        assert_eq!(old.error("shop", command).0, 249, "{command}");
    }
    assert_eq!(old.error("shop", &insert(9)).0, 249);
    // The copy can be dropped at its line, and only there.
    assert_eq!(
        lines.eu.client().error("admin", r#"{"frondHandOver": "shop", "step": "drop"}"#).0,
        20
    );
    old.ok("admin", r#"{"frondHandOver": "shop", "step": "drop"}"#);
    client.ok("admin", r#"{"movePrimary": "shop", "to": "default"}"#);
    check(&mut old, "shop", r#"{"count": "c"}"#, r#"{"n": 2, "ok": 1.0}"#);
    assert_eq!(lines.eu.client().error("shop", r#"{"find": "c"}"#).0, 249);
}

#[test]
fn a_database_that_cannot_move_is_refused_by_name_and_stays_in_use() {
    let lines = Routed::start();
    let mut client = lines.client();
    client.ok("shop", &insert(1));
    client.ok("shop", r#"{"create": "last", "capped": true, "size": 4096}"#);
    let (code, why) = client.error("admin", MOVE);
    assert!(code == 20 && why.contains("shop@main.last is capped"), "{code} {why}");
    client.ok("shop", &insert(2));
    client.ok("shop", r#"{"drop": "last"}"#);
    for (command, expected) in [
        (r#"{"movePrimary": "shop", "to": "us"}"#, 70),
        (r#"{"movePrimary": "nowhere", "to": "eu"}"#, 26),
        (r#"{"movePrimary": "config", "to": "eu"}"#, 72),
        (r#"{"frondAbortMove": "shop"}"#, 26),
    ] {
        assert_eq!(client.error("admin", command).0, expected, "{command}");
    }
    assert_eq!(client.error("shop", MOVE).0, 13);
    assert_eq!(client.error("admin", r#"{"frondHandOver": "shop", "step": "look"}"#).0, 115);
    // Another database of that name is there already.
    lines.eu.client().ok("shop", &insert(7));
    assert_eq!(client.error("admin", MOVE).0, 48);
    client.ok("shop", &insert(3));
    check(&mut client, "shop", r#"{"count": "c"}"#, r#"{"n": 3, "ok": 1.0}"#);
    check(&mut lines.eu.client(), "shop", r#"{"count": "c"}"#, r#"{"n": 1, "ok": 1.0}"#);
}

/// As if the router had been killed at each step: another goes on, or takes it back.
#[test]
fn a_move_that_stopped_goes_on_or_is_taken_back() {
    for stopped in [false, true] {
        for keep_going in [false, true] {
            let lines = Routed::start();
            let mut client = lines.client();
            client.ok("shop", &insert(1));
            let phase = if stopped { "stopped" } else { "copying" };
            let entry = format!(
                r#"{{"insert": "databases", "documents": [{{"_id": "shop", "line": "default",
                     "generation": {{"$numberLong": "4"}},
                     "move": {{"from": "default", "to": "eu", "phase": "{phase}"}}}}]}}"#
            );
            client.ok("config", &entry);
            let receive = r#"{"frondHandOver": "shop", "step": "receive", "generation": 4, "line": "default"}"#;
            lines.eu.client().ok("admin", receive);
            if stopped {
                let leave =
                    r#"{"frondHandOver": "shop", "step": "leave", "generation": 4, "line": "eu"}"#;
                lines.default.client().ok("admin", leave);
            } else {
                client.ok("shop", &insert(2));
            }
            let to_other = r#"{"movePrimary": "shop", "to": "default"}"#;
            assert_eq!(client.error("admin", to_other).0, 117);
            let command = if keep_going { MOVE } else { r#"{"frondAbortMove": "shop"}"# };
            client.ok("admin", command);
            client.ok("shop", &insert(3));
            let count = if stopped { 2 } else { 3 };
            let expected = format!(r#"{{"n": {count}, "ok": 1.0}}"#);
            let (has, hasnt) =
                if keep_going { (&lines.eu, &lines.default) } else { (&lines.default, &lines.eu) };
            check(&mut has.client(), "shop", r#"{"count": "c"}"#, &expected);
            assert_eq!(hasnt.client().error("shop", r#"{"count": "c"}"#).0, 249);
            // Messages that the killed router still sends.
            for step in ["leave", "receive", "take", "left", "stay"] {
                let late =
                    format!(r#"{{"frondHandOver": "shop", "step": "{step}", "generation": 4}}"#);
                for line in [has, hasnt] {
                    assert_eq!(line.client().error("admin", &late).0, 117, "{step}");
                }
            }
            client.ok("shop", &insert(4));
        }
    }
}

#[test]
fn transactions_cursors_and_change_streams_end_with_what_drivers_know() {
    let lines = Routed::start();
    let mut client = lines.client();
    for id in 1..=5 {
        client.ok("shop", &insert(id));
    }
    client.ok("other", &insert(1));
    let watch = r#"{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}"#;
    let stream = client.ok("shop", watch);
    let token =
        stream.get("cursor").and_then(|cursor| cursor.as_document()?.get("postBatchResumeToken"));
    let token =
        token.and_then(|token| token.as_document()?.get("_data")?.as_str().map(str::to_owned));
    let resume = format!(
        r#"{{"aggregate": "c", "pipeline": [{{"$changeStream": {{"resumeAfter": {{"_data": "{}"}}}}}}],
            "cursor": {{}}}}"#,
        token.expect("a token")
    );
    let opened = client.ok("shop", r#"{"find": "c", "batchSize": 2}"#);
    let id = opened.get("cursor").and_then(|cursor| cursor.as_document()?.get("id")?.as_integer());
    let more = format!(
        r#"{{"getMore": {{"$numberLong": "{}"}}, "collection": "c"}}"#,
        id.expect("a cursor")
    );
    client.ok("shop", &part(10, 1, r#", "startTransaction": true"#));
    client.ok("admin", MOVE);
    assert_eq!(client.error("shop", &more).0, 43);
    assert_eq!(client.error("shop", &resume).0, 286);
    let labels = |outcome: (i32, Vec<String>)| (outcome.0, outcome.1.join(" "));
    let outcome = labels(client.labels("shop", &part(11, 1, "")));
    assert_eq!(outcome, (112, "TransientTransactionError".to_owned()));
    let commit = |number: i64| {
        format!(
            r#"{{"commitTransaction": 1, {LSID}, "txnNumber": {{"$numberLong": "{number}"}}, "autocommit": false}}"#
        )
    };
    client.ok("shop", &part(10, 2, r#", "startTransaction": true"#));
    client.ok("admin", &commit(2));
    // One that wrote to the database, and then only elsewhere.
    client.ok("shop", &part(12, 3, r#", "startTransaction": true"#));
    client.ok("admin", r#"{"movePrimary": "shop", "to": "default"}"#);
    let outcome = labels(client.labels("admin", &commit(3)));
    assert_eq!(outcome, (112, "TransientTransactionError".to_owned()));
    check(&mut client, "shop", r#"{"count": "c"}"#, r#"{"n": 6, "ok": 1.0}"#);
}

/// Stops a thread, also if the test fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A writer sends everything twice, while the database goes back and forth.
#[test]
fn writers_go_on_while_it_moves() {
    let lines = Routed::start();
    lines.client().ok("shop", &insert(0));
    let (done, stop) = (AtomicI32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut client = lines.client();
            for number in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                check(
                    &mut client,
                    "shop",
                    &numbered(number, i64::from(number)),
                    r#"{"n": 1, "ok": 1.0}"#,
                );
                check(
                    &mut client,
                    "shop",
                    &numbered(number, i64::from(number)),
                    r#"{"n": 1, "ok": 1.0}"#,
                );
                let find = format!(r#"{{"count": "c", "query": {{"_id": {number}}}}}"#);
                check(&mut client, "shop", &find, r#"{"n": 1, "ok": 1.0}"#);
                done.store(number, Ordering::Relaxed);
            }
        });
        let _stop = StopAtEnd(&stop);
        let mut client = lines.client();
        for to in ["eu", "default", "eu"] {
            let before = done.load(Ordering::Relaxed);
            client.ok("admin", &format!(r#"{{"movePrimary": "shop", "to": "{to}"}}"#));
            while done.load(Ordering::Relaxed) < before + 20 && !writer.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let expected = format!(r#"{{"n": {}, "ok": 1.0}}"#, done.load(Ordering::Relaxed) + 1);
    check(&mut lines.eu.client(), "shop", r#"{"count": "c"}"#, &expected);
}
