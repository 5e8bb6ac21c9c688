//! Commands about plans: index filters, by which an operator says which indexes queries of a shape
//! may use; and of cached plans, which there are not: a plan is chosen anew each time, by the sizes
//! of ranges of keys, so there is nothing to clear.

use frond_db::{Error, FindRequest, IndexFilter, QueryShape};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_query::Code;

use crate::fields::Fields;
use crate::request::{Answer, Request};

/// `planCacheClear`: clears what there is not.
pub fn clear(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut fields = request.fields()?;
    shape(&mut fields)?;
    fields.finish()?;
    refuse_view(request, collection)?;
    Ok(DocumentBuilder::new())
}

/// Views have no plans.
fn refuse_view(request: &Request<'_>, collection: &str) -> Result<(), Error> {
    if request.database()?.pipeline_of_view(collection, &FindRequest::default())?.is_none() {
        return Ok(());
    }
    let message =
        format!("Namespace {} is a view, not a collection", request.namespace(collection));
    Err(Error::invalid(Code::CommandNotSupportedOnView, message))
}

/// `planCacheSetFilter`
pub fn set_filter(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut fields = request.fields()?;
    let shape = shape(&mut fields)?.ok_or_else(|| wrong("required field query missing"))?;
    let indexes =
        fields.array("indexes")?.ok_or_else(|| wrong("required field indexes missing"))?;
    let indexes: Vec<ValueBuf> = indexes.iter().map(index).collect::<Result<_, Error>>()?;
    if indexes.is_empty() {
        return Err(wrong("required field indexes must contain at least one index"));
    }
    fields.finish()?;
    refuse_view(request, collection)?;
    let database = request.database()?;
    match database.set_index_filter(collection, IndexFilter { shape, indexes })? {
        true => Ok(DocumentBuilder::new()),
        false => Err(wrong("no such collection")),
    }
}

/// `planCacheClearFilters`
pub fn clear_filters(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut fields = request.fields()?;
    let shape = shape(&mut fields)?;
    fields.finish()?;
    refuse_view(request, collection)?;
    request.database()?.clear_index_filters(collection, shape.as_ref())?;
    Ok(DocumentBuilder::new())
}

/// `planCacheListFilters`
pub fn list_filters(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    request.no_fields()?;
    refuse_view(request, collection)?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("filters");
    for filter in request.database()?.index_filters(collection)? {
        let QueryShape { query, sort, projection, collation } = &filter.shape;
        let entry = answer.push_begin_document();
        entry.append("query", Value::from(query)).append("sort", Value::from(sort));
        entry.append("projection", Value::from(projection));
        if !collation.view().is_empty() {
            entry.append("collation", Value::from(collation));
        }
        entry.begin_array("indexes");
        for index in &filter.indexes {
            entry.push(index.as_value());
        }
        entry.end();
        answer.end();
    }
    answer.end();
    Ok(answer)
}

/// A shape of queries, if there is a query.
fn shape(fields: &mut Fields<'_>) -> Result<Option<QueryShape>, Error> {
    let mut given = |name: &str| {
        let document: Option<Document<'_>> = fields.document(name)?;
        Ok::<_, Error>(document.map(|document| document.to_buf()))
    };
    let query = given("query")?;
    let rest = [given("sort")?, given("projection")?, given("collation")?];
    let Some(query) = query else {
        return match rest.iter().any(Option::is_some) {
            true => Err(wrong("sort, projection, or collation provided without query")),
            false => Ok(None),
        };
    };
    let [sort, projection, collation] = rest.map(|given| given.unwrap_or_else(DocumentBuf::empty));
    Ok(Some(QueryShape { query, sort, projection, collation }))
}

/// An index that may be used.
fn index(value: Value<'_>) -> Result<ValueBuf, Error> {
    match value {
        Value::Document(key) if key.is_empty() => Err(wrong("index specification cannot be empty")),
        Value::String("") => Err(wrong("index name cannot be empty")),
        Value::Document(_) | Value::String(_) => Ok(value.to_buf()),
        _ => Err(wrong("each item in indexes must be an object or string")),
    }
}

fn wrong(message: &str) -> Error {
    Error::invalid(Code::BadValue, message)
}
