//! Capped collections over the wire: limits, natural order, conversion, cursors that follow the
//! end.

use frond_doc::{DocumentBuf, Value};

use crate::running::{Running, TestClient, json};

fn insert(client: &mut TestClient, ids: std::ops::Range<i32>) {
    for id in ids {
        // Descending, so that the order of insertion isn't that of `_id`.
        let id = 1_000 - id;
        client.ok("a", &format!(r#"{{"insert": "c", "documents": [{{"_id": {id}}}]}}"#));
    }
}

fn ids(answer: &DocumentBuf, batch: &str) -> Vec<i64> {
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    let documents = cursor.get(batch).and_then(|batch| batch.as_array()).expect("a batch");
    let id = |document: Value<'_>| document.as_document()?.get("_id")?.as_integer();
    documents.iter().map(|document| id(document).expect("an _id")).collect()
}

fn cursor_id(answer: &DocumentBuf) -> i64 {
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    cursor.get("id").and_then(|id| id.as_integer()).expect("an id")
}

fn find(client: &mut TestClient, more: &str) -> Vec<i64> {
    ids(&client.ok("a", &format!(r#"{{"find": "c" {more}}}"#)), "firstBatch")
}

#[test]
fn documents_lie_in_the_order_of_insertion_and_the_oldest_go() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"create": "c", "capped": true, "size": 1000, "max": 3}"#);
    client.ok("a", r#"{"createIndexes": "c", "indexes": [{"key": {"v": 1}, "name": "v"}]}"#);
    insert(&mut client, 0..5);
    assert_eq!(find(&mut client, ""), [998, 997, 996]);
    assert_eq!(find(&mut client, r#", "sort": {"$natural": -1}"#), [996, 997, 998]);
    assert_eq!(find(&mut client, r#", "sort": {"_id": 1}"#), [996, 997, 998]);
    assert_eq!(
        find(&mut client, r#", "hint": {"$natural": 1}, "filter": {"_id": {"$gt": 996}}"#),
        [998, 997]
    );
    client.ok(
        "a",
        r#"{"update": "c", "updates": [{"q": {"_id": 998}, "u": {"$set": {"v": "longer"}}}]}"#,
    );
    client.ok("a", r#"{"delete": "c", "deletes": [{"q": {"_id": 997}, "limit": 1}]}"#);
    assert_eq!(find(&mut client, ""), [998, 996]);
    insert(&mut client, 5..7);
    assert_eq!(find(&mut client, ""), [996, 995, 994]);
    let count = client.ok("a", r#"{"count": "c"}"#);
    assert_eq!(count.get("n"), Some(Value::Int32(3)));
    let stats = client.ok("a", r#"{"collStats": "c"}"#);
    assert_eq!(stats.get("capped"), Some(Value::Boolean(true)));
    assert_eq!(stats.get("maxSize").and_then(|size| size.as_integer()), Some(1024));
    assert_eq!(stats.get("max").and_then(|max| max.as_integer()), Some(3));
    client.ok("a", r#"{"collMod": "c", "cappedMax": 1, "cappedSize": 300}"#);
    insert(&mut client, 7..8);
    assert_eq!(find(&mut client, ""), [993]);
    let big =
        format!(r#"{{"insert": "c", "documents": [{{"_id": 1, "v": "{}"}}]}}"#, "x".repeat(600));
    let answer = client.ok("a", &big);
    assert!(answer.get("writeErrors").is_some(), "{answer:?}");
    let valid = client.ok("a", r#"{"validate": "c"}"#);
    assert_eq!(valid.get("valid"), Some(Value::Boolean(true)));
}

#[test]
fn bytes_are_bounded_whatever_happens() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"create": "c", "capped": true, "size": 2048}"#);
    for round in 0..40 {
        let text = "x".repeat(20 + round * 7 % 300);
        client.ok(
            "a",
            &format!(r#"{{"insert": "c", "documents": [{{"_id": {round}, "t": "{text}"}}]}}"#),
        );
        let stats = client.ok("a", r#"{"collStats": "c"}"#);
        let aggregate = client.ok(
            "a",
            r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$group": {"_id": null, "sum": {"$sum": {"$bsonSize": "$$ROOT"}}}}]}"#,
        );
        let shown = format!("{aggregate:?}");
        let count = stats.get("count").and_then(|count| count.as_integer()).expect("a count");
        assert!(count > 0, "{shown}");
        let cursor = aggregate.get("cursor").and_then(|cursor| cursor.as_document()).expect("one");
        let batch = cursor.get("firstBatch").and_then(|batch| batch.as_array()).expect("one");
        let sum = batch.get(0).and_then(|first| first.as_document()?.get("sum")?.as_integer());
        assert!(sum.expect("a sum") <= 2048, "{shown}");
    }
    let all = find(&mut client, "");
    assert!(all.is_sorted() && all.last() == Some(&39), "{all:?}");
}

#[test]
fn forbidden_operations_on_capped_collections_are_refused() {
    const SESSION: &str = r#""lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}},
        "txnNumber": {"$numberLong": "1"}, "autocommit": false, "startTransaction": true"#;
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"create": "c", "capped": true, "size": 1000}"#);
    client.ok("a", r#"{"create": "d"}"#);
    let part = format!(r#"{{"insert": "c", "documents": [{{}}], {SESSION}}}"#);
    for (command, code) in [
        (r#"{"create": "e", "capped": true}"#, 72),
        (r#"{"create": "e", "size": 100}"#, 72),
        (r#"{"create": "e", "capped": true, "size": -1}"#, 2),
        (r#"{"create": "c", "capped": true, "size": 5000}"#, 48),
        (r#"{"collMod": "d", "cappedSize": 1000}"#, 72),
        (r#"{"find": "d", "tailable": true}"#, 2),
        (r#"{"find": "c", "tailable": true, "sort": {"_id": 1}}"#, 2),
        (r#"{"find": "c", "awaitData": true}"#, 9),
        (r#"{"find": "c", "tailable": true, "singleBatch": true}"#, 9),
        (r#"{"aggregate": "d", "cursor": {}, "pipeline": [{"$out": "c"}]}"#, 17152),
        (r#"{"convertToCapped": "missing", "size": 100}"#, 26),
        (r#"{"cloneCollectionAsCapped": "d", "toCollection": "c", "size": 100}"#, 48),
        (&part, 263),
    ] {
        let (found, message) = client.error("a", command);
        assert_eq!(found, code, "{command}: {message}");
    }
}

#[test]
fn a_collection_is_converted_with_its_last_documents() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"createIndexes": "c", "indexes": [{"key": {"v": 1}, "name": "v"}]}"#);
    client.ok(
        "a",
        &format!(
            r#"{{"insert": "c", "documents": [{}]}}"#,
            (0..50).map(|id| format!(r#"{{"_id": {id}}}"#)).collect::<Vec<_>>().join(",")
        ),
    );
    client.ok("a", r#"{"cloneCollectionAsCapped": "c", "toCollection": "d", "size": 100000}"#);
    client.ok("a", r#"{"convertToCapped": "c", "size": 256}"#);
    let kept = find(&mut client, "");
    // A document {_id: int} has 14 bytes.
    assert_eq!(kept, (32..50).collect::<Vec<i64>>());
    insert(&mut client, 0..1);
    assert_eq!(find(&mut client, "").last(), Some(&1_000));
    let copy = client.ok("a", r#"{"find": "d"}"#);
    assert_eq!(ids(&copy, "firstBatch").len(), 50);
    let indexes = client.ok("a", r#"{"listIndexes": "c"}"#);
    assert!(!format!("{indexes:?}").contains("v_1"), "{indexes:?}");
}

#[test]
fn a_tailable_cursor_gives_what_comes() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"create": "c", "capped": true, "size": 100000, "max": 5}"#);
    let tail =
        r#"{"find": "c", "tailable": true, "awaitData": true, "filter": {"_id": {"$ne": 998}}}"#;
    assert_eq!(cursor_id(&client.ok("a", tail)), 0, "over an empty collection it is over");
    insert(&mut client, 0..2);
    let first = client.ok("a", tail);
    assert_eq!(ids(&first, "firstBatch"), [1_000, 999]);
    let id = cursor_id(&first);
    let within = |millis: u32| {
        format!(
            r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c", "maxTimeMS": {millis}}}"#
        )
    };
    let more = within(50);
    assert!(ids(&client.ok("a", &more), "nextBatch").is_empty());
    insert(&mut client, 2..4);
    assert_eq!(ids(&client.ok("a", &more), "nextBatch"), [997]);
    // An insert by another client ends the wait.
    let waiting = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| server.client().ok("a", &within(4_000)));
        insert(&mut client, 4..5);
        waiter.join().expect("it answers")
    });
    assert_eq!(ids(&waiting, "nextBatch"), [996]);
    // The document that it saw last goes: those behind it can't be found any more.
    insert(&mut client, 5..11);
    assert_eq!(client.error("a", &more).0, 136);
    let again = client.ok("a", tail);
    client.ok("a", r#"{"drop": "c"}"#);
    let id = cursor_id(&again);
    let more = json(&format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c"}}"#));
    assert!(client.0.command("a", more.view()).is_err());
}

#[test]
fn a_capped_collection_belongs_to_its_branch() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"insert": "d", "documents": [{"_id": 1}]}"#);
    client.ok("a", r#"{"create": "c", "capped": true, "size": 1000}"#);
    insert(&mut client, 0..2);
    client.ok("a", r#"{"frondCommit": 1, "message": "first", "author": "a <a@b>"}"#);
    client.ok("a", r#"{"frondBranch": 1, "branch": "b"}"#);
    assert_eq!(find(&mut client, ""), [1_000, 999]);
    let there = client.ok("a@b", r#"{"listCollections": 1, "nameOnly": true}"#);
    assert!(!format!("{there:?}").contains("\"c\""), "{there:?}");
    let status = client.ok("a", r#"{"frondStatus": 1}"#);
    assert!(!format!("{status:?}").contains("\"c\""), "{status:?}");
}
