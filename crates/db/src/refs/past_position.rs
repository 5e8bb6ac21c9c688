//! The commit on which a branch stood at a time, as its reflog knows it: also where a reset or a
//! push took it away from there since.
//!
//! The records are read from the newest back, up to the first that isn't newer than the time. A
//! branch that was renamed brought its records along, marked (`arrived`): behind the record of the
//! renaming only these are its own, the others are an earlier branch's of the same name.

use frond_doc::Value;
use frond_engine::TreeId;
use frond_tree::{Bounds, Direction};

use crate::commit_id::CommitId;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::TreeRef;
use crate::system;

/// The beginning of the reflog's message for giving a branch another name.
pub const RENAMED: &str = "branch: renamed from ";

/// Returns the commit on which `branch` stood at the end of a millisecond; `None` where its reflog
/// doesn't reach back so far, or it stood on none.
pub(crate) fn past_position(
    reader: &Reader<'_>,
    repository: &str,
    branch: &str,
    by_millis: i64,
) -> Result<Option<CommitId>, Error> {
    let bounds = Bounds::prefix(&system::reflog_prefix(repository, branch));
    let place = TreeRef::Live(TreeId::SYSTEM);
    let mut was_renamed = false;
    for entry in reader.range(place, bounds, Direction::Descending)? {
        let record = system::record(reader.read(&entry?.value)?)?;
        if was_renamed && record.get("arrived").is_none() {
            continue;
        }
        let time = |value: Value<'_>| match value {
            Value::DateTime(millis) => Some(millis),
            _ => None,
        };
        if system::field(&record, "time", time)? <= by_millis {
            let id = |_| system::field(&record, "to", system::as_array).map(CommitId);
            return record.get("to").map(id).transpose();
        }
        let why = record.get("why").and_then(|why| why.as_str());
        was_renamed |= why.is_some_and(|why| why.starts_with(RENAMED));
    }
    Ok(None)
}
