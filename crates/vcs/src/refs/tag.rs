//! Making, moving and removing tags; each move and removal is remembered, so that it can be undone.

pub use frond_db::inside::refs::tag::TagInfo;
pub(crate) use frond_db::inside::refs::tag::{find, of_database, target, tracking};
use frond_db::inside::refs::{self, format};
use frond_db::inside::{CommitId, Error, LatchMode, Outcome, Reader, Scope, TreeRef, system};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;

use crate::history;
use crate::refs::ref_name;
use crate::refs::reflog::{Lost, RefChange, RefChangeInfo, RefWhy};
use crate::repository::Repository;

impl Repository {
    /// The tags, by name.
    ///
    /// # Errors
    /// `Damaged` if a record isn't one; `Unavailable` if the disk doesn't answer.
    pub fn list_tags(&self) -> Result<Vec<TagInfo>, Error> {
        of_database(&self.reader(), self.repository_name())
    }

    /// Names a commit (default: this version's). With a message the tag is an annotated one. One
    /// of the same name is moved only with `force`.
    ///
    /// # Errors
    /// `BadValue` if the name is not allowed or the revision names no commit; `NamespaceExists` if
    /// there is such a tag or a branch of that name, or it would be taken for a remote's branch or
    /// a commit.
    pub fn create_tag(
        &self,
        name: &str,
        revision: Option<&str>,
        annotation: Option<(&str, &str)>,
        force: bool,
    ) -> Result<TagInfo, Error> {
        ref_name::check_name_of("tag", name)?;
        let repository = self.repository_name();
        let scope = Scope::branch(repository, name);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let (commit, before) = {
                let reader = Reader::within(self.frond().engine(), transaction);
                if refs::repository(&reader, repository)?.is_none() {
                    return Err(refs::missing(repository));
                }
                self.check_tag_is_free(&reader, name, force)?;
                let commit = self.revision(&reader, revision.unwrap_or(history::HEAD))?;
                (commit, find(&reader, repository, name)?)
            };
            transaction.validate(TreeId::SYSTEM, system::repository_key(repository));
            transaction.validate(TreeId::SYSTEM, system::branch_key(repository, name));
            let tag = TagInfo {
                name: name.to_owned(),
                commit: format::id_of(commit),
                message: annotation.map(|(message, _)| message.to_owned()),
                author: annotation.map(|(_, author)| author.to_owned()),
                time_millis: self.frond().time_millis(),
            };
            tag.put(transaction, repository)?;
            if let Some(before) = before {
                let why = format!("tag: moved to {}", revision.unwrap_or(history::HEAD));
                self.remember_tag(transaction, &before, Some(tag.commit), &why)?;
            }
            Ok(Outcome::Commit(tag))
        })
    }

    /// Refuses the name of a tag that is taken already, or would be taken for something else: what
    /// other users have written down names that.
    fn check_tag_is_free(&self, reader: &Reader<'_>, name: &str, force: bool) -> Result<(), Error> {
        let repository = self.repository_name();
        let refuse = |message| Err(Error::invalid(Code::NamespaceExists, message));
        if refs::branch_ref(reader, repository, name)?.is_some() {
            return refuse(format!("branch {name} of {repository} exists"));
        }
        if target(reader, repository, name)?.is_some() {
            return match force {
                true => Ok(()),
                false => refuse(format!("tag {name} of {repository} exists")),
            };
        }
        if let Some((remote, _)) = name.split_once('/') {
            let key = system::remote_key(repository, remote);
            if reader.get(TreeRef::Live(TreeId::SYSTEM), &key)?.is_some() {
                return refuse(format!(
                    "{name} would be taken for a branch of the remote {remote}: a tag needs \
                     another name"
                ));
            }
        }
        if history::begins_commit_id(reader, repository, name)? {
            return refuse(format!("{name} begins a commit's id: a tag needs another name"));
        }
        Ok(())
    }

    /// Removes a tag; the commit stays.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such tag.
    pub fn delete_tag(&self, name: &str) -> Result<TagInfo, Error> {
        let repository = self.repository_name();
        let scope = Scope::branch(repository, name);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let engine = self.frond().engine();
            let found = find(&Reader::within(engine, transaction), repository, name)?;
            let Some(tag) = found else {
                let message = format!("no tag {name} in {repository}");
                return Err(Error::invalid(Code::NamespaceNotFound, message));
            };
            transaction.delete(TreeId::SYSTEM, system::tag_key(repository, name))?;
            self.remember_tag(transaction, &tag, None, "tag: deleted")?;
            Ok(Outcome::Commit(tag))
        })
    }

    /// Remembers a tag that `transaction` moves or deletes, so that this can be undone.
    fn remember_tag(
        &self,
        transaction: &mut Transaction,
        before: &TagInfo,
        to: Option<CommitId>,
        why: &str,
    ) -> Result<(), Error> {
        let why = RefWhy::plain(why, self.frond().time_millis());
        let why = RefWhy { lost: Lost::Tag(before), ..why };
        let change = RefChange { from: Some(before.commit), to, why };
        change.log(transaction, self.repository_name(), &before.name)
    }

    /// Has a tag name what it named before `change`, which moved or deleted it.
    ///
    /// # Errors
    /// `IllegalOperation` if the tag has moved on since; `NamespaceExists` if a branch has its
    /// name.
    pub(crate) fn undo_tag(
        &self,
        transaction: &mut Transaction,
        change: &RefChangeInfo,
        before: &TagInfo,
    ) -> Result<(), Error> {
        let (repository, name) = (self.repository_name(), &before.name);
        let now = {
            let reader = Reader::within(self.frond().engine(), transaction);
            if refs::branch_ref(&reader, repository, name)?.is_some() {
                let message = format!("branch {name} of {repository} exists");
                return Err(Error::invalid(Code::NamespaceExists, message));
            }
            find(&reader, repository, name)?
        };
        if now.as_ref().map(|tag| tag.commit) != change.to {
            let message = format!("tag {name} has changed since '{}'", change.why);
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        transaction.validate(TreeId::SYSTEM, system::repository_key(repository));
        transaction.validate(TreeId::SYSTEM, system::branch_key(repository, name));
        before.put(transaction, repository)?;
        let why = format!("undo: {}", change.why);
        let why = RefWhy {
            lost: now.as_ref().map_or(Lost::Nothing, Lost::Tag),
            undid: Some(change.change),
            ..RefWhy::plain(&why, self.frond().time_millis())
        };
        let undone = RefChange { from: change.to, to: Some(before.commit), why };
        undone.log(transaction, repository, name)
    }
}
