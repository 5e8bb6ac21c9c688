//! The messages that clients send when they connect.

use frond_doc::{Value, document};

use crate::running::{Running, TestClient, json};

#[test]
fn every_command_of_a_clients_start_is_answered() {
    let server = Running::start();
    let mut client = server.client();
    for command in [
        r#"{"hello": 1, "helloOk": true, "client": {"driver": {"name": "x"}}}"#,
        r#"{"isMaster": 1, "compression": ["zlib"], "news": true}"#,
        r#"{"ismaster": 1, "saslSupportedMechs": "admin.x"}"#,
        r#"{"ping": 1}"#,
        r#"{"buildInfo": 1}"#,
        r#"{"buildinfo": 1}"#,
        r#"{"hostInfo": 1}"#,
        r#"{"getParameter": 1, "featureCompatibilityVersion": 1}"#,
        r#"{"getParameter": "*"}"#,
        r#"{"getParameter": {"allParameters": true}}"#,
        r#"{"getCmdLineOpts": 1}"#,
        r#"{"getLog": "startupWarnings"}"#,
        r#"{"getLog": "*"}"#,
        r#"{"serverStatus": 1, "repl": 0}"#,
        r#"{"connectionStatus": 1, "showPrivileges": true}"#,
        r#"{"whatsmyuri": 1}"#,
        r#"{"listCommands": 1}"#,
        r#"{"listDatabases": 1, "nameOnly": true, "authorizedDatabases": true}"#,
        r#"{"listCollections": 1, "nameOnly": true, "cursor": {}}"#,
        r#"{"startSession": 1}"#,
        r#"{"endSessions": []}"#,
        r#"{"refreshSessions": []}"#,
        r#"{"killSessions": []}"#,
        r#"{"killAllSessions": []}"#,
        r#"{"currentOp": 1}"#,
        r#"{"killOp": 1, "op": 99}"#,
        r#"{"connPoolStats": 1}"#,
        r#"{"profile": 0}"#,
        r#"{"logout": 1}"#,
        r#"{"dbStats": 1, "scale": 1024}"#,
    ] {
        client.ok("admin", command);
    }
}

