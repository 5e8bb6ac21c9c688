//! `clusteredIndex`: a collection whose documents lie in the order of `_id`.
//!
//! Every collection of Frond is one. So the option changes nothing but what is shown of the
//! collection, and that documents may expire by their `_id` (`expireAfterSeconds`).

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document, order};
use frond_query::{Code, Collation};

use crate::definition::{ID_INDEX_NAME, IndexSpec, expire_after};
use crate::error::Error;

/// The option of `create`.
pub(crate) const OPTION: &str = "clusteredIndex";
/// The option that says when documents expire.
pub(crate) const EXPIRE_OPTION: &str = "expireAfterSeconds";

/// Checks the two options of a collection.
///
/// # Errors
/// `InvalidIndexSpecificationOption` (197) for another key than `_id`, 5979700 if `unique` isn't
/// said; `InvalidOptions` (72) if documents are to expire without the other option.
pub(crate) fn check(options: Document<'_>) -> Result<(), Error> {
    let clustered = options.get(OPTION);
    if let Some(seconds) = options.get(EXPIRE_OPTION) {
        expire_after(seconds)?;
        if clustered.is_none() && options.get("timeseries").is_none() {
            let message = "'expireAfterSeconds' is only supported on time-series collections or when the \
                           'clusteredIndex' option is specified";
            return Err(Error::invalid(Code::InvalidOptions, message));
        }
    }
    let Some(clustered) = clustered else { return Ok(()) };
    let Value::Document(clustered) = clustered else {
        let message = "the option 'clusteredIndex' must be an object";
        return Err(Error::invalid(Code::TypeMismatch, message));
    };
    let mut has_key = false;
    for (name, value) in clustered.iter() {
        let is_proper = match name {
            "key" => {
                has_key = true;
                let key = value.as_document();
                key.is_some_and(|key| is_id_key(key))
            }
            "unique" => true,
            "name" => value.as_str().is_some(),
            "v" => value.as_integer() == Some(2),
            _ => false,
        };
        if !is_proper {
            let message = match name {
                "key" => "The clusteredIndex option is only supported for key: {_id: 1}".to_owned(),
                _ => format!("BSON field 'create.clusteredIndex.{name}' is not supported"),
            };
            return Err(Error::invalid(Code::InvalidIndexSpecificationOption, message));
        }
    }
    if !has_key {
        let message = "BSON field 'create.clusteredIndex.key' is missing but a required field";
        return Err(Error::invalid(Code::Location(40414), message));
    }
    let Some(unique) = clustered.get("unique") else {
        let message = "BSON field 'create.clusteredIndex.unique' is missing but a required field";
        return Err(Error::invalid(Code::Location(40414), message));
    };
    if !unique.is_truthy() {
        let message = "The clusteredIndex option requires unique: true to be specified";
        return Err(Error::invalid(Code::Location(5_979_700), message));
    }
    Ok(())
}

fn is_id_key(key: Document<'_>) -> bool {
    order::compare_documents(key, document! { "_id": 1 }.view()).is_eq()
}

/// Returns a `clusteredIndex` with its defaults.
pub(crate) fn described(index: Document<'_>) -> DocumentBuf {
    let mut built = DocumentBuilder::new();
    built.append("v", index.get("v").unwrap_or(Value::Int32(2)));
    if let Some(key) = index.get("key") {
        built.append("key", key);
    }
    built.append("name", index.get("name").unwrap_or(Value::String(ID_INDEX_NAME)));
    if let Some(unique) = index.get("unique") {
        built.append("unique", unique);
    }
    built.build()
}

/// Returns when documents expire by their `_id`.
pub(crate) fn expires_after(options: Document<'_>) -> Option<i64> {
    options.get(OPTION)?;
    seconds_of(options)
}

/// Returns the seconds after which the documents of a collection expire, half seconds left out.
pub(crate) fn seconds_of(options: Document<'_>) -> Option<i64> {
    options.get(EXPIRE_OPTION).and_then(|seconds| expire_after(seconds).ok())
}

/// The index of `_id` as `listIndexes` shows it of a collection with these options.
pub fn id_index(options: Document<'_>) -> DocumentBuf {
    let Some(Value::Document(clustered)) = options.get(OPTION) else {
        let mut spec = IndexSpec::of_id();
        spec.collation = collation_of(options);
        return spec.to_document();
    };
    let name = clustered.get("name").and_then(|name| name.as_str()).unwrap_or(ID_INDEX_NAME);
    let mut description = DocumentBuilder::new();
    description.append("v", Value::Int32(2));
    description.append("key", Value::Document(document! { "_id": 1 }.view()));
    description.append("name", Value::String(name));
    description.append("unique", Value::Boolean(true));
    description.append("clustered", Value::Boolean(true));
    if let Some(specification) = collation_of(options).as_ref().and_then(Collation::specification) {
        description.append("collation", Value::Document(specification));
    }
    description.build()
}

/// The collation that the index of `_id` has from its collection.
fn collation_of(options: Document<'_>) -> Option<Collation> {
    let collation = options.get("collation")?.as_document()?;
    Collation::parse(collation).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let key = document! { "_id": 1 };
        let proper = document! { "key": &key, "unique": true, "name": "mine" };
        let options = document! { "clusteredIndex": &proper, "expireAfterSeconds": 5 };
        assert!(check(options.view()).is_ok());
        assert_eq!(expires_after(options.view()), Some(5));
        let index = id_index(options.view());
        assert_eq!(index.get("name"), Some(Value::String("mine")));
        assert_eq!(index.get("clustered"), Some(Value::Boolean(true)));
        let other = document! { "a": 1 };
        for (clustered, code) in [
            (document! { "key": &other, "unique": true }, 197),
            (document! { "key": &key, "unique": false }, 5_979_700),
            (document! { "key": &key }, 40414),
            (document! { "unique": true }, 40414),
            (document! { "key": &key, "unique": true, "sparse": true }, 197),
        ] {
            let options = document! { "clusteredIndex": &clustered };
            assert_eq!(check(options.view()).unwrap_err().code.number(), code, "{clustered:?}");
        }
        let alone = document! { "expireAfterSeconds": 5 };
        assert_eq!(check(alone.view()).unwrap_err().code, Code::InvalidOptions);
    }
}
