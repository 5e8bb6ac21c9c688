//! Index filters: `planCacheSetFilter`, `planCacheListFilters`, `planCacheClearFilters`.
//!
//! Goal: a filter counts for queries of its shape alone, in every command that looks for documents,
//! more than a hint does; no answer changes by it. Method: plans as `explain` shows them.

use frond_doc::Document;

use crate::running::{Running, TestClient};

fn start() -> Running {
    let server = Running::start();
    let mut client = server.client();
    let index = |path: &str| format!(r#"{{"key": {{"{path}": 1}}, "name": "{path}_1"}}"#);
    let indexes = format!("{}, {}", index("a"), index("b"));
    client.ok("test", &format!(r#"{{"createIndexes": "c", "indexes": [{indexes}]}}"#));
    let document = |id: usize| format!(r#"{{"_id": {id}, "a": {id}, "b": {}}}"#, id % 2);
    let documents: Vec<String> = (0..20).map(document).collect();
    client.ok("test", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(", ")));
    server
}

/// The index by which a command finds documents, or `COLLSCAN`; and whether a filter counted.
fn plan(client: &mut TestClient, command: &str) -> (String, bool) {
    let explain = format!(r#"{{"explain": {command}, "verbosity": "queryPlanner"}}"#);
    let explained = client.ok("test", &explain);
    let mut planner = explained.view().get("queryPlanner");
    if planner.is_none() {
        let stages = explained.get("stages").and_then(|it| it.as_array()).expect("stages");
        let first = stages.iter().next().and_then(|it| it.as_document()).expect("a stage");
        let cursor = first.get("$cursor").and_then(|it| it.as_document()).expect("a cursor");
        planner = cursor.get("queryPlanner");
    }
    let planner = planner.and_then(|it| it.as_document()).expect("a plan");
    let counted = planner.get("indexFilterSet") == Some(frond_doc::Value::Boolean(true));
    let winning = planner.get("winningPlan").and_then(|it| it.as_document()).expect("a plan");
    (source(winning), counted)
}

fn source(stage: Document<'_>) -> String {
    if let Some(index) = stage.get("indexName").and_then(|it| it.as_str()) {
        return index.to_owned();
    }
    match stage.get("inputStage").and_then(|it| it.as_document()) {
        Some(inner) => source(inner),
        None => stage.get("stage").and_then(|it| it.as_str()).expect("a name").to_owned(),
    }
}

#[test]
fn a_filter_counts_for_its_shape() {
    let server = start();
    let mut client = server.client();
    let find = r#"{"find": "c", "filter": {"a": 5, "b": 1}}"#;
    assert_eq!(plan(&mut client, find), ("a_1".to_owned(), false));
    client.ok(
        "test",
        r#"{"planCacheSetFilter": "c", "query": {"b": 0, "a": 7}, "indexes": [{"b": 1}, "no"]}"#,
    );
    let expected = |index: &str, counts: bool| (index.to_owned(), counts);
    for (command, index, counts) in [
        (find, "b_1", true),
        (r#"{"find": "c", "filter": {"a": {"$eq": 5}, "b": 1}, "hint": "a_1"}"#, "b_1", true),
        (r#"{"find": "c", "filter": {"a": 5, "b": 1}, "hint": {"$natural": 1}}"#, "b_1", true),
        (r#"{"count": "c", "query": {"a": 5, "b": 1}}"#, "b_1", true),
        (r#"{"distinct": "c", "key": "x", "query": {"a": 5, "b": 1}}"#, "b_1", true),
        (
            r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": 5, "b": 1}}]}"#,
            "b_1",
            true,
        ),
        (
            r#"{"update": "c", "updates": [{"q": {"a": 5, "b": 1}, "u": {"$set": {"x": 1}}}]}"#,
            "b_1",
            true,
        ),
        (r#"{"delete": "c", "deletes": [{"q": {"a": 5, "b": 1}, "limit": 0}]}"#, "b_1", true),
        (r#"{"find": "c", "filter": {"a": 5}}"#, "a_1", false),
        (r#"{"find": "c", "filter": {"a": 5, "b": {"$gt": 0}}}"#, "a_1", false),
        (r#"{"find": "c", "filter": {"a": 5, "b": 1}, "sort": {"x": 1}}"#, "a_1", false),
        (r#"{"find": "c", "filter": {"a": 5, "b": 1}, "projection": {"a": 1}}"#, "a_1", false),
        (
            r#"{"find": "c", "filter": {"a": 5, "b": 1}, "collation": {"locale": "de"}}"#,
            "a_1",
            false,
        ),
    ] {
        assert_eq!(plan(&mut client, command), expected(index, counts), "{command}");
    }
    client.check("test", r#"{"count": "c", "query": {"a": 5, "b": 1}}"#, r#"{"n": 1, "ok": 1.0}"#);
    let update =
        r#"{"update": "c", "updates": [{"q": {"a": 5, "b": 1}, "u": {"$set": {"x": 1}}}]}"#;
    client.check("test", update, r#"{"n": 1, "nModified": 1, "ok": 1.0}"#);
    // No index that there is may be used.
    client.ok("test", r#"{"planCacheSetFilter": "c", "query": {"a": 1}, "indexes": ["no"]}"#);
    let found = plan(&mut client, r#"{"find": "c", "filter": {"a": 5}}"#);
    assert_eq!(found, expected("COLLSCAN", true));
    client.ok(
        "test",
        r#"{"planCacheSetFilter": "c", "query": {"_id": {"$gt": 1}}, "indexes": ["a_1"]}"#,
    );
    let found = plan(&mut client, r#"{"find": "c", "filter": {"_id": {"$gt": 15}}}"#);
    assert_eq!(found, expected("COLLSCAN", true));
    client.check_documents(
        "test",
        r#"{"find": "c", "filter": {"_id": {"$gt": 18}}, "projection": {"_id": 1}}"#,
        &[r#"{"_id": 19}"#],
    );
}

#[test]
fn filters_are_listed_and_taken_away() {
    let server = start();
    let mut client = server.client();
    let list = r#"{"planCacheListFilters": "c"}"#;
    client.ok("test", r#"{"planCacheSetFilter": "c", "query": {"b": 1}, "indexes": ["a_1"]}"#);
    client.ok("test", r#"{"planCacheSetFilter": "c", "query": {"b": 2}, "indexes": ["b_1"]}"#);
    let second = r#"{"planCacheSetFilter": "c", "query": {"a": 1}, "sort": {"b": 1},
        "projection": {"a": 1}, "collation": {"locale": "de"}, "indexes": [{"a": 1}]}"#;
    client.ok("test", second);
    let answer = r#"{"filters": [
        {"query": {"a": 1}, "sort": {"b": 1}, "projection": {"a": 1}, "collation": {"locale": "de"},
         "indexes": [{"a": 1}]},
        {"query": {"b": 2}, "sort": {}, "projection": {}, "indexes": ["b_1"]}], "ok": 1.0}"#;
    client.check("test", list, answer);
    client.ok("test", r#"{"planCacheClearFilters": "c", "query": {"b": {"$eq": 7}}}"#);
    let answer = r#"{"filters": [
        {"query": {"a": 1}, "sort": {"b": 1}, "projection": {"a": 1}, "collation": {"locale": "de"},
         "indexes": [{"a": 1}]}], "ok": 1.0}"#;
    client.check("test", list, answer);
    client.ok("test", r#"{"planCacheClearFilters": "c"}"#);
    client.check("test", list, r#"{"filters": [], "ok": 1.0}"#);
    client.ok("test", r#"{"planCacheSetFilter": "c", "query": {"b": 1}, "indexes": ["a_1"]}"#);
    client.ok("test", r#"{"drop": "c"}"#);
    client.ok("test", r#"{"create": "c"}"#);
    client.check("test", list, r#"{"filters": [], "ok": 1.0}"#);
}

#[test]
fn malformed_index_filters_are_refused() {
    let server = start();
    let mut client = server.client();
    for rest in [
        r#""indexes": ["a_1"]"#,
        r#""query": {"a": 1}"#,
        r#""query": {"a": 1}, "indexes": []"#,
        r#""query": {"a": 1}, "indexes": "a_1""#,
        r#""query": {"a": 1}, "indexes": [{}]"#,
        r#""query": {"a": 1}, "indexes": [""]"#,
        r#""query": {"a": 1}, "indexes": [1]"#,
        r#""query": 1, "indexes": ["a_1"]"#,
        r#""query": {"a": {"$no": 1}}, "indexes": ["a_1"]"#,
        r#""query": {"a": 1}, "sort": 1, "indexes": ["a_1"]"#,
        r#""query": {"a": 1}, "sort": {"a": 2}, "indexes": ["a_1"]"#,
        r#""query": {"a": 1}, "projection": 1, "indexes": ["a_1"]"#,
    ] {
        let command = format!(r#"{{"planCacheSetFilter": "c", {rest}}}"#);
        let (code, message) = client.error("test", &command);
        let expected = if rest.contains(r#"{"a": 2}"#) { 15975 } else { 2 };
        assert_eq!(code, expected, "{rest}: {message}");
    }
    let nowhere = r#"{"planCacheSetFilter": "no", "query": {"a": 1}, "indexes": ["a_1"]}"#;
    assert_eq!(client.code("test", nowhere), 2);
    for name in ["sort", "projection", "collation"] {
        let command = format!(r#"{{"planCacheClearFilters": "c", "{name}": {{}}}}"#);
        assert_eq!(client.code("test", &command), 2, "{name}");
    }
    client.ok("test", r#"{"planCacheClearFilters": "no"}"#);
    client.check("test", r#"{"planCacheListFilters": "no"}"#, r#"{"filters": [], "ok": 1.0}"#);
}
