//! Answers that follow one another without being asked for, and answers with checksums.

use std::io::{Read, Write};
use std::net::TcpStream;

use frond_doc::{DocumentBuf, Value, document};
use frond_server::ServerOptions;
use frond_server::wire::compression::deflate;
use frond_server::wire::message::announce_checksum;
use frond_server::wire::{Compressed, Compressor, HEADER_BYTES, Header, Message, OperationCode};
use frond_testkit::SimDisk;

use crate::running::Running;

/// One answer: its header, itself, whether it had a checksum, how it was compressed.
struct Answer {
    header: Header,
    message: Message,
    has_checksum: bool,
    compressor: Option<Compressor>,
}

fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = vec![0; HEADER_BYTES];
    stream.read_exact(&mut bytes).expect("a header");
    let header = Header::decode(bytes[..].try_into().expect("its size")).expect("a header");
    bytes.resize(header.bytes, 0);
    stream.read_exact(&mut bytes[HEADER_BYTES..]).expect("the rest");
    let mut compressor = None;
    let mut bytes = bytes::Bytes::from(bytes);
    if header.operation == OperationCode::Compressed {
        let inside = Compressed::decode(header, &bytes).expect("a compressed message");
        compressor = Some(inside.compressor);
        bytes = inside.inflate(&bytes).expect("what it says");
    }
    let has_checksum = Message::has_checksum(&bytes);
    let message = Message::decode_answer(bytes).expect("a message, whose checksum is right");
    Answer { header, message, has_checksum, compressor }
}

fn fill(server: &Running, count: i32, text: &str) {
    let documents: Vec<DocumentBuf> =
        (0..count).map(|id| document! { "_id": id, "text": text }).collect();
    let name = "documents".to_owned();
    let sequences = vec![frond_server::wire::DocumentSequence { name, documents }];
    let insert = document! { "insert": "c" };
    server.client().0.command_with("test", insert.view(), sequences).expect("inserts");
}

