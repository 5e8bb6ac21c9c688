//! Stopping: running work goes on, new requests get an error, and `shutdown` does the same as
//! SIGTERM.

use std::io::Read;
use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, Value, document};
use frond_server::wire::Message;
use frond_server::{ClientError, InProcess};
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient};

/// Four million times it joins two thousand documents, and finds nothing.
const ENDLESS: &str = r#"{"aggregate": "c", "cursor": {}, "$db": "test", "pipeline": [
    {"$lookup": {"from": "c", "localField": "none", "foreignField": "none", "as": "all"}},
    {"$unwind": "$all"},
    {"$lookup": {"from": "c", "localField": "none", "foreignField": "none", "as": "again"}},
    {"$match": {"$expr": {"$eq": [{"$size": "$again"}, 7]}}}]}"#;

/// Sends a command that runs until it's ended, and waits until it runs.
fn run_endless(server: &Running) -> std::net::TcpStream {
    let mut client = server.client();
    let documents: Vec<String> = (0..2_000).map(|id| format!(r#"{{"_id": {id}}}"#)).collect();
    client.ok("test", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(",")));
    let mut stream = server.stream();
    let bytes = Message::new(crate::running::json(ENDLESS)).encode(1, 0);
    std::io::Write::write_all(&mut stream, &bytes).expect("sends");
    loop {
        let answer = client.ok("admin", r#"{"currentOp": 1}"#);
        let running = answer.get("inprog").and_then(|list| list.as_array()).expect("an array");
        if running.iter().count() > 1 {
            return stream;
        }
        std::thread::yield_now();
    }
}

fn code_of(answer: &DocumentBuf) -> Option<i64> {
    answer.get("code").and_then(|code| code.as_integer())
}

/// The answer to a command, whether it is well or not.
fn answer(client: &mut TestClient, command: &DocumentBuf) -> DocumentBuf {
    match client.0.command("test", command.view()) {
        Ok(answer) | Err(ClientError::Command { answer, .. }) => answer,
        Err(error) => panic!("{error}"),
    }
}

fn topology(answer: &DocumentBuf) -> i64 {
    let path = frond_doc::path::Path::new("topologyVersion.counter");
    path.get(answer.view()).and_then(|counter| counter.as_integer()).expect("a counter")
}

#[test]
fn clients_that_connect_during_shutdown_get_an_error() {
    let server = Running::start();
    let endless = run_endless(&server);
    let mut clients: Vec<TestClient> = (0..3).map(|_| server.client()).collect();
    // A client that was answered has been accepted: a connection that still waits for that would be
    // reset.
    let hellos = clients.iter_mut().map(|client| client.ok("admin", r#"{"hello": 1}"#));
    let hello = hellos.collect::<Vec<_>>().swap_remove(0);
    let known = hello.get("topologyVersion").and_then(|known| known.as_document());
    let wait = document! {
        "hello": 1_i32, "topologyVersion": &known.expect("a topology").to_buf(),
        "maxAwaitTimeMS": 1_000_000_i32,
    };
    std::thread::scope(|scope| {
        let [waiting, asking, other] = &mut clients[..] else { panic!("three clients") };
        let reply = scope.spawn(|| answer(waiting, &wait));
        asking.ok("admin", r#"{"shutdown": 1, "timeoutSecs": 10000}"#);
        let reply = reply.join().expect("it doesn't panic");
        assert_eq!((code_of(&reply), topology(&reply)), (Some(91), topology(&hello) + 1));
        assert!(
            reply.get("remainingQuiesceTimeMillis").and_then(|rest| rest.as_integer()) > Some(0)
        );
        for command in [
            r#"{"hello": 1}"#,
            r#"{"ping": 1}"#,
            r#"{"find": "c"}"#,
            r#"{"insert": "c", "documents": [{}]}"#,
        ] {
            let reply = answer(other, &crate::running::json(command));
            assert_eq!((code_of(&reply), topology(&reply)), (Some(91), topology(&hello) + 1));
        }
        let session = r#""lsid": {"id": {"$binary":
            {"base64": "AQIDBAUGBwgJCgsMDQ4PEA==", "subType": "04"}}}"#;
        let write = format!(
            r#"{{"insert": "c", "documents": [{{}}], {session}, "txnNumber": {{"$numberLong": "1"}}}}"#
        );
        let labels = vec!["RetryableWriteError".to_owned()];
        assert_eq!(other.labels("test", &write), (91, labels));
    });
    // The command that runs is all that it waits for, and its client goes.
    drop(endless);
    drop(server);
}

#[test]
fn a_forced_shutdown_ends_what_runs() {
    let server = Running::start();
    let mut endless = run_endless(&server);
    let began = Instant::now();
    server.client().ok("admin", r#"{"shutdown": 1, "force": true, "timeoutSecs": 10000}"#);
    let mut bytes = Vec::new();
    endless.read_to_end(&mut bytes).expect("closed, not reset");
    let message = Message::decode_answer(bytes.into()).expect("an answer");
    assert_eq!(code_of(&message.body), Some(11600));
    drop(server);
    assert!(began.elapsed() < Duration::from_secs(5_000));
}

#[test]
fn shutdown_stops_a_server_that_does_nothing() {
    let server = Running::start();
    let mut client = server.client();
    assert_eq!(client.error("test", r#"{"shutdown": 1}"#).0, 13);
    assert_eq!(client.error("admin", r#"{"shutdown": 1, "timeoutSecs": -1}"#).0, 2);
    assert_eq!(client.error("admin", r#"{"shutdown": 1, "now": true}"#).0, 40415);
    let mut idle = server.stream();
    let answer = client.ok("admin", r#"{"shutdown": 1, "comment": "bye"}"#);
    assert_eq!(answer.get("ok"), Some(Value::Double(1.0)));
    assert_eq!(idle.read(&mut [0; 1]).unwrap_or(0), 0, "it is closed");
    drop(server);
}

#[test]
fn a_directory_that_was_opened_directly_cannot_be_shut_down() {
    let options = frond_db::FrondOptions::default();
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), options);
    let process = InProcess::new(frond.expect("an empty disk opens"));
    let answer = process.execute("admin", document! { "shutdown": 1_i32 }.view(), &[]);
    assert_eq!(code_of(&answer), Some(20));
}
