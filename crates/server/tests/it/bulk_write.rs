//! `bulkWrite`: operations on several collections in one command.

use crate::running::{Running, TestClient};

fn items(client: &mut TestClient, namespace: (&str, &str), expected: &[&str]) {
    let (database, collection) = namespace;
    let find = format!(r#"{{"find": "{collection}", "sort": {{"_id": 1}}}}"#);
    client.check_documents(database, &find, expected);
}

#[test]
fn operations_of_several_collections() {
    let server = Running::start();
    let mut client = server.client();
    client.check(
        "admin",
        r#"{"bulkWrite": 1, "nsInfo": [{"ns": "a.x"}, {"ns": "b.y"}], "let": {"n": 7}, "ops": [
            {"insert": 0, "document": {"_id": 1, "v": 1}}, {"insert": 0, "document": {"_id": 2}},
            {"insert": 1, "document": {"_id": 3}},
            {"update": 0, "filter": {"_id": 1}, "updateMods": {"$inc": {"v": 1}}},
            {"update": 0, "filter": {"_id": 2}, "updateMods": [{"$set": {"v": "$$n"}}]},
            {"update": 0, "filter": {"_id": 9}, "updateMods": {"$set": {"v": 0}}, "upsert": true},
            {"update": 0, "filter": {}, "updateMods": {"$set": {"w": 1}}, "multi": true},
            {"delete": 1, "filter": {"_id": 3}}, {"delete": 0, "filter": {"v": 0}, "multi": true}]}"#,
        r#"{"cursor": {"firstBatch": [
            {"ok": 1.0, "idx": 0, "n": 1}, {"ok": 1.0, "idx": 1, "n": 1}, {"ok": 1.0, "idx": 2, "n": 1},
            {"ok": 1.0, "idx": 3, "n": 1, "nModified": 1}, {"ok": 1.0, "idx": 4, "n": 1, "nModified": 1},
            {"ok": 1.0, "idx": 5, "n": 1, "nModified": 0, "upserted": {"_id": 9}},
            {"ok": 1.0, "idx": 6, "n": 3, "nModified": 3},
            {"ok": 1.0, "idx": 7, "n": 1}, {"ok": 1.0, "idx": 8, "n": 1}],
            "id": {"$numberLong": "0"}, "ns": "admin.$cmd.bulkWrite"},
            "nErrors": 0, "nInserted": 3, "nMatched": 5, "nModified": 5, "nUpserted": 1,
            "nDeleted": 2, "ok": 1.0}"#,
    );
    items(
        &mut client,
        ("a", "x"),
        &[r#"{"_id": 1, "v": 2, "w": 1}"#, r#"{"_id": 2, "v": 7, "w": 1}"#],
    );
    items(&mut client, ("b", "y"), &[]);
}

