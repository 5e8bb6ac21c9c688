//! Clients that want more memory than there is: they wait or get less at a time, and none is cut
//! off.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use frond_doc::{DocumentBuf, Value, document};
use frond_server::wire::{DocumentSequence, HEADER_BYTES, Header, Message};

use crate::running::{Running, json};

const MEGABYTE: usize = 1 << 20;

/// A server with four megabytes for messages and as many for answers.
fn start() -> Running {
    Running::with_memory(4 * MEGABYTE)
}

/// Fills a collection with documents of one megabyte.
fn fill(server: &Running, count: i32) {
    let text = "x".repeat(MEGABYTE);
    for id in 0..count {
        let insert = insert_of(id, &text);
        server
            .client()
            .0
            .command_with("test", document! { "insert": "c" }.view(), insert)
            .expect("inserts");
    }
}

fn insert_of(id: i32, text: &str) -> Vec<DocumentSequence> {
    let documents = vec![document! { "_id": id, "text": text }];
    vec![DocumentSequence { name: "documents".to_owned(), documents }]
}

fn message(body: DocumentBuf) -> Vec<u8> {
    Message::new(body).encode(1, 0)
}

fn read(stream: &mut TcpStream) -> Message {
    let mut bytes = vec![0; HEADER_BYTES];
    stream.read_exact(&mut bytes).expect("a header");
    let header = Header::decode(bytes[..].try_into().expect("its size")).expect("a header");
    bytes.resize(header.bytes, 0);
    stream.read_exact(&mut bytes[HEADER_BYTES..]).expect("the rest");
    Message::decode(bytes.into()).expect("a message")
}

/// Returns how many documents an answer has, and the cursor.
fn batch(answer: &DocumentBuf) -> (usize, i64) {
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document());
    let cursor = cursor.unwrap_or_else(|| panic!("{answer:?}"));
    let batch = cursor.get("firstBatch").or(cursor.get("nextBatch")).expect("a batch");
    let id = cursor.get("id").and_then(|id| id.as_integer()).expect("an id");
    (batch.as_array().expect("an array").iter().count(), id)
}

/// Does something with each stream, with all at once.
fn each(streams: &mut [TcpStream], act: impl Fn(&mut TcpStream) + Sync) {
    std::thread::scope(|scope| {
        for stream in streams {
            scope.spawn(|| act(stream));
        }
    });
}

