//! Tags: names of commits that stay where they are, with a message or without; and where the
//! branches of remotes were when they were last seen, which are names of the same kind.
//!
//! A tag is one record, `{commit, message?, author?, time}`. Names follow the rules of branches,
//! and no branch and tag have the same name: `shop@v1` means one thing.

use bytes::Bytes;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_engine::{Transaction, TreeId};
use frond_tree::{Bounds, Direction, Value as TreeValue};

use crate::commit_id::CommitId;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::TreeRef;
use crate::system;

/// A tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagInfo {
    /// Its name.
    pub name: String,
    /// The commit that it names.
    pub commit: CommitId,
    /// The message, if it is an annotated one.
    pub message: Option<String>,
    /// The author, if it is an annotated one.
    pub author: Option<String>,
    /// The time when it was made: milliseconds since 1970.
    pub time_millis: i64,
}

impl TagInfo {
    /// The tag's record, which doesn't hold its name.
    pub fn to_record(&self) -> DocumentBuf {
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

    /// The tag `name` as its record describes it.
    ///
    /// # Errors
    /// `Damaged` if a field is missing or of another type.
    pub fn from_record(name: String, record: &DocumentBuf) -> Result<TagInfo, Error> {
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
    ///
    /// # Errors
    /// As the transaction's `put`.
    pub fn put(&self, transaction: &mut Transaction, database: &str) -> Result<(), Error> {
        let key = system::tag_key(database, &self.name);
        Ok(transaction.put(TreeId::SYSTEM, key, TreeValue::inline(self.encode()))?)
    }

    /// Writes where a remote's branch was.
    ///
    /// # Errors
    /// As the transaction's `put`.
    pub fn put_tracking(&self, transaction: &mut Transaction, database: &str) -> Result<(), Error> {
        let key = system::tracking_key(database, &self.name);
        Ok(transaction.put(TreeId::SYSTEM, key, TreeValue::inline(self.encode()))?)
    }
}

/// The commit that a tag names, or where a remote's branch (`origin/main`) was.
///
/// # Errors
/// `Damaged` if a record isn't one; as [`Reader::get`].
pub fn target(reader: &Reader<'_>, database: &str, name: &str) -> Result<Option<CommitId>, Error> {
    let place = TreeRef::Live(TreeId::SYSTEM);
    for key in [system::tag_key(database, name), system::tracking_key(database, name)] {
        if let Some(bytes) = reader.get_bytes(place, &key)? {
            return Ok(Some(TagInfo::decode(name.to_owned(), bytes)?.commit));
        }
    }
    Ok(None)
}

/// The tag `name`.
///
/// # Errors
/// `Damaged` if its record isn't one; as [`Reader::get`].
pub fn find(reader: &Reader<'_>, database: &str, name: &str) -> Result<Option<TagInfo>, Error> {
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
///
/// # Errors
/// `Damaged` if a record isn't one; as [`Reader::get`].
pub fn of_database(reader: &Reader<'_>, database: &str) -> Result<Vec<TagInfo>, Error> {
    list(reader, &system::tag_key(database, ""))
}

/// Returns where the branches of remotes were, by name; of one `remote`, or of all.
///
/// # Errors
/// As [`of_database`].
pub fn tracking(
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
