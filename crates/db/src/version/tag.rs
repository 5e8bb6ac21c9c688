//! Tags: names of commits that stay where they are, with a message or without; and where the
//! branches of remotes were when they were last seen, which are names of the same kind.
//!
//! A tag is one record, `{commit, message?, author?, time}`. Names follow the rules of branches, and
//! no branch and tag have the same name: `shop@v1` means one thing.

use bytes::Bytes;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_tree::{Bounds, Direction, Value as TreeValue};

use crate::commit_id::CommitId;
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::TreeRef;
use crate::transact::Outcome;
use crate::version::reflog::{Lost, RefChange, RefChangeInfo, RefWhy};
use crate::version::{branch, format, history};
use crate::{refs, system};

/// A tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagInfo {
    /// Its name.
    pub name: String,
    /// The commit that it names.
    pub commit: CommitId,
    /// Why, if it is an annotated one.
    pub message: Option<String>,
    /// Who, if it is an annotated one.
    pub author: Option<String>,
    /// When it was made: milliseconds since 1970.
    pub time_millis: i64,
}

impl TagInfo {
    /// The tag's record, which doesn't hold its name.
    pub(crate) fn to_record(&self) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        system::append_bytes(&mut builder, "commit", system::SUBTYPE_GENERIC, &self.commit.0);
        for (name, text) in [("message", &self.message), ("author", &self.author)] {
            if let Some(text) = text {
                builder.append(name, Value::String(text));
            }
        }
        builder.append("time", Value::DateTime(self.time_millis));
        builder.build()
    }

    fn encode(&self) -> Bytes {
        self.to_record().into_bytes()
    }

    fn decode(name: String, bytes: Bytes) -> Result<TagInfo, Error> {
        TagInfo::from_record(name, &system::record(bytes)?)
    }

    /// The tag `name` as its record tells it.
    pub(crate) fn from_record(name: String, record: &DocumentBuf) -> Result<TagInfo, Error> {
        let time = |value: Value<'_>| match value {
            Value::DateTime(millis) => Some(millis),
            _ => None,
        };
        Ok(TagInfo {
            name,
            commit: CommitId(system::field(record, "commit", system::as_array)?),
            message: record.get("message").and_then(system::as_string),
            author: record.get("author").and_then(system::as_string),
            time_millis: system::field(record, "time", time)?,
        })
    }

    /// Writes the tag.
    pub(crate) fn put(&self, transaction: &mut Transaction, database: &str) -> Result<(), Error> {
        let key = system::tag_key(database, &self.name);
        Ok(transaction.put(TreeId::SYSTEM, key, TreeValue::inline(self.encode()))?)
    }

    /// Writes where a remote's branch was.
    pub(crate) fn put_tracking(
        &self,
        transaction: &mut Transaction,
        database: &str,
    ) -> Result<(), Error> {
        let key = system::tracking_key(database, &self.name);
        Ok(transaction.put(TreeId::SYSTEM, key, TreeValue::inline(self.encode()))?)
    }
}

/// The commit that a tag names, or where a remote's branch (`origin/main`) was.
pub(crate) fn target(
    reader: &Reader<'_>,
    database: &str,
    name: &str,
) -> Result<Option<CommitId>, Error> {
    let place = TreeRef::Live(TreeId::SYSTEM);
    for key in [system::tag_key(database, name), system::tracking_key(database, name)] {
        if let Some(bytes) = reader.get_bytes(place, &key)? {
            return Ok(Some(TagInfo::decode(name.to_owned(), bytes)?.commit));
        }
    }
    Ok(None)
}

/// The tag `name`.
pub(crate) fn find(
    reader: &Reader<'_>,
    database: &str,
    name: &str,
) -> Result<Option<TagInfo>, Error> {
    let key = system::tag_key(database, name);
    let bytes = reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &key)?;
    bytes.map(|bytes| TagInfo::decode(name.to_owned(), bytes)).transpose()
}

/// The names below `prefix` and what they name.
fn list(reader: &Reader<'_>, prefix: &[u8]) -> Result<Vec<TagInfo>, Error> {
    let place = TreeRef::Live(TreeId::SYSTEM);
    let mut tags = Vec::new();
    for entry in reader.range(place, Bounds::prefix(prefix), Direction::Ascending)? {
        let entry = entry?;
        let name = system::name_after(prefix, &entry.key)?;
        tags.push(TagInfo::decode(name, reader.read(&entry.value)?)?);
    }
    Ok(tags)
}

/// All tags of a database, by name.
pub(crate) fn of_database(reader: &Reader<'_>, database: &str) -> Result<Vec<TagInfo>, Error> {
    list(reader, &system::tag_key(database, ""))
}

/// Where the branches of remotes were, by name; of one `remote`, or of all.
pub(crate) fn tracking(
    reader: &Reader<'_>,
    database: &str,
    remote: Option<&str>,
) -> Result<Vec<TagInfo>, Error> {
    let mut found = list(reader, &system::tracking_key(database, ""))?;
    if let Some(remote) = remote {
        let is_its =
            |name: &str| name.strip_prefix(remote).is_some_and(|rest| rest.starts_with('/'));
        found.retain(|tag| is_its(&tag.name));
    }
    Ok(found)
}

impl Database {
    /// The tags, by name.
    pub fn list_tags(&self) -> Result<Vec<TagInfo>, Error> {
        of_database(&self.reader(), self.repository_name())
    }

    /// Names a commit (default: this version's). With a message the tag is an annotated one. One
    /// of the same name is moved only with `force`.
    ///
    /// # Errors
    /// `BadValue` if the name is not allowed or the revision names no commit; `NamespaceExists` if
    /// there is such a tag or a branch of that name.
    pub fn create_tag(
        &self,
        name: &str,
        revision: Option<&str>,
        annotation: Option<(&str, &str)>,
        force: bool,
    ) -> Result<TagInfo, Error> {
        branch::check_name(name)?;
        let repository = self.repository_name();
        let scope = Scope::branch(repository, name);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let (commit, before) = {
                let reader = Reader::within(self.frond().engine(), transaction);
                if refs::repository(&reader, repository)?.is_none() {
                    return Err(refs::missing(repository));
                }
                let is_branch = refs::branch_ref(&reader, repository, name)?.is_some();
                if is_branch || (!force && target(&reader, repository, name)?.is_some()) {
                    let what = if is_branch { "branch" } else { "tag" };
                    let message = format!("{what} {name} of {repository} exists");
                    return Err(Error::invalid(Code::NamespaceExists, message));
                }
                if let Some((remote, _)) = name.split_once('/')
                    && reader
                        .get(
                            TreeRef::Live(TreeId::SYSTEM),
                            &system::remote_key(repository, remote),
                        )?
                        .is_some()
                {
                    let message = format!(
                        "{name} would be taken for a branch of the remote {remote}: a tag needs \
                         another name"
                    );
                    return Err(Error::invalid(Code::NamespaceExists, message));
                }
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
    /// `IllegalOperation` if the tag has moved on since; `NamespaceExists` if a branch has its name.
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
