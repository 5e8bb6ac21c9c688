//! `collStats`, `dbStats` and `dataSize`.

use frond_db::{Database, Error, FindRequest};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::commands::reply;
use crate::fields::Fields;
use crate::operations::CurrentOperation;
use crate::request::{Answer, Request, check_collection_name, split_namespace};
use crate::tables;

/// Statistics of a collection.
pub fn coll_stats(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut fields = request.fields()?;
    let scale = read_scale(&mut fields)?;
    fields.ignore(&["verbose"]);
    fields.finish()?;
    let mut answer = DocumentBuilder::new();
    answer.append("ns", Value::String(&request.namespace(collection)));
    append_stats(&mut answer, &*request.database()?, collection, scale)?;
    Ok(answer)
}

/// Appends a collection's statistics, sizes divided by `scale`.
///
/// # Errors
/// As [`Database::collection_stats`].
pub fn append_stats(
    answer: &mut DocumentBuilder,
    database: &Database,
    collection: &str,
    scale: i64,
) -> Result<(), Error> {
    let stats = database.collection_stats(collection)?;
    for (name, value) in stats.iter().filter(|(name, _)| *name != "ns") {
        append_scaled(answer, name, value, scale);
    }
    answer.append("scaleFactor", reply::number(scale.unsigned_abs()));
    Ok(())
}

/// Sizes are divided by the scale, counts and means are not.
fn append_scaled(answer: &mut DocumentBuilder, name: &str, value: Value<'_>, scale: i64) {
    const SIZES: &[&str] =
        &["size", "storageSize", "totalIndexSize", "totalSize", "freeStorageSize"];
    match (value, value.as_integer()) {
        (Value::Document(sizes), _) if name == "indexSizes" => {
            answer.begin_document(name);
            for (index, size) in sizes.iter() {
                let size = size.as_integer().unwrap_or(0) / scale;
                answer.append(index, reply::number(size.unsigned_abs()));
            }
            answer.end();
        }
        (_, Some(size)) if SIZES.contains(&name) => {
            answer.append(name, reply::number((size / scale).unsigned_abs()));
        }
        _ => {
            answer.append(name, value);
        }
    }
}

/// Statistics of a database.
pub fn db_stats(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let scale = read_scale(&mut fields)?;
    let shows_free =
        fields.value("freeStorage").is_some_and(|option| option.as_integer() != Some(0));
    fields.finish()?;
    let database = request.database()?;
    let (views, collections): (Vec<_>, Vec<_>) =
        database.list_collections()?.into_iter().partition(|collection| collection.is_view());
    let mut sums = Sums::default();
    for collection in &collections {
        sums.add(&database, &collection.name)?;
    }
    let mean = if sums.objects == 0 { 0.0 } else { sums.bytes as f64 / sums.objects as f64 };
    let scaled = |bytes: i64| Value::Double((bytes / scale) as f64);
    let mut answer = DocumentBuilder::new();
    answer
        .append("db", Value::String(request.database_name))
        .append("collections", Value::Int64(reply::long(collections.len() as u64)))
        .append("views", Value::Int64(reply::long(views.len() as u64)))
        .append("objects", Value::Int64(sums.objects))
        .append("avgObjSize", Value::Double(mean))
        .append("dataSize", scaled(sums.bytes))
        .append("storageSize", scaled(sums.storage_bytes));
    // What is free is free for all databases, and no part of any.
    let free = |answer: &mut DocumentBuilder, name: &str| {
        if shows_free {
            answer.append(name, scaled(0));
        }
    };
    free(&mut answer, "freeStorageSize");
    answer
        .append("indexes", Value::Int64(sums.indexes))
        .append("indexSize", scaled(sums.index_bytes));
    free(&mut answer, "indexFreeStorageSize");
    answer.append("totalSize", scaled(sums.storage_bytes + sums.index_bytes));
    free(&mut answer, "totalFreeStorageSize");
    answer.append("scaleFactor", Value::Int64(scale));
    if let Some(disk) = request.server.frond.engine().disk_status() {
        answer.append("fsUsedSize", scaled(reply::long(disk.disk.saturating_sub(disk.free))));
        answer.append("fsTotalSize", scaled(reply::long(disk.disk)));
    }
    Ok(answer)
}

