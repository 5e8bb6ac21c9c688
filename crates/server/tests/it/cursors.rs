//! Cursors over the wire.

use frond_doc::{DocumentBuf, Value, document};

use crate::running::{Running, TestClient};

fn fill(client: &mut TestClient, count: i32) {
    let documents: Vec<DocumentBuf> = (0..count).map(|id| document! { "_id": id }).collect();
    let sequence = frond_server::wire::DocumentSequence { name: "documents".to_owned(), documents };
    let insert = document! { "insert": "c" };
    let answer = client.0.command_with("test", insert.view(), vec![sequence]).expect("inserts");
    assert_eq!(answer.get("n"), Some(Value::Int32(count)));
}

/// The cursor's id and how many documents came.
fn batch(answer: &DocumentBuf) -> (i64, usize) {
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    let documents = cursor.get("firstBatch").or(cursor.get("nextBatch")).expect("a batch");
    let count = documents.as_array().expect("an array").iter().count();
    (cursor.get("id").and_then(|id| id.as_integer()).expect("an id"), count)
}

#[test]
fn batches_have_the_sizes_that_were_asked_for() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client, 250);
    let (id, count) = batch(&client.ok("test", r#"{"find": "c"}"#));
    assert_eq!(count, 101);
    let more = |size: &str| {
        format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c"{size}}}"#)
    };
    assert_eq!(batch(&client.ok("test", &more(r#", "batchSize": 40"#))), (id, 40));
    assert_eq!(batch(&client.ok("test", &more(""))), (0, 109));
    assert_eq!(client.error("test", &more("")).0, 43);
    assert_eq!(batch(&client.ok("test", r#"{"find": "c", "limit": 101}"#)), (0, 101));
    assert_eq!(
        batch(&client.ok("test", r#"{"find": "c", "batchSize": 7, "singleBatch": true}"#)),
        (0, 7)
    );
    let nothing = r#"{"listCollections": 1, "filter": {"name": "missing"}}"#;
    assert_eq!(batch(&client.ok("test", nothing)), (0, 0), "no cursor is left open");
    let (id, count) = batch(&client.ok("test", r#"{"find": "c", "batchSize": 0}"#));
    assert!(id != 0 && count == 0);
    let all = document! { "find": "c", "batchSize": 33_i32 };
    assert_eq!(client.0.documents("test", all.view()).expect("reads").len(), 250);
    let pipeline =
        r#"{"aggregate": "c", "pipeline": [{"$match": {}}], "cursor": {"batchSize": 3}}"#;
    let (id, count) = batch(&client.ok("test", pipeline));
    assert!(id != 0 && count == 3);
}

#[test]
fn a_cursor_sees_its_snapshot_and_can_be_killed() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client, 50);
    let (id, _) = batch(&client.ok("test", r#"{"find": "c", "batchSize": 10}"#));
    let mut other = server.client();
    other.ok("test", r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}"#);
    let more =
        format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c", "batchSize": 5}}"#);
    assert_eq!(batch(&other.ok("test", &more)), (id, 5));
    let kill = format!(r#"{{"killCursors": "c", "cursors": [{{"$numberLong": "{id}"}}]}}"#);
    let killed = format!(
        r#"{{"cursorsKilled": [{id}], "cursorsNotFound": [], "cursorsAlive": [],
            "cursorsUnknown": [], "ok": 1.0}}"#
    );
    client.check("test", &kill, &killed);
    let (code, message) = client.error("test", &more);
    assert_eq!((code, message), (43, format!("cursor id {id} not found")));
}

#[test]
fn ending_a_session_closes_its_cursors() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client, 50);
    let session = r#"{"id": {"$binary": {"base64": "AQIDBAUGBwgJCgsMDQ4PEA==", "subType": "04"}}}"#;
    let find = format!(r#"{{"find": "c", "batchSize": 10, "lsid": {session}}}"#);
    let (id, _) = batch(&client.ok("test", &find));
    let more =
        format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c", "batchSize": 5"#);
    assert_eq!(client.error("test", &format!("{more}}}")).0, 50737);
    let more = format!(r#"{more}, "lsid": {session}}}"#);
    assert_eq!(batch(&client.ok("test", &more)), (id, 5));
    client.ok("admin", &format!(r#"{{"endSessions": [{session}]}}"#));
    assert_eq!(client.error("test", &more).0, 43);
}

#[test]
fn one_client_cannot_have_all_cursors() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client, 5);
    let open = r#"{"find": "c", "batchSize": 0}"#;
    for _ in 0..1_000 {
        client.ok("test", open);
    }
    let (code, message) = client.error("test", open);
    assert_eq!(code, 96, "{message}");
    assert!(message.contains("of this connection"), "{message}");
    // Requests that need no cursor go on, and so do other clients.
    assert_eq!(batch(&client.ok("test", r#"{"find": "c"}"#)), (0, 5));
    server.client().ok("test", open);
}

/// As MongoDB does it: what a cursor reads may not go while it is open.
#[test]
fn cursors_end_with_what_they_read() {
    let by_id = r#"{"find": "c", "batchSize": 2}"#;
    let by_index = r#"{"find": "c", "filter": {"a": {"$gte": 0}}, "batchSize": 2}"#;
    let by_stages =
        r#"{"aggregate": "c", "pipeline": [{"$set": {"b": 1}}], "cursor": {"batchSize": 2}}"#;
    let of_view = r#"{"find": "v", "batchSize": 2}"#;
    let all = [by_id, by_index, by_stages, of_view];
    let drop_index = r#"{"dropIndexes": "c", "index": "a_1"}"#;
    let rename = r#"{"renameCollection": "test.c", "to": "test.d"}"#;
    for (change, database, ended, message) in [
        (r#"{"drop": "c"}"#, "test", &all[..], "collection dropped"),
        (rename, "admin", &all[..], "collection renamed from 'test.c' to 'test.d'"),
        (r#"{"dropDatabase": 1}"#, "test", &all[..], "collection dropped"),
        (drop_index, "test", &[by_index][..], "index 'a_1' dropped"),
        (
            r#"{"aggregate": "other", "pipeline": [{"$out": "c"}], "cursor": {}}"#,
            "test",
            &all[..],
            "collection dropped: test.c",
        ),
        (r#"{"aggregate": "c", "pipeline": [{"$out": "other"}], "cursor": {}}"#, "test", &[], ""),
        (r#"{"drop": "other"}"#, "test", &[], ""),
        (r#"{"dropIndexes": "c", "index": "b_1"}"#, "test", &[], ""),
        (r#"{"frondCommit": 1, "message": "m"}"#, "test", &[], ""),
        (r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}"#, "test", &[], ""),
    ] {
        let server = Running::start();
        let mut client = server.client();
        let documents = r#"[{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}, {"a": 5}]"#;
        client.ok("test", &format!(r#"{{"insert": "c", "documents": {documents}}}"#));
        client.ok("test", r#"{"create": "other"}"#);
        client.ok("test", r#"{"create": "v", "viewOn": "c", "pipeline": []}"#);
        for field in ["a", "b"] {
            let index = format!(r#"{{"key": {{"{field}": 1}}, "name": "{field}_1"}}"#);
            client.ok("test", &format!(r#"{{"createIndexes": "c", "indexes": [{index}]}}"#));
        }
        let ids = all.map(|command| batch(&client.ok("test", command)).0);
        client.ok(database, change);
        client.ok("test", r#"{"drop": "nothing"}"#);
        for (command, id) in all.iter().zip(ids) {
            let name = if *command == of_view { "v" } else { "c" };
            let more =
                format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "{name}"}}"#);
            if ended.contains(command) {
                let (code, answer) = client.error("test", &more);
                assert_eq!(code, 175, "{change} {command}: {answer}");
                assert!(answer.contains(message), "{change} {command}: {answer}");
                assert_eq!(client.error("test", &more).0, 43, "{change} {command}");
            } else {
                assert_eq!(batch(&client.ok("test", &more)), (0, 3), "{change} {command}");
            }
        }
    }
}

/// A branch that is deleted or renamed takes its cursors with it, as a database that is dropped
/// does, also if it is made again at once; those of other branches go on.
#[test]
fn cursors_end_with_their_branch() {
    let delete = r#"{"frondBranch": 1, "branch": "b", "delete": true, "forceDelete": true}"#;
    let rename = r#"{"frondBranch": 1, "branch": "b", "rename": "c"}"#;
    let make = r#"{"frondBranch": 1, "branch": "b"}"#;
    for changes in [&[delete][..], &[delete, make], &[rename], &[rename, make]] {
        for written in [false, true] {
            let server = Running::start();
            let mut client = server.client();
            fill(&mut client, 9);
            client.ok("test", r#"{"frondCommit": 1, "message": "m"}"#);
            client.ok("test", make);
            if written {
                client.ok("test@b", r#"{"insert": "c", "documents": [{"_id": "b"}]}"#);
            }
            let open = r#"{"find": "c", "batchSize": 2}"#;
            let of_branch = batch(&client.ok("test@b", open)).0;
            let of_main = batch(&client.ok("test", open)).0;
            for change in changes {
                client.ok("test", change);
            }
            let more =
                |id: i64| format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c"}}"#);
            let (code, answer) = client.error("test@b", &more(of_branch));
            assert_eq!(code, 175, "{changes:?} {written}: {answer}");
            assert_eq!(batch(&client.ok("test", &more(of_main))), (0, 7));
            if changes.len() > 1 {
                let (id, _) = batch(&client.ok("test@b", open));
                assert_eq!(batch(&client.ok("test@b", &more(id))), (0, 7), "a new one goes on");
            }
        }
    }
}

/// A cursor has the time that is left of its find: time between two batches doesn't count.
#[test]
fn a_get_more_has_what_is_left_of_its_finds_time() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client, 60);
    let more = |id: i64| format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c"}}"#);
    let find = |filter: &str, millis: u32| {
        format!(r#"{{"find": "c", "filter": {filter}, "batchSize": 1, "maxTimeMS": {millis}}}"#)
    };
    let (slow, _) = batch(&client.ok("test", &find(r#"{"$where": "sleep(50) || true"}"#, 1000)));
    assert_eq!(client.error("test", &more(slow)).0, 50, "60 documents take 3 seconds");
    assert_eq!(client.error("test", &more(slow)).0, 43);
    let (fast, _) = batch(&client.ok("test", &find("{}", 1500)));
    std::thread::sleep(std::time::Duration::from_millis(1600));
    assert_eq!(batch(&client.ok("test", &more(fast))), (0, 59));
}
