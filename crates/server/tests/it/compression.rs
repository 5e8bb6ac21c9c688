//! Messages that come compressed, and what pretends to be one.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use frond_doc::{DocumentBuf, Value, document};
use frond_server::ServerOptions;
use frond_server::wire::compression::deflate;
use frond_server::wire::{
    Compressed, Compressor, DocumentSequence, HEADER_BYTES, Header, Message, OperationCode,
};
use frond_testkit::SimDisk;
use frond_testkit::random::for_seeds;

use crate::running::{Running, json};

/// Returns a message that is long enough to become smaller.
fn ping() -> Vec<u8> {
    let body = document! { "ping": 1_i32, "$db": "admin", "comment": &"x".repeat(500) };
    Message::new(body).encode(1, 0)
}

fn compressed(message: &[u8], compressor: Compressor) -> Vec<u8> {
    deflate(message, compressor).expect("it becomes smaller")
}

/// Reads an answer; returns how it was compressed.
fn read(stream: &mut TcpStream) -> Option<(Message, Option<Compressor>)> {
    let mut bytes = vec![0; HEADER_BYTES];
    stream.read_exact(&mut bytes).ok()?;
    let header = Header::decode(bytes[..].try_into().expect("its size")).expect("a header");
    bytes.resize(header.bytes, 0);
    stream.read_exact(&mut bytes[HEADER_BYTES..]).expect("the rest");
    if header.operation == OperationCode::Message {
        return Some((Message::decode_answer(bytes.into()).expect("a message"), None));
    }
    let inside = Compressed::decode(header, &bytes).expect("a compressed message");
    assert_eq!(inside.header.response_to, header.response_to);
    let message = inside.inflate(&bytes).expect("what it says");
    Some((Message::decode_answer(message).expect("a message"), Some(inside.compressor)))
}

fn code_of(message: &Message) -> Option<i64> {
    message.body.get("code")?.as_integer()
}

/// Sends bytes and nothing more; returns the code of the answer, and whether the connection was
/// closed.
fn refused(server: &Running, bytes: &[u8]) -> (Option<i64>, bool) {
    let mut stream = server.stream();
    // The server may hang up before it has read everything.
    let _ = stream.write_all(bytes);
    let answer = read(&mut stream).expect("an answer").0;
    let _ = stream.write_all(&ping());
    let _ = stream.shutdown(Shutdown::Write);
    (code_of(&answer), read(&mut stream).is_none())
}

/// A server that offers so many ways to compress.
fn offering(compressors: &[Compressor]) -> Running {
    let options = ServerOptions { compressors: compressors.to_vec(), ..ServerOptions::default() };
    Running::with(&SimDisk::new(1), options)
}

