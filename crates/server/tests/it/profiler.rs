//! The profiler: levels of databases, what `system.profile` has, and what may be done with it.

use frond_doc::{DocumentBuf, Value, document};
use frond_server::wire::DocumentSequence;

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
fn all_that_collections_are_asked_is_told_in_their_database_and_nothing_else() {
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
    assert_eq!(kinds, ["insert", "query", "update", "remove", "query", "command"]);
    assert_eq!(integer(&found[0], "ninserted"), Some(3));
    assert_eq!(integer(&found[1], "nreturned"), Some(1));
    assert!(integer(&found[1], "cursorid").is_some_and(|id| id != 0));
    let counts = ["nMatched", "nModified", "nUpserted"].map(|name| integer(&found[2], name));
    assert_eq!(counts, [Some(1), Some(1), Some(1)]);
    assert_eq!(integer(&found[3], "ndeleted"), Some(4));
    let told = |place: usize| found[place].get("command").and_then(|told| told.as_document());
    assert!(told(2).is_some_and(|told| told.get("updates").is_some()), "two statements");
    let delete = json(r#"{"q": {}, "limit": 0, "comment": "all"}"#);
    assert_eq!(told(3), Some(delete.view()));
    assert_eq!(integer(&found[4], "errCode"), Some(2));
    assert!(found.iter().all(|it| matches!(it.get("ts"), Some(Value::DateTime(1..)))));
    let other = client.ok("other", r#"{"listCollections": 1, "nameOnly": true}"#);
    assert!(!format!("{other:?}").contains("system.profile"));
}

/// Drivers send what is to be updated beside the command.
#[test]
fn an_update_is_told_with_what_it_does() {
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

#[test]
fn only_what_is_slow_is_told_at_level_one_and_of_that_a_share() {
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
fn a_filter_says_what_is_told_in_the_place_of_time() {
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
fn what_is_told_is_the_servers_to_write_and_the_users_to_drop() {
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
    let told = entries(&mut client, "{}").len();
    assert!((1..12).contains(&told), "{told} of what 8 KB hold");
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
