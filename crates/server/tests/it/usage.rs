//! Checks what `serverStatus`, `top` and `latencyStats` count, against what a client has done.
//! Goal: numbers that tools show are of what happened; so each test does a known number of things.

use frond_doc::{DocumentBuf, Value};

use crate::running::Running;

/// A number within an answer: `network.bytesIn`. Names of collections in `top` have dots: `/`
/// stands between names.
fn number(answer: &DocumentBuf, path: &str) -> i64 {
    let mut value = Value::from(answer);
    for name in path.split('/') {
        let document = value.as_document().unwrap_or_else(|| panic!("{path} in {answer:?}"));
        value = document.get(name).unwrap_or_else(|| panic!("{path} in {answer:?}"));
    }
    value.as_integer().unwrap_or_else(|| panic!("{path} is no number: {answer:?}"))
}

#[test]
fn top_counts_each_collection_by_kind_of_command() {
    let server = Running::start();
    let mut client = server.client();
    for id in 0..3 {
        let insert = format!(r#"{{"insert": "items", "documents": [{{"_id": {id}}}]}}"#);
        client.ok("shop", &insert);
    }
    client.ok("shop", r#"{"find": "items"}"#);
    client.ok("shop", r#"{"aggregate": "items", "pipeline": [], "cursor": {}}"#);
    client.ok("shop", r#"{"findAndModify": "items", "query": {"_id": 9}, "remove": true}"#);
    let cursor = client.ok("shop", r#"{"find": "items", "batchSize": 1}"#);
    let id = number(&cursor, "cursor/id");
    client
        .ok("shop", &format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "items"}}"#));
    client.ok("shop", r#"{"delete": "items", "deletes": [{"q": {"_id": 0}, "limit": 1}]}"#);
    let top = client.ok("admin", r#"{"top": 1}"#);
    for (kind, count) in [
        ("total", 9),
        ("readLock", 4),
        ("writeLock", 5),
        ("queries", 2),
        ("getmore", 1),
        ("insert", 3),
        ("update", 0),
        ("remove", 1),
        ("commands", 2),
    ] {
        assert_eq!(number(&top, &format!("totals/shop.items/{kind}/count")), count, "{kind}");
    }
    let time = |kind: &str| number(&top, &format!("totals/shop.items/{kind}/time"));
    assert_eq!(time("total"), time("readLock") + time("writeLock"));
    assert!(time("insert") > 0, "a synced insert takes a microsecond at least");
    client.ok("shop", r#"{"drop": "items"}"#);
    let top = client.ok("admin", r#"{"top": 1}"#);
    let totals = top.get("totals").and_then(|totals| totals.as_document()).expect("told");
    assert_eq!(totals.get("shop.items"), None);
    assert_eq!(client.error("shop", r#"{"top": 1}"#).0, 13);
}

#[test]
fn latencies_are_reported_of_a_collection_and_of_all() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("shop", r#"{"insert": "items", "documents": [{"_id": 1}]}"#);
    client.ok("shop", r#"{"find": "items"}"#);
    client.ok("shop", r#"{"find": "others"}"#);
    let stats = |options: &str| {
        format!(
            r#"{{"aggregate": "items", "cursor": {{}},
                "pipeline": [{{"$collStats": {{"latencyStats": {options}}}}}]}}"#
        )
    };
    let answer = client.ok("shop", &stats(r#"{"histograms": true}"#));
    let batch = answer.get("cursor").and_then(|cursor| cursor.as_document()?.get("firstBatch"));
    let first = batch.and_then(|batch| batch.as_array()?.get(0)?.as_document());
    let first = first.expect("a document").to_buf();
    assert_eq!(number(&first, "latencyStats/reads/ops"), 1);
    assert_eq!(number(&first, "latencyStats/writes/ops"), 1);
    assert_eq!(number(&first, "latencyStats/commands/ops"), 0);
    let histogram = first.get("latencyStats").and_then(|stats| {
        stats.as_document()?.get("writes")?.as_document()?.get("histogram")?.as_array()
    });
    let bucket = histogram.and_then(|histogram| histogram.get(0)?.as_document()).expect("one");
    let least = bucket.get("micros").and_then(|micros| micros.as_integer()).expect("a number");
    assert!(least <= number(&first, "latencyStats/writes/latency"));
    let status = client.ok("admin", r#"{"serverStatus": 1}"#);
    // Two finds and the aggregate.
    assert_eq!(number(&status, "opLatencies/reads/ops"), 3);
    assert_eq!(number(&status, "opLatencies/writes/ops"), 1);
    for (options, code) in [("5", 14), (r#"{"other": 1}"#, 40415)] {
        assert_eq!(client.error("shop", &stats(options)).0, code, "{options}");
    }
}

#[test]
fn bytes_on_the_wire_are_those_of_the_messages() {
    let server = Running::start();
    let mut client = server.client();
    let ping = |bytes: usize| format!(r#"{{"ping": 1, "comment": "{}"}}"#, "x".repeat(bytes));
    let before = client.ok("admin", r#"{"serverStatus": 1}"#);
    let between = client.ok("admin", r#"{"serverStatus": 1}"#);
    client.ok("admin", &ping(10_000));
    let after = client.ok("admin", r#"{"serverStatus": 1}"#);
    let grown = |one: &DocumentBuf, other: &DocumentBuf, name: &str| {
        number(other, &format!("network/{name}")) - number(one, &format!("network/{name}"))
    };
    assert_eq!(grown(&before, &between, "numRequests"), 1);
    assert_eq!(grown(&between, &after, "numRequests"), 2);
    let more = grown(&between, &after, "bytesIn") - grown(&before, &between, "bytesIn");
    // The ping's text, its names, the message's head.
    assert!((10_000..10_200).contains(&more), "{more}");
    assert_eq!(grown(&between, &after, "physicalBytesIn"), grown(&between, &after, "bytesIn"));
    // The answer to the first was a serverStatus with all its sections.
    assert!(grown(&before, &between, "bytesOut") >= before.as_bytes().len() as i64);
}

#[test]
fn sections_that_tools_read_are_there_and_can_be_left_out() {
    let server = Running::start();
    let mut client = server.client();
    assert_eq!(client.error("shop", r#"{"find": 1}"#).0, 73);
    let status = client.ok("admin", r#"{"serverStatus": 1, "recordStats": 0}"#);
    assert!(number(&status, "mem/bits") >= 32);
    if cfg!(target_os = "linux") {
        assert!(number(&status, "mem/resident") > 0);
        assert!(number(&status, "mem/virtual") >= number(&status, "mem/resident"));
        assert!(number(&status, "extra_info/page_reclaims") > 0);
    }
    assert!(number(&status, "asserts/user") >= 1);
    assert_eq!(number(&status, "asserts/regular"), 0);
    assert!(number(&status, "globalLock/totalTime") > 0);
    // This very command.
    assert_eq!(number(&status, "globalLock/activeClients/total"), 1);
    assert_eq!(number(&status, "globalLock/activeClients/writers"), 0);
    assert_eq!(number(&status, "globalLock/currentQueue/total"), 0);
    assert_eq!(number(&status, "connections/rejected"), 0);
    let status = client.ok("admin", r#"{"serverStatus": 1, "network": 0, "opLatencies": false}"#);
    assert_eq!((status.get("network"), status.get("opLatencies")), (None, None));
    assert!(status.get("mem").is_some());
}

#[test]
fn documents_and_searches_are_counted_once() {
    let server = Running::start();
    let mut client = server.client();
    let lsid = r#""lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}}"#;
    let insert = format!(
        r#"{{"insert": "items", "documents": [{{"_id": 1, "a": 1}}, {{"_id": 2, "a": 2}}],
             {lsid}, "txnNumber": {{"$numberLong": "1"}}}}"#
    );
    client.ok("shop", &insert);
    // Sent again: it was done before.
    client.ok("shop", &insert);
    let more = r#"{"bulkWrite": 1, "nsInfo": [{"ns": "shop.items"}], "ops": [
        {"insert": 0, "document": {"_id": 3, "a": 3}},
        {"insert": 0, "document": {"_id": 4, "a": 4}},
        {"update": 0, "filter": {"_id": 3}, "updateMods": {"$set": {"a": 3}}},
        {"delete": 0, "filter": {"_id": 4}}]}"#;
    let listed = number(&client.ok("admin", more), "nInserted");
    assert_eq!(listed, 2);
    let before = client.ok("admin", r#"{"serverStatus": 1}"#);
    let document = |name: &str| number(&before, &format!("metrics/document/{name}"));
    assert_eq!([document("inserted"), document("updated"), document("deleted")], [4, 1, 1]);
    // The answer of the bulkWrite is a cursor of four rows.
    assert_eq!(document("returned"), 4);

    client.ok("shop", r#"{"find": "items", "filter": {"a": {"$gte": 2}}, "sort": {"a": -1}}"#);
    let cursor = client.ok("shop", r#"{"find": "items", "batchSize": 1}"#);
    let id = number(&cursor, "cursor/id");
    client
        .ok("shop", &format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "items"}}"#));
    client.ok("shop", r#"{"find": "items", "filter": {"_id": 1}}"#);
    let upsert =
        r#"{"findAndModify": "items", "query": {"_id": 9}, "update": {"a": 9}, "upsert": true}"#;
    client.ok("shop", upsert);
    client.ok("shop", r#"{"findAndModify": "items", "query": {"_id": 9}, "remove": true}"#);
    let after = client.ok("admin", r#"{"serverStatus": 1}"#);
    let grown = |path: &str| number(&after, path) - number(&before, path);
    assert_eq!(grown("metrics/document/returned"), 2 + 3 + 1);
    assert_eq!(grown("metrics/document/updated"), 0);
    assert_eq!(grown("metrics/document/inserted"), 0);
    assert_eq!(grown("metrics/document/deleted"), 1);
    assert_eq!(grown("metrics/operation/scanAndOrder"), 1);
    assert_eq!(grown("metrics/queryExecutor/collectionScans/total"), 2, "a getMore is no second");
    assert_eq!(grown("metrics/queryExecutor/collectionScans/nonTailable"), 2);
    let examined = grown("metrics/queryExecutor/scannedObjects");
    assert!((3 + 3 + 1..=9).contains(&examined), "{examined}");
}

#[test]
fn what_expires_is_counted() {
    let server = Running::start();
    let mut client = server.client();
    let index = r#"{"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 0}"#;
    client.ok("shop", &format!(r#"{{"createIndexes": "items", "indexes": [{index}]}}"#));
    let documents = r#"{"_id": 1, "at": {"$date": "2001-01-01T00:00:00Z"}}, {"_id": 2}"#;
    client.ok("shop", &format!(r#"{{"insert": "items", "documents": [{documents}]}}"#));
    client.ok("admin", r#"{"setParameter": 1, "ttlMonitorSleepSecs": 1}"#);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let status = loop {
        let status = client.ok("admin", r#"{"serverStatus": 1}"#);
        if 0 < number(&status, "metrics/ttl/deletedDocuments") || end < std::time::Instant::now() {
            break status;
        }
        std::thread::yield_now();
    };
    assert_eq!(number(&status, "metrics/ttl/deletedDocuments"), 1);
    assert!(0 < number(&status, "metrics/ttl/passes"));
    assert_eq!(number(&status, "metrics/document/deleted"), 0, "no client deleted it");
}

/// The fields by which monitors and mongostat find a set's members.
#[test]
fn the_set_is_shown_as_hello_shows_it() {
    let server = Running::start();
    let mut client = server.client();
    let hello = client.ok("admin", r#"{"hello": 1}"#);
    let status = client.ok("admin", r#"{"serverStatus": 1}"#);
    let answer = status.get("repl").and_then(|answer| answer.as_document()).expect("told");
    for name in ["hosts", "setName", "setVersion", "primary", "me", "electionId", "secondary"] {
        assert!(answer.get(name).is_some() && answer.get(name) == hello.get(name), "{name}");
    }
    assert_eq!(number(&status, "opcountersRepl/insert"), 0);
    let config = client.ok("admin", r#"{"replSetGetConfig": 1}"#);
    let config = config.get("config").expect("there is one");
    let found = client.ok("local", r#"{"find": "system.replset"}"#);
    let batch = found.get("cursor").and_then(|cursor| cursor.as_document()?.get("firstBatch"));
    let batch = batch.and_then(|batch| batch.as_array()).expect("a batch");
    assert_eq!(batch.iter().collect::<Vec<_>>(), [config]);
    client.ok("local", r#"{"listCollections": 1, "filter": {"name": "system.replset"}}"#);
    let insert = r#"{"insert": "system.replset", "documents": [{"_id": "rs1"}]}"#;
    assert_ne!(client.code("local", insert), 0, "only the set's commands change it");
}

/// Percona's exporter reads this, and turns each number into a metric.
#[test]
fn diagnostic_data_are_the_states_of_the_server_and_its_set() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("shop", r#"{"insert": "items", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    let answer = client.ok("admin", r#"{"getDiagnosticData": "1"}"#);
    assert_eq!(number(&answer, "data/serverStatus/opcounters/insert"), 2);
    assert_eq!(number(&answer, "data/replSetGetStatus/myState"), 1);
    for path in ["data.start", "data.serverStatus.end", "data.replSetGetStatus.start", "data.end"] {
        let value = frond_doc::path::Path::new(path).get(answer.view());
        assert!(matches!(value, Some(Value::DateTime(_))), "{path}: {value:?}");
    }
    assert_eq!(client.error("shop", r#"{"getDiagnosticData": 1}"#).0, 13);
}
