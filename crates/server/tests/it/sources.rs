//! First stages that tell of the server: sessions, running commands, plans; and what variables tell
//! of it.

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
fn variables_tell_of_the_cluster() {
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
