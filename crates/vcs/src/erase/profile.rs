//! The profiler's records of commands, emptied by an erase.
//!
//! A command that is recorded there may hold erased data anywhere in it: all records go, of every
//! branch. As with any document that is erased from a capped collection, the places stay behind,
//! and go as the collection turns over.

use frond_db::inside::{CatalogEntry, Error};
use frond_engine::Transaction;
use frond_tree::Tree;

use crate::repository::Repository;
use crate::state::BranchState;

/// The collection in which the server records a database's commands.
const COLLECTION: &str = "system.profile";

impl Repository {
    /// Empties each branch's.
    ///
    /// # Errors
    /// As the transaction's `set_base` and `put`; `Unavailable` if the store takes no empty tree.
    pub(super) fn empty_profiles(&self, transaction: &mut Transaction) -> Result<(), Error> {
        let (name, engine) = (self.repository_name(), self.frond().engine());
        for branch in self.list_branches()? {
            let state = BranchState::validated(self.frond(), transaction, name, &branch.name)?;
            let found = state
                .live()
                .find(|(collection, live)| *collection == COLLECTION && !live.is_versioned());
            let Some((_, live)) = found else { continue };
            let store = &**engine.store();
            let documents = Tree::empty(store, state.repository.format())?;
            let mut indexes = Vec::with_capacity(live.indexes.len());
            for index in &live.indexes {
                let format = index.spec.tree(documents.root, documents.format).format;
                indexes.push((index.spec.clone(), Tree::empty(store, format)?.root));
            }
            let emptied = CatalogEntry::new(live.options.clone(), documents.root, indexes);
            state.rebase(engine, transaction, COLLECTION, live, None, &emptied)?;
        }
        Ok(())
    }
}
