//! Users, roles and logins over a socket, on a server that asks for them.

use std::time::{Duration, Instant};

use frond_doc::{Binary, DocumentBuf, Timestamp, Value, document, extended_json};
use frond_server::scram::Mechanism;
use frond_server::{ClientError, ServerOptions};
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient, text};

const ROOT: &str = r#"{"createUser": "root", "pwd": "secret", "roles": ["root"]}"#;

/// A server with a user `root`, and a client that has logged in as it.
fn start() -> (Running, TestClient) {
    let server = Running::with_auth(&SimDisk::new(1));
    server.client().ok("admin", ROOT);
    let mut root = server.client();
    root.0.log_in("admin", "root", "secret").expect("the password is right");
    (server, root)
}

fn logged_in(server: &Running, database: &str, user: &str, password: &str) -> TestClient {
    let mut client = server.client();
    client.0.log_in(database, user, password).expect("the password is right");
    client
}

#[test]
fn while_there_are_no_users_the_first_can_be_made_and_nothing_else_done() {
    let server = Running::with_auth(&SimDisk::new(1));
    let mut client = server.client();
    client.ok("admin", r#"{"ping": 1}"#);
    client.ok("admin", r#"{"hello": 1}"#);
    for (database, command) in [
        ("shop", r#"{"find": "things"}"#),
        ("shop", r#"{"insert": "things", "documents": [{"_id": 1}]}"#),
        ("admin", r#"{"listDatabases": 1}"#),
        ("admin", r#"{"createRole": "r", "privileges": [], "roles": []}"#),
        ("shop", r#"{"createUser": "ann", "pwd": "secret", "roles": []}"#),
        ("admin", r#"{"usersInfo": 1}"#),
    ] {
        assert_eq!(client.code(database, command), 13, "{command}");
    }
    let text = client.error("shop", r#"{"find": "things"}"#).1;
    assert_eq!(text, "Command find requires authentication");
    client.ok("admin", ROOT);
    let second = r#"{"createUser": "second", "pwd": "secret", "roles": ["root"]}"#;
    assert_eq!(client.code("admin", second), 13);
    client.0.log_in("admin", "root", "secret").expect("the password is right");
    client.ok("shop", r#"{"insert": "things", "documents": [{"_id": 1}]}"#);
    client.ok("admin", second);
}

/// The manual's example: a view that shows a user what the user's roles are for.
#[test]
fn expressions_see_the_users_roles() {
    let (server, mut root) = start();
    root.ok("shop", r#"{"createRole": "inner", "privileges": [], "roles": []}"#);
    root.ok("shop", r#"{"createRole": "sales", "privileges": [], "roles": ["inner", "read"]}"#);
    root.ok("shop", r#"{"createUser": "ann", "pwd": "x", "roles": ["sales"]}"#);
    root.ok("shop", r#"{"createUser": "bob", "pwd": "x", "roles": ["read"]}"#);
    root.ok(
        "shop",
        r#"{"insert": "budget", "documents": [{"_id": 1, "for": ["sales"]}, {"_id": 2, "for": ["read", "law"]},
            {"_id": 3, "for": ["law"]}]}"#,
    );
    root.ok(
        "shop",
        r#"{"create": "mine", "viewOn": "budget", "pipeline": [{"$match": {"$expr":
            {"$ne": [{"$setIntersection": ["$for", "$$USER_ROLES.role"]}, []]}}}]}"#,
    );
    let mut ann = logged_in(&server, "shop", "ann", "x");
    let mut bob = logged_in(&server, "shop", "bob", "x");
    let ids = |client: &mut TestClient, command: &str| {
        let answer = client.ok("shop", command);
        let cursor = answer.get("cursor").and_then(|it| it.as_document()).expect("a cursor");
        let batch = cursor.get("firstBatch").and_then(|it| it.as_array()).expect("a batch");
        batch
            .iter()
            .map(|it| it.as_document().and_then(|it| it.get("_id")).expect("one"))
            .map(|id| id.as_integer().expect("a number").to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let find = r#"{"find": "mine"}"#;
    assert_eq!((ids(&mut ann, find).as_str(), ids(&mut bob, find).as_str()), ("1 2", "2"));
    let by_let = r#"{"find": "budget", "let": {"mine": "$$USER_ROLES"},
        "filter": {"$expr": {"$in": ["sales", "$$mine.role"]}}}"#;
    assert_eq!((ids(&mut ann, by_let).as_str(), ids(&mut bob, by_let).as_str()), ("1 2 3", ""));
    let lookup = r#"{"aggregate": 1, "cursor": {}, "pipeline": [{"$documents": [{"_id": 0}]},
        {"$lookup": {"from": "mine", "pipeline": [], "as": "m"}}, {"$unwind": "$m"},
        {"$replaceWith": "$m"}]}"#;
    assert_eq!(ids(&mut bob, lookup), "2");
    let listing =
        r#"{"aggregate": 1, "cursor": {}, "pipeline": [{"$documents": [{"r": "$$USER_ROLES"}]}]}"#;
    let cursor = |roles: &str| {
        format!(
            r#"{{"cursor": {{"firstBatch": [{{"r": [{roles}]}}], "id": 0, "ns": "shop.$cmd.aggregate"}}, "ok": 1.0}}"#
        )
    };
    let role = |name: &str| format!(r#"{{"_id": "shop.{name}", "role": "{name}", "db": "shop"}}"#);
    ann.check("shop", listing, &cursor(&["inner", "read", "sales"].map(role).join(", ")));
    root.ok("shop", r#"{"revokeRolesFromUser": "ann", "roles": ["sales"]}"#);
    root.ok("shop", r#"{"grantRolesToUser": "ann", "roles": ["read"]}"#);
    assert_eq!(ids(&mut ann, find), "2", "the next request has what is so now");
}

#[test]
fn certificate_users_are_managed_with_rights_on_all_databases() {
    let (server, mut root) = start();
    let ada = r#"{"createUser": "CN=ada", "roles": [{"role": "read", "db": "shop"}]}"#;
    root.ok("$external", ada);
    let granted = r#"{"grantRolesToUser": "CN=ada", "roles": [{"role": "read", "db": "other"}]}"#;
    root.ok("$external", granted);
    for (command, code) in [
        (r#"{"createRole": "r", "privileges": [], "roles": []}"#, 2),
        (r#"{"createUser": "CN=bob", "roles": ["read"]}"#, 31),
        (r#"{"grantRolesToUser": "CN=ada", "roles": ["dbOwner"]}"#, 31),
    ] {
        assert_eq!(root.code("$external", command), code, "{command}");
    }
    root.ok("$external", r#"{"updateUser": "CN=ada", "customData": {"a": 1}}"#);
    let found = format!("{:?}", root.ok("$external", r#"{"usersInfo": "CN=ada"}"#));
    assert!(found.contains("CN=ada") && found.contains("other"), "{found}");
    root.ok("shop", r#"{"createUser": "ann", "pwd": "secret", "roles": ["dbOwner"]}"#);
    let mut ann = logged_in(&server, "shop", "ann", "secret");
    for command in [ada, granted, r#"{"usersInfo": 1}"#, r#"{"dropUser": "CN=ada"}"#] {
        assert_eq!(ann.code("$external", command), 13, "{command}");
    }
    root.ok("$external", r#"{"dropUser": "CN=ada"}"#);
    assert_eq!(root.code("$external", r#"{"dropUser": "CN=ada"}"#), 11);
}

#[test]
fn logins_by_both_mechanisms_and_what_is_wrong_with_others() {
    let (server, mut root) = start();
    let ann =
        r#"{"createUser": "ann", "pwd": "\u2168", "roles": ["read"], "customData": {"a": 1}}"#;
    root.ok("shop", ann);
    root.ok(
        "shop",
        r#"{"createUser": "old", "pwd": "x", "roles": [], "mechanisms": ["SCRAM-SHA-1"]}"#,
    );
    for (mechanism, user, password, database, is_right) in [
        (Mechanism::Sha256, "ann", "\u{2168}", "shop", true),
        (Mechanism::Sha256, "ann", "IX", "shop", true),
        (Mechanism::Sha256, "ann", "I\u{ad}X", "shop@dev/a", true),
        (Mechanism::Sha1, "ann", "\u{2168}", "shop", true),
        (Mechanism::Sha1, "ann", "IX", "shop", false),
        (Mechanism::Sha1, "old", "x", "shop", true),
        (Mechanism::Sha256, "old", "x", "shop", false),
        (Mechanism::Sha256, "ann", "IX", "admin", false),
        (Mechanism::Sha256, "nobody", "IX", "shop", false),
    ] {
        let mut client = server.client();
        let result = client.0.log_in_by(mechanism, database, user, password);
        match (result, is_right) {
            (Ok(()), true) => {
                let status =
                    client.ok("shop", r#"{"connectionStatus": 1, "showPrivileges": true}"#);
                let status = text(&status);
                assert!(status.contains(user), "{status}");
                client.ok("shop", r#"{"logout": 1}"#);
                assert_eq!(client.code("shop", r#"{"find": "things"}"#), 13);
            }
            (Err(error), false) => {
                let reply = error.to_string();
                assert_eq!(reply, "Authentication failed. (code 18)", "{user} {password}");
            }
            (result, _) => panic!("{mechanism:?} {user} {password}: {result:?}"),
        }
    }
    let mut client = logged_in(&server, "shop", "ann", "IX");
    let other = client.0.log_in("admin", "root", "secret").expect_err("one user a connection");
    assert!(other.to_string().contains("5626701"), "{other}");
    client.0.log_in("shop", "ann", "IX").expect("the same again");
    let start = r#"{"saslStart": 1, "mechanism": "PLAIN", "payload": {"$binary": {"base64": "AA==", "subType": "00"}}}"#;
    assert_eq!(client.code("admin", start), 334);
    for (payload, code) in [("1", 2), ("\"=\"", 10_270), ("\"AA==\"", 18)] {
        let start =
            format!(r#"{{"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": {payload}}}"#);
        assert_eq!(client.code("admin", &start), code, "{payload}");
    }
    let go_on = r#"{"saslContinue": 1, "conversationId": 1, "payload": {"$binary": {"base64": "AA==", "subType": "00"}}}"#;
    assert_eq!(server.client().code("admin", go_on), 17);
    let x509 = r#"{"authenticate": 1, "mechanism": "MONGODB-X509"}"#;
    assert_eq!(client.code("$external", x509), 18);
}

/// The salt of a user that doesn't exist is always the same, as that of one that does.
#[test]
fn unknown_users_look_like_others() {
    let (server, _root) = start();
    // n,,n=NAME,r=abc
    for (name, payload) in
        [("root", "biwsbj1yb290LHI9YWJj"), ("nobody", "biwsbj1ub2JvZHkscj1hYmM=")]
    {
        // Who says it in base64 is answered so.
        let start =
            format!(r#"{{"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": "{payload}"}}"#);
        let answer = server.client().ok("admin", &start);
        let first = answer.get("payload").and_then(|payload| payload.as_str()).expect("text");
        assert!(first.starts_with("cj1hYm"), "r=ab...: {first}");
        let first = || {
            let command = format!(
                r#"{{"saslStart": 1, "mechanism": "SCRAM-SHA-256",
                     "payload": {{"$binary": {{"base64": "{payload}", "subType": "00"}}}}}}"#
            );
            let answer = server.client().ok("admin", &command);
            let Some(frond_doc::Value::Binary(binary)) = answer.get("payload") else {
                panic!("{answer:?}")
            };
            let text = std::str::from_utf8(binary.bytes).expect("text").to_owned();
            let salt = text.split(',').find_map(|part| part.strip_prefix("s=")).expect("a salt");
            assert!(text.ends_with(",i=15000"), "{text}");
            salt.to_owned()
        };
        let salt = first();
        assert_eq!(salt.len(), 40, "28 bytes");
        assert_eq!(first(), salt, "{name}");
        let hello = format!(r#"{{"hello": 1, "saslSupportedMechs": "admin.{name}"}}"#);
        let answer = text(&server.client().ok("admin", &hello));
        assert!(answer.contains("SCRAM-SHA-1\"") && answer.contains("SCRAM-SHA-256"), "{answer}");
    }
}

/// A client that guesses a mechanism by which its user doesn't log in gets the right one, and
/// begins again by that: drivers take a login that has begun for one of the mechanism that they
/// chose.
#[test]
fn a_guessed_login_begins_where_the_guess_is_right() {
    let (server, mut root) = start();
    const OLD: &str =
        r#"{"createUser": "old", "pwd": "x", "roles": [], "mechanisms": ["SCRAM-SHA-1"]}"#;
    root.ok("admin", OLD);
    // n,,n=NAME,r=abc
    for (user, payload, mechanism, begins) in [
        ("root", "biwsbj1yb290LHI9YWJj", "SCRAM-SHA-256", true),
        ("nobody", "biwsbj1ub2JvZHkscj1hYmM=", "SCRAM-SHA-256", true),
        ("old", "biwsbj1vbGQscj1hYmM=", "SCRAM-SHA-256", false),
        ("old", "biwsbj1vbGQscj1hYmM=", "SCRAM-SHA-1", true),
    ] {
        let hello = format!(
            r#"{{"hello": 1, "saslSupportedMechs": "admin.{user}", "speculativeAuthenticate": {{
                 "saslStart": 1, "mechanism": "{mechanism}", "db": "admin",
                 "payload": {{"$binary": {{"base64": "{payload}", "subType": "00"}}}}}}}}"#
        );
        let answer = server.client().ok("admin", &hello);
        let has_begun = answer.get("speculativeAuthenticate").is_some();
        assert_eq!(has_begun, begins, "{user} {mechanism}");
    }
}

#[test]
fn repeated_login_failures_delay_only_that_client() {
    let (server, mut root) = start();
    root.ok("admin", r#"{"createUser": "ann", "pwd": "secret", "roles": []}"#);
    for _ in 0..5 {
        server.client().0.log_in("admin", "ann", "wrong").expect_err("wrong");
    }
    let begun = Instant::now();
    let mut late = server.client();
    let late = std::thread::spawn(move || {
        late.0.log_in("admin", "ann", "secret").expect("the password is right");
    });
    logged_in(&server, "admin", "root", "secret").ok("shop", r#"{"find": "things"}"#);
    late.join().expect("it logs in");
    assert!(begun.elapsed() >= Duration::from_millis(500));
}

/// Changes of users and roles take effect at once, also for clients that have logged in.
#[test]
fn changes_of_users_and_roles_hold_at_once() {
    let (server, mut root) = start();
    root.ok("shop", r#"{"createUser": "ann", "pwd": "secret", "roles": ["read"]}"#);
    let mut ann = logged_in(&server, "shop", "ann", "secret");
    const FIND: &str = r#"{"find": "things"}"#;
    const INSERT: &str = r#"{"insert": "things", "documents": [{"a": 1}]}"#;
    let mut check = |root: &mut TestClient, change: &str, finds: bool, inserts: bool| {
        if !change.is_empty() {
            root.ok("shop", change);
        }
        let mut may = |command: &str| match ann.code("shop", command) {
            0 => true,
            13 => false,
            other => panic!("{command}: {other}"),
        };
        assert_eq!((may(FIND), may(INSERT)), (finds, inserts), "{change}");
    };
    check(&mut root, "", true, false);
    check(&mut root, r#"{"grantRolesToUser": "ann", "roles": ["readWrite"]}"#, true, true);
    check(
        &mut root,
        r#"{"revokeRolesFromUser": "ann", "roles": ["readWrite", "read"]}"#,
        false,
        false,
    );
    let role = r#"{"createRole": "writer", "privileges": [
        {"resource": {"db": "shop", "collection": "things"}, "actions": ["insert"]}], "roles": []}"#;
    root.ok("shop", role);
    check(&mut root, r#"{"updateUser": "ann", "roles": ["writer"]}"#, false, true);
    let find = r#"[{"resource": {"db": "shop", "collection": "things"}, "actions": ["find"]}]"#;
    let grant = format!(r#"{{"grantPrivilegesToRole": "writer", "privileges": {find}}}"#);
    check(&mut root, &grant, true, true);
    let revoke = format!(r#"{{"revokePrivilegesFromRole": "writer", "privileges": {find}}}"#);
    check(&mut root, &revoke, false, true);
    check(&mut root, r#"{"grantRolesToRole": "writer", "roles": ["read"]}"#, true, true);
    check(&mut root, r#"{"revokeRolesFromRole": "writer", "roles": ["read"]}"#, false, true);
    let update = format!(r#"{{"updateRole": "writer", "privileges": {find}}}"#);
    check(&mut root, &update, true, false);
    check(&mut root, r#"{"dropRole": "writer"}"#, false, false);
    root.ok("shop", r#"{"grantRolesToUser": "ann", "roles": ["dbOwner"]}"#);
    check(&mut root, r#"{"dropUser": "ann"}"#, false, false);
    // A new user of that name isn't the one who has logged in.
    check(&mut root, r#"{"createUser": "ann", "pwd": "x", "roles": ["dbOwner"]}"#, false, false);
    let dropped = root.ok("shop", r#"{"dropAllUsersFromDatabase": 1}"#);
    assert_eq!(dropped.get("n").and_then(|n| n.as_integer()), Some(1));
}

#[test]
fn commands_of_users_answer_as_mongodbs() {
    let (_server, mut root) = start();
    root.ok("shop", r#"{"createUser": "ann", "pwd": "secret", "roles": ["read", {"role": "readWrite", "db": "other"}]}"#);
    for (command, code) in [
        (r#"{"createUser": "ann", "pwd": "x", "roles": []}"#, 51003),
        (r#"{"createUser": "bob", "pwd": "x", "roles": ["nothing"]}"#, 31),
        (r#"{"createUser": "bob", "pwd": "x"}"#, 40414),
        (r#"{"createUser": "bob", "roles": []}"#, 2),
        (r#"{"createUser": "bob", "pwd": "", "roles": []}"#, 2),
        (r#"{"createUser": "", "pwd": "x", "roles": []}"#, 2),
        (r#"{"createUser": "bob", "pwd": "x", "roles": [], "mechanisms": ["PLAIN"]}"#, 2),
        (r#"{"createUser": "bob", "pwd": "\u0007", "roles": []}"#, 2),
        (r#"{"createUser": "bob", "pwd": "x", "roles": [], "digestPassword": false}"#, 2),
        (
            r#"{"createUser": "bob", "pwd": "x", "roles": [], "authenticationRestrictions": [{"clientSource": ["here"]}]}"#,
            2,
        ),
        (
            r#"{"createUser": "bob", "pwd": "x", "roles": [], "authenticationRestrictions": [{}]}"#,
            162,
        ),
        (r#"{"createUser": "bob", "pwd": "x", "roles": [], "what": 1}"#, 40415),
        (r#"{"updateUser": "bob", "pwd": "x"}"#, 11),
        (r#"{"updateUser": "ann"}"#, 2),
        (r#"{"dropUser": "bob"}"#, 11),
        (r#"{"grantRolesToUser": "bob", "roles": ["read"]}"#, 11),
        (r#"{"grantRolesToUser": "ann", "roles": []}"#, 2),
        (r#"{"createRole": "read", "privileges": [], "roles": []}"#, 2),
        (r#"{"createRole": "r", "privileges": [], "roles": ["nothing"]}"#, 31),
        (
            r#"{"createRole": "r", "privileges": [{"resource": {"cluster": true}, "actions": ["shutdown"]}], "roles": []}"#,
            49,
        ),
        (
            r#"{"createRole": "r", "privileges": [], "roles": [{"role": "read", "db": "other"}]}"#,
            49,
        ),
        (r#"{"dropRole": "read"}"#, 49),
        (r#"{"dropRole": "r"}"#, 31),
    ] {
        assert_eq!(root.code("shop", command), code, "{command}");
    }
    root.ok("shop", r#"{"createRole": "one", "privileges": [], "roles": ["read"]}"#);
    root.ok("shop", r#"{"createRole": "two", "privileges": [], "roles": ["one"]}"#);
    assert_eq!(root.code("shop", r#"{"grantRolesToRole": "one", "roles": ["two"]}"#), 49);
    let reply = text(&root.ok("shop", r#"{"usersInfo": "ann", "showPrivileges": true}"#));
    assert!(reply.contains("inheritedPrivileges") && !reply.contains("storedKey"), "{reply}");
    let reply = text(&root.ok("shop", r#"{"usersInfo": 1, "showCredentials": true}"#));
    assert!(reply.contains("storedKey"), "{reply}");
    let reply = text(&root.ok("shop", r#"{"rolesInfo": 1, "showBuiltinRoles": true}"#));
    assert!(reply.contains("dbOwner") && reply.contains("two"), "{reply}");
    let reply = text(&root.ok("admin", r#"{"find": "system.users", "filter": {"user": "ann"}}"#));
    assert!(reply.contains("shop.ann") && !reply.contains("admin.root"), "{reply}");
    for command in [
        r#"{"insert": "system.users", "documents": [{"_id": "admin.me", "user": "me", "db": "admin"}]}"#,
        r#"{"update": "system.users", "updates": [{"q": {}, "u": {"$set": {"roles": []}}}]}"#,
        r#"{"delete": "system.users", "deletes": [{"q": {}, "limit": 0}]}"#,
        r#"{"drop": "system.users"}"#,
    ] {
        assert_ne!(root.code("admin", command), 0, "{command}");
    }
}

/// The login decides whose a session, a transaction or a cursor is, not an id.
#[test]
fn sessions_and_cursors_belong_to_their_users() {
    let (server, mut root) = start();
    for user in ["ann", "bob"] {
        let create =
            format!(r#"{{"createUser": "{user}", "pwd": "secret", "roles": ["readWrite"]}}"#);
        root.ok("shop", &create);
    }
    let mut ann = logged_in(&server, "shop", "ann", "secret");
    let mut bob = logged_in(&server, "shop", "bob", "secret");
    ann.ok("shop", r#"{"insert": "things", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}"#);
    const SESSION: &str = r#""lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}}, "txnNumber": 7, "autocommit": false"#;
    let begin = format!(
        r#"{{"insert": "things", "documents": [{{"_id": 4}}], "startTransaction": true, {SESSION}}}"#
    )
    .replace("7,", r#"{"$numberLong": "7"},"#);
    ann.ok("shop", &begin);
    let commit = format!(r#"{{"commitTransaction": 1, {SESSION}}}"#)
        .replace("7,", r#"{"$numberLong": "7"},"#);
    assert_eq!(bob.code("admin", &commit), 251);
    assert_eq!(root.code("admin", &commit), 251);
    assert_eq!(bob.code("admin", &commit.replace("commitT", "abortT")), 251);
    bob.ok(
        "admin",
        r#"{"killSessions": [{"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}}]}"#,
    );
    bob.ok("admin", r#"{"killSessions": []}"#);
    ann.ok("admin", &commit);
    // A retryable write of the same session and number is another's, and so is done.
    const WRITE: &str = r#"{"insert": "retried", "documents": [{"a": 1}],
        "lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}}, "txnNumber": {"$numberLong": "9"}}"#;
    for client in [&mut ann, &mut bob] {
        client.ok("shop", WRITE);
        client.ok("shop", WRITE);
    }
    let count = ann.ok("shop", r#"{"count": "retried"}"#);
    assert_eq!(count.get("n").and_then(|n| n.as_integer()), Some(2));
    let answer = ann.ok("shop", r#"{"find": "things", "batchSize": 1}"#);
    let id = answer.get("cursor").and_then(|cursor| cursor.as_document()?.get("id")?.as_integer());
    let id = id.expect("a cursor");
    let more = format!(
        r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "things", "batchSize": 1}}"#
    );
    let kill = format!(r#"{{"killCursors": "things", "cursors": [{{"$numberLong": "{id}"}}]}}"#);
    assert_eq!(bob.code("shop", &more), 13);
    assert_eq!(bob.code("shop", &kill), 13);
    ann.ok("shop", &more);
    root.ok("shop", &kill);
    assert_eq!(ann.code("shop", &more), 43);
    let spoofed = r#"{"ping": 1, "lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"},
        "uid": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "subType": "00"}}}}"#;
    assert_eq!(bob.code("admin", spoofed), 13);
    let own = text(&bob.ok("admin", r#"{"currentOp": 1, "$ownOps": true}"#));
    assert!(own.contains("bob") && !own.contains("ann"), "{own}");
    assert_eq!(bob.code("admin", r#"{"currentOp": 1}"#), 13);
    assert_eq!(bob.code("admin", r#"{"killOp": 1, "op": 1}"#), 13);
}

/// Users outlive the server, are in no version, and are shown to a client that may see them.
#[test]
fn users_are_stored() {
    let disk = SimDisk::new(1);
    {
        let server = Running::with_auth(&disk);
        server.client().ok("admin", ROOT);
    }
    let server = Running::with_auth(&disk);
    let mut root = logged_in(&server, "admin", "root", "secret");
    root.ok("shop", r#"{"insert": "things", "documents": [{"_id": 1}]}"#);
    root.ok("shop", r#"{"createUser": "ann", "pwd": "secret", "roles": ["read"]}"#);
    let status = text(&root.ok("shop", r#"{"frondStatus": 1}"#));
    assert!(!status.contains("system"), "{status}");
    root.ok("shop", r#"{"dropDatabase": 1}"#);
    logged_in(&server, "shop", "ann", "secret");
    let mut ann = logged_in(&server, "shop", "ann", "secret");
    let databases = text(&ann.ok("admin", r#"{"listDatabases": 1, "nameOnly": true}"#));
    assert!(!databases.contains("admin"), "{databases}");
    assert_eq!(ann.code("admin", r#"{"find": "system.users"}"#), 13);
    ann.ok("shop", r#"{"usersInfo": "ann"}"#);
    assert_eq!(ann.code("shop", r#"{"usersInfo": "ann", "showCredentials": true}"#), 13);
    assert_eq!(ann.code("shop", r#"{"usersInfo": 1}"#), 13);
}

/// mongorestore restores the users and roles of a dump: they go into collections of their own, and
/// from there to where they belong.
#[test]
fn users_and_roles_of_a_dump_are_restored() {
    let server = Running::with_auth(&SimDisk::new(1));
    server.client().ok("admin", ROOT);
    let mut root = logged_in(&server, "admin", "root", "secret");
    root.ok("shop", r#"{"createRole": "keeper", "privileges": [], "roles": ["readWrite"]}"#);
    root.ok("shop", r#"{"createUser": "ann", "pwd": "secret", "roles": ["keeper"]}"#);
    root.ok("blog", r#"{"createUser": "ben", "pwd": "secret", "roles": []}"#);
    for (from, to) in [("system.users", "tempusers"), ("system.roles", "temproles")] {
        let found = root.ok("admin", &format!(r#"{{"find": "{from}"}}"#));
        let cursor = found.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
        let batch = cursor.get("firstBatch").unwrap();
        let mut documents = String::new();
        extended_json::write_value(batch, extended_json::Form::Canonical, &mut documents);
        root.ok("admin", &format!(r#"{{"insert": "{to}", "documents": {documents}}}"#));
    }
    root.ok("shop", r#"{"dropUser": "ann"}"#);
    root.ok("shop", r#"{"dropRole": "keeper"}"#);
    root.ok("shop", r#"{"createUser": "cleo", "pwd": "secret", "roles": []}"#);
    root.ok("blog", r#"{"updateUser": "ben", "customData": {"new": true}}"#);
    let merge = |db: &str, drop: bool| {
        format!(
            r#"{{"_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers",
                "tempRolesCollection": "admin.temproles", "db": "{db}", "drop": {drop}}}"#
        )
    };
    let users = |client: &mut TestClient| {
        let reply = client.ok("admin", r#"{"usersInfo": {"forAllDBs": true}}"#);
        let reply = reply.get("users").and_then(|users| users.as_array()).unwrap();
        let id = |user: Value<'_>| {
            user.as_document().unwrap().get("_id").unwrap().as_str().unwrap().to_owned()
        };
        reply.iter().map(id).collect::<Vec<_>>().join(" ")
    };
    // Existing users and roles stay as they are.
    root.ok("admin", &merge("", false));
    assert_eq!(users(&mut root), "admin.root blog.ben shop.ann shop.cleo");
    let ben = text(&root.ok("blog", r#"{"usersInfo": "ben"}"#));
    assert!(ben.contains("new"), "{ben}");
    let mut ann = logged_in(&server, "shop", "ann", "secret");
    ann.ok("shop", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    assert_eq!(ann.code("admin", &merge("", false)), 13);
    // Or it is replaced, and what isn't brought goes: of one database, or of all.
    root.ok("admin", &merge("blog", true));
    assert_eq!(users(&mut root), "admin.root blog.ben shop.ann shop.cleo");
    let ben = text(&root.ok("blog", r#"{"usersInfo": "ben"}"#));
    assert!(!ben.contains("new"), "{ben}");
    root.ok("admin", &merge("", true));
    assert_eq!(users(&mut root), "admin.root blog.ben shop.ann");
    let nothing = r#"{"_mergeAuthzCollections": 1, "db": "", "drop": false}"#;
    assert_eq!(root.code("admin", nothing), 2);
    root.ok("admin", r#"{"insert": "tempusers", "documents": [{"user": "x", "db": "shop"}]}"#);
    assert_eq!(root.code("admin", &merge("", false)), 2);
    root.ok("admin", r#"{"delete": "tempusers", "deletes": [{"q": {"user": "x"}, "limit": 0}]}"#);
    // A user of a server before 4.0.9, who may log in from elsewhere.
    let old = r#"{"update": "tempusers", "updates": [{"q": {"user": "ann"}, "u": {"$unset": {"userId": 1},
        "$set": {"authenticationRestrictions": [{"clientSource": ["10.0.0.1"]}]}}}]}"#;
    root.ok("admin", old);
    root.ok("admin", &merge("", true));
    let ann =
        text(&root.ok("shop", r#"{"usersInfo": "ann", "showAuthenticationRestrictions": true}"#));
    assert!(ann.contains("userId") && ann.contains("10.0.0.1"), "{ann}");
    assert!(server.client().0.log_in("shop", "ann", "secret").is_err());
}

/// A role of a branch would grant nothing: it is refused wherever one is granted. A user that a
/// dump brings with one is restored, logs in, and can be rid of it.
#[test]
fn roles_of_versions_are_refused_and_those_from_before_stay() {
    let (server, mut root) = start();
    root.ok("shop", r#"{"createUser": "ann", "pwd": "secret", "roles": ["read"]}"#);
    root.ok("shop", r#"{"createRole": "keeper", "privileges": [], "roles": ["read"]}"#);
    for version in ["shop@dev", "shop@v1"] {
        let roles = format!(r#""roles": ["read", {{"role": "readWrite", "db": "{version}"}}]"#);
        for command in [
            r#""createUser": "ben", "pwd": "x""#,
            r#""updateUser": "ann""#,
            r#""grantRolesToUser": "ann""#,
            r#""createRole": "new", "privileges": []"#,
            r#""updateRole": "keeper""#,
            r#""grantRolesToRole": "keeper""#,
        ] {
            let (code, message) = root.error("shop", &format!("{{{command}, {roles}}}"));
            assert_eq!(code, 2, "{command} {version}: {message}");
            assert!(message.contains("by 'branch'"), "{message}");
        }
    }
    let ann = text(&root.ok("shop", r#"{"usersInfo": "ann"}"#));
    assert!(!ann.contains("readWrite"), "{ann}");

    let dumped = root.ok("admin", r#"{"find": "system.users", "filter": {"user": "ann"}}"#);
    let mut documents = String::new();
    let cursor = dumped.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
    let batch = cursor.get("firstBatch").unwrap();
    extended_json::write_value(batch, extended_json::Form::Canonical, &mut documents);
    root.ok("admin", &format!(r#"{{"insert": "tempusers", "documents": {documents}}}"#));
    let old = r#"{"role": "readWrite", "db": "shop@dev"}"#;
    let brought = format!(
        r#"{{"update": "tempusers",
             "updates": [{{"q": {{}}, "u": {{"$push": {{"roles": {old}}}}}}}]}}"#
    );
    root.ok("admin", &brought);
    let merge = r#"{"_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers", "db": "",
                    "drop": false}"#;
    root.ok("shop", r#"{"dropUser": "ann"}"#);
    root.ok("admin", merge);
    let has_old = |root: &mut TestClient| {
        text(&root.ok("shop", r#"{"usersInfo": "ann"}"#)).contains("shop@dev")
    };
    assert!(has_old(&mut root));
    let mut ann = logged_in(&server, "shop", "ann", "secret");
    ann.ok("shop", r#"{"find": "things"}"#);
    root.ok("shop", r#"{"grantRolesToUser": "ann", "roles": ["dbAdmin"]}"#);
    assert!(has_old(&mut root), "another grant changes nothing about it");
    root.ok("shop", &format!(r#"{{"revokeRolesFromUser": "ann", "roles": [{old}]}}"#));
    assert!(!has_old(&mut root));
}

/// From where a user may log in, by the user's own list and by those of all roles; a change holds
/// at once.
#[test]
fn users_log_in_from_where_they_may() {
    let (server, mut root) = start();
    let here = r#"[{"clientSource": ["192.0.2.1"]}, {"clientSource": ["127.0.0.0/8"], "serverAddress": ["127.0.0.1"]}]"#;
    let there = r#"[{"clientSource": ["192.0.2.0/24"]}]"#;
    let make = |user: &str, roles: &str, restrictions: &str| {
        format!(
            r#"{{"createUser": "{user}", "pwd": "x", "roles": [{roles}],
                "authenticationRestrictions": {restrictions}}}"#
        )
    };
    let role = |name: &str, roles: &str, restrictions: &str| {
        format!(
            r#"{{"createRole": "{name}", "privileges": [], "roles": [{roles}],
                "authenticationRestrictions": {restrictions}}}"#
        )
    };
    root.ok("shop", &role("inner", "\"read\"", there));
    root.ok("shop", &role("outer", "\"inner\"", "[]"));
    root.ok("shop", &make("ann", "\"read\"", here));
    root.ok("shop", &make("ben", "\"read\"", there));
    root.ok("shop", &make("cleo", "\"outer\"", here));
    let mut ann = logged_in(&server, "shop", "ann", "x");
    ann.ok("shop", r#"{"find": "c"}"#);
    for user in ["ben", "cleo"] {
        let failed = server.client().0.log_in("shop", user, "x");
        let Err(ClientError::Command { answer, .. }) = failed else { panic!("{user}: {failed:?}") };
        assert_eq!(answer.get("code"), Some(Value::Int32(18)), "{user}");
    }
    let cleo = root.ok("shop", r#"{"usersInfo": "cleo", "showAuthenticationRestrictions": true}"#);
    let users = cleo.get("users").and_then(|it| it.as_array()).expect("users");
    let cleo = users.get(0).and_then(|it| it.as_document()).expect("one");
    let expected = extended_json::parse(&format!(r#"{{"own": {here}, "inherited": [{there}]}}"#));
    let expected = expected.expect("JSON");
    assert_eq!(cleo.get("authenticationRestrictions"), expected.get("own"));
    assert_eq!(cleo.get("inheritedAuthenticationRestrictions"), expected.get("inherited"));
    let shown = text(&root.ok("shop", r#"{"usersInfo": "cleo"}"#));
    assert!(!shown.contains("clientSource"), "{shown}");
    // What is set later is for those who have logged in, too.
    root.ok("shop", r#"{"updateRole": "inner", "authenticationRestrictions": []}"#);
    logged_in(&server, "shop", "cleo", "x").ok("shop", r#"{"find": "c"}"#);
    let update = format!(r#"{{"updateUser": "ann", "authenticationRestrictions": {there}}}"#);
    root.ok("shop", &update);
    assert_eq!(ann.code("shop", r#"{"find": "c"}"#), 13);
    // That takes a right of its own.
    let manage = r#"{"createRole": "users", "roles": [], "privileges": [{"resource":
        {"db": "shop", "collection": ""}, "actions": ["createUser", "changePassword", "createRole"]}]}"#;
    root.ok("shop", manage);
    root.ok("shop", r#"{"createUser": "dan", "pwd": "x", "roles": ["users"]}"#);
    let mut dan = logged_in(&server, "shop", "dan", "x");
    dan.ok("shop", r#"{"createUser": "eva", "pwd": "x", "roles": []}"#);
    for command in [update, make("fay", "", there), role("other", "", there)] {
        assert_eq!(dan.code("shop", &command), 13, "{command}");
    }
}

/// Without `--auth` users can be made, and no client has to log in.
#[test]
fn without_auth_no_login_is_needed() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("shop", r#"{"createUser": "ann", "pwd": "secret", "roles": ["read"]}"#);
    client.ok("shop", r#"{"insert": "things", "documents": [{"_id": 1}]}"#);
    let mut ann = logged_in(&server, "shop", "ann", "secret");
    ann.ok("shop", r#"{"insert": "things", "documents": [{"_id": 2}]}"#);
    server.client().0.log_in("shop", "ann", "wrong").expect_err("wrong");
}

/// The cursor's id in an answer.
fn cursor_id(answer: &DocumentBuf) -> i64 {
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    cursor.get("id").and_then(|id| id.as_integer()).filter(|id| *id != 0).expect("it is open")
}

fn more(id: i64, collection: &str) -> String {
    format!(
        r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "{collection}", "batchSize": 1}}"#
    )
}

#[test]
fn a_revoked_role_ends_change_streams() {
    let options = ServerOptions { auth: true, ..ServerOptions::default() };
    let server = Running::recording_events(&SimDisk::new(1), options);
    server.client().ok("admin", ROOT);
    let mut root = logged_in(&server, "admin", "root", "secret");
    root.ok("shop", r#"{"createUser": "ann", "pwd": "secret", "roles": ["read"]}"#);
    let mut ann = logged_in(&server, "shop", "ann", "secret");
    const WATCH: &str =
        r#"{"aggregate": "things", "pipeline": [{"$changeStream": {}}], "cursor": {}}"#;
    let id = cursor_id(&ann.ok("shop", WATCH));
    root.ok("shop", r#"{"insert": "things", "documents": [{"_id": 1}]}"#);
    assert!(text(&ann.ok("shop", &more(id, "things"))).contains("insert"));
    root.ok("shop", r#"{"revokeRolesFromUser": "ann", "roles": ["read"]}"#);
    root.ok("shop", r#"{"insert": "things", "documents": [{"_id": 2}]}"#);
    assert_eq!(ann.code("shop", &more(id, "things")), 13);
}

/// A cursor may be open for long, a change stream for ever: each batch is asked for anew.
#[test]
fn a_revoked_role_ends_cursors() {
    let (server, mut root) = start();
    root.ok("shop", r#"{"insert": "things", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}"#);
    root.ok("shop", r#"{"insert": "others", "documents": [{"_id": 1}]}"#);
    root.ok("shop", r#"{"frondCommit": 1, "message": "m"}"#);
    root.ok("shop", r#"{"frondBranch": 1, "branch": "dev/a"}"#);
    let on = |collection: &str, branch: &str| {
        format!(
            r#"{{"resource": {{"db": "shop", "collection": "{collection}"{branch}}}, "actions": ["find"]}}"#
        )
    };
    let all = [on("things", ""), on("others", "")].join(", ");
    root.ok("shop", &format!(r#"{{"createRole": "r", "roles": [], "privileges": [{all}]}}"#));
    root.ok("shop", r#"{"createUser": "ann", "pwd": "secret", "roles": ["r"]}"#);
    const FIND: &str = r#"{"find": "things", "batchSize": 1}"#;
    const LOOKUP: &str = r#"{"aggregate": "things", "cursor": {"batchSize": 1}, "pipeline": [
        {"$lookup": {"from": "others", "localField": "_id", "foreignField": "_id", "as": "o"}}]}"#;
    let only_dev = on("things", r#", "branch": "dev/*""#);
    let only_main = on("things", r#", "branch": "main""#);
    for (left, database, command, is_read_on) in [
        (all.as_str(), "shop", FIND, true),
        ("", "shop", FIND, false),
        (&on("others", ""), "shop", FIND, false),
        (&on("things", ""), "shop", FIND, true),
        (&on("things", ""), "shop", LOOKUP, false),
        (&all, "shop", LOOKUP, true),
        (&only_dev, "shop", FIND, false),
        (&only_main, "shop", FIND, true),
        (&only_dev, "shop@dev/a", FIND, true),
        (&only_main, "shop@dev/a", FIND, false),
    ] {
        let set = |privileges: &str| {
            format!(r#"{{"updateRole": "r", "roles": [], "privileges": [{privileges}]}}"#)
        };
        root.ok("shop", &set(&all));
        let mut ann = logged_in(&server, "shop", "ann", "secret");
        let id = cursor_id(&ann.ok(database, command));
        ann.ok(database, &more(id, "things"));
        root.ok("shop", &set(left));
        let message = format!("{command} on {database} with {left}");
        match is_read_on {
            true => drop(ann.ok(database, &more(id, "things"))),
            false => assert_eq!(ann.code(database, &more(id, "things")), 13, "{message}"),
        }
    }
    let mut ann = logged_in(&server, "shop", "ann", "secret");
    root.ok("shop", &format!(r#"{{"updateRole": "r", "roles": [], "privileges": [{all}]}}"#));
    let id = cursor_id(&ann.ok("shop", FIND));
    root.ok("shop", r#"{"dropUser": "ann"}"#);
    assert_eq!(ann.code("shop", &more(id, "things")), 13);
}

#[test]
fn the_clusters_time_is_signed_and_a_forged_one_is_refused() {
    let (server, mut root) = start();
    let reply = root.ok("admin", r#"{"ping": 1}"#);
    let time = reply.get("$clusterTime").and_then(|time| time.as_document()).expect("it is told");
    let signature = time.get("signature").and_then(|it| it.as_document()).expect("it is signed");
    let hash = match signature.get("hash") {
        Some(Value::Binary(hash)) => hash.bytes.to_vec(),
        other => panic!("no hash: {other:?}"),
    };
    assert!(hash.len() == 20 && hash != [0; 20], "{hash:?}");
    let key = signature.get("keyId").and_then(|id| id.as_integer()).expect("of a key");
    let Some(Value::Timestamp(now)) = time.get("clusterTime") else { panic!("no time: {reply:?}") };
    let mut sent = |time: Timestamp, hash: &[u8], key: i64| {
        let hash = Value::Binary(Binary { subtype: 0, bytes: hash });
        let signature = document! { "hash": hash, "keyId": key };
        let time = document! { "clusterTime": Value::Timestamp(time), "signature": &signature };
        let ping = document! { "ping": 1_i32, "$clusterTime": &time };
        match root.0.command("admin", ping.view()) {
            Ok(_) => 0,
            Err(ClientError::Command { code, .. }) => code,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(sent(now, &hash, key), 0);
    assert_eq!(sent(Timestamp(now.0 + 1), &hash, key), 204);
    assert_eq!(sent(now, &[1; 20], key), 204);
    assert_eq!(sent(now, &hash[..19], key), 204);
    // A signature of another member, or none: it can't be checked, and moves nothing.
    assert_eq!(sent(Timestamp(now.0 + 1), &[1; 20], key + 1), 0);
    assert_eq!(sent(now, &[0; 20], 0), 0);
    // Each process has a key of its own, and without users there is none.
    let open = Running::start();
    let reply = text(&open.client().ok("admin", r#"{"ping": 1}"#));
    assert!(reply.contains(r#""keyId":0"#), "{reply}");
    drop(server);
}
