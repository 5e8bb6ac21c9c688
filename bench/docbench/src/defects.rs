//! Defects that are put into a target, and must be found: a changed answer, a stall, a write not
//! synced.
//!
//! Goal: a benchmark that can't see a broken database measures nothing. Method: SQLite, with one
//! defect between it and the workload.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bson::{Bson, Document};
use bytes::Bytes;

use crate::drive::{Client, Operation, Span, open_loop};
use crate::machine;
use crate::progress::Progress;
use crate::query::{Change, CollectionSpec, IndexSpec, Kind, Query};
use crate::random::Random;
use crate::results::{Recorder, Status};
use crate::scale::Scale;
use crate::sync_check;
use crate::target::{About, Durability, Encoded, Failure, Session, Target};
use crate::targets::Settings;
use crate::targets::sqlite::Sqlite;
use crate::workload::{Context, Parameters};
use crate::workloads;

/// A planted defect of a target.
#[derive(Clone)]
enum Defect {
    /// Every so many reads a letter of the answer is another.
    ChangedAnswer { every: u64, reads: Arc<AtomicU64> },
    /// Every so many writes one is acknowledged and not made.
    LostWrite { every: u64, writes: Arc<AtomicU64> },
    /// All replies wait until the end of this time.
    Stall { begin: Instant, from: Duration, to: Duration },
}

struct Broken {
    inner: Sqlite,
    defect: Defect,
}

impl Target for Broken {
    fn about(&self) -> &About {
        self.inner.about()
    }

    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(BrokenSession { inner: self.inner.session()?, defect: self.defect.clone() }))
    }

    fn encode(&self, document: &Document) -> Result<Bytes, Failure> {
        self.inner.encode(document)
    }

    fn decode(&self, bytes: &[u8]) -> Result<Document, Failure> {
        self.inner.decode(bytes)
    }

    fn settle(&self) -> Result<(), Failure> {
        self.inner.settle()
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.inner.disk_bytes()
    }

    fn processes(&self) -> Vec<u32> {
        self.inner.processes()
    }
}

struct BrokenSession {
    inner: Box<dyn Session>,
    defect: Defect,
}

impl Session for BrokenSession {
    fn create(&mut self, collection: &CollectionSpec) -> Result<(), Failure> {
        self.inner.create(collection)
    }

    fn create_index(&mut self, collection: &str, index: &IndexSpec) -> Result<(), Failure> {
        self.inner.create_index(collection, index)
    }

    fn insert(&mut self, collection: &str, documents: &[Encoded]) -> Result<(), Failure> {
        self.inner.insert(collection, documents)
    }

    fn get(&mut self, collection: &str, id: &Bson) -> Result<Option<Bytes>, Failure> {
        if let Defect::Stall { begin, from, to } = &self.defect
            && begin.elapsed() >= *from
            && let Some(rest) = to.checked_sub(begin.elapsed())
        {
            std::thread::sleep(rest);
        }
        let found = self.inner.get(collection, id)?;
        if let (Defect::ChangedAnswer { every, reads }, Some(bytes)) = (&self.defect, &found)
            && (reads.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(*every)
        {
            let mut changed = bytes.to_vec();
            // The last letter of the last value: `..."}`.
            let at = changed.len() - 3;
            changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
            return Ok(Some(changed.into()));
        }
        Ok(found)
    }

    fn find(
        &mut self,
        query: &Query,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        self.inner.find(query, each)
    }

    fn update(&mut self, collection: &str, id: &Bson, changes: &[Change]) -> Result<u64, Failure> {
        if let Defect::LostWrite { every, writes } = &self.defect
            && (writes.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(*every)
        {
            return Ok(1);
        }
        self.inner.update(collection, id, changes)
    }

    fn modify(
        &mut self,
        collection: &str,
        id: &Bson,
        changes: &[Change],
    ) -> Result<Option<Bytes>, Failure> {
        self.inner.modify(collection, id, changes)
    }

    fn remove_first(&mut self, query: &Query) -> Result<Option<Bytes>, Failure> {
        self.inner.remove_first(query)
    }

    fn copy(&mut self, from: &str, to: &str, change: &Change) -> Result<(), Failure> {
        self.inner.copy(from, to, change)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.inner.begin()
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.inner.commit()
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.inner.rollback()
    }
}

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("docbench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory can be written");
        Directory(path)
    }

