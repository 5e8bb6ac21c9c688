//! Change streams over the wire: the events, their order, and where a stream ends or goes on.

use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, Value, ValueBuf, extended_json};
use frond_server::ServerOptions;
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient};

fn start() -> Running {
    Running::recording_events(&SimDisk::new(1), ServerOptions::default())
}

/// An open stream.
struct Stream {
    client: TestClient,
    database: String,
    collection: String,
    id: i64,
    /// The resume token of the last answer.
    token: String,
}

fn text(value: Value<'_>) -> String {
    frond_query::text::value(value)
}

impl Stream {
    fn open(server: &Running, database: &str, target: &str, options: &str, more: &str) -> Stream {
        let mut client = server.client();
        let command = format!(
            r#"{{"aggregate": {target}, "pipeline": [{{"$changeStream": {{{options}}}}}{more}], "cursor": {{}}}}"#
        );
        let answer = client.ok(database, &command);
        let collection = target.trim_matches('"');
        let collection = if collection == "1" { "$cmd.aggregate" } else { collection };
        let mut stream = Stream {
            client,
            database: database.to_owned(),
            collection: collection.to_owned(),
            id: 0,
            token: String::new(),
        };
        let first = stream.note(&answer, "firstBatch");
        assert!(first.is_empty() || !options.is_empty(), "{first:?}");
        stream
    }

    fn watch(server: &Running, database: &str, collection: &str) -> Stream {
        Stream::open(server, database, &format!("{collection:?}"), "", "")
    }

    fn note(&mut self, answer: &DocumentBuf, batch: &str) -> Vec<DocumentBuf> {
        let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("cursor");
        self.id = cursor.get("id").and_then(|id| id.as_integer()).expect("an id");
        let token = cursor.get("postBatchResumeToken").and_then(|token| token.as_document());
        let data = token.and_then(|token| token.get("_data")).expect("a token");
        let data = data.as_str().expect("hex").to_owned();
        assert!(self.token <= data, "tokens ascend");
        self.token = data;
        let batch = cursor.get(batch).and_then(|batch| batch.as_array()).expect("a batch");
        batch.iter().map(|event| event.as_document().expect("an event").to_buf()).collect()
    }

    fn more(&mut self, millis: u64) -> Vec<DocumentBuf> {
        let command = format!(
            r#"{{"getMore": {{"$numberLong": "{}"}}, "collection": "{}", "maxTimeMS": {millis}}}"#,
            self.id, self.collection
        );
        let answer = self.client.ok(&self.database.clone(), &command);
        self.note(&answer, "nextBatch")
    }

    /// The events up to now.
    fn events(&mut self) -> Vec<DocumentBuf> {
        let mut events = Vec::new();
        while self.id != 0 {
            let more = self.more(1);
            if more.is_empty() {
                break;
            }
            events.extend(more);
        }
        events
    }

    /// The same, in short: what happened, where, and what the event has of these.
    fn delivered(&mut self) -> Vec<String> {
        self.events().iter().map(short).collect()
    }
}

fn short(event: &DocumentBuf) -> String {
    let kind = event.get("operationType").and_then(|kind| kind.as_str()).expect("a kind");
    let mut events_text = kind.to_owned();
    for name in ["ns", "to", "documentKey", "fullDocument", "updateDescription"] {
        if let Some(value) = event.get(name) {
            events_text.push(' ');
            events_text.push_str(&text(value).replace(['"', ' '], ""));
        }
    }
    for name in ["clusterTime", "wallTime"] {
        assert!(event.get(name).is_some(), "{event:?}");
    }
    events_text
}

