//! Lists the states that are kept so that changes can be undone: they are why a collection gives
//! back less than was dropped.

use std::collections::HashSet;

use frond_db::inside::catalog_view::read_entry;
use frond_db::inside::refs::repositories;
use frond_db::inside::{CatalogEntry, Error, Frond, Reader, RepositoryRecord, TreeRef};
use frond_store::ChunkHash;
use frond_tree::{Bounds, Direction, Tree, TreeFormat};

use crate::history;
use crate::repository::Repository;
use crate::state::BranchState;
use crate::undo::dropped;

/// The changes that can be undone, and the space that this takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Undoable {
    /// Changes of branches and tags that are remembered.
    pub changes: u64,
    /// Dropped collections that can come back, those of dropped databases and deleted or reset
    /// branches too.
    pub collections: u64,
    /// Dropped databases that can come back.
    pub databases: u64,
    /// Bytes of documents and indexes of what was dropped, uncompressed; what is in commits, too.
    pub bytes: u64,
    /// The time when the oldest and the newest of all these were made: milliseconds since 1970.
    pub times_millis: Option<(i64, i64)>,
}

impl Undoable {
    fn note_time(&mut self, millis: i64) {
        let (oldest, newest) = self.times_millis.unwrap_or((millis, millis));
        self.times_millis = Some((oldest.min(millis), newest.max(millis)));
    }
}

/// Adds collections up, each tree once.
struct Sum<'a> {
    reader: &'a Reader<'a>,
    seen: HashSet<ChunkHash>,
    kept: Undoable,
}

impl Sum<'_> {
    fn collection(&mut self, entry: &CatalogEntry, format: TreeFormat) -> Result<(), Error> {
        if !self.seen.insert(entry.documents) {
            return Ok(());
        }
        self.kept.collections += 1;
        let indexes = entry.indexes.iter().map(|(_, root)| *root);
        for root in std::iter::once(entry.documents).chain(indexes) {
            let tree = Tree { root, format };
            self.kept.bytes += self.reader.bytes(TreeRef::Committed(tree))?;
        }
        Ok(())
    }

    fn catalog(&mut self, catalog: Tree) -> Result<(), Error> {
        let place = TreeRef::Committed(catalog);
        for entry in self.reader.range(place, Bounds::all(), Direction::Ascending)? {
            let entry = read_entry(&**self.reader.store(), &entry?.value)?;
            self.collection(&entry, catalog.format)?;
        }
        Ok(())
    }

    /// Leaves out chunks that are needed anyway.
    fn leave_out(&mut self, database: &Repository, format: TreeFormat) -> Result<(), Error> {
        for branch in database.branches_at(self.reader)? {
            let name = database.repository_name();
            let state = BranchState::read(self.reader, name, &branch.name)?;
            if let Some(head) = state.head_chunk() {
                let root = history::load(&**self.reader.store(), head)?.catalog.root;
                let place = TreeRef::Committed(Tree { root, format });
                for entry in self.reader.range(place, Bounds::all(), Direction::Ascending)? {
                    let entry = read_entry(&**self.reader.store(), &entry?.value)?;
                    self.seen.insert(entry.documents);
                }
            }
        }
        Ok(())
    }

    fn repository(
        &mut self,
        database: &Repository,
        repository: &RepositoryRecord,
    ) -> Result<(), Error> {
        let format = repository.format();
        self.leave_out(database, format)?;
        for change in database.reflog(None)? {
            self.kept.changes += 1;
            self.kept.note_time(change.time_millis);
            let Some(lost) = change.lost else { continue };
            match change.collection {
                Some(_) => {
                    let entry = CatalogEntry::decode(&self.reader.store().get(lost)?)?;
                    self.collection(&entry, format)?;
                }
                None => self.catalog(Tree { root: lost, format })?,
            }
        }
        Ok(())
    }
}

/// Returns the changes that can be undone, and the space that this takes.
///
/// # Errors
/// `Damaged` if it can't be read.
pub fn undoable(frond: &Frond) -> Result<Undoable, Error> {
    let reader = Reader::now(frond.engine());
    let mut sum = Sum { reader: &reader, seen: HashSet::new(), kept: Undoable::default() };
    for (name, repository) in repositories(&reader)? {
        let database = Repository::default_branch_of(frond, name)?;
        sum.repository(&database, &repository)?;
    }
    for (millis, catalogs) in dropped::kept(&reader)? {
        sum.kept.databases += 1;
        sum.kept.note_time(millis);
        catalogs.into_iter().try_for_each(|catalog| sum.catalog(catalog))?;
    }
    Ok(sum.kept)
}