#[test]
fn failures_are_reported_by_position() {
    let server = Running::start();
    let mut client = server.client();
    let command = |ordered: bool| {
        format!(
            r#"{{"bulkWrite": 1, "ordered": {ordered}, "errorsOnly": true,
                "nsInfo": [{{"ns": "a.x"}}, {{"ns": "a.view"}}], "ops": [
                {{"insert": 0, "document": {{"_id": 1}}}}, {{"insert": 0, "document": {{"_id": 1}}}},
                {{"insert": 1, "document": {{"_id": 5}}}},
                {{"insert": 0, "document": {{"_id": {ordered}}}}}]}}"#
        )
    };
    client.ok("a", r#"{"create": "view", "viewOn": "x", "pipeline": []}"#);
    for (ordered, errors, inserted, ids) in [(true, 1, 1, "[1]"), (false, 3, 1, "[1, false]")] {
        let answer = client.ok("admin", &command(ordered));
        let number = |name: &str| answer.get(name).and_then(|value| value.as_integer());
        assert_eq!(number("nErrors"), Some(errors), "{answer:?}");
        assert_eq!(number("nInserted"), Some(inserted), "{answer:?}");
        let shown = format!("{answer:?}");
        assert!(shown.contains("E11000"), "{shown}");
        assert_eq!(shown.contains("166"), !ordered, "{shown}");
        let distinct = client.ok("a", r#"{"distinct": "x", "key": "_id"}"#);
        let wanted = crate::running::json(&format!(r#"{{"values": {ids}}}"#));
        assert_eq!(distinct.get("values"), wanted.get("values"), "{ordered}");
    }
}

#[test]
fn results_are_read_in_batches_and_wrong_commands_write_nothing() {
    let server = Running::start();
    let mut client = server.client();
    let operations: Vec<String> =
        (0..5).map(|id| format!(r#"{{"insert": 0, "document": {{"_id": {id}}}}}"#)).collect();
    let command = format!(
        r#"{{"bulkWrite": 1, "nsInfo": [{{"ns": "a.x"}}], "cursor": {{"batchSize": 2}}, "ops": [{}]}}"#,
        operations.join(",")
    );
    let found = client.0.documents("admin", crate::running::json(&command).view());
    assert_eq!(found.expect("read to the end").len(), 5);
    let part =
        |ops: &str| format!(r#"{{"bulkWrite": 1, "nsInfo": [{{"ns": "a.z"}}], "ops": {ops}}}"#);
    let good = r#"{"insert": 0, "document": {}}"#;
    for (ops, code) in [
        (format!(r#"[{good}, {{"insert": 1, "document": {{}}}}]"#), 2),
        (format!(r#"[{good}, {{"upsert": 0, "document": {{}}}}]"#), 40415),
        (format!(r#"[{good}, {{"insert": 0}}]"#), 40414),
        (format!(r#"[{good}, {{"delete": 0, "filter": {{}}, "limit": 1}}]"#), 40415),
        (format!(r#"[{good}, {{"update": 0, "filter": 1, "updateMods": {{}}}}]"#), 14),
        ("[]".to_owned(), 16),
    ] {
        let (found, message) = client.error("admin", &part(&ops));
        assert_eq!(found, code, "{ops}: {message}");
    }
    assert_eq!(client.error("a", &part("[]")).0, 13);
    items(&mut client, ("a", "z"), &[]);
}

#[test]
fn it_may_be_sent_again_and_be_part_of_a_transaction() {
    const SESSION: &str = r#""lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}}"#;
    let server = Running::start();
    let mut client = server.client();
    let command = format!(
        r#"{{"bulkWrite": 1, "nsInfo": [{{"ns": "a.x"}}, {{"ns": "a.y"}}], "ops": [
            {{"insert": 0, "document": {{"_id": 1, "v": 0}}}},
            {{"update": 0, "filter": {{"_id": 1}}, "updateMods": {{"$inc": {{"v": 1}}}}}},
            {{"insert": 1, "document": {{"_id": 1}}}}], {SESSION}, "txnNumber": {{"$numberLong": "1"}}}}"#
    );
    let first = client.ok("admin", &command);
    let again = client.ok("admin", &command);
    assert_eq!(first.get("nModified"), again.get("nModified"));
    let retried = again.get("retriedStmtIds").and_then(|ids| ids.as_array()).expect("told");
    assert_eq!(retried.iter().count(), 3, "{again:?}");
    items(&mut client, ("a", "x"), &[r#"{"_id": 1, "v": 1}"#]);
    let part = r#""txnNumber": {"$numberLong": "2"}, "autocommit": false"#;
    let begun = client.ok(
        "admin",
        &format!(
            r#"{{"bulkWrite": 1, "nsInfo": [{{"ns": "a.x"}}, {{"ns": "a.y"}}], "ops": [
                {{"delete": 0, "filter": {{}}}}, {{"insert": 1, "document": {{"_id": 2}}}}],
                "cursor": {{"batchSize": 1}}, "startTransaction": true, {SESSION}, {part}}}"#
        ),
    );
    // The rest of its results is read within it.
    let cursor = begun.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    let id = cursor.get("id").and_then(|id| id.as_integer()).expect("an id");
    let more = format!(
        r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "$cmd.bulkWrite", {SESSION}, {part}}}"#
    );
    let more = client.ok("admin", &more);
    let batch = more.get("cursor").and_then(|cursor| cursor.as_document()?.get("nextBatch"));
    assert_eq!(batch.and_then(|batch| batch.as_array()).map(|batch| batch.iter().count()), Some(1));
    items(&mut client, ("a", "x"), &[r#"{"_id": 1, "v": 1}"#]);
    client.ok("admin", &format!(r#"{{"commitTransaction": 1, {SESSION}, {part}}}"#));
    items(&mut client, ("a", "x"), &[]);
    items(&mut client, ("a", "y"), &[r#"{"_id": 1}"#, r#"{"_id": 2}"#]);
}
