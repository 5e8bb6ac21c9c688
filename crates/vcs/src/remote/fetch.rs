//! Fetch, clone and pull: what a remote has and this directory lacks comes here.
//!
//! A fetch moves the commits of all branches and tags of the remote, and then, in one transaction,
//! registers them and notes where the branches are (`origin/main`). No branch of this directory
//! moves: that is a merge's work (pull). A clone is a repository with the remote's salt, one branch
//! at the remote's default branch, and a fetch. Chunks that came before a cut stay, and aren't
//! fetched again.

use std::collections::HashSet;
use std::sync::Arc;

use frond_db::inside::refs::{self, format, shallow};
use frond_db::inside::{
    BranchRef, Commit, CommitId, Error, EventKind, EventRecorder, LatchMode, Outcome, Reader,
    Scope, system,
};
use frond_doc::Document;
use frond_engine::{Durability, TreeId};
use frond_query::Code;
use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime};
use frond_tree::{TreeFormat, Value as TreeValue};

use crate::refs::ref_name;
use crate::refs::reflog::{RefChange, RefWhy};
use crate::refs::tag;
use crate::remote::data::{ensure_repository, other_lineage, register};
use crate::remote::mend::has_intact;
use crate::remote::transfer::{Endpoint, Moved, Transfer};
use crate::remote::{ORIGIN, Remote, RemoteState, admit, remote_record};
use crate::repository::Repository;
use crate::{MergeOutcome, MergeRequest, TagInfo};

/// Commits that are asked for together.
const COMMITS_BATCH: usize = 1_024;

/// A branch of a remote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchedBranch {
    /// `origin/main`.
    pub name: String,
    /// Its commit when it was last seen.
    pub from: Option<CommitId>,
    /// Its commit now.
    pub to: CommitId,
}

/// The depth to which history is brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Depth {
    /// To what is here: all of it in a clone, and nothing beyond the end of a shallow one.
    #[default]
    Known,
    /// So many commits of each branch and tag, one at least; also older ones than are here.
    Commits(u64),
    /// To its beginning, also what a shallow clone had left out.
    All,
}

/// The result of a fetch.
#[derive(Clone, Debug, Default)]
pub struct FetchReport {
    /// The remote's branches that moved, are new or have gone nowhere; by name.
    pub branches: Vec<FetchedBranch>,
    /// Tags that came.
    pub tags: Vec<String>,
    /// Tags of the remote whose names are those of other commits here, which stay.
    pub tags_kept: Vec<String>,
    /// The counts of moved chunks.
    pub moved: Moved,
}

/// Chunks come from a remote to this directory.
struct Inwards<'a> {
    remote: &'a dyn Remote,
    store: Arc<dyn ChunkStore>,
}

impl Endpoint for Inwards<'_> {
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        self.remote.check()?;
        has_intact(&*self.store, hashes)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.remote.get_many(hashes)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        Ok(self.store.put_many_for(Lifetime::Lasting, chunks)?)
    }

    fn read_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.store.get_many(hashes)?)
    }
}

