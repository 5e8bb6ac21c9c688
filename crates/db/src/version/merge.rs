//! Merging another version into a branch.
//!
//! 1. Read the branch; its working state must be HEAD's, so that every change of it is in a commit:
//!    what isn't committed yet is, first, unless the request refuses that.
//! 2. Nothing to merge if the other commit is an ancestor of HEAD. If HEAD is one of the other, the
//!    branch moves there (fast-forward), unless a merge commit is asked for.
//! 3. Otherwise merge three ways, from the best common ancestor (of several, from their merge): the collections that the other side
//!    changed since, their specifications, their documents field by field; index entries derive from
//!    the merged documents. The result is a catalog, made of trees in which only changes are new.
//! 4. Without conflicts: a commit with two parents; one transaction moves the ref and gives the live
//!    collections their new bases, so that readers see all of it at once.
//! 5. With conflicts: one transaction makes the working state the merged catalog, ours kept where both
//!    sides conflict, and stores the merge and its conflicts. The branch's HEAD stays.
//!
//! *Concurrency*: a new base conflicts with every write to its tree since the transaction's snapshot.
//! Then all runs again, with the working state that it finds.
//!
//! *Refused as a whole*, with nothing changed: a collection dropped on one side and changed on the
//! other, options or an index changed differently on both, documents that a unique index won't have
//! together. The error names them all.

use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{DocumentBuilder, Value};
use frond_engine::{Durability, Transaction};
use frond_query::Code;
use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime, PutFor};
use frond_tree::{Edit, Tree, TreeError};

use crate::contention::{Outcome, Role, Scope};
use crate::database::{self, Database};
use crate::error::{Error, ErrorKind};
use crate::reader::Reader;
use crate::version::adopt::Adoption;
use crate::version::commit::{self, AUTHOR_DEFAULT, Signature};
use crate::version::conflict::{MergeState, StoredConflict};
use crate::version::diff::changed_collections;
use crate::version::field_merge::Prefer;
use crate::version::format::{self, Commit};
use crate::version::merge_collection::{CollectionMerge, MergedCollection};
use crate::version::reflog::RefWhy;
use crate::version::state::{self, BranchState};
use crate::version::{CommitInfo, MergeOutcome, MergeRequest, conflict, history, merge_base};

/// Problems named in one error; there may be a million.
const PROBLEMS_NAMED_MAX: usize = 100;
/// How often the working state is committed before a merge that writers keep making dirty.
const DIRTY_ATTEMPTS_MAX: usize = 8;

