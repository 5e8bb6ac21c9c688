//! fjall: one keyspace a tree, batches over all of them.

use std::thread;
use std::time::Duration;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::target::{Entries, Failure, Put, Session, Settings, Target, VisitEntry, VisitValue};

const POLL: Duration = Duration::from_millis(20);
/// A compaction that ends may make the next one due: so many quiet looks in a row are rest.
const QUIET_LOOKS: u32 = 10;

/// An open database.
pub struct Fjall {
    database: Database,
    keyspaces: Vec<Keyspace>,
    memtable_bytes: u64,
}

impl Fjall {
    /// Opens an empty directory.
    pub fn open(settings: &Settings<'_>) -> Result<Fjall, Failure> {
        let database = Database::builder(settings.directory)
            .cache_size(settings.cache_bytes)
            .worker_threads(2)
            .open()?;
        let options =
            || KeyspaceCreateOptions::default().max_memtable_size(settings.write_buffer_bytes);
        let keyspaces: Result<Vec<Keyspace>, fjall::Error> = (0..settings.tree_count)
            .map(|tree| database.keyspace(&format!("tree-{tree}"), options))
            .collect();
        let keyspaces = keyspaces?;
        Ok(Fjall { database, keyspaces, memtable_bytes: settings.write_buffer_bytes })
    }
}

impl Target for Fjall {
    fn description(&self) -> String {
        format!(
            "fjall 3.1: a keyspace for each tree, LZ4, memtables of {} MB each, 2 workers",
            self.memtable_bytes >> 20
        )
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, Failure> {
        Ok(Box::new(FjallSession(self)))
    }

    fn rest(&self) -> Result<(), Failure> {
        for keyspace in &self.keyspaces {
            keyspace.rotate_memtable_and_wait()?;
        }
        let mut quiet = 0;
        let mut completed = self.database.compactions_completed();
        while quiet < QUIET_LOOKS {
            thread::sleep(POLL);
            let now = self.database.compactions_completed();
            let busy = self.database.active_compactions() + self.database.outstanding_flushes() > 0;
            quiet = if busy || now != completed { 0 } else { quiet + 1 };
            completed = now;
        }
        Ok(())
    }

    fn load(&self, tree: usize, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let mut ingestion = self.keyspaces[tree].start_ingestion()?;
        for (key, value) in entries {
            ingestion.write(&*key, &*value)?;
        }
        ingestion.finish()?;
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}

struct FjallSession<'a>(&'a Fjall);

impl Session for FjallSession<'_> {
    fn write(&mut self, puts: &[Put]) -> Result<(), Failure> {
        let mut batch = self.0.database.batch().durability(Some(PersistMode::SyncData));
        for put in puts {
            batch.insert(&self.0.keyspaces[put.tree], &*put.key, &*put.value);
        }
        Ok(batch.commit()?)
    }

    fn get(
        &mut self,
        tree: usize,
        key: &[u8],
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Failure> {
        let value = self.0.keyspaces[tree].get(key)?;
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn range(
        &mut self,
        tree: usize,
        from: &[u8],
        visit: &mut VisitEntry<'_>,
    ) -> Result<(), Failure> {
        for guard in self.0.keyspaces[tree].range(from..) {
            let (key, value) = guard.into_inner()?;
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
    }
}