    fn settings(&self) -> Settings<'_> {
        Settings { directory: &self.0, cache_bytes: 16 << 20, delay: Duration::ZERO }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns YCSB's verdict on a target with this defect.
fn verdict(name: &str, defect: Defect) -> Vec<(Status, String)> {
    let directory = Directory::new(name);
    let inner = Sqlite::start(&directory.settings()).expect("SQLite starts");
    let broken = Broken { inner, defect };
    let workload = workloads::find("ycsb").expect("it is a workload");
    let mut recorder = Recorder::new("ycsb");
    let values = [("ycsb.records", "200"), ("ycsb.clients-max", "1")];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let done = workload.run(&mut Context {
        subject: "broken",
        scale: Scale::Smoke,
        parameters: &Parameters(values.into_iter().collect()),
        seed: 1,
        progress: &Progress::new(1),
        recorder: &mut recorder,
        database: Some(&broken),
        cold: None,
    });
    if let Err(failure) = done {
        recorder.fault("broken", &failure);
    }
    let rows = recorder.finish().expect("rows can be written");
    rows.into_iter().map(|row| (row.status, row.reason.unwrap_or_default())).collect()
}

#[test]
fn a_changed_answer_disqualifies() {
    let reads = Arc::new(AtomicU64::new(0));
    let rows = verdict("changed", Defect::ChangedAnswer { every: 300, reads });
    assert!(!rows.is_empty());
    for (status, reason) in rows {
        assert_eq!(status, Status::Wrong, "{reason}");
        assert!(reason.contains("field"), "{reason}");
    }
}

#[test]
fn a_lost_write_disqualifies() {
    let writes = Arc::new(AtomicU64::new(0));
    let rows = verdict("lost", Defect::LostWrite { every: 10, writes });
    assert!(!rows.is_empty());
    for (status, reason) in rows {
        assert_eq!(status, Status::Wrong, "{reason}");
    }
}

/// Reads one document again and again.
struct Reading {
    session: Box<dyn Session>,
}

impl Client for Reading {
    fn operate(&mut self, _: &mut Random) -> Result<Operation, Failure> {
        self.session.get("c", &Bson::Int64(1)).map(|_| "read")
    }
}

#[test]
fn a_stall_of_100_ms_shows_in_the_open_loop() {
    let directory = Directory::new("stall");
    let inner = Sqlite::start(&directory.settings()).expect("SQLite starts");
    let collection = CollectionSpec::new("c", Kind::Integer);
    inner.session().and_then(|mut session| session.create(&collection)).expect("it can be made");
    let span = Span {
        warm_up: Duration::from_millis(200),
        measured: Duration::from_millis(1_000),
        seed: 1,
    };
    // In the midst of the measured time, whatever connecting takes.
    let (from, to) = (Duration::from_millis(700), Duration::from_millis(800));
    let broken = Broken { inner, defect: Defect::Stall { begin: Instant::now(), from, to } };
    let clients = (0..8).map(|_| {
        let session = broken.session().expect("a file can be opened");
        Box::new(Reading { session }) as Box<dyn Client>
    });
    let mut clients: Vec<_> = clients.collect();
    let measured = open_loop(&mut clients, 300.0, span).expect("nothing fails");
    assert!(measured.millis_at(0.999) >= 80.0, "{}", measured.millis_at(0.999));
}

#[test]
fn writes_that_are_not_synced_are_found() {
    for (synchronous, is_synced) in [("full", true), ("off", false)] {
        let directory = Directory::new(synchronous);
        let counted = machine::counts_flushes(&directory.0);
        let target = Sqlite::start_with(&directory.settings(), synchronous);
        let target = target.expect("SQLite starts");
        let found = sync_check::check(&target, &directory.0, counted).expect("nothing fails");
        let verdict = found.verdict(Durability::Synced);
        // Where the disk counts nothing, no target is accused.
        let expected = is_synced || !counted;
        assert_eq!(verdict.is_ok(), expected, "synchronous = {synchronous}: {found:?}");
    }
}
