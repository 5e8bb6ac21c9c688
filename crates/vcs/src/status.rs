//! Computes the answer of `frondStatus`: the working state against HEAD, and the merge that waits.

use frond_db::inside::{Error, refs};
use frond_store::Headroom;

use crate::diff::{CHECK_EVERY_CHANGES, changed_collections};
use crate::repository::Repository;
use crate::{CollectionStatus, Status, conflict};

impl Repository {
    /// Returns how the working state differs from HEAD. Changed documents are counted, not read.
    ///
    /// # Errors
    /// `IllegalOperation` if this is a commit; `NamespaceNotFound` if the branch is gone.
    pub fn status(&self) -> Result<Status, Error> {
        self.refuse_in_transaction("comparing a working state")?;
        let branch = self.working_branch()?.to_owned();
        let reader = self.reader();
        if refs::repository(&reader, self.repository_name())?.is_none() {
            return Ok(Status {
                branch,
                head: None,
                collections: Vec::new(),
                merging: None,
                operation: None,
                conflicts: Vec::new(),
            });
        }
        let state = self.branch_state(&reader)?;
        let store = reader.store();
        let head = state.head_catalog(&**store)?;
        // On a disk that is full but for its reserve this shows what could be given up.
        let _at = Headroom::Collection.enter();
        let (engine, interrupt) = (self.frond().engine(), self.interrupt());
        let working = state.working_catalog_while(engine, reader.snapshot()?, interrupt)?;
        let mut collections = Vec::new();
        for changed in changed_collections(store, &head, &working)? {
            let mut status = CollectionStatus {
                collection: changed.name.clone(),
                change: changed.change(),
                added: 0,
                removed: 0,
                modified: 0,
            };
            for (position, change) in changed.documents(store)?.enumerate() {
                if position.is_multiple_of(CHECK_EVERY_CHANGES) {
                    interrupt.check()?;
                }
                let change = change?;
                match (change.from, change.to) {
                    (Some(_), Some(_)) => status.modified += 1,
                    (Some(_), None) => status.removed += 1,
                    (None, _) => status.added += 1,
                }
            }
            collections.push(status);
        }
        Ok(Status {
            head: state.head_id(),
            collections,
            conflicts: conflict::counts(&reader, self.repository_name(), &branch)?,
            operation: state.merging.as_ref().map(|merge| merge.kind.verb()),
            merging: state.merging.map(|merge| merge.theirs),
            branch,
        })
    }
}
