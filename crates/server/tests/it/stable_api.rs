//! The stable API over the wire: what goes on says what began, and a version may be required.
//!
//! *Method*: commands by hand, as drivers with and without a `serverApi` send them. Which commands,
//! fields and stages are in the version is tested beside its tables.

use frond_doc::extended_json::{self, Form};
use frond_server::{BeginningParameters, ServerOptions};
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient};

const LSID: &str = r#""lsid": {"id": {"$uuid": "00112233-4455-6677-8899-aabbccddeeff"}}"#;
const VERSION: &str = r#""apiVersion": "1""#;
const STRICT: &str = r#""apiVersion": "1", "apiStrict": true"#;

fn fill(client: &mut TestClient) {
    client.ok("test", r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}"#);
}

#[test]
fn refusals_have_their_names() {
    let server = Running::start();
    let mut client = server.client();
    for (command, code, name) in [
        (format!(r#"{{"ping": 1, {}}}"#, r#""apiVersion": "2""#), 322, "APIVersionError"),
        (format!(r#"{{"dbStats": 1, {STRICT}}}"#), 323, "APIStrictError"),
        (format!(r#"{{"find": "c", "tailable": true, {STRICT}}}"#), 323, "APIStrictError"),
        (r#"{"ping": 1, "apiStrict": true}"#.to_owned(), 4_886_600, "Location4886600"),
    ] {
        let answer = client.0.command("test", crate::running::json(&command).view());
        let Err(frond_server::ClientError::Command { code: found, answer, .. }) = answer else {
            panic!("{command}: {answer:?}");
        };
        let found_name = answer.get("codeName").and_then(|name| name.as_str().map(str::to_owned));
        assert_eq!((found, found_name.as_deref()), (code, Some(name)), "{command}");
    }
    client.ok("test", &format!(r#"{{"ping": 1, {STRICT}, "apiDeprecationErrors": true}}"#));
}

/// A server with the commands by which drivers are tested; and with version 2, if it is to have it.
fn with_test_commands(has_second: bool) -> Running {
    let parameters = BeginningParameters {
        accepts_second_api_version: has_second,
        ..BeginningParameters::default()
    };
    let options = ServerOptions { test_commands: true, parameters, ..ServerOptions::default() };
    Running::with(&SimDisk::new(1), options)
}

#[test]
fn drivers_are_tested_by_commands_of_two_versions() {
    let server = with_test_commands(true);
    let mut client = server.client();
    let strict = |command: &str, version: &str, more: &str| {
        format!(r#"{{"{command}": 1, "apiVersion": "{version}", "apiStrict": true{more}}}"#)
    };
    let errors = r#", "apiDeprecationErrors": true"#;
    // The codes in version 1 and 2.
    for (command, more, first, second) in [
        ("testVersion2", "", 323, 0),
        ("testVersions1And2", errors, 0, 0),
        ("testRemoval", errors, 0, 323),
        ("testDeprecation", "", 0, 323),
        ("testDeprecation", errors, 324, 323),
        ("testDeprecationInVersion2", "", 0, 0),
        ("testDeprecationInVersion2", errors, 0, 324),
        ("ping", errors, 0, 323),
    ] {
        assert_eq!(client.code("test", &strict(command, "1", more)), first, "{command}{more}");
        assert_eq!(client.code("test", &strict(command, "2", more)), second, "{command}{more}");
    }
    let (_, message) = client.error("test", &strict("testVersion2", "1", ""));
    assert!(message.contains("command testVersion2 is not in API Version 1"), "{message}");
    let (_, message) = client.error("test", &strict("testDeprecationInVersion2", "2", errors));
    let expected = "command testDeprecationInVersion2 is deprecated in API Version 2";
    assert!(message.contains(expected), "{message}");
    assert_eq!(client.code("test", r#"{"ping": 1, "apiVersion": "2"}"#), 0);
    assert_eq!(client.code("test", r#"{"ping": 1, "apiVersion": "3"}"#), 322);

    let answer = client.ok("test", &strict("testVersion2", "2", errors));
    let mut text = String::new();
    extended_json::write(answer.view(), Form::Canonical, &mut text);
    let expected = r#"{"apiVersion": "2", "apiStrict": true, "apiDeprecationErrors": true,"#;
    assert_eq!(text.replace(' ', "").find(&expected.replace(' ', "")), Some(0), "{text}");
}

#[test]
fn version_2_and_its_commands_are_for_tests_alone() {
    let server = with_test_commands(false);
    let mut client = server.client();
    assert_eq!(client.code("test", &format!(r#"{{"testVersion2": 1, {STRICT}}}"#)), 323);
    assert_eq!(client.code("test", r#"{"testVersion2": 1, "apiVersion": "2"}"#), 322);
    let server = Running::start();
    let mut client = server.client();
    assert_eq!(client.code("test", &format!(r#"{{"testVersion2": 1, {STRICT}}}"#)), 59);
    let parameter = client.ok("admin", r#"{"getParameter": 1, "acceptApiVersion2": 1}"#);
    assert!(!parameter.get("acceptApiVersion2").expect("it is known").is_truthy());
    let set = r#"{"setParameter": 1, "acceptApiVersion2": true}"#;
    assert_eq!(client.code("admin", set), 20, "it is set at the start alone");
}

#[test]
fn a_strict_client_reads_no_view_that_it_could_not_have_made() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client);
    let view = |name: &str, on: &str, stages: &str, more: &str| {
        format!(r#"{{"create": "{name}", "viewOn": "{on}", "pipeline": [{stages}]{more}}}"#)
    };
    let unstable = r#"{"$unionWith": {"coll": "c", "pipeline": [{"$diff": {"from": "main"}}]}}"#;
    let strict = format!(", {STRICT}");
    assert_eq!(client.code("test", &view("no", "c", unstable, &strict)), 323);
    client.ok("test", &view("inner", "c", unstable, ""));
    client.ok("test", &view("outer", "inner", r#"{"$match": {}}"#, ""));
    client.ok("test", &view("stable", "c", r#"{"$match": {"_id": 1}}"#, ""));
    for command in [r#""find": NAME"#, r#""aggregate": NAME, "pipeline": [], "cursor": {}"#] {
        for (name, code) in [("inner", 323), ("outer", 323), ("stable", 0), ("c", 0), ("none", 0)] {
            let command = command.replace("NAME", &format!("\"{name}\""));
            assert_eq!(client.code("test", &format!("{{{command}, {STRICT}}}")), code, "{command}");
        }
    }
}

#[test]
fn a_cursor_goes_on_with_what_opened_it() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client);
    let find = format!(r#"{{"find": "c", "batchSize": 1, {VERSION}}}"#);
    let answer = client.ok("test", &find);
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    let id = cursor.get("id").and_then(|id| id.as_integer()).expect("an id");
    let more = |extra_fields: &str| {
        format!(
            r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "c", "batchSize": 1{extra_fields}}}"#
        )
    };
    for extra_fields in ["".to_owned(), format!(", {STRICT}")] {
        let (code, message) = client.error("test", &more(&extra_fields));
        assert_eq!(code, 325, "{message}");
        assert!(message.contains(r#"the cursor-creating command used { apiVersion: "1" }"#));
    }
    client.ok("test", &more(&format!(", {VERSION}")));
}

#[test]
fn a_transaction_goes_on_with_what_began_it() {
    let server = Running::start();
    let mut client = server.client();
    fill(&mut client);
    let part = r#""txnNumber": {"$numberLong": "1"}, "autocommit": false"#;
    let insert = |id: i32, extra_fields: &str| {
        format!(
            r#"{{"insert": "c", "documents": [{{"_id": {id}}}], {LSID}, {part}{extra_fields}}}"#
        )
    };
    client.ok("test", &insert(10, &format!(r#", "startTransaction": true, {VERSION}"#)));
    let (code, message) = client.error("test", &insert(11, ""));
    assert_eq!(code, 325, "{message}");
    client.ok("test", &insert(12, &format!(", {VERSION}")));
    let commit =
        |extra_fields: &str| format!(r#"{{"commitTransaction": 1, {LSID}, {part}{extra_fields}}}"#);
    assert_eq!(client.error("admin", &commit("")).0, 325);
    client.ok("admin", &commit(&format!(", {VERSION}")));
    let found = r#"{"count": "c"}"#;
    client.check("test", found, r#"{"n": 5, "ok": 1.0}"#);
}

#[test]
fn a_version_may_be_required() {
    let server = Running::start();
    let mut client = server.client();
    client.ok("admin", r#"{"setParameter": 1, "requireApiVersion": true}"#);
    assert_eq!(client.error("test", r#"{"ping": 1}"#).0, 498_870);
    let versioned = |command: &str| format!(r#"{{{command}, {VERSION}}}"#);
    client.ok("test", &versioned(r#""ping": 1"#));
    client.ok("admin", &versioned(r#""setParameter": 1, "requireApiVersion": false"#));
    client.ok("test", r#"{"ping": 1}"#);
}