impl Repository {
    /// Brings what `remote`, called `name`, has: commits, tags, and where its branches are.
    ///
    /// # Errors
    /// `IllegalOperation` if the remote is a repository of another origin; what the remote says.
    pub fn fetch(
        &self,
        name: &str,
        remote: &dyn Remote,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<FetchReport, Error> {
        self.fetch_to(name, remote, Depth::Known, progress)
    }

    /// As [`Repository::fetch`], with what else is to be brought.
    ///
    /// # Errors
    /// As there.
    pub fn fetch_to(
        &self,
        name: &str,
        remote: &dyn Remote,
        depth: Depth,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<FetchReport, Error> {
        // Fetched chunks are kept from being collected until the refs name them.
        let _session = self.frond().engine().store().session();
        let Some(state) = remote.state()? else {
            return Ok(FetchReport::default());
        };
        let repository = refs::repository(&self.reader(), self.repository_name())?;
        let Some(repository) = repository else {
            let message =
                format!("database {} doesn't exist yet: clone it", self.repository_name());
            return Err(Error::invalid(Code::NamespaceNotFound, message));
        };
        if repository.salt != state.salt {
            return Err(other_lineage(self.repository_name()));
        }
        let (moved, commits) = self.bring(remote, &state, depth, progress)?;
        self.note(name, &state, &commits, moved)
    }

    /// Makes this database a clone of a remote, which is then called `origin`.
    ///
    /// # Errors
    /// `NamespaceExists` if the database exists; `NamespaceNotFound` if the remote has none.
    pub fn clone_from(
        &self,
        url: &str,
        remote: &dyn Remote,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<FetchReport, Error> {
        self.clone_to(url, remote, Depth::Known, progress)
    }

    /// As [`Repository::clone_from`], of a part of history perhaps.
    ///
    /// # Errors
    /// As there.
    pub fn clone_to(
        &self,
        url: &str,
        remote: &dyn Remote,
        depth: Depth,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<FetchReport, Error> {
        let name = self.repository_name();
        self.writable_branch()?;
        let exists = || {
            let message = format!("database {name} exists: clone into another one");
            Error::invalid(Code::NamespaceExists, message)
        };
        if self.exists()? {
            return Err(exists());
        }
        let _session = self.frond().engine().store().session();
        let Some(state) = remote.state()? else {
            let message = format!("there is no repository at {url}");
            return Err(Error::invalid(Code::NamespaceNotFound, message));
        };
        let (moved, commits) = self.bring(remote, &state, depth, progress)?;
        let scope = Scope::branch(name, &state.default_branch);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let is_there = {
                let reader = Reader::within(self.frond().engine(), transaction);
                refs::repository(&reader, name)?.is_some()
            };
            if is_there {
                return Err(exists());
            }
            ensure_repository(self, transaction, state.salt, &state.default_branch)?;
            let key = system::remote_key(name, ORIGIN);
            transaction.put(TreeId::SYSTEM, key, remote_record(url))?;
            if let Some(head) = state.branches.get(&state.default_branch) {
                register(self, transaction, &commits)?;
                let commit = Some(format::id_of(*head));
                let record = TreeValue::inline(BranchRef { commit }.encode());
                let key = system::branch_key(name, &state.default_branch);
                transaction.put(TreeId::SYSTEM, key, record)?;
                let why = format!("clone: from {url}");
                let why = RefWhy::plain(&why, self.frond().time_millis());
                let change = RefChange { from: None, to: commit, why };
                change.log(transaction, name, &state.default_branch)?;
                let scope = (name, state.default_branch.as_str(), "");
                if let Some(recorder) = EventRecorder::new(self.frond().engine(), scope) {
                    recorder.record(transaction, EventKind::Rewritten, Document::empty());
                }
            }
            Ok(Outcome::Commit(()))
        })?;
        self.note(ORIGIN, &state, &commits, moved)
    }

    /// Fetches, and merges the remote's branch of the same name (or `branch`) into this one.
    ///
    /// # Errors
    /// As [`Repository::fetch`] and [`Repository::merge`]; `BadValue` if the remote has no such
    /// branch.
    pub fn pull(
        &self,
        name: &str,
        remote: &dyn Remote,
        branch: Option<&str>,
        request: MergeRequest,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<(FetchReport, MergeOutcome), Error> {
        let (report, request) = self.fetch_to_merge(name, remote, branch, request, progress)?;
        let outcome = self.merge(&request)?;
        Ok((report, outcome))
    }

    /// The first half of [`Repository::pull`]: fetches, and returns the merge that is to follow.
    ///
    /// # Errors
    /// As [`Repository::fetch`]; `BadValue` if the remote has no such branch.
    pub fn fetch_to_merge(
        &self,
        name: &str,
        remote: &dyn Remote,
        branch: Option<&str>,
        request: MergeRequest,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<(FetchReport, MergeRequest), Error> {
        let own = self.writable_branch()?.to_owned();
        let report = self.fetch(name, remote, progress)?;
        let tracked = format!("{name}/{}", branch.unwrap_or(&own));
        let found = self.remote_branches(Some(name))?.into_iter().find(|tag| tag.name == tracked);
        let Some(found) = found else {
            let message = format!("the remote {name} has no branch {}", branch.unwrap_or(&own));
            return Err(Error::invalid(Code::BadValue, message));
        };
        // Names the commit: a branch or tag of this repository may have the same name.
        let merge_in = found.commit.to_string();
        let message = request.message.or_else(|| Some(format!("Merge {tracked} into {own}")));
        Ok((report, MergeRequest { merge_in, message, ..request }))
    }

    /// Moves the chunks; returns the commits that are new here, the oldest first.
    fn bring(
        &self,
        remote: &dyn Remote,
        state: &RemoteState,
        depth: Depth,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<(Moved, Vec<ChunkHash>), Error> {
        // A remote isn't trusted: its names are checked as a user's are.
        for branch in state.branches.keys().chain([&state.default_branch]) {
            ref_name::check_name(branch)?;
        }
        let store = self.frond().engine().store().clone();
        let (chunks, absent) = self.new_commits(remote, state, depth)?;
        if !absent.is_empty() && self.frond().engine().is_carried() {
            let message = "a part of a history can't be fetched into a replica set, or where the \
                           log lies in a bucket";
            return Err(Error::invalid(Code::CommandNotSupported, message));
        }
        shallow::list(&*store, &absent)?;
        let lane = Inwards { remote, store: store.clone() };
        let mut transfer = Transfer::new(&lane, progress);
        transfer.commits(&chunks, &absent)?;
        let moved = transfer.moved;
        let format = TreeFormat::new(state.salt);
        admit::check(&store, self.repository_name(), format, &chunks, &absent)?;
        store.sync()?;
        Ok((moved, chunks.iter().map(Chunk::hash).collect()))
    }

    /// The remote's commits that this database doesn't know, the oldest first; and the parents of
    /// these, or of what is here, that stay where they are.
    fn new_commits(
        &self,
        remote: &dyn Remote,
        state: &RemoteState,
        depth: Depth,
    ) -> Result<(Vec<Chunk>, HashSet<ChunkHash>), Error> {
        let reader = self.reader();
        let name = self.repository_name();
        let store = reader.store();
        let listed = shallow::listed(&**store)?;
        let tags = state.tags.values().map(|(_, chunk)| *chunk);
        let mut wanted: Vec<ChunkHash> = state.branches.values().copied().chain(tags).collect();
        let (mut seen, mut found) = (HashSet::new(), Vec::<(u64, Chunk)>::new());
        let mut absent = HashSet::new();
        let mut level = 0;
        while !wanted.is_empty() {
            let is_beyond = matches!(depth, Depth::Commits(depth) if depth.max(1) <= level);
            let (mut missing, mut parents) = (Vec::new(), Vec::new());
            for hash in wanted {
                if !seen.insert(hash) {
                    continue;
                }
                let is_here = refs::commit_chunk(&reader, name, &format::id_of(hash))?.is_some();
                let is_left = depth == Depth::Known && listed.contains(&hash);
                match (is_here, is_beyond || is_left) {
                    (true, false) if depth != Depth::Known && !listed.is_empty() => {
                        parents.extend(Commit::decode(&store.get(hash)?)?.parents);
                    }
                    (true, _) => {}
                    (false, true) => drop(absent.insert(hash)),
                    (false, false) => missing.push(hash),
                }
            }
            for batch in missing.chunks(COMMITS_BATCH) {
                for chunk in remote.get_many(batch)? {
                    let commit = Commit::decode(&chunk)?;
                    if commit.catalog.format != TreeFormat::new(state.salt) {
                        return Err(other_lineage(name));
                    }
                    parents.extend(&commit.parents);
                    found.push((commit.generation, chunk));
                }
            }
            wanted = parents;
            level += 1;
        }
        found.sort_by_key(|(generation, chunk)| (*generation, chunk.hash()));
        Ok((found.into_iter().map(|(_, chunk)| chunk).collect(), absent))
    }

    /// Notes what was fetched, in one transaction.
    fn note(
        &self,
        remote: &str,
        state: &RemoteState,
        commits: &[ChunkHash],
        moved: Moved,
    ) -> Result<FetchReport, Error> {
        let name = self.repository_name();
        let time_millis = self.frond().time_millis();
        let scope = Scope::branch(name, "");
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let mut report = FetchReport { moved, ..FetchReport::default() };
            let known = {
                let reader = Reader::within(self.frond().engine(), transaction);
                tag::tracking(&reader, name, Some(remote))?
            };
            transaction.validate(TreeId::SYSTEM, system::repository_key(name));
            register(self, transaction, commits)?;
            let mut gone: HashSet<String> = known.iter().map(|tag| tag.name.clone()).collect();
            for (branch, head) in &state.branches {
                let tracked = format!("{remote}/{branch}");
                gone.remove(&tracked);
                let from = known.iter().find(|known| known.name == tracked);
                let (from, to) = (from.map(|known| known.commit), format::id_of(*head));
                if from == Some(to) {
                    continue;
                }
                let (message, author) = (None, None);
                TagInfo { name: tracked.clone(), commit: to, message, author, time_millis }
                    .put_tracking(transaction, name)?;
                report.branches.push(FetchedBranch { name: tracked, from, to });
            }
            for tracked in gone {
                transaction.delete(TreeId::SYSTEM, system::tracking_key(name, &tracked))?;
            }
            for (tag, _) in state.tags.values() {
                let (target, is_branch) = {
                    let reader = Reader::within(self.frond().engine(), transaction);
                    let branch = refs::branch_ref(&reader, name, &tag.name)?;
                    (tag::target(&reader, name, &tag.name)?, branch.is_some())
                };
                if is_branch || target.is_some_and(|target| target != tag.commit) {
                    report.tags_kept.push(tag.name.clone());
                } else if target.is_none() && ref_name::check_name(&tag.name).is_ok() {
                    tag.put(transaction, name)?;
                    report.tags.push(tag.name.clone());
                }
            }
            Ok(Outcome::Commit(report))
        })
    }
}
