//! Fail points, as drivers' tests turn them on: what each field does, and that nothing is there
//! unless the server was started for it.

use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, Value};
use frond_server::{ClientError, ServerOptions};
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient, json};

fn start() -> Running {
    let options = ServerOptions { test_commands: true, ..ServerOptions::default() };
    Running::with(&SimDisk::new(1), options)
}

/// Turns a fail point on; returns how often it has failed.
fn configure(client: &mut TestClient, name: &str, mode: &str, data: &str) -> i64 {
    let command = format!(r#"{{"configureFailPoint": "{name}", "mode": {mode}, "data": {data}}}"#);
    let answer = client.ok("admin", &command);
    answer.get("count").and_then(|count| count.as_integer()).expect("a count")
}

fn is_cut_off(client: &mut TestClient, command: &str) -> bool {
    match client.0.command("shop", json(command).view()) {
        Err(ClientError::Connection { .. }) => true,
        Err(error) => panic!("{command}: {error}"),
        Ok(_) => false,
    }
}

const INSERT: &str = r#"{"insert": "items", "documents": [{"a": 1}]}"#;
const RETRYABLE: &str = r#"{"insert": "items", "documents": [{"a": 1}], "txnNumber": {"$numberLong": "1"},
    "lsid": {"id": {"$uuid": "00000000-0000-4000-8000-000000000001"}}}"#;

