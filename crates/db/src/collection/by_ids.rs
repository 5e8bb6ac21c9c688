//! A find of a few documents by a list of their `_id`s, which takes no plan.
//!
//! It is answered here as one by a single `_id` is ([`super::by_id`]), if the filter is
//! `{_id: {$in: [..]}}` or an `$and` of only that, each value says by its key alone which document
//! it is, and all of the documents is shown. They come in the order of their keys, each once, as a
//! scan of their ranges gives them. All else goes the usual way, which finds the same: longer
//! lists, more bytes than are read ahead, and what can't be read, since the documents before that
//! are answered first.

use bytes::Bytes;
use frond_doc::{DocumentBuf, Value, key};
use frond_query::examined;

use crate::catalog::Catalog;
use crate::collection::by_id::{is_complete, lie_by_bare_ids, only_condition, only_field};
use crate::collection::cursor_validity::CursorValidity;
use crate::collection::{Cursor, FindRequest};
use crate::database::Database;
use crate::definition::ID_INDEX_NAME;
use crate::error::Error;
use crate::large;
use crate::name;
use crate::reader::Reader;
use crate::request_profile::{self, Plan};
use crate::schema::TreeRef;

/// Longer lists aren't read ahead.
const IDS_MAX: usize = 64;
/// The bytes of documents that are read ahead.
const BYTES_MAX: usize = 512 << 10;

/// Finds the documents that `request` asks for by several `_id`s; `None` if it asks for more.
pub(super) fn find(
    database: &Database,
    reader: &Reader<'static>,
    name: &str,
    request: &FindRequest,
) -> Result<Option<Cursor>, Error> {
    // A time series' buckets are made of its points.
    if request.projection.is_some() || name::of_buckets(name).is_some() {
        return Ok(None);
    }
    let Some((keys, has_strings)) = only_keys(request) else { return Ok(None) };
    let found = Catalog::of(reader, database).collection(name)?;
    let has_no_filters = database.frond().index_filters().are_none();
    let Some(found) = found.filter(|found| has_no_filters && lie_by_bare_ids(found, has_strings))
    else {
        return Ok(None);
    };
    request.interrupt.check()?;
    let limit = request.limit.map_or(usize::MAX, |limit| limit.try_into().unwrap_or(usize::MAX));
    let Some(documents) = read(reader, found.documents, &keys, limit) else { return Ok(None) };
    let mut ending = CursorValidity::of_collection(database, name, &found);
    database.frond().usage().count(found.uuid, ID_INDEX_NAME);
    // One is shown as the planner shows it.
    request_profile::note(|| if keys.len() == 1 { Plan::ById } else { Plan::ByIds });
    let count = documents.len() as u64;
    examined::add_scanned(count, count, count);
    Ok(Some(Cursor::new(documents.into_iter().map(move |document| {
        ending.as_mut().map_or(Ok(()), CursorValidity::check)?;
        Ok(document)
    }))))
}

/// The keys of the `_id`s that are all that a request asks for, in their order, and whether strings
/// are among them.
fn only_keys(request: &FindRequest) -> Option<(Vec<Bytes>, bool)> {
    let (Value::Document(condition), _) = only_condition(request)? else { return None };
    let ("$in", Value::Array(ids)) = only_field(condition)? else { return None };
    let mut keys = Vec::with_capacity(16);
    let mut has_strings = false;
    for id in ids.iter() {
        if keys.len() == IDS_MAX || !is_complete(id) {
            return None;
        }
        has_strings |= matches!(id, Value::String(_));
        keys.push(key::of_id(id));
    }
    keys.sort_unstable();
    keys.dedup();
    let are_whole = !keys.iter().any(|key| key::is_id_cut(key));
    (!keys.is_empty() && are_whole).then_some((keys, has_strings))
}

/// The documents under `keys`, the first `limit` of them; `None` if they are too large, or can't be
/// read.
fn read(
    reader: &Reader<'static>,
    documents: TreeRef,
    keys: &[Bytes],
    limit: usize,
) -> Option<Vec<DocumentBuf>> {
    let (mut found, mut bytes) = (Vec::with_capacity(keys.len().min(limit)), 0);
    for key in keys {
        if found.len() == limit {
            break;
        }
        let Some(value) = reader.get(documents, key).ok()? else { continue };
        bytes += value.bytes();
        if BYTES_MAX as u64 <= bytes || large::head(&value).is_some() {
            return None;
        }
        found.push(reader.document(&value).ok()?);
    }
    Some(found)
}
