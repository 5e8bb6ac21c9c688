//! Many clients, slow clients, and stopping.

use std::io::{Read, Write};

use frond_doc::document;
use frond_doc::path::Path;
use frond_server::ServerOptions;
use frond_server::wire::Message;
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient};

#[test]
fn five_hundred_connections() {
    let server = Running::start();
    std::thread::scope(|scope| {
        for thread in 0..10 {
            let server = &server;
            scope.spawn(move || {
                let mut clients: Vec<_> = (0..50).map(|_| server.client()).collect();
                for (position, client) in clients.iter_mut().enumerate() {
                    let id = thread * 50 + position;
                    let insert = format!(r#"{{"insert": "c", "documents": [{{"_id": {id}}}]}}"#);
                    client.check("test", &insert, r#"{"n": 1, "ok": 1.0}"#);
                }
            });
        }
    });
    server.client().check("test", r#"{"count": "c"}"#, r#"{"n": 500, "ok": 1.0}"#);
}

/// All that wait for one document wait with a thread each, and the transaction that has claimed it
/// goes on.
#[test]
fn a_transaction_that_many_wait_for_ends() {
    let disk = SimDisk::new(1);
    let options = ServerOptions { threads_max: 2, ..ServerOptions::default() };
    let server = Running::with(&disk, options);
    server.client().ok("test", r#"{"insert": "c", "documents": [{"_id": 1, "n": 0}]}"#);
    let in_transaction = |command: &str, more: &str| {
        let session = r#""lsid": {"id": {"$uuid": "00000000-0000-4000-8000-000000000001"}}"#;
        let number = r#""txnNumber": {"$numberLong": "1"}, "autocommit": false"#;
        format!("{{{command}, {session}, {number}{more}}}")
    };
    let add = r#""update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]"#;
    let mut holder = server.client();
    holder.ok("test", &in_transaction(add, r#", "startTransaction": true"#));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| server.client().ok("test", &format!("{{{add}}}")));
        }
        while waiting(&mut server.client()) < 20 {
            std::thread::yield_now();
        }
        holder.ok("test", &in_transaction(add, ""));
        holder.ok("admin", &in_transaction(r#""commitTransaction": 1"#, ""));
    });
    server.client().check_documents("test", r#"{"find": "c"}"#, &[r#"{"_id": 1, "n": 22}"#]);
}

/// How many writers wait for another's transaction.
fn waiting(client: &mut TestClient) -> i64 {
    let status = client.ok("admin", r#"{"serverStatus": 1}"#);
    let waiting = Path::new("globalLock.currentQueue.writers").get(status.view());
    waiting.and_then(|waiting| waiting.as_integer()).expect("a number")
}

#[test]
fn connections_above_the_limit_are_closed() {
    let server = Running::with_connections(3);
    let mut clients: Vec<_> = (0..3).map(|_| server.client()).collect();
    for client in &mut clients {
        client.ok("admin", r#"{"ping": 1}"#);
    }
    let mut refused = server.stream();
    assert_eq!(refused.read(&mut [0; 16]).expect("closed, not reset"), 0);
    for client in &mut clients {
        client.ok("admin", r#"{"ping": 1}"#);
    }
    // A place that becomes free is taken again: the server notices the end at its next read.
    drop(clients);
    while frond_server::Client::connect(&server.address)
        .expect("the server listens")
        .command("admin", document! { "ping": 1_i32 }.view())
        .is_err()
    {}
}

#[test]
fn a_slow_client_holds_up_no_others() {
    let server = Running::start();
    let ping = Message::new(document! { "ping": 1_i32, "$db": "admin" }).encode(1, 0);
    let mut slow: Vec<_> = (0..100).map(|_| server.stream()).collect();
    for position in 0..ping.len() {
        for stream in &mut slow {
            stream.write_all(&ping[position..=position]).expect("sends a byte");
        }
        server.check();
    }
    for stream in &mut slow {
        stream.read_exact(&mut [0; 16]).expect("an answer");
    }
}

#[test]
fn claims_of_large_messages_cost_nothing() {
    let server = Running::start();
    let mut claim = Message::new(document! { "ping": 1_i32 }).encode(1, 0);
    claim[..4].copy_from_slice(&48_000_000_i32.to_le_bytes());
    let mut claims: Vec<_> = (0..300).map(|_| server.stream()).collect();
    for stream in &mut claims {
        stream.write_all(&claim).expect("sends");
    }
    server.check();
}

#[test]
fn stopping_answers_what_runs_and_closes_the_rest() {
    let server = Running::start();
    let mut idle = server.stream();
    server.client().ok("test", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    drop(server); // Asserts that the server stops well.
    assert_eq!(idle.read(&mut [0; 16]).unwrap_or(0), 0);
}
