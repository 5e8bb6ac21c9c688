//! Branches: a branch is one record, so making one costs nothing.
//!
//! A branch begins at a commit, never at changes that aren't committed. Deleting one takes its
//! working trees and its waiting merge with it; its commits stay, and so does its reflog.

mod rename;

use frond_db::inside::refs::{self, format};
use frond_db::inside::{
    BranchRef, Error, EventKind, LatchMode, Outcome, Reader, Scope, TreeRef, system,
};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::{Bounds, Direction, Tree, Value};

use crate::adopt::Adoption;
use crate::history::base;
use crate::merge::waiting;
use crate::refs::ref_name;
use crate::refs::reflog::{DELETED, Lost, RefChange, RefWhy};
use crate::refs::tag;
use crate::repository::Repository;
use crate::state::BranchState;
use crate::{BranchInfo, adopt, conflict, history, policy};

impl Repository {
    /// The branches, by name.
    ///
    /// # Errors
    /// `Damaged` if a ref or its key isn't one; `Unavailable` if the disk doesn't answer.
    pub fn list_branches(&self) -> Result<Vec<BranchInfo>, Error> {
        self.branches_at(&self.reader())
    }

    /// The branches in the moment of `reader`.
    pub(crate) fn branches_at(&self, reader: &Reader<'_>) -> Result<Vec<BranchInfo>, Error> {
        let prefix = system::branches_prefix(self.repository_name());
        let place = TreeRef::Live(TreeId::SYSTEM);
        let mut branches = Vec::new();
        for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
            let entry = entry?;
            let name = system::name_after(&prefix, &entry.key)?;
            let head = BranchRef::decode(reader.read(&entry.value)?)?.commit;
            branches.push(BranchInfo { name, head });
        }
        Ok(branches)
    }

    /// Makes a branch at `start` (default: this version's commit; never dirty state). O(1). With
    /// `WORKING@{TIME}` it is what this branch was then, changes that weren't committed included:
    /// that costs what was written around that moment.
    ///
    /// # Errors
    /// `BadValue` if the name is not allowed or `start` names no commit; `SnapshotTooOld` if it
    /// names a moment that isn't kept; `NamespaceExists` if there is such a branch;
    /// `NamespaceNotFound` if there is no such database.
    pub fn create_branch(&self, name: &str, start: Option<&str>) -> Result<BranchInfo, Error> {
        ref_name::check_name(name)?;
        let repository = self.repository_name();
        let scope = Scope::branch(repository, name);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let past = start.map(|start| self.working_past(start)).transpose()?.flatten();
            let head = {
                let reader = Reader::within(self.frond().engine(), transaction);
                if refs::repository(&reader, repository)?.is_none() {
                    return Err(refs::missing(repository));
                }
                check_is_free(&reader, repository, name)?;
                match &past {
                    Some(past) => past.head(&reader, repository)?,
                    None => self.revision_or_nothing(&reader, start.unwrap_or(history::HEAD))?,
                }
            };
            self.check_named(transaction, (None, name), head)?;
            let head = head.map(format::id_of);
            transaction.validate(TreeId::SYSTEM, system::repository_key(repository));
            transaction.validate(TreeId::SYSTEM, system::tag_key(repository, name));
            let record = Value::inline(BranchRef { commit: head }.encode());
            transaction.put(TreeId::SYSTEM, system::branch_key(repository, name), record)?;
            let why = format!("branch: created from {}", start.unwrap_or(history::HEAD));
            let why = RefWhy::plain(&why, self.frond().time_millis());
            RefChange { from: None, to: head, why }.log(transaction, repository, name)?;
            if let Some(past) = past {
                let engine = self.frond().engine();
                let state = BranchState::validated(self.frond(), transaction, repository, name)?;
                let head = state.head_catalog(&**engine.store())?;
                let adoption = Adoption { head, before: head, after: past.catalog };
                state.adopt(engine, transaction, &adoption)?;
            }
            Ok(Outcome::Commit(BranchInfo { name: name.to_owned(), head }))
        })
    }

    /// As `revision`, but a branch without commits gives `None`.
    pub(crate) fn revision_or_nothing(
        &self,
        reader: &Reader<'_>,
        text: &str,
    ) -> Result<Option<ChunkHash>, Error> {
        let repository = self.repository_name();
        if text == history::HEAD {
            return self.head(reader);
        }
        if refs::branch_ref(reader, repository, text)?.is_some() {
            return history::branch_head(reader, repository, text);
        }
        // There is only the branch that a database that doesn't exist yet will begin with.
        let is_first = text == system::DEFAULT_BRANCH;
        if is_first && refs::repository(reader, repository)?.is_none() {
            return Ok(None);
        }
        self.revision(reader, text).map(Some)
    }

    /// Deletes a branch; one that isn't merged into the default branch, or has changes that aren't
    /// committed, only with `force`.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such branch; `IllegalOperation` if it is the default
    /// branch, or `force` is needed.
    pub fn delete_branch(&self, name: &str, force: bool) -> Result<(), Error> {
        let repository = self.repository_name();
        let scope = Scope::branch(repository, name);
        let number = self.frond().begin_to_end();
        self.transact_alone(scope, LatchMode::Remover, Durability::Synced, |transaction| {
            if refs::repository(&self.reader(), repository)?.is_none() {
                return Err(history::no_branch(repository, name));
            }
            transaction.give_back();
            let state = BranchState::validated(self.frond(), transaction, repository, name)?;
            if name == state.repository.default_branch {
                let message = format!("{name} is the default branch: it can't be deleted");
                return Err(Error::invalid(Code::IllegalOperation, message));
            }
            state.refuse_protected(transaction, self, "deleting it")?;
            let engine = self.frond().engine();
            let working = state.working_catalog(engine, transaction.snapshot())?;
            if !force {
                self.check_nothing_is_lost(transaction, &state, &working)?;
            }
            // The reflog keeps what the branch had.
            let merge = waiting::remember(engine, transaction, &state)?;
            for (_, live) in state.live() {
                adopt::drop_trees(transaction, live)?;
            }
            for (collection, _) in &state.entries {
                state.delete_entry(transaction, collection)?;
            }
            state.record_unread(engine, transaction, EventKind::DropDatabase);
            conflict::clear(self.frond().engine(), transaction, repository, name)?;
            transaction.delete(TreeId::SYSTEM, system::branch_key(repository, name))?;
            let key = system::policy_key(repository, name);
            let policy = transaction
                .get(TreeId::SYSTEM, &key)?
                .is_some()
                .then(|| policy::read(&Reader::within(engine, transaction), repository, name));
            if policy.is_some() {
                transaction.delete(TreeId::SYSTEM, key)?;
            }
            let why = RefWhy {
                lost: Lost::working(working, merge.as_ref()),
                policy: policy.transpose()?,
                ..RefWhy::plain(DELETED, self.frond().time_millis())
            };
            RefChange { from: state.head_id(), to: None, why }.log(
                transaction,
                repository,
                name,
            )?;
            Ok(Outcome::Commit(()))
        })?;
        self.frond().end_cursors(repository, name, None, number);
        Ok(())
    }

    /// Refuses to delete a branch with work that would be hard to find again.
    fn check_nothing_is_lost(
        &self,
        transaction: &mut Transaction,
        state: &BranchState,
        working: &Tree,
    ) -> Result<(), Error> {
        let engine = self.frond().engine();
        let store = engine.store();
        let refuse = |why: &str| {
            let message = format!(
                "branch {} {why}: --force (forceDelete from a driver) deletes it all the same",
                state.branch
            );
            Err(Error::invalid(Code::IllegalOperation, message))
        };
        if working.root != state.head_catalog(&**store)?.root || state.merging.is_some() {
            return refuse("has changes that are not committed");
        }
        if state.live().any(|(_, live)| !live.is_versioned()) {
            return refuse("has collections that are in no commit");
        }
        let Some(head) = state.head_chunk() else {
            return Ok(());
        };
        let default = &state.repository.default_branch;
        let reader = Reader::within(engine, transaction);
        let mut load = |hash| history::load(&**store, hash);
        let is_merged = match history::branch_head(&reader, &state.database, default)? {
            Some(default_head) => base::is_ancestor(head, default_head, &mut load)?,
            None => false,
        };
        if !is_merged {
            return refuse(&format!("is not merged into {default}"));
        }
        let default_key = system::branch_key(&state.database, default);
        transaction.validate(TreeId::SYSTEM, default_key);
        Ok(())
    }
}

/// Refuses a new branch's name that something else has.
fn check_is_free(reader: &Reader<'_>, repository: &str, name: &str) -> Result<(), Error> {
    let taken = |message: String| Err(Error::invalid(Code::NamespaceExists, message));
    if refs::branch_ref(reader, repository, name)?.is_some() {
        return taken(format!("branch {name} of {repository} exists"));
    }
    if tag::target(reader, repository, name)?.is_some() {
        return taken(format!("{name} is a tag of {repository}: a branch needs another name"));
    }
    let place = TreeRef::Live(TreeId::SYSTEM);
    if let Some((remote, _)) = name.split_once('/')
        && reader.get(place, &system::remote_key(repository, remote))?.is_some()
    {
        return taken(format!(
            "{name} would be taken for a branch of the remote {remote}: a branch needs another name"
        ));
    }
    Ok(())
}
