//! A find of one document by its `_id`, which takes no plan.
//!
//! Drivers send it more often than anything else, and parsing its filter, planning and scanning
//! took two thirds of what it allocated. It is answered here if nothing is asked for but one value
//! of `_id`, which says by its key alone which document it is:
//!
//! 1. The filter is `{_id: value}` or `{_id: {$eq: value}}`, and the value equals exactly what has
//!    its key: it is no document, pattern, array or null, which may mean more.
//! 2. Nothing else is asked for but a limit.
//! 3. Documents lie by their `_id`s, which compare as bytes: it is no view, no time series, and has
//!    no collation if the value is a string.
//!
//! All else goes the usual way, which finds the same; `explain` shows that one.

use frond_doc::{Document, Value, key};
use frond_query::examined;

use crate::catalog::Catalog;
use crate::collection::{Cursor, FindRequest};
use crate::database::Database;
use crate::definition::ID_INDEX_NAME;
use crate::error::Error;
use crate::name;
use crate::reader::Reader;
use crate::request_profile::{self, Plan};
use crate::schema::Collection;

/// Finds the one document that `request` asks for by its `_id`; `None` if it asks for more.
pub(super) fn find(
    database: &Database,
    reader: &Reader<'_>,
    name: &str,
    request: &FindRequest,
) -> Result<Option<Cursor>, Error> {
    // A time series' buckets are made of its points.
    if name::of_buckets(name).is_some() {
        return Ok(None);
    }
    let Some(id) = only_id(request) else { return Ok(None) };
    let found = Catalog::of(reader, database).collection(name)?;
    let is_string = matches!(id, Value::String(_));
    let Some(found) = found.filter(|found| lie_by_bare_ids(found, is_string)) else {
        return Ok(None);
    };
    request.interrupt.check()?;
    database.frond().usage().count(found.uuid, ID_INDEX_NAME);
    request_profile::note(|| Plan::ExpressById);
    let value = reader.get(found.documents, &key::of_id(id))?;
    let count = u64::from(value.is_some());
    examined::add_counts(count, count);
    let document = value.map(|value| reader.document(&value)).transpose()?;
    Ok(Some(document.map_or_else(Cursor::empty, Cursor::one)))
}

/// The value of `_id` that is all that a request asks for.
fn only_id(request: &FindRequest) -> Option<Value<'_>> {
    let FindRequest {
        filter: Some(filter),
        projection: None,
        sort: None,
        skip: 0,
        limit: None | Some(1..),
        hint: None,
        min: None,
        max: None,
        variables: None,
        collation: None,
        in_memory_only: _,
        shows_record_id: false,
        gives_keys: false,
        placed: None,
        refused_in_views: None,
        interrupt: _,
    } = request
    else {
        return None;
    };
    let ("_id", mut id) = only_field(filter.view())? else { return None };
    if let Value::Document(condition) = id {
        let ("$eq", value) = only_field(condition)? else { return None };
        id = value;
    }
    let is_complete = matches!(
        id,
        Value::ObjectId(_)
            | Value::String(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Boolean(_)
            | Value::DateTime(_)
            | Value::Binary(_)
    );
    is_complete.then_some(id)
}

/// The field of a document that has one.
fn only_field(document: Document<'_>) -> Option<(&str, Value<'_>)> {
    let mut fields = document.iter();
    fields.next().filter(|_| fields.next().is_none())
}

/// Whether an `_id` is found under its bytes.
fn lie_by_bare_ids(collection: &Collection, is_string: bool) -> bool {
    let is_contrary = |(option, _): (&str, _)| match option {
        "viewOn" => true,
        "collation" => is_string,
        _ => false,
    };
    collection.series.is_none() && !collection.options.iter().any(is_contrary)
}
