//! Checks whether undoable states hold the data to be erased: commits that no branch reaches any
//! more, working states that were replaced, collections and databases that were dropped.
//!
//! These are the chunks that the system tree's records of commits, reflogs and dropped databases of
//! the name refer to. Each is searched as a version is; none is changed, since all are forgotten
//! together.

use frond_db::inside::{CatalogEntry, Error, ErrorKind, Reader, TreeRef, system};
use frond_engine::TreeId;
use frond_store::{Chunk, ChunkHash, ChunkKind};
use frond_tree::{Bounds, Direction, Tree};

use crate::erase::rewrite::Rewrite;
use crate::history::{self, walk::Walk};
use crate::repository::Repository;

impl Repository {
    /// The chunks by which what can be undone holds the erased. A chunk that can't be read may hold
    /// it.
    pub(crate) fn past_holding(
        &self,
        reader: &Reader<'_>,
        rewrite: &mut Rewrite<'_>,
    ) -> Result<Vec<ChunkHash>, Error> {
        let store = reader.store();
        let (mut held, mut commits) = (Vec::new(), Vec::new());
        for hash in self.remembered(reader)? {
            let chunk = store.get(hash)?;
            match chunk.kind() {
                ChunkKind::Commit => commits.push(hash),
                // A dropped database's list of its commits.
                ChunkKind::Blob => commits.extend(chunk.references()),
                _ => {}
            }
            match holds(rewrite, &chunk) {
                Ok(false) => {}
                Ok(true) => held.push(hash),
                Err(error) if error.kind == ErrorKind::Damaged => held.push(hash),
                Err(error) => return Err(error),
            }
        }
        let mut walk = Walk::begin(store, &commits, &[], false)?;
        while let Some((hash, commit)) = walk.next()? {
            if rewrite.catalog(commit.catalog, None)?.root != commit.catalog.root {
                held.extend([hash, commit.catalog.root]);
            }
        }
        Ok(held)
    }

    /// Returns the chunks that the records of commits, reflogs and dropped databases of the name
    /// refer to.
    fn remembered(&self, reader: &Reader<'_>) -> Result<Vec<ChunkHash>, Error> {
        let name = self.repository_name();
        let place = TreeRef::Live(TreeId::SYSTEM);
        let mut remembered = history::recorded_commits(reader, name)?;
        for prefix in [system::reflogs_prefix(name), system::dropped_prefix(name)] {
            for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
                remembered.extend(system::references_of(&**reader.store(), &entry?.value)?);
            }
        }
        remembered.sort_unstable();
        remembered.dedup();
        Ok(remembered)
    }
}

/// Searches what a record refers to: a catalog, or a collection's entry.
fn holds(rewrite: &mut Rewrite<'_>, chunk: &Chunk) -> Result<bool, Error> {
    match chunk.kind() {
        ChunkKind::CatalogEntry => {
            let entry = CatalogEntry::decode(chunk)?;
            Ok(rewrite.entry(&entry, None)? != entry)
        }
        ChunkKind::MapNode => {
            let catalog = Tree { root: chunk.hash(), format: rewrite.format };
            Ok(rewrite.catalog(catalog, None)?.root != catalog.root)
        }
        _ => Ok(false),
    }
}
