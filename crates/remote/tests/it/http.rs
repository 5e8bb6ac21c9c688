//! Goal: a running server is a remote like any other for clients that may use it, and no other
//! client hurts it.
//! Method: a server on loopback over a simulated disk, and clients of it, good and bad ones.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use frond_db::{Error, ErrorKind, Frond, ReclaimOptions};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_remote::{HttpOptions, HttpRemote, RemoteServer, ServeError, ServeOptions, Tokens};
use frond_store::{Chunk, ChunkHash, ChunkKind};
use frond_vcs::Repository;
use frond_vcs::remote::{ORIGIN, PushRequest, RefUpdate, Remote};
use frond_vcs::{MergeOutcome, MergeRequest};

use super::{all, insert, new, origin, quiet, shop, thing};

pub(crate) fn serve(frond: &Frond) -> RemoteServer {
    serve_to(frond, Tokens::default())
}

fn serve_to(frond: &Frond, tokens: Tokens) -> RemoteServer {
    let listen = "127.0.0.1:0".to_owned();
    let options = ServeOptions { listen, tokens, ..ServeOptions::default() };
    RemoteServer::start(frond.clone(), &options).expect("a free port")
}

/// A server, and the options of a client that may do everything on it.
pub(crate) fn serve_with_token(frond: &Frond) -> (RemoteServer, HttpOptions) {
    let token = "all-all-all-all-all";
    let server = serve_to(frond, Tokens::parse(token).expect("a good one"));
    (server, HttpOptions { token: Some(token.to_owned()), ..HttpOptions::default() })
}

fn remote(server: &RemoteServer) -> HttpRemote {
    let url = format!("{}/shop", server.url());
    HttpRemote::open(&url, &HttpOptions::default()).expect("a good address")
}

fn push(database: &Repository, remote: &dyn Remote) -> Result<u64, Error> {
    let request = PushRequest { tags: true, ..PushRequest::default() };
    database.push(ORIGIN, remote, &request, &mut quiet()).map(|report| report.moved.chunks)
}

#[test]
fn a_member_of_a_set_gives_and_takes_no_push() {
    let (frond, _) = origin(33);
    let options = ServeOptions {
        listen: "127.0.0.1:0".to_owned(),
        refuses_pushes: true,
        ..ServeOptions::default()
    };
    let member = RemoteServer::start(frond.clone(), &options).expect("a free port");
    let there = new(34);
    let clone = shop(&there);
    clone.clone_from("x", &remote(&member), &mut quiet()).expect("it may be read");
    insert(&clone, &[thing(5_000, 1)]);
    clone.commit("more", "me").expect("a commit");
    let error = push(&clone, &remote(&member)).expect_err("a push changes one member alone");
    assert!(error.message.contains("takes no pushes"), "{error:?}");
}

#[test]
fn a_full_server_takes_no_push_and_still_gives() {
    let (frond, main) = origin(31);
    let stored = frond.counters().1.bytes_stored;
    let start = |store_bytes_max| {
        let (listen, store_bytes_max) = ("127.0.0.1:0".to_owned(), Some(store_bytes_max));
        let options = ServeOptions { listen, store_bytes_max, ..ServeOptions::default() };
        RemoteServer::start(frond.clone(), &options).expect("a free port")
    };
    let there = new(32);
    let clone = shop(&there);
    let full = start(stored);
    clone.clone_from("x", &remote(&full), &mut quiet()).expect("reading needs no room");
    insert(&clone, &[thing(5_000, 1)]);
    clone.commit("more", "").expect("a commit");
    let error = push(&clone, &remote(&full)).expect_err("it is full");
    assert!(error.message.contains("accepts no more"), "{error}");
    assert_ne!(all(&main), all(&clone));
    push(&clone, &remote(&start(stored + (1 << 20)))).expect("now there is room");
    assert_eq!(all(&main), all(&clone));
}

#[test]
fn transfers_that_are_over_leave_room_for_others() {
    let (frond, main) = origin(35);
    let server = serve(&frond);
    let there = new(36);
    let clone = shop(&there);
    clone.clone_from("x", &remote(&server), &mut quiet()).expect("it comes");
    // More than there is room for at once, whether they succeed or not.
    for _ in 0..40 {
        clone.fetch(ORIGIN, &remote(&server), &mut quiet()).expect("nothing is new");
    }
    insert(&main, &[thing(5_000, 1)]);
    main.commit("by the origin", "").expect("a commit");
    insert(&clone, &[thing(6_000, 1)]);
    clone.commit("by the clone", "").expect("a commit");
    for _ in 0..40 {
        let error = push(&clone, &remote(&server)).expect_err("commits would be lost");
        assert!(error.message.contains("pull them first"), "{error}");
    }
}

