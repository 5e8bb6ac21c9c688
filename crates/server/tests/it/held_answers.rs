//! Goal: a write is answered when it is durable, not before, and reads go on meanwhile.
//! Method: a disk whose syncs wait until the test lets them, writes of all kinds by many clients,
//! and a power cut as soon as the last is answered.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use frond_server::ServerOptions;
use frond_store::io::{Disk, DiskFile, Machine};
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient};

/// Syncs wait while it is closed.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = is_closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(is_closed, |is_closed| *is_closed));
    }
}

/// Opens it where the test fails: its clients would wait for ever.
struct OpensAtEnd<'a>(&'a Gate);

impl Drop for OpensAtEnd<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

struct GatedDisk(Arc<dyn Disk>, Arc<Gate>);

struct GatedFile(Arc<dyn DiskFile>, Arc<Gate>);

impl GatedDisk {
    fn gated(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(GatedFile(file, Arc::clone(&self.1)))
    }
}

impl Disk for GatedDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.0.create(name).map(|file| self.gated(file))
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.0.open(name).map(|file| self.gated(file))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }
    fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }
    fn unlock(&self) {
        self.0.unlock();
    }
}

impl DiskFile for GatedFile {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.1.pass();
        self.0.sync()
    }
    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.0.set_bytes(bytes)
    }
    fn bytes(&self) -> io::Result<u64> {
        self.0.bytes()
    }
}

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
    let machine = disk.machine();
    let gated = Arc::new(GatedDisk(Arc::clone(&machine.disk), Arc::clone(&gate)));
    let machine = Machine { disk: gated, ..machine };
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
        gate.set(true);
        let _opens = OpensAtEnd(&gate);
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
