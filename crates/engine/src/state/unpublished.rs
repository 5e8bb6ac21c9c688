//! Unpublished bases: those that a restart doesn't find yet, which the next flush publishes.
//!
//! *Invariants*:
//! 1. A tree that got another base, or was dropped, is in the list until a flush has published
//!    that. Its generation is in the State before the tree is in the list, so that a flush that
//!    takes the list finds the generation.
//! 2. The root of a base that a record of the log gives a tree is kept until the published horizon
//!    reaches the record, whatever became of the tree since: a restart may lay what differs over
//!    it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use frond_store::ChunkHash;
use frond_tree::Tree;

use crate::ids::{Sequence, TreeId};

const NO_PANIC: &str = "no panic while the lock is held";

/// The bases that are not published.
pub(crate) struct UnpublishedBases {
    /// A tree that was only written to isn't here: it is found in the memtables.
    trees: Mutex<BTreeSet<TreeId>>,
    /// The roots of the bases that the log names, each with its record's Sequence.
    logged: Mutex<Vec<(Sequence, ChunkHash)>>,
}

impl UnpublishedBases {
    /// Those that an opening found in the log.
    pub fn found(trees: BTreeSet<TreeId>, logged: Vec<(Sequence, ChunkHash)>) -> UnpublishedBases {
        UnpublishedBases { trees: Mutex::new(trees), logged: Mutex::new(logged) }
    }

    /// Notes the bases of a record. They are in the State already.
    pub fn note_logged(&self, sequence: Sequence, bases: &[(TreeId, Option<Tree>)]) {
        let roots = bases.iter().filter_map(|(_, base)| Some((sequence, (*base)?.root)));
        self.logged().extend(roots);
        self.note(bases.iter().map(|(tree, _)| *tree));
    }

    /// Notes that these trees' bases are to be published.
    pub fn note(&self, trees: impl IntoIterator<Item = TreeId>) {
        self.trees().extend(trees);
    }

    /// Takes the trees whose bases are to be published; a flush that can't publish them notes them
    /// again.
    pub fn take(&self) -> BTreeSet<TreeId> {
        std::mem::take(&mut *self.trees())
    }

    /// Forgets what records up to `horizon` name: a restart reads them no more.
    pub fn forget_logged(&self, horizon: Sequence) {
        self.logged().retain(|(sequence, _)| horizon < *sequence);
    }

    /// The roots of bases that a restart may read from the log.
    pub fn logged_roots(&self) -> Vec<ChunkHash> {
        self.logged().iter().map(|(_, root)| *root).collect()
    }

    fn trees(&self) -> MutexGuard<'_, BTreeSet<TreeId>> {
        self.trees.lock().expect(NO_PANIC)
    }

    fn logged(&self) -> MutexGuard<'_, Vec<(Sequence, ChunkHash)>> {
        self.logged.lock().expect(NO_PANIC)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use frond_testkit::SimDisk;
    use frond_tree::{Entry, Tree, Value};

    use crate::{Durability, Engine, EngineOptions, TreeId};

    fn open(disk: &SimDisk) -> Engine {
        let options = EngineOptions { fold_threads: 0, ..EngineOptions::default() };
        Engine::open(&disk.machine(), options).expect("it opens")
    }

    /// A tree that is nothing but its base.
    fn tree_of(engine: &Engine, count: u8) -> TreeId {
        let tree = engine.reserve_tree_id();
        let mut entries = (0..count)
            .map(|key| Ok(Entry { key: Bytes::from(vec![key]), value: Value::inline("v") }));
        let base = Tree::build(&**engine.store(), engine.local_format(), &mut entries);
        let mut transaction = engine.begin();
        transaction.set_base(tree, base.expect("built")).expect("set");
        transaction.commit(Durability::Synced).expect("committed");
        tree
    }

    /// No memtable knows of a tree that got a base, or was dropped, and nothing else.
    #[test]
    fn bases_that_one_flush_missed_the_next_publishes() {
        for fails in [false, true] {
            let disk = SimDisk::new(1);
            let engine = open(&disk);
            let dropped = tree_of(&engine, 2);
            engine.checkpoint().expect("there is room");
            let made = tree_of(&engine, 3);
            let mut transaction = engine.begin();
            transaction.drop_tree(dropped).expect("it is there");
            transaction.commit(Durability::Synced).expect("committed");
            let (disk, engine) = if fails {
                disk.fill_after(0);
                assert!(engine.flush().expect_err("the disk is full").is_full());
                disk.make_room();
                (disk, engine)
            } else {
                drop(engine);
                let after = disk.kill();
                let engine = open(&after);
                (after, engine)
            };
            engine.flush().expect("there is room");
            drop(engine);
            let engine = open(&disk.kill());
            let snapshot = engine.snapshot();
            assert_eq!(snapshot.count(made).expect("it is there"), 3, "a flush fails: {fails}");
            assert!(snapshot.count(dropped).is_err(), "a flush fails: {fails}");
        }
    }
}
