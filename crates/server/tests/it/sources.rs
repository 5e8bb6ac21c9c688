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
fn collections_are_described_in_pipelines_within_others() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    client.ok("a", r#"{"insert": "d", "documents": [{"_id": 7}]}"#);
    let index = r#"{"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x"}]}"#;
    client.ok("a", index);
    let aggregate = |target: &str, stages: &str| {
        format!(r#"{{"aggregate": {target}, "cursor": {{}}, "pipeline": [{stages}]}}"#)
    };
    let count = r#"{"$collStats": {"count": {}}}, {"$project": {"ns": 1, "count": 1}}"#;
    let union = format!(r#"{{"$unionWith": {{"coll": "c", "pipeline": [{count}]}}}}"#);
    let counted = r#"{"ns": "a.c", "count": 2}"#;
    client.check_documents("a", &aggregate(r#""d""#, &union), &[r#"{"_id": 7}"#, counted]);
    // Within a stage that stands within a `$facet`, and behind a first stage of its kind.
    let facet = format!(r#"{{"$facet": {{"x": [{union}, {{"$match": {{"ns": "a.c"}}}}]}}}}"#);
    let found = format!(r#"{{"x": [{counted}]}}"#);
    client.check_documents("a", &aggregate(r#""d""#, &facet), &[&found]);
    let both =
        format!(r#"{{"$indexStats": {{}}}}, {{"$project": {{"_id": 0, "name": 1}}}}, {union}"#);
    client.check_documents("a", &aggregate(r#""d""#, &both), &[r#"{"name": "_id_"}"#, counted]);
    let lookup = r#"{"$lookup": {"from": "c", "as": "i", "let": {"own": "$_id"}, "pipeline": [
        {"$indexStats": {}}, {"$sort": {"name": 1}}, {"$project": {"_id": 0, "name": 1, "of": "$$own"}}]}}"#;
    let indexes = r#"{"_id": 7, "i": [{"name": "_id_", "of": 7}, {"name": "x", "of": 7}]}"#;
    client.check_documents("a", &aggregate(r#""d""#, lookup), &[indexes]);
    let plans = r#"{"$unionWith": {"coll": "c", "pipeline": [{"$planCacheStats": {}}]}}"#;
    client.check_documents("a", &aggregate(r#""d""#, plans), &[r#"{"_id": 7}"#]);
    for (stage, code) in [
        (r#"{"$unionWith": {"coll": "no", "pipeline": [{"$collStats": {"count": {}}}]}}"#, 26),
        (r#"{"$unionWith": {"coll": "c", "pipeline": [{"$indexStats": {"x": 1}}]}}"#, 28803),
        (
            r#"{"$unionWith": {"coll": "c", "pipeline": [{"$limit": 1}, {"$indexStats": {}}]}}"#,
            40602,
        ),
        (r#"{"$facet": {"x": [{"$indexStats": {}}]}}"#, 40600),
    ] {
        assert_eq!(client.error("a", &aggregate(r#""d""#, stage)).0, code, "{stage}");
    }
}

#[test]
fn scans_and_transactions_are_counted() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#);
    for filter in [r#"{"x": 1}"#, r#"{"x": {"$gt": 1}}"#, r#"{"_id": 1}"#] {
        client.ok("a", &format!(r#"{{"find": "c", "filter": {filter}}}"#));
    }
    let stats = |options: &str, shown: &str| {
        format!(
            r#"{{"aggregate": "c", "cursor": {{}}, "pipeline":
                [{{"$collStats": {options}}}, {{"$project": {{"_id": 0, {shown}}}}}]}}"#
        )
    };
    let scans = stats(r#"{"queryExecStats": {}}"#, r#""queryExecStats": 1"#);
    let twice = r#"{"queryExecStats": {"collectionScans":
        {"total": {"$numberLong": "2"}, "nonTailable": {"$numberLong": "2"}}}}"#;
    client.check_documents("a", &scans, &[twice]);
    let capped = r#"{"create": "k", "capped": true, "size": 4096}"#;
    client.ok("a", capped);
    client.ok("a", r#"{"insert": "k", "documents": [{"_id": 1}]}"#);
    client.ok("a", r#"{"find": "k", "tailable": true, "batchSize": 0}"#);
    let tailable = r#"{"queryExecStats": {"collectionScans":
        {"total": {"$numberLong": "1"}, "nonTailable": {"$numberLong": "0"}}}}"#;
    client.check_documents("a", &scans.replace(r#""c""#, r#""k""#), &[tailable]);
    for (options, code) in
        [(r#"{"queryExecStats": {"x": 1}}"#, 40415), (r#"{"queryExecStats": 1}"#, 14)]
    {
        assert_eq!(client.error("a", &stats(options, r#""ns": 1"#)).0, code, "{options}");
    }
    let of_none = scans.replace(r#""c""#, r#""none""#);
    assert_eq!(client.error("a", &of_none).0, 26);
    let ended = |client: &mut crate::running::TestClient| {
        let status = client.ok("admin", r#"{"serverStatus": 1}"#);
        let latencies =
            status.get("opLatencies").and_then(|all| all.as_document().map(|all| all.to_buf()));
        let latencies = latencies.expect("there");
        let transactions = latencies.get("transactions").and_then(|kind| kind.as_document());
        transactions.and_then(|kind| kind.get("ops")?.as_integer()).expect("counted")
    };
    let before = ended(&mut client);
    let transaction =
        format!(r#"{SESSION}, "txnNumber": {{"$numberLong": "1"}}, "autocommit": false"#);
    client.ok("a", &format!(r#"{{"find": "c", {transaction}, "startTransaction": true}}"#));
    assert_eq!(ended(&mut client), before);
    client.ok("admin", &format!(r#"{{"commitTransaction": 1, {transaction}}}"#));
    assert_eq!(ended(&mut client), before + 1);
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
