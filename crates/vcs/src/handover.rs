//! A database on its way to another line: what is brought beside its commits, and how a copy
//! becomes what the source is.
//!
//! 1. Changes are committed on every branch ([`Repository::commit_all`]), so that commits are all
//!    that has to travel. Collections without versions can't travel ([`Repository::not_movable`]).
//! 2. The copy fetches, and each of its branches moves forward to where the source's is
//!    ([`Repository::take_after`]). Branches and tags that the source doesn't have any more go; a
//!    branch whose history was rewritten there can't move forward, and is refused.
//! 3. Branches' policies, the commit policy and remotes go along as records ([`Handover`]), and so
//!    do the ids of commits that were erased: the copy, too, refuses such from elsewhere.
//!
//! The reflog, what can be undone, and where remotes' branches were stay behind: on each branch of
//! the copy a mark in the reflog ends what can be undone.

use std::collections::BTreeMap;

use frond_db::inside::commit_id::COMMIT_ID_BYTES;
use frond_db::inside::refs::erased::Replaced;
use frond_db::inside::refs::policy::BranchPolicy;
use frond_db::inside::refs::{erased, format};
use frond_db::inside::{CommitId, Error, LatchMode, Outcome, Reader, Scope, refs, system};
use frond_doc::extended_json::{self, Form};
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::Durability;
use frond_query::Code;

use crate::erase::put_replaced;
use crate::policy::commit_policy::CommitPolicy;
use crate::refs::reflog::{self, MOVED, RefChange, RefChangeInfo, RefWhy};
use crate::remote::{Depth, Moved, Remote, RemoteState};
use crate::repository::Repository;
use crate::state::BranchState;
use crate::{CommitRequest, MergeRequest};

/// The name of the source as a remote: its branches are `moved~from/main` meanwhile. No remote that
/// a user names can be called so.
const SOURCE: &str = "moved~from";
/// The field of commits that were erased: two ids and a time each.
const ERASED: &str = "erased";
const ERASED_BYTES: usize = 2 * COMMIT_ID_BYTES + size_of::<i64>();

/// A branch as it is to be at the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandoverBranch {
    /// Its HEAD, once there is one.
    pub head: Option<CommitId>,
    /// The policy of the branch.
    pub policy: BranchPolicy,
}

/// All of a database that a copy must have in the end.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Handover {
    /// The branch that the plain name means.
    pub default_branch: String,
    /// The branches by name.
    pub branches: BTreeMap<String, HandoverBranch>,
    /// The tags by name.
    pub tags: BTreeMap<String, CommitId>,
    /// Other places of this repository, and their URLs.
    pub remotes: BTreeMap<String, String>,
    /// Says when and how commits are made.
    pub commit_policy: Option<DocumentBuf>,
    /// The commits that were erased: those in their places, and when, in milliseconds since 1970.
    pub erased: BTreeMap<CommitId, (CommitId, i64)>,
}