#[test]
fn clone_fetch_push_and_pull() {
    let (frond, main) = origin(1);
    let server = serve(&frond);
    let there = new(2);
    let clone = shop(&there);
    let report = clone.clone_from("x", &remote(&server), &mut quiet()).expect("it comes");
    assert_eq!(report.tags, ["v1"]);
    assert!(report.moved.chunks > 20, "{:?}", report.moved);
    assert_eq!(all(&clone), all(&main));
    there.engine().check().expect("it is whole");

    insert(&clone, &[thing(5_000, 1)]);
    clone.commit("by the clone", "").expect("a commit");
    let moved = push(&clone, &remote(&server)).expect("it is a fast-forward");
    assert!(moved < 25, "{moved} chunks");
    assert_eq!(all(&main), all(&clone), "the branch there moved with its working state");

    insert(&main, &[thing(6_000, 1)]);
    main.commit("by the origin", "").expect("a commit");
    insert(&clone, &[thing(7_000, 1)]);
    clone.commit("by the clone again", "").expect("a commit");
    let error = push(&clone, &remote(&server)).expect_err("commits would be lost");
    assert!(error.message.contains("pull them first"), "{error}");
    let (_, outcome) = clone
        .pull(ORIGIN, &remote(&server), None, MergeRequest::default(), &mut quiet())
        .expect("it merges");
    assert!(matches!(outcome, MergeOutcome::Merged { .. }));
    push(&clone, &remote(&server)).expect("it is ahead now");
    assert_eq!(all(&main), all(&clone));

    // Forces only over what was seen, and not over changes that were not committed.
    insert(&main, &[thing(8_000, 1)]);
    let force = PushRequest { force_with_lease: true, ..PushRequest::default() };
    clone.reset(Some("HEAD~1"), true).expect("it goes back");
    let error = clone.push(ORIGIN, &remote(&server), &force, &mut quiet()).expect_err("dirty");
    assert!(error.message.contains("not committed"), "{error}");
    main.commit("not seen yet", "").expect("a commit");
    clone.push(ORIGIN, &remote(&server), &force, &mut quiet()).expect_err("it moved meanwhile");
    clone.fetch(ORIGIN, &remote(&server), &mut quiet()).expect("it comes");
    clone.push(ORIGIN, &remote(&server), &force, &mut quiet()).expect("it was seen");
    assert_eq!(all(&main), all(&clone));
    frond.engine().check().expect("it is whole");

    // A database that isn't there is made by a push, and a clone finds none.
    let url = format!("{}/new%20one", server.url());
    let elsewhere = HttpRemote::open(&url, &HttpOptions::default()).expect("a good address");
    assert!(shop(&new(3)).clone_from("x", &elsewhere, &mut quiet()).is_err());
    push(&clone, &elsewhere).map(drop).expect_err("no database has such a name");
    let url = format!("{}/other", server.url());
    let elsewhere = HttpRemote::open(&url, &HttpOptions::default()).expect("a good address");
    push(&clone, &elsewhere).expect("it is made");
    assert_eq!(all(&Repository::open(&frond, "other").expect("a name")), all(&clone));
}

#[test]
fn tokens_say_who_may_do_what() {
    let (frond, _main) = origin(4);
    let (reader, writer) = ("reader-reader-reader", "writer-writer-writer");
    let tokens = Tokens::parse(&format!("{reader} read\n{writer} write\n")).expect("good ones");
    let server = serve_to(&frond, tokens);
    let with = |token: Option<&str>| {
        let token = token.map(str::to_owned);
        let options = HttpOptions { token, ..HttpOptions::default() };
        HttpRemote::open(&format!("{}/shop", server.url()), &options).expect("a good address")
    };
    for wrong in [None, Some("reader-reader-readex")] {
        let error = with(wrong).state().expect_err("no such token");
        assert!(error.message.contains("token"), "{error}");
    }
    let clone = shop(&new(5));
    clone.clone_from("x", &with(Some(reader)), &mut quiet()).expect("it may read");
    insert(&clone, &[thing(5_000, 1)]);
    clone.commit("more", "").expect("a commit");
    let error = push(&clone, &with(Some(reader))).expect_err("it may not write");
    assert!(error.message.contains("doesn't allow"), "{error}");
    push(&clone, &with(Some(writer))).expect("it may write");
    let options = HttpOptions { token: Some(writer.to_owned()), ..HttpOptions::default() };
    assert!(frond_remote::HttpImage::take(&server.url(), &options).is_err(), "not everything");

    let options = ServeOptions { listen: "0.0.0.0:0".to_owned(), ..ServeOptions::default() };
    let refused = RemoteServer::start(frond.clone(), &options);
    assert!(matches!(refused.err(), Some(ServeError::Open(_))), "everybody could come");
}

