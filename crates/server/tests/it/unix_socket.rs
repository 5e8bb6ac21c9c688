//! Clients of the Unix socket.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use frond_db::FrondOptions;
use frond_doc::{Value, document};
use frond_server::wire::{HEADER_BYTES, Header, Message};
use frond_server::{Server, ServerError, ServerOptions, UnixSocketOptions};
use frond_testkit::SimDisk;

use crate::running::Running;

/// A directory that goes when the test ends.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let name = format!("frond-server-unix-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options(path: &Path, permissions: u32) -> ServerOptions {
    let unix_socket = Some(UnixSocketOptions { path: path.to_owned(), permissions });
    ServerOptions { unix_socket, ..ServerOptions::default() }
}

fn read(stream: &mut UnixStream) -> Message {
    let mut bytes = vec![0; HEADER_BYTES];
    stream.read_exact(&mut bytes).expect("a header");
    let header = Header::decode(bytes[..].try_into().expect("its size")).expect("a header");
    bytes.resize(header.bytes, 0);
    stream.read_exact(&mut bytes[HEADER_BYTES..]).expect("the rest");
    Message::decode_answer(bytes.into()).expect("a message")
}

fn exchange(stream: &mut UnixStream, body: frond_doc::DocumentBuf) -> Message {
    stream.write_all(&Message::new(body).encode(1, 0)).expect("sends");
    read(stream)
}

#[test]
fn clients_of_the_file_are_served_beside_those_of_the_address() {
    let directory = Directory::new("served");
    let path = directory.0.join("frond.sock");
    let server = Running::with(&SimDisk::new(1), options(&path, 0o700));
    let found = fs::symlink_metadata(&path).expect("the socket");
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o700);
    let mut client = UnixStream::connect(&path).expect("the server listens");
    let text = "x".repeat(10 << 20);
    let documents = document! { "_id": 1_i32, "text": &text };
    let mut insert = Message::new(document! { "insert": "c", "$db": "test" });
    insert.sequences = vec![frond_server::wire::DocumentSequence {
        name: "documents".to_owned(),
        documents: vec![documents],
    }];
    client.write_all(&insert.encode(1, 0)).expect("sends");
    assert_eq!(read(&mut client).body.get("n"), Some(Value::Int32(1)));
    let answer = exchange(&mut client, document! { "find": "c", "$db": "test" });
    assert!(answer.body.as_bytes().len() > 10 << 20);
    server.client().check("test", r#"{"count": "c"}"#, r#"{"n": 1, "ok": 1.0}"#);
    // It is the same server, by the address that others reach it by.
    let hello = exchange(&mut client, document! { "hello": 1_i32, "$db": "admin" }).body;
    assert_eq!(hello.get("me"), Some(Value::String(&server.address)));
    let topology = hello.get("topologyVersion").and_then(|topology| topology.as_document());
    let wait = document! {
        "hello": 1_i32, "topologyVersion": &topology.expect("a topology").to_buf(),
        "maxAwaitTimeMS": 50_i32, "$db": "admin",
    };
    assert_eq!(exchange(&mut client, wait).body.get("ok"), Some(Value::Double(1.0)));
    let mut idle: Vec<UnixStream> =
        (0..50).map(|_| UnixStream::connect(&path).expect("the server listens")).collect();
    drop(server);
    assert!(!path.exists(), "it is removed");
    for client in &mut idle {
        assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0);
    }
}

fn bind(path: &Path) -> Result<Server, ServerError> {
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), FrondOptions::default());
    let options = ServerOptions { listen: Some("127.0.0.1:0".to_owned()), ..options(path, 0o600) };
    Server::bind(frond.expect("an empty disk"), options)
}

#[test]
fn only_unused_sockets_are_replaced() {
    let directory = Directory::new("replaced");
    let path = directory.0.join("frond.sock");
    // A server that was killed leaves its file.
    drop(UnixListener::bind(&path).expect("a socket"));
    assert!(path.exists());
    let server = bind(&path).expect("it is stale");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    UnixStream::connect(&path).expect("the new one");
    let error = bind(&path).err().expect("a server listens").to_string();
    assert!(error.contains("unix:") && error.contains("another process listens there"), "{error}");
    // A file that has taken the socket's path stays.
    fs::remove_file(&path).expect("it is there");
    fs::write(&path, "something").expect("a file");
    drop(server);
    assert_eq!(fs::read(&path).expect("a file"), b"something");
    let error = bind(&path).err().expect("no socket").to_string();
    assert!(error.contains("isn't a socket"), "{error}");
    assert_eq!(fs::read(&path).expect("a file"), b"something");
    assert!(bind(&directory.0.join("missing/frond.sock")).is_err());
    assert!(bind(&directory.0.join("x".repeat(200))).is_err());
}