#[test]
fn clients_that_read_late_hold_up_no_others() {
    let server = start();
    fill(&server, 6);
    let find = message(document! { "find": "c", "$db": "test" });
    let mut late: Vec<TcpStream> = (0..6).map(|_| server.stream()).collect();
    for stream in &mut late {
        stream.write_all(&find).expect("sends");
    }
    // Small answers need nothing of what the others hold.
    server.client().check("test", r#"{"count": "c"}"#, r#"{"n": 6, "ok": 1.0}"#);
    let small = r#"{"find": "c", "projection": {"_id": 1}}"#;
    assert_eq!(batch(&server.client().ok("test", small)).0, 6);
    let status = server.client().ok("admin", r#"{"serverStatus": 1}"#);
    let frond = status.get("frond").and_then(|frond| frond.as_document()).expect("a document");
    let memory = frond.get("memory").and_then(|memory| memory.as_document()).expect("a document");
    let held = memory.get("answersBytes").and_then(|held| held.as_integer()).expect("a count");
    assert!((0..=4 * MEGABYTE as i64).contains(&held), "{held}");
    // Each gets all, batch by batch, whichever began. All read: one that read only after another
    // had everything might hold the memory for which that one waits.
    each(&mut late, |stream| {
        let (mut count, mut id) = batch(&read(stream).body);
        assert!(count > 0);
        while id != 0 {
            let more = document! { "getMore": id, "collection": "c", "$db": "test" };
            stream.write_all(&message(more)).expect("sends");
            let (further, next) = batch(&read(stream).body);
            (count, id) = (count + further, next);
        }
        assert_eq!(count, 6);
    });
}

#[test]
fn an_answer_that_has_to_be_single_waits_for_its_turn() {
    let server = start();
    fill(&server, 3);
    let body = document! { "find": "c", "singleBatch": true, "$db": "test" };
    let find = message(body);
    let mut streams: Vec<TcpStream> = (0..8).map(|_| server.stream()).collect();
    for stream in &mut streams {
        stream.write_all(&find).expect("sends");
    }
    each(&mut streams, |stream| assert_eq!(batch(&read(stream).body), (3, 0)));
}

#[test]
fn a_document_may_be_larger_than_the_budget() {
    let server = start();
    let insert = insert_of(1, &"x".repeat(6 * MEGABYTE));
    let mut client = server.client();
    client.0.command_with("test", document! { "insert": "c" }.view(), insert).expect("inserts");
    assert_eq!(batch(&client.ok("test", r#"{"find": "c"}"#)), (1, 0));
    let modify = r#"{"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 1}}}"#;
    assert!(client.ok("test", modify).as_bytes().len() > 6 * MEGABYTE);
}

#[test]
fn large_messages_wait_for_one_another() {
    let server = start();
    let text = "x".repeat(MEGABYTE);
    let messages: Vec<Vec<u8>> = (0..12)
        .map(|id| {
            let body = document! { "insert": "c", "$db": "test" };
            Message { sequences: insert_of(id, &text), ..Message::new(body) }.encode(1, 0)
        })
        .collect();
    let mut streams: Vec<TcpStream> = messages.iter().map(|_| server.stream()).collect();
    // All have sent a part before one has sent all.
    for (stream, message) in streams.iter_mut().zip(&messages) {
        stream.write_all(&message[..100_000]).expect("sends");
    }
    server.check();
    std::thread::scope(|scope| {
        for (stream, message) in streams.iter_mut().zip(&messages).rev() {
            scope.spawn(move || {
                stream.write_all(&message[100_000..]).expect("sends");
                assert_eq!(read(stream).body.get("n"), Some(Value::Int32(1)));
            });
        }
    });
    server.client().check("test", r#"{"count": "c"}"#, r#"{"n": 12, "ok": 1.0}"#);
}

#[test]
fn announcing_a_large_message_and_stalling_holds_up_no_others() {
    let server = start();
    let mut announced = message(document! { "ping": 1_i32 });
    announced[..4].copy_from_slice(&47_000_000_i32.to_le_bytes());
    announced.resize(100_000, 0);
    let mut stalled: Vec<TcpStream> = (0..8).map(|_| server.stream()).collect();
    for stream in &mut stalled {
        stream.write_all(&announced).expect("sends");
    }
    fill(&server, 3);
    // No client waited for them: one that did would have them cut off, as too slow.
    for stream in &mut stalled {
        stream.set_nonblocking(true).expect("a socket");
        let error = stream.read(&mut [0; 1]).expect_err("neither answered nor closed");
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    }
    server.client().check("test", r#"{"count": "c"}"#, r#"{"n": 3, "ok": 1.0}"#);
}

/// Four times as much as there is for messages has come in when the last client wants its part. It
/// gets it soon, and none of those that stalled is cut off.
#[test]
fn messages_that_stall_make_room_for_others_and_are_answered_later() {
    let server = start();
    let text = "x".repeat(MEGABYTE);
    let message = |id| {
        let body = document! { "insert": "c", "$db": "test" };
        Message { sequences: insert_of(id, &text), ..Message::new(body) }.encode(1, 0)
    };
    let mut stalled: Vec<(TcpStream, Vec<u8>)> =
        (0..16).map(|id| (server.stream(), message(id))).collect();
    std::thread::scope(|scope| {
        for (stream, message) in &mut stalled {
            // The system keeps what the server doesn't read yet.
            scope.spawn(|| stream.write_all(&message[..MEGABYTE]).expect("sends"));
        }
    });
    let mut last = server.stream();
    last.write_all(&message(16)).expect("sends");
    assert_eq!(read(&mut last).body.get("n"), Some(Value::Int32(1)));
    std::thread::scope(|scope| {
        for (stream, message) in &mut stalled {
            scope.spawn(|| {
                stream.write_all(&message[MEGABYTE..]).expect("sends");
                assert_eq!(read(stream).body.get("n"), Some(Value::Int32(1)));
            });
        }
    });
    server.client().check("test", r#"{"count": "c"}"#, r#"{"n": 17, "ok": 1.0}"#);
}

#[test]
fn a_server_stops_while_clients_wait_for_memory() {
    let server = start();
    fill(&server, 4);
    let find = message(document! { "find": "c", "singleBatch": true, "$db": "test" });
    let insert = Message {
        sequences: insert_of(9, &"x".repeat(MEGABYTE)),
        ..Message::new(document! { "insert": "c", "$db": "test" })
    };
    let insert = insert.encode(1, 0);
    let mut streams: Vec<TcpStream> = (0..20).map(|_| server.stream()).collect();
    for (position, stream) in streams.iter_mut().enumerate() {
        match position % 2 {
            0 => stream.write_all(&find).expect("sends"),
            _ => stream.write_all(&insert[..200_000]).expect("sends"),
        }
    }
    server.check();
    // A client that waits for an answer reads it now: a server that stops doesn't cut it off.
    std::thread::scope(|scope| {
        for stream in &mut streams {
            scope.spawn(|| while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {});
        }
        drop(server); // Asserts that the server stops well.
    });
}

#[test]
fn a_batch_of_many_small_documents() {
    let server = start();
    let documents = (0..20_000).map(|id| document! { "_id": id }).collect();
    let sequence = vec![DocumentSequence { name: "documents".to_owned(), documents }];
    let mut client = server.client();
    let answer = client.0.command_with("test", document! { "insert": "c" }.view(), sequence);
    assert_eq!(answer.expect("inserts").get("n"), Some(Value::Int32(20_000)));
    let find = document! { "find": "c", "batchSize": 7_000_i32 };
    assert_eq!(client.0.documents("test", find.view()).expect("reads").len(), 20_000);
}

/// A server that takes too much memory limits each request, and refuses none.
#[cfg(target_os = "linux")]
#[test]
fn a_server_above_its_memory_goes_on_with_less() {
    let server = Running::above_its_memory();
    let mut client = server.client();
    loop {
        let status = client.ok("admin", r#"{"serverStatus": 1}"#);
        let memory = status.get("frond").and_then(|frond| frond.as_document()?.get("memory"));
        let pressure = memory.and_then(|memory| memory.as_document()?.get("pressure"));
        if pressure == Some(Value::Double(1.0)) {
            break;
        }
        std::thread::yield_now();
    }
    // Large messages, writes and answers, side by side, one at a time.
    std::thread::scope(|scope| {
        for id in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                let insert = insert_of(id, &"x".repeat(MEGABYTE));
                let command = document! { "insert": "c" };
                client.0.command_with("test", command.view(), insert).expect("inserts");
                let find = json(&format!(r#"{{"find": "c", "filter": {{"_id": {id}}}}}"#));
                assert_eq!(client.0.documents("test", find.view()).expect("reads").len(), 1);
            });
        }
    });
    client.check("test", r#"{"count": "c"}"#, r#"{"n": 8, "ok": 1.0}"#);
    // A request that would hold much is refused, one that can go to disk isn't.
    let range = r#"{"$map": {"input": {"$range": [0, 1000000]}, "in": {"a": "$$this"}}}"#;
    let much =
        format!(r#"{{"aggregate": 1, "pipeline": [{{"$documents": {range}}}], "cursor": {{}}}}"#);
    assert_eq!(client.error("test", &much).0, 146);
    let sort = r#"{"find": "c", "sort": {"text": 1, "_id": -1}, "projection": {"_id": 1}}"#;
    assert_eq!(client.0.documents("test", json(sort).view()).expect("sorts").len(), 8);
}