#[derive(Default)]
struct Sums {
    objects: i64,
    bytes: i64,
    storage_bytes: i64,
    indexes: i64,
    index_bytes: i64,
}

impl Sums {
    fn add(&mut self, database: &Database, collection: &str) -> Result<(), Error> {
        let stats = database.collection_stats(collection)?;
        let field = |name: &str| number_of(&stats, name);
        self.objects += field("count");
        self.bytes += field("size");
        self.storage_bytes += field("storageSize");
        self.indexes += field("nindexes");
        self.index_bytes += field("totalIndexSize");
        Ok(())
    }
}

fn number_of(stats: &DocumentBuf, name: &str) -> i64 {
    stats.get(name).and_then(|value| value.as_integer()).unwrap_or(0)
}

/// The size of a collection, or of what lies in a range of an index's keys.
pub fn data_size(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let namespace = request.own_text();
    let key = fields.document("keyPattern")?.filter(|key| !key.is_empty());
    let (min, max) = (fields.document("min")?, fields.document("max")?);
    fields.boolean("estimate")?;
    fields.finish()?;
    let started = request.operation.elapsed();
    let (database, collection) = split_namespace(namespace)?;
    check_collection_name(database, collection)?;
    let database = request.database_named(database)?;
    if min.is_some() != max.is_some() || key.is_some() && min.is_none() {
        let message =
            "either both 'min' and 'max' must be given, or neither, and 'keyPattern' with them";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let (size, count) = match (min, max) {
        (Some(min), Some(max)) => size_between(request, (&*database, collection), key, (min, max))?,
        _ => {
            let stats = database.collection_stats(collection)?;
            (number_of(&stats, "size"), number_of(&stats, "count"))
        }
    };
    let millis = (request.operation.elapsed() - started).as_millis();
    let mut answer = DocumentBuilder::new();
    answer
        .append("estimate", Value::Boolean(false))
        .append("size", Value::Int64(size))
        .append("numObjects", Value::Int64(count))
        .append("millis", Value::Int64(i64::try_from(millis).unwrap_or(i64::MAX)));
    Ok(answer)
}

/// Bytes and count of the documents between two keys of an index; without one, of that whose fields
/// `min` has.
fn size_between(
    request: &Request<'_>,
    (database, collection): (&Database, &str),
    key: Option<Document<'_>>,
    (min, max): (Document<'_>, Document<'_>),
) -> Result<(i64, i64), Error> {
    let mut ascending = DocumentBuilder::new();
    for (name, _) in min.iter() {
        ascending.append(name, Value::Int32(1));
    }
    let key = key.map_or_else(|| ascending.build(), |key| key.to_buf());
    let interrupt = CurrentOperation::new(&request.operation).interrupt();
    let search = FindRequest {
        hint: Some(Value::from(&key).to_buf()),
        min: Some(min.to_buf()),
        max: Some(max.to_buf()),
        interrupt,
        ..FindRequest::default()
    };
    let (mut bytes, mut count) = (0, 0);
    for document in database.find(collection, &search)? {
        request.operation.check()?;
        bytes += i64::try_from(document?.as_bytes().len()).unwrap_or(i64::MAX);
        count += 1;
    }
    Ok((bytes, count))
}

/// Reads `scale`, by which sizes are divided.
///
/// # Errors
/// `TypeMismatch` (14); 51024 if it is below 1.
pub fn read_scale(fields: &mut Fields<'_>) -> Result<i64, Error> {
    let scale = fields.integer("scale")?.unwrap_or(1);
    if scale < 1 {
        return Err(tables::out_of_range("scale", ">=", 1, scale));
    }
    Ok(scale)
}