#[test]
fn tls_is_spoken_and_strangers_are_not_believed() {
    let (frond, main) = origin(6);
    let directory = std::env::temp_dir().join(format!("frond-remote-tls-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory for the certificate");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("it is written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("it is written");
    let options = ServeOptions {
        listen: "127.0.0.1:0".to_owned(),
        tokens: Tokens::default(),
        tls: Some((certificate.clone(), key)),
        ..ServeOptions::default()
    };
    let server = RemoteServer::start(frond.clone(), &options).expect("a free port");
    assert!(server.url().starts_with("https://"));
    let url = format!("https://localhost:{}/shop", server.address().port());
    let open = |authorities| {
        let options = HttpOptions { authorities, attempts: 1, token: None };
        HttpRemote::open(&url, &options).expect("a good address")
    };
    let error = open(None).state().expect_err("no authority vouches for it");
    assert!(error.message.to_lowercase().contains("certificate"), "{error}");
    let clone = shop(&new(7));
    clone.clone_from("x", &open(Some(certificate)), &mut quiet()).expect("it comes");
    assert_eq!(all(&clone), all(&main));
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn a_collection_breaks_no_running_clone() {
    let (frond, main) = origin(8);
    insert(&main, &(5_000..7_000).map(|id| thing(id, 1)).collect::<Vec<_>>());
    main.commit("to be gone", "").expect("a commit");
    let before = all(&main);
    let server = serve(&frond);
    let clone = shop(&new(9));
    let done = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        let (main, frond, done) = (&main, &frond, &done);
        let remote = remote(&server);
        let mut is_first = true;
        // At the first sign of progress, what is being cloned is removed there.
        let mut progress = |_: &frond_vcs::remote::Moved| {
            if std::mem::take(&mut is_first) {
                let collect = scope.spawn(move || {
                    main.reset(Some("HEAD~1"), true).expect("it goes back");
                    for _ in 0..3 {
                        frond_vcs::reclaim(
                            frond,
                            0,
                            ReclaimOptions { thorough: true, ..ReclaimOptions::default() },
                        )
                        .expect("a collection");
                    }
                    done.store(true, Ordering::SeqCst);
                });
                collect.join().expect("it ends well");
            }
        };
        clone.clone_from("x", &remote, &mut progress)
    });
    report.expect("nothing of it went");
    assert!(done.load(Ordering::SeqCst));
    assert_eq!(all(&clone), before);
    // A later clone is of what is there then, and of nothing else.
    let later = shop(&new(10));
    later.clone_from("x", &remote(&server), &mut quiet()).expect("it comes");
    assert_eq!(all(&later), all(&main));
}

/// The headers that our client sends with each request.
const HEAD: &str = "host: localhost\r\nfrond-protocol: 0\r\nconnection: close\r\n";

fn raw(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    // It may have refused before all is sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn malformed_requests_are_refused_and_hurt_no_other_client() {
    let (frond, main) = origin(11);
    let server = serve(&frond);
    let address = server.address();
    let head = |line: &str, more: &str| format!("{line} HTTP/1.1\r\n{HEAD}{more}\r\n");
    for (request, status) in [
        (head("GET /", ""), "404"),
        (head("GET /v0/db/shop/get", ""), "404"),
        (head("POST /v0/db/shop/get", "content-length: 0\r\n"), "410"),
        (head("POST /v0/db/shop/get", "frond-lease: 00\r\ncontent-length: 0\r\n"), "410"),
        // Without a token no client gets a backup.
        (head("POST /v0/backup/get", "content-length: 0\r\n"), "403"),
        (head("GET /v0/db/%00", ""), "400"),
        (head("GET /v0/db/a.b", ""), "400"),
    ] {
        let answer = raw(address, request.as_bytes());
        assert!(answer.contains(status), "{request}: {answer}");
    }
    // A body that says that it is larger than any is not read.
    let lease = take_lease(address);
    let huge = head("POST /v0/db/shop/put", &format!("{lease}content-length: 99999999999\r\n"));
    assert!(raw(address, huge.as_bytes()).contains("413"));
    for (act, body) in [
        ("get", &[7; 33][..]),
        ("get", &[7; 32][..]),
        ("put", &[7; 100][..]),
        ("update", &[7; 100][..]),
        ("has", &[7; 31][..]),
    ] {
        let answer = ask(address, &format!("POST /v0/db/shop/{act}"), &lease, body);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.contains(" 4"), "{act}: {answer}");
        assert!(!answer.contains("200 OK"), "{act}: {answer}");
    }
    push(&main, &remote(&server)).expect("it goes on");
}

