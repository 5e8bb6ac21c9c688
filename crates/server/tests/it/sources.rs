//! First stages that show the server: sessions, running commands, plans; and the variables that do.

use crate::running::Running;

const SESSION: &str = r#""lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}}"#;

#[test]
fn sessions_are_listed() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", &format!(r#"{{"insert": "c", "documents": [{{"_id": 1}}], {SESSION}}}"#));
    let count = |client: &mut crate::running::TestClient,
                 database: &str,
                 target: &str,
                 stage: &str| {
        let command = format!(
            r#"{{"aggregate": {target}, "cursor": {{}}, "pipeline": [{stage},
                {{"$group": {{"_id": "$_id.id", "n": {{"$sum": 1}}, "last": {{"$max": "$lastUse"}}}}}}]}}"#
        );
        let found = client.0.documents(database, crate::running::json(&command).view());
        found.expect("listed").len()
    };
    assert_eq!(count(&mut client, "a", "1", r#"{"$listLocalSessions": {}}"#), 1);
    let all = r#"{"$listSessions": {"allUsers": true}}"#;
    assert_eq!(count(&mut client, "config", r#""system.sessions""#, all), 1);
    let some = r#"{"$listSessions": {"users": [{"user": "x", "db": "y"}]}}"#;
    assert_eq!(count(&mut client, "config", r#""system.sessions""#, some), 0);
    for (database, target, stage, code) in [
        ("a", r#""c""#, r#"{"$listLocalSessions": {}}"#, 73),
        ("a", r#""c""#, r#"{"$listSessions": {}}"#, 73),
        ("a", "1", r#"{"$listLocalSessions": {"x": 1}}"#, 40415),
        ("a", "1", r#"{"$listLocalSessions": 1}"#, 14),
        ("a", "1", r#"{"$listLocalSessions": {"allUsers": true, "users": []}}"#, 12),
        ("a", "1", r#"{"$planCacheStats": {}}"#, 73),
        ("admin", "1", r#"{"$currentOp": {"x": true}}"#, 9),
        ("admin", "1", r#"{"$currentOp": {"allUsers": 1}}"#, 9),
        ("a", "1", r#"{"$currentOp": {}}"#, 73),
    ] {
        let command =
            format!(r#"{{"aggregate": {target}, "cursor": {{}}, "pipeline": [{stage}]}}"#);
        let (found, message) = client.error(database, &command);
        assert_eq!(found, code, "{stage}: {message}");
    }
    let plans = r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$planCacheStats": {}}]}"#;
    client.check_documents("a", plans, &[]);
    client.ok("a", r#"{"planCacheClear": "c"}"#);
    client.check("a", r#"{"planCacheListFilters": "c"}"#, r#"{"filters": [], "ok": 1.0}"#);
}

#[test]
fn variables_describe_the_cluster() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let project = r#"{"aggregate": "c", "cursor": {}, "let": {"t": {"$type": "$$CLUSTER_TIME"}},
        "pipeline": [{"$project": {"type": {"$type": "$$CLUSTER_TIME"}, "roles": "$$USER_ROLES", "t": "$$t"}}]}"#;
    client.check_documents(
        "a",
        project,
        &[r#"{"_id": 1, "type": "timestamp", "roles": [], "t": "timestamp"}"#],
    );
    let find = r#"{"find": "c", "filter": {"$expr": {"$gt": ["$$CLUSTER_TIME", null]}}}"#;
    client.check_documents("a", find, &[r#"{"_id": 1}"#]);
}

#[test]
fn views_are_read_as_documents() {
    let server = Running::start();
    let mut client = server.client();
    client.check_documents("a", r#"{"find": "system.views"}"#, &[]);
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let listed = r#"{"listCollections": 1, "nameOnly": true, "filter": {"name": /^system/}}"#;
    let listed = &listed.replace("/^system/", r#"{"$regex": "^system"}"#);
    client.check_documents("a", listed, &[]);
    client.ok(
        "a",
        r#"{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": 1}}],
            "collation": {"locale": "en", "strength": 2}}"#,
    );
    client.ok("a", r#"{"create": "w", "viewOn": "c"}"#);
    client.check_documents("a", listed, &[r#"{"name": "system.views", "type": "collection"}"#]);
    client.check_documents(
        "a",
        r#"{"find": "system.views", "projection": {"collation.locale": 1, "pipeline": 1, "viewOn": 1}}"#,
        &[
            r#"{"_id": "a.v", "viewOn": "c", "pipeline": [{"$match": {"a": 1}}], "collation": {"locale": "en"}}"#,
            r#"{"_id": "a.w", "viewOn": "c", "pipeline": []}"#,
        ],
    );
    let second =
        r#"{"find": "system.views", "filter": {"pipeline": []}, "projection": {"_id": 1}}"#;
    client.check_documents("a", second, &[r#"{"_id": "a.w"}"#]);
    client.check("a", r#"{"count": "system.views"}"#, r#"{"n": 2, "ok": 1.0}"#);
    let counted = r#"{"count": "system.views", "query": {"_id": "a.v"}}"#;
    client.check("a", counted, r#"{"n": 1, "ok": 1.0}"#);
    let stages = r#"{"aggregate": "system.views", "cursor": {}, "pipeline": [{"$sort": {"_id": -1}}, {"$project": {"_id": 1}}]}"#;
    client.check_documents("a", stages, &[r#"{"_id": "a.w"}"#, r#"{"_id": "a.v"}"#]);
    client.check_documents("b", r#"{"find": "system.views"}"#, &[]);
}
