//! A driver's monitor: `hello` that waits for news, and answers that come without being asked for.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, Value, document};
use frond_server::wire::{HEADER_BYTES, Header, Message};
use frond_testkit::SimDisk;

use crate::running::Running;

fn read(stream: &mut impl Read) -> (Header, Message) {
    let mut bytes = vec![0; HEADER_BYTES];
    stream.read_exact(&mut bytes).expect("a header");
    let header = Header::decode(bytes[..].try_into().expect("its size")).expect("a header");
    bytes.resize(header.bytes, 0);
    stream.read_exact(&mut bytes[HEADER_BYTES..]).expect("the rest");
    (header, Message::decode(bytes.into()).expect("a message"))
}

fn hello(topology: &DocumentBuf, millis: i32, exhaust_allowed: bool) -> Message {
    let body = document! {
        "hello": 1_i32, "topologyVersion": topology, "maxAwaitTimeMS": millis, "$db": "admin",
    };
    let mut message = Message::new(body);
    message.flags.exhaust_allowed = exhaust_allowed;
    message
}

fn topology(server: &Running) -> DocumentBuf {
    let answer = server.client().ok("admin", r#"{"hello": 1}"#);
    let topology = answer.get("topologyVersion").and_then(|topology| topology.as_document());
    topology.expect("a topology").to_buf()
}

/// Returns how many clients wait for news.
fn waiting_count(server: &Running) -> i64 {
    let status = server.client().ok("admin", r#"{"serverStatus": 1}"#);
    let connections = status.get("connections").and_then(|section| section.as_document());
    let count =
        connections.and_then(|section| section.get("awaitingTopologyChanges")?.as_integer());
    count.expect("it is told")
}

#[test]
fn a_hello_waits_for_news() {
    let server = Running::start();
    let known = topology(&server);
    let mut stream = server.stream();
    let began = Instant::now();
    stream.write_all(&hello(&known, 200, false).encode(7, 0)).expect("sends");
    let (header, answer) = read(&mut stream);
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert_eq!(header.response_to, 7);
    assert!(!answer.flags.more_to_come);
    assert_eq!(answer.body.get("topologyVersion"), Some(Value::from(&known)));
    // A client that knows another topology is answered at once.
    let other = document! { "processId": frond_doc::ObjectId([1; 12]), "counter": 0_i64 };
    let began = Instant::now();
    stream.write_all(&hello(&other, 60_000, false).encode(8, 0)).expect("sends");
    assert_eq!(read(&mut stream).0.response_to, 8);
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn answers_follow_one_another_until_the_client_speaks() {
    let server = Running::start();
    let known = topology(&server);
    let mut stream = server.stream();
    stream.write_all(&hello(&known, 20, true).encode(7, 0)).expect("sends");
    let mut response_to = 7;
    for _ in 0..5 {
        let (header, answer) = read(&mut stream);
        assert_eq!(header.response_to, response_to);
        assert!(answer.flags.more_to_come);
        response_to = header.request_id;
    }
    let ping = Message::new(document! { "ping": 1_i32, "$db": "admin" });
    stream.write_all(&ping.encode(9, 0)).expect("sends");
    while read(&mut stream).1.flags.more_to_come {}
    assert_eq!(read(&mut stream).0.response_to, 9);
}

#[test]
fn waiting_clients_hold_up_no_others() {
    let server = Running::start();
    let known = topology(&server);
    let mut waiting: Vec<_> = (0..400).map(|_| server.stream()).collect();
    for stream in &mut waiting {
        stream.write_all(&hello(&known, 60_000, true).encode(1, 0)).expect("sends");
    }
    server.check();
}

#[test]
fn a_hello_that_waits_is_answered_when_a_failed_sync_closes_the_server() {
    for exhaust_allowed in [false, true] {
        let disk = SimDisk::new(1);
        let server = Running::on_disk(&disk, 100);
        server.client().ok("test", r#"{"insert": "c", "documents": [{}]}"#);
        let known = topology(&server);
        let mut stream = server.stream();
        stream.write_all(&hello(&known, 100_000, exhaust_allowed).encode(7, 0)).expect("sends");
        let began = Instant::now();
        // Else it might get the news at once, which isn't repeated.
        while waiting_count(&server) == 0 {
            std::thread::yield_now();
        }
        disk.fail_sync_after(0);
        server.client().error("test", r#"{"insert": "c", "documents": [{}]}"#);
        let (header, answer) = read(&mut stream);
        assert!(began.elapsed() < Duration::from_secs(50));
        assert_eq!((header.response_to, answer.flags.more_to_come), (7, exhaust_allowed));
        assert_eq!(answer.body.get("isWritablePrimary"), Some(Value::Boolean(false)));
        assert_eq!(topology(&server).get("counter"), Some(Value::Int64(1)));
        if exhaust_allowed {
            // There is no more news.
            stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a socket");
            assert!(stream.read(&mut [0; 1]).is_err());
        }
        disk.crash();
        server.abandon();
    }
}
