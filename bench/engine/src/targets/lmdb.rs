//! LMDB, by heed: one named database a tree; one writer at a time, by its own lock.

use std::ops::Bound;

use heed::types::Bytes as Raw;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags};

use crate::target::{Entries, Failure, Put, Session, Settings, Target, VisitEntry, VisitValue};

/// Address space, not memory: more than any run needs.
const MAP_BYTES: usize = 256 << 30;
const READERS_MAX: u32 = 256;
/// A load commits so often: a transaction's pages are all in memory.
const LOAD_BYTES: usize = 64 << 20;

/// An open environment; it stays open as long as the process lives.
pub struct Lmdb {
    environment: &'static Env,
    trees: Vec<Database<'static, Raw, Raw>>,
}

impl Lmdb {
    /// Opens an empty directory.
    #[expect(unsafe_code, reason = "LMDB maps its file")]
    pub fn open(settings: &Settings<'_>) -> Result<Lmdb, Failure> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_dbs(settings.tree_count as u32).max_readers(READERS_MAX);
        // SAFETY: the flag changes what the system reads ahead, which the manual advises where data
        // exceed memory. The directory was made for this process alone: no other process
        // changes the mapped file.
        let environment =
            unsafe { options.flags(EnvFlags::NO_READ_AHEAD).open(settings.directory)? };
        let environment: &'static Env = Box::leak(Box::new(environment));
        let mut trees = Vec::new();
        for tree in 0..settings.tree_count {
            let name = tree.to_string();
            let transaction = environment.write_txn()?;
            let made =
                environment.create_databases_and_commit(transaction, |opener, created| {
                    let database = opener.create_database::<Raw, Raw>(created, Some(&name))?;
                    Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(database))
                })?;
            trees.push(made.commit().ok_or("LMDB made no database")?);
        }
        Ok(Lmdb { environment, trees })
    }
}

impl Target for Lmdb {
    fn description(&self) -> String {
        "LMDB 0.9.70 (heed 0.23): a named database for each tree, synced, no read-ahead; it has no cache of its own \
         that could be limited"
            .to_owned()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, Failure> {
        Ok(Box::new(LmdbSession(self)))
    }

    fn rest(&self) -> Result<(), Failure> {
        Ok(()) // Nothing waits.
    }

    fn load(&self, tree: usize, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let mut transaction = self.environment.write_txn()?;
        let mut bytes = 0;
        for (key, value) in entries {
            self.trees[tree].put_with_flags(&mut transaction, PutFlags::APPEND, &key, &value)?;
            bytes += key.len() + value.len();
            if bytes >= LOAD_BYTES {
                transaction.commit()?;
                transaction = self.environment.write_txn()?;
                bytes = 0;
            }
        }
        Ok(transaction.commit()?)
    }
}

struct LmdbSession<'a>(&'a Lmdb);

impl Session for LmdbSession<'_> {
    fn write(&mut self, puts: &[Put]) -> Result<(), Failure> {
        let mut transaction = self.0.environment.write_txn()?;
        for put in puts {
            self.0.trees[put.tree].put(&mut transaction, &put.key, &put.value)?;
        }
        Ok(transaction.commit()?)
    }

    fn get(
        &mut self,
        tree: usize,
        key: &[u8],
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Failure> {
        let transaction = self.0.environment.read_txn()?;
        let value = self.0.trees[tree].get(&transaction, key)?;
        value.into_iter().for_each(&mut *visit);
        Ok(value.is_some())
    }

    fn range(
        &mut self,
        tree: usize,
        from: &[u8],
        visit: &mut VisitEntry<'_>,
    ) -> Result<(), Failure> {
        let transaction = self.0.environment.read_txn()?;
        let bounds = (Bound::Included(from), Bound::Unbounded);
        for entry in self.0.trees[tree].range(&transaction, &bounds)? {
            let (key, value) = entry?;
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }
}
