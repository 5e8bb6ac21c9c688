//! Commands that maintain a server, and its parameters.

use frond_doc::{Value, extended_json};
use frond_server::{BeginningParameters, ServerOptions};
use frond_testkit::SimDisk;

use crate::running::Running;

#[test]
fn files_are_written_and_space_is_given_back() {
    let server = Running::start();
    let mut client = server.client();
    client
        .ok("test", r#"{"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"j": false}}"#);
    client.ok("test", r#"{"create": "v", "viewOn": "c", "pipeline": []}"#);
    client.check("admin", r#"{"fsync": 1}"#, r#"{"numFiles": 1, "ok": 1.0}"#);
    let compacted = client.ok("test", r#"{"compact": "c", "force": true}"#);
    assert!(compacted.get("bytesFreed").is_some_and(|freed| freed.is_number()));
    for (database, command, code) in [
        ("admin", r#"{"fsync": 1, "lock": true}"#, 115),
        ("admin", r#"{"fsyncUnlock": 1}"#, 20),
        ("test", r#"{"compact": "v"}"#, 166),
        ("test", r#"{"collStats": "v"}"#, 166),
        ("test", r#"{"listIndexes": "v"}"#, 166),
        (
            "test",
            r#"{"aggregate": "v", "pipeline": [{"$collStats": {"storageStats": {}}}], "cursor": {}}"#,
            166,
        ),
        ("test", r#"{"aggregate": "v", "pipeline": [{"$indexStats": {}}], "cursor": {}}"#, 166),
        ("test", r#"{"compact": "none"}"#, 26),
        ("test", r#"{"compact": "c", "dryRun": true}"#, 115),
        ("test", r#"{"reIndex": "c"}"#, 20),
        ("test", r#"{"dbHash": 1, "collections": [1]}"#, 2),
    ] {
        assert_eq!(client.error(database, command).0, code, "{command}");
    }
    client.check_documents("test", r#"{"find": "c"}"#, &[r#"{"_id": 1}"#]);
    let stats = client.ok("test", r#"{"dbStats": 1}"#);
    for (name, count) in [("collections", 1), ("views", 1), ("objects", 1), ("indexes", 1)] {
        assert_eq!(stats.get(name), Some(Value::Int64(count)), "{name}");
    }
}

/// Requests that shells and Compass send by themselves.
#[test]
fn there_are_no_users_and_the_usual_defaults() {
    let server = Running::start();
    let mut client = server.client();
    client.check("test", r#"{"usersInfo": 1}"#, r#"{"users": [], "ok": 1.0}"#);
    client.check("admin", r#"{"usersInfo": {"forAllDBs": true}}"#, r#"{"users": [], "ok": 1.0}"#);
    client.check("test", r#"{"rolesInfo": 1}"#, r#"{"roles": [], "ok": 1.0}"#);
    let defaults = client.ok("admin", r#"{"getDefaultRWConcern": 1}"#);
    let write = defaults.get("defaultWriteConcern").and_then(|write| write.as_document());
    assert_eq!(write.and_then(|write| write.get("w")), Some(Value::String("majority")));
}

#[test]
fn default_concerns_are_set_and_shown() {
    let server = Running::start();
    let mut client = server.client();
    let set = client.ok(
        "admin",
        r#"{"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1, "j": false},
            "defaultReadConcern": {"level": "majority"}, "writeConcern": {"w": "majority"}}"#,
    );
    let reply = client.ok("admin", r#"{"getDefaultRWConcern": 1, "inMemory": true}"#);
    for answer in [&set, &reply] {
        let mut text = String::new();
        extended_json::write(answer.view(), extended_json::Form::Relaxed, &mut text);
        for part in [
            r#""defaultReadConcern":{"level":"majority"}"#,
            r#""defaultWriteConcern":{"w":1,"j":false,"wtimeout":0}"#,
            r#""defaultWriteConcernSource":"global""#,
            r#""defaultReadConcernSource":"global""#,
            "updateOpTime",
            "updateWallClockTime",
        ] {
            assert!(text.replace(' ', "").contains(part), "{part} in {text}");
        }
    }
    assert_eq!(reply.get("inMemory"), Some(Value::Boolean(true)));
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    for (database, command, code) in [
        ("admin", r#"{"setDefaultRWConcern": 1}"#, 2),
        ("admin", r#"{"setDefaultRWConcern": 1, "defaultWriteConcern": {}}"#, 20),
        ("admin", r#"{"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 3}}"#, 100),
        ("admin", r#"{"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "x"}}"#, 2),
        ("admin", r#"{"setDefaultRWConcern": 1, "defaultReadConcern": 1}"#, 14),
        ("test", r#"{"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1}}"#, 13),
    ] {
        assert_eq!(client.error(database, command).0, code, "{command}");
    }
}

#[test]
fn parameters_begin_as_the_server_was_configured() {
    let parameters = BeginningParameters {
        expire_seconds: Some(7),
        snapshot_window_seconds: Some(11),
        requires_api_version: true,
        ..BeginningParameters::default()
    };
    let options = ServerOptions { parameters, ..ServerOptions::default() };
    let server = Running::with(&SimDisk::new(1), options);
    let mut client = server.client();
    assert_eq!(client.error("admin", r#"{"getParameter": "*"}"#).0, 498_870);
    let answer = client.ok("admin", r#"{"getParameter": "*", "apiVersion": "1"}"#);
    for (name, value) in [
        ("ttlMonitorSleepSecs", Value::Int32(7)),
        ("minSnapshotHistoryWindowInSeconds", Value::Int32(11)),
        ("requireApiVersion", Value::Boolean(true)),
    ] {
        assert_eq!(answer.get(name), Some(value), "{name}");
    }
}

#[test]
fn parameters_are_shown_and_stay_what_they_are() {
    let server = Running::start();
    let mut client = server.client();
    let answer = client.ok("admin", r#"{"getParameter": 1, "ttlMonitorSleepSecs": 1, "x": 1}"#);
    assert_eq!(answer.get("ttlMonitorSleepSecs"), Some(Value::Int32(60)));
    client.check(
        "admin",
        r#"{"setParameter": 1, "notablescan": 0}"#,
        r#"{"was": false, "ok": 1.0}"#,
    );
    client.check(
        "admin",
        r#"{"setParameter": 1, "transactionLifetimeLimitSeconds": 60.0}"#,
        r#"{"was": 60, "ok": 1.0}"#,
    );
    client.check(
        "admin",
        r#"{"setParameter": 1, "ttlMonitorSleepSecs": 1, "logLevel": 0}"#,
        r#"{"was": 60, "ok": 1.0}"#,
    );
    client.check(
        "admin",
        r#"{"getParameter": 1, "ttlMonitorSleepSecs": 1}"#,
        r#"{"ttlMonitorSleepSecs": 1, "ok": 1.0}"#,
    );
    for (command, code) in [
        (r#"{"setParameter": 1, "ttlMonitorSleepSecs": 0}"#, 2),
        (r#"{"setParameter": 1, "notablescan": true}"#, 20),
        (r#"{"setParameter": 1, "noSuchThing": true}"#, 72),
        (r#"{"setParameter": 1}"#, 72),
        (r#"{"setParameter": 1, "quiet": false, "noSuchThing": 0}"#, 72),
        (r#"{"getParameter": 1, "noSuchThing": 1}"#, 72),
    ] {
        assert_eq!(client.error("admin", command).0, code, "{command}");
    }
}

/// An aggregation is explained by the search that runs, also over a socket.
#[test]
fn pipelines_are_explained() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]}"#);
    client.ok("test", r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#);
    let answer = client.ok(
        "test",
        r#"{"explain": {"aggregate": "c", "cursor": {}, "pipeline": [
            {"$set": {"x": 1}}, {"$match": {"a": 2}}, {"$group": {"_id": "$a"}}]}}"#,
    );
    let stages = answer.get("stages").and_then(|stages| stages.as_array()).expect("stages");
    let names: Vec<String> = stages
        .iter()
        .filter_map(|stage| stage.as_document()?.iter().next().map(|(name, _)| name.to_owned()))
        .collect();
    assert_eq!(names, ["$cursor", "$set", "$group"]);
    let cursor = stages.get(0).and_then(|stage| stage.as_document()?.get("$cursor")?.as_document());
    let stats = cursor.and_then(|cursor| cursor.get("executionStats")?.as_document());
    let keys = stats.and_then(|stats| stats.get("totalKeysExamined")?.as_integer());
    assert_eq!(keys, Some(1));
}

#[test]
fn databases_have_hashes() {
    let server = Running::start();
    let mut client = server.client();
    // Documents are hashed in the order of their `_id`s, whatever they were written in.
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 2}, {"_id": 1}]}"#);
    client.ok("test", r#"{"create": "log", "capped": true, "size": 4096}"#);
    client.ok("test", r#"{"create": "v", "viewOn": "c", "pipeline": []}"#);
    let answer = client.ok("test", r#"{"dbHash": 1}"#);
    let hashes = answer.get("collections").and_then(|hashes| hashes.as_document());
    let hashes: Vec<_> = hashes.iter().flat_map(|hashes| hashes.iter()).collect();
    let expected = [
        ("c", Value::String("64258d12ae15fcc412284d681e8eef12")),
        ("log", Value::String("d41d8cd98f00b204e9800998ecf8427e")),
    ];
    assert_eq!(hashes, expected);
    let whole = "ec02d0bb7f960d0c1944c66ea659d3a8";
    assert_eq!(answer.get("md5"), Some(Value::String(whole)));
    let capped = answer.get("capped").and_then(|capped| capped.as_array()).expect("an array");
    assert_eq!(capped.iter().collect::<Vec<_>>(), [Value::String("log")]);
    let one = client.ok("test", r#"{"dbHash": 1, "collections": ["log"]}"#);
    let hashes = one.get("collections").and_then(|hashes| hashes.as_document());
    assert_eq!(hashes.map(|hashes| hashes.iter().count()), Some(1));
}

#[test]
fn limits_of_time_are_parameters() {
    let parameters = BeginningParameters {
        transaction_seconds: Some(30),
        cursor_millis: Some(5_000),
        ..BeginningParameters::default()
    };
    let options = ServerOptions { parameters, ..ServerOptions::default() };
    let server = Running::with(&SimDisk::new(1), options);
    let mut client = server.client();
    let command =
        r#"{"getParameter": 1, "cursorTimeoutMillis": 1, "transactionLifetimeLimitSeconds": 1}"#;
    let answer = client.ok("admin", command);
    let number = |name: &str| answer.get(name).and_then(|value| value.as_integer());
    assert_eq!(number("transactionLifetimeLimitSeconds"), Some(30));
    assert_eq!(number("cursorTimeoutMillis"), Some(5_000));
    for wrong in [
        r#"{"setParameter": 1, "transactionLifetimeLimitSeconds": 0}"#,
        r#"{"setParameter": 1, "cursorTimeoutMillis": -1}"#,
        r#"{"setParameter": 1, "transactionLifetimeLimitSeconds": "x"}"#,
    ] {
        assert_eq!(client.code("admin", wrong), 2, "{wrong}");
    }
    let lsid = r#""lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}},
        "txnNumber": {"$numberLong": "1"}, "autocommit": false"#;
    let insert = format!(
        r#"{{"insert": "c", "documents": [{{"_id": 1}}], {lsid}, "startTransaction": true}}"#
    );
    client.ok("test", &insert);
    client.ok("admin", r#"{"setParameter": 1, "transactionLifetimeLimitSeconds": 1}"#);
    // What goes on with it is refused once its second is over, whether it was aborted or not yet.
    let next = format!(r#"{{"insert": "c", "documents": [{{"_id": {{"$oid": "OID"}}}}], {lsid}}}"#);
    let refused = (0_u32..).find_map(|number| {
        let command = next.replace("OID", &format!("{number:024x}"));
        Some(client.code("test", &command)).filter(|code| *code != 0)
    });
    assert_eq!(refused, Some(251), "NoSuchTransaction");
}

#[test]
fn no_client_makes_the_first_user_where_the_localhost_exception_is_off() {
    let parameters =
        BeginningParameters { has_no_localhost_exception: true, ..BeginningParameters::default() };
    let options = ServerOptions { auth: true, parameters, ..ServerOptions::default() };
    let server = Running::with(&SimDisk::new(1), options);
    let create = r#"{"createUser": "root", "pwd": "secret", "roles": ["root"]}"#;
    assert_eq!(server.client().code("admin", create), 13);
    let server = Running::with_auth(&SimDisk::new(1));
    assert_eq!(server.client().code("admin", create), 0);
}

/// A collection at a slow pace may take hours. Another one, which waits for its turn, ends in its
/// own time, and the slow one when it is killed.
#[test]
fn a_collection_that_waits_for_another_ends_in_its_time() {
    let server = Running::start();
    let mut client = server.client();
    let mut state = 17_u64;
    let documents: Vec<String> = (0..300)
        .map(|id| {
            let mut text = String::new();
            while text.len() < 3_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(&format!("{state:016x}"));
            }
            format!(r#"{{"_id": {id}, "text": "{text}"}}"#)
        })
        .collect();
    client.ok("a", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(",")));
    client.ok("a", r#"{"frondCommit": 1, "message": "all"}"#);
    client.ok("a", r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}"#);
    client.ok("a", r#"{"frondCommit": 1, "message": "none"}"#);
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            server
                .client()
                .error("admin", r#"{"frondGc": 1, "quick": true, "bytesPerSecond": 1}"#)
                .0
        });
        let id = loop {
            let answer = client.ok("admin", r#"{"currentOp": 1, "command.frondGc": 1}"#);
            let list = answer.get("inprog").and_then(|list| list.as_array()).expect("a list");
            if let Some(Value::Document(first)) = list.iter().next()
                && let Some(Value::Int64(micros)) = first.get("microsecs_running")
                && 1_500_000 < micros
            {
                break first.get("opid").and_then(|id| id.as_integer()).expect("a number");
            }
            assert!(!slow.is_finished(), "it had nothing to do");
        };
        let begun = std::time::Instant::now();
        let quick = r#"{"frondGc": 1, "quick": true, "maxTimeMS": 700}"#;
        assert_eq!(client.error("admin", quick).0, 50);
        assert!(begun.elapsed() < std::time::Duration::from_secs(30));
        client.ok("admin", &format!(r#"{{"killOp": 1, "op": {id}}}"#));
        assert_eq!(slow.join().expect("no panic"), 11601);
    });
    client.ok("admin", r#"{"frondGc": 1, "quick": true}"#);
}