impl Handover {
    /// As it is sent to the target.
    pub fn to_document(&self) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        builder.append("defaultBranch", Value::String(&self.default_branch));
        builder.begin_array("branches");
        for (name, branch) in &self.branches {
            builder.push_begin_document().append("name", Value::String(name));
            append_id(&mut builder, branch.head);
            builder.append("protected", Value::Boolean(branch.policy.protected));
            builder.append("closed", Value::Boolean(branch.policy.closed));
            if let Some(expires) = branch.policy.expires_millis {
                builder.append("expires", Value::DateTime(expires));
            }
            builder.end();
        }
        builder.end().begin_array("tags");
        for (name, commit) in &self.tags {
            builder.push_begin_document().append("name", Value::String(name));
            append_id(&mut builder, Some(*commit));
            builder.end();
        }
        builder.end().begin_array("remotes");
        for (name, url) in &self.remotes {
            builder.push_begin_document().append("name", Value::String(name));
            builder.append("url", Value::String(url)).end();
        }
        builder.end();
        if let Some(policy) = &self.commit_policy {
            builder.append("commitPolicy", Value::from(policy));
        }
        if !self.erased.is_empty() {
            // After an erase in an old commit there is one for each commit since.
            let mut bytes = Vec::with_capacity(self.erased.len() * ERASED_BYTES);
            for (old, (new, time_millis)) in &self.erased {
                bytes.extend(old.0.iter().chain(&new.0).chain(&time_millis.to_le_bytes()));
            }
            system::append_bytes(&mut builder, ERASED, system::SUBTYPE_GENERIC, &bytes);
        }
        builder.build()
    }

    /// Whether the branches of a remote are where they are to be.
    pub fn is_at(&self, remote: &RemoteState) -> bool {
        let known = remote.branches.iter().map(|(name, chunk)| (name, format::id_of(*chunk)));
        let wanted = self.branches.iter();
        known.eq(wanted.filter_map(|(name, branch)| Some((name, branch.head?))))
    }

    /// Reads what [`Handover::to_document`] wrote.
    ///
    /// # Errors
    /// `BadValue` if it is none.
    pub fn parse(document: Document<'_>) -> Result<Handover, Error> {
        let named = |list: &str| {
            let items = document.get(list).and_then(|items| items.as_array());
            named_items(items.ok_or_else(|| wrong(list))?, list)
        };
        let mut branches = BTreeMap::new();
        for (name, item) in named("branches")? {
            let flag = |field| item.get(field).is_some_and(|flag| flag.is_truthy());
            let expires_millis = match item.get("expires") {
                Some(Value::DateTime(millis)) => Some(millis),
                _ => None,
            };
            let policy = BranchPolicy {
                protected: flag("protected"),
                closed: flag("closed"),
                expires_millis,
            };
            branches.insert(name, HandoverBranch { head: id_of(item)?, policy });
        }
        let mut tags = BTreeMap::new();
        for (name, item) in named("tags")? {
            tags.insert(name, id_of(item)?.ok_or_else(|| wrong("tags"))?);
        }
        let mut remotes = BTreeMap::new();
        for (name, item) in named("remotes")? {
            let url = item.get("url").and_then(|url| url.as_str());
            remotes.insert(name, url.ok_or_else(|| wrong("remotes"))?.to_owned());
        }
        let default_branch = document.get("defaultBranch").and_then(|name| name.as_str());
        let default_branch = default_branch.ok_or_else(|| wrong("defaultBranch"))?.to_owned();
        let commit_policy = document.get("commitPolicy").and_then(|policy| policy.as_document());
        let commit_policy = commit_policy.map(|policy| policy.to_buf());
        let erased = erased_of(document)?;
        Ok(Handover { default_branch, branches, tags, remotes, commit_policy, erased })
    }
}

/// Returns the error for a source whose history was rewritten since an older copy came.
fn rewritten(error: Error, database: &str) -> Error {
    let message = format!(
        "{}; the copy of {database} that lies there is of an older history: let the leader there \
         drop it ({{frondHandOver: \"{database}\", step: \"drop\"}}), then move again",
        error.message
    );
    Error { message, ..error }
}

/// Reads the commits that were erased.
fn erased_of(document: Document<'_>) -> Result<BTreeMap<CommitId, (CommitId, i64)>, Error> {
    let bytes = match document.get(ERASED) {
        None => return Ok(BTreeMap::new()),
        Some(Value::Binary(binary)) => binary.bytes,
        Some(_) => return Err(wrong(ERASED)),
    };
    let (records, rest) = bytes.as_chunks::<ERASED_BYTES>();
    if !rest.is_empty() {
        return Err(wrong(ERASED));
    }
    let read = |record: &[u8; ERASED_BYTES]| {
        let (old, rest) = record.split_first_chunk()?;
        let (new, rest) = rest.split_first_chunk()?;
        let (time_millis, _) = rest.split_first_chunk()?;
        Some((CommitId(*old), (CommitId(*new), i64::from_le_bytes(*time_millis))))
    };
    records.iter().map(read).collect::<Option<_>>().ok_or_else(|| wrong(ERASED))
}

fn append_id(builder: &mut DocumentBuilder, id: Option<CommitId>) {
    if let Some(id) = id {
        builder.append("commitId", Value::String(&id.to_string()));
    }
}

fn id_of(item: Document<'_>) -> Result<Option<CommitId>, Error> {
    let Some(id) = item.get("commitId") else { return Ok(None) };
    let id = id.as_str().and_then(CommitId::parse);
    id.map(Some).ok_or_else(|| wrong("commitId"))
}

fn named_items<'a>(items: Array<'a>, list: &str) -> Result<Vec<(String, Document<'a>)>, Error> {
    let named = items.iter().map(|item| {
        let item = item.as_document()?;
        Some((item.get("name")?.as_str()?.to_owned(), item))
    });
    named.collect::<Option<Vec<_>>>().ok_or_else(|| wrong(list))
}

fn wrong(field: &str) -> Error {
    Error::invalid(Code::BadValue, format!("what is handed over has no proper field {field}"))
}

