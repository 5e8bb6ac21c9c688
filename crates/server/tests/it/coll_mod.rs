//! `collMod`: an index on its way to `unique`, when clustered documents expire; and sizes of
//! ranges.

use frond_doc::Value;

use crate::running::Running;

#[test]
fn an_index_becomes_unique_once_its_duplicates_are_resolved() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"createIndexes": "c", "indexes": [{"key": {"v": 1}, "name": "v"}]}"#);
    client.ok(
        "a",
        r#"{"insert": "c", "documents": [{"_id": 1, "v": 1}, {"_id": 2, "v": 1}, {"_id": 3, "v": 2}]}"#,
    );
    let unique = r#"{"collMod": "c", "index": {"name": "v", "unique": true}}"#;
    let (code, message) = client.error("a", unique);
    assert_eq!(code, 72, "{message}");
    client.check(
        "a",
        r#"{"collMod": "c", "index": {"name": "v", "prepareUnique": true}}"#,
        r#"{"prepareUnique_old": false, "prepareUnique_new": true, "ok": 1.0}"#,
    );
    for write in [
        r#"{"insert": "c", "documents": [{"_id": 4, "v": 2}]}"#,
        r#"{"update": "c", "updates": [{"q": {"_id": 3}, "u": {"$set": {"v": 1}}}]}"#,
    ] {
        let answer = format!("{:?}", client.ok("a", write));
        assert!(answer.contains("E11000"), "{answer}");
    }
    client.ok("a", r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"w": 1}}}]}"#);
    let answer = client.0.command("a", crate::running::json(unique).view());
    let shown = format!("{answer:?}");
    assert!(shown.contains("359") && shown.contains("violations"), "{shown}");
    let dry = r#"{"collMod": "c", "index": {"name": "v", "unique": true}, "dryRun": true}"#;
    assert_eq!(client.error("a", dry).0, 359);
    client.ok("a", r#"{"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}"#);
    client.ok("a", dry);
    client.check("a", unique, r#"{"unique_new": true, "ok": 1.0}"#);
    let answer = client.ok("a", r#"{"insert": "c", "documents": [{"_id": 5, "v": 1}]}"#);
    assert!(format!("{answer:?}").contains("E11000"), "{answer:?}");
    client.check_documents(
        "a",
        r#"{"find": "c", "filter": {"v": {"$gt": 0}}, "hint": "v"}"#,
        &[r#"{"_id": 1, "v": 1, "w": 1}"#, r#"{"_id": 3, "v": 2}"#],
    );
    let valid = client.ok("a", r#"{"validate": "c"}"#);
    assert_eq!(valid.get("valid"), Some(Value::Boolean(true)), "{valid:?}");
    assert_eq!(client.error("a", r#"{"collMod": "c", "dryRun": true}"#).0, 72);
}

#[test]
fn two_that_bring_one_key_to_a_prepared_index_take_turns() {
    const SESSION: &str = r#""lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}},
        "txnNumber": {"$numberLong": "1"}, "autocommit": false"#;
    let server = Running::start();
    let mut client = server.client();
    client.ok(
        "a",
        r#"{"createIndexes": "c", "indexes": [{"key": {"v": 1}, "name": "v", "prepareUnique": true}]}"#,
    );
    let insert = r#"{"insert": "c", "documents": [{"_id": 1, "v": 1}]"#;
    client.ok("a", &format!(r#"{insert}, "startTransaction": true, {SESSION}}}"#));
    // The other waits until the first has ended, and finds its key then.
    let hasty = r#"{"insert": "c", "documents": [{"_id": 2, "v": 1}], "maxTimeMS": 30}"#;
    assert_eq!(client.error("a", hasty).0, 50);
    client.ok("admin", &format!(r#"{{"commitTransaction": 1, {SESSION}}}"#));
    let answer = client.ok("a", r#"{"insert": "c", "documents": [{"_id": 2, "v": 1}]}"#);
    assert!(format!("{answer:?}").contains("E11000"), "{answer:?}");
}

#[test]
fn clustered_documents_expire_later_or_never() {
    let server = Running::start();
    let mut client = server.client();
    client.ok(
        "a",
        r#"{"create": "c", "clusteredIndex": {"key": {"_id": 1}, "unique": true}, "expireAfterSeconds": 5}"#,
    );
    client.ok("a", r#"{"create": "d"}"#);
    let options = |client: &mut crate::running::TestClient| {
        format!("{:?}", client.ok("a", r#"{"listCollections": 1, "filter": {"name": "c"}}"#))
    };
    client.ok("a", r#"{"collMod": "c", "expireAfterSeconds": 77}"#);
    assert!(options(&mut client).contains("77"));
    client.ok("a", r#"{"collMod": "c", "expireAfterSeconds": "off"}"#);
    assert!(!options(&mut client).contains("expireAfterSeconds"));
    assert_eq!(client.error("a", r#"{"collMod": "d", "expireAfterSeconds": 5}"#).0, 72);
}

#[test]
fn sizes_of_ranges_and_keys_of_records() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"createIndexes": "c", "indexes": [{"key": {"v": 1}, "name": "v"}]}"#);
    client.ok(
        "a",
        r#"{"insert": "c", "documents": [{"_id": 1, "v": 1}, {"_id": 2, "v": 2}, {"_id": 3, "v": 3}]}"#,
    );
    for (range, count) in [
        (r#""min": {"v": 2}, "max": {"v": 9}"#, 2),
        (r#""keyPattern": {"v": 1}, "min": {"v": 1}, "max": {"v": 2}"#, 1),
        (r#""keyPattern": {"_id": 1}, "min": {"_id": 1}, "max": {"_id": 3}"#, 2),
    ] {
        let size = client.ok("a", &format!(r#"{{"dataSize": "a.c", {range}}}"#));
        let number = |name: &str| size.get(name).and_then(|value| value.as_integer());
        assert_eq!(number("numObjects"), Some(count), "{range}");
        assert_eq!(number("size"), Some(count * 21), "{range}");
    }
    assert_eq!(client.error("a", r#"{"dataSize": "a.c", "min": {"v": 1}}"#).0, 2);
    let find =
        r#"{"find": "c", "projection": {"_id": 0, "v": 1}, "showRecordId": true, "limit": 1}"#;
    let found = format!("{:?}", client.ok("a", find));
    assert!(found.contains("$recordId"), "{found}");
}
