//! Goal: a write is answered when it is durable, not before, and reads go on meanwhile.
//! Method: a disk whose syncs wait until the test lets them, writes of all kinds by many clients,
//! and a power cut as soon as the last is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use frond_server::ServerOptions;
use frond_testkit::{Gate, Keeper, SimDisk};

use crate::running::{Running, TestClient};

const CLIENTS: usize = 20;

/// The write of a client, begun so far that only its sync is left.
fn begin(client: &mut TestClient, number: usize) -> (&'static str, String) {
    let session = format!(
        r#""lsid": {{"id": {{"$uuid": "00000000-0000-4000-8000-0000000000{number:02}"}}}},
            "txnNumber": {{"$numberLong": "1"}}"#
    );
    let update = format!(r#""update": "c", "updates": [{{"q": {{"_id": {number}}}, "u": U}}]"#)
        .replace('U', r#"{"$set": {"n": 1}}"#);
    match number % 4 {
        0 => ("test", format!("{{{update}, {session}}}")),
        1 => ("test", format!(r#"{{"insert": "d", "documents": [{{"_id": {number}}}]}}"#)),
        2 => {
            let find = format!(r#""findAndModify": "c", "query": {{"_id": {number}}}"#);
            ("test", format!(r#"{{{find}, "update": {{"$set": {{"n": 1}}}}}}"#))
        }
        _ => {
            let part = format!(r#"{session}, "autocommit": false"#);
            client.ok("test", &format!(r#"{{{update}, {part}, "startTransaction": true}}"#));
            ("admin", format!(r#"{{"commitTransaction": 1, {part}}}"#))
        }
    }
}

/// The number of commands that run, this one aside.
fn running(client: &mut TestClient) -> usize {
    let answer = client.ok("admin", r#"{"currentOp": 1}"#);
    let all = answer.get("inprog").and_then(|all| all.as_array()).expect("a list");
    all.iter()
        .filter(|one| one.as_document().is_some_and(|one| one.get("command").is_some()))
        .count()
        - 1
}

#[test]
fn a_write_is_answered_once_it_is_durable() {
    let (disk, gate) = (SimDisk::new(1), Arc::new(Gate::default()));
    let machine = Gate::before(&gate, disk.machine());
    let server = Running::on_machine(&machine, ServerOptions::default());
    let mut reader = server.client();
    let documents: Vec<String> =
        (0..CLIENTS).map(|id| format!(r#"{{"_id": {id}, "n": 0}}"#)).collect();
    reader.ok("test", &format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(", ")));
    reader.ok("test", r#"{"create": "d"}"#);
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let mut writers: Vec<_> = (0..CLIENTS).map(|_| server.client()).collect();
        let writes: Vec<_> =
            writers.iter_mut().enumerate().map(|(number, client)| begin(client, number)).collect();
        gate.close();
        let _opens = Keeper(Arc::clone(&gate));
        for (mut client, (database, command)) in writers.into_iter().zip(writes) {
            let answered = &answered;
            scope.spawn(move || {
                client.ok(database, &command);
                answered.fetch_add(1, Ordering::SeqCst);
            });
        }
        while running(&mut reader) < CLIENTS {
            std::thread::yield_now();
        }
        let none = r#"{"count": "c", "query": {"n": 1}}"#;
        reader.check("test", none, r#"{"n": 0, "ok": 1.0}"#);
        assert_eq!(answered.load(Ordering::SeqCst), 0, "nothing is durable");
    });
    let after = disk.crash();
    server.abandon();
    let restarted = Running::on_disk(&after, 100);
    let mut client = restarted.client();
    client.check("test", r#"{"count": "c", "query": {"n": 1}}"#, r#"{"n": 15, "ok": 1.0}"#);
    client.check("test", r#"{"count": "d"}"#, r#"{"n": 5, "ok": 1.0}"#);
}
