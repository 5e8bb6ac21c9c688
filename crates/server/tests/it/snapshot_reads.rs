//! Reads at level `snapshot` outside of transactions: those that name one moment see the same.
//!
//! *Method*: a client reads in every way there is and remembers answers and time. Then the data are
//! changed in every way there is, by others, folded and collected; after each change the same
//! commands at that time must answer the same, byte by byte. Once step by step, once with writers
//! that go on meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use frond_doc::{DocumentBuf, Value};
use frond_server::ServerOptions;
use frond_store::io::{Clock, Machine};
use frond_testkit::{Random, SimClock, SimDisk};

use crate::running::{Running, TestClient};

/// The reads, with the database of each.
const READS: &[(&str, &str)] = &[
    ("shop", r#""find": "c", "sort": {"_id": 1}"#),
    ("shop", r#""find": "c", "filter": {"n": {"$gte": 3}}, "sort": {"n": 1, "_id": 1}"#),
    ("shop", r#""find": "seen", "sort": {"_id": 1}"#),
    ("shop", r#""find": "large", "sort": {"_id": 1}"#),
    ("shop", r#""distinct": "c", "key": "n""#),
    (
        "shop",
        r#""aggregate": "c", "cursor": {}, "pipeline": [
            {"$lookup": {"from": "d", "localField": "n", "foreignField": "n", "as": "d"}},
            {"$unionWith": "seen"}, {"$sort": {"_id": 1, "n": 1}}]"#,
    ),
    (
        "shop",
        r#""aggregate": "c", "cursor": {}, "pipeline": [
            {"$group": {"_id": null, "count": {"$sum": 1}, "sum": {"$sum": "$n"}}}]"#,
    ),
    ("shop@dev", r#""find": "c", "sort": {"_id": 1}"#),
    ("shop@v1", r#""find": "c", "sort": {"_id": 1}"#),
];

/// The changes; some undo others, so that the list can be run again.
const CHANGES: &[(&str, &str)] = &[
    ("shop", r#"{"update": "c", "updates": [{"q": {}, "u": {"$inc": {"n": 1}}, "multi": true}]}"#),
    ("shop", r#"{"update": "large", "updates": [{"q": {}, "u": {"$push": {"a": 1}}}]}"#),
    ("shop", r#"{"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n"}]}"#),
    ("shop", r#"{"insert": "c", "documents": [{"n": 2}, {"n": 40}]}"#),
    ("admin", r#"{"fsync": 1}"#),
    ("shop", r#"{"delete": "c", "deletes": [{"q": {"n": 40}, "limit": 0}]}"#),
    ("shop", r#"{"dropIndexes": "c", "index": "n"}"#),
    ("shop", r#"{"collMod": "seen", "viewOn": "d", "pipeline": []}"#),
    ("shop", r#"{"frondCommit": 1, "message": "more"}"#),
    ("shop@dev", r#"{"insert": "c", "documents": [{"n": 50}]}"#),
    ("shop", r#"{"frondMerge": 1, "merge_in": "dev"}"#),
    ("admin", r#"{"frondGc": 1}"#),
    ("admin", r#"{"renameCollection": "shop.c", "to": "shop.other"}"#),
    ("shop", r#"{"insert": "c", "documents": [{"_id": 1, "n": -1}]}"#),
    ("shop", r#"{"drop": "d"}"#),
    ("shop", r#"{"frondBranch": 1, "delete": "dev", "forceDelete": true}"#),
    ("admin", r#"{"fsync": 1}"#),
    ("admin", r#"{"frondGc": 1}"#),
    ("shop", r#"{"dropDatabase": 1}"#),
    ("shop", r#"{"insert": "c", "documents": [{"_id": 1, "n": "new"}]}"#),
    ("admin", r#"{"frondGc": 1}"#),
];

fn fill(client: &mut TestClient) {
    let documents: Vec<String> =
        (0..20).map(|id| format!(r#"{{"_id": {id}, "n": {}}}"#, id % 7)).collect();
    let documents = documents.join(", ");
    client.ok("shop", &format!(r#"{{"insert": "c", "documents": [{documents}]}}"#));
    client.ok("shop", &format!(r#"{{"insert": "d", "documents": [{documents}]}}"#));
    let numbers = vec!["12345"; 20_000].join(", ");
    let large = format!(r#"{{"insert": "large", "documents": [{{"_id": 1, "a": [{numbers}]}}]}}"#);
    client.ok("shop", &large);
    let view = r#"{"create": "seen", "viewOn": "c", "pipeline": [{"$match": {"n": 3}}]}"#;
    client.ok("shop", view);
    client.ok("shop", r#"{"frondCommit": 1, "message": "first"}"#);
    client.ok("shop", r#"{"frondTag": 1, "tag": "v1"}"#);
    client.ok("shop", r#"{"frondBranch": 1, "branch": "dev"}"#);
    client.ok("shop@dev", r#"{"insert": "c", "documents": [{"_id": 100, "n": 3}]}"#);
}

/// Reads at a time, or now; returns what was answered, and the time.
fn read(client: &mut TestClient, (database, body): (&str, &str), time: Option<u64>) -> Read {
    let at = time.map_or(String::new(), |time| {
        let (seconds, count) = (time >> 32, time as u32);
        format!(r#", "atClusterTime": {{"$timestamp": {{"t": {seconds}, "i": {count}}}}}"#)
    });
    let command = format!(r#"{{{body}, "readConcern": {{"level": "snapshot"{at}}}}}"#);
    let answer = client.ok(database, &command);
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document());
    let place = cursor.unwrap_or(answer.view());
    let content = place.get("firstBatch").or(answer.get("values")).expect("documents");
    let content = match content.as_array() {
        // Their order is that of the index or the scan that is chosen.
        Some(values) if answer.get("values").is_some() => {
            let mut values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
            values.sort_unstable();
            frond_doc::document! { "content": values.join(", ").as_str() }
        }
        _ => frond_doc::document! { "content": content },
    };
    match place.get("atClusterTime") {
        Some(Value::Timestamp(at)) => Read { content, time: at.0 },
        other => panic!("{command}: {other:?}"),
    }
}

struct Read {
    content: DocumentBuf,
    time: u64,
}

/// Reads all, the first now and the others at its time.
fn read_all(client: &mut TestClient, time: Option<u64>) -> (u64, Vec<DocumentBuf>) {
    let mut time = time;
    let mut contents = Vec::new();
    for wanted in READS {
        let found = read(client, *wanted, time);
        assert_eq!(found.time, *time.get_or_insert(found.time));
        contents.push(found.content);
    }
    (time.expect("something is read"), contents)
}

#[test]
fn snapshot_reads_repeat_whatever_happens() {
    let server = Running::start();
    let (mut reader, mut writer) = (server.client(), server.client());
    fill(&mut writer);
    let mut kept = vec![read_all(&mut reader, None)];
    for (number, (database, change)) in CHANGES.iter().enumerate() {
        writer.ok(database, change);
        for (time, contents) in &kept {
            let (_, again) = read_all(&mut reader, Some(*time));
            for ((wanted, content), again) in READS.iter().zip(contents).zip(&again) {
                assert!(content == again, "{wanted:?} after {change}");
            }
        }
        // While all that is read is there, more moments are kept.
        if number < 12 && number.is_multiple_of(3) {
            kept.push(read_all(&mut reader, None));
        }
    }
    let all: Vec<&Vec<DocumentBuf>> = kept.iter().map(|(_, contents)| contents).collect();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "every moment shows something else");
}

#[test]
fn writers_that_go_on_change_nothing_that_was_read() {
    let server = Running::start();
    let stop = AtomicBool::new(false);
    let mut client = server.client();
    fill(&mut client);
    thread::scope(|scope| {
        let (server, stop) = (&server, &stop);
        for writer in 0..3 {
            scope.spawn(move || {
                let mut client = server.client();
                let mut random = Random::new(writer);
                while !stop.load(Ordering::Relaxed) {
                    change(&mut client, &mut random);
                    thread::sleep(std::time::Duration::from_millis(2));
                }
            });
        }
        let _stops = Stops(stop);
        // A moment's content is the one that was read first.
        let mut kept: Vec<(u64, Vec<DocumentBuf>)> = Vec::new();
        for round in 0..40 {
            kept.push(read_all(&mut client, None));
            for (time, contents) in kept.iter().rev().step_by(5) {
                let (_, again) = read_all(&mut client, Some(*time));
                for ((wanted, content), again) in READS.iter().zip(contents).zip(&again) {
                    let same = content == again;
                    assert!(same, "{round}, {time}: {wanted:?}\n{content:?}\n{again:?}");
                }
            }
            if round % 10 == 9 {
                client.ok("admin", r#"{"fsync": 1}"#);
                client.ok("admin", r#"{"frondGc": 1}"#);
            }
        }
    });
}

/// Stops the writers when it goes, also where a comparison fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Changes something; conflicts with other writers are none of this test's business.
fn change(client: &mut TestClient, random: &mut Random) {
    let (id, n) = (random.below(20), random.below(9));
    let command = match random.below(14) {
        0 => r#"{"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n"}]}"#.to_owned(),
        1 => r#"{"dropIndexes": "c", "index": "n"}"#.to_owned(),
        2 => r#"{"frondCommit": 1, "message": "more"}"#.to_owned(),
        3 => format!(r#"{{"delete": "c", "deletes": [{{"q": {{"_id": {id}}}, "limit": 1}}]}}"#),
        4 => r#"{"update": "large", "updates": [{"q": {}, "u": {"$inc": {"a.7": 1}}}]}"#.to_owned(),
        5..=7 => format!(
            r#"{{"update": "d", "updates": [{{"q": {{"_id": {id}}}, "u": {{"$set": {{"n": {n}}}}},
                "upsert": true}}]}}"#
        ),
        _ => format!(
            r#"{{"update": "c", "updates": [{{"q": {{"_id": {id}}}, "u": {{"$set": {{"n": {n}}}}},
                "upsert": true}}]}}"#
        ),
    };
    let code = client.code("shop", &command);
    // No such index, nothing to commit.
    assert!(matches!(code, 0 | 2 | 27 | 112), "{command}: {code}");
}

#[test]
fn a_cursor_has_its_time_in_every_batch() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client);
    let find = r#"{"find": "c", "batchSize": 5, "readConcern": {"level": "snapshot"}}"#;
    let answer = client.ok("shop", find);
    let time_of = |answer: &DocumentBuf| {
        let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("one");
        let id = cursor.get("id").and_then(|id| id.as_integer()).expect("an id");
        (cursor.get("atClusterTime").map(|time| time.to_buf()), id)
    };
    let (time, id) = time_of(&answer);
    assert!(time.is_some());
    // Drivers name the session's moment again.
    let more = format!(
        r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c",
            "readConcern": {{"level": "snapshot"}}}}"#
    );
    assert_eq!(time_of(&client.ok("shop", &more)), (time, 0));
    let plain = client.ok("shop", r#"{"find": "c"}"#);
    assert_eq!(time_of(&plain).0, None);
}

#[test]
fn moments_that_are_not_kept_or_not_come_are_refused() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client);
    client.ok("admin", r#"{"setParameter": 1, "minSnapshotHistoryWindowInSeconds": 0}"#);
    let wanted = ("shop", r#""find": "c", "sort": {"_id": 1}"#);
    let found = read(&mut client, wanted, None);
    client.ok("shop", r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}"#);
    let again = read(&mut client, wanted, Some(found.time));
    assert!(again.content == found.content, "nothing was folded yet");
    let at = |seconds: u64, count: u64| {
        format!(
            r#"{{"find": "c", "readConcern": {{"level": "snapshot",
                "atClusterTime": {{"$timestamp": {{"t": {seconds}, "i": {count}}}}}}}}}"#
        )
    };
    let at_found = at(found.time >> 32, found.time & 0xffff_ffff);
    // A thread that has answered may keep its snapshot for a moment, and a flush keeps what that
    // has.
    let is_refused = (0..1000).any(|_| {
        client.ok(
            "shop",
            r#"{"update": "d", "updates": [{"q": {}, "u": {"$inc": {"n": 1}}, "upsert": true}]}"#,
        );
        client.ok("admin", r#"{"fsync": 1}"#);
        client.code("shop", &at_found) != 0
    });
    assert!(is_refused, "it is kept for good");
    let (code, message) = client.error("shop", &at_found);
    assert_eq!(code, 239, "{message}");
    assert!(message.contains("older than the oldest available timestamp"), "{message}");
    assert_eq!(client.error("shop", &at(4_000_000_000, 1)).0, 72);
    assert_eq!(client.error("shop", &at(0, 0)).0, 72);
    // One that hasn't come is settled: what is written later isn't seen there.
    let now = read(&mut client, wanted, None).time;
    let ahead = now + 1000;
    let empty = read(&mut client, wanted, Some(ahead));
    client.ok("shop", r#"{"insert": "c", "documents": [{"_id": 5}]}"#);
    assert!(read(&mut client, wanted, Some(ahead)).content == empty.content);
    for seconds in ["-1", "1.5", "100000000"] {
        let set =
            format!(r#"{{"setParameter": 1, "minSnapshotHistoryWindowInSeconds": {seconds}}}"#);
        assert_eq!(client.error("admin", &set).0, 2, "{seconds}");
    }
}

#[test]
fn erased_documents_are_read_at_no_moment() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client);
    let time = read(&mut client, READS[0], None).time;
    client.ok("shop", r#"{"frondErase": 1, "collection": "c", "document": 3, "confirm": true}"#);
    let at = format!(
        r#"{{"find": "c", "readConcern": {{"level": "snapshot",
            "atClusterTime": {{"$timestamp": {{"t": {}, "i": {}}}}}}}}}"#,
        time >> 32,
        time as u32
    );
    assert_eq!(client.error("shop", &at).0, 239);
}

#[test]
fn reads_that_cannot_use_a_snapshot_are_refused() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client);
    let snapshot = r#""readConcern": {"level": "snapshot"}"#;
    for (command, expected) in [
        (r#""insert": "c", "documents": [{}]"#, 72),
        (r#""update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]"#, 72),
        (r#""findAndModify": "c", "remove": true"#, 72),
        (r#""count": "c""#, 72),
        (r#""listCollections": 1"#, 72),
        (r#""listIndexes": "c""#, 72),
        (r#""aggregate": "c", "cursor": {}, "pipeline": [{"$out": "o"}]"#, 72),
        (r#""aggregate": "c", "cursor": {}, "pipeline": [{"$merge": "o"}]"#, 72),
        (r#""aggregate": "c", "cursor": {}, "pipeline": [{"$diff": {}}]"#, 72),
        (r#""aggregate": "c", "cursor": {}, "pipeline": [{"$indexStats": {}}]"#, 72),
        (r#""aggregate": "c", "explain": true, "pipeline": []"#, 72),
    ] {
        let command = format!("{{{command}, {snapshot}}}");
        assert_eq!(client.error("shop", &command).0, expected, "{command}");
    }
    for (stage, level, expected) in [
        (r#"{"$out": "o"}"#, "linearizable", 72),
        (r#"{"$merge": "o"}"#, "linearizable", 72),
        (r#"{"$match": {}}"#, "linearizable", 0),
        (r#"{"$out": "o"}"#, "majority", 0),
    ] {
        let command = format!(
            r#"{{"aggregate": "c", "cursor": {{}}, "pipeline": [{stage}],
                "readConcern": {{"level": "{level}"}}}}"#
        );
        assert_eq!(client.code("shop", &command), expected, "{command}");
    }
    let users = r#"{"find": "system.users", "readConcern": {"level": "snapshot"}}"#;
    assert_eq!(client.error("admin", users).0, 72);
    let capped = r#"{"create": "k", "capped": true, "size": 4096}"#;
    client.ok("shop", capped);
    client.ok("shop", r#"{"insert": "k", "documents": [{"_id": 1}]}"#);
    let tail = format!(r#"{{"find": "k", "tailable": true, {snapshot}}}"#);
    assert_eq!(client.error("shop", &tail).0, 72);
    client.ok("shop", &format!(r#"{{"find": "k", {snapshot}}}"#));
}

#[test]
fn a_read_after_a_time_that_is_a_little_ahead_waits_for_it() {
    let clock = SimClock::new();
    let clock_of_machine = Arc::new(clock.clone());
    let machine = Machine { clock: clock_of_machine, ..SimDisk::new(1).machine() };
    let server = Running::on_machine(&machine, ServerOptions::default());
    let mut client = server.client();
    client.ok("shop", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let seconds = clock.now_micros() as u64 / 1_000_000;
    let find = |concern: &str, seconds: u64, time_max: u64| {
        format!(
            r#"{{"find": "c", "maxTimeMS": {time_max}, "readConcern": {{
                {concern}: {{"$timestamp": {{"t": {seconds}, "i": 1}}}}}}}}"#
        )
    };
    for concern in [r#""afterClusterTime""#, r#""level": "snapshot", "atClusterTime""#] {
        assert_eq!(client.error("shop", &find(concern, seconds + 8, 50)).0, 50);
        assert_eq!(client.error("shop", &find(concern, seconds + 60, 0)).0, 72);
        let begun = clock.now_micros();
        let ahead = begun as u64 / 1_000_000 + 2;
        let clock = &clock;
        thread::scope(|scope| {
            scope.spawn(move || {
                while clock.now_micros() < begun + 3_000_000 {
                    thread::sleep(std::time::Duration::from_millis(5));
                    clock.step(100_000);
                }
            });
            client.ok("shop", &find(concern, ahead, 60_000));
            assert!(ahead as i64 * 1_000_000 <= clock.now_micros(), "it came to that time");
        });
    }
}