impl Repository {
    /// Returns the data that a copy of this database must have, as they are now.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such database; `Damaged` if a record isn't one.
    pub fn handover(&self) -> Result<Handover, Error> {
        let (reader, name) = (self.reader(), self.repository_name());
        let repository = refs::repository(&reader, name)?.ok_or_else(|| refs::missing(name))?;
        let mut handover =
            Handover { default_branch: repository.default_branch, ..Handover::default() };
        for branch in self.branches_at(&reader)? {
            let policy = crate::policy::read(&reader, name, &branch.name)?;
            let known = HandoverBranch { head: branch.head, policy };
            handover.branches.insert(branch.name, known);
        }
        let tags = self.list_tags()?.into_iter();
        handover.tags = tags.map(|tag| (tag.name, tag.commit)).collect();
        let remotes = self.list_remotes()?.into_iter();
        handover.remotes = remotes.map(|remote| (remote.name, remote.url)).collect();
        handover.commit_policy = self.commit_policy()?.map(|policy| policy.to_document().clone());
        let erased = erased::replaced(&reader, name)?.into_iter();
        handover.erased = erased.map(|it| (it.old, (it.new, it.time_millis))).collect();
        Ok(handover)
    }

    /// Returns the parts of this database that can't go to another line, in words: collections
    /// without versions (capped ones have none), and merges that wait.
    ///
    /// # Errors
    /// As [`Repository::handover`].
    pub fn not_movable(&self) -> Result<Vec<String>, Error> {
        let (reader, name) = (self.reader(), self.repository_name());
        let mut found = Vec::new();
        for branch in self.branches_at(&reader)? {
            let state = BranchState::read(&reader, name, &branch.name)?;
            let place = format!("{name}@{}", branch.name);
            for (collection, live) in state.live().filter(|(_, live)| !live.is_versioned()) {
                let is_capped = live.options.get("capped").is_some_and(|flag| flag.is_truthy());
                let what = if is_capped { "capped" } else { "not versioned" };
                found.push(format!("{place}.{collection} is {what}"));
            }
            if state.merging.is_some() {
                found.push(format!("{place} has a merge that waits"));
            }
        }
        Ok(found)
    }

