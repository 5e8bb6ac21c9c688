//! The profiler: levels of databases, what `system.profile` has, and what may be done with it.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_server::wire::DocumentSequence;
use frond_server::{BeginningParameters, ProfileLevel, ServerOptions};
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient, json};

fn entries(client: &mut TestClient, filter: &str) -> Vec<DocumentBuf> {
    let find = format!(r#"{{"find": "system.profile", "filter": {filter}, "batchSize": 1000}}"#);
    let answer = client.ok("test", &find);
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
    let batch = cursor.get("firstBatch").and_then(|batch| batch.as_array()).unwrap();
    batch.iter().map(|entry| entry.as_document().unwrap().to_buf()).collect()
}

fn integer(entry: &DocumentBuf, name: &str) -> Option<i64> {
    entry.get(name).and_then(|value| value.as_integer())
}

#[test]
fn all_requests_to_a_databases_collections_are_profiled_there_and_no_others() {
    let server = Running::start();
    let mut client = server.client();
    let was = client.ok("test", r#"{"profile": 2}"#);
    assert_eq!(was.get("was"), Some(Value::Int32(0)));
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}"#);
    client.ok("other", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    client.ok("test", r#"{"find": "c", "filter": {"_id": {"$gt": 1}}, "batchSize": 1}"#);
    let update = r#"{"q": {"_id": 1}, "u": {"$set": {"a": 1}}},
        {"q": {"_id": 9}, "u": {"$set": {"a": 1}}, "upsert": true}"#;
    client.ok("test", &format!(r#"{{"update": "c", "updates": [{update}]}}"#));
    client.ok("test", r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0}], "comment": "all"}"#);
    assert_ne!(client.code("test", r#"{"find": "c", "filter": {"$no": 1}}"#), 0);
    client.ok("test", r#"{"explain": {"find": "c"}}"#);
    client.ok("test", r#"{"listCollections": 1}"#);
    client.ok("test", r#"{"ping": 1}"#);
    client.ok("test", r#"{"profile": -1}"#);
    assert_eq!(client.ok("test", r#"{"profile": 0}"#).get("was"), Some(Value::Int32(2)));
    client.ok("test", r#"{"find": "c"}"#);
    let found = entries(&mut client, "{}");
    assert!(found.iter().all(|it| it.get("ns") == Some(Value::String("test.c"))), "{found:?}");
    let kinds: Vec<&str> = found.iter().map(|it| it.get("op").unwrap().as_str().unwrap()).collect();
    assert_eq!(kinds, ["insert", "query", "update", "update", "remove", "query", "command"]);
    assert_eq!(integer(&found[0], "ninserted"), Some(3));
    assert_eq!(integer(&found[1], "nreturned"), Some(1));
    assert!(integer(&found[1], "cursorid").is_some_and(|id| id != 0));
    let counts = |place: usize| {
        ["nMatched", "nModified", "nUpserted"].map(|name| integer(&found[place], name))
    };
    assert_eq!([counts(2), counts(3)], [[Some(1), Some(1), Some(0)], [Some(0), Some(0), Some(1)]]);
    assert_eq!(integer(&found[4], "ndeleted"), Some(4));
    let entry = |place: usize| found[place].get("command").and_then(|entry| entry.as_document());
    let update =
        json(r#"{"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "multi": false, "upsert": false}"#);
    assert_eq!(entry(2), Some(update.view()));
    let delete = json(r#"{"q": {}, "limit": 0, "comment": "all"}"#);
    assert_eq!(entry(4), Some(delete.view()));
    assert_eq!(integer(&found[5], "errCode"), Some(2));
    assert!(found.iter().all(|it| matches!(it.get("ts"), Some(Value::DateTime(1..)))));
    let other = client.ok("other", r#"{"listCollections": 1, "nameOnly": true}"#);
    assert!(!format!("{other:?}").contains("system.profile"));
}

/// Drivers send what is to be updated beside the command.
#[test]
fn an_update_is_recorded_with_what_it_does() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"profile": 2}"#);
    let update = json(r#"{"q": {"a": 1}, "u": {"$set": {"b": 2}}, "hint": "_id_"}"#);
    let sequence = DocumentSequence { name: "updates".to_owned(), documents: vec![update] };
    let command = document! { "update": "c", "comment": "it" };
    client.0.command_with("test", command.view(), vec![sequence]).expect("updates");
    client.ok("test", r#"{"profile": 0}"#);
    let found = entries(&mut client, r#"{"op": "update"}"#);
    let expected = json(
        r#"{"q": {"a": 1}, "u": {"$set": {"b": 2}}, "hint": {"$hint": "_id_"}, "multi": false,
            "upsert": false, "comment": "it"}"#,
    );
    assert_eq!(found[0].get("command"), Some(Value::from(&expected)));
}

/// The profile of a command: its plan, the keys and documents that it examined, and the number that
/// it returned, matched or deleted.
#[test]
fn plans_and_what_was_examined_are_recorded_of_whatever_searches() {
    let server = Running::start();
    let mut client = server.client();
    let documents: Vec<String> =
        (0..20).map(|it| format!(r#"{{"_id": {it}, "a": {}, "b": [{it}, 1]}}"#, it % 4)).collect();
    let insert = format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(","));
    client.ok("test", &insert);
    let indexes = r#"[{"key": {"a": 1}, "name": "a"}, {"key": {"b": -1, "a": 1}, "name": "b"}]"#;
    client.ok("test", &format!(r#"{{"createIndexes": "c", "indexes": {indexes}}}"#));
    for (command, plan, examined) in [
        (r#"{"find": "c", "filter": {"_id": 3}}"#, "EXPRESS_IXSCAN { _id: 1 }", [1, 1]),
        (r#"{"find": "c", "filter": {"_id": 99}}"#, "EXPRESS_IXSCAN { _id: 1 }", [0, 0]),
        (r#"{"find": "c", "filter": {"_id": 3}, "hint": "_id_"}"#, "IDHACK", [1, 1]),
        (r#"{"find": "c", "filter": {"_id": {"$gt": 15}}}"#, "IXSCAN { _id: 1 }", [4, 4]),
        (r#"{"find": "c", "filter": {"x": 1}}"#, "COLLSCAN", [0, 20]),
        (r#"{"find": "no", "filter": {"x": 1}}"#, "EOF", [0, 0]),
        (r#"{"find": "c", "filter": {"a": 1}}"#, "IXSCAN { a: 1 }", [5, 5]),
        (r#"{"find": "c", "filter": {"a": 1}, "limit": 1}"#, "EXPRESS_IXSCAN { a: 1 }", [1, 1]),
        (r#"{"find": "c", "filter": {"b": {"$gt": 17}}}"#, "IXSCAN { b: -1, a: 1 }", [2, 2]),
        (
            r#"{"find": "c", "filter": {"$or": [{"a": 1}, {"_id": 2}]}}"#,
            "IXSCAN { a: 1 }, IXSCAN { _id: 1 }",
            [6, 6],
        ),
        (r#"{"count": "c", "query": {"x": 1}}"#, "COLLSCAN", [0, 20]),
        (r#"{"count": "c"}"#, "RECORD_STORE_FAST_COUNT", [0, 0]),
        (r#"{"distinct": "c", "key": "a"}"#, "DISTINCT_SCAN { a: 1 }", [20, 0]),
        (
            r#"{"aggregate": "c", "pipeline": [{"$match": {"a": 2}}], "cursor": {}}"#,
            "IXSCAN { a: 1 }",
            [5, 5],
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$match": {"_id": 2}},
                {"$lookup": {"from": "c", "localField": "a", "foreignField": "a", "as": "it"}}],
                "cursor": {}}"#,
            "EXPRESS_IXSCAN { _id: 1 }",
            [6, 6],
        ),
        (
            r#"{"findAndModify": "c", "query": {"a": 1}, "update": {"$set": {"y": 1}}}"#,
            "IXSCAN { a: 1 }",
            [1, 1],
        ),
        (
            r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"y": 2}}}]}"#,
            "IDHACK",
            [1, 1],
        ),
        (
            r#"{"update": "c", "updates": [{"q": {"x": 1}, "u": {"$set": {"y": 2}}, "multi": true}]}"#,
            "COLLSCAN",
            [0, 20],
        ),
        (r#"{"delete": "c", "deletes": [{"q": {"a": 3}, "limit": 0}]}"#, "IXSCAN { a: 1 }", [5, 5]),
    ] {
        client.ok("test", r#"{"profile": 2}"#);
        client.ok("test", command);
        client.ok("test", r#"{"profile": 0}"#);
        let [entry] = &entries(&mut client, "{}")[..] else { panic!("{command} is told once") };
        assert_eq!(entry.get("planSummary"), Some(Value::String(plan)), "{command}");
        let counts = ["keysExamined", "docsExamined"].map(|name| integer(entry, name));
        assert_eq!(counts, examined.map(Some), "{command}");
        assert_eq!(integer(entry, "numYield"), Some(0));
        client.ok("test", r#"{"drop": "system.profile"}"#);
    }
}

#[test]
fn a_sort_is_recorded_and_the_hashes_are_those_of_explain() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 1}]}"#);
    client.ok("test", r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}"#);
    for command in [
        r#"{"find": "c", "filter": {"a": 1}, "sort": {"b": 1}}"#,
        r#"{"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$sort": {"b": 1}}],
            "cursor": {}}"#,
        r#"{"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$group": {"_id": "$b"}},
            {"$sort": {"_id": 1}}], "cursor": {}}"#,
        r#"{"findAndModify": "c", "query": {"a": 1}, "sort": {"b": 1}, "remove": true}"#,
    ] {
        client.ok("test", r#"{"profile": 2}"#);
        client.ok("test", command);
        client.ok("test", r#"{"profile": 0}"#);
        let [entry] = &entries(&mut client, "{}")[..] else { panic!("{command} is told once") };
        assert_eq!(entry.get("hasSortStage"), Some(Value::Boolean(true)), "{command}");
        let explained = client.ok("test", &format!(r#"{{"explain": {command}}}"#));
        let hash = entry.get("planCacheShapeHash").and_then(|hash| hash.as_str()).unwrap();
        assert_eq!(entry.get("queryHash"), Some(Value::String(hash)));
        assert!(format!("{explained:?}").contains(hash), "{command}: {hash}, {explained:?}");
        client.ok("test", r#"{"drop": "system.profile"}"#);
    }
    client.ok("test", r#"{"profile": 2}"#);
    client.ok("test", r#"{"find": "c", "filter": {"a": 1}, "sort": {"a": 1}}"#);
    assert!(entries(&mut client, "{}")[0].get("hasSortStage").is_none());
}

/// What `explain` runs again to find out, of a search that was answered whole.
#[test]
fn the_stages_of_a_search_are_recorded_as_explain_shows_them() {
    let server = Running::start();
    let mut client = server.client();
    let documents: Vec<DocumentBuf> =
        (0..300).map(|id| document! { "_id": id, "a": id % 5, "b": id }).collect();
    let sequence = DocumentSequence { name: "documents".to_owned(), documents };
    let insert = document! { "insert": "c" };
    client.0.command_with("test", insert.view(), vec![sequence]).expect("inserted");
    client.ok("test", r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}"#);
    let stages_of = |client: &mut TestClient, command: &str| {
        client.ok("test", r#"{"profile": 2}"#);
        client.ok("test", command);
        client.ok("test", r#"{"profile": 0}"#);
        let [entry] = &entries(client, "{}")[..] else { panic!("{command} is recorded once") };
        client.ok("test", r#"{"drop": "system.profile"}"#);
        assert_eq!(entry.get("storage"), Some(Value::from(&document! {})));
        assert_eq!(entry.get("locks"), Some(Value::from(&document! {})), "a read takes none");
        entry.get("execStats").map(|stages| stages.as_document().unwrap().to_buf())
    };
    for command in [
        r#"{"find": "c", "filter": {"_id": 3}}"#,
        r#"{"find": "c", "filter": {"_id": 3}, "hint": "_id_"}"#,
        r#"{"find": "c", "filter": {"b": {"$lt": 7}}}"#,
        r#"{"find": "c", "filter": {"b": {"$lt": 7}}, "sort": {"b": -1}, "limit": 3}"#,
        r#"{"find": "c", "filter": {"a": 2, "b": {"$gt": 150}}, "skip": 4, "limit": 10}"#,
        r#"{"find": "c", "filter": {"a": 2}, "projection": {"a": 1, "_id": 0}}"#,
        r#"{"find": "c", "skip": 250}"#,
        r#"{"find": "no"}"#,
        r#"{"count": "c"}"#,
        r#"{"count": "c", "query": {"a": 1}}"#,
        r#"{"count": "c", "query": {"b": {"$lt": 9}}, "skip": 2}"#,
        r#"{"distinct": "c", "key": "a"}"#,
        r#"{"distinct": "c", "key": "b", "query": {"a": 3}}"#,
    ] {
        let stages = stages_of(&mut client, command).unwrap_or_else(|| panic!("{command}"));
        let explain = format!(r#"{{"explain": {command}, "verbosity": "executionStats"}}"#);
        let explained = client.ok("test", &explain);
        let explained = explained.get("executionStats").and_then(|it| it.as_document()).unwrap();
        let expected = explained.get("executionStages").and_then(|it| it.as_document()).unwrap();
        assert_eq!(without_times(stages.view()), without_times(expected), "{command}");
    }
    // The rest comes later, there are two scans, a script is asked, or a view is read.
    client.ok("test", r#"{"create": "v", "viewOn": "c", "pipeline": []}"#);
    for command in [
        r#"{"find": "c", "filter": {"b": {"$lt": 7}}, "batchSize": 2}"#,
        r#"{"find": "c", "filter": {"$or": [{"a": 1}, {"_id": 7}]}}"#,
        r#"{"aggregate": "c", "pipeline": [{"$match": {"a": 2}}], "cursor": {}}"#,
        r#"{"find": "v", "filter": {"_id": 3}}"#,
    ] {
        assert_eq!(stages_of(&mut client, command), None, "{command}");
    }
}

/// A tree of stages without what depends on the clock.
fn without_times(stages: Document<'_>) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    for (name, value) in stages.iter().filter(|(name, _)| *name != "executionTimeMillisEstimate") {
        match value {
            Value::Document(inner) if name == "inputStage" => {
                out.append(name, Value::from(&without_times(inner)));
            }
            _ => {
                out.append(name, value);
            }
        }
    }
    out.build()
}

/// A write shares the latches of its collection and database; a drop holds them alone.
#[test]
fn the_latches_that_an_operation_took_are_recorded_and_counted() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let count = |client: &mut TestClient, lock: &str, mode: &str| {
        let status = client.ok("admin", r#"{"serverStatus": 1}"#);
        let found = status.get("locks").and_then(|it| it.as_document()?.get(lock));
        let found = found.and_then(|it| it.as_document()?.get("acquireCount"));
        let found = found.and_then(|it| it.as_document()?.get(mode)?.as_integer());
        found.unwrap_or(0)
    };
    client.ok("test", r#"{"profile": 2}"#);
    let before = count(&mut client, "Collection", "w");
    client
        .ok("test", r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}]}"#);
    let after = count(&mut client, "Collection", "w");
    client.ok("test", r#"{"profile": 0}"#);
    let [entry] = &entries(&mut client, "{}")[..] else { panic!("it is recorded once") };
    let once = document! { "w": 1_i64 };
    let once = document! { "acquireCount": &once };
    let expected = document! { "Database": &once, "Collection": &once };
    assert_eq!(entry.get("locks"), Some(Value::from(&expected)));
    assert_eq!(after, before + 1);
    let removals = count(&mut client, "Database", "W");
    client.ok("test", r#"{"dropDatabase": 1}"#);
    assert!(removals < count(&mut client, "Database", "W"));
}

/// Documents examined in vain before an update went on in parts aren't counted.
#[test]
fn an_update_of_many_documents_examines_each_once() {
    let server = Running::start();
    let mut client = server.client();
    let documents: Vec<DocumentBuf> = (0..5000).map(|id| document! { "_id": id }).collect();
    let sequence = DocumentSequence { name: "documents".to_owned(), documents };
    client
        .0
        .command_with("test", document! { "insert": "c" }.view(), vec![sequence])
        .expect("room");
    client.ok("test", r#"{"profile": 2}"#);
    let all = r#"{"q": {"x": null}, "u": {"$set": {"a": 1}}, "multi": true}"#;
    let one = r#"{"q": {"_id": 1}, "u": {"$set": {"a": 2}}}"#;
    client.ok("test", &format!(r#"{{"update": "c", "updates": [{one}, {all}, {one}]}}"#));
    client.ok("test", &format!(r#"{{"update": "c", "updates": [{all}]}}"#));
    let found = entries(&mut client, r#"{"op": "update"}"#);
    let examined: Vec<_> = found.iter().map(|entry| integer(entry, "docsExamined")).collect();
    assert_eq!(examined, [Some(1), Some(5000), Some(1), Some(5000)]);
}

/// The counts of a getMore are its own, and its plan is its cursor's.
#[test]
fn a_get_more_is_recorded_with_what_opened_its_cursor() {
    let server = Running::start();
    let mut client = server.client();
    let documents: Vec<String> = (0..9).map(|it| format!(r#"{{"_id": {it}}}"#)).collect();
    client.ok("test", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(",")));
    client.ok("test", r#"{"profile": 2}"#);
    let find = r#"{"find": "c", "filter": {"x": null}, "batchSize": 2}"#;
    let answer = client.ok("test", find);
    let id = answer.get("cursor").and_then(|it| it.as_document()).unwrap().get("id").unwrap();
    let id = id.as_integer().unwrap();
    let more = format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c"}}"#);
    client.ok("test", &more);
    let found = entries(&mut client, r#"{"ns": "test.c"}"#);
    let [first, second] = &found[..] else { panic!("{found:?}") };
    assert_eq!(second.get("op"), Some(Value::String("getmore")));
    let origin = second.get("originatingCommand").and_then(|it| it.as_document()).unwrap();
    assert_eq!(origin.get("find"), Some(Value::String("c")));
    assert_eq!(second.get("planSummary"), Some(Value::String("COLLSCAN")));
    assert_eq!(second.get("queryHash"), first.get("queryHash"));
    let count = |entry, name| integer(entry, name).unwrap();
    assert_eq!(count(first, "docsExamined") + count(second, "docsExamined"), 9);
    assert_eq!((count(first, "nreturned"), count(second, "nreturned")), (2, 7));
    assert_eq!(second.get("cursorExhausted"), Some(Value::Boolean(true)));
    assert!(first.get("cursorExhausted").is_none());
}

#[test]
fn a_filter_may_ask_for_what_was_examined_and_for_each_statement() {
    let server = Running::start();
    let mut client = server.client();
    let documents: Vec<String> = (0..9).map(|it| format!(r#"{{"_id": {it}}}"#)).collect();
    client.ok("test", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(",")));
    let filter = r#"{"docsExamined": {"$gt": 5}, "planSummary": "COLLSCAN"}"#;
    client.ok("test", &format!(r#"{{"profile": 1, "slowms": 100000, "filter": {filter}}}"#));
    client.ok("test", r#"{"find": "c", "filter": {"_id": 1}}"#);
    client.ok("test", r#"{"find": "c", "filter": {"x": 1}}"#);
    let update = r#"{"q": {"_id": 1}, "u": {"$set": {"x": 1}}},
        {"q": {"x": 7}, "u": {"$set": {"a": 1}}}"#;
    client.ok("test", &format!(r#"{{"update": "c", "updates": [{update}]}}"#));
    client.ok("test", r#"{"profile": 0, "filter": "unset"}"#);
    let entry = entries(&mut client, "{}");
    let commands: Vec<String> =
        entry.iter().map(|entry| format!("{:?}", entry.get("command").unwrap())).collect();
    assert_eq!(entry.len(), 2, "{commands:?}");
    assert_eq!(entry[1].get("op"), Some(Value::String("update")));
    let update = entry[1].get("command").and_then(|it| it.as_document()).unwrap();
    assert!(update.get("q").and_then(|it| it.as_document()).unwrap().get("x").is_some());
}

#[test]
fn only_what_is_slow_is_recorded_at_level_one_and_of_that_a_share() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    client.ok("test", r#"{"profile": 1, "slowms": 1000000}"#);
    client.ok("test", r#"{"find": "c"}"#);
    assert_eq!(entries(&mut client, "{}").len(), 0);
    let was = client.ok("test", r#"{"profile": 1, "slowms": 0, "sampleRate": 0}"#);
    assert_eq!(was.get("slowms"), Some(Value::Int32(1_000_000)));
    client.ok("test", r#"{"find": "c"}"#);
    assert_eq!(entries(&mut client, "{}").len(), 0);
    client.ok("test", r#"{"profile": 1, "sampleRate": 1}"#);
    client.ok("test", r#"{"find": "c"}"#);
    assert_eq!(entries(&mut client, r#"{"ns": "test.c"}"#).len(), 1);
    let now = client.ok("test", r#"{"profile": -1}"#);
    assert_eq!([integer(&now, "was"), integer(&now, "slowms")], [Some(1), Some(0)]);
}

#[test]
fn a_filter_says_what_is_recorded_in_the_place_of_time() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    let set =
        r#"{"profile": 1, "slowms": 1000000, "filter": {"op": "query", "nreturned": {"$gt": 1}}}"#;
    let was = client.ok("test", set);
    assert!(was.get("filter").is_none() && was.get("note").is_some(), "{was:?}");
    client.ok("test", r#"{"find": "c"}"#);
    client.ok("test", r#"{"find": "c", "limit": 1}"#);
    client.ok("test", r#"{"count": "c"}"#);
    assert_eq!(entries(&mut client, "{}").len(), 1);
    let was = client.ok("test", r#"{"profile": 0, "filter": "unset"}"#);
    let filter = json(r#"{"op": "query", "nreturned": {"$gt": 1}}"#);
    assert_eq!(was.get("filter"), Some(Value::from(&filter)));
    assert!(client.ok("test", r#"{"profile": 1}"#).get("note").is_none());
    client.ok("test", r#"{"find": "c"}"#);
    assert_eq!(entries(&mut client, "{}").len(), 1);
}

#[test]
fn the_server_writes_the_profile_and_users_may_drop_it() {
    let server = Running::start();
    let mut client = server.client();
    let create = r#"{"create": "system.profile", "capped": true, "size": 8192}"#;
    client.ok("test", create);
    client.ok("test", r#"{"profile": 2}"#);
    assert_eq!(client.code("test", r#"{"drop": "system.profile"}"#), 20);
    for command in [
        r#"{"insert": "system.profile", "documents": [{}]}"#,
        r#"{"update": "system.profile", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}"#,
        r#"{"delete": "system.profile", "deletes": [{"q": {}, "limit": 0}]}"#,
        r#"{"findAndModify": "system.profile", "query": {}, "remove": true}"#,
        r#"{"createIndexes": "system.profile", "indexes": [{"key": {"a": 1}, "name": "a"}]}"#,
    ] {
        assert_eq!(client.code("test", command), 73, "{command}");
    }
    let out = r#"{"aggregate": "c", "pipeline": [{"$out": "system.profile"}], "cursor": {}}"#;
    assert_ne!(client.code("test", out), 0);
    let text = "x".repeat(1000);
    for _ in 0..40 {
        client.ok("test", &format!(r#"{{"find": "c", "filter": {{"a": "{text}"}}}}"#));
    }
    let entry = entries(&mut client, "{}").len();
    assert!((1..12).contains(&entry), "{entry} of what 8 KB hold");
    client.ok("test", r#"{"profile": 0}"#);
    client.ok("test", r#"{"drop": "system.profile"}"#);
    client.ok("test", r#"{"create": "system.profile"}"#);
    assert_eq!(client.code("test", r#"{"profile": 1}"#), 20);
    client.ok("test", r#"{"drop": "system.profile"}"#);
    client.ok("test", r#"{"profile": 2}"#);
    client.ok("test", r#"{"dropDatabase": 1}"#);
    client.ok("test", r#"{"find": "c"}"#);
    assert_eq!(entries(&mut client, "{}").len(), 0);
}

#[test]
fn operations_of_a_bulk_write_are_recorded_each_in_its_database() {
    let server = Running::start();
    let mut client = server.client();
    let index = r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}"#;
    client.ok("test", index);
    client.ok("test", r#"{"profile": 2}"#);
    let ops = r#"[{"insert": 0, "document": {"_id": 1, "a": [1, 2]}},
        {"insert": 1, "document": {"_id": 1}},
        {"update": 0, "filter": {"_id": 1}, "updateMods": {"$set": {"a": 2}}},
        {"update": 0, "filter": {"a": 7}, "updateMods": {"$set": {"b": 2}}, "upsert": true},
        {"delete": 0, "filter": {"a": 2}, "multi": true}]"#;
    let namespaces = r#"[{"ns": "test.c"}, {"ns": "other.d"}]"#;
    let bulk = format!(r#"{{"bulkWrite": 1, "ops": {ops}, "nsInfo": {namespaces}}}"#);
    client.ok("admin", &bulk);
    client.ok("test", r#"{"profile": 0}"#);
    let found = entries(&mut client, "{}");
    let logged: Vec<String> = found
        .iter()
        .map(|entry| {
            let counts = ["ninserted", "nMatched", "nModified", "nUpserted", "ndeleted"]
                .iter()
                .chain(&["keysInserted", "keysDeleted"])
                .filter_map(|name| Some(format!(" {name} {}", integer(entry, name)?)));
            let text = |name: &str| entry.get(name).and_then(|it| it.as_str()).unwrap_or("-");
            format!("{} {}{}", text("op"), text("ns"), counts.collect::<String>())
        })
        .collect();
    assert_eq!(
        logged,
        [
            "insert test.c ninserted 1 keysInserted 3",
            "update test.c nMatched 1 nModified 1 nUpserted 0 keysDeleted 1",
            "update test.c nMatched 0 nModified 0 nUpserted 1 keysInserted 2",
            "remove test.c ndeleted 1 keysDeleted 2",
        ]
    );
    let logged = |place: usize| found[place].get("command").and_then(|logged| logged.as_document());
    let insert = json(r#"{"insert": 0, "document": {"_id": 1, "a": [1, 2]}}"#);
    assert_eq!(logged(0), Some(insert.view()));
    assert_eq!(found[1].get("planSummary"), Some(Value::String("IDHACK")));
    assert_eq!(entries_of(&mut client, "other"), 0, "its profiler is off");
}

fn entries_of(client: &mut TestClient, database: &str) -> usize {
    let answer = client.ok(database, r#"{"count": "system.profile"}"#);
    integer(&answer, "n").and_then(|count| usize::try_from(count).ok()).expect("a count")
}

#[test]
fn running_operations_show_their_plan() {
    let server = Running::start();
    let (mut client, mut other) = (server.client(), server.client());
    let documents: Vec<String> = (0..4_000).map(|it| format!(r#"{{"_id": {it}}}"#)).collect();
    client.ok("test", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(",")));
    let slow = r#"{"$lt": [{"$reduce": {"input": {"$range": [0, 100000]}, "initialValue": "$_id",
        "in": {"$add": ["$$value", 1]}}}, 0]}"#;
    let find = format!(r#"{{"find": "c", "filter": {{"_id": {{"$gte": 10}}, "$expr": {slow}}}}}"#);
    let running = std::thread::spawn(move || client.code("test", &find));
    let ask = r#"{"currentOp": 1, "command.find": "c", "docsExamined": {"$gte": 64}}"#;
    let entry = loop {
        let answer = other.ok("admin", ask);
        let listed = answer.get("inprog").and_then(|list| list.as_array()).expect("a list");
        if let Some(entry) = listed.iter().next().and_then(|entry| entry.as_document()) {
            break entry.to_buf();
        }
        std::thread::yield_now();
    };
    assert_eq!(entry.get("planSummary"), Some(Value::String("IXSCAN { _id: 1 }")));
    assert!(integer(&entry, "keysExamined").is_some());
    let id = integer(&entry, "opid").expect("it has one");
    other.ok("admin", &format!(r#"{{"killOp": 1, "op": {id}}}"#));
    assert_eq!(running.join().expect("it ends"), 11601);
}

/// `operationProfiling.mode` of mongod's files.
#[test]
fn databases_without_a_level_have_that_of_the_start() {
    let parameters =
        BeginningParameters { profile_level: ProfileLevel::All, ..BeginningParameters::default() };
    let options = ServerOptions { parameters, ..ServerOptions::default() };
    let server = Running::with(&SimDisk::new(1), options);
    let mut client = server.client();
    client.ok("nowhere", r#"{"find": "c"}"#);
    let listed = client.ok("admin", r#"{"listDatabases": 1, "nameOnly": true}"#);
    assert!(!format!("{listed:?}").contains("nowhere"), "reading makes no database: {listed:?}");
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    client.ok("test", r#"{"find": "c", "comment": "looked for"}"#);
    let found = r#"{"command.comment": "looked for"}"#;
    assert_eq!(entries(&mut client, found).len(), 1);
    client.check(
        "test",
        r#"{"profile": 0}"#,
        r#"{"was": 2, "slowms": 100, "sampleRate": 1.0, "ok": 1.0}"#,
    );
    client.ok("test", r#"{"find": "c", "comment": "looked for"}"#);
    assert_eq!(entries(&mut client, found).len(), 1, "it has a level of its own");
}
