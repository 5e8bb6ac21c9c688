//! A find of one document by its `_id`, which takes no plan.
//!
//! Drivers send it more often than anything else, and parsing its filter, planning and scanning
//! took two thirds of what it allocated. It is answered here if nothing is asked for but one value
//! of `_id`, which says by its key alone which document it is:
//!
//! 1. The filter is `{_id: value}` or `{_id: {$eq: value}}`, or an `$and` of only that, and the
//!    value equals exactly what has its key: it is no document, pattern, array or null, which may
//!    mean more.
//! 2. Nothing else is asked for but a limit, and a projection of whole outermost fields.
//! 3. Documents lie by their `_id`s, which compare as bytes: it is no view, no time series, and has
//!    no collation if the value is a string.
//!
//! All else goes the usual way, which finds the same; `explain` shows that one.

use frond_doc::{Document, DocumentBuf, Value, key};
use frond_query::large::NeededPaths;
use frond_query::{Filter, Projection, examined};
use frond_tree::Value as TreeValue;

use crate::catalog::Catalog;
use crate::collection::deferred_errors::DeferredErrors;
use crate::collection::handles::{LazyLargeDocuments, handles};
use crate::collection::{Cursor, FindRequest, express};
use crate::database::Database;
use crate::definition::ID_INDEX_NAME;
use crate::error::Error;
use crate::large;
use crate::name;
use crate::reader::Reader;
use crate::request_profile::{self, Plan};
use crate::schema::Collection;

/// Finds the one document that `request` asks for by its `_id`; `None` if it asks for more.
pub(super) fn find(
    database: &Database,
    reader: &Reader<'static>,
    name: &str,
    request: &FindRequest,
) -> Result<Option<Cursor>, Error> {
    // A time series' buckets are made of its points.
    if name::of_buckets(name).is_some() {
        return Ok(None);
    }
    let Some((id, is_plain)) = only_id(request) else { return Ok(None) };
    let found = Catalog::of(reader, database).collection(name)?;
    let is_string = matches!(id, Value::String(_));
    let Some(found) = found.filter(|found| lie_by_bare_ids(found, is_string)) else {
        return Ok(None);
    };
    // What is wrong with it is reported the usual way.
    let projection = request.projection.as_ref().map(|it| Projection::parse(it.view()));
    let Ok(projection) = projection.transpose() else { return Ok(None) };
    request.interrupt.check()?;
    let value = reader.get(found.documents, &key::of_id(id))?;
    let shown = match &value {
        None => None,
        Some(value) => match shown(reader, value, projection.as_ref())? {
            None => return Ok(None),
            shown => shown,
        },
    };
    database.frond().usage().count(found.uuid, ID_INDEX_NAME);
    request_profile::note(|| if is_plain { Plan::ExpressById } else { Plan::ById });
    let count = u64::from(shown.is_some());
    examined::add_scanned(count, count, count);
    Ok(Some(shown.map_or_else(Cursor::empty, Cursor::one)))
}

/// What is shown of the document that is `value`; `None` if it goes the usual way.
fn shown(
    reader: &Reader<'static>,
    value: &TreeValue,
    projection: Option<&Projection>,
) -> Result<Option<DocumentBuf>, Error> {
    let Some(projection) = projection.filter(|projection| !projection.is_identity()) else {
        return reader.document(value).map(Some);
    };
    let Some(head) = large::head(value) else {
        let document = reader.document(value)?;
        return Ok(Some(projection.apply(document.view(), &Filter::all())?));
    };
    // What the transaction wrote itself may be undone before it is read.
    if reader.may_change() {
        return Ok(None);
    }
    let deferred = DeferredErrors::default();
    let large = handles(reader, &deferred);
    let lazily = LazyLargeDocuments::new(&large, true).with_needed(&projection.needed_paths());
    let lazily = match projection.paths() {
        Some(paths) => lazily.only(&paths),
        None => lazily,
    };
    let show = || -> Result<DocumentBuf, Error> {
        let fields = lazily.open(lazily.read(reader, &head, &NeededPaths::default())?)?;
        let projected = projection.reading(&large).apply(fields.view(), &Filter::all())?;
        Ok(large.open_document(&NeededPaths::all(), projected)?)
    };
    show().map(Some).map_err(|error| deferred.restore(error))
}

/// The value of `_id` that is all that a request asks for, and whether it is asked for without an
/// `$and`.
fn only_id(request: &FindRequest) -> Option<(Value<'_>, bool)> {
    let is_shown_simply = request.projection.as_ref().is_none_or(express::is_simple);
    let (mut id, is_plain) = only_condition(request).filter(|_| is_shown_simply)?;
    if let Value::Document(condition) = id {
        let ("$eq", value) = only_field(condition)? else { return None };
        id = value;
    }
    is_complete(id).then_some((id, is_plain))
}

/// The condition on `_id`, where that, a limit and a projection are all that a request asks for,
/// and whether it stands in no `$and`.
pub(super) fn only_condition(request: &FindRequest) -> Option<(Value<'_>, bool)> {
    let FindRequest {
        filter: Some(filter),
        projection: _,
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
    match only_field(filter.view())? {
        ("_id", condition) => Some((condition, true)),
        ("$and", Value::Array(conditions)) => {
            let mut conditions = conditions.iter();
            let first = conditions.next()?.as_document().filter(|_| conditions.next().is_none())?;
            let ("_id", condition) = only_field(first)? else { return None };
            Some((condition, false))
        }
        _ => None,
    }
}

/// Whether an `_id` equals this value if it has its key.
pub(super) fn is_complete(id: Value<'_>) -> bool {
    matches!(
        id,
        Value::ObjectId(_)
            | Value::String(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Boolean(_)
            | Value::DateTime(_)
            | Value::Binary(_)
    )
}

/// The field of a document that has one.
pub(super) fn only_field(document: Document<'_>) -> Option<(&str, Value<'_>)> {
    let mut fields = document.iter();
    fields.next().filter(|_| fields.next().is_none())
}

/// Whether an `_id` is found under its bytes.
pub(super) fn lie_by_bare_ids(collection: &Collection, is_string: bool) -> bool {
    let is_contrary = |(option, _): (&str, _)| match option {
        "viewOn" => true,
        "collation" => is_string,
        _ => false,
    };
    collection.series.is_none() && !collection.options.iter().any(is_contrary)
}
