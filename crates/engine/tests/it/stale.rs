//! A manifest that is older than the directory is not taken for the last one.
//!
//! *Method*: one copy of the manifest is put back as it was a while ago, as no crash leaves it, and
//! the other is damaged. What was acknowledged since is there if the log has it; where the log was
//! given back meanwhile, opening fails.

use frond_engine::{Durability, EngineError};
use frond_store::{Chunk, ChunkKind, MANIFEST_NAMES, StoreError};
use frond_testkit::SimDisk;

use crate::rig::{get, make_trees, open, put, quiet};

#[test]
fn an_older_manifest_is_believed_where_the_log_has_the_rest() {
    for behind in MANIFEST_NAMES {
        for (gives_back, goes_on) in [(false, false), (true, false), (true, true)] {
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
            if goes_on {
                write("last");
            }
            engine.close().unwrap();
            drop(engine);
            disk.set_contents(behind, &old);
            for name in MANIFEST_NAMES.into_iter().filter(|name| *name != behind) {
                disk.make_unreadable(name);
            }
            let context = format!("{behind} {gives_back} {goes_on}");
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
