//! Bytes that no client would send: the server answers or hangs up, and goes on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use bytes::Bytes;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_server::wire::{
    DocumentSequence, HEADER_BYTES, Header, LegacyQuery, LegacyReply, Message,
};
use frond_testkit::random::for_seeds;

use crate::running::Running;

/// Sends bytes, then nothing more; returns what came back before the server hung up.
fn exchange(server: &Running, bytes: &[u8]) -> Vec<u8> {
    let mut stream = server.stream();
    // The server may hang up before it has read everything: what it said by then counts.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn code_of(answer: &[u8]) -> Option<i64> {
    let message = Message::decode(Bytes::copy_from_slice(answer)).ok()?;
    message.body.get("code")?.as_integer()
}

fn ping() -> Vec<u8> {
    Message::new(document! { "ping": 1_i32, "$db": "admin" }).encode(1, 0)
}

#[test]
fn wrong_lengths_and_codes_close_the_connection() {
    let server = Running::start();
    for (length, code) in [
        (0, 2013),
        (15, 2013),
        (-1, 2013),
        (i32::MIN, 2013),
        (i32::MAX, 2013),
        (48_000_001, 2013),
        (100, 0),
        (100, 2002),
        (16, 1),
    ] {
        let mut bytes = ping();
        bytes[..4].copy_from_slice(&i32::to_le_bytes(length));
        bytes[12..16].copy_from_slice(&i32::to_le_bytes(code));
        assert_eq!(exchange(&server, &bytes), b"", "{length} {code}");
    }
    server.check();
}

/// Requests that a web page can make a browser send: bytes that begin as HTTP does, with a command
/// in the body.
#[test]
fn requests_of_browsers_do_nothing() {
    let server = Running::start();
    server.client().ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let drop = document! { "dropDatabase": 1_i32, "$db": "test" };
    let body = Message::new(drop).encode(1, 0);
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "\r\nPOST"] {
        for host in ["localhost:27017", "evil.example"] {
            let head = format!(
                "{method} / HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\n\
                 Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            assert_eq!(exchange(&server, &[head.as_bytes(), &body].concat()), b"", "{method}");
        }
    }
    let found = server.client().ok("test", r#"{"count": "c"}"#);
    assert_eq!(found.get("n").and_then(|count| count.as_integer()), Some(1));
}

#[test]
fn broken_documents_are_answered_and_the_connection_goes_on() {
    let server = Running::start();
    let mut bytes = ping();
    // The type of the first field becomes one that doesn't exist.
    bytes[HEADER_BYTES + 4 + 1 + 4] = 0x55;
    let mut stream = server.stream();
    for _ in 0..3 {
        stream.write_all(&bytes).expect("the connection goes on");
        assert_eq!(code_of(&read_message(&mut stream)), Some(22));
    }
    stream.write_all(&ping()).expect("the connection goes on");
    assert_eq!(code_of(&read_message(&mut stream)), None);
}

fn read_message(stream: &mut TcpStream) -> Vec<u8> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).expect("an answer");
    let length = Header::decode(&header).expect("a header").bytes;
    let mut message = header.to_vec();
    message.resize(length, 0);
    stream.read_exact(&mut message[HEADER_BYTES..]).expect("a whole answer");
    message
}

/// A document with so many levels within it.
fn nested(depth: usize) -> DocumentBuf {
    let mut document = Vec::new();
    for inner in (1..=depth).rev() {
        document.extend_from_slice(&(5 + 8 * inner as i32).to_le_bytes());
        document.extend_from_slice(b"\x03a\0");
    }
    document.extend_from_slice(DocumentBuf::empty().as_bytes());
    document.resize(5 + 8 * depth, 0);
    DocumentBuf::from_validated(Bytes::from(document))
}

#[test]
fn nesting_has_a_limit() {
    let server = Running::start();
    for depth in [10, 100, 1_000, 100_000] {
        let answer = exchange(&server, &Message::new(nested(depth)).encode(1, 0));
        let expected = if depth < 180 { 59 } else { 15 };
        assert_eq!(code_of(&answer), Some(expected), "{depth}");
    }
    server.check();
}

