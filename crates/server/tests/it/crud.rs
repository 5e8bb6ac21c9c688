//! Reads and writes, whole answers compared.

use frond_doc::Value;

use crate::running::{Running, json};

#[test]
fn insert_find_update_delete() {
    let server = Running::start();
    let mut client = server.client();
    let mut check = |command: &str, expected: &str| client.check("test", command, expected);
    check(
        r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]}"#,
        r#"{"n": 2, "ok": 1.0}"#,
    );
    check(
        r#"{"find": "c", "filter": {"a": {"$gt": 1}}}"#,
        r#"{"cursor": {"firstBatch": [{"_id": 2, "a": 2}], "id": 0, "ns": "test.c"}, "ok": 1.0}"#,
    );
    check(
        r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 5}}},
            {"q": {"_id": 9}, "u": {"$set": {"a": 9}}, "upsert": true},
            {"q": {}, "u": {"$set": {"b": true}}, "multi": true}]}"#,
        r#"{"n": 5, "upserted": [{"index": 1, "_id": 9}], "nModified": 4, "ok": 1.0}"#,
    );
    check(r#"{"count": "c", "query": {"b": true}}"#, r#"{"n": 3, "ok": 1.0}"#);
    check(r#"{"count": "c", "limit": -2}"#, r#"{"n": 2, "ok": 1.0}"#);
    // Drivers send it with all aggregations where the database has one.
    check(
        r#"{"aggregate": "c", "pipeline": [{"$count": "n"}], "cursor": {}, "writeConcern": {"w": 1}}"#,
        r#"{"cursor": {"firstBatch": [{"n": 3}], "id": 0, "ns": "test.c"}, "ok": 1.0}"#,
    );
    check(r#"{"distinct": "c", "key": "a"}"#, r#"{"values": [2, 6, 9], "ok": 1.0}"#);
    check(
        r#"{"findAndModify": "c", "query": {"_id": 2}, "update": {"$set": {"a": 0}}, "new": true}"#,
        r#"{"lastErrorObject": {"n": 1, "updatedExisting": true},
            "value": {"_id": 2, "a": 0, "b": true}, "ok": 1.0}"#,
    );
    check(
        r#"{"findandmodify": "c", "query": {"_id": 2}, "remove": true, "fields": {"a": 1}}"#,
        r#"{"lastErrorObject": {"n": 1}, "value": {"_id": 2, "a": 0}, "ok": 1.0}"#,
    );
    check(
        r#"{"findAndModify": "c", "query": {"_id": 7}, "update": {"$set": {"a": 7}},
            "upsert": true}"#,
        r#"{"lastErrorObject": {"n": 1, "updatedExisting": false, "upserted": 7},
            "value": null, "ok": 1.0}"#,
    );
    check(
        r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": {"$gte": 7}}},
            {"$group": {"_id": null, "sum": {"$sum": "$a"}}}]}"#,
        r#"{"cursor": {"firstBatch": [{"_id": null, "sum": 16}], "id": 0, "ns": "test.c"},
            "ok": 1.0}"#,
    );
    check(r#"{"delete": "c", "deletes": [{"q": {}, "limit": 1}]}"#, r#"{"n": 1, "ok": 1.0}"#);
    check(r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}"#, r#"{"n": 2, "ok": 1.0}"#);
}

#[test]
fn errors_of_single_writes() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    for (ordered, n) in [(true, 1), (false, 2)] {
        client
            .ok("test", r#"{"delete": "c", "deletes": [{"q": {"_id": {"$ne": 1}}, "limit": 0}]}"#);
        let command = format!(
            r#"{{"insert": "c", "ordered": {ordered},
                "documents": [{{"_id": 2}}, {{"_id": 1}}, {{"_id": 3}}]}}"#
        );
        let answer = client.ok("test", &command);
        assert_eq!(answer.get("n"), Some(Value::Int32(n)));
        let errors = answer.get("writeErrors").and_then(|errors| errors.as_array());
        let error = errors.and_then(|errors| errors.get(0)?.as_document()).expect("one error");
        assert_eq!(error.get("index"), Some(Value::Int32(1)));
        assert_eq!(error.get("code"), Some(Value::Int32(11000)));
        assert!(error.get("keyPattern").is_some());
        assert!(error.get("keyValue").is_some());
    }
}

