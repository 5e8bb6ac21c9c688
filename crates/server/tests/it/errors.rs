//! Requests that are refused, with MongoDB's codes.

use frond_doc::Value;
use frond_server::ClientError;
use frond_server::commands::{COMMANDS, Command};

use crate::auth_matrix;
use crate::running::{Running, json};

#[test]
fn refusals() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"create": "c"}"#);
    for (command, code, message) in [
        (r#"{"foo": 1}"#, 59, "no such command: 'foo'"),
        (r#"{}"#, 59, "no such command: '$db'"),
        (r#"{"atlasVersion": 1}"#, 59, "no such command: 'atlasVersion'"),
        (r#"{"getFreeMonitoringStatus": 1}"#, 59, "no such command"),
        (r#"{"frondComit": 1}"#, 59, "'frondComit'; did you mean 'frondCommit'?"),
        (r#"{"frondHelp": "comit"}"#, 59, "not one of Frond's own commands; did you mean"),
        (
            r#"{"find": "c", "foo": 1}"#,
            40415,
            "BSON field 'FindCommandRequest.foo' is an unknown field.",
        ),
        (r#"{"find": "c", "filter": "x"}"#, 14, "Expected field filterto be of type object"),
        (r#"{"find": 1}"#, 73, "collection name has invalid type"),
        (r#"{"find": ""}"#, 73, "Invalid namespace specified 'test.'"),
        (r#"{"find": "c", "collation": {"locale": "xx"}}"#, 2, "locale"),
        (r#"{"find": "c", "limit": -1}"#, 2, "value must be >= 0, actual value '-1'"),
        (r#"{"find": "c", "filter": {"$foo": 1}}"#, 2, "$foo"),
        (r#"{"insert": "c"}"#, 40414, "'insert.documents' is missing but a required field"),
        (r#"{"insert": "c", "documents": []}"#, 16, "between 1 and 100000. Got 0"),
        (r#"{"insert": "c", "documents": [1]}"#, 14, "insert.documents.0"),
        (r#"{"insert": "system.profile", "documents": [{}]}"#, 73, "system namespace"),
        (r#"{"distinct": "c", "key": "a\u0000b"}"#, 31032, "embedded null byte"),
        (
            r#"{"create": "d", "idIndex": {"key": {"_id": 1}, "name": "_id_", "sparse": true}}"#,
            197,
            "The field 'sparse' is not valid",
        ),
        (r#"{"create": "system.js", "validator": {"a": 1}}"#, 72, "validators not allowed"),
        (r#"{"aggregate": "c", "pipeline": [{"$out": "system.x"}], "cursor": {}}"#, 17385, "$out"),
        (
            r#"{"aggregate": "c", "pipeline": [{"$out": {"db": "admin", "coll": "x"}}], "cursor": {}}"#,
            31321,
            "Can't $out to internal database: admin",
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$merge": {"into": {"db": "local", "coll": "x"}}}], "cursor": {}}"#,
            31320,
            "Cannot $merge to internal database: local",
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$sort": {"$natural": 1}}], "cursor": {}}"#,
            16410,
            "$",
        ),
        (r#"{"delete": "c", "deletes": [{"q": {}, "limit": 2}]}"#, 9, "must be 0 or 1. Got 2"),
        (r#"{"delete": "c", "deletes": [{"q": {}}]}"#, 40414, "delete.deletes.limit"),
        (r#"{"update": "c", "updates": [{"q": {}}]}"#, 40414, "update.updates.u"),
        (r#"{"findAndModify": "c"}"#, 9, "Either an update or remove=true"),
        (r#"{"findAndModify": "c", "remove": true, "update": {}}"#, 9, "both an update and"),
        (r#"{"aggregate": "c", "pipeline": []}"#, 9, "The 'cursor' option is required"),
        (r#"{"aggregate": 2, "pipeline": [], "cursor": {}}"#, 9, "collection name or 1"),
        (r#"{"aggregate": "c", "pipeline": [{"$foo": 1}], "cursor": {}}"#, 40324, "$foo"),
        (
            r#"{"aggregate": "c", "pipeline": [{"$search": {}}], "cursor": {}}"#,
            31082,
            "$search and $vectorSearch",
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$vectorSearch": 5}], "cursor": {}}"#,
            31082,
            "additional configuration",
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$listSearchIndexes": {}}], "cursor": {}}"#,
            31082,
            "Using Atlas Search Database Commands",
        ),
        (r#"{"createSearchIndexes": "c", "indexes": []}"#, 31082, "Atlas Search Database Commands"),
        (r#"{"updateSearchIndex": "c", "name": "i"}"#, 31082, "Atlas Search Database Commands"),
        (r#"{"dropSearchIndex": "c", "name": "i"}"#, 31082, "Atlas Search Database Commands"),
        (r#"{"listSearchIndexes": "c"}"#, 31082, "Atlas Search Database Commands"),
        (r#"{"getMore": 1, "collection": "c"}"#, 14, "expected type 'long'"),
        (r#"{"createIndexes": "c", "indexes": []}"#, 2, "at least one index"),
        (r#"{"listIndexes": "missing"}"#, 26, "missing"),
        (r#"{"create": "c", "capped": true}"#, 72, "size"),
        (r#"{"listDatabases": 1}"#, 13, "may only be run against the admin database."),
        (r#"{"profile": 0, "filter": {"$x": 3}}"#, 2, "$x"),
        (r#"{"profile": 0, "filter": "x"}"#, 2, "unset"),
        (r#"{"profile": 0, "sampleRate": 1.5}"#, 2, "between 0.0 and 1.0"),
        (r#"{"createUser": "u", "roles": []}"#, 2, "Must provide a 'pwd' field"),
        (r#"{"profile": 0, "slowms": "x"}"#, 14, "profile.slowms"),
        (r#"{"create": "d", "autoIndexId": false}"#, 72, "autoIndexId"),
        (r#"{"create": "d", "idIndex": {"key": {"a": 1}, "name": "_id_"}}"#, 2, "must be {_id: 1}"),
        (r#"{"count": "c", "readConcern": {"level": "snapshot"}}"#, 72, "does not support"),
        (r#"{"listCollections": 1, "readConcern": {"level": "majority"}}"#, 72, "does not support"),
        (
            r#"{"find": "c", "readConcern": {"afterClusterTime": {"$timestamp": {"t": 4294967295, "i": 1}}}}"#,
            72,
            "must not be greater than the current clusterTime",
        ),
        (r#"{"find": "c", "writeConcern": {"w": 0}}"#, 72, "does not support writeConcern"),
        (r#"{"saslStart": 1}"#, 40414, "saslStart.mechanism"),
        (r#"{"authenticate": 1, "mechanism": "PLAIN"}"#, 334, "PLAIN"),
        (r#"{"authenticate": 1, "mechanism": "MONGODB-X509"}"#, 17, "$external"),
        (r#"{"find": "c", "txnNumber": {"$numberLong": "1"}}"#, 72, "requires a session ID"),
        (r#"{"hello": 1, "maxAwaitTimeMS": 5}"#, 31368, "must include a 'topologyVersion'"),
        (r#"{"commitTransaction": 1}"#, 13, "against the admin database"),
        (r#"{"ping": 1, "apiVersion": "2"}"#, 322, "API version"),
        (r#"{"dbStats": 1, "apiVersion": "1", "apiStrict": true}"#, 323, "not in API Version 1"),
        (r#"{"explain": {"foo": 1}}"#, 59, "unknown command: foo"),
        (r#"{"explain": {"find": "c"}, "verbosity": "x"}"#, 2, "verbosity"),
        (r#"{"explain": {"count": "c", "foo": 1}}"#, 40415, "count.foo"),
        (r#"{"explain": {"distinct": "c"}}"#, 40414, "distinct.key"),
        (r#"{"explain": {"update": "c", "updates": [{"q": {}, "u": {"$foo": 1}}]}}"#, 9, "$foo"),
        (r#"{"explain": {"update": "c", "updates": [], "foo": 1}}"#, 40415, "update.foo"),
        (r#"{"explain": {"delete": "c", "deletes": []}}"#, 9, "one document in 'deletes'"),
        (
            r#"{"explain": {"delete": "c", "deletes": [{"q": {}, "limit": 0, "hint": "i"}]}}"#,
            2,
            "hint",
        ),
        (
            r#"{"explain": {"aggregate": "c", "pipeline": [{"$foo": 1}], "cursor": {}}}"#,
            40324,
            "$foo",
        ),
        (r#"{"find": "c", "allowDiskUse": "x"}"#, 14, "allowDiskUse"),
        (
            r#"{"aggregate": "c", "pipeline": [], "cursor": {}, "allowDiskUse": 1.5, "explain": []}"#,
            14,
            "allowDiskUse",
        ),
        (r#"{"frondMerge": 1, "merge_in": "x", "noFF": true, "ffOnly": true}"#, 2, "contradict"),
        (r#"{"dropDatabase": 0}"#, 5_255_100, "Have to pass 1"),
        (r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}}]}"#, 9, "The 'name' field is"),
        (r#"{"create": "v", "viewOn": "c", "idIndex": {"key": {"_id": 1}}}"#, 72, "'viewOn'"),
        (r#"{"explain": {"insert": "c", "documents": [{}]}}"#, 20, "Cannot explain cmd: insert"),
        (r#"{"explain": {"ping": 1}}"#, 20, "Cannot explain cmd: ping"),
        (
            r#"{"aggregate": "c", "pipeline": [{"$documents": [{}]}], "cursor": {}}"#,
            73,
            "'$documents' can only be run with {aggregate: 1}",
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$limit": 1}, {"$indexStats": {}}], "cursor": {}}"#,
            40602,
            "$indexStats is only valid as the first stage",
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$limit": 1}, {"$diff": {}}], "cursor": {}}"#,
            40602,
            "$diff is only valid as the first stage",
        ),
        (
            r#"{"aggregate": "c", "pipeline": [], "cursor": {}, "needsMerge": true}"#,
            9,
            "Cannot specify 'needsMerge' without 'fromMongos'",
        ),
        (
            r#"{"aggregate": "c", "pipeline": [], "explain": true, "writeConcern": {"w": 1}}"#,
            9,
            "'writeConcern' option",
        ),
        (r#"{"frondMerge": 1}"#, 2, "one of 'merge_in', 'continue' and 'abort'"),
        (r#"{"frondCommit": 1}"#, 40414, "'frondCommit.message' is missing"),
    ] {
        let (found_code, found_message) = client.error("test", command);
        assert_eq!(found_code, code, "{command}: {found_message}");
        assert!(found_message.contains(message), "{command}: {found_message}");
    }
    for database in ["admin", "local"] {
        let (code, message) = client.error(database, r#"{"dropDatabase": 1}"#);
        assert_eq!(code, 20, "{database}: {message}");
    }
    client.ok("config", r#"{"dropDatabase": 1}"#);
    let answer = client.ok("test", r#"{"dropIndexes": "c", "index": ["*"]}"#);
    assert!(answer.get("msg").is_some_and(|reply| reply.as_str().is_some()), "{answer:?}");
    client.ok("test", r#"{"ping": 1}"#);
}

#[test]
fn options_that_hold_anyway_are_accepted() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"create": "c"}"#);
    for command in [
        r#"{"ping": 1}"#,
        r#"{"profile": 0, "slowms": 20, "sampleRate": 1}"#,
        r#"{"create": "e", "autoIndexId": true, "idIndex": {"v": 2, "key": {"_id": 1}, "name": "_id_"}}"#,
        r#"{"find": "c", "readConcern": {"afterClusterTime": {"$timestamp": {"t": 1, "i": 1}}}}"#,
        r#"{"drop": "e", "writeConcern": {"w": 1}}"#,
    ] {
        client.ok("test", command);
    }
    for (quorum, expected) in [
        (r#""votingMembers""#, None),
        (r#""majority""#, None),
        ("0", None),
        ("1", None),
        ("2", Some(319)),
        (r#""elsewhere""#, Some(79)),
        ("51", Some(9)),
        ("-1", Some(9)),
        ("true", Some(14)),
    ] {
        let command = format!(
            r#"{{"createIndexes": "c", "indexes": [{{"key": {{"a": 1}}, "name": "a"}}],
                "commitQuorum": {quorum}}}"#
        );
        match expected {
            None => drop(client.ok("test", &command)),
            Some(code) => assert_eq!(client.error("test", &command).0, code, "{quorum}"),
        }
    }
}

#[test]
fn options_that_change_little_are_heeded() {
    let server = Running::start();
    let mut client = server.client();
    let kept = r#"{"insert": "t", "documents": [{"_id": 1, "t": {"$timestamp": {"t": 0, "i": 0}}}],
        "bypassEmptyTsReplacement": true}"#;
    client.ok("test", kept);
    let found = r#"{"find": "t", "filter": {"t": {"$timestamp": {"t": 0, "i": 0}}}}"#;
    let expected = [r#"{"_id": 1, "t": {"$timestamp": {"t": 0, "i": 0}}}"#];
    client.check_documents("test", found, &expected);
    let builds = r#"{"listIndexes": "t", "includeIndexBuildInfo": true}"#;
    let expected = [r#"{"spec": {"v": 2, "key": {"_id": 1}, "name": "_id_"}}"#];
    client.check_documents("test", builds, &expected);
}

#[test]
fn a_deadline_ends_a_command() {
    let server = Running::start();
    let mut client = server.client();
    let documents: Vec<String> = (0..2_000).map(|id| format!(r#"{{"_id": {id}}}"#)).collect();
    client.ok("test", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(",")));
    // Each of two thousand documents is joined with all others, one by one.
    let slow = r#"{"aggregate": "c", "cursor": {"batchSize": 10000}, "maxTimeMS": 1, "pipeline": [
        {"$lookup": {"from": "c", "localField": "none", "foreignField": "none", "as": "all"}}]}"#;
    assert_eq!(client.error("test", slow).0, 50);
    // Four million comparisons, of as many fields, for which no index stands.
    let branches: Vec<String> = (0..2_000).map(|n| format!(r#"{{"f{n}": {n}}}"#)).collect();
    let filter = format!(r#"{{"$or": [{}]}}"#, branches.join(","));
    for command in [
        format!(r#"{{"count": "c", "query": {filter}, "maxTimeMS": 1}}"#),
        format!(r#"{{"distinct": "c", "key": "_id", "query": {filter}, "maxTimeMS": 1}}"#),
        format!(r#"{{"find": "c", "filter": {filter}, "maxTimeMS": 1}}"#),
        format!(r#"{{"explain": {{"count": "c", "query": {filter}}}, "maxTimeMS": 1}}"#),
    ] {
        assert_eq!(client.error("test", &command).0, 50, "{}", &command[..20]);
    }
    server.check();
}

/// An expression that takes long, and ends.
const LONG: &str = r#"{"$ne": [{"$reduce": {"input": {"$range": [0, 2000000]}, "initialValue": 0,
    "in": {"$add": ["$$value", 1]}}}, 1]}"#;

#[test]
fn a_deadline_ends_what_validators_and_rules_evaluate() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let rules = r#""rules": [{"name": "r", "collection": "c", "documents": {"$expr":"#;
    client.ok("a", &format!(r#"{{"frondPolicy": 1, "set": {{{rules} {LONG}}}}}]}}}}"#));
    let commit = r#"{"frondCommit": 1, "message": "m", "author": "a <a@b>""#;
    assert_eq!(client.error("a", &format!(r#"{commit}, "maxTimeMS": 20}}"#)).0, 50);
    client.ok("a", &format!("{commit}}}"));
    for action in ["error", "warn"] {
        client.ok("a", r#"{"drop": "c"}"#);
        let options =
            format!(r#""validator": {{"$expr": {LONG}}}, "validationAction": "{action}""#);
        client.ok("a", &format!(r#"{{"create": "c", {options}}}"#));
        for command in [
            r#"{"insert": "c", "documents": [{"_id": 1}]"#,
            r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"n": 1}}, "upsert": true}]"#,
            r#"{"findAndModify": "c", "query": {"_id": 1}, "update": {"n": 1}, "upsert": true"#,
            r#"{"aggregate": 1, "pipeline": [{"$documents": [{"_id": 1}]}, {"$merge": "c"}],
                "cursor": {}"#,
        ] {
            let (code, message) = client.error("a", &format!(r#"{command}, "maxTimeMS": 20}}"#));
            assert_eq!(code, 50, "{action}: {command}: {message}");
        }
        client.check_documents("a", r#"{"find": "c"}"#, &[]);
        client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
        client.check_documents("a", r#"{"find": "c"}"#, &[r#"{"_id": 1}"#]);
    }
    server.check();
}

#[test]
fn validators_are_charged_to_the_budget() {
    let server = Running::start();
    let mut client = server.client();
    let ranges = [r#"{"$range": [0, 4000000]}"#; 6].join(", ");
    let large = format!(r#"{{"$ne": [{{"$size": [[{ranges}]]}}, 1]}}"#);
    client.ok("a", &format!(r#"{{"create": "c", "validator": {{"$expr": {large}}}}}"#));
    let answer = client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    assert!(format!("{answer:?}").contains("146"), "{answer:?}");
    // An expression that fails by itself passes no validator.
    client.ok("a", r#"{"create": "d", "validator": {"$expr": {"$divide": [1, "$n"]}}}"#);
    let answer =
        client.ok("a", r#"{"insert": "d", "documents": [{"n": 0}, {"n": 1}], "ordered": false}"#);
    assert!(format!("{answer:?}").contains("121"), "{answer:?}");
    client.check("a", r#"{"count": "d"}"#, r#"{"n": 1, "ok": 1.0}"#);
    server.check();
}

/// A failed command reports on its write concern, too: part of it may have been done.
#[test]
fn errors_report_their_write_concern() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1, "a": [1], "b": [1]}]}"#);
    let concern = r#""writeConcern": {"w": 3}"#;
    for (command, code) in [
        (r#""findAndModify": "c", "query": {}, "update": {"$inc": {"a": 1}}"#, 14),
        (r#""createIndexes": "c", "indexes": [{"key": {"a": 1, "b": 1}, "name": "x"}]"#, 171),
        (r#""dropIndexes": "c", "index": "missing""#, 27),
    ] {
        for (command, is_reported) in
            [(format!("{{{command}, {concern}}}"), true), (format!("{{{command}}}"), false)]
        {
            let answer = match client.0.command("test", json(&command).view()) {
                Err(ClientError::Command { answer, .. }) => answer,
                other => panic!("{command}: {other:?}"),
            };
            assert_eq!(answer.get("code"), Some(Value::Int32(code)), "{command}");
            let reply = answer.get("writeConcernError").and_then(|error| error.as_document());
            let code = reply.and_then(|error| error.get("code"));
            assert_eq!(code, is_reported.then_some(Value::Int32(100)), "{command}");
            let info = reply.and_then(|error| error.get("errInfo"));
            let info = info.and_then(|info| info.as_document().map(|info| info.to_buf()));
            let concern =
                r#"{"writeConcern": {"w": 3, "wtimeout": 0, "provenance": "clientSupplied"}}"#;
            assert_eq!(info, is_reported.then(|| json(concern)), "{command}");
        }
    }
}

/// Clients may use some names that MongoDB keeps, and drop what isn't there.
#[test]
fn names_that_are_kept() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("test", r#"{"drop": "system.profile"}"#);
    client.ok("test", r#"{"drop": "system.anything"}"#);
    client.ok("test", r#"{"insert": "system.js", "documents": [{"_id": "f", "value": 1}]}"#);
    let rename = r#"{"renameCollection": "test.system.js", "to": "test.c"}"#;
    assert_eq!(client.code("admin", rename), 20);
    client.ok("test", r#"{"drop": "system.js"}"#);
    // The views go with the collection that shows them, but not beside a time series.
    client.ok("test", r#"{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": 1}}]}"#);
    let dropped = client.ok("test", r#"{"drop": "system.views"}"#);
    assert_eq!(dropped.get("ns"), Some(Value::String("test.system.views")));
    client.ok("test", r#"{"create": "v"}"#);
    client.ok("test", r#"{"create": "t", "timeseries": {"timeField": "at"}}"#);
    assert_eq!(client.code("test", r#"{"drop": "system.views"}"#), 125);
    client.ok("test", r#"{"drop": "t"}"#);
    assert_eq!(client.ok("test", r#"{"drop": "system.views"}"#).get("ns"), None);
    assert_eq!(client.code("admin", r#"{"drop": "system.views"}"#), 73);
    let users = r#"{"delete": "system.users", "deletes": [{"q": {}, "limit": 0}]}"#;
    assert_eq!(client.code("admin", users), 73);
    let (code, message) = client.error("admin", r#"{"create": "c", "validator": {"a": 1}}"#);
    assert_eq!(code, 72);
    assert!(message.contains("in the admin internal database"), "{message}");
    client.ok("admin", r#"{"create": "c", "validator": {}}"#);
    let change = r#"{"collMod": "c", "validator": {"a": 1}}"#;
    assert_eq!(client.code("admin", change), 72);
}

/// Whether a command is there, and `auth_matrix::body` has all that it needs.
fn is_whole(command: &Command) -> bool {
    let name = command.name;
    !command.is_for_tests && name != "authenticate" && !name.starts_with("sasl")
}

/// The name of the database is judged before anything that the command is about, whichever it is.
#[test]
fn names_of_databases_are_checked_for_every_command() {
    let server = Running::start();
    let mut client = server.client();
    let there = COMMANDS.iter().filter(|command| is_whole(command));
    for command in there {
        for name in ["a.b", "", "a b", "a/b", "shop@"] {
            let (code, message) = client.error(name, &auth_matrix::body(command.name));
            assert_eq!(code, 73, "{} on {name:?}: {message}", command.name);
            assert!(message.contains(&format!("Invalid database name: '{name}'")), "{message}");
        }
    }
    for name in ["$external", "shop@main", "local"] {
        client.ok(name, r#"{"ping": 1}"#);
    }
}

/// There is one member to read from, so a read preference has no effect; but it has to be one.
#[test]
fn read_preferences_are_checked_for_every_command() {
    let server = Running::start();
    let mut client = server.client();
    let there = COMMANDS.iter().filter(|command| is_whole(command));
    for command in there {
        let body = auth_matrix::body(command.name);
        let body = format!(r#"{}, "$readPreference": {{"mode": "x"}}}}"#, &body[..body.len() - 1]);
        let database = if command.admin_only { "admin" } else { "test" };
        let (code, message) = client.error(database, &body);
        let expected =
            "Enumeration value 'x' for field 'readPreference.mode' is not a valid value.";
        assert_eq!((code, message.as_str()), (2, expected), "{}", command.name);
    }
    for mode in ["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"] {
        let ping = format!(r#"{{"ping": 1, "$readPreference": {{"mode": "{mode}"}}}}"#);
        client.ok("test", &ping);
    }
}

/// Whenever its time ends, before, while or after it writes.
#[test]
fn an_output_that_is_out_of_time_was_not_written() {
    let server = Running::start();
    let mut client = server.client();
    let documents: Vec<String> = (0..400).map(|id| format!(r#"{{"_id": {id}}}"#)).collect();
    client.ok("test", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(", ")));
    for round in 0..80 {
        let stages = format!(r#"[{{"$set": {{"round": {round}}}}}, {{"$out": "d"}}]"#);
        let millis = 1 + round % 16;
        let command = format!(
            r#"{{"aggregate": "c", "pipeline": {stages}, "cursor": {{}}, "maxTimeMS": {millis}}}"#
        );
        let code = match client.0.command("test", json(&command).view()) {
            Err(ClientError::Command { code, .. }) => Some(code),
            other => other.map(|_| None).expect("answered"),
        };
        let found =
            client.ok("test", &format!(r#"{{"count": "d", "query": {{"round": {round}}}}}"#));
        let expected = if code.is_none() { 400 } else { 0 };
        assert_eq!(found.get("n"), Some(Value::Int32(expected)), "{round}: {code:?}");
    }
}
