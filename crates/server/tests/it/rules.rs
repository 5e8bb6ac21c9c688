//! Goal: small rules of MongoDB that applications meet over the wire: each was answered otherwise
//! once. Method: the least request that shows it, and its neighbours.

use frond_doc::{DocumentBuf, Value};

use crate::running::Running;

/// A replacement that gives the `_id` is no change: it is stored already, byte for byte.
#[test]
fn a_replacement_without_an_id_is_a_change_and_is_validated() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}]}"#);
    let replace =
        |by: &str| format!(r#"{{"update": "c", "updates": [{{"q": {{"_id": 1}}, "u": {by}}}]}}"#);
    let mut modified = |by: &str| {
        let answer = client.ok("test", &replace(by));
        assert_eq!(answer.get("n"), Some(Value::Int32(1)), "{by}");
        answer.get("nModified").and_then(|count| count.as_integer())
    };
    assert_eq!(modified(r#"{"a": 1}"#), Some(1));
    assert_eq!(modified(r#"{"_id": 1, "a": 1}"#), Some(0));
    assert_eq!(modified(r#"{"$set": {"a": 1}}"#), Some(0));
    assert_eq!(modified(r#"[{"$set": {"a": 1}}]"#), Some(0));
    client.ok("test", r#"{"collMod": "c", "validator": {"b": 1}}"#);
    let mut fails = |by: &str| {
        let answer = client.ok("test", &replace(by));
        answer.get("writeErrors").is_some()
    };
    assert!(fails(r#"{"a": 1}"#));
    assert!(!fails(r#"{"_id": 1, "a": 1}"#));
    assert!(!fails(r#"{"$set": {"a": 1}}"#));
}

#[test]
fn a_list_of_indexes_is_checked_before_one_is_dropped() {
    let server = Running::start();
    let mut client = server.client();
    let indexes = r#"[{"key": {"a": 1}, "name": "a"}, {"key": {"b": 1}, "name": "b"}]"#;
    client.ok("test", &format!(r#"{{"createIndexes": "c", "indexes": {indexes}}}"#));
    for (names, code) in [(r#"["a", "no"]"#, 27), (r#"["a", "_id_"]"#, 72), (r#"["a", 1]"#, 14)] {
        let drop = format!(r#"{{"dropIndexes": "c", "index": {names}}}"#);
        assert_eq!(client.code("test", &drop), code, "{names}");
        let listed = client.ok("test", r#"{"listIndexes": "c"}"#);
        assert_eq!(format!("{listed:?}").matches("\"name\"").count(), 3, "{names}: {listed:?}");
    }
    client.ok("test", r#"{"dropIndexes": "c", "index": ["a", "b"]}"#);
}

/// Unknown fields of commands that MongoDB reads no fields of.
#[test]
fn some_commands_take_any_field() {
    let server = Running::start();
    let mut client = server.client();
    for command in [
        r#""startSession": 1"#,
        r#""connPoolStats": 1"#,
        r#""whatsmyuri": 1"#,
        r#""killAllSessions": []"#,
    ] {
        client.ok("admin", &format!(r#"{{{command}, "nothing": 1}}"#));
    }
    assert_eq!(client.code("admin", r#"{"endSessions": [], "nothing": 1}"#), 40415);
}

/// People search for the words, in which values stand as the shell writes them.
#[test]
fn messages_quote_what_was_sent_as_the_shell_writes_it() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    client.ok("test", r#"{"create": "d", "capped": true, "size": 4096}"#);
    for (database, command, quoted) in [
        (
            "test",
            r#"{"createIndexes": "c", "indexes": [{"key": {"b": 1}, "name": "b", "no": [true]}]}"#,
            r#"{ key: { b: 1 }, name: "b", no: [ true ] }"#,
        ),
        (
            "test",
            r#"{"createIndexes": "c", "indexes": [{"key": {"b": -1}, "name": "_id_"}]}"#,
            "{ b: -1 }",
        ),
        ("test", r#"{"dropIndexes": "c", "index": {"b": 1.5}}"#, "{ b: 1.5 }"),
        (
            "test",
            r#"{"collMod": "c", "index": {"keyPattern": {"b": 1}, "hidden": true}}"#,
            "{ b: 1 }",
        ),
        ("test", r#"{"create": "d", "capped": true, "size": 8192}"#, "capped: true"),
        (
            "admin",
            r#"{"bulkWrite": 1, "ops": [{"insert": 1, "document": {"a": null}}],
                "nsInfo": [{"ns": "test.c"}]}"#,
            "{ insert: 1, document: { a: null } }",
        ),
    ] {
        let (_, message) = client.error(database, command);
        assert!(message.contains(quoted), "{command}: {message}");
        assert!(!message.contains("Int32("), "{command}: {message}");
    }
}

/// Arguments that MongoDB refuses, though they could be given a meaning.
#[test]
fn answers_have_the_fields_of_mongodbs() {
    let server = Running::start();
    let mut client = server.client();
    let build = |more: &str| {
        format!(
            r#"{{"createIndexes": "c", "indexes": [{{"key": {{"a": 1}}, "name": "a_1"}}{more}]}}"#
        )
    };
    let (first, b) = (build(""), build(r#", {"key": {"b": 1}, "name": "b_1"}"#));
    client.check(
        "test",
        &first,
        r#"{"numIndexesBefore": 1, "numIndexesAfter": 2, "createdCollectionAutomatically": true,
            "ok": 1.0}"#,
    );
    client.check(
        "test",
        &b,
        r#"{"numIndexesBefore": 2, "numIndexesAfter": 3, "createdCollectionAutomatically": false,
            "note": "index already exists", "commitQuorum": "votingMembers", "ok": 1.0}"#,
    );
    client.check(
        "test",
        &b,
        r#"{"numIndexesBefore": 3, "numIndexesAfter": 3, "createdCollectionAutomatically": false,
            "note": "all indexes already exist", "ok": 1.0}"#,
    );
    let names = |answer: DocumentBuf, from: &str| -> Vec<String> {
        let names = answer.iter().map(|(name, _)| name.to_owned());
        names.skip_while(|name| name != from).collect()
    };
    let sizes = client.ok("test", r#"{"dbStats": 1, "freeStorage": 1}"#);
    let expected = "storageSize freeStorageSize indexes indexSize indexFreeStorageSize totalSize \
                    totalFreeStorageSize scaleFactor";
    let shown = names(sizes, "storageSize").join(" ");
    assert!(shown.starts_with(expected), "{shown}");
    let valid = client.ok("test", r#"{"validate": "c"}"#);
    for name in ["extraIndexEntries", "missingIndexEntries", "corruptRecords"] {
        let entries = valid.get(name).and_then(|entries| entries.as_array()).expect(name);
        assert_eq!(entries.iter().count(), 0, "{name}");
    }
}

#[test]
fn odd_arguments_are_refused() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    let validator = r#"{"create": "d", "validator": {"a": 1}}"#;
    for (database, command, code) in [
        ("admin", validator, 72),
        ("local", validator, 72),
        ("config", validator, 72),
        ("test", r#"{"create": "system.js", "validator": {"a": 1}}"#, 72),
        (
            "test",
            r#"{"listIndexes": "c", "includeBuildUUIDs": true, "includeIndexBuildInfo": true}"#,
            72,
        ),
        (
            "test",
            r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a\u0000"}]}"#,
            67,
        ),
        ("test", r#"{"find": "c", "filter": {"$text": {"$search": "x"}}}"#, 27),
        ("test", r#"{"validate": "c", "full": true, "background": true}"#, 72),
        ("test", r#"{"validate": "c", "full": true, "metadata": true}"#, 72),
        ("test", r#"{"create": "e", "viewOn": ""}"#, 2),
        (
            "test",
            r#"{"create": "e", "idIndex": {"key": {"_id": 1}, "name": "_id_",
                "collation": {"locale": "fr"}}}"#,
            2,
        ),
        (
            "test",
            r#"{"findAndModify": "c", "query": {"_id": 1}, "remove": true, "arrayFilters": []}"#,
            9,
        ),
        (
            "test",
            r#"{"explain": {"aggregate": "c", "pipeline": [], "cursor": {}, "explain": true}}"#,
            9,
        ),
    ] {
        assert_eq!(client.error(database, command).0, code, "{database} {command}");
    }
    client.ok("test", "{\"hostInfo\": 1}");
    client.ok("test", validator);
    client.ok("test", r#"{"validate": "c", "full": true}"#);
    client.ok("test", r#"{"validate": "c", "metadata": true}"#);
    client.ok(
        "test",
        r#"{"create": "e", "collation": {"locale": "fr"},
            "idIndex": {"key": {"_id": 1}, "name": "_id_", "collation": {"locale": "fr"}}}"#,
    );
    client.ok("test", r#"{"listIndexes": "c", "includeBuildUUIDs": true}"#);
    let opened = client.ok("test", r#"{"find": "c", "batchSize": 1}"#);
    let cursor = opened.get("cursor").and_then(|cursor| cursor.as_document());
    let id = cursor.and_then(|cursor| cursor.get("id")?.as_integer()).expect("more is to come");
    let more = |rest: &str| {
        format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c"{rest}}}"#)
    };
    assert_eq!(client.error("test", &more(r#", "maxTimeMS": 1000"#)).0, 2);
    client.ok("test", &more(""));
}

/// A clustered collection has no index of `_id`.
#[test]
fn clustered_collections_are_listed_without_an_id_index() {
    let server = Running::start();
    let mut client = server.client();
    let clustered = r#"{"create": "k", "clusteredIndex": {"key": {"_id": 1}, "unique": true}}"#;
    client.ok("test", clustered);
    client.ok("test", r#"{"create": "plain"}"#);
    let with = r#"{"listCollections": 1, "filter": {"idIndex": {"$exists": true}}}"#;
    let listed = client.0.documents("test", crate::running::json(with).view());
    let listed = listed.expect("listed");
    let names: Vec<_> =
        listed.iter().map(|one| one.get("name").and_then(|name| name.as_str())).collect();
    assert_eq!(names, [Some("plain")]);
}

/// A view takes what a pipeline takes, has no indexes, sizes and count, and shows its stages.
#[test]
fn views_refuse_what_no_pipeline_does() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    client.ok("test", r#"{"create": "v", "viewOn": "c"}"#);
    for (command, code) in [
        (r#"{"find": "v", "tailable": true}"#, 168),
        (r#"{"find": "v", "noCursorTimeout": true}"#, 168),
        (r#"{"find": "v", "allowPartialResults": true}"#, 168),
        (r#"{"find": "v", "singleBatch": true}"#, 168),
        (r#"{"find": "v", "singleBatch": true, "limit": 2}"#, 168),
        (r#"{"find": "v", "sort": {"$natural": 1}}"#, 168),
        (r#"{"dropIndexes": "v", "index": "*"}"#, 166),
        (r#"{"dropIndexes": "v", "index": "a"}"#, 166),
        (r#"{"planCacheClear": "v"}"#, 166),
        (r#"{"planCacheListFilters": "v"}"#, 166),
        (r#"{"planCacheClearFilters": "v"}"#, 166),
        (r#"{"planCacheSetFilter": "v", "query": {}, "indexes": ["a_1"]}"#, 166),
        (r#"{"aggregate": "v", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}}"#, 166),
        (
            r#"{"aggregate": "v", "pipeline": [{"$collStats": {"storageStats": {}}}], "cursor": {}}"#,
            166,
        ),
        (r#"{"aggregate": "no", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}}"#, 26),
        (
            r#"{"aggregate": "no", "pipeline": [{"$collStats": {"storageStats": {}}}], "cursor": {}}"#,
            26,
        ),
    ] {
        assert_eq!(client.error("test", command).0, code, "{command}");
    }
    for command in [
        r#"{"find": "v", "singleBatch": true, "limit": 1, "noCursorTimeout": false}"#,
        r#"{"find": "c", "singleBatch": true, "limit": 2, "noCursorTimeout": true}"#,
        r#"{"aggregate": "v", "pipeline": [{"$collStats": {"latencyStats": {}}}], "cursor": {}}"#,
        r#"{"collStats": "no"}"#,
        r#"{"create": "v", "viewOn": "c", "pipeline": []}"#,
    ] {
        client.ok("test", command);
    }
    let listed = client.ok("test", r#"{"listCollections": 1, "filter": {"name": "v"}}"#);
    let listed = format!("{listed:?}");
    assert!(listed.contains("\"pipeline\""), "{listed}");
}

/// `executionStats` shows the plan that ran alone; a `mapReduce` is explained as its pipeline.
#[test]
fn explanations_show_what_their_verbosity_asks_for() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    let functions = r#""map": "function() { emit(1, 1) }", "reduce": "function() { return 1 }""#;
    let reduce = format!(r#"{{"mapReduce": "c", {functions}, "query": {{"_id": 1}}, "out": "d"}}"#);
    for request in [r#"{"find": "c"}"#, r#"{"count": "c", "query": {"_id": 1}}"#, &reduce] {
        for (verbosity, has_statistics, has_all) in [
            ("queryPlanner", false, false),
            ("executionStats", true, false),
            ("allPlansExecution", true, true),
        ] {
            let explain = format!(r#"{{"explain": {request}, "verbosity": "{verbosity}"}}"#);
            let answer = format!("{:?}", client.ok("test", &explain));
            assert_eq!(
                answer.contains("\"executionStats\""),
                has_statistics,
                "{explain}: {answer}"
            );
            assert_eq!(answer.contains("\"allPlansExecution\""), has_all, "{explain}: {answer}");
        }
    }
    let answer =
        client.ok("test", &format!(r#"{{"explain": {reduce}, "verbosity": "queryPlanner"}}"#));
    let answer = format!("{answer:?}");
    for part in ["\"$group\"", "\"$out\"", "\"winningPlan\"", "\"$eq\": Int32(1)"] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    assert_eq!(client.error("test", r#"{"explain": {"mapReduce": "c"}}"#).0, 40414);
    client.ok("test", r#"{"create": "v", "viewOn": "c", "pipeline": []}"#);
    let of_view = reduce.replacen(r#""c""#, r#""v""#, 1);
    assert_eq!(client.error("test", &format!(r#"{{"explain": {of_view}}}"#)).0, 166);
}