#[test]
fn indexes_are_changed_explained_and_checked() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}, {"_id": 3, "a": [5]}]}"#);
    client.ok(
        "test",
        r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1", "hidden": true},
            {"key": {"b": "hashed"}, "name": "b"}, {"key": {"$**": 1}, "name": "all"}]}"#,
    );
    client.check(
        "test",
        r#"{"collMod": "c", "index": {"name": "a_1", "hidden": false, "expireAfterSeconds": 60}}"#,
        r#"{"hidden_old": true, "hidden_new": false, "expireAfterSeconds_new": {"$numberLong": "60"},
            "ok": 1.0}"#,
    );
    for (command, code) in [
        (r#"{"collMod": "c", "index": {"name": "nope", "hidden": true}}"#, 27),
        (r#"{"collMod": "c", "index": {"name": "a_1"}}"#, 72),
        (r#"{"collMod": "c", "index": {"hidden": true}}"#, 72),
        (r#"{"collMod": "c", "index": {"name": "a_1", "unique": true}}"#, 72),
        (r#"{"find": "c", "min": {"a": 1}, "max": {"a": 2}}"#, 51173),
        (r#"{"create": "x", "clusteredIndex": {"key": {"_id": 1}}}"#, 40414),
        (r#"{"create": "x", "clusteredIndex": {"key": {"_id": 1}, "unique": false}}"#, 5_979_700),
        (r#"{"aggregate": "c", "pipeline": [{"$indexStats": {"a": 1}}], "cursor": {}}"#, 28803),
    ] {
        assert_eq!(client.error("test", command).0, code, "{command}");
    }
    let stage = |explained: &frond_doc::DocumentBuf| {
        let plan = explained.get("queryPlanner").and_then(|planner| planner.as_document());
        let plan = plan.and_then(|planner| planner.get("winningPlan")?.as_document());
        plan.and_then(|plan| plan.get("stage")?.as_str()).unwrap_or("none").to_owned()
    };
    for (command, expected) in [
        (r#"{"find": "c", "filter": {"b": 1}}"#, "FETCH"),
        (r#"{"count": "c", "query": {}}"#, "COUNT"),
        (r#"{"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"b": 1}}}]}"#, "UPDATE"),
        (r#"{"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 0}]}"#, "DELETE"),
        (r#"{"distinct": "c", "key": "a"}"#, "PROJECTION_SIMPLE"),
    ] {
        let explained = client.ok("test", &format!(r#"{{"explain": {command}}}"#));
        assert_eq!(stage(&explained), expected, "{command}");
    }
    client.ok(
        "test",
        r#"{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": {"$gt": 1}}}]}"#,
    );
    let explained = client.ok("test", r#"{"explain": {"find": "v", "filter": {"b": 1}}}"#);
    let stages = explained.get("stages").and_then(|stages| stages.as_array());
    assert_eq!(
        stages.map(|stages| stages.iter().count()),
        Some(1),
        "the view's condition and the reader's are one search"
    );
    let validated = client.ok("test", r#"{"validate": "c"}"#);
    assert_eq!(validated.get("valid"), Some(Value::Boolean(true)));
    assert_eq!(validated.get("nIndexes").and_then(|count| count.as_integer()), Some(4));
    let stats = r#"{"aggregate": "c", "pipeline": [{"$indexStats": {}}, {"$project": {"name": 1, "_id": 0}}, {"$sort": {"name": 1}}], "cursor": {}}"#;
    client.check_documents(
        "test",
        stats,
        &[r#"{"name": "_id_"}"#, r#"{"name": "a_1"}"#, r#"{"name": "all"}"#, r#"{"name": "b"}"#],
    );
}

#[test]
fn indexes_collections_and_databases() {
    let server = Running::start();
    let mut client = server.client();
    client.check(
        "test",
        r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#,
        r#"{"numIndexesBefore": 1, "numIndexesAfter": 2, "createdCollectionAutomatically": true,
            "ok": 1.0}"#,
    );
    client.check_documents(
        "test",
        r#"{"listIndexes": "c"}"#,
        &[
            r#"{"v": 2, "key": {"_id": 1}, "name": "_id_"}"#,
            r#"{"v": 2, "key": {"a": 1}, "name": "a_1"}"#,
        ],
    );
    let explain = r#"{"explain": {"find": "c", "filter": {"a": 1}}, "verbosity": "queryPlanner"}"#;
    let explanation = client.ok("test", explain);
    assert!(explanation.get("queryPlanner").is_some());
    assert!(explanation.get("executionStats").is_none());
    client.check(
        "test",
        r#"{"dropIndexes": "c", "index": {"a": 1}}"#,
        r#"{"nIndexesWas": 2, "ok": 1.0}"#,
    );
    assert_eq!(client.error("test", r#"{"dropIndexes": "c", "index": {"b": 1}}"#).0, 27);
    client.ok("test", r#"{"create": "d"}"#);
    client.ok("admin", r#"{"renameCollection": "test.d", "to": "test.e"}"#);
    client.check_documents(
        "test",
        r#"{"listCollections": 1, "nameOnly": true, "filter": {"name": {"$ne": "c"}}}"#,
        &[r#"{"name": "e", "type": "collection"}"#],
    );
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let stats = client.ok("test", r#"{"collStats": "c"}"#);
    assert_eq!(stats.get("ns"), Some(Value::String("test.c")));
    assert_eq!(stats.get("count").and_then(|count| count.as_integer()), Some(1));
    let size = client.ok("test", r#"{"dataSize": "test.c"}"#);
    assert_eq!(size.get("numObjects"), Some(Value::Int64(1)));
    let valid = client.ok("test", r#"{"validate": "c", "full": true}"#);
    assert_eq!(valid.get("valid"), Some(Value::Boolean(true)));
    assert_eq!(valid.get("nrecords"), Some(Value::Int32(1)));
    client.check("test", r#"{"drop": "e"}"#, r#"{"nIndexesWas": 1, "ns": "test.e", "ok": 1.0}"#);
    client.check("test", r#"{"drop": "e"}"#, r#"{"ok": 1.0}"#);
    client.check("test", r#"{"dropDatabase": 1}"#, r#"{"dropped": "test", "ok": 1.0}"#);
    let list = client.ok("admin", r#"{"listDatabases": 1}"#);
    let databases = list.get("databases").and_then(|list| list.as_array()).expect("an array");
    assert!(databases.is_empty());
}

/// A collated collection has an index of `_id` beside its documents, but clients see only one.
#[test]
fn a_collated_index_of_ids_is_listed_once() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"create": "c", "collation": {"locale": "en", "strength": 2}}"#);
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": "a"}, {"_id": "b"}]}"#);
    let valid = client.ok("test", r#"{"validate": "c"}"#);
    assert_eq!(valid.get("valid"), Some(Value::Boolean(true)));
    assert_eq!(valid.get("nIndexes"), Some(Value::Int32(1)));
    for (list, expected) in
        [("keysPerIndex", r#"{"_id_": 2}"#), ("indexDetails", r#"{"_id_": {"valid": true}}"#)]
    {
        let answer = valid.get(list).and_then(|list| list.as_document());
        assert_eq!(answer, Some(json(expected).view()), "{list}");
    }
    let dropped = client.ok("test", r#"{"dropIndexes": "c", "index": "*"}"#);
    assert_eq!(dropped.get("nIndexesWas"), Some(Value::Int32(1)));
    let again = r#"{"insert": "c", "documents": [{"_id": "A"}, {"_id": "c"}], "ordered": false}"#;
    assert_eq!(client.ok("test", again).get("n"), Some(Value::Int32(1)));
}

#[test]
fn relaxed_and_unacknowledged_writes() {
    let server = Running::start();
    let mut client = server.client();
    client.check(
        "test",
        r#"{"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": 0}}"#,
        r#"{"ok": 1.0}"#,
    );
    client.check(
        "test",
        r#"{"insert": "c", "documents": [{"_id": 2}], "writeConcern": {"j": false}}"#,
        r#"{"n": 1, "ok": 1.0}"#,
    );
    client.check("test", r#"{"count": "c"}"#, r#"{"n": 2, "ok": 1.0}"#);
}

#[test]
fn pipelines_that_describe_the_server() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    client.check_documents(
        "test",
        r#"{"aggregate": "c", "cursor": {}, "pipeline": [
            {"$collStats": {"count": {}, "storageStats": {"scale": 1}}},
            {"$project": {"ns": 1, "count": 1, "stored": "$storageStats.count"}}]}"#,
        &[r#"{"ns": "test.c", "count": 2, "stored": 2}"#],
    );
    client.check_documents(
        "admin",
        r#"{"aggregate": 1, "cursor": {}, "pipeline": [{"$currentOp": {"localOps": true}},
            {"$project": {"command.aggregate": 1, "ns": 1, "op": 1, "_id": 0}}]}"#,
        &[r#"{"op": "command", "ns": "admin.$cmd", "command": {"aggregate": 1}}"#],
    );
    for (database, pipeline, code) in [
        ("test", r#"[{"$currentOp": {}}]"#, 73),
        ("test", r#"[{"$collStats": 1}]"#, 5_447_000),
        ("test", r#"[{"$match": {}}, {"$collStats": {}}]"#, 40602),
    ] {
        let command = format!(r#"{{"aggregate": "c", "cursor": {{}}, "pipeline": {pipeline}}}"#);
        assert_eq!(client.error(database, &command).0, code, "{pipeline}");
    }
}

/// As in MongoDB, which counts the stages of updates once all statements have run.
#[test]
fn an_unknown_stage_fails_an_update_that_has_run() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}]}"#);
    let update = |statements: &str| format!(r#"{{"update": "c", "updates": [{statements}]}}"#);
    let set = |value: i32| format!(r#"{{"q": {{"_id": 1}}, "u": {{"$set": {{"a": {value}}}}}}}"#);
    let unknown = r#"{"q": {"_id": 1}, "u": [{"$nope": 1}]}"#;
    let wrong = r#"{"q": {"_id": 1}, "u": {"$nope": 1}}"#;
    let two = r#"{"q": {"_id": 1}, "u": [{"$set": {"a": 0}, "$unset": "b"}]}"#;
    let number = r#"{"q": {"_id": 1}, "u": [5]}"#;
    let holds = |value: i32| format!(r#"{{"_id": 1, "a": {value}}}"#);
    let find = r#"{"find": "c"}"#;
    for (statements, code, a) in [
        (format!("{}, {unknown}, {}", set(2), set(3)), 40324, 2),
        // One that isn't reached fails the command, too.
        (format!("{wrong}, {unknown}"), 40324, 2),
        (format!("{}, {two}", set(4)), 40323, 4),
        (format!("{}, {number}", set(5)), 14, 4),
    ] {
        assert_eq!(client.error("test", &update(&statements)).0, code, "{statements}");
        client.check_documents("test", find, &[&holds(a)]);
    }
    // One that no update may have is an error of its statement.
    let answer = client.ok("test", &update(r#"{"q": {}, "u": [{"$match": {}}]}"#));
    assert!(answer.get("writeErrors").is_some(), "{answer:?}");
    // So is an unknown one in a bulkWrite.
    let bulk = |updated: &str| {
        format!(
            r#"{{"bulkWrite": 1, "nsInfo": [{{"ns": "test.c"}}], "ops": [
                {{"update": 0, "filter": {{}}, "updateMods": {updated}}}]}}"#
        )
    };
    let answer = client.ok("admin", &bulk(r#"[{"$nope": 1}]"#));
    assert_eq!(answer.get("nErrors").and_then(|count| count.as_integer()), Some(1));
    assert_eq!(client.error("admin", &bulk("[5]")).0, 14);
}