/// Takes a lease of the shop: the header that names it.
fn take_lease(address: SocketAddr) -> String {
    let state = ask(address, "GET /v0/db/shop", "", b"");
    let start = state.windows(4).position(|part| part == b"\r\n\r\n").expect("a body") + 4;
    let record = DocumentBuf::validated(state[start..].to_vec().into()).expect("BSON");
    let lease = record.get("lease").and_then(|lease| lease.as_str()).expect("a lease");
    format!("frond-lease: {lease}\r\n")
}

/// The requests that a browser can be made to send: by a page of another origin, and by one whose
/// name was made to lead here.
#[test]
fn web_pages_get_nothing() {
    let (frond, main) = origin(13);
    let before = all(&main);
    let (open, token) = (serve(&frond), "all-all-all-all-all");
    let tokens = Tokens::parse(token).expect("good ones");
    let listen = "127.0.0.1:0".to_owned();
    let hosts = vec!["shop.example".to_owned()];
    let named = ServeOptions { listen, tokens, hosts, ..ServeOptions::default() };
    let named = RemoteServer::start(frond.clone(), &named).expect("a free port");
    let send = |address, line: &str, headers: &str| {
        let request = format!("{line} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
        let answer = raw(address, request.as_bytes());
        answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    };
    let bearer = format!("authorization: Bearer {token}\r\n");
    for (host, more, of_open, of_named) in [
        ("localhost", "frond-protocol: 0\r\n", 200, 200),
        ("127.0.0.1:4224", "frond-protocol: 0\r\n", 200, 200),
        ("shop.example", "frond-protocol: 0\r\n", 421, 200),
        // Its name was made to lead here: the browser takes this for the page's own server.
        ("evil.example", "frond-protocol: 0\r\n", 421, 421),
        ("evil.example", "origin: http://evil.example\r\n", 403, 403),
        // It asks another origin's server, and may not read the answer.
        ("localhost", "origin: http://evil.example\r\nfrond-protocol: 0\r\n", 403, 403),
        ("localhost", "origin: null\r\n", 403, 403),
        ("localhost", "sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n", 403, 403),
        // An old browser that sends no such header: it can't send headers of ours.
        ("localhost", "", 400, 400),
        ("localhost", "content-type: text/plain\r\n", 400, 400),
    ] {
        for line in
            ["GET /v0/db/shop", "POST /v0/backup", "POST /v0/db/shop/end", "OPTIONS /v0/db/shop"]
        {
            let headers = format!("host: {host}\r\n{more}");
            let (found_open, found_named) = (
                send(open.address(), line, &headers),
                send(named.address(), line, &format!("{headers}{bearer}")),
            );
            let is_state = line.starts_with("GET");
            let check = |found: u16, expected: u16| match expected {
                200 if is_state => assert_eq!(found, 200, "{line} {headers}"),
                200 => {}
                refused => assert_eq!(found, refused, "{line} {headers}"),
            };
            check(found_open, of_open);
            check(found_named, of_named);
        }
    }
    // No client takes a backup without a token; one that has a token does.
    assert_eq!(send(open.address(), "POST /v0/backup", HEAD), 403);
    let image = frond_remote::HttpImage::take(&open.url(), &HttpOptions::default());
    let error = image.err().expect("no token");
    assert!(error.message.contains("--remote-token-file"), "{error}");
    let options = HttpOptions { token: Some(token.to_owned()), ..HttpOptions::default() };
    frond_remote::HttpImage::take(&named.url(), &options).expect("it may");
    assert_eq!(all(&main), before);
}

#[test]
fn slow_clients_hold_up_no_others() {
    let (frond, main) = origin(14);
    let server = serve(&frond);
    let lease = take_lease(server.address());
    // Each would have held one of the permits for work that is heavy.
    let slow: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).expect("it listens");
            let head = format!(
                "POST /v0/db/shop/put HTTP/1.1\r\n{HEAD}{lease}content-length: 1000000\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).expect("it reads");
            stream.write_all(&[7; 1_000]).expect("it reads");
            stream
        })
        .collect();
    let began = Instant::now();
    let clone = shop(&new(15));
    clone.clone_from("x", &remote(&server), &mut quiet()).expect("it comes");
    assert_eq!(all(&main), all(&clone));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    // They get the error that they are too slow.
    for mut stream in slow {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        assert!(String::from_utf8_lossy(&answer).contains(" 408 "), "told");
    }
    assert!(began.elapsed() < Duration::from_secs(100), "{:?}", began.elapsed());
}

