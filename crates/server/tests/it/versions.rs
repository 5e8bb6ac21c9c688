//! The commands of versions, over the wire.

use frond_doc::Value;

use crate::running::{Running, TestClient, text};

fn commit(client: &mut TestClient, database: &str, message: &str) -> String {
    let command = format!(r#"{{"frondCommit": 1, "message": "{message}", "author": "Ada"}}"#);
    let answer = client.ok(database, &command);
    assert!(matches!(answer.get("timestamp"), Some(Value::DateTime(_))));
    assert_eq!(answer.get("author"), Some(Value::String("Ada")));
    answer.get("commitId").and_then(|id| id.as_str()).expect("an id").to_owned()
}

/// A database with one commit and a branch.
fn branched(server: &Running) -> TestClient {
    let mut client = server.client();
    client.ok("shop", r#"{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 1}, {"_id": 2}]}"#);
    let id = commit(&mut client, "shop", "first");
    assert_eq!(id.len(), 32);
    let expected = format!(r#"{{"branch": "feature", "commitId": "{id}", "ok": 1.0}}"#);
    client.check("shop", r#"{"frondBranch": 1, "branch": "feature"}"#, &expected);
    client
}

fn set(client: &mut TestClient, database: &str, field: &str, value: i32) {
    let update = format!(
        r#"{{"update": "c", "updates": [{{"q": {{"_id": 1}},
            "u": {{"$set": {{"{field}": {value}}}}}}}]}}"#
    );
    client.check(database, &update, r#"{"n": 1, "nModified": 1, "ok": 1.0}"#);
}

