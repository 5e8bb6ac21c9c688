//! Every command of the table, with each of its fields written as no client writes it: null,
//! undefined, a fraction, NaN, a decimal, another type, twice. Authorization must read a field as
//! the command's handler does, or something passes between them.
//!
//! Method: the commands of the two other tables are sent changed in one place, by a user without
//! roles and by one who may do everything on `dev/*`. No answer shows anything that only `main`
//! has, and afterwards `main` is as it was and no branch of `dev/*` has anything of it.

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, decimal};
use frond_server::commands::COMMANDS;
use frond_server::{Client, ClientError};
use frond_testkit::SimDisk;

use crate::auth_branches::{
    BRANCHES, IN_FIELDS, IN_FIELDS_WRITTEN, ON_ADMIN, ON_DATABASE, role_for_all_on_dev,
};
use crate::auth_matrix;
use crate::running::{Running, TestClient, json, text, without_time};

/// A text in all documents that only `main` has.
const SECRET: &str = "secret";

/// Returns the values that a field is changed to.
fn values() -> [Value<'static>; 10] {
    let decimal = |coefficient, exponent| decimal::from_parts(false, coefficient, exponent);
    [
        Value::Null,
        Value::Undefined,
        Value::Double(0.5),
        Value::Double(f64::NAN),
        Value::Decimal128(decimal(0, 0)),
        Value::Decimal128(decimal(5, -1)),
        Value::Int32(0),
        Value::Boolean(false),
        Value::Boolean(true),
        Value::String(""),
    ]
}

