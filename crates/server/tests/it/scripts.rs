//! Clients' JavaScript over the wire: where it runs and where it is refused, that a deadline and
//! `killOp` end its request, and that nothing of it is left for another; `mapReduce`.

use std::time::{Duration, Instant};

use frond_doc::Value;

use crate::running::{Running, TestClient};

#[test]
fn scripts_choose_documents() {
    let server = Running::start();
    let mut client = server.client();
    let mut check = |command: &str, expected: &str| client.check("test", command, expected);
    check(
        r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}, {"_id": 3}]}"#,
        r#"{"n": 3, "ok": 1.0}"#,
    );
    let found = |ids: &str| {
        format!(r#"{{"cursor": {{"firstBatch": [{ids}], "id": 0, "ns": "test.c"}}, "ok": 1.0}}"#)
    };
    check(
        r#"{"find": "c", "filter": {"$where": "this.a == 2"}, "projection": {"_id": 1}}"#,
        &found(r#"{"_id": 2}"#),
    );
    check(
        r#"{"find": "c", "filter": {"_id": {"$gt": 1}, "$where": {"$code": "function() { return obj.a === undefined; }"}}}"#,
        &found(r#"{"_id": 3}"#),
    );
    check(r#"{"count": "c", "query": {"$where": "this.a"}}"#, r#"{"n": 2, "ok": 1.0}"#);
    check(
        r#"{"distinct": "c", "key": "a", "query": {"$where": "this.a > 1"}}"#,
        r#"{"values": [2], "ok": 1.0}"#,
    );
    check(
        r#"{"update": "c", "updates": [{"q": {"$where": "this.a"}, "u": {"$set": {"b": 1}}, "multi": true}]}"#,
        r#"{"n": 2, "nModified": 2, "ok": 1.0}"#,
    );
    check(
        r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": {"$gt": 0}}},
            {"$project": {"t": {"$function": {"body": "function(a) { return a * 2; }",
                "args": ["$a"], "lang": "js"}}}}]}"#,
        &found(r#"{"_id": 1, "t": 2.0}, {"_id": 2, "t": 4.0}"#),
    );
    check(
        r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$group": {"_id": null, "all":
            {"$accumulator": {"init": "function() { return []; }",
                "accumulate": "function(all, id) { return all.concat([id]); }",
                "accumulateArgs": ["$_id"], "merge": "function(a, b) { return a.concat(b); }",
                "finalize": "function(all) { return all.join('-'); }", "lang": "js"}}}}]}"#,
        &found(r#"{"_id": null, "all": "1-2-3"}"#),
    );
    check(
        r#"{"delete": "c", "deletes": [{"q": {"$where": "!this.a"}, "limit": 0}]}"#,
        r#"{"n": 1, "ok": 1.0}"#,
    );
}

#[test]
fn scripts_are_refused_where_mongodb_refuses_them() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let function = r#"{"$function": {"body": "1", "args": [], "lang": "js"}}"#;
    for (command, code) in [
        (r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"$where": "1"}}]}"#, 2),
        (r#"{"create": "v", "validator": {"$where": "1"}}"#, 2),
        (r#"{"find": "c", "filter": {"a": {"$elemMatch": {"$where": "1"}}}}"#, 2),
        (r#"{"find": "c", "filter": {"$where": 1}}"#, 2),
        (r#"{"find": "c", "filter": {"$where": "throw 1"}}"#, 139),
        (r#"{"find": "c", "filter": {"$where": "function("}}"#, 139),
        (r#"{"find": "c", "filter": {"$where": "'x'.repeat(1e9) + 'x'.repeat(1e9)"}}"#, 139),
    ] {
        assert_eq!(client.code("test", command), code, "{command}");
    }
    let validator = format!(r#"{{"create": "v", "validator": {{"$expr": {function}}}}}"#);
    assert_eq!(client.code("test", &validator), 4_660_800);
    let index = format!(
        r#"{{"createIndexes": "c", "indexes": [{{"key": {{"a": 1}}, "name": "a",
            "partialFilterExpression": {{"$expr": {function}}}}}]}}"#
    );
    assert_eq!(client.code("test", &index), 224);
}