/// There are more connections than one address may have: those on which nothing was asked make room
/// for a client that asks.
#[test]
fn silent_connections_give_way() {
    let (frond, main) = origin(37);
    let server = serve(&frond);
    let _silent: Vec<TcpStream> =
        (0..140).map(|_| TcpStream::connect(server.address()).expect("accepted")).collect();
    let clone = shop(&new(38));
    clone.clone_from("x", &remote(&server), &mut quiet()).expect("it is let in");
    assert_eq!(all(&main), all(&clone));
}

fn ask(address: SocketAddr, line: &str, more: &str, body: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\n{HEAD}{more}content-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it reads");
    stream.write_all(body).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    answer
}

/// A commit by hand over a catalog by hand.
fn commit(salt: u64, catalog: ChunkHash, parents: &[ChunkHash], generation: i64) -> Chunk {
    let mut references = vec![catalog];
    references.extend_from_slice(parents);
    let mut payload = DocumentBuilder::new();
    payload
        .append("version", Value::Int32(0))
        .append("author", Value::String("Eve"))
        .append("message", Value::String("believe me"))
        .append("timestamp", Value::DateTime(5))
        .append("generation", Value::Int64(generation))
        .append("parents", Value::Int64(parents.len() as i64))
        .begin_document("format")
        .append("chunkBytesTarget", Value::Int64(8 << 10))
        .append("inlineBytesMax", Value::Int64(4 << 10))
        .append("salt", Value::Int64(salt as i64))
        .end();
    Chunk::new(ChunkKind::Commit, &references, payload.build().as_bytes())
}

#[test]
fn pushed_chunks_are_verified() {
    let (frond, main) = origin(12);
    let server = serve(&frond);
    let before = all(&main);
    let remote = remote(&server);
    let state = remote.state().expect("it answers").expect("there is a repository");
    let head = state.branches["main"];
    let good = remote.get_many(&[head]).expect("it is there").remove(0);
    let catalog = good.reference(0);
    let blob = Chunk::new(ChunkKind::Blob, &[], b"nonsense");
    let hidden =
        Chunk::new(ChunkKind::Blob, &[ChunkHash([9; 32])], b"what it refers to is missing");
    let nested = Chunk::new(ChunkKind::MapNode, &[good.hash()], b"");
    remote.put_many(&[blob.clone(), hidden.clone(), nested.clone()]).expect("chunks are taken");
    let salt = state.salt;
    let cases = [
        ("no catalog", commit(salt, blob.hash(), &[head], 2)),
        ("a part is missing", commit(salt, hidden.hash(), &[head], 2)),
        ("a commit in a tree", commit(salt, nested.hash(), &[head], 2)),
        ("another repository's", commit(salt ^ 1, catalog, &[head], 2)),
        ("a generation of its own", commit(salt, catalog, &[head], 7)),
        ("a parent that is not there", commit(salt, catalog, &[ChunkHash([8; 32])], 2)),
        ("no commit", blob.clone()),
    ];
    for (what, bad) in cases {
        remote.put_many(std::slice::from_ref(&bad)).expect("chunks are taken");
        let update = RefUpdate {
            salt,
            default_branch: "main".to_owned(),
            branch: "main".to_owned(),
            expected: Some(head),
            new: bad.hash(),
            force: false,
            commits: vec![bad.hash()],
            tags: Vec::new(),
        };
        let error = remote.update(&update).expect_err(what);
        assert!(matches!(error.kind, ErrorKind::Damaged | ErrorKind::Invalid), "{what}: {error:?}");
        let unlisted = RefUpdate { commits: Vec::new(), ..update };
        assert!(remote.update(&unlisted).is_err(), "{what}");
    }
    assert_eq!(all(&main), before);
    drop(server);
    // The garbage goes, and nothing else.
    frond_vcs::reclaim(&frond, 0, ReclaimOptions::default()).expect("a collection");
    frond.engine().check().expect("it is whole");
    assert_eq!(all(&main), before);
}