#[test]
fn a_branch_is_changed_compared_and_merged() {
    let server = Running::start();
    let mut client = branched(&server);
    set(&mut client, "shop@feature", "a", 5);
    let diff = r#"{"collections": [{"collection": "c", "change": "modified", "added": [],
        "removed": [], "modified": [{"_id": 1, "changes": [
            {"type": "modified", "path": "a", "from": 1, "to": 5}]}], "indexes": []}], "ok": 1.0}"#;
    client.check("shop@feature", r#"{"frondDiff": 1}"#, diff);
    let theirs = r#"{"collections": [{"name": "c", "change": "modified", "added": [],
        "removed": [], "modified": [{"_id": 1, "diff": [
            {"type": "modified", "path": "a", "from": 1, "to": 5}]}], "indexes": []}], "ok": 1.0}"#;
    client.check("shop@feature", r#"{"dumboDiff": 1}"#, theirs);
    let status = client.ok("shop@feature", r#"{"doltStatus": 1}"#);
    assert_eq!(status.get("dirty"), Some(Value::Boolean(true)));
    commit(&mut client, "shop@feature", "second");
    set(&mut client, "shop", "b", 7);
    commit(&mut client, "shop", "third");
    let merge = r#"{"frondMerge": 1, "merge_in": "feature", "message": "both", "author": "Ada"}"#;
    let merged = client.ok("shop", merge);
    assert_eq!(merged.get("result"), Some(Value::String("merged")));
    let find = r#"{"find": "c", "filter": {"_id": 1}}"#;
    client.check_documents("shop", find, &[r#"{"_id": 1, "a": 5, "b": 7}"#]);
    client.check_documents("shop@main~1", find, &[r#"{"_id": 1, "a": 1, "b": 7}"#]);
    let log = client.ok("shop", r#"{"frondLog": 1, "limit": 1}"#);
    let commits = log.get("commits").and_then(|commits| commits.as_array()).expect("an array");
    assert_eq!(commits.iter().count(), 1);
    let again = client.ok("shop", r#"{"frondMerge": 1, "merge_in": "feature"}"#);
    assert_eq!(again.get("result"), Some(Value::String("upToDate")));
    let list = client.ok("admin", r#"{"listDatabases": 1}"#);
    let databases = list.get("databases").and_then(|list| list.as_array()).expect("an array");
    assert_eq!(databases.iter().count(), 1);
    assert!(
        client
            .ok("shop", r#"{"frondBranch": 1, "delete": true, "branch": "feature"}"#)
            .get("deleted")
            .is_some()
    );
}

#[test]
fn a_branch_gets_another_name() {
    let server = Running::start();
    let mut client = branched(&server);
    set(&mut client, "shop@feature", "a", 5);
    for (command, expected) in [
        (r#"{"frondBranch": 1, "rename": "x"}"#, 40414),
        (r#"{"frondBranch": 1, "branch": "feature", "rename": "x", "start": "main"}"#, 2),
        (r#"{"frondBranch": 1, "branch": "feature", "rename": "x", "closed": true}"#, 2),
        (r#"{"frondBranch": 1, "branch": "feature", "rename": "x", "delete": true}"#, 2),
        (r#"{"frondBranch": 1, "branch": "feature", "rename": "main"}"#, 48),
        (r#"{"frondBranch": 1, "branch": "main", "rename": "x"}"#, 20),
        (r#"{"frondBranch": 1, "branch": "nothing", "rename": "x"}"#, 26),
    ] {
        assert_eq!(client.error("shop", command).0, expected, "{command}");
    }
    let renamed = client.ok("shop", r#"{"frondBranch": 1, "branch": "feature", "rename": "x"}"#);
    assert_eq!(renamed.get("branch"), Some(Value::String("x")));
    let find = r#"{"find": "c", "filter": {"_id": 1}}"#;
    client.check_documents("shop@x", find, &[r#"{"_id": 1, "a": 5, "b": 1}"#]);
    set(&mut client, "shop@x", "a", 6);
    client.error("shop@feature", find);
}

/// PyMongo's `db.command("frondResolveConflict", id=…, value=…)` sends the value in the place of
/// the 1.
#[test]
fn a_document_in_the_place_of_the_commands_one_resolves_a_conflict() {
    let server = Running::start();
    let mut client = branched(&server);
    set(&mut client, "shop@feature", "a", 5);
    commit(&mut client, "shop@feature", "second");
    set(&mut client, "shop", "a", 7);
    commit(&mut client, "shop", "third");
    client.error("shop", r#"{"frondMerge": 1, "merge_in": "feature"}"#);
    let (code, message) = client.error("shop", r#"{"frondResolveConflict": 1, "all": true}"#);
    assert!(code == 2 && message.contains("takes one of 'resolution'"), "{message}");
    let value = r#"{"frondResolveConflict": {"_id": 1, "a": 9}, "all": true}"#;
    client.check("shop", value, r#"{"remaining": 0, "ok": 1.0}"#);
    let found = client.ok("shop", r#"{"find": "c", "filter": {"_id": 1}}"#);
    let found = crate::running::text(&found);
    assert!(found.contains(r#"{"_id":1,"a":9}"#), "{found}");
}

/// With changes that aren't committed too: a merge would commit them first.
#[test]
fn a_dry_run_of_a_merge_reports_how_it_would_end_and_changes_nothing() {
    let server = Running::start();
    let mut client = branched(&server);
    let preview = r#"{"frondMerge": 1, "merge_in": "feature", "dryRun": true}"#;
    let check = |client: &mut crate::running::TestClient, expected: &str| {
        let state = |client: &mut crate::running::TestClient| {
            let cases = [
                r#"{"frondLog": 1}"#,
                r#"{"frondReflog": 1}"#,
                r#"{"frondStatus": 1}"#,
                r#"{"find": "c"}"#,
            ];
            cases.map(|command| {
                let answer = client.ok("shop", command);
                let fields = answer
                    .iter()
                    .filter(|(name, _)| !["$clusterTime", "operationTime"].contains(name));
                fields.map(|(name, value)| format!("{name}: {value:?}")).collect::<Vec<_>>()
            })
        };
        let before = state(client);
        let reply = crate::running::text(&client.ok("shop", preview));
        assert!(reply.contains(expected), "{reply}");
        assert_eq!(state(client), before);
    };
    check(&mut client, r#""result":"upToDate""#);
    set(&mut client, "shop@feature", "a", 5);
    commit(&mut client, "shop@feature", "second");
    check(&mut client, r#""result":"fastForward""#);
    set(&mut client, "shop", "b", 7);
    check(&mut client, r#""result":"merged","branch":"main","conflicts":[]"#);
    commit(&mut client, "shop", "third");
    check(&mut client, r#""result":"merged","branch":"main","conflicts":[]"#);
    set(&mut client, "shop", "a", 7);
    let conflict =
        r#""result":"conflicts","branch":"main","conflicts":[{"collection":"c","count":1}]"#;
    check(&mut client, conflict);
    client.error("shop", r#"{"frondMerge": 1, "merge_in": "feature"}"#);
    let (code, _) = client.error("shop", r#"{"frondMerge": 1, "continue": true, "dryRun": true}"#);
    assert_eq!(code, 2);
}

#[test]
fn a_conflict_is_reported_listed_and_resolved() {
    let server = Running::start();
    let mut client = branched(&server);
    set(&mut client, "shop@feature", "a", 5);
    commit(&mut client, "shop@feature", "second");
    set(&mut client, "shop", "a", 7);
    commit(&mut client, "shop", "third");
    let merge = frond_doc::document! { "frondMerge": 1_i32, "merge_in": "feature" };
    let Err(frond_server::ClientError::Command { code, answer, .. }) =
        client.0.command("shop", merge.view())
    else {
        panic!("a conflict is an error");
    };
    assert_eq!(code, 96);
    let conflicts = crate::running::text(&answer);
    assert!(conflicts.contains(r#""conflicts":[{"collection":"c","count":1}]"#), "{conflicts}");
    let list = client.ok("shop", r#"{"frondConflicts": 1}"#);
    let list = list.get("conflicts").and_then(|list| list.as_array()).expect("an array");
    let conflict = list.get(0).and_then(|conflict| conflict.as_document()).expect("a conflict");
    assert_eq!(conflict.get("_id"), Some(Value::Int32(1)));
    let id = conflict.get("id").and_then(|id| id.as_str()).expect("an id");
    let resolve = format!(r#"{{"frondResolveConflict": 1, "id": "{id}", "resolution": "theirs"}}"#);
    client.check("shop", &resolve, r#"{"remaining": 0, "ok": 1.0}"#);
    client.ok("shop", r#"{"frondMerge": 1, "continue": true}"#);
    let find = r#"{"find": "c", "filter": {"_id": 1}}"#;
    client.check_documents("shop", find, &[r#"{"_id": 1, "a": 5, "b": 1}"#]);
}

#[test]
fn versions_are_read_only_and_resets_go_back() {
    let server = Running::start();
    let mut client = branched(&server);
    set(&mut client, "shop", "a", 5);
    let insert = r#"{"insert": "c", "documents": [{"_id": 3}]}"#;
    // A driver takes 20 of a retryable write for a deployment that doesn't know them.
    let update = r#"{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}"#;
    let delete = r#"{"delete": "c", "deletes": [{"q": {}, "limit": 1}]}"#;
    let modify = r#"{"findAndModify": "c", "query": {}, "remove": true}"#;
    client.ok("shop", r#"{"frondBranch": 1, "branch": "shut"}"#);
    client.ok("shop", r#"{"frondBranch": 1, "branch": "shut", "closed": true}"#);
    for database in ["shop@main~0", "shop@shut"] {
        for command in [insert, update, delete, modify] {
            assert_eq!(client.error(database, command).0, 371, "{database}: {command}");
        }
    }
    client.error("shop@nowhere", insert);
    let reset = client.ok("shop", r#"{"frondReset": 1, "hard": true}"#);
    assert_eq!(reset.get("mode"), Some(Value::String("hard")));
    let find = r#"{"find": "c", "filter": {"_id": 1}}"#;
    client.check_documents("shop", find, &[r#"{"_id": 1, "a": 1, "b": 1}"#]);
}

/// Also as drivers send them, to be remembered and sent again.
#[test]
fn a_moment_is_written_by_no_command() {
    let server = Running::start();
    let mut client = branched(&server);
    let read = |client: &mut TestClient| {
        text(&crate::running::without_time(&client.ok("shop", r#"{"find": "c"}"#)))
    };
    let before = read(&mut client);
    let commands = [
        r#"{"insert": "c", "documents": [{"_id": 3}]"#,
        r#"{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 7}}}]"#,
        r#"{"delete": "c", "deletes": [{"q": {}, "limit": 1}]"#,
        r#"{"findAndModify": "c", "query": {}, "remove": true"#,
        r#"{"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}"#,
        r#"{"aggregate": "c", "pipeline": [{"$merge": "d"}], "cursor": {}"#,
        r#"{"create": "d""#,
        r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]"#,
        r#"{"dropIndexes": "c", "index": "*""#,
        r#"{"collMod": "c", "validator": {"a": 1}"#,
        r#"{"drop": "c""#,
        r#"{"dropDatabase": 1"#,
        r#"{"frondCommit": 1, "message": "no""#,
        r#"{"frondReset": 1, "hard": true"#,
        r#"{"frondRestore": "c""#,
        r#"{"frondUndo": 1"#,
    ];
    const SESSION: &str = r#""lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}}"#;
    for (number, command) in commands.iter().enumerate() {
        client.error("shop@{now}", &format!("{command}}}"));
        let is_retried = number < 4;
        if is_retried {
            let again = format!(
                r#"{command}, {SESSION}, "txnNumber": {{"$numberLong": "{}"}}}}"#,
                number + 1
            );
            assert_eq!(client.error("shop@{now}", &again).0, 371, "{again}");
        }
    }
    assert_eq!(read(&mut client), before);
    let collections = client.ok("shop", r#"{"listCollections": 1, "nameOnly": true}"#);
    assert!(!text(&collections).contains(r#""d""#), "{}", text(&collections));
}

#[test]
fn stages_of_history_are_explained() {
    let server = Running::start();
    let mut client = branched(&server);
    let id = {
        set(&mut client, "shop", "a", 5);
        commit(&mut client, "shop", "second")
    };
    let explain = |first: &str, rest: &str, verbosity: &str| {
        format!(
            r#"{{"explain": {{"aggregate": "c", "pipeline": [{first}{rest}], "cursor": {{}}}},
                "verbosity": "{verbosity}"}}"#
        )
    };
    let group = r#", {"$group": {"_id": "$change", "n": {"$sum": 1}}}"#;
    let diff = r#"{"$diff": {"from": "HEAD~1"}}"#;
    let answer = text(&client.ok("shop", &explain(diff, group, "executionStats")));
    assert!(answer.contains(r#""stage":"DIFF""#) && answer.contains(r#""$group""#), "{answer}");
    assert!(answer.contains(r#""to":"working state of main""#), "{answer}");
    assert!(answer.contains(r#""nReturned":1"#), "{answer}");
    let answer =
        text(&client.ok("shop", &explain(r#"{"$diff": {"to": "HEAD"}}"#, "", "queryPlanner")));
    assert!(answer.contains(&id) && !answer.contains("nReturned"), "{answer}");
    for first in [
        r#"{"$log": {}}"#,
        r#"{"$history": {"_id": 1}}"#,
        r#"{"$blame": {"_id": 1}}"#,
        r#"{"$conflicts": {}}"#,
    ] {
        let answer = text(&client.ok("shop", &explain(first, group, "executionStats")));
        assert!(
            answer.contains("nReturned") && answer.contains(r#""$group""#),
            "{first}: {answer}"
        );
    }
    // A stage that can't be run can't be explained.
    for (first, code) in [
        (r#"{"$diff": {"fro": "HEAD"}}"#, 40415),
        (r#"{"$diff": {"from": "nowhere"}}"#, 2),
        (r#"{"$history": {}}"#, 2),
    ] {
        assert_eq!(client.error("shop", &explain(first, "", "queryPlanner")).0, code, "{first}");
    }
    let unknown = explain(diff, r#", {"$nothing": {}}"#, "queryPlanner");
    assert_eq!(client.error("shop", &unknown).0, 40324);
}