/// Also that of when documents expire; and a time series is made without an index of `_id`.
#[test]
fn a_change_of_options_is_delivered_once() {
    let server = start();
    let mut client = server.client();
    let mut stream = Stream::open(&server, "a", "1", r#""showExpandedEvents": true"#, "");
    client.ok("a", r#"{"create": "c", "timeseries": {"timeField": "t"}}"#);
    client.ok("a", r#"{"collMod": "c", "expireAfterSeconds": 60}"#);
    client.ok("a", r#"{"collMod": "c", "expireAfterSeconds": 60, "timeseries": {}}"#);
    let events = stream.events();
    let kind = |event: &DocumentBuf| event.get("operationType").map(text).unwrap_or_default();
    let kinds: Vec<String> = events.iter().map(kind).collect();
    let expected = ["create", "modify", "modify", "modify"].map(|kind| format!("{kind:?}"));
    assert_eq!(kinds, expected);
    assert!(!format!("{:?}", events[0]).contains("idIndex"));
}

/// What a reset does to indexes, options and empty collections, and nothing of points.
#[test]
fn definitions_that_a_version_changes_are_delivered() {
    let server = start();
    let mut client = server.client();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    client.ok("a", r#"{"create": "points", "timeseries": {"timeField": "t"}}"#);
    client.ok("a", r#"{"frondCommit": 1, "message": "one"}"#);
    let mut stream = Stream::open(&server, "a", "1", r#""showExpandedEvents": true"#, "");
    let made = r#"{"createIndexes": "c", "indexes": [{"key": {"k": 1}, "name": "k"}]}"#;
    client.ok("a", made);
    client
        .ok("a", r#"{"insert": "points", "documents": [{"t": {"$date": {"$numberLong": "1"}}}]}"#);
    client.ok("a", r#"{"frondReset": 1, "target": "HEAD", "hard": true}"#);
    client.ok("a", r#"{"collMod": "c", "validator": {"k": {"$ne": 1}}}"#);
    client.ok("a", r#"{"create": "empty"}"#);
    client.ok("a", r#"{"frondReset": 1, "target": "HEAD", "hard": true}"#);
    let kinds: Vec<String> = stream.events().iter().map(short).collect();
    let expected = [
        "createIndexes {db:a,coll:c}",
        "dropIndexes {db:a,coll:c}",
        "modify {db:a,coll:c}",
        "create {db:a,coll:empty}",
        "modify {db:a,coll:c}",
        "drop {db:a,coll:empty}",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn every_operation_is_delivered_in_its_order() {
    let server = start();
    let mut client = server.client();
    let mut stream = Stream::watch(&server, "a", "c");
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1, "v": {"x": 1}}, {"_id": 2}]}"#);
    client.ok("a", r#"{"insert": "other", "documents": [{"_id": 1}]}"#);
    client.ok(
        "a",
        r#"{"update": "c", "updates": [
            {"q": {"_id": 1}, "u": {"$set": {"v.x": 2, "w": 3}}},
            {"q": {"_id": 1}, "u": {"$set": {"w": 3}}},
            {"q": {"_id": 2}, "u": {"_id": 2, "whole": 1}},
            {"q": {"_id": 3}, "u": {"$set": {"new": 1}}, "upsert": true}]}"#,
    );
    client.ok("a", r#"{"findAndModify": "c", "query": {"_id": 1}, "update": [{"$unset": "w"}]}"#);
    client.ok("a", r#"{"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}"#);
    let events_text = stream.delivered();
    let expected = [
        "insert {db:a,coll:c} {_id:1} {_id:1,v:{x:1}}",
        "insert {db:a,coll:c} {_id:2} {_id:2}",
        "update {db:a,coll:c} {_id:1} {updatedFields:{v.x:2,w:3},removedFields:[],truncatedArrays:[]}",
        "replace {db:a,coll:c} {_id:2} {_id:2,whole:1}",
        "insert {db:a,coll:c} {_id:3} {_id:3,new:1}",
        "update {db:a,coll:c} {_id:1} {updatedFields:{},removedFields:[w],truncatedArrays:[]}",
        "delete {db:a,coll:c} {_id:2}",
    ];
    assert_eq!(events_text, expected);
    client.ok("a", r#"{"drop": "c"}"#);
    assert_eq!(stream.delivered(), ["drop {db:a,coll:c}", "invalidate"]);
    assert_eq!(stream.id, 0);
}

#[test]
fn transactions_are_delivered_as_a_whole_without_what_was_undone() {
    let server = start();
    let mut client = server.client();
    client.ok("a", r#"{"create": "c"}"#);
    let mut stream = Stream::watch(&server, "a", "c");
    let session = |number: i32, first: bool| {
        let start = if first { r#""startTransaction": true,"# } else { "" };
        format!(
            r#""lsid": {{"id": {{"$uuid": "00000000-0000-4000-8000-000000000001"}}}},
               "txnNumber": {{"$numberLong": "{number}"}}, {start} "autocommit": false"#
        )
    };
    let insert = |id: i32| format!(r#""insert": "c", "documents": [{{"_id": {id}}}]"#);
    client.ok("a", &format!("{{{}, {}}}", insert(1), session(1, true)));
    let update = r#""update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"v": 1}}}]"#;
    client.ok("a", &format!("{{{update}, {}}}", session(1, false)));
    client.ok("a", &format!("{{{}, {}}}", insert(2), session(1, false)));
    assert!(stream.delivered().is_empty());
    client.ok("admin", &format!(r#"{{"commitTransaction": 1, {}}}"#, session(1, false)));
    let events = stream.events();
    let events_text: Vec<String> = events.iter().map(short).collect();
    let expected = [
        "insert {db:a,coll:c} {_id:1} {_id:1}",
        "update {db:a,coll:c} {_id:1} {updatedFields:{v:1},removedFields:[],truncatedArrays:[]}",
        "insert {db:a,coll:c} {_id:2} {_id:2}",
    ];
    assert_eq!(events_text, expected);
    let time = events[0].get("clusterTime");
    assert!(events.iter().all(|event| event.get("clusterTime") == time));
    assert!(events.iter().all(|event| event.get("txnNumber") == Some(Value::Int64(1))));
    assert!(events.iter().all(|event| event.get("lsid").is_some()));
    client.ok("a", &format!("{{{}, {}}}", insert(3), session(2, true)));
    client.ok("admin", &format!(r#"{{"abortTransaction": 1, {}}}"#, session(2, false)));
    // An ordered insert that fails in its midst.
    client.ok(
        "a",
        r#"{"insert": "c", "documents": [{"_id": 4}, {"_id": 1}, {"_id": 5}], "ordered": false}"#,
    );
    let expected = ["insert {db:a,coll:c} {_id:4} {_id:4}", "insert {db:a,coll:c} {_id:5} {_id:5}"];
    assert_eq!(stream.delivered(), expected);
}

#[test]
fn databases_and_the_deployment_are_watched_and_end_where_they_do() {
    let server = start();
    let mut client = server.client();
    let mut database = Stream::open(&server, "a", "1", "", "");
    let mut all = Stream::open(&server, "admin", "1", r#""allChangesForCluster": true"#, "");
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    client.ok("b", r#"{"insert": "d", "documents": [{"_id": 2}]}"#);
    client.ok("admin", r#"{"insert": "silent", "documents": [{"_id": 2}]}"#);
    client.ok("admin", r#"{"renameCollection": "a.c", "to": "a.e"}"#);
    client.ok("a", r#"{"insert": "e", "documents": [{"_id": 3}]}"#);
    client.ok("a", r#"{"dropDatabase": 1}"#);
    let expected = [
        "insert {db:a,coll:c} {_id:1} {_id:1}",
        "rename {db:a,coll:c} {db:a,coll:e}",
        "insert {db:a,coll:e} {_id:3} {_id:3}",
        "drop {db:a,coll:e}",
        "dropDatabase {db:a}",
    ];
    let events_text = database.delivered();
    assert_eq!(events_text[..5], expected);
    assert_eq!(events_text[5..], ["invalidate"]);
    let events_text = all.delivered();
    let of_b = "insert {db:b,coll:d} {_id:2} {_id:2}";
    assert_eq!(events_text.iter().filter(|it| *it == of_b).count(), 1);
    assert_eq!(events_text.into_iter().filter(|it| it != of_b).collect::<Vec<_>>(), expected);
    assert_ne!(all.id, 0);
}

#[test]
fn a_stream_goes_on_where_another_stopped_also_after_a_restart() {
    let disk = SimDisk::new(1);
    let server = Running::recording_events(&disk, ServerOptions::default());
    let mut client = server.client();
    let mut stream = Stream::watch(&server, "a", "c");
    let before = stream.token.clone();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}"#);
    let events = stream.events();
    let token = |event: &DocumentBuf| {
        let id = event.get("_id").and_then(|id| id.as_document()).expect("a token");
        id.get("_data").and_then(|data| data.as_str().map(str::to_owned)).expect("data")
    };
    let tokens: Vec<String> = events.iter().map(token).collect();
    assert!(tokens.is_sorted() && tokens.iter().all(|token| token.starts_with("82")));
    let behind = |server: &Running, token: &str| -> Vec<i64> {
        let options = format!(r#""resumeAfter": {{"_data": "{token}"}}"#);
        let mut client = server.client();
        let command = format!(
            r#"{{"aggregate": "c", "pipeline": [{{"$changeStream": {{{options}}}}}], "cursor": {{}}}}"#
        );
        let answer = client.ok("a", &command);
        let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("cursor");
        let batch = cursor.get("firstBatch").and_then(|batch| batch.as_array()).expect("a batch");
        let id = |event: Value<'_>| {
            event.as_document()?.get("documentKey")?.as_document()?.get("_id")?.as_integer()
        };
        batch.iter().map(|event| id(event).expect("an _id")).collect()
    };
    for _ in 0..2 {
        assert_eq!(behind(&server, &before), [1, 2, 3]);
        assert_eq!(behind(&server, &tokens[0]), [2, 3]);
        assert_eq!(behind(&server, &tokens[2]), [0; 0]);
    }
    drop(server);
    let server = Running::recording_events(&disk, ServerOptions::default());
    server.client().ok("a", r#"{"insert": "c", "documents": [{"_id": 4}]}"#);
    assert_eq!(behind(&server, &before), [1, 2, 3, 4]);
    assert_eq!(behind(&server, &tokens[1]), [3, 4]);
    assert_eq!(behind(&server, &stream.token), [4]);
    // Another directory's.
    let other = Running::recording_events(&SimDisk::new(2), ServerOptions::default());
    let (code, labels) = other.client().labels(
        "a",
        &format!(
            r#"{{"aggregate": "c", "pipeline": [{{"$changeStream": {{"resumeAfter": {{"_data": "{before}"}}}}}}], "cursor": {{}}}}"#
        ),
    );
    assert_eq!((code, labels), (286, vec!["NonResumableChangeStreamError".to_owned()]));
}

#[test]
fn a_waiting_stream_is_woken_by_a_write() {
    let server = start();
    let mut client = server.client();
    client.ok("a", r#"{"create": "c"}"#);
    let mut stream = Stream::watch(&server, "a", "c");
    let begun = Instant::now();
    assert!(stream.more(300).is_empty());
    assert!(begun.elapsed() >= Duration::from_millis(300));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| stream.more(5_000));
        std::thread::sleep(Duration::from_millis(100));
        client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
        assert_eq!(waiting.join().expect("it doesn't panic").len(), 1);
    });
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn stages_stand_behind_it_and_full_documents_are_looked_up() {
    let server = start();
    let mut client = server.client();
    let more = r#", {"$match": {"operationType": "update"}}, {"$project": {"operationType": 1,
        "clusterTime": 1, "wallTime": 1, "fullDocument": 1}}"#;
    let mut stream =
        Stream::open(&server, "a", r#""c""#, r#""fullDocument": "updateLookup""#, more);
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    for change in ["1", "2"] {
        let update = format!(
            r#"{{"update": "c", "updates": [{{"q": {{}}, "u": {{"$set": {{"v": {change}}}}}, "multi": true}}]}}"#
        );
        client.ok("a", &update);
    }
    client.ok("a", r#"{"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}"#);
    let expected = ["update {_id:1,v:2}", "update null", "update {_id:1,v:2}", "update null"];
    assert_eq!(stream.delivered(), expected);
    let mut broken = Stream::open(&server, "a", r#""c""#, "", r#", {"$unset": "_id"}"#);
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 3}]}"#);
    let command = format!(
        r#"{{"getMore": {{"$numberLong": "{}"}}, "collection": "c", "maxTimeMS": 1}}"#,
        broken.id
    );
    assert_eq!(broken.client.labels("a", &command).0, 280);
}

#[test]
fn large_documents_are_delivered_too() {
    let server = start();
    let mut client = server.client();
    let mut stream = Stream::watch(&server, "a", "c");
    let long = "x".repeat(100_000);
    client.ok(
        "a",
        &format!(
            r#"{{"insert": "c", "documents": [{{"_id": 1, "long": "{long}", "n": [1, 2]}}]}}"#
        ),
    );
    client.ok("a", r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$push": {"n": 3}}}]}"#);
    client.ok(
        "a",
        r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$unset": {"long": 1}}}]}"#,
    );
    let events_text = stream.delivered();
    assert_eq!(events_text.len(), 3);
    assert!(events_text[0].starts_with("insert") && events_text[0].len() > 100_000);
    let description =
        "update {db:a,coll:c} {_id:1} {updatedFields:{n.2:3},removedFields:[],truncatedArrays:[]}";
    assert_eq!(events_text[1], description);
    // Less than what changed.
    assert_eq!(
        events_text[2],
        "update {db:a,coll:c} {_id:1} {updatedFields:{},removedFields:[long],truncatedArrays:[]}"
    );
}

#[test]
fn versions_are_delivered_one_by_one_and_what_is_not_known_ends_the_stream() {
    let server = start();
    let mut client = server.client();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1, "v": 1}, {"_id": 2}]}"#);
    client.ok("a", r#"{"frondCommit": 1, "message": "one"}"#);
    let mut stream = Stream::watch(&server, "a", "c");
    client.ok("a", r#"{"frondBranch": 1, "branch": "dev"}"#);
    let mut branch = Stream::watch(&server, "a@dev", "c");
    client
        .ok("a@dev", r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"v": 2}}}]}"#);
    client.ok("a@dev", r#"{"insert": "c", "documents": [{"_id": 3}]}"#);
    client.ok("a@dev", r#"{"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}"#);
    client.ok("a@dev", r#"{"frondCommit": 1, "message": "two"}"#);
    assert!(stream.delivered().is_empty());
    assert_eq!(branch.delivered().len(), 3);
    client.ok("a", r#"{"frondMerge": 1, "merge_in": "dev"}"#);
    let expected = [
        "update {db:a,coll:c} {_id:1} {updatedFields:{v:2},removedFields:[],truncatedArrays:[]}",
        "delete {db:a,coll:c} {_id:2}",
        "insert {db:a,coll:c} {_id:3} {_id:3}",
    ];
    assert_eq!(stream.delivered(), expected);
    client.ok(
        "a",
        r#"{"aggregate": "c", "pipeline": [{"$set": {"w": 1}}, {"$out": "c"}], "cursor": {}}"#,
    );
    let command = format!(
        r#"{{"getMore": {{"$numberLong": "{}"}}, "collection": "c", "maxTimeMS": 1}}"#,
        stream.id
    );
    assert_eq!(stream.client.labels("a", &command).0, 286);
}

#[test]
fn a_large_merge_is_streamed_one_by_one_and_resumed_in_the_middle() {
    const COUNT: usize = 2_500;
    const GONE: usize = 100;
    let server = start();
    let mut client = server.client();
    let documents: Vec<String> =
        (0..COUNT).map(|number| format!(r#"{{"_id": {number}, "v": 1}}"#)).collect();
    client.ok("a", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(", ")));
    client.ok("a", r#"{"frondCommit": 1, "message": "one"}"#);
    client.ok("a", r#"{"frondBranch": 1, "branch": "dev"}"#);
    client.ok(
        "a@dev",
        r#"{"update": "c", "updates": [{"q": {}, "u": {"$inc": {"v": 1}}, "multi": true}]}"#,
    );
    let delete = format!(r#"{{"q": {{"_id": {{"$lt": {GONE}}}}}, "limit": 0}}"#);
    client.ok("a@dev", &format!(r#"{{"delete": "c", "deletes": [{delete}]}}"#));
    client.ok("a@dev", r#"{"frondCommit": 1, "message": "two"}"#);
    let mut stream = Stream::watch(&server, "a", "c");
    client.ok("a", r#"{"frondMerge": 1, "merge_in": "dev"}"#);
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": "last"}]}"#);
    let events = stream.events();
    let events_text: Vec<String> = events.iter().map(short).collect();
    let expected: Vec<String> = (0..COUNT)
        .map(|number| match number < GONE {
            true => format!("delete {{db:a,coll:c}} {{_id:{number}}}"),
            false => format!(
                "update {{db:a,coll:c}} {{_id:{number}}} \
                 {{updatedFields:{{v:2}},removedFields:[],truncatedArrays:[]}}"
            ),
        })
        .chain(["insert {db:a,coll:c} {_id:last} {_id:last}".to_owned()])
        .collect();
    assert_eq!(events_text, expected);
    let tokens: Vec<String> = events
        .iter()
        .map(|event| event.get("_id").and_then(|id| id.as_document()).expect("a token"))
        .map(|token| token.get("_data").and_then(|data| data.as_str()).expect("hex").to_owned())
        .collect();
    assert!(tokens.is_sorted_by(|left, right| left < right));
    for position in [0, GONE, 1_234, COUNT - 1, COUNT] {
        let options = format!(r#""resumeAfter": {{"_data": "{}"}}"#, tokens[position]);
        let command = format!(
            r#"{{"aggregate": "c", "pipeline": [{{"$changeStream": {{{options}}}}}], "cursor": {{"batchSize": 0}}}}"#
        );
        let answer = client.ok("a", &command);
        let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("one");
        let mut after = Stream {
            client: server.client(),
            database: "a".to_owned(),
            collection: "c".to_owned(),
            id: cursor.get("id").and_then(|id| id.as_integer()).expect("an id"),
            token: tokens[position].clone(),
        };
        assert_eq!(after.delivered(), expected[position + 1..], "{position}");
    }
}

#[test]
fn impossible_change_streams_are_refused() {
    let server = start();
    let mut client = server.client();
    client.ok("a", r#"{"create": "v", "viewOn": "c", "pipeline": []}"#);
    let mut code = |database: &str, target: &str, pipeline: &str| {
        let command =
            format!(r#"{{"aggregate": {target}, "pipeline": [{pipeline}], "cursor": {{}}}}"#);
        client.code(database, &command)
    };
    let cases = [
        (r#"{"$match": {}}, {"$changeStream": {}}"#, 40602),
        (r#"{"$changeStream": {}}, {"$group": {"_id": 1}}"#, 20),
        (r#"{"$changeStream": {}}, {"$noSuchStage": 1}"#, 40324),
        (r#"{"$changeStream": {"resumeAfter": {"_data": "82"}}}"#, 260),
        (r#"{"$changeStream": {"resumeAfter": {}}}"#, 260),
        (r#"{"$changeStream": {"fullDocument": "any"}}"#, 2),
        (r#"{"$changeStream": {"fullDocumentBeforeChange": "any"}}"#, 2),
        (r#"{"$changeStream": {}}, {"$changeStreamSplitLargeEvent": {}}, {"$match": {}}"#, 7182802),
        (r#"{"$changeStream": {"unknown": true}}"#, 40415),
        (r#"{"$changeStream": {"startAfter": {"commit": 1}}}"#, 14),
        (r#"{"$changeStream": {"startAfter": {"commit": "nowhere"}}}"#, 2),
        (r#"{"$changeStream": {"startAfter": {"commit": "HEAD", "to": "HEAD"}}}"#, 40415),
        (r#"{"$changeStream": {"allChangesForCluster": true}}"#, 72),
        (
            r#"{"$changeStream": {"resumeAfter": {"_data": "82"}, "startAtOperationTime": {"$timestamp": {"t": 1, "i": 1}}}}"#,
            40674,
        ),
    ];
    for (pipeline, expected) in cases {
        assert_eq!(code("a", r#""c""#, pipeline), expected, "{pipeline}");
    }
    assert_eq!(code("a", r#""v""#, r#"{"$changeStream": {}}"#), 166);
    assert_eq!(code("admin", r#""c""#, r#"{"$changeStream": {}}"#), 73);
    assert_eq!(code("admin", "1", r#"{"$changeStream": {}}"#), 73);
    for (level, expected) in [("local", 72), ("available", 72), ("linearizable", 72)] {
        let concern = format!(r#""cursor": {{}}, "readConcern": {{"level": "{level}"}}"#);
        let command =
            format!(r#"{{"aggregate": "c", "pipeline": [{{"$changeStream": {{}}}}], {concern}}}"#);
        assert_eq!(client.code("a", &command), expected, "{level}");
    }
    let without = Running::keeping_no_log();
    let command = r#"{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}"#;
    assert_eq!(without.client().code("a", command), 20);
}

#[test]
fn an_invalidation_is_passed_by_starting_after_it() {
    let server = start();
    let mut client = server.client();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let mut stream = Stream::watch(&server, "a", "c");
    client.ok("a", r#"{"drop": "c"}"#);
    let events = stream.events();
    let id: ValueBuf = events[1].get("_id").expect("a token").to_buf();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 2}]}"#);
    let mut data = String::new();
    let token = id.as_value().as_document().expect("a token");
    extended_json::write(token, extended_json::Form::Relaxed, &mut data);
    let command = |option: &str| {
        format!(
            r#"{{"aggregate": "c", "pipeline": [{{"$changeStream": {{"{option}": {data}}}}}], "cursor": {{}}}}"#
        )
    };
    assert_eq!(client.code("a", &command("resumeAfter")), 260);
    let answer = client.ok("a", &command("startAfter"));
    assert!(text(Value::Document(answer.view())).contains("insert"), "{answer:?}");
}

/// The differences since a commit come first, marked; later changes aren't marked.
#[test]
fn a_stream_starts_after_a_commit() {
    let server = start();
    let mut client = server.client();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    client.ok("a", r#"{"frondCommit": 1, "message": "one", "author": "A <a@example.org>"}"#);
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 2}]}"#);
    let options = r#"{"$changeStream": {"startAfter": {"commit": "main"}}}"#;
    let command =
        format!(r#"{{"aggregate": "c", "pipeline": [{options}], "cursor": {{"batchSize": 0}}}}"#);
    let answer = client.ok("a", &command);
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 3}]}"#);
    let mut stream = Stream {
        client: server.client(),
        database: "a".to_owned(),
        collection: "c".to_owned(),
        id: 0,
        token: String::new(),
    };
    assert!(stream.note(&answer, "firstBatch").is_empty());
    let events = stream.events();
    let events_text: Vec<String> = events
        .iter()
        .map(|event| format!("{} {:?}", short(event), event.get("frond").map(text)))
        .collect();
    assert_eq!(
        events_text,
        [
            r#"insert {db:a,coll:c} {_id:2} {_id:2} Some("{ net: true }")"#,
            r#"insert {db:a,coll:c} {_id:3} {_id:3} None"#,
        ]
    );
}

#[test]
fn evictions_from_a_capped_collection_are_no_events() {
    let server = start();
    let mut client = server.client();
    client.ok("a", r#"{"create": "c", "capped": true, "size": 1000, "max": 1}"#);
    let mut stream = Stream::watch(&server, "a", "c");
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    let expected = ["insert {db:a,coll:c} {_id:1} {_id:1}", "insert {db:a,coll:c} {_id:2} {_id:2}"];
    assert_eq!(stream.delivered(), expected);
}

#[test]
fn erased_documents_are_delivered_no_more() {
    let server = start();
    let mut client = server.client();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    let stream = Stream::watch(&server, "a", "c");
    let mut lagging = Stream::watch(&server, "a", "c");
    client.ok("a", r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"v": 1}}}]}"#);
    client.ok("a", r#"{"frondErase": 1, "collection": "c", "document": 1, "confirm": true}"#);
    let command = format!(
        r#"{{"getMore": {{"$numberLong": "{}"}}, "collection": "c", "maxTimeMS": 1}}"#,
        lagging.id
    );
    assert_eq!(lagging.client.labels("a", &command).0, 286);
    let resume = format!(
        r#"{{"aggregate": "c", "pipeline": [{{"$changeStream": {{"resumeAfter": {{"_data": "{}"}}}}}}], "cursor": {{}}}}"#,
        stream.token
    );
    assert_eq!(client.code("a", &resume), 286);
    let mut stream = Stream::watch(&server, "a", "c");
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 3}]}"#);
    assert_eq!(stream.delivered(), ["insert {db:a,coll:c} {_id:3} {_id:3}"]);
}