#[test]
fn the_server_says_what_it_is() {
    let server = Running::start();
    let mut client = server.client();
    let hello = client.ok("admin", r#"{"hello": 1}"#);
    let election = frond_doc::ObjectId([0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1]);
    for (name, expected) in [
        ("isWritablePrimary", Some(Value::Boolean(true))),
        ("ismaster", None),
        ("maxBsonObjectSize", Some(Value::Int32(16_777_216))),
        ("maxMessageSizeBytes", Some(Value::Int32(48_000_000))),
        ("maxWriteBatchSize", Some(Value::Int32(100_000))),
        ("logicalSessionTimeoutMinutes", Some(Value::Int32(30))),
        ("maxWireVersion", Some(Value::Int32(25))),
        ("readOnly", Some(Value::Boolean(false))),
        ("setName", Some(Value::String("rs0"))),
        ("me", Some(Value::String(&server.address))),
        ("primary", Some(Value::String(&server.address))),
        ("compression", None),
        ("electionId", Some(Value::ObjectId(election))),
    ] {
        assert_eq!(hello.get(name), expected, "{name}");
    }
    assert_eq!(
        client.ok("admin", r#"{"isMaster": 1}"#).get("ismaster"),
        Some(Value::Boolean(true))
    );
    let info = client.ok("admin", r#"{"buildInfo": 1}"#);
    assert_eq!(info.get("version"), Some(Value::String("8.0.0")));
    let frond = info.get("frond").and_then(|frond| frond.as_document()).expect("a document");
    assert_eq!(frond.get("version"), Some(Value::String(env!("CARGO_PKG_VERSION"))));
    let op = client.ok("admin", r#"{"currentOp": 1, "command.currentOp": 1}"#);
    let running = op.get("inprog").and_then(|list| list.as_array()).expect("an array");
    assert_eq!(running.iter().count(), 1);
}

#[test]
fn counters_count() {
    let server = Running::start();
    let mut client = server.client();
    let documents: Vec<String> = (0..5).map(|id| format!(r#"{{"_id": {id}}}"#)).collect();
    let insert = format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(","));
    client.ok("test", &insert);
    client.ok("test", r#"{"find": "c", "batchSize": 1}"#);
    let status = client.ok("admin", r#"{"serverStatus": 1}"#);
    let get = |path: &str| frond_doc::path::Path::new(path).get(status.view());
    assert_eq!(get("opcounters.insert"), Some(Value::Int64(5)));
    assert_eq!(get("opcounters.query"), Some(Value::Int64(1)));
    assert_eq!(get("metrics.cursor.open.total"), Some(Value::Int64(1)));
    assert_eq!(get("connections.current"), Some(Value::Int32(1)));
    assert_eq!(get("metrics.commands.find.total"), Some(Value::Int64(1)));
    assert_eq!(get("metrics.commands.find.failed"), Some(Value::Int64(0)));
    assert_eq!(get("metrics.commands.drop"), None);
    // The values that mongostat shows as `dirty`, `used` and `flushes`, and running operations.
    let long = |path: &str| get(path).and_then(|count| count.as_integer()).expect("a number");
    assert!(0 < long("wiredTiger.cache.tracked dirty bytes in the cache"));
    let used = long("wiredTiger.cache.bytes currently in the cache");
    assert!(used <= long("wiredTiger.cache.maximum bytes configured"));
    assert!(0 < long("wiredTiger.log.log bytes written"));
    assert_eq!(long("wiredTiger.concurrentTransactions.read.out"), 0);
    assert!(0 <= long("wiredTiger.transaction.transaction checkpoints"));
    assert_eq!(client.code("test", r#"{"find": "c", "filter": {"$nonsense": 1}}"#), 2);
    let status = client.ok("admin", r#"{"serverStatus": 1}"#);
    let failed = frond_doc::path::Path::new("metrics.commands.find.failed").get(status.view());
    assert_eq!(failed, Some(Value::Int64(1)));
    assert_eq!(json("{}").iter().count(), 0);
}

/// The log reports slow operations, and clients may read it.
#[test]
fn slow_operations_are_logged() {
    let server = Running::start();
    let mut client = server.client();
    let lines = |client: &mut TestClient| {
        let log = client.ok("admin", r#"{"getLog": "global"}"#);
        format!("{:?}", log.get("log"))
    };
    client.ok("test", r#"{"find": "quick"}"#);
    assert!(!lines(&mut client).contains("quick"));
    let before = client.ok("test", r#"{"profile": 0, "slowms": -1}"#);
    assert_eq!(before.get("slowms"), Some(Value::Int32(100)));
    client.ok("test", r#"{"find": "slow", "filter": {"a": 7}}"#);
    assert_eq!(client.error("test", r#"{"find": "wrong", "filter": {"$foo": 7}}"#).0, 2);
    let answer = lines(&mut client);
    for part in ["Slow query", "test.slow", "test.wrong", "errCode", "durationMillis", "127.0.0.1"]
    {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let (code, message) = client.error("admin", r#"{"logRotate": 1}"#);
    assert!(code == 20 && message.contains("--log-path"), "{code} {message}");
}

/// Drivers take 26 for an empty collection, so a mistyped branch must not be answered by it.
#[test]
fn a_version_that_is_not_there_is_not_empty() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("p", r#"{"insert": "a", "documents": [{"_id": 1}]}"#);
    client.ok("p", r#"{"frondCommit": 1, "message": "first"}"#);
    for version in ["p@nope", "p@main~9", "p@0000000000000000000000000000000a"] {
        for command in [
            r#"{"find": "a"}"#,
            r#"{"count": "a"}"#,
            r#"{"aggregate": "a", "pipeline": [], "cursor": {}}"#,
            r#"{"listIndexes": "a"}"#,
            r#"{"drop": "a"}"#,
            r#"{"frondLog": 1}"#,
        ] {
            let (code, message) = client.error(version, command);
            assert_eq!(code, 73, "{version} {command}: {message}");
        }
    }
    assert_eq!(client.error("p", r#"{"listIndexes": "b"}"#).0, 26);
}

/// The options that `listCollections` shows of a collection make the same one again.
#[test]
fn rules_of_merges_are_an_option_of_create() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"create": "c", "mergeRules": {"fields": {"n": "delta"}}}"#);
    let listed = client.ok("test", r#"{"listCollections": 1}"#);
    assert!(format!("{listed:?}").contains("delta"), "{listed:?}");
    assert_eq!(
        client.error("test", r#"{"create": "d", "mergeRules": {"fields": {"n": "half"}}}"#).0,
        2
    );
}

/// For a time series `listCollections` shows what MongoDB 8.0 does: neither an index of `_id` nor a
/// number, which views of buckets haven't.
#[test]
fn a_time_series_is_described_as_mongodb_describes_it() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"create": "c", "timeseries": {"timeField": "t"}}"#);
    let listed = client.ok("test", r#"{"listCollections": 1}"#);
    let cursor = listed.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    let batch = cursor.get("firstBatch").and_then(|batch| batch.as_array()).expect("a batch");
    let answer = batch.iter().next().and_then(|answer| answer.as_document()).expect("one");
    let names: Vec<&str> = answer.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["name", "type", "options", "info"]);
    let info = answer.get("info").and_then(|info| info.as_document()).expect("info");
    assert_eq!(info, document! { "readOnly": false }.view());
}