/// Opens a cursor; returns the `getMore` that goes on with it and takes several answers.
fn open(server: &Running, batch: i32) -> (i64, Message) {
    let find = format!(r#"{{"find": "c", "batchSize": {batch}}}"#);
    let answer = server.client().ok("test", &find);
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor");
    let id = cursor.get("id").and_then(|id| id.as_integer()).expect("an id");
    let more = document! { "getMore": id, "collection": "c", "batchSize": batch, "$db": "test" };
    let mut more = Message::new(more);
    more.flags.exhaust_allowed = true;
    (id, more)
}

fn batch(message: &Message) -> (i64, Vec<i64>) {
    let cursor = message.body.get("cursor").and_then(|cursor| cursor.as_document());
    let cursor = cursor.expect("a cursor");
    let documents = cursor.get("nextBatch").and_then(|batch| batch.as_array()).expect("a batch");
    let id_of = |value: Value<'_>| value.as_document()?.get("_id")?.as_integer();
    let ids = documents.iter().filter_map(id_of).collect();
    (cursor.get("id").and_then(|id| id.as_integer()).expect("an id"), ids)
}

#[test]
fn batches_follow_one_another_to_the_end() {
    let server = Running::start();
    fill(&server, 100, "text");
    let (id, more) = open(&server, 10);
    let mut stream = server.stream();
    stream.write_all(&more.encode(7, 0)).expect("sends");
    let (mut response_to, mut all) = (7, Vec::new());
    loop {
        let answer = read(&mut stream);
        assert_eq!(answer.header.response_to, response_to);
        let (found, ids) = batch(&answer.message);
        all.extend(ids);
        assert_eq!(answer.message.flags.more_to_come, found != 0);
        if found == 0 {
            break;
        }
        assert_eq!(found, id);
        response_to = answer.header.request_id;
    }
    assert_eq!(all, (10..100).collect::<Vec<i64>>());
    // The connection goes on.
    let ping = Message::new(document! { "ping": 1_i32, "$db": "admin" });
    stream.write_all(&ping.encode(9, 0)).expect("sends");
    assert_eq!(read(&mut stream).header.response_to, 9);
    // A client that doesn't ask for several batches gets one.
    let (_, mut more) = open(&server, 10);
    more.flags.exhaust_allowed = false;
    stream.write_all(&more.encode(10, 0)).expect("sends");
    assert!(!read(&mut stream).message.flags.more_to_come);
    stream.write_all(&ping.encode(11, 0)).expect("sends");
    assert_eq!(read(&mut stream).header.response_to, 11);
}

#[test]
fn an_error_is_the_last_answer() {
    let server = Running::start();
    fill(&server, 1_000, &"x".repeat(20_000));
    let (id, more) = open(&server, 1);
    let mut stream = server.stream();
    stream.write_all(&more.encode(7, 0)).expect("sends");
    assert!(read(&mut stream).message.flags.more_to_come);
    // It is found between two batches, while one is read, or when it's over.
    let kill = format!(r#"{{"killCursors": "c", "cursors": [{{"$numberLong": "{id}"}}]}}"#);
    server.client().ok("test", &kill);
    let last = loop {
        let answer = read(&mut stream);
        if !answer.message.flags.more_to_come {
            break answer;
        }
    };
    assert_eq!(last.message.body.get("code"), Some(Value::Int32(43)));
}

/// The client takes nothing for a while: the server waits, with no thread, and goes on where it
/// was.
#[test]
fn a_full_socket_is_waited_for() {
    for threads_max in [1, 100] {
        let options = ServerOptions { threads_max, ..ServerOptions::default() };
        let server = Running::with(&SimDisk::new(1), options);
        fill(&server, 300, &"x".repeat(100_000));
        let mut streams = Vec::new();
        for _ in 0..3 {
            let (_, more) = open(&server, 1);
            let mut stream = server.stream();
            stream.write_all(&more.encode(7, 0)).expect("sends");
            streams.push(stream);
        }
        for _ in 0..5 {
            server.check();
        }
        for stream in &mut streams {
            let mut all = Vec::new();
            loop {
                let answer = read(stream);
                let (id, ids) = batch(&answer.message);
                all.extend(ids);
                if id == 0 {
                    break;
                }
            }
            assert_eq!(all, (1..300).collect::<Vec<i64>>());
        }
    }
}

#[test]
fn clients_that_leave_in_the_middle_leave_nothing_running() {
    let server = Running::start();
    fill(&server, 300, &"x".repeat(100_000));
    for _ in 0..5 {
        let (_, more) = open(&server, 1);
        let mut stream = server.stream();
        stream.write_all(&more.encode(7, 0)).expect("sends");
        read(&mut stream);
    }
    let mut client = server.client();
    let count = |client: &mut crate::running::TestClient| {
        let status = client.ok("admin", r#"{"serverStatus": 1}"#);
        let path = frond_doc::path::Path::new("connections.current");
        path.get(status.view()).and_then(|count| count.as_integer())
    };
    while count(&mut client) != Some(1) {
        std::thread::yield_now();
    }
}

fn with_checksum(message: &Message, id: i32) -> Vec<u8> {
    let mut bytes = message.encode(id, 0);
    let checksum = announce_checksum(&mut bytes, &[]);
    bytes.extend_from_slice(&checksum);
    bytes
}

#[test]
fn answers_have_a_checksum_if_the_request_had() {
    let server = Running::start();
    fill(&server, 50, &"x".repeat(1_000));
    let mut stream = server.stream();
    let find = Message::new(document! {
        "find": "c", "$db": "test", "batchSize": 50_i32, "comment": &"y".repeat(300),
    });
    for _ in 0..2 {
        stream.write_all(&with_checksum(&find, 1)).expect("sends");
        assert!(read(&mut stream).has_checksum, "50 KB: head and body apart");
        let none = Message::new(document! { "nonsense": 1_i32, "$db": "admin" });
        stream.write_all(&with_checksum(&none, 2)).expect("sends");
        assert!(read(&mut stream).has_checksum);
        stream.write_all(&find.encode(3, 0)).expect("sends");
        assert!(!read(&mut stream).has_checksum);
        for compressor in Compressor::ALL {
            let bytes = deflate(&with_checksum(&find, 4), compressor).expect("smaller");
            stream.write_all(&bytes).expect("sends");
            let answer = read(&mut stream);
            assert_eq!((answer.has_checksum, answer.compressor), (true, Some(compressor)));
        }
    }
    let (_, more) = open(&server, 10);
    stream.write_all(&with_checksum(&more, 5)).expect("sends");
    loop {
        let answer = read(&mut stream);
        assert!(answer.has_checksum);
        if !answer.message.flags.more_to_come {
            break;
        }
    }
    let hello = server.client().ok("admin", r#"{"hello": 1}"#);
    let topology = hello.get("topologyVersion").and_then(|topology| topology.as_document());
    let hello = Message::new(document! {
        "hello": 1_i32, "topologyVersion": &topology.expect("a topology").to_buf(),
        "maxAwaitTimeMS": 1_i32, "$db": "admin",
    });
    stream.write_all(&with_checksum(&hello, 6)).expect("sends");
    assert!(read(&mut stream).has_checksum);
}