/// A `$function` may stand in the conditions of stages that look documents up.
#[test]
fn functions_restrict_what_stages_look_up() {
    let server = Running::start();
    let mut client = server.client();
    let documents = r#"[{"_id": 1, "next": 2, "at": [0, 0]}, {"_id": 2, "next": 3, "at": [1, 1]},
        {"_id": 3, "next": 1, "at": [2, 2]}]"#;
    client.ok("test", &format!(r#"{{"insert": "c", "documents": {documents}}}"#));
    client
        .ok("test", r#"{"createIndexes": "c", "indexes": [{"key": {"at": "2d"}, "name": "at"}]}"#);
    let even = r#"{"$expr": {"$function": {"body": "function(x) { return x != 3 }",
        "args": ["$_id"], "lang": "js"}}}"#;
    let found = |client: &mut TestClient, stages: &str| {
        let command = format!(r#"{{"aggregate": "c", "cursor": {{}}, "pipeline": [{stages}]}}"#);
        let answer = client.ok("test", &command);
        let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
        let batch = cursor.get("firstBatch").and_then(|batch| batch.as_array()).unwrap();
        let count = |it: Value<'_>| it.as_document()?.get("count")?.as_integer();
        batch.iter().filter_map(count).collect::<Vec<i64>>()
    };
    let graph = format!(
        r#"{{"$match": {{"_id": 1}}}}, {{"$graphLookup": {{"from": "c", "startWith": "$next",
            "connectFromField": "next", "connectToField": "_id", "as": "all",
            "restrictSearchWithMatch": {even}}}}}, {{"$project": {{"count": {{"$size": "$all"}}}}}}"#
    );
    assert_eq!(found(&mut client, &graph), [1], "the second alone: the third ends it");
    let near = format!(
        r#"{{"$geoNear": {{"near": [0, 0], "distanceField": "d", "query": {even}}}}},
            {{"$count": "count"}}"#
    );
    assert_eq!(found(&mut client, &near), [2]);
}