impl Database {
    /// Merges another version into this branch. Changes that aren't committed are, first.
    ///
    /// # Errors
    /// `BadValue` if `merge_in` names no commit; `IllegalOperation` if this is a commit, the working
    /// state has changes, another merge waits, or the request wants a fast-forward only and there is
    /// none; `OperationFailed` if specifications conflict and `DuplicateKey` if unique indexes do:
    /// then nothing was changed, and the details' `conflicts` name them.
    pub fn merge(&self, request: &MergeRequest) -> Result<MergeOutcome, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let message = match &request.message {
            Some(message) => message.clone(),
            None => format!("Merge {} into {branch}", request.merge_in),
        };
        let author = request.author.as_deref().unwrap_or(AUTHOR_DEFAULT);
        let signature = Signature::new(author, &message, self.frond().now_millis())?;
        for _ in 0..DIRTY_ATTEMPTS_MAX {
            let merged = self.replace_working_state(branch, |transaction| {
                if database::repository(&self.reader(), name)?.is_none() {
                    return Err(nothing_there(&request.merge_in, name));
                }
                let state = BranchState::validated(self.frond(), transaction, name, branch)?;
                Merge { database: self, state: &state, request, signature }.run(transaction)
            })?;
            if let Some(outcome) = merged {
                return Ok(outcome);
            }
            if request.refuse_dirty {
                break;
            }
            let message = format!("Working state of {branch} before merging {}", request.merge_in);
            self.commit(&message, author)?;
        }
        let message = format!(
            "{branch} has changes that are not committed: commit them or reset the branch first"
        );
        Err(Error::invalid(Code::IllegalOperation, message))
    }

    /// Ends a merge whose conflicts are all resolved: a commit with two parents.
    ///
    /// # Errors
    /// `IllegalOperation` if no merge waits, or conflicts are left.
    pub fn merge_continue(
        &self,
        message: Option<&str>,
        author: Option<&str>,
    ) -> Result<CommitInfo, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        let scope = Scope::branch(name, branch);
        self.frond().transact(scope, Role::Writer, Durability::Synced, |transaction| {
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            let Some(merge) = &state.merging else {
                return Err(conflict::no_merge(branch));
            };
            let (conflicts, theirs) = {
                let reader = Reader::within(engine, transaction);
                let theirs = database::commit_chunk(&reader, name, &merge.theirs)?;
                (conflict::counts(&reader, name, branch)?, theirs)
            };
            refuse_conflicts(&conflicts)?;
            let theirs = theirs.ok_or_else(|| {
                Error::damaged(format!("the commit {} that is merged is not known", merge.theirs))
            })?;
            let signature = Signature::new(
                author.unwrap_or(&merge.author),
                message.unwrap_or(&merge.message),
                self.frond().now_millis(),
            )?;
            let catalog = state.working_catalog(engine, transaction.snapshot())?;
            let parents: Vec<ChunkHash> = state.head_chunk().into_iter().chain([theirs]).collect();
            let (chunk, info) = commit::make(engine, catalog, &parents, &signature)?;
            state.forget_dropped(transaction)?;
            conflict::clear(engine, transaction, name, branch)?;
            state.record(transaction, &chunk, &signature.why("merge"), &signature)?;
            Ok(Outcome::Commit(info))
        })
    }
}

fn nothing_there(merge_in: &str, database: &str) -> Error {
    Error::invalid(Code::BadValue, format!("no branch or revision {merge_in} in {database}"))
}

fn refuse_conflicts(counts: &[(String, u64)]) -> Result<(), Error> {
    if counts.is_empty() {
        return Ok(());
    }
    let left: Vec<String> =
        counts.iter().map(|(collection, count)| format!("{collection}: {count}")).collect();
    let message = format!("conflicts are left to resolve ({})", left.join(", "));
    Err(Error::invalid(Code::IllegalOperation, message))
}

/// A merge into a branch, within a transaction.
struct Merge<'a> {
    database: &'a Database,
    state: &'a BranchState,
    request: &'a MergeRequest,
    signature: Signature<'a>,
}

/// A commit and its chunk's name.
struct Side {
    chunk: ChunkHash,
    commit: Commit,
}

/// The merged catalog, and what did not merge.
struct MergedCatalog {
    catalog: Tree,
    conflicts: Vec<StoredConflict>,
}

