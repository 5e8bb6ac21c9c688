//! redb: one table a tree; one writer at a time, by its own lock.

use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use crate::target::{Entries, Failure, Put, Session, Settings, Target, VisitEntry, VisitValue};

const NAMES: [&str; 5] = ["tree-0", "tree-1", "tree-2", "tree-3", "tree-4"];

fn table(tree: usize) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(NAMES[tree])
}

/// An open database.
pub struct Redb {
    database: Database,
}

impl Redb {
    /// Opens an empty directory.
    pub fn open(settings: &Settings<'_>) -> Result<Redb, Failure> {
        let cache_bytes = usize::try_from(settings.cache_bytes)?;
        let file = settings.directory.join("redb");
        let database = Database::builder().set_cache_size(cache_bytes).create(file)?;
        let transaction = database.begin_write()?;
        for tree in 0..settings.tree_count {
            transaction.open_table(table(tree))?;
        }
        transaction.commit()?;
        Ok(Redb { database })
    }
}

impl Target for Redb {
    fn description(&self) -> String {
        "redb 4.4: a table for each tree, Durability::Immediate".to_owned()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, Failure> {
        Ok(Box::new(RedbSession(self)))
    }

    fn rest(&self) -> Result<(), Failure> {
        Ok(()) // Nothing waits.
    }

    fn load(&self, tree: usize, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let transaction = self.database.begin_write()?;
        {
            let mut table = transaction.open_table(table(tree))?;
            for (key, value) in entries {
                table.insert(&*key, &*value)?;
            }
        }
        Ok(transaction.commit()?)
    }
}

struct RedbSession<'a>(&'a Redb);

impl Session for RedbSession<'_> {
    fn write(&mut self, puts: &[Put]) -> Result<(), Failure> {
        let mut transaction = self.0.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        for tree in 0..NAMES.len() {
            let mut of_tree = puts.iter().filter(|put| put.tree == tree).peekable();
            if of_tree.peek().is_some() {
                let mut table = transaction.open_table(table(tree))?;
                for put in of_tree {
                    table.insert(&*put.key, &*put.value)?;
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(
        &mut self,
        tree: usize,
        key: &[u8],
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Failure> {
        let transaction = self.0.database.begin_read()?;
        let value = transaction.open_table(table(tree))?.get(key)?;
        if let Some(value) = &value {
            visit(value.value());
        }
        Ok(value.is_some())
    }

    fn range(
        &mut self,
        tree: usize,
        from: &[u8],
        visit: &mut VisitEntry<'_>,
    ) -> Result<(), Failure> {
        let transaction = self.0.database.begin_read()?;
        let table = transaction.open_table(table(tree))?;
        for entry in table.range(from..)? {
            let (key, value) = entry?;
            if !visit(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }
}