#[test]
fn hello_agrees_on_what_both_know_in_the_clients_order() {
    let all = Running::start();
    let few = offering(&[Compressor::Zlib]);
    let none = offering(&[]);
    for (offered, expected) in [
        (r#"["snappy", "zstd", "zlib"]"#, [Some("snappy,zstd,zlib"), Some("zlib"), None]),
        (r#"["zlib", "lz4", "snappy", "zlib"]"#, [Some("zlib,snappy"), Some("zlib"), None]),
        (r#"["zstd"]"#, [Some("zstd"), None, None]),
        (r#"["noop", "ZLIB", ""]"#, [None, None, None]),
        ("[]", [None, None, None]),
    ] {
        for (server, expected) in [&all, &few, &none].into_iter().zip(expected) {
            for hello in ["hello", "isMaster", "ismaster"] {
                let command = format!(r#"{{"{hello}": 1, "compression": {offered}}}"#);
                let answer = server.client().ok("admin", &command);
                let agreed = answer.get("compression").map(|agreed| {
                    let names = agreed.as_array().expect("an array");
                    let names: Vec<_> = names.iter().filter_map(|name| name.as_str()).collect();
                    names.join(",")
                });
                assert_eq!(agreed.as_deref(), expected, "{offered}");
            }
        }
    }
    assert_eq!(all.client().error("admin", r#"{"hello": 1, "compression": 1}"#).0, 14);
    assert_eq!(all.client().error("admin", r#"{"hello": 1, "compression": [1]}"#).0, 14);
}

#[test]
fn answers_come_as_the_request_came() {
    let server = Running::start();
    let text = "once upon a time ".repeat(60_000);
    let documents = documents_of(&text);
    let mut stream = server.stream();
    for compressor in Compressor::ALL {
        let insert = document! { "insert": compressor.name(), "$db": "test" };
        let name = "documents".to_owned();
        let sequences = vec![DocumentSequence { name, documents: documents.clone() }];
        let insert = Message { sequences, ..Message::new(insert) }.encode(1, 0);
        stream.write_all(&compressed(&insert, compressor)).expect("sends");
        let (answer, _) = read(&mut stream).expect("an answer");
        assert_eq!(answer.body.get("n"), Some(Value::Int32(5)));
        let find = document! {
            "find": compressor.name(), "$db": "test", "comment": &text[..1_000],
        };
        let find = Message::new(find).encode(2, 0);
        // Each message for itself, whatever came before.
        for as_it_is in [false, true, false] {
            let sent = if as_it_is { find.clone() } else { compressed(&find, compressor) };
            stream.write_all(&sent).expect("sends");
            let (answer, found) = read(&mut stream).expect("an answer");
            assert_eq!(found, (!as_it_is).then_some(compressor));
            let cursor = answer.body.get("cursor").and_then(|cursor| cursor.as_document());
            let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).expect("a batch");
            let batch: Vec<_> = batch.as_array().expect("an array").iter().collect();
            let batch: Vec<_> = batch.iter().filter_map(|value| value.as_document()).collect();
            assert!(batch == documents.iter().map(|one| one.view()).collect::<Vec<_>>());
        }
    }
}

fn documents_of(text: &str) -> Vec<DocumentBuf> {
    (0..5_i32).map(|id| document! { "_id": id, "text": text }).collect()
}

#[test]
fn a_write_that_wants_no_answer_gets_none() {
    let server = Running::start();
    let insert = format!(
        r#"{{"insert": "c", "documents": [{{"_id": 1}}], "$db": "test", "comment": "{}",
            "writeConcern": {{"w": 0}}}}"#,
        "x".repeat(500)
    );
    let mut message = Message::new(json(&insert));
    message.flags.more_to_come = true;
    let mut stream = server.stream();
    stream.write_all(&compressed(&message.encode(7, 0), Compressor::Zstd)).expect("sends");
    stream.write_all(&ping()).expect("sends");
    assert_eq!(code_of(&read(&mut stream).expect("the ping's answer").0), None);
    server.client().check("test", r#"{"count": "c"}"#, r#"{"n": 1, "ok": 1.0}"#);
}

#[test]
fn commands_with_secrets_are_never_taken_compressed() {
    let server = Running::start();
    for name in
        ["saslStart", "saslContinue", "authenticate", "createUser", "updateUser", "getnonce"]
    {
        let mut body = frond_doc::DocumentBuilder::new();
        body.append(name, Value::Int32(1)).append("$db", Value::String("admin"));
        body.append("comment", Value::String(&"x".repeat(500)));
        let message = Message::new(body.build()).encode(1, 0);
        for compressor in Compressor::ALL {
            // The answer says why, and the connection goes on.
            assert_eq!(refused(&server, &compressed(&message, compressor)), (Some(17), false));
        }
    }
}

/// Drivers send their own as it is; what an application asks for is compressed by some.
#[test]
fn hello_is_taken_compressed() {
    let server = Running::start();
    for name in ["hello", "isMaster", "ismaster"] {
        let mut body = frond_doc::DocumentBuilder::new();
        body.append(name, Value::Int32(1)).append("$db", Value::String("admin"));
        body.append("comment", Value::String(&"x".repeat(500)));
        let message = Message::new(body.build()).encode(1, 0);
        for compressor in Compressor::ALL {
            let mut stream = server.stream();
            stream.write_all(&compressed(&message, compressor)).expect("sends");
            assert_eq!(code_of(&read(&mut stream).expect("an answer").0), None);
        }
    }
}

#[test]
fn compressors_that_were_not_negotiated_are_refused() {
    let server = offering(&[Compressor::Zlib]);
    for compressor in [Compressor::Snappy, Compressor::Zstd] {
        assert_eq!(refused(&server, &compressed(&ping(), compressor)), (Some(17), true));
    }
    let server = offering(&[]);
    assert_eq!(refused(&server, &compressed(&ping(), Compressor::Zlib)), (Some(17), true));
}

#[test]
fn lies_and_bombs_are_refused() {
    let server = Running::start();
    for compressor in Compressor::ALL {
        let good = compressed(&ping(), compressor);
        for wrong in [i32::MIN, -1, 0, 100, 47_999_984, 47_999_985, i32::MAX] {
            let mut bytes = good.clone();
            bytes[20..24].copy_from_slice(&wrong.to_le_bytes());
            assert_eq!(refused(&server, &bytes), (Some(17), true), "{compressor:?} {wrong}");
        }
        // 47 MB of nothing, which say that they were 500 bytes.
        let mut zeros = [&ping()[..HEADER_BYTES], &vec![0; 47_000_000]].concat();
        zeros[..4].copy_from_slice(&(47_000_000 + HEADER_BYTES as i32).to_le_bytes());
        let mut bomb = compressed(&zeros, compressor);
        bomb[20..24].copy_from_slice(&500_i32.to_le_bytes());
        assert_eq!(refused(&server, &bomb), (Some(17), true), "{compressor:?}");
        // A compressed message inside of another.
        let mut inner = good.clone();
        inner[12..16].copy_from_slice(&2013_i32.to_le_bytes());
        let mut padded = [inner, vec![0; 2_000]].concat();
        let bytes = padded.len() as i32;
        padded[..4].copy_from_slice(&bytes.to_le_bytes());
        let mut nested = compressed(&padded, compressor);
        nested[16..20].copy_from_slice(&2012_i32.to_le_bytes());
        assert_eq!(refused(&server, &nested), (Some(17), true), "{compressor:?}");
    }
    server.check();
}

#[test]
fn random_bytes_inside_do_no_harm() {
    let server = Running::start();
    for_seeds(60, |mut random| {
        let compressor = Compressor::ALL[random.below(3)];
        let mut bytes = compressed(&ping(), compressor);
        for _ in 0..random.below(4) + 1 {
            let position = HEADER_BYTES + random.below(bytes.len() - HEADER_BYTES);
            bytes[position] = random.next() as u8;
        }
        let mut stream = server.stream();
        stream.write_all(&bytes).expect("sends");
        stream.shutdown(Shutdown::Write).expect("a socket");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        server.check();
    });
}

/// If there is no memory to inflate all messages at once, they wait for one another, and an answer
/// goes out as it is if there is none to compress it.
#[test]
fn memory_for_what_comes_out_is_waited_for() {
    let server = Running::with_memory(4 << 20);
    let text = "y".repeat(12 << 20);
    let body = document! { "ping": 1_i32, "$db": "admin", "comment": &text };
    let large = Message::new(body).encode(1, 0);
    let message = compressed(&large, Compressor::Zstd);
    assert!(message.len() < 64 << 10, "as a message it needs no share");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut stream = server.stream();
                for _ in 0..3 {
                    stream.write_all(&message).expect("sends");
                    assert_eq!(code_of(&read(&mut stream).expect("an answer").0), None);
                }
            });
        }
    });
    let text = "z".repeat(3 << 20);
    let insert = format!(r#"{{"insert": "c", "documents": [{{"_id": 1, "text": "{text}"}}]}}"#);
    server.client().ok("test", &insert);
    let find = document! { "find": "c", "$db": "test", "comment": &"x".repeat(500) };
    let find = Message::new(find).encode(1, 0);
    let mut stream = server.stream();
    stream.write_all(&compressed(&find, Compressor::Snappy)).expect("sends");
    let (answer, compressor) = read(&mut stream).expect("an answer");
    assert_eq!(compressor, None, "6.5 MB of 4 weren't to be had");
    assert!(answer.body.as_bytes().len() > 3 << 20);
}

#[test]
fn falsely_compressed_messages_are_refused() {
    let server = Running::start();
    let mut bytes = ping();
    bytes[12..16].copy_from_slice(&2012_i32.to_le_bytes());
    assert_eq!(refused(&server, &bytes), (Some(17), true));
    let header = Header::decode(ping()[..HEADER_BYTES].try_into().expect("its size"));
    let header = Header {
        bytes: HEADER_BYTES,
        operation: OperationCode::Compressed,
        ..header.expect("a header")
    };
    let mut alone = Vec::new();
    header.encode(&mut alone);
    assert_eq!(refused(&server, &alone), (Some(17), true));
}

#[test]
fn what_compression_saves_is_counted() {
    let server = Running::start();
    let plain = ping();
    let mut sent = 0;
    for compressor in [Compressor::Zstd, Compressor::Zlib, Compressor::Zlib] {
        let message = compressed(&plain, compressor);
        sent += message.len();
        let mut stream = server.stream();
        stream.write_all(&message).expect("sends");
        assert!(read(&mut stream).is_some());
    }
    let status = server.client().ok("admin", r#"{"serverStatus": 1}"#);
    let get = |path: &str| {
        let found = frond_doc::path::Path::new(path).get(status.view());
        found.and_then(|count| count.as_integer()).expect("told") as usize
    };
    let inflated =
        |name: &str, bytes: &str| get(&format!("network.compression.{name}.decompressor.{bytes}"));
    assert_eq!(inflated("zlib", "bytesOut"), 2 * (plain.len() - HEADER_BYTES));
    assert_eq!(inflated("zstd", "bytesOut"), plain.len() - HEADER_BYTES);
    assert_eq!(inflated("snappy", "bytesOut"), 0);
    let came = inflated("zlib", "bytesIn") + inflated("zstd", "bytesIn");
    assert_eq!(came, sent - 3 * 25, "without their headers");
    // An answer that wouldn't be smaller goes as it is.
    assert_eq!(get("network.compression.snappy.compressor.bytesOut"), 0);
}