#[test]
fn scripts_end_and_leave_nothing() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    for script in [
        "while (true);",
        "while (true) { try { while (true); } catch (e) { } }",
        "/^(a+)+$/.test('a'.repeat(50) + 'b')",
        "sleep(1e9)",
        // Each of its calls takes milliseconds, and the engine asks after ten thousand.
        "var a = []; while (a.length < 50000) a.push(a.length); while (true) JSON.stringify(a);",
    ] {
        let start = Instant::now();
        let find =
            format!(r#"{{"find": "c", "filter": {{"$where": "{script}"}}, "maxTimeMS": 50}}"#);
        assert_eq!(client.code("test", &find), 50, "{script}");
        assert!(start.elapsed() < Duration::from_secs(5), "{script}: {:?}", start.elapsed());
    }
    let spoil = "Object.prototype.left = 1; left2 = 1; return true";
    client.ok("test", &format!(r#"{{"count": "c", "query": {{"$where": "{spoil}"}}}}"#));
    let seen = "typeof ({}).left + typeof left2 != 'undefinedundefined'";
    client.check(
        "test",
        &format!(r#"{{"count": "c", "query": {{"$where": "{seen}"}}}}"#),
        r#"{"n": 0, "ok": 1.0}"#,
    );
    server.check();
}

/// The functions of a `mapReduce` of documents `{_id, tags, n}`.
const MAP_REDUCE: &str = r#""map": "function() { for (var tag of this.tags) emit(tag, this.n * factor); }",
    "reduce": {"$code": "function(key, values) { return Array.sum(values); }"},
    "scope": {"factor": 10}"#;

#[test]
fn map_reduce_answers_or_writes() {
    let server = Running::start();
    let mut client = server.client();
    client.ok(
        "test",
        r#"{"insert": "c", "documents": [{"_id": 1, "tags": ["a", "b"], "n": 1},
            {"_id": 2, "tags": ["b"], "n": 2}, {"_id": 3, "tags": [], "n": 3},
            {"_id": 4, "tags": ["c"], "n": 4}]}"#,
    );
    let mut run = |more: &str, expected: &str| {
        let command = format!(r#"{{"mapReduce": "c", {MAP_REDUCE}, {more}}}"#);
        client.check("test", &command, expected);
    };
    let finalize = r#""finalize": "function(key, value) { return key + value; }""#;
    run(
        &format!(r#""query": {{"n": {{"$lt": 4}}}}, {finalize}, "out": {{"inline": 1}}"#),
        r#"{"results": [{"_id": "a", "value": "a10"}, {"_id": "b", "value": "b30"}], "ok": 1.0}"#,
    );
    run(
        r#""sort": {"n": -1}, "limit": 1, "jsMode": true, "out": {"inline": 1}"#,
        r#"{"results": [{"_id": "c", "value": 40.0}], "ok": 1.0}"#,
    );
    run(r#""out": "made""#, r#"{"result": "made", "ok": 1.0}"#);
    run(r#""query": {"n": 1}, "out": {"merge": "made"}"#, r#"{"result": "made", "ok": 1.0}"#);
    run(r#""query": {"n": 1}, "out": {"reduce": "made"}"#, r#"{"result": "made", "ok": 1.0}"#);
    run(
        r#""query": {"n": 2}, "out": {"replace": "far", "db": "other"}"#,
        r#"{"result": {"db": "other", "collection": "far"}, "ok": 1.0}"#,
    );
    let mut find = |database: &str, name: &str, documents: &str| {
        let expected = format!(
            r#"{{"cursor": {{"firstBatch": [{documents}], "id": 0, "ns": "{database}.{name}"}}, "ok": 1.0}}"#
        );
        client.check(
            database,
            &format!(r#"{{"find": "{name}", "sort": {{"_id": 1}}}}"#),
            &expected,
        );
    };
    find(
        "test",
        "made",
        r#"{"_id": "a", "value": 20.0}, {"_id": "b", "value": 20.0}, {"_id": "c", "value": 40.0}"#,
    );
    find("other", "far", r#"{"_id": "b", "value": 20.0}"#);
}

#[test]
fn scripts_know_the_functions_that_are_stored() {
    let server = Running::start();
    let mut client = server.client();
    client.ok(
        "test",
        r#"{"insert": "system.js", "documents": [
            {"_id": "twice", "value": {"$code": "function(x) { return 2 * x; }"}},
            {"_id": "four", "value": {"$code": "function() { return twice(2); }"}},
            {"_id": "one", "value": 1}, {"_id": "broken", "value": {"$code": "function("}},
            {"_id": "x\u0000y", "value": {"$code": "function() {}"}}]}"#,
    );
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1, "n": 2}, {"_id": 2, "n": 9}]}"#);
    client.ok("other", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let filter = r#"{"$where": "twice(this.n) === four() && one === 1"}"#;
    for (command, expected) in [
        (format!(r#"{{"count": "c", "query": {filter}}}"#), r#"{"n": 1, "ok": 1.0}"#),
        (
            format!(r#"{{"distinct": "c", "key": "_id", "query": {filter}}}"#),
            r#"{"values": [1], "ok": 1.0}"#,
        ),
        (
            format!(r#"{{"delete": "c", "deletes": [{{"q": {filter}, "limit": 1}}]}}"#),
            r#"{"n": 1, "ok": 1.0}"#,
        ),
        (
            format!(r#"{{"update": "c", "updates": [{{"q": {filter}, "u": {{}}}}]}}"#),
            r#"{"n": 0, "nModified": 0, "ok": 1.0}"#,
        ),
        (
            format!(r#"{{"findAndModify": "c", "query": {filter}, "remove": true}}"#),
            r#"{"lastErrorObject": {"n": 0}, "value": null, "ok": 1.0}"#,
        ),
        (
            r#"{"mapReduce": "c", "map": "function() { emit(factor, twice(this.n)); }",
                "reduce": "function(key, values) { return Array.sum(values); }",
                "finalize": "function(key, value) { return value + four() + one; }",
                "scope": {"factor": 10, "one": 100}, "out": {"inline": 1}}"#
                .to_owned(),
            r#"{"results": [{"_id": 10.0, "value": 23.0}], "ok": 1.0}"#,
        ),
    ] {
        client.check("test", &command, expected);
    }
    let in_function = r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"n":
        {"$function": {"body": "function() { return four(); }", "args": [], "lang": "js"}}}}]}"#;
    let find = r#"{"find": "c", "filter": {"$where": "four() === 4"}}"#;
    assert_eq!(client.code("test", in_function), 139, "it doesn't know them");
    assert_eq!(client.code("other", find), 139, "each database has its own");
    assert_eq!(client.code("test", r#"{"find": "c", "filter": {"$where": "broken()"}}"#), 139);
    for (document, code) in [(r#"{"_id": 5, "value": 1}"#, 10_209), (r#"{"_id": "a"}"#, 10_210)] {
        client.ok("other", &format!(r#"{{"insert": "system.js", "documents": [{document}]}}"#));
        assert_eq!(client.code("other", find), code, "{document}");
        client.ok("other", r#"{"delete": "system.js", "deletes": [{"q": {}, "limit": 0}]}"#);
    }
}

#[test]
fn map_reduce_is_refused_where_it_cant_be() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1, "tags": ["a"], "n": 1}]}"#);
    client.ok("test", r#"{"create": "view", "viewOn": "c", "pipeline": []}"#);
    for (name, out, code) in [
        ("view", r#"{"inline": 1}"#, 166),
        ("c", "1", 14),
        ("c", "{}", 2),
        ("c", r#"{"inline": 2}"#, 2),
        ("c", r#"{"inline": 1, "replace": "x"}"#, 2),
        ("c", r#"{"other": "x"}"#, 2),
    ] {
        let command = format!(r#"{{"mapReduce": "{name}", {MAP_REDUCE}, "out": {out}}}"#);
        assert_eq!(client.code("test", &command), code, "{command}");
    }
    let missing = r#"{"mapReduce": "c", "map": "1", "out": {"inline": 1}}"#;
    assert_eq!(client.code("test", missing), 40414);
    let thrown = r#"{"mapReduce": "c", "map": "throw 1", "reduce": "1", "out": {"inline": 1}}"#;
    assert_eq!(client.code("test", thrown), 139);
}

#[test]
fn scripts_of_projections_are_asked_about_several_documents() {
    let server = Running::start();
    let mut client = server.client();
    let documents: Vec<String> = (0..20).map(|id| format!("{{\"_id\": {id}}}")).collect();
    client.ok("test", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(", ")));
    let find = |body: &str, more: &str| {
        format!(
            r#"{{"find": "c", "sort": {{"_id": 1}}, "projection": {{"x": {{"$function": {{"body":
                "{body}", "args": ["$_id"], "lang": "js"}}}}}}{more}}}"#
        )
    };
    let found = client.ok("test", &find("n => n * 2", ", \"skip\": 3, \"limit\": 9"));
    let cursor = found.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
    let batch = cursor.get("firstBatch").and_then(|batch| batch.as_array()).unwrap();
    let shown = batch.iter().map(|found| {
        let found = found.as_document().unwrap();
        [found.get("_id"), found.get("x")].map(|value| value.and_then(|it| it.as_integer()))
    });
    let expected: Vec<_> = (3..12).map(|id| [Some(id), Some(2 * id)]).collect();
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    // The error of one document doesn't hide those before it.
    let fails = find("n => { if (n === 15) throw 1; return n; }", ", \"batchSize\": 10");
    let opened = client.ok("test", &fails);
    let cursor = opened.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
    let id = cursor.get("id").and_then(|id| id.as_integer()).unwrap();
    let more =
        format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c", "batchSize": 100}}"#);
    assert_eq!(client.code("test", &more), 139);
}

#[test]
fn a_server_may_refuse_all() {
    let server = Running::without_scripts();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    assert_eq!(client.code("test", r#"{"find": "c", "filter": {"$where": "1"}}"#), 2);
    for (command, code) in [
        (r#"{"count": "c", "query": {"$or": [{"a": 1}, {"$where": "1"}]}}"#, 2),
        (r#"{"findAndModify": "c", "query": {"$where": "1"}, "remove": true}"#, 2),
        (
            r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"a":
                {"$function": {"body": "1", "args": [], "lang": "js"}}}}]}"#,
            31264,
        ),
        // Where there is no document, too.
        (
            r#"{"aggregate": "none", "cursor": {}, "pipeline": [{"$project": {"a":
                {"$function": {"body": "1", "args": [], "lang": "js"}}}}]}"#,
            31264,
        ),
        (
            r#"{"aggregate": "none", "cursor": {}, "pipeline": [{"$match": {"$expr":
                {"$function": {"body": "1", "args": [], "lang": "js"}}}}]}"#,
            31264,
        ),
        (
            r#"{"aggregate": "none", "cursor": {}, "pipeline": [{"$group": {"_id": 1, "a": {"$accumulator":
                {"init": "1", "accumulate": "1", "accumulateArgs": [], "merge": "1", "lang": "js"}}}}]}"#,
            31264,
        ),
        (
            r#"{"find": "none", "projection": {"a": {"$function": {"body": "1", "args": [], "lang": "js"}}}}"#,
            31264,
        ),
        (
            r#"{"findAndModify": "none", "remove": true, "query": {"$expr":
                {"$function": {"body": "1", "args": [], "lang": "js"}}}}"#,
            31264,
        ),
    ] {
        assert_eq!(client.code("test", command), code, "{command}");
    }
}