fn count(client: &mut TestClient) -> i64 {
    let answer = client.ok("shop", r#"{"count": "items"}"#);
    answer.get("n").and_then(|n| n.as_integer()).expect("a count")
}

#[test]
fn there_are_none_unless_the_server_is_started_for_them() {
    let server = Running::start();
    let mut client = server.client();
    let command = r#"{"configureFailPoint": "failCommand", "mode": "off"}"#;
    assert_eq!(client.error("admin", command).0, 59);
    let parameter = client.ok("admin", r#"{"getParameter": 1, "enableTestCommands": 1}"#);
    assert_eq!(parameter.get("enableTestCommands"), Some(Value::Boolean(false)));
    let server = start();
    let mut client = server.client();
    client.ok("admin", command);
    let parameter = client.ok("admin", r#"{"getParameter": 1, "enableTestCommands": 1}"#);
    assert_eq!(parameter.get("enableTestCommands"), Some(Value::Boolean(true)));
    assert_eq!(client.error("shop", command).0, 13);
    for (command, code) in [
        (r#"{"configureFailPoint": "other", "mode": "off"}"#, 191),
        (r#"{"configureFailPoint": "failCommand"}"#, 40414),
        (r#"{"configureFailPoint": "failCommand", "mode": "off", "x": 1}"#, 40415),
        (r#"{"configureFailPoint": "failCommand", "mode": "off", "data": {"x": 1}}"#, 40415),
        (r#"{"configureFailPoint": 1, "mode": "off"}"#, 14),
    ] {
        assert_eq!(client.error("admin", command).0, code, "{command}");
    }
}

#[test]
fn commands_fail_as_often_as_configured() {
    let server = start();
    let mut client = server.client();
    let data = r#"{"failCommands": ["insert"], "errorCode": 10107}"#;
    assert_eq!(configure(&mut client, "failCommand", r#"{"times": 2}"#, data), 0);
    assert_eq!(client.labels("shop", INSERT), (10107, vec![]));
    client.ok("shop", r#"{"find": "items"}"#);
    assert_eq!(client.labels("shop", RETRYABLE), (10107, vec!["RetryableWriteError".to_owned()]));
    client.ok("shop", INSERT);
    assert_eq!(count(&mut client), 1, "what failed wasn't run");
    assert_eq!(configure(&mut client, "failCommand", r#"{"skip": 1}"#, data), 2);
    client.ok("shop", INSERT);
    assert_eq!(client.error("shop", INSERT).0, 10107);
    assert_eq!(client.error("shop", INSERT).0, 10107);
    assert_eq!(configure(&mut client, "failCommand", r#""off""#, "{}"), 4);
    client.ok("shop", INSERT);
}

#[test]
fn errors_have_mongodbs_names_and_the_labels_that_are_asked_for() {
    let server = start();
    let mut client = server.client();
    for (code, name) in
        [(189, "PrimarySteppedDown"), (6, "HostUnreachable"), (4321, "Location4321")]
    {
        let data = format!(
            r#"{{"failCommands": ["find"], "errorCode": {code}, "errorLabels": ["One", "Two"]}}"#
        );
        configure(&mut client, "failCommand", r#"{"times": 1}"#, &data);
        let answer = match client.0.command("shop", json(r#"{"find": "items"}"#).view()) {
            Err(ClientError::Command { answer, .. }) => answer,
            other => panic!("{other:?}"),
        };
        assert_eq!(answer.get("codeName"), Some(Value::String(name)));
        // Drivers would take an error of a topology that they know for old news.
        assert_eq!(answer.get("topologyVersion"), None);
        let labels = answer.get("errorLabels").and_then(|labels| labels.as_array()).expect("some");
        assert_eq!(labels.iter().count(), 2);
    }
}

#[test]
fn connections_are_closed_instead_of_an_answer() {
    let server = start();
    let mut client = server.client();
    let data = r#"{"failCommands": ["insert"], "closeConnection": true}"#;
    configure(&mut client, "failCommand", r#"{"times": 1}"#, data);
    assert!(is_cut_off(&mut client, INSERT));
    let mut client = server.client();
    assert_eq!(count(&mut client), 0);
    // Written, but not answered; sent again, it is answered by what was done.
    configure(&mut client, "onPrimaryTransactionalWrite", r#"{"times": 1}"#, "{}");
    client.ok("shop", INSERT);
    assert!(is_cut_off(&mut client, RETRYABLE));
    let mut client = server.client();
    assert_eq!(count(&mut client), 2);
    client.ok("shop", RETRYABLE);
    assert_eq!(count(&mut client), 2);
    let data = r#"{"failBeforeCommitExceptionCode": 91, "closeConnection": false}"#;
    configure(&mut client, "onPrimaryTransactionalWrite", r#"{"times": 1}"#, data);
    let again = RETRYABLE.replace(r#""1"}"#, r#""2"}"#);
    assert_eq!(client.labels("shop", &again), (91, vec!["RetryableWriteError".to_owned()]));
    assert_eq!(count(&mut client), 2);
    let data = r#"{"failBeforeCommitExceptionCode": 1}"#;
    configure(&mut client, "onPrimaryTransactionalWrite", r#"{"times": 1}"#, data);
    assert!(is_cut_off(&mut client, &again));
    let mut client = server.client();
    assert_eq!(count(&mut client), 2);
}

/// Each statement counts that is done; those that a record answers for don't.
#[test]
fn statements_of_writes_are_counted_one_by_one() {
    let server = start();
    let mut client = server.client();
    let writes = |number: u32, documents: &str| {
        RETRYABLE
            .replace(r#""1"}"#, &format!(r#""{number}"}}"#))
            .replace(r#"[{"a": 1}]"#, documents)
    };
    configure(&mut client, "onPrimaryTransactionalWrite", r#"{"skip": 2}"#, "{}");
    client.ok("shop", &writes(1, "[{}, {}]"));
    client.ok("shop", &writes(1, "[{}, {}]"));
    assert!(is_cut_off(&mut client, &writes(2, "[{}]")));
    let mut client = server.client();
    client.ok("shop", &writes(2, "[{}]"));
    assert_eq!(count(&mut client), 3);
}

#[test]
fn write_concern_errors_come_with_the_result() {
    let server = start();
    let mut client = server.client();
    let data = r#"{"failCommands": ["insert"], "writeConcernError": {"code": 91, "errmsg": "no"}}"#;
    configure(&mut client, "failCommand", r#"{"times": 1}"#, data);
    let answer: DocumentBuf = client.ok("shop", RETRYABLE);
    let error = answer.get("writeConcernError").and_then(|error| error.as_document());
    let code = error.and_then(|error| error.get("code")?.as_integer());
    assert_eq!(code, Some(91));
    let labels = answer.get("errorLabels").and_then(|labels| labels.as_array()).expect("some");
    assert_eq!(labels.get(0), Some(Value::String("RetryableWriteError")));
    assert_eq!(count(&mut client), 1);
}

#[test]
fn commands_are_blocked_until_their_time_is_over_or_they_are_killed() {
    let server = start();
    let mut client = server.client();
    let data = r#"{"failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 100}"#;
    configure(&mut client, "failCommand", r#"{"times": 1}"#, data);
    let began = Instant::now();
    client.ok("admin", r#"{"ping": 1}"#);
    assert!(began.elapsed() >= Duration::from_millis(100));
    let data = r#"{"failCommands": ["find"], "blockConnection": true, "blockTimeMS": 3600000}"#;
    configure(&mut client, "failCommand", r#"{"times": 1}"#, data);
    let mut blocked = server.client();
    let waiting = std::thread::spawn(move || {
        blocked.error("shop", r#"{"find": "items", "filter": {"a": 1}, "comment": "why"}"#).0
    });
    loop {
        let running = client.ok("admin", r#"{"currentOp": 1}"#);
        let list = running.get("inprog").and_then(|list| list.as_array()).expect("a list").iter();
        let find = list.filter_map(|entry| entry.as_document()).find(|entry| {
            let command = entry.get("command").and_then(|command| command.as_document());
            command.is_some_and(|command| command.get("find").is_some())
        });
        if let Some(id) = find.and_then(|entry| entry.get("opid")?.as_integer()) {
            let find = find.expect("it was found");
            let command = find.get("command").and_then(|command| command.as_document());
            assert_eq!(command.and_then(|it| it.get("comment")), Some(Value::String("why")));
            assert_eq!(find.get("ns"), Some(Value::String("shop.items")));
            assert_eq!(find.get("op"), Some(Value::String("query")));
            client.ok("admin", &format!(r#"{{"killOp": 1, "op": {id}}}"#));
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(waiting.join().expect("it doesn't panic"), 11601);
}

#[test]
fn a_get_more_fails_with_its_cursor_in_hand() {
    let server = start();
    let mut client = server.client();
    for _ in 0..2 {
        client.ok("shop", INSERT);
    }
    let answer = client.ok("shop", r#"{"find": "items", "batchSize": 1}"#);
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    let id = cursor.get("id").and_then(|id| id.as_integer()).expect("an id");
    let data = r#"{"errorCode": 280}"#;
    configure(&mut client, "failGetMoreAfterCursorCheckout", r#"{"times": 1}"#, data);
    let more = format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "items"}}"#);
    assert_eq!(client.error("shop", &more).0, 280);
    assert_eq!(client.error("shop", &more).0, 43, "the cursor is gone with it");
}

#[test]
fn a_first_hello_is_of_the_application_that_it_names() {
    let server = start();
    let data = r#"{"failCommands": ["hello"], "appName": "mine", "errorCode": 91}"#;
    configure(&mut server.client(), "failCommand", r#"{"times": 1}"#, data);
    let hello = |name| {
        format!(
            r#"{{"hello": 1, "client": {{"application": {{"name": "{name}"}},
                "driver": {{"name": "d", "version": "1"}}, "os": {{"type": "o"}}}}}}"#
        )
    };
    server.client().ok("admin", &hello("another"));
    assert_eq!(server.client().error("admin", &hello("mine")).0, 91);
    server.client().ok("admin", &hello("mine"));
}

/// A time limit is over at once, or never; what has none isn't concerned.
#[test]
fn time_limits_end_as_configured() {
    let server = start();
    let mut client = server.client();
    let items: Vec<String> = (0..300).map(|it| format!(r#"{{"_id": {it}}}"#)).collect();
    client.ok("shop", &format!(r#"{{"insert": "items", "documents": [{}]}}"#, items.join(",")));
    let limited = r#"{"find": "items", "maxTimeMS": 60000}"#;
    let open = |client: &mut TestClient| {
        let answer = client.ok("shop", r#"{"find": "items", "maxTimeMS": 60000, "batchSize": 1}"#);
        let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("one");
        let id = cursor.get("id").and_then(|id| id.as_integer()).expect("an id");
        format!(r#"{{"getMore": {{"$numberLong": "{id}"}}, "collection": "items"}}"#)
    };
    let more = open(&mut client);
    configure(&mut client, "maxTimeAlwaysTimeOut", r#""alwaysOn""#, "{}");
    assert_eq!(client.error("shop", limited).0, 50);
    assert_eq!(client.error("shop", r#"{"ping": 1, "maxTimeMS": 60000}"#).0, 50);
    assert_eq!(client.error("shop", &more).0, 50, "its cursor's time goes on");
    client.ok("shop", r#"{"find": "items"}"#);
    assert_eq!(configure(&mut client, "maxTimeAlwaysTimeOut", r#""off""#, "{}"), 3);
    let more = open(&mut client);
    client.ok("shop", &more);
    // What doesn't depend on the document would be computed once.
    let slow = r#"{"find": "items", "maxTimeMS": 1, "filter": {"$expr": {"$gt": [{"$size": {"$range":
        [0, {"$add": [20000, "$_id"]}]}}, 5]}}}"#;
    assert_eq!(client.error("shop", slow).0, 50);
    configure(&mut client, "maxTimeNeverTimeOut", r#""alwaysOn""#, "{}");
    client.ok("shop", slow);
    configure(&mut client, "maxTimeAlwaysTimeOut", r#""alwaysOn""#, "{}");
    client.ok("shop", limited);
}