/// A document of 180 levels is written by each command, within its body and beside it, and one of
/// 181 by none.
#[test]
fn the_deepest_document_is_written_by_every_command() {
    let server = Running::start();
    let around = |command: DocumentBuf, name: &str, element: &DocumentBuf| {
        let mut body = DocumentBuilder::new();
        for (name, value) in command.iter() {
            body.append(name, value);
        }
        body.begin_array(name).push(Value::from(element)).end();
        Message::new(body.build())
    };
    let beside = |body: DocumentBuf, name: &str, document: &DocumentBuf| Message {
        sequences: vec![DocumentSequence {
            name: name.to_owned(),
            documents: vec![document.clone()],
        }],
        ..Message::new(body)
    };
    for (levels, expected) in [(180, None), (181, Some(15))] {
        let deep = nested(levels - 1);
        let query = document! { "b": levels as i32 };
        let statement = document! { "q": &query, "u": &deep, "upsert": true };
        let operation = document! { "insert": 0_i32, "document": &deep };
        let insert = document! { "insert": "c", "$db": "test" };
        let update = document! { "update": "c", "$db": "test" };
        let bulk = document! { "bulkWrite": 1_i32, "$db": "admin" };
        let bulk = around(bulk, "nsInfo", &document! { "ns": "test.c" }).body;
        let modify = document! {
            "findAndModify": "c", "query": &query, "update": &deep, "upsert": true, "$db": "test"
        };
        for message in [
            around(insert.clone(), "documents", &deep),
            beside(insert, "documents", &deep),
            around(update.clone(), "updates", &statement),
            beside(update, "updates", &statement),
            around(bulk.clone(), "ops", &operation),
            beside(bulk, "ops", &operation),
            Message::new(modify),
        ] {
            let answer = exchange(&server, &message.encode(1, 0));
            let name = message.body.iter().next().map(|(name, _)| name);
            assert_eq!(code_of(&answer), expected, "{levels} {name:?}");
            let answer = Message::decode_answer(Bytes::from(answer)).expect("an answer").body;
            assert!(answer.get("writeErrors").is_none(), "{levels} {name:?}: {answer:?}");
        }
    }
    server.check();
    let mut client = server.client();
    client.check("test", r#"{"count": "c"}"#, r#"{"n": 7, "ok": 1.0}"#);
}

#[test]
fn truncated_messages_are_waited_for_and_dropped() {
    let server = Running::start();
    let bytes = ping();
    for end in 0..bytes.len() {
        assert_eq!(exchange(&server, &bytes[..end]), b"", "cut at {end}");
    }
    server.check();
}

#[test]
fn random_bytes_do_no_harm() {
    let server = Running::start();
    for_seeds(100, |mut random| {
        // Whole garbage, garbage behind a good header, and good messages with some bytes changed.
        let count = random.below(300);
        let mut bytes = match random.below(3) {
            0 => random.bytes(count),
            1 => {
                let garbage = random.bytes(count);
                let mut bytes = ping()[..HEADER_BYTES].to_vec();
                bytes[..4].copy_from_slice(&((HEADER_BYTES + count) as i32).to_le_bytes());
                bytes.extend_from_slice(&garbage);
                bytes
            }
            _ => {
                let mut bytes = ping();
                for _ in 0..random.below(4) + 1 {
                    let position = HEADER_BYTES + random.below(bytes.len() - HEADER_BYTES);
                    bytes[position] = random.next() as u8;
                }
                bytes
            }
        };
        bytes.extend_from_slice(&ping());
        exchange(&server, &bytes);
        server.check();
    });
}

#[test]
fn every_changed_bit_of_a_write_is_survived() {
    let server = Running::start();
    let insert = document! { "insert": "c", "ordered": false, "$db": "test" };
    let documents = vec![document! { "a": 1_i32, "b": "text", "c": 1.5 }];
    let name = "documents".to_owned();
    let sequences = vec![frond_server::wire::DocumentSequence { name, documents }];
    let bytes = Message { sequences, ..Message::new(insert) }.encode(1, 0);
    for bit in HEADER_BYTES * 8..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        exchange(&server, &changed);
    }
    server.check();
}

#[test]
fn legacy_queries_may_only_say_hello() {
    let server = Running::start();
    let query = |namespace: &str, query: DocumentBuf| {
        let bytes = LegacyQuery { namespace: namespace.to_owned(), query }.encode(1);
        let reply = LegacyReply::decode(Bytes::from(exchange(&server, &bytes)));
        reply.expect("a reply").documents.remove(0)
    };
    let hello = query("admin.$cmd", document! { "isMaster": 1_i32, "helloOk": true });
    assert!(hello.get("ismaster").is_some_and(|value| value.is_truthy()));
    assert!(hello.get("helloOk").is_some_and(|value| value.is_truthy()));
    for (namespace, command) in
        [("admin.$cmd", document! { "ping": 1_i32 }), ("test.c", document! {})]
    {
        let refused = query(namespace, command);
        assert_eq!(refused.get("code").and_then(|code| code.as_integer()), Some(352));
    }
}

#[test]
fn no_answer_where_none_is_wanted() {
    let server = Running::start();
    let insert = r#"{"insert": "c", "documents": [{"_id": 1}], "$db": "test",
        "writeConcern": {"w": 0}}"#;
    let mut message = Message::new(crate::running::json(insert));
    message.flags.more_to_come = true;
    let mut stream = server.stream();
    stream.write_all(&message.encode(1, 0)).expect("sends");
    stream.write_all(&ping()).expect("sends");
    // The first answer is the ping's, and the insert was done before it.
    assert_eq!(code_of(&read_message(&mut stream)), None);
    server.client().check("test", r#"{"count": "c"}"#, r#"{"n": 1, "ok": 1.0}"#);
}