/// The values of a second field of the same name.
const TWINS: [Value<'static>; 3] = [Value::Null, Value::Boolean(false), Value::Boolean(true)];

/// The command with one field changed, for each field at any depth and each change.
fn changed(command: Document<'_>) -> Vec<DocumentBuf> {
    let fields: Vec<(&str, Value<'_>)> = command.iter().collect();
    let mut all = Vec::new();
    let mut with = |position: usize, values: &[Value<'_>]| {
        let mut document = DocumentBuilder::new();
        for (at, (name, value)) in fields.iter().enumerate() {
            let unchanged = [*value];
            let values = if at == position { values } else { &unchanged };
            for value in values {
                document.append(name, *value);
            }
        }
        all.push(document.build());
    };
    for (position, (_, original)) in fields.iter().enumerate() {
        for value in values() {
            with(position, &[value]);
        }
        for twin in TWINS {
            with(position, &[twin, *original]);
            with(position, &[*original, twin]);
        }
        match original {
            Value::Document(inner) => {
                for inner in changed(*inner) {
                    with(position, &[Value::from(&inner)]);
                }
            }
            Value::Array(inner) => {
                // An array is a document whose fields' names don't matter.
                for inner in changed(Document::from_validated(inner.as_bytes())) {
                    with(position, &[Value::Array(Array::from_validated(inner.as_bytes()))]);
                }
            }
            _ => {}
        }
    }
    all
}

/// Sends a command. Its answer, if it isn't an error, shows nothing of `main`.
fn send(client: &mut Client, database: &str, command: Document<'_>) {
    match client.command(database, command) {
        Ok(answer) => {
            let reply = text(&answer);
            assert!(!reply.contains(SECRET), "{database}: {command:?}: {reply}");
        }
        Err(ClientError::Command { .. }) => {}
        Err(error) => panic!("{database}: {command:?}: {error}"),
    }
}

/// Everything that `main` has, and the users.
fn state(root: &mut TestClient) -> String {
    let mut state = String::new();
    for (database, command) in [
        ("shop", r#"{"find": "things"}"#),
        ("shop", r#"{"frondLog": 1}"#),
        ("shop", r#"{"listCollections": 1}"#),
        ("shop", r#"{"listIndexes": "things"}"#),
        ("shop", r#"{"frondReflog": 1}"#),
        ("shop", r#"{"frondPolicy": 1}"#),
        ("shop", r#"{"frondReflog": 1, "branch": "v1"}"#),
        ("admin", r#"{"usersInfo": {"forAllDBs": true}}"#),
        ("shop", r#"{"rolesInfo": 1, "showPrivileges": true}"#),
    ] {
        state.push_str(&text(&without_time(&root.ok(database, command))));
    }
    let tags = root.ok("shop", r#"{"frondTag": 1}"#);
    let tags = tags.get("tags").and_then(|tags| tags.as_array()).expect("an array").iter();
    let is_known = |tag: &Document<'_>| tag.get("tag") == Some(Value::String("v1"));
    let tag = tags.filter_map(|tag| tag.as_document()).find(is_known).expect("it is there");
    state.push_str(&text(&tag.to_buf()));
    state
}

/// Checks that no branch of `dev/*` has what only `main` has.
fn check_branches(root: &mut TestClient, command: &str) {
    let answer = root.ok("shop", r#"{"frondBranch": 1}"#);
    let branches = answer.get("branches").and_then(|branches| branches.as_array());
    for branch in branches.expect("an array").iter().filter_map(|branch| branch.as_document()) {
        let name = branch.get("branch").and_then(|name| name.as_str()).expect("a name");
        if name == "main" {
            continue;
        }
        let database = format!("shop@{name}");
        for read in [r#"{"find": "things"}"#, r#"{"frondLog": 1}"#, r#"{"listCollections": 1}"#] {
            let reply = text(&root.ok(&database, read));
            assert!(!reply.contains(SECRET), "{command}: {database}: {reply}");
        }
    }
}

/// The commands, and where they are sent.
fn commands() -> Vec<(Vec<&'static str>, String)> {
    let both = || vec!["shop", "shop@dev/a"];
    let mut all = Vec::new();
    for command in COMMANDS.iter().filter(|command| !auth_matrix::ends_login(command.name)) {
        let databases = if command.admin_only { vec!["admin"] } else { both() };
        all.push((databases, auth_matrix::body(command.name)));
    }
    for command in ON_DATABASE.iter().chain(IN_FIELDS).chain(IN_FIELDS_WRITTEN).chain(BRANCHES) {
        all.push((both(), command.replace("REV", "main").replace("DB", "shop")));
    }
    for command in ON_ADMIN {
        all.push((vec!["admin"], command.replace("DB", "shop")));
    }
    // Commands that the other tables lack: their fields switch rights on.
    for command in [
        r#"{"frondTag": 1, "tag": "v1", "delete": true, "force": true}"#,
        r#"{"frondUndo": 1, "branch": "v1", "change": 1}"#,
        r#"{"listCollections": 1, "nameOnly": true, "authorizedCollections": true}"#,
        r#"{"usersInfo": "dev", "showCredentials": true}"#,
        r#"{"updateUser": "dev", "pwd": "x", "customData": {}, "mechanisms": [], "roles": []}"#,
    ] {
        all.push((both(), command.to_owned()));
    }
    all
}

#[test]
fn no_way_of_writing_a_field_gets_past_authorization() {
    let server = Running::with_auth(&SimDisk::new(1));
    server.client().ok("admin", r#"{"createUser": "root", "pwd": "x", "roles": ["root"]}"#);
    let mut root = server.client();
    root.0.log_in("admin", "root", "x").expect("the password is right");
    root.ok("shop", r#"{"insert": "things", "documents": [{"_id": 1, "a": "public"}]}"#);
    root.ok("shop", r#"{"frondCommit": 1, "message": "first"}"#);
    root.ok("shop", r#"{"frondBranch": 1, "branch": "dev/a"}"#);
    root.ok("shop", r#"{"insert": "things", "documents": [{"_id": 2, "a": "secret"}]}"#);
    root.ok("shop", r#"{"insert": "secrets", "documents": [{"_id": 1}]}"#);
    root.ok("shop", r#"{"frondTag": 1, "tag": "v1", "message": "no secret yet"}"#);
    root.ok("shop", r#"{"frondCommit": 1, "message": "a secret", "author": "secret"}"#);
    let moved = r#"{"frondTag": 1, "tag": "v1", "message": "a secret", "force": true}"#;
    root.ok("shop", moved);
    root.ok("shop", &role_for_all_on_dev());
    let mut users = Vec::new();
    for (user, roles) in [("nobody", ""), ("dev", "\"dev\"")] {
        let create = format!(r#"{{"createUser": "{user}", "pwd": "x", "roles": [{roles}]}}"#);
        root.ok("shop", &create);
        let mut client = server.client();
        client.0.log_in("shop", user, "x").expect("the password is right");
        users.push(client);
    }
    let before = state(&mut root);
    let mut count = 0;
    for (databases, command) in commands() {
        let command = json(&command);
        for changed in changed(command.view()) {
            for client in &mut users {
                for database in &databases {
                    count += 1;
                    send(&mut client.0, database, changed.view());
                }
            }
        }
        assert_eq!(state(&mut root), before, "{command:?}");
        check_branches(&mut root, &text(&command));
        // For the next one: what this one did to the user's own branch.
        root.code("shop", r#"{"frondBranch": 1, "branch": "dev/a", "start": "main~1"}"#);
        root.code("shop@dev/a", r#"{"frondReset": 1, "target": "main~1", "hard": true}"#);
    }
    assert!(count > 10_000, "{count}");
}

/// An operation's position in `nsInfo` is read as its handler reads it.
#[test]
fn positions_that_are_no_integers_are_judged_as_they_are_read() {
    let server = Running::with_auth(&SimDisk::new(1));
    server.client().ok("admin", r#"{"createUser": "root", "pwd": "x", "roles": ["root"]}"#);
    let mut root = server.client();
    root.0.log_in("admin", "root", "x").expect("the password is right");
    root.ok("shop", r#"{"createUser": "nobody", "pwd": "x", "roles": []}"#);
    let writer = r#"{"role": "readWrite", "db": "shop"}"#;
    root.ok("shop", &format!(r#"{{"createUser": "ann", "pwd": "x", "roles": [{writer}]}}"#));
    let (mut nobody, mut ann) = (server.client(), server.client());
    nobody.0.log_in("shop", "nobody", "x").expect("the password is right");
    ann.0.log_in("shop", "ann", "x").expect("the password is right");
    let decimal = r#"{"$numberDecimal": "0"}"#;
    for position in ["0", "0.5", "-0.5", r#"{"$numberDouble": "NaN"}"#, decimal] {
        let command = format!(
            r#"{{"bulkWrite": 1, "nsInfo": [{{"ns": "shop.things"}}, {{"ns": "other.things"}}],
                 "ops": [{{"insert": {position}, "document": {{"a": 1}}}}]}}"#
        );
        assert_eq!(nobody.code("admin", &command), 13, "{position}");
        assert_eq!(ann.code("admin", &command), 0, "{position}");
        let elsewhere = command.replace(position, "1.5");
        assert_eq!(ann.code("admin", &elsewhere), 13, "{elsewhere}");
    }
    let count = root.ok("shop", r#"{"count": "things"}"#);
    assert_eq!(count.get("n").and_then(|n| n.as_integer()), Some(5), "{count:?}");
}

/// A field that stands twice is ambiguous: no command takes it.
#[test]
fn a_name_that_stands_twice_is_refused_by_every_command() {
    let server = Running::with_auth(&SimDisk::new(1));
    server.client().ok("admin", r#"{"createUser": "root", "pwd": "x", "roles": ["root"]}"#);
    let mut root = server.client();
    root.0.log_in("admin", "root", "x").expect("the password is right");
    for command in COMMANDS {
        let database = if command.admin_only { "admin" } else { "shop" };
        let twice = format!(r#"{{"{}": 1, "$ownOps": false, "$ownOps": true}}"#, command.name);
        assert_eq!(root.code(database, &twice), 40413, "{twice}");
    }
    assert_eq!(root.code("shop", r#"{"find": "things", "$db": "shop"}"#), 40413);
    let explained = r#"{"explain": {"find": "things", "filter": {}, "filter": {}}}"#;
    assert_eq!(root.code("shop", explained), 40413);
}

/// A tag's message is for clients that may read the commit; its name is no secret.
#[test]
fn tags_show_their_messages_to_readers_with_the_right() {
    let server = Running::with_auth(&SimDisk::new(1));
    server.client().ok("admin", r#"{"createUser": "root", "pwd": "x", "roles": ["root"]}"#);
    let mut root = server.client();
    root.0.log_in("admin", "root", "x").expect("the password is right");
    root.ok("shop", r#"{"insert": "things", "documents": [{"_id": 1}]}"#);
    root.ok("shop", r#"{"frondCommit": 1, "message": "first"}"#);
    root.ok("shop", r#"{"frondBranch": 1, "branch": "dev/a"}"#);
    root.ok("shop", r#"{"frondTag": 1, "tag": "v1", "message": "as sold", "author": "Ada"}"#);
    root.ok("shop", &role_for_all_on_dev());
    root.ok("shop", r#"{"createUser": "dev", "pwd": "x", "roles": ["dev"]}"#);
    root.ok("shop", r#"{"createUser": "reader", "pwd": "x", "roles": ["read"]}"#);
    for (user, database, is_visible) in [("dev", "shop@dev/a", false), ("reader", "shop", true)] {
        let mut client = server.client();
        client.0.log_in("shop", user, "x").expect("the password is right");
        let answer = text(&client.ok(database, r#"{"frondTag": 1}"#));
        assert!(answer.contains("v1"), "{answer}");
        assert_eq!(answer.contains("as sold") && answer.contains("Ada"), is_visible, "{answer}");
    }
}
