//! `create` and `collMod`.

use frond_db::catalog::{IndexChange, IndexSpec, expire_after};
use frond_db::{Error, name};
use frond_doc::{Document, DocumentBuilder, Value, ValueBuf, document, order};
use frond_query::{Code, Collation, text};

use crate::fields::Fields;
use crate::profiler;
use crate::request::{Answer, Request, check_collection_name, check_writable};

/// The options of MongoDB's collections that Frond doesn't have yet.
const REFUSED: &[&str] = &["encryptedFields", "indexOptionDefaults", "storageEngine", "temp"];

/// The option whether the log keeps documents as they were before a change.
const IMAGES: &str = "changeStreamPreAndPostImages";

/// Runs a `create`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    // The profiler's collection may be made beforehand, larger than it would be.
    if collection != profiler::COLLECTION {
        check_writable(request.database_name, collection)?;
    }
    let mut fields = request.fields()?;
    fields.refuse_all(REFUSED)?;
    let collation = fields.document("collation")?;
    let mut options = read_options(&mut fields)?;
    if let Some(capped) = fields.optional_boolean("capped")? {
        options.append("capped", Value::Boolean(capped));
    }
    for name in ["size", "max"] {
        if let Some(limit) = fields.integer(name)? {
            options.append(name, Value::Int64(limit));
        }
    }
    if let Some(collation) = collation {
        options.append("collation", Value::Document(collation));
    }
    // The values are checked with the other options.
    for name in ["clusteredIndex", "expireAfterSeconds", "mergeRules", "timeseries"] {
        if let Some(value) = fields.value(name) {
            options.append(name, value);
        }
    }
    let options = options.build();
    check_validator(request, collection, options.view())?;
    check_id_index(&mut fields, options.view())?;
    // The old flags mean nothing, in MongoDB either.
    fields.ignore(&["flags"]);
    fields.finish()?;
    request.database()?.create_collection(collection, options.view())?;
    Ok(DocumentBuilder::new())
}

/// Refuses validators of what the server keeps for itself.
fn check_validator(
    request: &Request<'_>,
    collection: &str,
    options: Document<'_>,
) -> Result<(), Error> {
    let validator = options.get("validator").and_then(|validator| validator.as_document());
    if validator.is_none_or(|validator| validator.is_empty()) {
        return Ok(());
    }
    let namespace = request.namespace(collection);
    let database = request.database_name.split('@').next().unwrap_or_default();
    let message = if collection.starts_with("system.") {
        format!("Document validators not allowed on system collection {namespace}")
    } else if name::is_internal(database) {
        format!(
            "Document validators are not allowed on collection {namespace} in the {database} \
             internal database"
        )
    } else {
        return Ok(());
    };
    Err(Error::invalid(Code::InvalidOptions, message))
}

