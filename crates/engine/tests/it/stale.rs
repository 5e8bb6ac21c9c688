//! A directory's records of its own content aren't believed where they are older than the
//! directory, or where the things they name are gone.
//!
//! *Method*: one copy of the manifest is put back as it was a while ago, as no crash leaves it, and
//! the other is damaged. Writes acknowledged since are there if the log has them; where the log was
//! given back meanwhile, opening fails. And of the log files are taken away.

use frond_engine::{Durability, Engine, EngineError};
use frond_store::io::Disk;
use frond_store::{Chunk, ChunkKind, MANIFEST_NAMES, StoreError};
use frond_testkit::SimDisk;

use crate::rig::{get, make_trees, open, put, quiet};

#[test]
fn an_older_manifest_is_believed_where_the_log_has_the_rest() {
    for behind in MANIFEST_NAMES {
        for (gives_back, keep_going) in [(false, false), (true, false), (true, true)] {
            let disk = SimDisk::new(1);
            let engine = open(&disk, quiet()).unwrap();
            let tree = make_trees(&engine, 1).unwrap()[0];
            let write = |value: &str| {
                let mut transaction = engine.begin();
                put(&mut transaction, tree, "key", value);
                transaction.commit(Durability::Synced).unwrap();
            };
            write("first");
            engine.checkpoint().unwrap();
            let old = disk.contents(behind).unwrap();
            write("last");
            let chunk = Chunk::new(ChunkKind::Blob, &[], b"in a later manifest");
            engine.store().put_many(std::slice::from_ref(&chunk)).unwrap();
            engine.store().swap_root("another", None, Some(chunk.hash())).unwrap();
            if gives_back {
                engine.checkpoint().unwrap();
            }
            if keep_going {
                write("last");
            }
            engine.close().unwrap();
            drop(engine);
            disk.set_contents(behind, &old);
            for name in MANIFEST_NAMES.into_iter().filter(|name| *name != behind) {
                disk.make_unreadable(name);
            }
            let context = format!("{behind} {gives_back} {keep_going}");
            match open(&disk, quiet()) {
                Ok(engine) if !gives_back => {
                    let snapshot = engine.snapshot();
                    assert_eq!(get(&snapshot, tree, "key").as_deref(), Some("last"), "{context}");
                    assert_eq!(engine.store().get(chunk.hash()).unwrap(), chunk, "{context}");
                }
                Err(EngineError::Store(StoreError::Damaged { .. })) if gives_back => {}
                other => panic!("{context}: {:?}", other.map(drop)),
            }
        }
    }
}

fn log_files(disk: &SimDisk) -> Vec<String> {
    let mut names = disk.list().unwrap();
    names.retain(|name| name.starts_with("log-"));
    names.sort();
    names
}

/// Whatever it was that a directory did last, and whichever files of its log are gone, the first of
/// them is named.
#[test]
fn a_log_segment_that_is_missing_is_reported() {
    type Step = fn(&Engine);
    let write: Step = |engine| drop(make_trees(engine, 1).unwrap());
    let checkpoint: Step = |engine| engine.checkpoint().unwrap();
    let runs: [&[&[Step]]; 6] = [
        &[&[]],
        &[&[write]],
        &[&[write, checkpoint]],
        &[&[write, checkpoint, write]],
        &[&[write], &[write], &[write]],
        &[&[write, checkpoint], &[write], &[checkpoint, write], &[write]],
    ];
    for (position, run) in runs.into_iter().enumerate() {
        let disk = SimDisk::new(1);
        for steps in run {
            let engine = open(&disk, quiet()).unwrap();
            steps.iter().for_each(|step| step(&engine));
            engine.close().unwrap();
        }
        drop(open(&disk.copy(2), quiet()).unwrap());
        let names = log_files(&disk);
        assert!(!names.is_empty(), "run {position}");
        for first in 0..names.len() {
            for end in first + 1..=names.len() {
                let lacks = disk.copy(2);
                names[first..end].iter().for_each(|name| lacks.remove(name).unwrap());
                for attempt in 0..2 {
                    let context = format!("run {position}, {first} to {end} of {names:?}");
                    match open(&lacks, quiet()).map(drop) {
                        Err(EngineError::Store(StoreError::Damaged { file, .. })) => {
                            assert_eq!(file, names[first], "{context}, attempt {attempt}");
                        }
                        other => panic!("{context}: {other:?}"),
                    }
                }
            }
        }
    }
}