impl Merge<'_> {
    /// Merges; answers `None` and does nothing if the working state is not HEAD's.
    fn run(&self, transaction: &mut Transaction) -> Result<Outcome<Option<MergeOutcome>>, Error> {
        self.state.refuse_while_merging("another merge")?;
        let engine = self.database.frond().engine();
        let store = engine.store();
        let theirs = {
            let reader = Reader::within(engine, transaction);
            let chunk = self.database.revision(&reader, &self.request.merge_in)?;
            Side { chunk, commit: history::load(&**store, chunk)? }
        };
        let Some((ours, head)) = &self.state.head else {
            let Some(clean) = self.clean_catalog(transaction)? else {
                return Ok(Outcome::Discard(None));
            };
            return self.fast_forward(transaction, &theirs, clean);
        };
        let mut load = |hash| history::load(&**store, hash);
        let bases = merge_base::merge_bases(*ours, theirs.chunk, &mut load)?;
        let base = bases.first().copied();
        if base == Some(theirs.chunk) {
            let head = format::id_of(*ours);
            return Ok(Outcome::Discard(Some(MergeOutcome::UpToDate { head })));
        }
        let Some(clean) = self.clean_catalog(transaction)? else {
            return Ok(Outcome::Discard(None));
        };
        if base == Some(*ours) && !self.request.no_fast_forward {
            return self.fast_forward(transaction, &theirs, clean);
        }
        if self.request.fast_forward_only {
            let message = format!(
                "{} has commits that {} lacks: a fast-forward is not possible",
                self.state.branch, self.request.merge_in
            );
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        let base = self.base_catalog(store, &bases)?;
        let catalogs = [&base, &head.catalog, &theirs.commit.catalog];
        let merged = self.merge_catalogs(store, catalogs, Prefer::Ours)?;
        if merged.conflicts.is_empty() {
            self.record(transaction, clean, merged.catalog, [*ours, theirs.chunk])
        } else {
            self.wait(transaction, clean, &merged, theirs.chunk)
        }
    }

    /// The catalog of the working state, if it is HEAD's.
    fn clean_catalog(&self, transaction: &Transaction) -> Result<Option<Tree>, Error> {
        let engine = self.database.frond().engine();
        let working = self.state.working_catalog(engine, transaction.snapshot())?;
        let head = self.state.head_catalog(&**engine.store())?;
        Ok((working.root == head.root).then_some(working))
    }

    fn fast_forward(
        &self,
        transaction: &mut Transaction,
        theirs: &Side,
        clean: Tree,
    ) -> Result<Outcome<Option<MergeOutcome>>, Error> {
        let catalog = theirs.commit.catalog;
        let adoption = Adoption { head: catalog, before: clean, after: catalog };
        self.state.adopt(self.database.frond().engine(), transaction, &adoption)?;
        let why = format!("merge {}: fast-forward", self.request.merge_in);
        let why = RefWhy::replacing(&why, self.signature.time_millis, clean);
        self.state.move_ref(transaction, theirs.chunk, why)?;
        let head = format::id_of(theirs.chunk);
        Ok(Outcome::Commit(Some(MergeOutcome::FastForward { head })))
    }

    fn record(
        &self,
        transaction: &mut Transaction,
        clean: Tree,
        catalog: Tree,
        parents: [ChunkHash; 2],
    ) -> Result<Outcome<Option<MergeOutcome>>, Error> {
        let engine = self.database.frond().engine();
        let adoption = Adoption { head: catalog, before: clean, after: catalog };
        self.state.adopt(engine, transaction, &adoption)?;
        let (chunk, commit): (Chunk, _) = commit::make(engine, catalog, &parents, &self.signature)?;
        let why = self.signature.why("merge");
        self.state.register(transaction, &chunk)?;
        let why = RefWhy::replacing(&why, self.signature.time_millis, clean);
        self.state.move_ref(transaction, chunk.hash(), why)?;
        Ok(Outcome::Commit(Some(MergeOutcome::Merged { commit })))
    }

    fn wait(
        &self,
        transaction: &mut Transaction,
        clean: Tree,
        merged: &MergedCatalog,
        theirs: ChunkHash,
    ) -> Result<Outcome<Option<MergeOutcome>>, Error> {
        let adoption = Adoption { head: clean, before: clean, after: merged.catalog };
        self.state.adopt(self.database.frond().engine(), transaction, &adoption)?;
        let merge = MergeState {
            theirs: format::id_of(theirs),
            message: self.signature.message.to_owned(),
            author: self.signature.author.to_owned(),
        };
        let (database, branch) = (&self.state.database, &self.state.branch);
        conflict::store(transaction, database, branch, &merge, &merged.conflicts)?;
        let mut counts = Vec::new();
        for conflict in &merged.conflicts {
            conflict::count(&mut counts, &conflict.collection);
        }
        Ok(Outcome::Commit(Some(MergeOutcome::Conflicts { counts })))
    }

    /// What both sides are compared with. Several best common ancestors are merged into one; where
    /// they conflict, it has what was before them. So what each side took from another of them, or
    /// decided between them, is a conflict again, while any one of them as the base would decide for
    /// the side that took the other. Ancestors whose specifications conflict are left out.
    fn base_catalog(
        &self,
        store: &Arc<dyn ChunkStore>,
        bases: &[ChunkHash],
    ) -> Result<Tree, Error> {
        let catalog_of = |commit: Option<&ChunkHash>| match commit {
            Some(commit) => Ok(history::load(&**store, *commit)?.catalog),
            // Branches that were made before the first commit have nothing in common.
            None => Ok::<Tree, Error>(Tree::empty(&**store, self.state.repository.format())?),
        };
        let mut merged = catalog_of(bases.first())?;
        for (first, other) in bases.iter().take(1).cycle().zip(bases.iter().skip(1)) {
            let mut load = |hash| history::load(&**store, hash);
            let before = merge_base::merge_bases(*first, *other, &mut load)?;
            let (before, other) = (catalog_of(before.first())?, catalog_of(Some(other))?);
            match self.merge_catalogs(store, [&before, &merged, &other], Prefer::Base) {
                Ok(found) => merged = found.catalog,
                Err(error) if error.kind == ErrorKind::Invalid => {}
                Err(error) => return Err(error),
            }
        }
        Ok(merged)
    }

    /// Merges the collections that theirs changed since the base into our catalog.
    fn merge_catalogs(
        &self,
        store: &Arc<dyn ChunkStore>,
        [base, ours, theirs]: [&Tree; 3],
        prefer: Prefer,
    ) -> Result<MergedCatalog, Error> {
        let mut edits: Vec<Result<(Bytes, Edit), TreeError>> = Vec::new();
        let mut chunks = Vec::new();
        let mut conflicts = Vec::new();
        let (mut refused, mut duplicates) = (Vec::new(), Vec::new());
        for changed in changed_collections(store, base, theirs)? {
            let ours = state::catalog_entry(store, ours, &changed.name)?;
            let merge = CollectionMerge {
                store,
                format: self.state.repository.format(),
                namespace: self.database.namespace(&changed.name),
                collection: &changed.name,
                base: changed.from.as_ref(),
                ours: ours.as_ref(),
                theirs: changed.to.as_ref(),
                prefer,
            };
            let MergedCollection { entry, conflicts: more, duplicates: not_unique } =
                match merge.run()? {
                    Ok(merged) => merged,
                    Err(why) => {
                        refused.push(why);
                        continue;
                    }
                };
            conflicts.extend(more);
            duplicates.extend(not_unique);
            if entry == ours {
                continue;
            }
            let key = Bytes::copy_from_slice(changed.name.as_bytes());
            match entry {
                Some(entry) => {
                    let chunk = entry.encode();
                    edits.push(Ok((key, Edit::Put(state::entry_value(&chunk)))));
                    chunks.push(chunk);
                }
                None => edits.push(Ok((key, Edit::Delete))),
            }
        }
        refuse(Code::OperationFailed, "can't merge", refused)?;
        refuse(Code::DuplicateKey, "the merge breaks unique indexes", duplicates)?;
        let store = PutFor { store: &**store, lifetime: Lifetime::Lasting };
        store.put_many(&chunks)?;
        let catalog = ours.apply(&store, &mut edits.into_iter())?;
        Ok(MergedCatalog { catalog, conflicts })
    }
}

/// An error that names `problems`, if there are any.
fn refuse(code: Code, what: &str, problems: Vec<String>) -> Result<(), Error> {
    let Some(first) = problems.first() else {
        return Ok(());
    };
    let more = match problems.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let mut details = DocumentBuilder::new();
    details.begin_array("conflicts");
    for problem in problems.iter().take(PROBLEMS_NAMED_MAX) {
        details.push(Value::String(problem));
    }
    details.end();
    Err(Error::invalid(code, format!("{what}: {first}{more}")).with_details(details.build()))
}