/// Checks what is said of the index of `_id`: it is always there, and always the same.
fn check_id_index(fields: &mut Fields<'_>, options: Document<'_>) -> Result<(), Error> {
    if fields.optional_boolean("autoIndexId")? == Some(false) {
        let message = "autoIndexId: false is not allowed: every collection has an index of _id";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    let key = document! { "_id": 1_i32 };
    let Some(index) = fields.document("idIndex")? else { return Ok(()) };
    if options.get("viewOn").is_some() {
        let shown = text::value(Value::Document(index));
        let message = format!("'idIndex' is not allowed with 'viewOn': {shown}");
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    if options.get("timeseries").is_some() {
        let message = "time-series collections do not support the option 'idIndex'";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    let is_known = |name: &str| matches!(name, "collation" | "key" | "name" | "ns" | "v");
    if let Some((name, _)) = index.iter().find(|(name, _)| !is_known(name)) {
        let message = format!("The field '{name}' is not valid for an _id index specification");
        return Err(Error::invalid(Code::InvalidIndexSpecificationOption, message));
    }
    let found = index.get("key").and_then(|key| key.as_document());
    if found.is_none_or(|found| order::compare_documents(found, key.view()).is_ne()) {
        let message = "The field 'key' for an _id index must be {_id: 1}";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let collation = |place: Document<'_>| match place.get("collation") {
        Some(Value::Document(collation)) if !collation.is_empty() => Collation::parse(collation),
        _ => Ok(Collation::SIMPLE),
    };
    if index.get("collation").is_some() && collation(index)? != collation(options)? {
        let message = "'idIndex' must have the same collation as the collection.";
        return Err(Error::invalid(Code::BadValue, message));
    }
    Ok(())
}

/// Runs a `collMod`.
pub fn modify(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let mut fields = request.fields()?;
    let is_dry = fields.boolean("dryRun")?;
    let expires = fields.value("expireAfterSeconds").map(read_expiry).transpose()?;
    let (size, max) = (fields.integer("cappedSize")?, fields.integer("cappedMax")?);
    let index = fields.document("index")?.map(read_index_change).transpose()?;
    let mut options = read_options(&mut fields)?;
    if let Some(series) = fields.value("timeseries") {
        options.append("timeseries", series);
    }
    let options = options.build();
    check_validator(request, collection, options.view())?;
    fields.finish()?;
    let database = request.database()?;
    let mut answer = DocumentBuilder::new();
    if is_dry {
        let Some((index, change)) = index.filter(|(_, change)| change.becomes_unique) else {
            let message = "dryRun mode is only supported for index unique conversion";
            return Err(Error::invalid(Code::InvalidOptions, message));
        };
        database.try_change_index(collection, &index, &change)?;
        return Ok(answer);
    }
    let is_about_options = !options.view().is_empty()
        || expires.is_none() && size.is_none() && max.is_none() && index.is_none();
    if let Some(expires) = expires {
        database.change_expiry(collection, expires)?;
    }
    if size.is_some() || max.is_some() {
        database.change_limits(collection, size, max)?;
    }
    if let Some((index, change)) = index {
        let (before, after) = database.change_index(collection, &index, &change)?;
        append_index_change(&mut answer, &change, (&before, &after));
    }
    // Change streams see all changes of options as one event.
    if is_about_options {
        database.change_collection(collection, options.view())?;
    }
    Ok(answer)
}

/// Appends the changed settings of an index, as they were and as they are.
fn append_index_change(
    answer: &mut DocumentBuilder,
    change: &IndexChange,
    (before, after): (&IndexSpec, &IndexSpec),
) {
    if change.hidden.is_some() && before.hidden != after.hidden {
        answer.append("hidden_old", Value::Boolean(before.hidden));
        answer.append("hidden_new", Value::Boolean(after.hidden));
    }
    if let Some(seconds) = change.expire_after_seconds
        && before.expire_after_seconds != Some(seconds)
    {
        if let Some(before) = before.expire_after_seconds {
            answer.append("expireAfterSeconds_old", Value::Int64(before));
        }
        answer.append("expireAfterSeconds_new", Value::Int64(seconds));
    }
    if change.prepare_unique.is_some() && before.prepare_unique != after.prepare_unique {
        answer.append("prepareUnique_old", Value::Boolean(before.prepare_unique));
        answer.append("prepareUnique_new", Value::Boolean(after.prepare_unique));
    }
    if before.unique != after.unique {
        answer.append("unique_new", Value::Boolean(true));
    }
    if before.name != after.name {
        answer.append("name_old", Value::String(&before.name));
        answer.append("name_new", Value::String(&after.name));
    }
}

/// Reads when the documents of a clustered collection expire: after so many seconds, or never
/// (`"off"`).
fn read_expiry(value: Value<'_>) -> Result<Option<i64>, Error> {
    match value {
        Value::String("off") => Ok(None),
        Value::String(_) => {
            let message = "BSON field 'collMod.expireAfterSeconds' must be a number or 'off'";
            Err(Error::invalid(Code::InvalidOptions, message))
        }
        value => expire_after(value).map(Some),
    }
}

/// Makes a collection a capped one, with the last of its documents and without its indexes.
pub fn convert(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let mut fields = request.fields()?;
    let size = fields.integer("size")?.ok_or_else(|| fields.missing("size"))?;
    fields.boolean("temp")?;
    fields.finish()?;
    request.database()?.copy_capped(collection, collection, size)?;
    Ok(DocumentBuilder::new())
}

/// Makes a capped collection of another's last documents.
pub fn clone(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut fields = request.fields()?;
    let to = fields.required_string("toCollection")?;
    let size = fields.integer("size")?.ok_or_else(|| fields.missing("size"))?;
    fields.boolean("temp")?;
    fields.finish()?;
    check_collection_name(request.database_name, to)?;
    check_writable(request.database_name, to)?;
    request.database()?.copy_capped(collection, to, size)?;
    Ok(DocumentBuilder::new())
}

/// Reads what `collMod` changes of an index: which one, and what.
fn read_index_change(index: Document<'_>) -> Result<(ValueBuf, IndexChange), Error> {
    let mut fields = Fields::of_part("collMod.index", index)?;
    let name = fields.string("name")?.map(|name| Value::String(name).to_buf());
    let key = fields.document("keyPattern")?.map(|key| Value::Document(key).to_buf());
    let hidden = fields.optional_boolean("hidden")?;
    let seconds = fields.value("expireAfterSeconds").map(expire_after).transpose()?;
    let new_name = fields.string("newName")?.map(str::to_owned);
    let prepare_unique = fields.optional_boolean("prepareUnique")?;
    let unique = fields.optional_boolean("unique")?;
    fields.finish()?;
    let refuse = |message: &str| Err(Error::invalid(Code::InvalidOptions, message));
    let index = match (name, key) {
        (Some(name), None) => name,
        (None, Some(key)) => key,
        (Some(_), Some(_)) => return refuse("Cannot specify both key pattern and name."),
        (None, None) => return refuse("Must specify either index name or key pattern."),
    };
    if unique == Some(false) {
        return refuse("Cannot make index non-unique");
    }
    let becomes_unique = unique.is_some();
    if hidden.or(prepare_unique).or(unique).is_none() && seconds.is_none() && new_name.is_none() {
        return refuse("no expireAfterSeconds, hidden, unique, prepareUnique or newName field");
    }
    let expire_after_seconds = seconds;
    let name = new_name;
    let change = IndexChange { hidden, prepare_unique, becomes_unique, expire_after_seconds, name };
    Ok((index, change))
}

/// Takes the options that a collection or a view keeps, as they came.
fn read_options(fields: &mut Fields<'_>) -> Result<DocumentBuilder, Error> {
    let mut options = DocumentBuilder::new();
    if let Some(validator) = fields.document("validator")? {
        options.append("validator", Value::Document(validator));
    }
    if let Some(images) = fields.document(IMAGES)? {
        options.append(IMAGES, Value::Document(images));
    }
    if let Some(versioned) = fields.optional_boolean("versioned")? {
        options.append("versioned", Value::Boolean(versioned));
    }
    for name in ["validationLevel", "validationAction", "viewOn"] {
        if let Some(text) = fields.string(name)? {
            options.append(name, Value::String(text));
        }
    }
    if let Some(pipeline) = fields.array("pipeline")? {
        options.append("pipeline", Value::Array(pipeline));
    }
    Ok(options)
}