    /// Commits what changed, on every branch; returns how many commits that made.
    ///
    /// # Errors
    /// As [`Repository::commit_as`], of the first branch that can't be committed.
    pub fn commit_all(&self, message: &str, author: &str) -> Result<usize, Error> {
        let mut count = 0;
        for branch in self.list_branches()? {
            let branch = match self.sibling_branch(&branch.name) {
                // It was deleted meanwhile.
                Err(error) if error.code == Code::NamespaceNotFound => continue,
                found => found?,
            };
            let before = branch.branch_state(&branch.reader())?.head_id();
            let request = CommitRequest {
                message: Some(message.to_owned()),
                author: Some(author.to_owned()),
                // A branch that has no commit would be none at the target.
                allow_empty: before.is_none(),
                ..CommitRequest::default()
            };
            match branch.commit_as(&request) {
                Ok(_) => count += 1,
                Err(error) if error.code == Code::NamespaceNotFound => {}
                // Nothing has changed.
                Err(error) if error.code == Code::BadValue => {
                    let now = branch.branch_state(&branch.reader())?.head_id();
                    debug_assert_eq!(before, now, "nothing was committed");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Brings the commits that the source has, which `remote` reads, while it goes on changing.
    ///
    /// # Errors
    /// `IllegalOperation` if a copy that was here before is of another history; as
    /// [`Repository::fetch`].
    pub fn copy_from(
        &self,
        url: &str,
        remote: &dyn Remote,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<Moved, Error> {
        match self.exists()? {
            true => Ok(self.fetch_to(SOURCE, remote, Depth::Known, progress)?.moved),
            false => Ok(self.clone_to(url, remote, Depth::Known, progress)?.moved),
        }
    }

    /// Makes this copy what the source is, which `remote` reads and which doesn't change any more:
    /// all its commits come, branches move forward, what the source doesn't have goes.
    ///
    /// # Errors
    /// `IllegalOperation` if a copy that was here before is of another history; `CommandFailed` if
    /// `remote` doesn't have what is handed over; as [`Repository::fetch`].
    pub fn take_after(
        &self,
        handover: &Handover,
        url: &str,
        remote: &dyn Remote,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<Moved, Error> {
        if self.exists()? {
            self.drop_other_tags(handover)?;
        }
        let moved = self.copy_from(url, remote, progress)?;
        if self.commit_policy()?.is_some() {
            // Commits that the source accepted aren't checked again by the rules of an older copy.
            self.set_commit_policy(None)?;
        }
        for name in handover.branches.keys() {
            // As the source has it once all else is done: a protected branch isn't deleted.
            self.relax_policy(name)?;
        }
        self.bring_branches(handover)?;
        self.take_records(handover)?;
        self.check_same(handover)?;
        Ok(moved)
    }

    /// A branch of the same database, for the same move.
    fn sibling_branch(&self, branch: &str) -> Result<Repository, Error> {
        let name = format!("{}@{branch}", self.repository_name());
        let sibling = Repository::open(self.frond(), &name)?;
        Ok(match self.mover() {
            Some(generation) => sibling.moved_by(generation),
            None => sibling,
        })
    }

    fn drop_other_tags(&self, handover: &Handover) -> Result<(), Error> {
        for tag in self.list_tags()? {
            if handover.tags.get(&tag.name) != Some(&tag.commit) {
                self.delete_tag(&tag.name)?;
            }
        }
        Ok(())
    }

    fn relax_policy(&self, branch: &str) -> Result<(), Error> {
        let known = self.list_branches()?.into_iter().any(|known| known.name == branch);
        if known && self.branch_policy(branch)? != BranchPolicy::default() {
            self.set_branch_policy(branch, BranchPolicy::default())?;
        }
        Ok(())
    }

    fn bring_branches(&self, handover: &Handover) -> Result<(), Error> {
        for known in self.list_branches()? {
            let Some(branch) = handover.branches.get(&known.name) else {
                self.relax_policy(&known.name)?;
                self.delete_branch(&known.name, true)?;
                self.note_moved(&known.name)?;
                continue;
            };
            let Some(head) = branch.head.filter(|head| known.head != Some(*head)) else { continue };
            let request = MergeRequest {
                merge_in: head.to_string(),
                fast_forward_only: true,
                refuse_dirty: true,
                ..MergeRequest::default()
            };
            let merged = self.sibling_branch(&known.name)?.merge(&request);
            merged.map_err(|error| rewritten(error, self.repository_name()))?;
        }
        let known = self.list_branches()?;
        for (name, branch) in &handover.branches {
            if let (false, Some(head)) =
                (known.iter().any(|known| known.name == *name), branch.head)
            {
                self.create_branch(name, Some(&head.to_string()))?;
            }
            self.note_moved(name)?;
        }
        Ok(())
    }

    /// Ends what can be undone on a branch, unless that is so already: its reflog here lacks what
    /// was done at the source.
    fn note_moved(&self, branch: &str) -> Result<(), Error> {
        let (engine, name) = (self.frond().engine(), self.repository_name());
        let scope = Scope::branch(name, branch);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let (changes, head) = {
                let reader = Reader::within(engine, transaction);
                let found = refs::branch_ref(&reader, name, branch)?;
                let head = found.and_then(|found| found.commit);
                (reflog::of_branch(&reader, name, branch)?, head)
            };
            if changes.first().is_some_and(RefChangeInfo::is_move) {
                return Ok(Outcome::Discard(()));
            }
            let why = format!("{MOVED}came from another line");
            let why = RefWhy::plain(&why, self.frond().time_millis());
            RefChange { from: head, to: head, why }.log(transaction, name, branch)?;
            Ok(Outcome::Commit(()))
        })
    }

    /// Takes the records that aren't in commits.
    fn take_records(&self, handover: &Handover) -> Result<(), Error> {
        self.take_erased(handover)?;
        for (name, branch) in &handover.branches {
            if branch.policy != BranchPolicy::default() {
                self.set_branch_policy(name, branch.policy)?;
            }
        }
        if let Some(policy) = &handover.commit_policy {
            let policy = CommitPolicy::parse(policy.view(), self.frond().now_millis())?;
            self.set_commit_policy(Some(&policy))?;
        }
        for remote in self.list_remotes()? {
            if handover.remotes.get(&remote.name) != Some(&remote.url) {
                self.remove_remote(&remote.name)?;
            }
        }
        let known = self.list_remotes()?;
        for (name, url) in &handover.remotes {
            if !known.iter().any(|known| known.name == *name) {
                self.add_remote(name, url)?;
            }
        }
        // Where the source's branches were matters no more.
        self.forget_remote_branches(SOURCE)
    }

    /// Notes the commits that were erased at the source.
    fn take_erased(&self, handover: &Handover) -> Result<(), Error> {
        let name = self.repository_name();
        let scope = Scope::branch(name, "");
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            for (&old, &(new, time_millis)) in &handover.erased {
                put_replaced(transaction, name, &Replaced { old, new, time_millis })?;
            }
            Ok(Outcome::commit_if(!handover.erased.is_empty(), ()))
        })
    }

    /// Refuses a copy that isn't what the source is.
    fn check_same(&self, handover: &Handover) -> Result<(), Error> {
        let mut own = self.handover()?;
        // A copy may know of more, from when it was in use.
        own.erased.retain(|old, _| handover.erased.contains_key(old));
        if own == *handover {
            return Ok(());
        }
        let described = |handover: &Handover| {
            let mut text = String::new();
            extended_json::write(handover.to_document().view(), Form::Relaxed, &mut text);
            text
        };
        let message = format!(
            "the copy of {} isn't what the other line has: {} there, {} here",
            self.repository_name(),
            described(handover),
            described(&own),
        );
        Err(Error::invalid(Code::CommandFailed, message))
    }
}
